"""`fastmcp dev apps FILE` without the internet: `benchmarks/dev_rows.py` serves its page the rest.

python benchmarks/servers/fastmcp_dev_apps.py FILE MCP_PORT DEV_PORT BRIDGE
"""

import asyncio
import sys
import webbrowser
from pathlib import Path

from fastmcp.cli import apps_dev

file, mcp_port, dev_port, bridge = sys.argv[1:]
bundle = Path(bridge).read_text(), '{"imports": {}}'
apps_dev._fetch_app_bridge_bundle_sync = lambda *_: bundle
wait = apps_dev._wait_for_server
apps_dev._wait_for_server = lambda url, **_: wait(url, timeout=120)  # on a busy machine
webbrowser.open = lambda *_: True
asyncio.run(apps_dev.run_dev_apps(file, mcp_port=int(mcp_port), dev_port=int(dev_port)))
