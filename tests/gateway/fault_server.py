"""A server with a fault, which it has from the signal SIGUSR1 on: `fault_server.py FAULT`."""

import json
import os
import signal
import sys
import threading
import time
from typing import Any

from tests.browser.views import html

URI = "ui://faulty/page.html"
MIME = "text/html;profile=mcp-app"
WAIT = """
tools.wait = ({ seconds }) => new Promise((done) => setTimeout(done, seconds * 1000, "waited"));
"""
TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    for name in ("echo", "wait", "show", "large")
]
TOOLS[2]["_meta"] = {"ui": {"resourceUri": URI}}
GARBAGE = [
    b"\xff\xfe\n",
    b"{" * 5000 + b"\n",
    b'{"jsonrpc":"2.0","id":999999,"result":{}}\n',
    b'{"jsonrpc":"2.0","id":null,"error":{}}\n[]\n""\n\n',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}\n',
    b"x" * 200_000 + b"\n",
]
_writing = threading.Lock()
_slow = threading.Event()


def write(line: bytes) -> None:
    with _writing:
        pieces = [line[:10], line[10:]] if _slow.is_set() else [line]
        for piece in pieces:
            if _slow.is_set():
                time.sleep(0.2)
            os.write(1, piece)


def fail(fault: str) -> None:
    if fault == "garbage":
        for line in GARBAGE:
            write(line)
    elif fault == "slow":
        _slow.set()
    elif fault == "half-closed":
        os.close(1)


def answer(message: dict[str, Any]) -> None:
    method, params = message["method"], message.get("params") or {}
    result: dict[str, Any] = {}
    match method:
        case "initialize":
            result = {
                "protocolVersion": "2025-11-25",
                "serverInfo": {"name": "faulty", "version": "1"},
                "capabilities": {"tools": {}, "resources": {}},
            }
        case "tools/list":
            result = {"tools": TOOLS}
        case "resources/read":
            result = {"contents": [{"uri": URI, "mimeType": MIME, "text": html(WAIT)}]}
        case "tools/call":
            name, text = params["name"], params["name"]
            if name in ("wait", "show"):
                time.sleep((params.get("arguments") or {}).get("seconds", 0))
            elif name == "large":
                text = "x" * 500_000
            result = {"content": [{"type": "text", "text": text}]}
    try:
        write(
            json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n"
        )
    except OSError:
        time.sleep(600)  # it can say nothing any more, and stays


def main() -> None:
    signal.signal(
        signal.SIGUSR1, lambda *_: threading.Thread(target=fail, args=sys.argv[1:]).start()
    )
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            threading.Thread(target=answer, args=[message], daemon=True).start()


if __name__ == "__main__":
    main()
