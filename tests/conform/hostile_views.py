"""Views that attack whoever measures them: what each does is data.

Each is reported under the requirement that it names, and the run ends.
"""

import asyncio
import json
from typing import Any

import msgspec

from transom.channel import Channel, memory_pair
from transom.errors import ChannelClosed
from transom.host.views.ui_resource import UIResource

_INTRODUCTION = {
    "appInfo": {"name": "hostile", "version": "1"},
    "appCapabilities": {"tools": {"listChanged": True}},
    "protocolVersion": "2026-01-26",
}
_LIE = "\x1b[2J\u202e all requirements hold " * 100_000
_NOTHING = "nothing"


class Attack(msgspec.Struct, frozen=True):
    name: str
    expect: str
    """A requirement under which it is reported."""
    flood: bytes = b""
    """What it sends from the beginning, without end."""
    introduces: bool = True
    answers: dict[str, Any] = {}
    """By method, what its answer has in place of what is right."""
    sends: list[Any] = []
    """What it sends after the handshake."""
    leaves_at: str = ""


def _tool(**members: Any) -> dict[str, Any]:
    tool = {"name": "a", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    return {"tools/list": {"result": {"tools": [{**tool, **members}]}}}


def _nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


_MATCHED = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
_ABROAD = {"type": "object", "$ref": "http://127.0.0.1:9/schema.json"}
_ROUND = {"type": "object", "$ref": "#"}

ATTACKS = [
    Attack("never_speaks", "handshake-first", introduces=False),
    Attack("floods_with_what_is_no_json", "wire-bounded", flood=b"no JSON"),
    Attack("floods_with_nested_arrays", "wire-bounded", flood=b"[" * 10_000),
    Attack(
        "floods_with_notifications",
        "wire-bounded",
        flood=b'{"jsonrpc":"2.0","method":"notifications/message"}',
    ),
    Attack(
        "floods_with_handshakes",
        "wire-bounded",
        flood=b'{"jsonrpc":"2.0","id":1,"method":"ui/initialize","params":[]}',
    ),
    Attack("is_silent_after_the_handshake", "data-partial", answers={"*": _NOTHING}),
    Attack("leaves_while_it_is_asked", "teardown-answered", leaves_at="tools/list"),
    Attack("lies_at_length", "wire-ping", answers={"ping": {"result": {"said": _LIE}}}),
    Attack(
        "answers_with_half_a_character",
        "wire-envelope",
        answers={"*": {"result": {"said": "\ud800"}}},
    ),
    Attack(
        "lies_in_errors",
        "tools-list",
        answers={"tools/list": {"error": {"code": -1, "message": _LIE}}},
    ),
    Attack(
        "answers_what_was_not_asked",
        "wire-answers-once",
        sends=[{"id": id, "result": {}} for id in ("conform-early", 2**62, "x" * 100_000)],
    ),
    Attack(
        "has_odd_ids",
        "wire-envelope",
        sends=[{"id": id, "method": "ping"} for id in (None, 1.5, [], True, {"a": 1})],
    ),
    Attack(
        "repeats_its_ids",
        "wire-request-ids",
        sends=[{"id": "x" * 100_000, "method": "tools/call", "params": {}}] * 100,
    ),
    Attack(
        "has_impossible_sizes",
        "size-valid",
        sends=[
            {"method": "ui/notifications/size-changed", "params": {"width": width}}
            for width in (1e308, -1, "1", True, [], 2**70)
        ],
    ),
    Attack(
        "lists_tools_without_end",
        "tools-list",
        answers={"tools/list": {"result": {"tools": [], "nextCursor": _LIE[:50]}}},
    ),
    Attack(
        "lists_too_many_tools",
        "tools-valid",
        answers={"tools/list": {"result": {"tools": [{"name": _LIE[:50]}, 1, None] * 10_000}}},
    ),
    Attack("has_a_schema_that_is_none", "tools-valid", answers=_tool(inputSchema={"type": [_LIE]})),
    Attack("has_a_schema_from_elsewhere", "tools-unknown", answers=_tool(inputSchema=_ABROAD)),
    Attack("has_a_schema_in_a_circle", "tools-result", answers=_tool(inputSchema=_ROUND)),
    Attack("has_a_deep_schema", "tools-unknown", answers=_tool(inputSchema=_nested(400))),
    Attack("has_a_slow_pattern", "tools-result", answers=_tool(inputSchema=_MATCHED)),
    Attack(
        "has_an_output_schema_from_elsewhere", "tools-result", answers=_tool(outputSchema=_ABROAD)
    ),
    Attack(
        "returns_what_is_no_result",
        "tools-unknown",
        answers={**_tool(), "tools/call": {"result": {"content": {"length": _LIE}}}},
    ),
]


class HostileViews:
    """A renderer whose Views attack."""

    def __init__(self, attack: Attack) -> None:
        self._attack = attack
        self._running: list[asyncio.Task[None]] = []

    async def open(self, resource: UIResource) -> Channel:
        ours, theirs = memory_pair()
        self._running.append(asyncio.create_task(self._run(theirs)))
        return ours

    async def _run(self, channel: Channel) -> None:
        try:
            while self._attack.flood:
                await channel.send(self._attack.flood)
            if self._attack.introduces:
                await self._talk(channel)
        except ChannelClosed:
            return

    async def _talk(self, channel: Channel) -> None:
        attack = self._attack
        await _send(channel, {"id": 0, "method": "ui/initialize", "params": _INTRODUCTION})
        await channel.receive()
        await _send(channel, {"method": "ui/notifications/initialized"})
        for message in attack.sends:
            await _send(channel, message)
        while True:
            read = json.loads(await channel.receive())
            if not isinstance(read, dict) or not {"id", "method"} <= read.keys():
                continue
            if read["method"] == attack.leaves_at:
                await channel.aclose()
                return
            answer = attack.answers.get(read["method"], attack.answers.get("*"))
            if answer != _NOTHING:
                await _send(channel, {"id": read["id"], **(answer or {"result": {}})})


async def _send(channel: Channel, message: dict[str, Any]) -> None:
    await channel.send(json.dumps({"jsonrpc": "2.0", **message}).encode())


PAGE = """<!doctype html>
<html><head><script data-transom></script></head>
<script type="module">
import { App } from "transom";
const app = new App({ name: "hostile", version: "1" });
const flood = () => {
  for (let i = 0; i < 100; i += 1) parent.postMessage({ jsonrpc: "2.0", method: "conform/x" }, "*");
};
HOSTILE
</script></html>"""
HOSTILE_PAGES = {
    "hangs_before_it_starts": ("while (true);", "handshake-first"),
    "hangs": ("app.ontoolresult = () => { while (true); }; await app.connect();", "data-result"),
    "leaves": ("await app.connect(); location.href = 'about:blank';", "teardown-answered"),
    "asks_its_user": ("alert(1); confirm(2); await app.connect(); throw Error(3);", "page-errors"),
    "floods": ("await app.connect(); setInterval(flood, 10);", "wire-bounded"),
}
"""By name: its script, and a requirement under which it is reported."""
