"""What handlers may do, and what the other side gets to see of it."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from tests.joined import bare, joined, turns
from transom.errors import INTERNAL_ERROR, SERVER_ERROR, PeerError, ProtocolError
from transom.protocol import wire
from transom.protocol.peer import Peer
from transom.session import Session

SECRET = "the password is swordfish"


class Teapot(ProtocolError):
    def __init__(self) -> None:
        super().__init__(418, "short and stout", [1])


class Weird(BaseException):
    """Neither an Exception nor one that Python knows."""


ANYTHING = [
    ValueError(SECRET),
    KeyError(SECRET),
    RecursionError(SECRET),
    StopIteration(SECRET),
    StopAsyncIteration(SECRET),
    ExceptionGroup(SECRET, [ValueError(SECRET)]),
    SystemExit(SECRET),
    KeyboardInterrupt(SECRET),
    asyncio.CancelledError(SECRET),
    asyncio.InvalidStateError(SECRET),
    TimeoutError(SECRET),
    Weird(SECRET),
]


def raising(error: BaseException) -> Callable[[wire.Request], bytes]:
    def serve(request: wire.Request) -> bytes:
        if request.method == "ok":
            return b"{}"
        raise error

    return serve


def raising_later(error: BaseException) -> Callable[[wire.Request], Awaitable[bytes]]:
    async def serve(request: wire.Request) -> bytes:
        await asyncio.sleep(0)
        if request.method == "ok":
            return b"{}"
        raise error

    return serve


# --- answers ---------------------------------------------------------------------------------


async def answer_at_once(request: wire.Request) -> bytes:
    return b'{"a":1}'


def answer_with_a_task(request: wire.Request) -> Awaitable[bytes]:
    return asyncio.ensure_future(answer_at_once(request))


def answer_with_a_future(request: wire.Request) -> Awaitable[bytes]:
    future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, b'{"a":1}')
    return future


class AnswerWithAwait:
    def __await__(self):
        yield from asyncio.sleep(0).__await__()
        return b'{"a":1}'


@pytest.mark.parametrize(
    "serve",
    [
        lambda request: b'{"a":1}',
        answer_at_once,
        answer_with_a_task,
        answer_with_a_future,
        lambda request: AnswerWithAwait(),
    ],
    ids=["bytes", "coroutine", "task", "future", "awaitable"],
)
async def test_a_handler_returns_bytes_or_anything_that_can_be_awaited(serve: object):
    async with joined(serve) as (asking, serving):  # type: ignore[arg-type]
        assert bytes(await asking.request("m")) == b'{"a":1}'
        await turns()
        assert serving.peer.incoming == 0
        assert serving._incoming.handlers == {}


async def test_a_handler_that_answers_at_once_costs_no_task():
    before = len(asyncio.all_tasks())
    seen: list[int] = []

    def serve(request: wire.Request) -> bytes:
        seen.append(len(asyncio.all_tasks()))
        return b"{}"

    async with joined(serve) as (asking, _):
        await asking.request("m")
    assert seen == [before]


@pytest.mark.parametrize("value", [None, "{}", 5, {"a": 1}, bytearray(b"{}")], ids=repr)
@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
async def test_an_answer_that_is_not_bytes_is_an_internal_error(value: object, later: bool):
    async def answer_later() -> object:
        return value

    async with bare(lambda request: answer_later() if later else value) as b:  # type: ignore[arg-type,return-value]
        await b.wire.say(id=1, method="m")
        answer = await b.wire.hear()
        assert answer["error"] == {"code": INTERNAL_ERROR, "message": "Internal error"}
        assert [type(problem) for problem in b.log.problems] == [TypeError]


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [raising, raising_later], ids=["at once", "later"])
@pytest.mark.parametrize("error", ANYTHING, ids=lambda error: type(error).__name__)
async def test_whatever_a_handler_raises_is_answered_reported_and_kept_secret(
    make: Callable[[BaseException], object], error: BaseException
):
    async with bare(make(error)) as b:  # type: ignore[arg-type]
        await b.wire.say(id=1, method="m")
        answer = await b.wire.hear()
        assert answer["id"] == 1
        assert answer["error"]["code"] in {INTERNAL_ERROR, SERVER_ERROR}
        assert "swordfish" not in json.dumps(answer)
        cancelled = isinstance(error, asyncio.CancelledError) and make is raising_later
        assert len(b.log.problems) == (0 if cancelled else 1)
        await b.wire.say(id=2, method="ok")
        assert (await b.wire.hear())["result"] == {}
        await turns()
        assert b.session.peer.incoming == 0


@pytest.mark.parametrize("make", [raising, raising_later], ids=["at once", "later"])
async def test_a_protocol_error_is_answered_word_for_word_and_is_no_problem(
    make: Callable[[BaseException], object],
):
    async with bare(make(Teapot())) as b:  # type: ignore[arg-type]
        await b.wire.say(id="x", method="m")
        answer = await b.wire.hear()
        assert answer["id"] == "x"
        assert answer["error"] == {"code": 418, "message": "short and stout", "data": [1]}
        assert b.log.problems == []


@pytest.mark.parametrize("make", [raising, raising_later], ids=["at once", "later"])
@pytest.mark.parametrize(
    "error",
    [
        ProtocolError(-1, "m", object()),
        ProtocolError(-1, "m", {"deep": {1: object()}}),
        ProtocolError(-1, "\ud800"),
    ],
    ids=["an object", "inside", "no unicode"],
)
async def test_a_protocol_error_that_cannot_be_written_is_an_internal_error(
    make: Callable[[BaseException], object], error: ProtocolError
):
    async with bare(make(error)) as b:  # type: ignore[arg-type]
        await b.wire.say(id=1, method="m")
        answer = await b.wire.hear()
        assert answer["error"] == {"code": INTERNAL_ERROR, "message": "Internal error"}
        assert len(b.log.problems) == 1


# --- cancellation by the other side ----------------------------------------------------------


async def test_a_cancelled_handler_is_stopped_and_not_answered():
    started, stopped = asyncio.Event(), asyncio.Event()

    async def serve(request: wire.Request) -> bytes:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            assert error.args == ("enough",)
            stopped.set()
            raise
        return b"{}"

    async with bare(serve) as b:
        await b.wire.say(id=1, method="m")
        await started.wait()
        params = {"requestId": 1, "reason": "enough"}
        await b.wire.say(method="notifications/cancelled", params=params)
        await stopped.wait()
        await turns()
        assert b.wire.said() == []
        assert b.session.peer.incoming == 0
        assert b.log.problems == []


async def test_a_handler_that_answers_in_spite_of_its_cancellation_is_not_heard():
    async def serve(request: wire.Request) -> bytes:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return b'{"late":true}'

    async with bare(serve) as b:
        await b.wire.say(id=1, method="m")
        await turns()
        await b.wire.say(method="notifications/cancelled", params={"requestId": 1})
        await turns()
        assert b.wire.said() == []
        await b.wire.say(id=1, method="m")
        await turns()
        assert len(b.session._incoming.handlers) == 1


async def test_a_handler_cancelled_before_it_began_never_begins():
    began = False
    made: list[asyncio.Future[bytes]] = []

    async def serve(request: wire.Request) -> bytes:
        nonlocal began
        began = True
        return b"{}"

    def serve_with_a_future(request: wire.Request) -> Awaitable[bytes]:
        made.append(asyncio.get_running_loop().create_future())
        return made[-1]

    for handler in (serve, serve_with_a_future):
        async with bare(handler) as b:
            await b.wire.say(id=1, method="m")
            await b.wire.say(method="notifications/cancelled", params={"requestId": 1})
            await turns()
            assert b.wire.said() == []
            assert b.session.peer.incoming == 0
    assert not began
    assert made[0].cancelled()


async def test_an_id_used_again_the_moment_it_is_answered_is_a_new_request():
    gate = asyncio.Event()
    running = most = 0

    async def serve(request: wire.Request) -> bytes:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            if request.method == "wait":
                await gate.wait()
        finally:
            running -= 1
        return b'{"m":"%b"}' % request.method.encode()

    async with bare(serve, peer=Peer(max_incoming=1)) as b:
        reused = False

        def receiver(message: bytes | None) -> None:
            nonlocal reused
            if message is not None and not reused:
                reused = True
                request = b'{"jsonrpc":"2.0","id":1,"method":"wait"}'
                assert b.wire.channel.send_nowait(request)  # type: ignore[attr-defined]

        b.wire.channel.attach(receiver)  # type: ignore[attr-defined]
        await b.wire.say(id=1, method="first")
        await turns()
        assert reused
        assert b.session.peer.incoming == 1
        assert len(b.session._incoming.handlers) == 1
        await b.wire.say(id=2, method="one too many")
        await turns()
        assert most == 1
        b.wire.channel._incoming.receiver = None  # type: ignore[attr-defined]
        gate.set()
        assert await b.wire.hear() == {"jsonrpc": "2.0", "id": 1, "result": {"m": "wait"}}


async def test_no_more_handlers_run_than_the_peer_allows_and_cancelling_makes_no_room():
    running = most = 0
    release = asyncio.Event()

    async def serve(request: wire.Request) -> bytes:
        nonlocal running, most
        running += 1
        most = max(most, running)
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue  # takes its time, as a thread would
        running -= 1
        return b"{}"

    async with bare(serve, peer=Peer(max_incoming=4)) as b:
        for id in range(200):
            await b.wire.say(id=id, method="m")
            await turns(2)
            await b.wire.say(method="notifications/cancelled", params={"requestId": id})
            await turns(2)
        assert most == 4
        refused = [message for message in b.wire.said() if "error" in message]
        assert len(refused) == 196
        release.set()
        await turns()
        await b.wire.say(id=1000, method="m")
        await turns()
        assert [message["id"] for message in b.wire.said()] == [1000]


# --- notifications ---------------------------------------------------------------------------


async def test_notifications_are_handled_in_order_by_mixed_handlers():
    handled: list[str] = []
    over = asyncio.Event()

    async def slowly(name: str, turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        handled.append(name)

    def on_notification(notice: wire.Notification) -> object:
        name = notice.method
        if name == "end":
            over.set()
            return None
        number = int(name)
        if number % 3 == 0:
            handled.append(name)
            return None
        return slowly(name, 7 - number % 7)

    async with bare(on_notification=on_notification) as b:
        for number in range(60):
            await b.wire.say(method=str(number))
            if number % 10 == 0:
                await turns(3)
        await b.wire.say(method="end")
        await over.wait()
        assert handled == [str(number) for number in range(60)]


@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize("error", ANYTHING, ids=lambda error: type(error).__name__)
async def test_a_notification_handler_may_raise_anything_and_the_next_still_runs(
    error: BaseException, later: bool
):
    heard: list[str] = []
    second = asyncio.Event()

    async def raise_later() -> None:
        await asyncio.sleep(0)
        raise error

    def on_notification(notice: wire.Notification) -> object:
        heard.append(notice.method)
        if notice.method == "second":
            second.set()
            return None
        if later:
            return raise_later()
        raise error

    async with bare(on_notification=on_notification) as b:
        await b.wire.say(method="first")
        await b.wire.say(method="second")
        await second.wait()
        assert heard == ["first", "second"]
        cancelled = later and isinstance(error, asyncio.CancelledError)
        assert len(b.log.problems) == (0 if cancelled else 1)
        assert b.wire.said() == []


async def test_too_many_notifications_in_the_queue_are_dropped_and_reported():
    handled: list[str] = []
    gate = asyncio.Event()

    async def on_notification(notice: wire.Notification) -> None:
        await gate.wait()
        handled.append(notice.method)

    async with bare(on_notification=on_notification, max_queued=5) as b:
        for number in range(10):
            await b.wire.say(method=str(number))
        await turns()
        gate.set()
        await turns(30)
        assert handled[:5] == ["0", "1", "2", "3", "4"]
        assert len(handled) + len(b.log.problems) == 10
        assert all(isinstance(problem, PeerError) for problem in b.log.problems)
        await b.wire.say(method="later")
        await turns()
        assert handled[-1] == "later"


async def test_a_notification_handler_may_ask_and_wait_for_the_answer():
    sessions: list[Session] = []
    answers: list[bytes] = []
    answered = asyncio.Event()

    async def on_notification(notice: wire.Notification) -> None:
        answers.append(bytes(await sessions[0].request("m")))
        if len(answers) == 3:
            answered.set()

    async with bare(on_notification=on_notification) as b:
        sessions.append(b.session)
        for _ in range(3):
            await b.wire.say(method="go")
        for _ in range(3):
            request = await b.wire.hear()
            await b.wire.say(id=request["id"], result={"n": request["id"]})
        await answered.wait()
        assert answers == [b'{"n":0}', b'{"n":1}', b'{"n":2}']


async def test_requests_do_not_wait_for_notifications():
    gate = asyncio.Event()

    async def on_notification(notice: wire.Notification) -> None:
        await gate.wait()

    async with bare(on_notification=on_notification) as b:
        await b.wire.say(method="slow")
        await b.wire.say(id=1, method="m")
        assert (await b.wire.hear())["id"] == 1
        gate.set()


# --- hostile messages ------------------------------------------------------------------------


async def test_rubbish_is_reported_refused_where_it_asks_and_changes_nothing():
    async with bare() as b:
        for data in (b"", b"\xff", b"[]", b"{}", b"[" * 5000, b'{"jsonrpc":"2.0","id":1}'):
            await b.wire.channel.send(data)
        await b.wire.say(id=7, method="m", params=[])
        assert (await b.wire.hear())["id"] == 7
        assert len(b.log.problems) == 7
        assert all(isinstance(problem, PeerError) for problem in b.log.problems)
        await b.wire.say(id=8, method="m")
        assert (await b.wire.hear())["result"] == {}
        assert b.log.closed == []
