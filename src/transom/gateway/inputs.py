"""Asking a client for input while it waits for an answer: elicitation, sampling, roots.

1. A client of before 2026-07-28 is sent a request.
2. Any other is asked in the answer to its own request: a result that requires input. It calls
   again with the same params and its answers. Meanwhile the call waits here, for a limited time;
   questions that come up in the meantime go into the next answer.
3. An answer is used once, for the call that asked for it. A call with other params, or with an
   unknown state, starts over.
4. Servers of before 2026-07-28 do not say for which request they ask. The newest request that they
   work on is used, if its client can answer this. Without such a request, nobody is asked.
5. The user's approval of a View's tool is such an input too, if the gateway is to ask for it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final

import msgspec
from msgspec import Raw

from transom.connections.upstream import InputRequired
from transom.errors import METHOD_NOT_FOUND, SERVER_ERROR, ProtocolError
from transom.gateway.client import Client
from transom.gateway.eras import ClientRequest
from transom.host.asking.policy import Allow, AllowAlways, ApprovalRequest, Decision, Deny
from transom.json_values import Json, member, members
from transom.protocol import wire
from transom.recent import Recent

_CAPABILITIES: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
_PATIENCE = 600.0  # seconds that a call waits for its client to call again
_MAX_WAITING = 256
_MAX_QUESTIONS = 16  # of one call, at a time


class _Call:
    """A running request whose client is asked in answers, over one or more rounds of input."""

    def __init__(
        self,
        request: ClientRequest,
        work: Callable[[], Awaitable[bytes]],
        current: ContextVar[_Call | None],
    ) -> None:
        self.request = request
        self.can = request.capabilities
        self.questions: dict[str, tuple[dict[str, Any], asyncio.Future[bytes]]] = {}
        self.asked = asyncio.Event()
        self.expiry: asyncio.TimerHandle | None = None
        current.set(self)  # for all code that works on this request
        self.work = asyncio.ensure_future(work())

    def answer(self, request: ClientRequest) -> None:
        """Take the answers of a client that calls again."""
        for key, given in members(request.members.get("inputResponses")).items():
            asked = self.questions.pop(key, None)
            if asked is not None and not asked[1].done():
                asked[1].set_result(bytes(given))

    async def ask(self, method: str, params: Raw | bytes | None) -> bytes:
        """Ask for one input with the next answer."""
        if len(self.questions) >= _MAX_QUESTIONS:
            raise ProtocolError(
                SERVER_ERROR, f"The client is asked {_MAX_QUESTIONS} things already"
            )
        key = f"transom-{secrets.token_hex(4)}"
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        question = {"method": method, "params": Raw(bytes(params or b"{}"))}
        self.questions[key] = question, answer
        self.asked.set()
        try:
            return await answer
        finally:
            self.questions.pop(key, None)


class Inputs:
    """Asks the client of a proxy, in the form of its version."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._live: list[_Call] = []
        self._waiting: Recent[str, _Call] = Recent(_MAX_WAITING, self._drop)
        self._current: ContextVar[_Call | None] = ContextVar("call", default=None)

    # --- rounds of input ---------------------------------------------------------------------

    async def run(self, request: ClientRequest, work: Callable[[], Awaitable[bytes]]) -> bytes:
        """Work on a request that may require input; its result, or one that does."""
        call = self._waiting_for(request)
        if call is None:
            call = _Call(request, work, self._current)
            self._live.append(call)
        asked = asyncio.ensure_future(call.asked.wait())
        try:
            if not call.questions:
                await asyncio.wait([call.work, asked], return_when=asyncio.FIRST_COMPLETED)
            if not call.work.done():
                return self._wait(call)
            self._drop(call)
            return call.work.result()
        except asyncio.CancelledError:
            self._drop(call)
            raise
        finally:
            asked.cancel()

    def _waiting_for(self, request: ClientRequest) -> _Call | None:
        """The waiting call that this request continues."""
        state = request.text("requestState")
        call = None if state is None else self._waiting.pop(state, None)
        if call is None:
            return None
        if call.expiry is not None:
            call.expiry.cancel()
        if _asked(call.request) != _asked(request):
            self._drop(call)
            return None
        call.asked.clear()
        call.answer(request)
        return call

    def _wait(self, call: _Call) -> bytes:
        """Hold a call until its client calls again; returns the answer to send now."""
        state = f"transom.{secrets.token_urlsafe(16)}"

        def expire() -> None:
            if self._waiting.pop(state, None) is not None:
                self._drop(call)

        call.expiry = asyncio.get_running_loop().call_later(_PATIENCE, expire)
        self._waiting[state] = call
        questions = {key: question for key, (question, _) in call.questions.items()}
        return wire.encode(
            {"resultType": "input_required", "inputRequests": questions, "requestState": state}
        )

    def _drop(self, call: _Call) -> None:
        if call.expiry is not None:
            call.expiry.cancel()
        call.work.cancel()
        for _, answer in call.questions.values():
            if not answer.done():
                text = "The client does not wait for an answer any more"
                answer.set_exception(ProtocolError(SERVER_ERROR, text))
                answer.exception()  # nobody may be awaiting it; asyncio would warn
        if call in self._live:
            self._live.remove(call)

    def close(self) -> None:
        """Cancel the waiting calls."""
        self._waiting.clear()
        for call in list(self._live):
            self._drop(call)

    # --- asking ------------------------------------------------------------------------------

    def _call_for(self, capability: str, server: str | None) -> _Call | None:
        current = self._current.get()
        if current is not None and current in self._live:  # else it has ended
            return current if capability in current.can else None
        found = (each for each in reversed(self._live) if server in each.request.servers)
        return next((each for each in found if capability in each.can), None)

    def possible(self, capability: str, server: str | None = None) -> bool:
        """Whether the client of the current request, or of one a server works on, can be asked."""
        if self._call_for(capability, server) is not None:
            return True
        identity = self._client.identity
        return identity.takes_requests and identity.supports(capability)

    async def ask(
        self, method: str, params: Raw | bytes | None, server: str | None = None
    ) -> bytes:
        """Ask the client; its answer as JSON.

        Raises:
            ProtocolError: it cannot be asked, or answered with an error.
        """
        call = self._call_for(_CAPABILITIES.get(method, ""), server)
        if call is not None:
            return await call.ask(method, params)
        if not self._client.identity.takes_requests:
            text = f"No request is being worked on whose client answers {method[:200]}"
            raise ProtocolError(METHOD_NOT_FOUND, text)
        return bytes(await self._client.send_request(method, params))

    async def answer(self, result: bytes, server: str) -> dict[str, Any]:
        """The `inputResponses` for a server's result that requires input.

        Raises:
            InputRequired: the client cannot answer all of it.
        """
        wanted = members(members(result).get("inputRequests"))
        methods = {key: member(each, "method") for key, each in wanted.items()}
        if len(wanted) > _MAX_QUESTIONS or not all(
            isinstance(method, str) and self.possible(_CAPABILITIES.get(method, ""), server)
            for method in methods.values()
        ):
            raise InputRequired(result)
        asking = (
            self.ask(methods[key], members(each).get("params"), server)
            for key, each in wanted.items()
        )
        return dict(zip(wanted, map(Raw, await asyncio.gather(*asking)), strict=True))

    # --- approvals ---------------------------------------------------------------------------

    def can_approve(self, request: ApprovalRequest) -> bool:
        """Whether the client can be asked for the user's approval."""
        # Once a server's call is done, its result must not depend on whether the client calls
        # again to answer a question about the View.
        too_late = request.opens and self._current.get() in self._live
        return not too_late and self.possible("elicitation")

    async def approve(self, request: ApprovalRequest) -> Decision:
        """Ask the user through the client."""
        if (refusal := request.unshowable()) is not None:
            return refusal
        question = {
            "mode": "form",
            "message": request.question(),
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "always": {
                        "type": "boolean",
                        "title": "Do not ask again for this tool"
                        if request.opens
                        else "Do not ask again while this View is open",
                        "default": False,
                    }
                },
            },
        }
        try:
            raw = await self.ask("elicitation/create", wire.encode(question))
        except ProtocolError as error:
            return Deny(f"The user could not be asked: {error}")
        return _decision(raw)


def _asked(request: ClientRequest) -> tuple[str, dict[str, Json]]:
    """The part of the params that must be the same when a client calls again."""
    own = ("_meta", "inputResponses", "requestState")
    params = {key: member(value) for key, value in request.members.items() if key not in own}
    return request.method, params


class _Answer(msgspec.Struct):
    action: str
    content: dict[str, Any] | None = None


def _decision(raw: bytes) -> Decision:
    try:
        answer = msgspec.json.decode(raw, type=_Answer)
    except msgspec.DecodeError:
        return Deny("The client's answer cannot be read")
    if answer.action != "accept":
        return Deny("The user said no")
    return AllowAlways() if (answer.content or {}).get("always") is True else Allow()
