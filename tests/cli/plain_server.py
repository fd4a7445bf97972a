"""A small MCP server without any package, quick to start: `python plain_server.py good|bad`."""

import json
import sys
from typing import Any

GOOD = {
    "name": "count_orders",
    "title": "Count",
    "description": "Count the orders.",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}
BAD = {
    "name": "show_orders",
    "description": "Show the orders.",
    "inputSchema": {
        "type": "object",
        "properties": {"status": {"type": "string"}},
        "required": ["status"],
    },
    "_meta": {"ui": {"resourceUri": "ui://orders/lost.html"}},
}


def answer(method: str) -> dict[str, Any]:
    if method == "initialize":
        result: dict[str, Any] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "orders", "version": "1.0"},
        }
    elif method == "tools/list":
        result = {"tools": [BAD if sys.argv[1] == "bad" else GOOD]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "Two orders."}]}
    else:
        return {"error": {"code": -32601, "message": "Method not found"}}
    return {"result": result}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        reply = {"jsonrpc": "2.0", "id": request["id"], **answer(request["method"])}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
