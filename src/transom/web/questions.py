"""Questions to the user on the Stage's page. Each is answered or given up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from transom.errors import Refused, TransomError

__all__ = ["Questions"]

_MAX_QUESTIONS = 20  # cards a user can be expected to look through


class _Question(msgspec.Struct, eq=False):
    view: str
    kind: str
    answer: asyncio.Future[bool | str]


class Questions:
    """The questions that are open.

    Args:
        send: sends a message to the page.
    """

    def __init__(self, send: Callable[[dict[str, Any]], object]) -> None:
        self._send = send
        self._open: dict[int, _Question] = {}
        self._next = 1

    async def ask(self, kind: str, view_id: str, **details: Any) -> bool | str:
        """Ask, and wait for the answer.

        Raises:
            Refused: the same question about that View is open already, or too many are.
            TransomError: it was given up.
        """
        repeated = any(q.view == view_id and q.kind == kind for q in self._open.values())
        if (repeated and kind != "approve") or len(self._open) >= _MAX_QUESTIONS:
            raise Refused("The user has not answered what was asked before")
        number = self._next
        self._next += 1
        answer = asyncio.get_running_loop().create_future()
        self._open[number] = _Question(view_id, kind, answer)
        self._send({"do": "ask", "id": number, "kind": kind, "view": view_id, **details})
        try:
            return await answer
        except (asyncio.CancelledError, TransomError):
            self._send({"do": "unask", "id": number})
            raise
        finally:
            del self._open[number]

    def answer(self, number: int, value: bool | str) -> None:
        """The user has answered; the first answer counts."""
        question = self._open.get(number)
        if question is not None and not question.answer.done():
            question.answer.set_result(value)

    def give_up(self, reason: str, view_id: str | None = None) -> None:
        """End the questions about one View, or all of them, without an answer."""
        for question in self._open.values():
            if view_id in (None, question.view) and not question.answer.done():
                question.answer.set_exception(TransomError(reason))
