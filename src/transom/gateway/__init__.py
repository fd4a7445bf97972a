"""The gateway: an MCP server in front of MCP servers, which brings Views to every client."""
