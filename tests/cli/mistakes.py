"""A small MCP server with a mistake in it, without any package: `python mistakes.py MISTAKE`.

`pages` has three tools, each of which opens a page with a mistake, and one whose page has none.
With `--plain`, no tool opens a page.
"""

import json
import sys
from typing import Any

MISTAKE = sys.argv[1]
CONNECT = """\
  const send = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  addEventListener("message", ({ data }) => {
    if (data.id === 1 && !data.method) send({ method: "ui/notifications/initialized" });
    else if (data.id !== undefined && data.method) send({ id: data.id, result: {} });
  });
  send({ id: 1, method: "ui/initialize", params: { protocolVersion: "2026-01-26",
    appInfo: { name: "orders", version: "1.0" }, appCapabilities: {} } });
"""
SCRIPTS = {
    "page": CONNECT,
    "syntax_error": "  const orders = [1, 2;\n" + CONNECT,
    "no_connect": '  document.title = "Orders";\n',
    "blocked_fetch": '  fetch("https://api.example.com/orders").catch(() => {});\n' + CONNECT,
}
NAMES = list(SCRIPTS) if MISTAKE == "pages" else ["page"]


def tool(page: str) -> dict[str, Any]:
    linked = "lost" if MISTAKE == "wrong-uri" else page
    status = {"type": "text" if MISTAKE == "bad-schema" else "string"}
    meta = {"ui": {"resourceUri": f"ui://orders/{linked}.html"}}
    return {
        "name": "show_orders" if page == "page" else page,
        "title": "Show orders",
        "description": "Show the orders.",
        "inputSchema": {"type": "object", "properties": {"status": status}},
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
        "_meta": {} if "--plain" in sys.argv else meta,
    }


def resource(page: str) -> dict[str, Any]:
    mime = "text/html" if MISTAKE == "wrong-mime-type" else "text/html;profile=mcp-app"
    return {
        "uri": f"ui://orders/{page}.html",
        "name": page,
        "mimeType": mime,
        "_meta": {"ui": {"prefersBorder": True}},
    }


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            able = {"tools": {}, "resources": {}, "extensions": {"io.modelcontextprotocol/ui": {}}}
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": able,
                "serverInfo": {"name": "orders", "version": "1.0"},
            }
        case "tools/list":
            return {"tools": [tool(name) for name in NAMES]}
        case "resources/list":
            return {"resources": [resource(name) for name in NAMES]}
        case "resources/read":
            for name in NAMES:
                if params["uri"] == resource(name)["uri"]:
                    html = (
                        f"<!doctype html>\n<title>x</title>\n<script>\n{SCRIPTS[name]}</script>\n"
                    )
                    return {"contents": [{**resource(name), "text": html}]}
            raise LookupError(f"Resource not found: {params['uri']}")
        case "tools/call" if params["name"] not in [tool(name)["name"] for name in NAMES]:
            raise LookupError(f"Unknown tool: {params['name']}")
        case "tools/call" if MISTAKE == "throwing-tool":
            text = "Error executing tool show_orders: there is no table 'orders'"
            return {"content": [{"type": "text", "text": text}], "isError": True}
        case "tools/call":
            text = {"type": "text", "text": "Two orders."}
            return {"content": [text], "structuredContent": {"orders": 2}}
    raise LookupError(f"Method not found: {method}")


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
    try:
        reply["result"] = answer(request["method"], request.get("params") or {})
    except LookupError as error:
        reply["error"] = {"code": -32602, "message": str(error)}
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
