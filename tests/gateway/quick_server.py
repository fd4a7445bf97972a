"""A server without any package, quick to start: `add` and `search`. `python quick_server.py NAME`.

It leaves its process id in the file that follows the name, if there is one.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

UNKNOWN = {"code": -32601, "message": "Method not found"}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("add", "search")]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": sys.argv[1], "version": "1"},
            "instructions": f"Use {sys.argv[1]}.",
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method != "tools/call":
        return None
    given = params.get("arguments", {})
    text = f"{sys.argv[1]} {sum(given.values())}"
    return {"content": [{"type": "text", "text": text}]}


if len(sys.argv) > 2:
    Path(sys.argv[2]).write_text(str(os.getpid()))
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = answer(request["method"], request.get("params", {}))
        answered = {"error": UNKNOWN} if result is None else {"result": result}
        reply = {"jsonrpc": "2.0", "id": request["id"], **answered}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
