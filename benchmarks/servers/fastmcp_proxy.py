"""FastMCP's own proxy before a server: `python fastmcp_proxy.py COMMAND…`, on standard input."""

import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

proxy = create_proxy(StdioTransport(sys.argv[1], sys.argv[2:]), name="proxy")
proxy.run(show_banner=False, log_level="ERROR")
