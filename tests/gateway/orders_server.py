"""A server without any package, quick to start, of both eras: `show_orders` opens a View."""

import json
import sys
from typing import Any

URI = "ui://orders/list.html"
PAGE = {"uri": URI, "mimeType": "text/html;profile=mcp-app", "text": "<!doctype html>"}
NAMES = ("show_orders", "search", "refresh")
META: dict[str, dict[str, Any]] = {
    "show_orders": {"_meta": {"ui": {"resourceUri": URI}}},
    "refresh": {"_meta": {"ui": {"visibility": ["app"]}}},
}
INFO = {"name": "orders", "version": "1"}
CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": CAPABILITIES,
                "serverInfo": INFO,
            }
        case "server/discover":
            return {
                "supportedVersions": ["2026-07-28"],
                "capabilities": CAPABILITIES,
                "_meta": {"io.modelcontextprotocol/serverInfo": INFO},
                "ttlMs": 0,
                "cacheScope": "private",
            }
        case "tools/list":
            tools = [
                {"name": name, "inputSchema": {"type": "object"}, **META.get(name, {})}
                for name in NAMES
            ]
            return {"tools": tools, "ttlMs": 0, "cacheScope": "private"}
        case "tools/call":
            text = f"{params['name']} {json.dumps(params.get('arguments') or {})}"
            return {"content": [{"type": "text", "text": text}]}
        case "resources/read":
            return {"contents": [PAGE], "ttlMs": 0, "cacheScope": "private"}
        case "ping":
            return {}
        case _:
            return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        params = request.get("params", {})
        result = answer(request["method"], params)
        if result is None:
            answered: dict[str, Any] = {"error": {"code": -32601, "message": "Method not found"}}
        elif "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {}):
            answered = {"result": {**result, "resultType": "complete"}}
        else:
            answered = {"result": result}
        reply = {"jsonrpc": "2.0", "id": request["id"], **answered}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
