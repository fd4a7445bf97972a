"""What a page shows its user beside the Views: questions, and cards of Views that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from transom.errors import Refused, TransomError
from transom.json_values import clean
from transom.web.mounted_views import ViewOwner

MAX_REASON = 200
"""Characters of the reason why a View is gone that are shown."""

BY_USER = "the user closed it"
"""Why a View was closed."""

MAX_TITLE = 60
"""Characters of what a View or a client calls itself that are shown."""

_MAX_QUESTIONS = 20  # cards that a user can be expected to read
# Of one kind, about one View or of one server; a kind that is not here is asked one at a time.
_MAX_ALIKE = {"approve": _MAX_QUESTIONS, "elicit": 5}
_MAX_GONE = 20
_MAX_CLOSED = 8  # shown at a time
_MAX_ABOUT = 120


Answer = bool | str | dict[str, Any]
"""What the user answers; a form is answered with its fields."""


class _Question(msgspec.Struct, eq=False):
    view: str
    kind: str
    server: str
    answer: asyncio.Future[Answer]


class Questions:
    """The open questions. `send` sends a message to the page."""

    def __init__(self, send: Callable[[dict[str, Any]], object]) -> None:
        self._send = send
        self._open: dict[int, _Question] = {}
        self._next = 1

    async def ask(self, kind: str, view_id: str, **details: Any) -> Answer:
        """Ask, and wait for the answer, as `Stage.ask` does."""
        server: str = details.get("server", "")
        asked = (kind, view_id, server)
        repeated = sum((q.kind, q.view, q.server) == asked for q in self._open.values())
        if repeated >= _MAX_ALIKE.get(kind, 1) or len(self._open) >= _MAX_QUESTIONS:
            raise Refused("The user has not answered what was asked before")
        number = self._next
        self._next += 1
        answer = asyncio.get_running_loop().create_future()
        self._open[number] = _Question(view_id, kind, server, answer)
        self._send({"do": "ask", "id": number, "kind": kind, "view": view_id, **details})
        try:
            return await answer
        except (asyncio.CancelledError, TransomError):
            self._send({"do": "unask", "id": number})
            raise
        finally:
            del self._open[number]

    def answer(self, number: int, value: Answer) -> None:
        """The user has answered; the first answer counts."""
        question = self._open.get(number)
        if question is not None and not question.answer.done():
            question.answer.set_result(value)

    def give_up(self, reason: str, view_id: str | None = None) -> None:
        """End the questions about one View, or all of them, without an answer."""
        for question in self._open.values():
            if view_id in (None, question.view) and not question.answer.done():
                question.answer.set_exception(TransomError(reason))


class GoneView(msgspec.Struct, frozen=True, tag_field="do", tag="gone"):
    """A closed or failed View: its key, its id, its owner, and the reason."""

    view: str
    shown: str
    server: str
    client: str
    reason: str
    failed: bool = True
    """Whether it failed, rather than being closed."""
    about: str = ""
    """The call that it was opened for."""
    title: str = ""
    """What it calls itself, or its tool."""


class GoneViews:
    """The cards of closed and failed Views, the oldest first.

    Each is shown, on the next page as well, until its View is reopened or the user closes the card.
    If there are too many, the oldest are removed.
    """

    def __init__(self, send: Callable[[dict[str, Any] | GoneView], object]) -> None:
        self._send = send
        self._shown: dict[str, tuple[GoneView, ViewOwner | None]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._shown

    def get(self, key: str) -> GoneView | None:
        """The card of a View."""
        return self._shown[key][0] if key in self._shown else None

    def owner(self, key: str) -> ViewOwner | None:
        """Who showed the View."""
        return self._shown[key][1]

    def owned_by(self, owner: ViewOwner) -> list[str]:
        """The Views that `owner` had shown."""
        return [key for key, (_, each) in self._shown.items() if each is owner]

    def show(self, gone: GoneView, owner: ViewOwner | None) -> None:
        """Show a card, in place of an earlier one of the same View."""
        gone = msgspec.structs.replace(
            gone,
            reason=clean(gone.reason, MAX_REASON),
            about=clean(gone.about, _MAX_ABOUT),
            title=clean(gone.title, MAX_TITLE),
        )
        self.discard(gone.view)
        self._shown[gone.view] = gone, owner
        self._send(gone)
        closed = [key for key, (each, _) in self._shown.items() if not each.failed]
        for key in [*closed[:-_MAX_CLOSED], *list(self._shown)[:-_MAX_GONE]]:
            self.remove(key)

    def show_again(self) -> None:
        """Show all of them on a new page."""
        for gone, _ in self._shown.values():
            self._send(gone)

    def discard(self, key: str) -> None:
        """Forget a card that the View itself, or another card, is about to replace on the page."""
        self._shown.pop(key, None)

    def remove(self, key: str) -> None:
        """Remove a card, if there is one."""
        if self._shown.pop(key, None) is not None:
            self._send({"do": "unmount", "view": key})
