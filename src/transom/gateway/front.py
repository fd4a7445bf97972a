"""The client of a gateway: what it is told, what it is asked, and the requests it waits for.

Every request that is worked on here is answered once, unless the client cancels it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
from collections.abc import Awaitable, Coroutine
from inspect import iscoroutine
from typing import Any

from msgspec import UNSET, Raw

from transom.channel import Channel
from transom.errors import INTERNAL_ERROR, SERVER_ERROR, ProtocolError, TransomError
from transom.gateway.adding import member
from transom.gateway.views import Call
from transom.protocol import wire
from transom.queues import Outbox

__all__ = ["PASSED", "Front"]

_log = logging.getLogger("transom.gateway")

PASSED: bytes = b""
"""In place of a result: somebody else answers."""


class Front:
    """One client.

    Args:
        channel: the way to it.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._out = Outbox(channel, lambda _: None)  # its end is seen where it is read
        self.post = self._out.post
        self.room = self._out.room
        self._working: dict[wire.RequestId, asyncio.Task[None]] = {}
        self._aside: set[asyncio.Task[Any]] = set()
        self._asked: dict[wire.RequestId, asyncio.Future[bytes]] = {}
        self._numbers = itertools.count(1)
        self._prefix = f"transom-{secrets.token_hex(4)}-"

    async def aclose(self) -> None:
        """Stop all work for the client. The channel is left open."""
        tasks = [*self._working.values(), *self._aside]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)
        for asked in self._asked.values():
            asked.cancel()

    def aside(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something that nobody waits for."""
        task = asyncio.ensure_future(work)
        self._aside.add(task)
        task.add_done_callback(self._done_aside)

    def _done_aside(self, task: asyncio.Task[Any]) -> None:
        self._aside.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("%s", error)

    # --- its requests ------------------------------------------------------------------------

    def work(self, id: wire.RequestId, work: Awaitable[bytes]) -> None:
        """Answer a request with what comes of `work`."""
        task = asyncio.ensure_future(self._answer(id, work))
        self._working[id] = task

        def done(done: asyncio.Task[None]) -> None:
            if iscoroutine(work):
                work.close()  # it may have been cancelled before it began
            if self._working.get(id) is done:
                del self._working[id]

        task.add_done_callback(done)

    async def _answer(self, id: wire.RequestId, work: Awaitable[bytes]) -> None:
        try:
            result = await work
        except ProtocolError as error:
            data = UNSET if error.data is None else error.data
            self.post(wire.encode_error(id, error.code, error.message, data))
        except TransomError as error:
            self.post(wire.encode_error(id, SERVER_ERROR, str(error)))
        except Exception:  # noqa: BLE001 - one request must not end the others
            _log.exception("the gateway failed to answer")
            self.post(wire.encode_error(id, INTERNAL_ERROR, "The gateway failed"))
        else:
            if result is not PASSED:
                self.post(wire.encode_response(id, result))

    def cancel(self, id: wire.RequestId, reason: str | None = None) -> bool:
        """Give up a request that is worked on; whether there was one."""
        task = self._working.get(id)
        if task is not None:
            task.cancel(reason)
        return task is not None

    def call(self, request: wire.Request, name: str, params: Raw | None) -> Call:
        """A `tools/call` of the client's, with the way to tell it of progress."""
        token: object = member(request.params, "_meta", "progressToken")

        def progress(progress: float, total: float | None, message: str | None) -> None:
            told: dict[str, object] = {"progressToken": token, "progress": progress}
            if total is not None:
                told["total"] = total
            if message is not None:
                told["message"] = message
            params = wire.encode(told)
            self.post(wire.encode_notification("notifications/progress", params))

        return Call(name, params, None if token is None else progress)

    # --- asking it ---------------------------------------------------------------------------

    async def ask(self, method: str, params: object) -> bytes:
        """Ask the client; the result as JSON.

        Raises:
            ProtocolError: the client's error.
        """
        id = f"{self._prefix}{next(self._numbers)}"
        asked = self._asked[id] = asyncio.get_running_loop().create_future()
        self.post(wire.encode_request(id, method, wire.encode(params)))
        try:
            return await asked
        except asyncio.CancelledError:
            if self._asked.pop(id, None) is not None:
                cancel = wire.encode({"requestId": id, "reason": "It is not needed any more"})
                self.post(wire.encode_notification("notifications/cancelled", cancel))
            raise

    def answered(self, message: wire.Response | wire.ErrorResponse) -> bool:
        """The client answered something; whether it was the gateway that asked."""
        asked = None if message.id is None else self._asked.pop(message.id, None)
        if asked is None:
            return False
        if not asked.done():
            if isinstance(message, wire.Response):
                asked.set_result(bytes(message.result))
            else:
                error = message.error
                data = None if error.data is UNSET else error.data
                asked.set_exception(ProtocolError(error.code, error.message, data))
        return True
