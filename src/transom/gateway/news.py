"""What Views tell the model: messages and context, kept for the next result and for reading.

It is the View's word, not the user's, and is marked so.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from transom.errors import Refused
from transom.gateway.adding import text_block
from transom.json_values import unmarked
from transom.protocol import wire

__all__ = ["INDEX_URI", "News", "uri_of"]

INDEX_URI: Final = "transom://views"
_MAX_MESSAGES = 20
_MAX_MESSAGE = 64 * 1024
_MAX_WAITING_BYTES = 256 * 1024


def uri_of(view_id: str) -> str:
    """The resource that tells what a View told."""
    return f"{INDEX_URI}/{view_id}"


class _Told:
    """What one View told."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.messages: deque[dict[str, Any]] = deque(maxlen=_MAX_MESSAGES)
        self.context: dict[str, Any] | None = None
        self.context_is_news = False


class News:
    """What the open Views of one client told."""

    def __init__(self) -> None:
        self._views: dict[str, _Told] = {}
        self._waiting: deque[tuple[int, list[Any]]] = deque()
        self._bytes = 0

    # --- Views -------------------------------------------------------------------------------

    def opened(self, view_id: str, title: str) -> None:
        """A View is there."""
        self._views[view_id] = _Told(title)

    def closed(self, view_id: str) -> None:
        """It is gone, and with it what it told, except for what the model has yet to see."""
        told = self._views.get(view_id)
        if told is not None and told.context_is_news:
            self._wait(self._context_blocks(view_id, told))
        self._views.pop(view_id, None)

    def message(self, view_id: str, blocks: Sequence[Any]) -> None:
        """A View sends the model a message.

        Raises:
            Refused: it is too long.
        """
        raw = unmarked(wire.encode(blocks).decode())
        if len(raw) > _MAX_MESSAGE:
            raise Refused(f"A message of {len(raw)} characters is over {_MAX_MESSAGE}")
        content = msgspec.json.decode(raw)
        self._wait([text_block(f"⟦View {view_id}⟧ sends this message:"), *content])
        told = self._views.get(view_id)
        if told is not None:
            told.messages.append({"when": _now(), "content": content})

    def context(self, view_id: str, content: Sequence[Any], structured: object) -> None:
        """A View tells the model how things stand; in place of what it told before."""
        told = self._views.get(view_id)
        if told is None:
            return
        told.context = {"when": _now(), "content": _unmarked(content)}
        if structured is not None:
            told.context["structuredContent"] = _unmarked(structured)
        told.context_is_news = True

    # --- for the next result -----------------------------------------------------------------

    def _wait(self, blocks: list[Any]) -> None:
        size = len(wire.encode(blocks))
        self._waiting.append((size, blocks))
        self._bytes += size
        while self._bytes > _MAX_WAITING_BYTES and len(self._waiting) > 1:
            self._bytes -= self._waiting.popleft()[0]

    def take(self) -> list[Any]:
        """Everything the model has not seen yet, as content blocks; it counts as seen then."""
        blocks = [block for _, waiting in self._waiting for block in waiting]
        self._waiting.clear()
        self._bytes = 0
        for view_id, told in self._views.items():
            if told.context_is_news:
                told.context_is_news = False
                blocks += self._context_blocks(view_id, told)
        return blocks

    @staticmethod
    def _context_blocks(view_id: str, told: _Told) -> list[Any]:
        context = told.context or {}
        blocks = [text_block(f"⟦View {view_id}⟧ tells you:"), *context.get("content", ())]
        if "structuredContent" in context:
            blocks.append(text_block(wire.encode(context["structuredContent"]).decode()))
        return blocks

    # --- for reading -------------------------------------------------------------------------

    def resources(self) -> list[bytes]:
        """What can be read, as it is listed."""
        if not self._views:
            return []
        every = {
            "uri": INDEX_URI,
            "name": "views",
            "title": "Open Views",
            "description": "The open Views, and what each of them told.",
            "mimeType": "application/json",
        }
        each = (
            {
                "uri": uri_of(view_id),
                "name": view_id,
                "title": f"View {view_id}",
                "description": f"What {told.title} told: its context and its last messages.",
                "mimeType": "application/json",
            }
            for view_id, told in self._views.items()
        )
        return [wire.encode(entry) for entry in (every, *each)]

    def read(self, uri: str) -> bytes | None:
        """The result of reading one of them; None when it is none."""
        if uri == INDEX_URI:
            value: object = {"views": [self._state(view_id) for view_id in self._views]}
        else:
            view_id = uri.removeprefix(f"{INDEX_URI}/")
            if view_id == uri or view_id not in self._views:
                return None
            value = self._state(view_id)
        text = wire.encode(value).decode()
        return wire.encode(
            {"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]}
        )

    def _state(self, view_id: str) -> dict[str, Any]:
        told = self._views[view_id]
        return {
            "view_id": view_id,
            "title": told.title,
            "context": told.context,
            "messages": list(told.messages),
        }


def _unmarked(value: object) -> Any:
    return msgspec.json.decode(unmarked(wire.encode(value).decode()))


def _now() -> float:
    return round(time.time(), 3)
