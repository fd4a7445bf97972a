"""A server without any package, quick to start, of one era: `matrix_server.py handshake|modern`.

It has a tool for each thing that has to pass through a gateway: a View, progress, cancelling, and a
question to the user. Its answers to all of them are the same in both eras.
"""

import json
import sys
from typing import Any

MODERN = sys.argv[1] == "modern"
URI = "ui://orders/list.html"
PAGE = {"uri": URI, "mimeType": "text/html;profile=mcp-app", "text": "<!doctype html>"}
INFO = {"name": "orders", "version": "1"}
CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}}
META: dict[str, Any] = {"show_orders": {"ui": {"resourceUri": URI}}}
TOOLS = [
    {
        "name": name,
        "inputSchema": {"type": "object"},
        **({"_meta": META[name]} if name in META else {}),
    }
    for name in ("show_orders", "search", "work", "ask", "hang", "was_cancelled")
]
QUESTION = {
    "mode": "form",
    "message": "Who are you?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    },
}
CACHED = {"ttlMs": 0, "cacheScope": "private"}

cancelled: list[str] = []
hanging: dict[Any, str] = {}
asking: dict[str, Any] = {}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def reply(id: Any, result: dict[str, Any]) -> None:
    say({"id": id, "result": {"resultType": "complete", **result} if MODERN else result})


def refuse(id: Any, code: int, message: str) -> None:
    say({"id": id, "error": {"code": code, "message": message}})


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def progress(params: dict[str, Any], done: int, total: int) -> None:
    token = params.get("_meta", {}).get("progressToken")
    if token is not None:
        told = {"progressToken": token, "progress": done, "total": total}
        say({"method": "notifications/progress", "params": told})


def greeting(answer: dict[str, Any]) -> dict[str, Any]:
    return text(f"hello {answer.get('content', {}).get('name')}")


def call(id: Any, params: dict[str, Any]) -> None:
    match params["name"]:
        case "work":
            for step in (1, 2, 3):
                progress(params, step, 3)
            reply(id, text("worked"))
        case "hang":
            hanging[id] = "hang"
            progress(params, 1, 2)
        case "was_cancelled":
            reply(id, text(",".join(cancelled)))
        case "ask" if MODERN and "inputResponses" in params:
            reply(id, greeting(params["inputResponses"]["who"]))
        case "ask" if MODERN:
            wanted = {"who": {"method": "elicitation/create", "params": QUESTION}}
            say({"id": id, "result": {"resultType": "input_required", "inputRequests": wanted}})
        case "ask":
            asking[f"ask-{id}"] = id
            say({"id": f"ask-{id}", "method": "elicitation/create", "params": QUESTION})
        case name:
            reply(id, text(f"{name} {json.dumps(params.get('arguments') or {})}"))


def answer(id: Any, method: str, params: dict[str, Any]) -> None:
    modern = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
    if method == "initialize" and not MODERN:
        version = {"protocolVersion": "2025-11-25"}
        reply(id, {**version, "capabilities": CAPABILITIES, "serverInfo": INFO})
    elif MODERN and not modern:
        refuse(id, -32022 if method == "initialize" else -32602, "Who is asking?")
    elif method == "server/discover" and MODERN:
        stamp = {"_meta": {"io.modelcontextprotocol/serverInfo": INFO}}
        known = {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES}
        reply(id, {**known, **stamp, **CACHED})
    elif method == "tools/list":
        reply(id, {"tools": TOOLS, **(CACHED if MODERN else {})})
    elif method == "tools/call":
        call(id, params)
    elif method == "resources/read":
        reply(id, {"contents": [PAGE], **(CACHED if MODERN else {})})
    elif method == "ping" and not MODERN:
        reply(id, {})
    else:
        refuse(id, -32601, "Method not found")


for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        waiting = asking.pop(message["id"], None)
        if waiting is not None:
            reply(waiting, greeting(message.get("result", {})))
    elif "id" in message:
        answer(message["id"], message["method"], message.get("params", {}))
    elif message["method"] == "notifications/cancelled":
        found = hanging.pop(message["params"]["requestId"], None)
        if found is not None:
            cancelled.append(found)
