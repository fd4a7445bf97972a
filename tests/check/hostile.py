"""Servers that misbehave, each in its own way: `python hostile.py WAY`."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

MEGABYTE = 1024 * 1024


def requests() -> Iterator[Any]:
    for line in sys.stdin:
        yield json.loads(line)


def say(message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(request: Any, result: Any) -> None:
    say({"jsonrpc": "2.0", "id": request["id"], "result": result})


def hello(request: Any) -> None:
    answer(
        request,
        {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "hostile", "version": "1"},
        },
    )


def tool(name: str, **more: Any) -> Any:
    return {"name": name, "description": "Text.", "inputSchema": {"type": "object"}, **more}


def serve(answers: dict[str, Callable[[Any], None]]) -> None:
    """Answer with these, politely where they say nothing."""
    for request in requests():
        if "id" not in request:
            continue
        method = request["method"]
        if method in answers:
            answers[method](request)
        elif method == "initialize":
            hello(request)
        elif method == "tools/list":
            answer(request, {"tools": [tool("tell")]})
        else:
            say(
                {
                    "jsonrpc": "2.0",
                    "id": request["id"],
                    "error": {"code": -32601, "message": "Method not found"},
                }
            )


def hang_at_hello() -> None:
    for _ in requests():
        pass


def hang_at_tools() -> None:
    serve({"tools/list": lambda request: None})


def ignore_the_end() -> None:
    serve({})
    signal.pause()  # stdin is closed; a server that does not care


def die_at_once() -> None:
    sys.stderr.write("ImportError: no module named orders\n")
    sys.exit(3)


def die_at_call() -> None:
    readers = [tool(name, annotations={"readOnlyHint": True}) for name in ("one", "two")]
    serve(
        {
            "tools/list": lambda request: answer(request, {"tools": readers}),
            "tools/call": lambda request: sys.exit("out of orders"),
        }
    )


def flood_stderr() -> None:
    sys.stderr.write(("noise " * 1000 + "\n") * 2000)  # 12 MB: more than any pipe holds
    sys.stderr.flush()
    serve({})


def flood_stdout() -> None:
    def flood(request: Any) -> None:
        for number in range(20_000):
            say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"n": number}})
        answer(request, {"tools": [tool("tell")]})

    serve({"tools/list": flood})


def write_garbage() -> None:
    sys.stdout.write("Server is starting...\n{not json}\n[1, 2]\n\n\xff\x00\n")
    deep = "[" * 100_000 + "]" * 100_000
    sys.stdout.write(f'{{"jsonrpc": "2.0", "id": 1, "result": {deep}}}\n')
    sys.stdout.flush()
    serve({})


def answer_wrongly() -> None:
    serve(
        {
            "tools/list": lambda request: answer(request, ["tell"]),
            "resources/list": lambda request: answer(request, {"resources": "none"}),
        }
    )


def odd_entries() -> None:
    odd = [None, 7, "tell", [], {}, {"name": 5}, {"name": "a\u202eb\u001b[31m", "_meta": 3}]
    serve({"tools/list": lambda request: answer(request, {"tools": odd})})


def many_tools() -> None:
    tools = [tool(f"tool_{number}") for number in range(10_000)]

    def page(request: Any) -> None:
        start = int(request["params"].get("cursor", 0))
        result: Any = {"tools": tools[start : start + 1000]}
        if start + 1000 < len(tools):
            result["nextCursor"] = str(start + 1000)
        answer(request, result)

    serve({"tools/list": page})


def same_cursor() -> None:
    serve(
        {"tools/list": lambda request: answer(request, {"tools": [tool("a")], "nextCursor": "x"})}
    )


def endless_cursors() -> None:
    def page(request: Any) -> None:
        start = int(request["params"].get("cursor", 0))
        answer(request, {"tools": [tool(f"t{start}")], "nextCursor": str(start + 1)})

    serve({"tools/list": page})


def huge_page() -> None:
    linked = [tool("show", _meta={"ui": {"resourceUri": "ui://huge"}})]

    def read(request: Any) -> None:
        head = {"jsonrpc": "2.0", "id": request["id"]}
        start = json.dumps(head)[:-1] + ', "result": {"contents": [{"uri": "ui://huge", "text": "'
        sys.stdout.write(start)
        for _ in range(100):
            sys.stdout.write("x" * MEGABYTE)
        sys.stdout.write('"}]}}\n')
        sys.stdout.flush()

    serve(
        {
            "tools/list": lambda request: answer(request, {"tools": linked}),
            "resources/read": read,
        }
    )


def ask_back() -> None:
    """Asks its client for things before it answers."""

    def asking(request: Any) -> None:
        say({"jsonrpc": "2.0", "id": "a", "method": "ping"})
        say({"jsonrpc": "2.0", "id": "b", "method": "sampling/createMessage", "params": {}})
        replies = [json.loads(sys.stdin.readline()) for _ in range(2)]
        ok = replies[0].get("result") == {} and replies[1]["error"]["code"] == -32601
        answer(request, {"tools": [tool("answered" if ok else "confused")]})

    serve({"tools/list": asking})


if __name__ == "__main__":
    globals()[sys.argv[1]]()
