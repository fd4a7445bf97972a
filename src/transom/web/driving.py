"""Requests to the script that reads and uses Views for a model, and its answers.

1. Every request ends: with an answer, or because it took too long, or the page, the View or the
   caller is gone. The first answer to a request counts, if it is about the same View.
2. An answer is the View's word, whatever it says: it may have written it itself. It is an object of
   limited size and depth.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec

from transom.background import retrieve
from transom.errors import InvalidResult, RequestTimeout, TooManyRequests, ViewClosed
from transom.json_values import depth_exceeds

ANSWERED_WITHIN = 15.0
"""Seconds that a View's page has for an answer: a page settles for two, and may be slow."""
MAX_ANSWER = 256 * 1024
"""Characters of an answer."""

_MAX_DEPTH = 10
_MAX_WAITING = 16  # requests about one View


class _Waiting(msgspec.Struct, eq=False):
    key: str
    view_id: str
    answer: asyncio.Future[str]


class Driving:
    """The requests that wait for an answer. `send` sends a message to the page."""

    def __init__(
        self, send: Callable[[dict[str, Any]], object], timeout: float = ANSWERED_WITHIN
    ) -> None:
        self._send = send
        self._timeout = timeout
        self._waiting: dict[int, _Waiting] = {}
        self._next = 1

    async def request(self, key: str, view_id: str, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request about the View with this key, and wait for the answer: `Stage.drive`."""
        if sum(each.key == key for each in self._waiting.values()) >= _MAX_WAITING:
            raise TooManyRequests(f"View {view_id} has not answered what was asked before")
        number = self._next
        self._next += 1
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(retrieve)  # nobody waits for it if the caller is gone
        self._waiting[number] = _Waiting(key, view_id, answer)
        self._send({"do": "drive", "view": key, "id": number, "request": request})
        try:
            async with asyncio.timeout(self._timeout):
                text = await answer
        except TimeoutError:
            raise RequestTimeout(
                f"The page of View {view_id} did not answer within {self._timeout:g} s"
            ) from None
        finally:
            del self._waiting[number]
        return _read(view_id, text)

    def answer(self, key: str, number: int, text: str) -> None:
        """The page has answered."""
        waiting = self._waiting.get(number)
        if waiting is not None and waiting.key == key and not waiting.answer.done():
            waiting.answer.set_result(text[: MAX_ANSWER + 1])

    def give_up(self, reason: str, key: str | None = None) -> None:
        """End the requests about one View, or all of them, without an answer."""
        for waiting in self._waiting.values():
            if key in (None, waiting.key) and not waiting.answer.done():
                waiting.answer.set_exception(ViewClosed(waiting.view_id, reason))


def _read(view_id: str, text: str) -> dict[str, Any]:
    if len(text) > MAX_ANSWER:
        raise InvalidResult(f"The answer of View {view_id}'s page is too long")
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError):  # not JSON, lone surrogates, or too deep
        value = None
    if not isinstance(value, dict) or depth_exceeds(cast("object", value), _MAX_DEPTH):
        raise InvalidResult(f"The answer of View {view_id}'s page cannot be read")
    return cast("dict[str, Any]", value)
