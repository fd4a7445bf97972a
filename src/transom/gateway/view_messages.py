"""Messages and context that Views have for the model, kept for the next result and for reading.

It is the View's word, not the user's, and is marked so.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from transom.errors import Refused
from transom.json_values import members, unmarked, with_entries
from transom.protocol import wire

INDEX_URI: Final = "transom://views"
_MAX_MESSAGES = 20
_MAX_MESSAGE = 64 * 1024
_MAX_UNSEEN_BYTES = 256 * 1024


def uri_of(view_id: str) -> str:
    """The resource that has what a View wants the model to know."""
    return f"{INDEX_URI}/{view_id}"


def text_block(text: str) -> dict[str, Any]:
    """A text for the model."""
    return {"type": "text", "text": text}


def with_blocks(result: Raw | bytes, blocks: Iterable[object]) -> bytes:
    """A tool's result with more content at its end; as it came when it has no list of content."""
    added = [wire.encode(block) for block in blocks]
    try:
        content = msgspec.json.decode(members(result).get("content", b"[]"), type=list[Raw])
    except msgspec.DecodeError:
        return bytes(result)
    return with_entries(result, "content", [*content, *added])


class _Sender:
    """One View."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.messages: deque[dict[str, Any]] = deque(maxlen=_MAX_MESSAGES)
        self.context: dict[str, Any] | None = None
        self.context_unseen = False


class ViewMessages:
    """Messages and context of the open Views of one client."""

    def __init__(self) -> None:
        self._views: dict[str, _Sender] = {}
        self._unseen: deque[tuple[int, list[Any]]] = deque()
        self._unseen_bytes = 0

    # --- from Views --------------------------------------------------------------------------

    def view_opened(self, view_id: str, title: str) -> None:
        """A View is there."""
        self._views[view_id] = _Sender(title)

    def view_closed(self, view_id: str) -> None:
        """A View is gone. What the model has not seen yet is kept."""
        view = self._views.pop(view_id, None)
        if view is not None and view.context_unseen:
            self._keep(_context_blocks(view_id, view))

    def add_message(self, view_id: str, blocks: Sequence[Any]) -> None:
        """Keep a message of a View to the model.

        Raises:
            Refused: it is too long.
        """
        raw = unmarked(wire.encode(blocks).decode())
        if len(raw) > _MAX_MESSAGE:
            raise Refused(f"A message of {len(raw)} characters is over {_MAX_MESSAGE}")
        content = msgspec.json.decode(raw)
        self._keep([text_block(f"⟦View {view_id}⟧ sends this message:"), *content])
        view = self._views.get(view_id)
        if view is not None:
            view.messages.append({"when": _now(), "content": content})

    def set_context(self, view_id: str, content: Sequence[Any], structured: object) -> None:
        """Keep what a View says about its state, in place of what it said before."""
        view = self._views.get(view_id)
        if view is None:
            return
        view.context = {"when": _now(), "content": _without_marks(content)}
        if structured is not None:
            view.context["structuredContent"] = _without_marks(structured)
        view.context_unseen = True

    # --- for the next result -----------------------------------------------------------------

    def _keep(self, blocks: list[Any]) -> None:
        size = len(wire.encode(blocks))
        self._unseen.append((size, blocks))
        self._unseen_bytes += size
        while self._unseen_bytes > _MAX_UNSEEN_BYTES and len(self._unseen) > 1:
            self._unseen_bytes -= self._unseen.popleft()[0]

    def take_unseen(self) -> list[Any]:
        """Everything the model has not seen yet, as content blocks. It counts as seen then."""
        blocks = [block for _, kept in self._unseen for block in kept]
        self._unseen.clear()
        self._unseen_bytes = 0
        for view_id, view in self._views.items():
            if view.context_unseen:
                view.context_unseen = False
                blocks += _context_blocks(view_id, view)
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
                "description": f"What {view.title} told: its context and its last messages.",
                "mimeType": "application/json",
            }
            for view_id, view in self._views.items()
        )
        return [wire.encode(entry) for entry in (every, *each)]

    def read(self, uri: str) -> bytes | None:
        """The result of reading one of them; None when it is none of them."""
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
        view = self._views[view_id]
        return {
            "view_id": view_id,
            "title": view.title,
            "context": view.context,
            "messages": list(view.messages),
        }


def _context_blocks(view_id: str, view: _Sender) -> list[Any]:
    context = view.context or {}
    blocks = [text_block(f"⟦View {view_id}⟧ tells you:"), *context.get("content", ())]
    if "structuredContent" in context:
        blocks.append(text_block(wire.encode(context["structuredContent"]).decode()))
    return blocks


def _without_marks(value: object) -> Any:
    return msgspec.json.decode(unmarked(wire.encode(value).decode()))


def _now() -> float:
    return round(time.time(), 3)
