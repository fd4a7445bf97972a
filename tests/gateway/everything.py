"""What a client does with the official "everything" server: all that the server has."""

import asyncio
import json
import re
from typing import Any

from tests.gateway.raw_client import PACKAGES, RawClient

COMMAND = ["node", str(PACKAGES / "server-everything" / "dist" / "index.js"), "stdio"]
HELLO = {
    "protocolVersion": "2025-11-25",
    "clientInfo": {"name": "raw", "version": "1", "x-extra": {"kept": True}},
    "capabilities": {
        "roots": {"listChanged": True},
        "sampling": {},
        "elicitation": {"form": {}, "url": {}},
        "tasks": {
            "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
        },
        "experimental": {"x-odd": {"deep": [1, 2.50, None]}},
    },
}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "echo": [{"message": "hello"}, {}, {"message": 5}, {"message": "ü \u2028 \ud83d\ude00 \u0000"}],
    "get-annotated-message": [
        {"messageType": "error"},
        {"messageType": "success", "includeImage": True},
        {"messageType": "debug"},
    ],
    "get-env": [{}],
    "get-resource-links": [{"count": 4}, {"count": 11}],
    "get-resource-reference": [
        {"resourceType": "Text", "resourceId": 1},
        {"resourceType": "Blob", "resourceId": 2},
        {"resourceType": "Text", "resourceId": -1},
    ],
    "get-structured-content": [{"location": "Chicago"}, {"location": "Paris"}],
    "get-sum": [{"a": 1, "b": 2.5}],
    "get-tiny-image": [{}],
    "gzip-file-as-resource": [
        {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"},
        {"name": "b.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"},
        {"name": "c.gz", "data": "ftp://nowhere/"},
    ],
    "trigger-elicitation-request": [{}],
    "trigger-sampling-request": [{"prompt": "say something", "maxTokens": 7}],
    "trigger-url-elicitation": [
        {"url": "https://example.com/", "elicitationId": "e1"},
        {"url": "https://example.com/", "elicitationId": "e2", "errorPath": True},
    ],
    "get-roots-list": [{}],
    "no-such-tool": [{}],
}
SLOW = ["trigger-sampling-request-async", "trigger-elicitation-request-async"]
APART = {  # tools with a part of the script of their own
    "trigger-long-running-operation", "toggle-simulated-logging", "toggle-subscriber-updates",
    "simulate-research-query",
}  # fmt: skip
ASKED: list[tuple[str, Any]] = [
    ("ping", None),
    ("tools/list", {}),
    ("tools/list", {"cursor": "no-such-cursor"}),
    ("tools/list", {"_meta": {"x/y": [1, 1.0, 1e3, "ü"]}}),
    ("resources/list", {}),
    ("resources/list", None),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "demo://resource/static/document/features.md"}),
    ("resources/read", {"uri": "demo://resource/dynamic/text/7"}),
    ("resources/read", {"uri": "demo://resource/dynamic/blob/8", "_meta": {"x/y": 1}}),
    ("resources/read", {"uri": "demo://nothing"}),
    ("resources/read", {}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "simple-prompt"}),
    ("prompts/get", {"name": "args-prompt", "arguments": {"city": "Ulm", "state": "BW"}}),
    ("prompts/get", {"name": "args-prompt", "arguments": {}}),
    ("prompts/get", {"name": "resource-prompt",
                     "arguments": {"resourceType": "Text", "resourceId": "3"}}),
    ("prompts/get", {"name": "no-such-prompt"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "completable-prompt"},
                             "argument": {"name": "department", "value": "S"}}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "completable-prompt"},
                             "argument": {"name": "name", "value": ""},
                             "context": {"arguments": {"department": "Sales"}}}),
    ("completion/complete", {"ref": {"type": "ref/resource",
                                     "uri": "demo://resource/dynamic/text/{resourceId}"},
                             "argument": {"name": "resourceId", "value": "12"}}),
    ("logging/setLevel", {"level": "debug"}),
    ("logging/setLevel", {"level": "no-such-level"}),
    ("tools/call", {}),
    ("tools/call", {"name": 5}),
    ("tools/call", {"name": "echo", "arguments": [1]}),
    ("tools/call", {"name": "echo", "arguments": {"message": "m"}, "_meta": {"x/y": {"z": 1}}}),
    ("no/such-method", {"a": 1}),
    ("initialize", HELLO),
]  # fmt: skip
MALFORMED = [
    b"not json",
    b"\xff\xfe",
    b"{}",
    b"[]",
    b"5",
    b'[{"jsonrpc":"2.0","id":900,"method":"ping"}]',
    b'{"jsonrpc":"1.0","id":901,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":902}',
    b'{"jsonrpc":"2.0","id":903,"method":5}',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":904.5,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    b'{"jsonrpc":"2.0","id":905,"method":"ping","params":[1]}',
    b'{"jsonrpc":"2.0","id":906,"method":"ping","params":"x"}',
    b'{"jsonrpc":"2.0","id":910,"method":"ping","params":{"_meta":5}}',
    b'{"jsonrpc":"2.0","id":907,"result":{}}',
    b'{"jsonrpc":"2.0","id":908,"error":{"code":1,"message":"m"}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":909}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}',
    b'{"jsonrpc":"2.0","method":"notifications/no-such","params":{"a":1}}',
]

