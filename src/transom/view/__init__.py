"""The View's side of MCP Apps: an App, its tools, and its connection to a host."""
