"""Printing the events of `transom open` for a person to read."""

from __future__ import annotations

import re
from typing import Any

from rich.console import Console
from rich.text import Text

__all__ = ["Event", "EventPrinter"]

Event = dict[str, Any]
"""A step of `transom open`; `event` says which."""

_LABEL = 9
_MAX_SHOWN = 1000
# Views write this: nothing in it may move the cursor, change colours or turn text around.
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class EventPrinter:
    """Prints each event as it comes: a word in the margin, and what there is to say."""

    def __init__(self, console: Console | None = None) -> None:
        self._out = console or Console(highlight=False)

    def print(self, event: Event) -> None:
        """Print one event."""
        getattr(self, f"_{event['event']}")(event)

    def _lines(self, label: str, style: str, *lines: str | Text) -> None:
        for number, line in enumerate(lines):
            margin = Text(f"{label if not number else '':<{_LABEL}}", style=f"bold {style}")
            body = line if isinstance(line, Text) else Text(_safe(line))
            self._out.print(margin + body, soft_wrap=True)

    def _opened(self, event: Event) -> None:
        app = f"{event['app']['name']} {event['app']['version']}".strip() or "A View"
        self._lines("Opened", "green", Text.assemble(_safe(app), (f"  {event['view']}", "dim")))
        self._result(event["result"])

    def _tools(self, event: Event) -> None:
        tools = event["tools"]
        if not tools:
            self._lines("Tools", "blue", "The View has no tools of its own.")
            return
        signatures = [_safe(f"{tool['name']}({_arguments(tool)})") for tool in tools]
        width = min(max(map(len, signatures)), 40)
        lines: list[Text] = []
        for tool, signature in zip(tools, signatures, strict=True):
            summary = _safe(str(tool.get("description", ""))).partition("\n")[0][:100]
            lines.append(Text.assemble(f"{signature:<{width}}", (f"  {summary}", "dim")))
        self._lines("Tools", "blue", *lines)

    def _call(self, event: Event) -> None:
        if "error" in event:
            text = f"{event['error']['message']} ({event['error']['code']})"
            self._lines("Failed", "red", event["tool"], text)
            return
        self._lines("Called", "green", event["tool"])
        self._result(event["result"])

    def _result(self, result: dict[str, Any]) -> None:
        text = "\n".join(_block(block) for block in result["content"])
        if len(text) > _MAX_SHOWN:
            text = f"{text[:_MAX_SHOWN]}… ({len(text)} characters)"
        label, style = ("Error", "red") if result.get("isError") else ("", "default")
        self._lines(label, style, *(text.splitlines() or ["(no text)"]))

    def _violation(self, event: Event) -> None:
        self._lines("Blocked", "yellow", f"{event['directive']}: {event['blocked']}")

    def _closed(self, event: Event) -> None:
        self._lines("Closed", "dim", f"{event['view']}: {event['reason']}")


def _arguments(tool: dict[str, Any]) -> str:
    schema = tool["inputSchema"]
    required = schema.get("required", [])
    names = schema.get("properties", {})
    return ", ".join(name if name in required else f"{name}?" for name in names)


def _block(block: dict[str, Any]) -> str:
    return block["text"] if block["type"] == "text" else f"<{block['type']}>"


def _safe(text: str) -> str:
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text)