_MADE_UP = [  # what a server makes up each time
    (re.compile(r"\d\d?:\d\d:\d\d( [AP]M)?"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.TIME]+Z"), "DATE"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "HEX"),
    (re.compile(r"(Gathering sources|Analyzing content)\.\.\."), "STAGE"),  # it goes on by itself
]
_BLOB_AT = re.compile(r'"blob": "UmVzb3VyY2Ug[^"]*"')  # base64 of a text with the time in it


def plain(message: Any) -> str:
    """A message as text, without what the server makes up each time."""
    text = json.dumps(message, sort_keys=True, default=repr, ensure_ascii=False)
    for pattern, word in _MADE_UP:
        text = pattern.sub(word, text)
    return _BLOB_AT.sub('"blob": "TIMED"', text)


def answers() -> dict[str, Any]:
    """What the client answers the server with."""

    def task(result: dict[str, Any]) -> Any:
        def answer(params: Any) -> dict[str, Any]:
            if "task" not in params:
                return {"result": result}
            made = {"taskId": params.get("systemPrompt", "elicited")[:8], "status": "working"}
            stamp = "2026-01-01T00:00:00Z"
            return {
                "result": {
                    "task": {**made, "ttl": 1000, "createdAt": stamp, "lastUpdatedAt": stamp}
                }
            }

        return answer

    sampled = {
        "role": "assistant",
        "content": {"type": "text", "text": "something"},
        "model": "none",
        "stopReason": "endTurn",
        "_meta": {"x/sampled": True},
    }
    filled = {"action": "accept", "content": {"name": "Ada", "check": True, "integer": 3}}
    stamp = "2026-01-01T00:00:00Z"

    def state(params: Any) -> dict[str, Any]:
        done = {"taskId": params["taskId"], "status": "completed", "statusMessage": "done"}
        return {"result": {**done, "ttl": 1000, "createdAt": stamp, "lastUpdatedAt": stamp}}

    def outcome(params: Any) -> dict[str, Any]:
        return {"result": filled if params["taskId"] == "elicited" else sampled}

    def elicit(params: Any) -> dict[str, Any]:
        if params.get("mode") == "url":
            return {"result": {"action": "accept"}}
        if "interpretation" in params["requestedSchema"]["properties"]:
            return {"result": {"action": "accept", "content": {"interpretation": "technical"}}}
        return task(filled)(params)

    return {
        "roots/list": {"result": {"roots": [{"uri": "file:///srv", "name": "srv"}]}},
        "sampling/createMessage": task(sampled),
        "elicitation/create": elicit,
        "tasks/get": state,
        "tasks/result": outcome,
    }


class Script:
    """Runs it all, and keeps what was heard."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.heard: dict[str, str] = {}
        self._ids = iter(range(1, 10_000))

    async def ask(self, label: str, method: str, params: Any = None) -> dict[str, Any]:
        answer = await self.client.ask(next(self._ids), method, params)
        self.heard[label] = plain({key: answer[key] for key in answer if key != "id"})
        return answer

    async def run(self) -> dict[str, str]:
        client = self.client
        await self.ask("initialize", "initialize", HELLO)
        client.tell("notifications/initialized")
        await client.until(lambda: client.noted("notifications/message"))  # it knows the roots
        slow = [
            asyncio.ensure_future(self.ask(f"call {name}", "tools/call", _call(name, prompt="p")))
            for name in SLOW
        ]
        slow.append(asyncio.ensure_future(self.research()))
        for count, (method, params) in enumerate(ASKED):
            await self.ask(f"{count}: {method} {json.dumps(params)}", method, params)
        for name, calls in TOOLS.items():
            for arguments in calls:
                label = f"call {name} {json.dumps(arguments)}"
                await self.ask(label, "tools/call", _call(name, **arguments))
        await self.progress()
        await self.cancelling()
        await self.subscriptions()
        await self.logging()
        await asyncio.gather(*slow)
        await self.malformed()
        # Some come every few seconds, so how many there are depends on how long all of this took.
        self.heard["notes"] = "\n".join(sorted(set(map(plain, client.notes))))
        asked = ({key: each[key] for key in each if key != "id"} for each in client.asked)
        self.heard["requests"] = "\n".join(sorted(map(plain, asked)))
        return self.heard

    async def research(self) -> None:
        """A tool that runs as a task, and asks in the middle of it."""
        call = _call("simulate-research-query", topic="python", ambiguous=True)
        made = await self.ask("research", "tools/call", {**call, "task": {"ttl": 60_000}})
        task = made["result"]["task"]["taskId"]
        await self.ask("research: state", "tasks/get", {"taskId": task})
        await self.ask("research: list", "tasks/list", {})
        await self.ask("research: result", "tasks/result", {"taskId": task})
        await self.ask("research: too late", "tasks/cancel", {"taskId": task})

    async def progress(self) -> None:
        for token in ("a", 7):
            call = _call("trigger-long-running-operation", duration=0.1, steps=2)
            call["_meta"] = {"progressToken": token}
            await self.ask(f"progress {token}", "tools/call", call)
        assert len(self.client.noted("notifications/progress")) == 4

    async def cancelling(self) -> None:
        """What is cancelled gets no answer; what came after it does."""
        id = next(self._ids)
        call = _call("trigger-long-running-operation", duration=1, steps=10)
        call["_meta"] = {"progressToken": "gone"}
        cancelled = self.client.begin(id, "tools/call", call)
        progress = self.client.noted
        await self.client.until(
            lambda: any(p["progressToken"] == "gone" for p in progress("notifications/progress"))
        )
        self.client.tell("notifications/cancelled", {"requestId": id, "reason": "enough"})
        del call["_meta"]  # the server goes on with the first: its answer would come before this
        await self.ask("after cancelling", "tools/call", call)
        self.heard["cancelled"] = f"answered: {cancelled.done()}"
        # The gateway passes no progress on for what was cancelled.
        for note in self.client.notes[:]:
            if note.get("params", {}).get("progressToken") == "gone":
                self.client.notes.remove(note)

    async def subscriptions(self) -> None:
        uri = "demo://resource/dynamic/text/1"
        await self.ask("subscribe", "resources/subscribe", {"uri": uri})
        await self.ask("updates on", "tools/call", _call("toggle-subscriber-updates"))
        await self.client.until(lambda: self.client.noted("notifications/resources/updated"))
        await self.ask("updates off", "tools/call", _call("toggle-subscriber-updates"))
        await self.ask("unsubscribe", "resources/unsubscribe", {"uri": uri})

    async def logging(self) -> None:
        """Its messages are of a random level each: that they come is what can be compared."""
        await self.ask("log everything", "logging/setLevel", {"level": "debug"})
        before = len(self.client.noted("notifications/message"))
        await self.ask("logging on", "tools/call", _call("toggle-simulated-logging"))
        await self.client.until(lambda: len(self.client.noted("notifications/message")) > before)
        random = [
            note
            for note in self.client.notes[::-1]
            if str(note.get("params", {}).get("data")).endswith(("-level message", "level-message"))
        ]
        self.heard["random messages"] = str(len(random))
        self.client.notes.remove(random[0])
        await self.ask("logging off", "tools/call", _call("toggle-simulated-logging"))

    async def malformed(self) -> None:
        """Each of them alone, with a ping behind it that is answered whatever it was."""
        assert self.client.stray == []
        for line in MALFORMED:
            self.client.write(line)
            await self.client.ask(next(self._ids), "ping")
            self.heard[f"malformed {line!r}"] = plain(self.client.stray)
            self.client.stray.clear()


def _call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}
