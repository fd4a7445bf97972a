"""What servers ask the user (elicitation), in both versions of MCP.

1. The host's handler `on_elicit` asks. Without one, servers are told that the user cannot be asked.
   A page that shows Views asks on a card, unless the host has a handler of its own.
2. Up to 2025-11-25 a server sends a request while it works on a call. Since 2026-07-28 its answer
   to the call says what it needs, and the call is repeated with it.
3. Fields that an accepted answer leaves out get the defaults of the schema.
4. The time limits of the server's calls do not run while the user is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Raw

from transom.connections.connection import ServerListener
from transom.connections.upstream import InputRequired
from transom.errors import INTERNAL_ERROR, INVALID_PARAMS, ProtocolError
from transom.events import Slot, is_awaitable
from transom.host.asking.elicit_form import ElicitField, read_form
from transom.host.asking.links import link_refusal
from transom.json_values import as_object, clean, member, members
from transom.protocol import wire
from transom.types import Wire

_METHOD: Final = "elicitation/create"
_MAX_BYTES: Final = 256 * 1024
_MAX_MESSAGE: Final = 10_000
_MAX_QUESTIONS: Final = 20  # in one answer of a server


class ElicitRequest(Wire, frozen=True):
    """What a server asks the user for: the fields of a form, or to visit a page."""

    message: str = ""
    mode: Literal["form", "url"] = "form"
    requested_schema: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """The JSON Schema of a form: an object with plain values."""
    url: str | None = None
    """The page. The server chose it: show it to the user before you open it."""

    @property
    def fields(self) -> tuple[ElicitField, ...]:
        """The fields of the form, read from its schema; texts are cleaned and cut."""
        return read_form(self.requested_schema)


class ElicitListener(ServerListener):
    """The listener of one server's connection: has its questions answered.

    Args:
        server: its name.
        handler: the host's `on_elicit`.
        asking: entered while the user is asked.
        lost: called with the reason when the server goes away.
        on_answer: called with what the user did: `accept`, `decline` or `cancel`.
        on_error: called with an error of the handler.
    """

    def __init__(
        self,
        server: str,
        handler: Slot,
        *,
        asking: Callable[[], AbstractContextManager[None]],
        lost: Callable[[str], None],
        on_answer: Callable[[str], object],
        on_error: Callable[[BaseException], object],
    ) -> None:
        self._server = server
        self._handler = handler
        self._asking = asking
        self._lost = lost
        self._on_answer = on_answer
        self._on_error = on_error

    def on_lost(self, reason: str) -> None:
        """See `ServerListener`."""
        self._lost(reason)

    @property
    def client_capabilities(self) -> Mapping[str, Any]:
        """See `ServerListener`."""
        return {"elicitation": {"form": {}, "url": {}}} if self._handler else {}

    def on_request(self, request: wire.Request) -> bytes | Awaitable[bytes | Raw]:
        """See `ServerListener`."""
        if request.method == _METHOD and self._handler:
            return self._answer(request.params)
        return super().on_request(request)

    async def answer_input(self, result: bytes) -> dict[str, Any]:
        """See `ServerListener`."""
        questions = members(members(result).get("inputRequests"))
        known = all(member(each, "method") == _METHOD for each in questions.values())
        if not self._handler or not known or len(questions) > _MAX_QUESTIONS:
            raise InputRequired(result)
        return {
            key: Raw(await self._answer(members(each).get("params")))
            for key, each in questions.items()
        }

    async def _answer(self, params: Raw | bytes | None) -> bytes:
        given = bytes(params or b"{}")
        if len(given) > _MAX_BYTES:
            raise ProtocolError(INVALID_PARAMS, f"More than {_MAX_BYTES} bytes to ask the user")
        try:
            request = msgspec.json.decode(given, type=ElicitRequest)
            _check(request)
        except (msgspec.DecodeError, ValueError) as error:
            raise ProtocolError(INVALID_PARAMS, f"Invalid {_METHOD}: {error}") from None
        request = msgspec.structs.replace(request, message=clean(request.message, _MAX_MESSAGE))
        try:
            with self._asking():
                answer: object = self._handler.ask(self._server, request)
                answer = await answer if is_awaitable(answer) else answer
        except Exception as error:  # noqa: BLE001 - the server only learns that it failed
            self._on_error(error)
            raise ProtocolError(INTERNAL_ERROR, "The user could not be asked") from None
        result = _result(request, answer)
        self._on_answer(result["action"])
        return wire.encode(result)


def _check(request: ElicitRequest) -> None:
    """Raise a ValueError if a user cannot be asked this."""
    if request.mode == "form":
        read_form(request.requested_schema)
        return
    url = request.url or ""
    if (refusal := link_refusal(url)) is not None:
        raise ValueError(refusal)
    if url.lower().startswith("mailto:"):
        raise ValueError("the link is no page")


def _result(request: ElicitRequest, answer: object) -> dict[str, Any]:
    if answer is True or isinstance(answer, Mapping):
        given = cast("Mapping[str, Any]", {} if answer is True else answer)
        if request.mode == "url":
            return {"action": "accept"}
        content = {**_defaults(request.requested_schema), **given}
        filled = {name: value for name, value in content.items() if value is not None}
        return {"action": "accept", "content": filled}
    return {"action": "decline" if answer is False else "cancel"}


def _defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = as_object(schema.get("properties"))
    return {
        name: as_object(each)["default"]
        for name, each in properties.items()
        if "default" in as_object(each)
    }
