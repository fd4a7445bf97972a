"""What Views send to the model: kept for the next result, and as resources of the gateway.

1. A message of a View is added to the next result of any tool, once. So is its context, of which
   only the last one counts.
2. The last messages of each open View, and its context, can be read as resources.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from transom.errors import Refused
from transom.json_values import members, with_entries, without_marks
from transom.protocol import wire

INDEX_URI: Final = "transom://views"
INDEX: Final = wire.encode(
    {
        "uri": INDEX_URI,
        "name": "views",
        "title": "Open Views",
        "description": "The open Views, and what each of them sent.",
        "mimeType": "application/json",
    }
)
_MAX_MESSAGES = 20
_MAX_MESSAGE = 64 * 1024
_MAX_UNSEEN_BYTES = 256 * 1024


def uri_of(view_id: str) -> str:
    """The resource with what a View sent to the model."""
    return f"{INDEX_URI}/{view_id}"


def text_block(text: str) -> dict[str, Any]:
    """A text for the model."""
    return {"type": "text", "text": text}


def with_blocks(result: Raw | bytes, blocks: Sequence[object]) -> bytes:
    """A tool's result with more content at its end; unchanged if it has no list of content."""
    if not blocks:
        return bytes(result)
    try:
        content = msgspec.json.decode(members(result).get("content", b"[]"), type=list[Raw])
    except msgspec.DecodeError:
        return bytes(result)
    return with_entries(result, "content", [*content, *map(wire.encode, blocks)])


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

    def view_opened(self, view_id: str, title: str) -> _Sender:
        """A View has opened, or sends something while it opens."""
        view = self._views.setdefault(view_id, _Sender(title))
        view.title = title
        return view

    def view_closed(self, view_id: str) -> None:
        """A View has closed, or could not be opened. What the model has not seen yet is kept."""
        view = self._views.pop(view_id, None)
        if view is not None and view.context_unseen:
            self._keep(_context_blocks(view_id, view))

    def add_message(self, view_id: str, title: str, blocks: Sequence[Any]) -> None:
        """Keep a message of a View to the model."""
        raw = without_marks(wire.encode(blocks))
        if len(raw) > _MAX_MESSAGE:
            raise Refused(f"A message of {len(raw)} bytes is over {_MAX_MESSAGE}")
        content = msgspec.json.decode(raw)
        self._keep([text_block(f"⟦View {view_id}⟧ sends this message:"), *content])
        sent = {"when": _now(), "content": content}
        self.view_opened(view_id, title).messages.append(sent)

    def set_context(
        self, view_id: str, title: str, content: Sequence[Any], structured: object
    ) -> None:
        """Store a View's context in place of its previous one."""
        view = self.view_opened(view_id, title)
        view.context = {"when": _now(), "content": unmarked(content)}
        if structured is not None:
            view.context["structuredContent"] = unmarked(structured)
        view.context_unseen = True

    # --- for the next result -----------------------------------------------------------------

    def _keep(self, blocks: list[Any]) -> None:
        size = len(wire.encode(blocks))
        self._unseen.append((size, blocks))
        self._unseen_bytes += size
        while self._unseen_bytes > _MAX_UNSEEN_BYTES and len(self._unseen) > 1:
            self._unseen_bytes -= self._unseen.popleft()[0]

    def take_unseen(self) -> list[Any]:
        """Everything the model has not seen yet, as content blocks; marks it as seen."""
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
        """The resources, as listed."""
        if not self._views:
            return []
        each = (
            {
                "uri": uri_of(view_id),
                "name": view_id,
                "title": f"View {view_id}",
                "description": f"What {view.title} sent: its context and its last messages.",
                "mimeType": "application/json",
            }
            for view_id, view in self._views.items()
        )
        return [INDEX, *(wire.encode(entry) for entry in each)]

    def read(self, view_id: str | None, names: Callable[[str], str]) -> object:
        """What a View, or all of them, sent to the model; None if there is no such View.

        `names` gives the client's name for each.
        """
        if view_id is None:
            return {"views": [self._state(each, names) for each in self._views]}
        return self._state(view_id, names) if view_id in self._views else None

    def _state(self, view_id: str, names: Callable[[str], str]) -> dict[str, Any]:
        view = self._views[view_id]
        return {
            "view_id": names(view_id),
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


def unmarked(value: object) -> Any:
    """A value without the host's brackets in its texts."""
    return msgspec.json.decode(without_marks(wire.encode(value)))


def _now() -> float:
    return round(time.time(), 3)
