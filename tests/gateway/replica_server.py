"""A server without any package, of both eras, that writes down each call: `FILE PAGE`.

`count` answers how many calls there were in this process, `hang` never answers, `show` opens the
View whose HTML is in PAGE.
"""

import json
import os
import sys
from itertools import count
from pathlib import Path
from typing import Any

URI = "ui://replica/page.html"
FILE, PAGE = Path(sys.argv[1]), Path(sys.argv[2])
INFO = {"name": "replica", "version": "1"}
CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}}
CACHE = {"ttlMs": 0, "cacheScope": "private"}
counter = count(1)


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            version = {"protocolVersion": "2025-11-25"}
            return {**version, "capabilities": CAPABILITIES, "serverInfo": INFO}
        case "server/discover":
            meta = {"_meta": {"io.modelcontextprotocol/serverInfo": INFO}}
            versions = {"supportedVersions": ["2026-07-28"]}
            return {**versions, "capabilities": CAPABILITIES, **meta, **CACHE}
        case "tools/list":
            meta = {"show": {"_meta": {"ui": {"resourceUri": URI}}}}
            tools = [
                {"name": name, "inputSchema": {"type": "object"}, **meta.get(name, {})}
                for name in ("count", "hang", "show")
            ]
            return {"tools": tools, **CACHE}
        case "tools/call":
            with FILE.open("a") as file:
                file.write(f"{os.getpid()} {params['name']}\n")
            text = f"{next(counter)} in {os.getpid()}"
            return {"content": [{"type": "text", "text": text}]}
        case "resources/read":
            kind = {"mimeType": "text/html;profile=mcp-app"}
            return {"contents": [{"uri": URI, "text": PAGE.read_text(), **kind}], **CACHE}
        case "ping":
            return {}
        case _:
            return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    params = request.get("params", {})
    result = answer(request["method"], params)
    if params.get("name") == "hang":
        continue
    if result is None:
        answered: dict[str, Any] = {"error": {"code": -32601, "message": "Method not found"}}
    elif "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {}):
        answered = {"result": {**result, "resultType": "complete"}}
    else:
        answered = {"result": result}
    reply = {"jsonrpc": "2.0", "id": request["id"], **answered}
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
