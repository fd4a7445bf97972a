"""What several servers ask one client: each under an id of its own, answered where it came from.

Servers count their requests from the same numbers, and use those numbers for progress as well. The
client sees ids and progress tokens that are the gateway's.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable

from msgspec import Raw

from transom.errors import SERVER_ERROR
from transom.gateway.adding import member, members
from transom.gateway.leg import Leg
from transom.protocol import wire

__all__ = ["Asking"]

_MAX_WAITING = 1000  # requests of one server that the client has not answered


class _Question:
    __slots__ = ("id", "leg", "token")

    def __init__(self, leg: Leg, id: wire.RequestId, token: Raw | None) -> None:
        self.leg = leg
        self.id = id
        self.token = token


class Asking:
    """The requests of all servers that a client has yet to answer.

    Args:
        post: sends to the client.
    """

    def __init__(self, post: Callable[[bytes], object]) -> None:
        self._post = post
        self._numbers = itertools.count(1)
        self._prefix = f"transom-{secrets.token_hex(4)}-"
        self._waiting: dict[wire.RequestId, _Question] = {}

    def asked(self, leg: Leg, request: wire.Request) -> None:
        """A server asks."""
        if sum(each.leg is leg for each in self._waiting.values()) >= _MAX_WAITING:
            text = f"{_MAX_WAITING} requests wait for the client already"
            leg.post(wire.encode_error(request.id, SERVER_ERROR, text))
            return
        id = f"{self._prefix}{next(self._numbers)}"
        params = request.params
        meta = members(members(params).get("_meta"))
        token = meta.get("progressToken")
        if token is not None:
            meta["progressToken"] = Raw(wire.encode(id))
            params = Raw(wire.encode({**members(params), "_meta": meta}))
        self._waiting[id] = _Question(leg, request.id, token)
        self._post(
            wire.encode_request(id, request.method, None if params is None else bytes(params))
        )

    def answered(self, message: wire.Response | wire.ErrorResponse) -> None:
        """The client answers; what nobody asked is nothing to anybody."""
        question = None if message.id is None else self._waiting.pop(message.id, None)
        if question is None:
            return
        if isinstance(message, wire.Response):
            question.leg.post(wire.encode_response(question.id, bytes(message.result)))
        else:
            error = message.error
            question.leg.post(wire.encode_error(question.id, error.code, error.message, error.data))

    def progressed(self, notification: wire.Notification) -> None:
        """The client tells how an answer comes along."""
        token: object = member(notification.params, "progressToken")
        question = self._waiting.get(token) if isinstance(token, str) else None
        if question is not None and question.token is not None:
            params = {**members(notification.params), "progressToken": question.token}
            question.leg.post(wire.encode_notification(notification.method, wire.encode(params)))

    def cancelled(self, leg: Leg, notification: wire.Notification) -> None:
        """A server does not want an answer any more."""
        given: object = member(notification.params, "requestId")
        for id, question in self._waiting.items():
            if question.leg is leg and question.id == given:
                params = {**members(notification.params), "requestId": id}
                self._post(wire.encode_notification(notification.method, wire.encode(params)))
                del self._waiting[id]
                return

    def lost(self, leg: Leg) -> None:
        """A server is gone, and does not want any answers."""
        for id in [id for id, each in self._waiting.items() if each.leg is leg]:
            del self._waiting[id]
            cancel = wire.encode({"requestId": id, "reason": f"Server {leg.name} is gone"})
            self._post(wire.encode_notification("notifications/cancelled", cancel))
