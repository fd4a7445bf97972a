"""A server without any package, quick to start and to answer: `echo` returns so many letters."""

import json
import sys
from typing import Any

ECHO = {
    "name": "echo",
    "description": "Return so many letters.",
    "inputSchema": {
        "type": "object",
        "properties": {"size": {"type": "integer"}},
        "required": ["size"],
    },
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "echo", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [ECHO]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "x" * params["arguments"]["size"]}]}
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = answer(request["method"], request.get("params", {}))
        reply = {"jsonrpc": "2.0", "id": request["id"], "result": result}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
