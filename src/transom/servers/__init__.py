"""Connections to MCP servers: one way to reach them, for hosts, the gateway and the checker."""
