"""FastMCP's own proxy before a server: `python fastmcp_proxy.py [--http PORT] COMMAND…`.

On standard input and output, or as streamable HTTP at `/mcp`, with JSON answers: its quickest way.
"""

import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

command = sys.argv[1:]
http = command[:1] == ["--http"]
port = int(command[1]) if http else 0
command = command[2:] if http else command
proxy = create_proxy(StdioTransport(command[0], command[1:]), name="proxy")
if http:
    proxy.run(
        "http",
        port=port,
        json_response=True,
        show_banner=False,
        log_level="ERROR",
        uvicorn_config={"access_log": False},
    )
else:
    proxy.run(show_banner=False, log_level="ERROR")
