"""Hostile and clumsy hosts: each thing has its outcome, and the App works afterwards."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.view.fake_host import INITIALIZED, FakeHost, hosted
from tests.view.hostile import surviving, text
from transom.channel import memory_pair
from transom.errors import ConnectionClosed, PeerError, ProtocolError
from transom.types import ToolResult
from transom.view.app import App

INPUT = "ui/notifications/tool-input"


class RawHost:
    """A host that says whatever it likes; `app` is connected to it."""

    def __init__(self) -> None:
        self.view, self.end = memory_pair(capacity=100_000)

    async def say(self, **message: Any) -> None:
        await self.say_raw(msgspec.json.encode({"jsonrpc": "2.0", **message}))

    async def say_raw(self, data: bytes) -> None:
        await self.end.send(data)

    async def hear(self) -> dict[str, Any]:
        return msgspec.json.decode(await self.end.receive())

    async def answer_to(self, id: int | str) -> dict[str, Any]:
        """The answer with that id; what comes before it is passed over."""
        while True:
            message = await self.hear()
            if message.get("id") == id and "method" not in message:
                return message

    async def welcome(self, app: App) -> None:
        connecting = asyncio.ensure_future(app.connect(self.view))
        request = await self.hear()
        await self.say(id=request["id"], result=INITIALIZED)
        await connecting
        assert (await self.hear())["method"] == "ui/notifications/initialized"

    async def call(self, id: int | str, name: str, **arguments: Any) -> None:
        await self.say(id=id, method="tools/call", params={"name": name, "arguments": arguments})

    async def check(self, app: App) -> None:
        """The App still works."""
        await self.call("check", "fine")
        assert (await self.answer_to("check"))["result"]["content"][0]["text"] == "fine"
        assert app.connected


def make() -> tuple[App, list[BaseException]]:
    app = App("a", "1")
    errors: list[BaseException] = []
    app.on_error = errors.append
    app.register_tool("fine", lambda: "fine")
    return app, errors


# --- floods ----------------------------------------------------------------------------------


async def test_calls_beyond_the_cap_are_refused_and_the_others_end() -> None:
    app, _ = make()
    gate = asyncio.Event()

    @app.tool
    async def slow() -> str:
        await gate.wait()
        return "done"

    host = RawHost()
    await host.welcome(app)
    for id in range(1500):
        await host.call(id, "slow")
    refused = [await host.hear() for _ in range(1500 - 1024)]
    assert [message["id"] for message in refused] == list(range(1024, 1500))
    assert {message["error"]["code"] for message in refused} == {-32000}
    assert "Too many requests" in refused[0]["error"]["message"]
    gate.set()
    ended = {(await host.hear())["id"] for _ in range(1024)}
    assert ended == set(range(1024))
    await host.check(app)
    await app.close()


async def test_a_flood_of_quick_calls_is_answered_whole() -> None:
    app, errors = make()
    host = RawHost()
    await host.welcome(app)
    for id in range(5000):
        await host.call(id, "fine")
    assert [(await host.hear())["id"] for _ in range(5000)] == list(range(5000))
    assert errors == []
    await app.close()


@pytest.mark.load
async def test_a_host_that_asks_and_cancels_for_ever_gains_nothing() -> None:
    app, _ = make()
    running = 0
    most = 0

    @app.tool
    async def slow() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            await asyncio.Event().wait()
        finally:
            running -= 1

    host = RawHost()
    await host.welcome(app)
    for id in range(5000):
        await host.call(id, "slow")
        await host.say(method="notifications/cancelled", params={"requestId": id})
        if id % 100 == 0:
            await asyncio.sleep(0)
    await host.check(app)
    assert most <= 1024
    assert running == 0
    await app.close()


async def test_a_host_that_asks_and_never_reads_is_cut_off() -> None:
    app, _ = make()
    view, end = memory_pair(capacity=8)
    connecting = asyncio.ensure_future(app.connect(view))
    request = msgspec.json.decode(await end.receive())
    await end.send(
        msgspec.json.encode({"jsonrpc": "2.0", "id": request["id"], "result": INITIALIZED})
    )
    await connecting
    for id in range(20_000):
        if not app.connected:
            break
        await end.send(msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": "x/unknown"}))
        if id % 64 == 0:
            await asyncio.sleep(0)
    assert not app.connected
    assert "does not read" in await app.wait_closed()
    async with hosted(app) as host:
        assert text(await host.call("fine")) == "fine"


async def test_notifications_beyond_the_queue_are_dropped_and_told_and_later_ones_arrive() -> None:
    app, errors = make()
    gate = asyncio.Event()
    seen: list[int] = []
    last = asyncio.Event()

    @app.on_tool_input
    async def _(arguments: dict[str, Any]) -> None:
        await gate.wait()
        seen.append(arguments["n"])
        if arguments["n"] == -1:
            last.set()

    async with hosted(app) as host:
        for n in range(2000):
            await host.tell(INPUT, {"arguments": {"n": n}})
        assert text(await host.call("fine")) == "fine"
        dropped = [error for error in errors if "dropped" in str(error)]
        assert len(dropped) == len(errors) >= 900
        assert all(isinstance(error, PeerError) for error in dropped)
        gate.set()
        await host.settled()
        while app._connection.session._notifications.task is not None:
            await app._connection.session._notifications.task
        await host.tell(INPUT, {"arguments": {"n": -1}})
        await last.wait()
        assert seen == [*range(2000 - len(dropped)), -1]


@pytest.mark.load
async def test_a_flood_of_problems_does_not_pile_up_behind_a_slow_error_handler(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app, _ = make()
    gate, crowded = asyncio.Event(), asyncio.Event()
    running = 0

    async def slow(_: BaseException) -> None:
        nonlocal running
        running += 1
        if running == 100:
            crowded.set()
        await gate.wait()

    app.on_error = slow
    host = RawHost()
    await host.welcome(app)
    for n in range(5000):
        await host.say(id=f"gone-{n}", result={})
    await host.check(app)
    await crowded.wait()
    assert running == 100
    assert len([r for r in caplog.records if "could not be run" in r.message]) == 4900
    gate.set()
    await host.check(app)
    await app.close()


@pytest.mark.load
async def test_a_huge_tool_result_is_delivered() -> None:
    app, _ = make()
    got: list[ToolResult] = []
    app.on_tool_result = got.append
    async with hosted(app) as host:
        content = [{"type": "text", "text": "x" * 10_000_000}]
        await host.tell("ui/notifications/tool-result", {"content": content})
        await host.tell(
            "ui/notifications/tool-result",
            {"content": [], "structuredContent": {str(n): n for n in range(200_000)}},
        )
        await host.settled()
        assert len(got[0].text) == 10_000_000
        assert len(got[1].structured_content or {}) == 200_000
        assert text(await host.call("fine")) == "fine"


async def test_a_tool_result_beyond_the_wire_is_reported_and_nothing_else_happens() -> None:
    app, errors = make()
    app.on_tool_result = lambda: pytest.fail("delivered")
    async with hosted(app) as host:
        content = [{"type": "text", "text": "x" * 17_000_000}]
        await host.tell("ui/notifications/tool-result", {"content": content})
        assert text(await host.call("fine")) == "fine"
    assert "over the limit" in str(errors[0])


# --- ids and answers -------------------------------------------------------------------------


async def test_an_id_that_is_in_use_is_not_served_twice() -> None:
    app, errors = make()
    gate = asyncio.Event()
    calls = 0

    @app.tool
    async def slow() -> str:
        nonlocal calls
        calls += 1
        await gate.wait()
        return "done"

    host = RawHost()
    await host.welcome(app)
    await host.call(1, "slow")
    await host.call(1, "slow")
    await host.call("1", "slow")
    await asyncio.sleep(0)
    assert calls == 2
    assert "in use" in str(errors[0])
    gate.set()
    assert (await host.hear())["id"] == 1
    assert (await host.hear())["id"] == "1"
    await host.call(1, "fine")
    assert (await host.answer_to(1))["result"]["content"][0]["text"] == "fine"
    await host.check(app)
    await app.close()


@pytest.mark.parametrize(
    "message",
    [
        {"id": 99, "result": {}},
        {"id": "0", "result": {}},
        {"id": 99, "error": {"code": 1, "message": "x"}},
        {"id": None, "error": {"code": 1, "message": "x"}},
        {"method": "notifications/progress", "params": {"progressToken": 9, "progress": 1}},
        {"method": "notifications/progress", "params": {}},
        {"method": "notifications/cancelled", "params": {"requestId": 9}},
        {"method": "notifications/cancelled", "params": {}},
    ],
    ids=str,
)
async def test_answers_and_notices_about_nothing_are_reported(message: dict[str, Any]) -> None:
    app, errors = make()
    host = RawHost()
    await host.welcome(app)
    for _ in range(3):
        await host.say(**message)
    await host.check(app)
    assert len(errors) == 3
    assert all(isinstance(error, PeerError) for error in errors)
    await app.close()


GARBAGE = [
    b"",
    b"[]",
    b"null",
    b"{}",
    b"\xff\xfe",
    b"{" * 1000,
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    b'{"jsonrpc":"2.0","method":"x","params":[]}',
    b'{"jsonrpc":"2.0","method":3}',
]


async def test_garbage_is_reported_and_nothing_else_happens() -> None:
    app, errors = make()
    host = RawHost()
    await host.welcome(app)
    for data in GARBAGE:
        await host.say_raw(data)
    await host.check(app)
    assert len(errors) == len(GARBAGE)
    await app.close()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "fine", "arguments": {}, "_meta": 3}),
        ("tools/call", {"name": "fine", "task": []}),
        ("tools/call", {"name": "fine", "task": {"ttl": "long"}}),
        ("tools/call", {"name": None}),
        ("tools/list", {"cursor": 3}),
        ("tools/list", {"cursor": "x" * 1_000_000}),
        ("tools/list", {"cursor": "\ufffd"}),
        ("tools/list", {"cursor": "eyJpbmRleCI6LTF9"}),
        ("tasks/get", {}),
        ("tasks/get", {"taskId": 3}),
        ("tasks/get", {"taskId": "x" * 1_000_000}),
        ("tasks/list", {"cursor": "x"}),
        ("ui/resource-teardown", {"reason": 3}),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_params_that_make_no_sense_are_invalid_params(method: str, params: Any) -> None:
    app = App("a", "1")
    async with surviving(app) as (host, _):
        with pytest.raises(ProtocolError) as error:
            await host.ask(method, params)
        assert error.value.code == -32602
        assert len(error.value.message) < 500


async def test_an_unknown_tool_of_a_very_long_name_is_named_shortly() -> None:
    app = App("a", "1")
    async with surviving(app) as (host, _):
        with pytest.raises(ProtocolError) as error:
            await host.call("x" * 1_000_000)
        assert len(error.value.message) < 500


async def test_a_progress_token_of_any_kind_does_no_harm() -> None:
    app = App("a", "1")

    @app.tool
    def step(ctx) -> str:
        ctx.progress(1, 2)
        return "ok"

    async with surviving(app) as (host, _):
        for token in (True, None, [], {}, 1.5, "", "x" * 1000, -1):
            params = {"name": "step", "_meta": {"progressToken": token}}
            assert text(await host.ask("tools/call", params)) == "ok"


@pytest.mark.parametrize("event", ["on_tool_input", "on_error", "on_tool_change"])
async def test_a_host_that_leaves_ends_the_handlers_that_run(event: str) -> None:
    app, _ = make()
    started, stopped = asyncio.Event(), asyncio.Event()

    async def endless(*_: Any) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    setattr(app, event, endless)
    host = RawHost()
    await host.welcome(app)
    await host.say(method=INPUT, params={})
    await host.say(id="nobody asked", result={})
    app.register_tool("new", lambda: "x")
    await started.wait()
    await host.end.aclose()
    await stopped.wait()
    assert not app.connected
    setattr(app, event, None)
    async with hosted(app) as other:
        assert text(await other.call("fine")) == "fine"


# --- the handshake ---------------------------------------------------------------------------


async def test_a_host_that_answers_and_leaves_at_once_is_a_failed_handshake() -> None:
    app, _ = make()
    host = RawHost()
    connecting = asyncio.ensure_future(app.connect(host.view))
    request = await host.hear()
    await host.say(id=request["id"], result=INITIALIZED)
    await host.end.aclose()
    with pytest.raises(ConnectionClosed):
        await connecting
    assert not app.connected
    assert app.host_info is None
    assert app.host_context is None
    async with hosted(app) as other:
        assert text(await other.call("fine")) == "fine"


async def test_what_the_host_sends_the_moment_it_is_told_finds_the_app_ready() -> None:
    app = App("a", "1")
    save = app.register_tool("save", lambda: "saved", enabled=False)
    seen: list[bool] = []

    @app.on_tool_input
    def _() -> None:
        seen.append(app.connected)
        save.enable()

    view, end = memory_pair()
    host = FakeHost(end)
    note = host.session._on_notification

    def eager(notification: Any) -> Any:
        if notification.method == "ui/notifications/initialized":
            host.session.notify_soon(INPUT, b"{}")
        return note(notification)

    host.session._on_notification = eager
    async with host.session:
        await app.connect(view)
        assert seen == [True]
        await host.heard("notifications/tools/list_changed")
        methods = [method for method, _ in host.notifications]
        assert methods == ["ui/notifications/initialized", "notifications/tools/list_changed"]
        await app.close()


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"protocolVersion": 3},
        {**INITIALIZED, "hostContext": []},
        {**INITIALIZED, "hostContext": None},
        {**INITIALIZED, "hostContext": {"styles": {"variables": [1]}}},
        {**INITIALIZED, "hostCapabilities": None},
        {**INITIALIZED, "hostInfo": {"name": 3}},
    ],
    ids=str,
)
async def test_an_answer_to_the_handshake_that_makes_no_sense_leaves_the_app_as_it_was(
    answer: Any,
) -> None:
    app, _ = make()
    with pytest.raises(PeerError):
        async with hosted(app, ui__initialize=answer):
            pass
    assert not app.connected
    assert app.host_info is None
    async with hosted(app) as host:
        assert text(await host.call("fine")) == "fine"


async def test_a_context_of_many_megabytes_is_merged() -> None:
    app = App("a", "1")
    async with surviving(app) as (host, _):
        styles = {"variables": {f"--v{n}": "x" * 50 for n in range(50_000)}}
        await host.tell("ui/notifications/host-context-changed", {"styles": styles})
        await host.settled()
        assert app.host_context is not None
        assert app.host_context.styles is not None
        assert len(app.host_context.styles.variables or {}) == 50_000


# --- tasks -----------------------------------------------------------------------------------


async def start(host: FakeHost, name: str, task: Any) -> dict[str, Any]:
    return (await host.ask("tools/call", {"name": name, "task": task}))["task"]


async def test_a_flood_of_tasks_is_refused_beyond_the_cap_before_any_work_is_done() -> None:
    app = App("a", "1")
    done: list[str] = []
    gate = asyncio.Event()

    @app.tool(task="optional")
    async def slow() -> str:
        done.append("slow")
        await gate.wait()
        return "done"

    app.register_tool("quick", lambda: done.append("quick"), task="optional")
    app.register_tool("thread", lambda: done.append("thread"), task="optional", thread=True)
    async with surviving(app) as (host, errors):
        ids = [(await start(host, "slow", {}))["taskId"] for _ in range(1000)]
        assert len(set(ids)) == 1000
        for name in ("slow", "quick", "thread"):
            with pytest.raises(ProtocolError, match="1000 tasks are already stored") as error:
                await start(host, name, {})
            assert error.value.code == -32000
        assert set(done) == {"slow"}
        gate.set()
        assert text(await host.ask("tasks/result", {"taskId": ids[0]})) == "done"
        assert text(await host.call("quick")) == "Done."
        assert errors == []


async def test_many_may_wait_for_one_task() -> None:
    app = App("a", "1")
    gate = asyncio.Event()

    @app.tool(task="optional")
    async def slow() -> str:
        await gate.wait()
        return "done"

    async with surviving(app) as (host, _):
        params = {"taskId": (await start(host, "slow", {}))["taskId"]}
        waiting = [asyncio.ensure_future(host.ask("tasks/result", params)) for _ in range(50)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        gate.set()
        results = await asyncio.gather(*waiting[1:])
        assert {text(result) for result in results} == {"done"}


@pytest.mark.parametrize(
    ("ttl", "kept"),
    [
        (None, 600_000),
        (0, 600_000),
        (-1, 600_000),
        (1_000, 1_000),
        (1_000.0, 1_000),
        (999.5, 1_000),
        (0.1, 1),
        (1e300, 24 * 3600 * 1000),
        (10**12, 24 * 3600 * 1000),
        (2**63, 24 * 3600 * 1000),
        (10**30, 24 * 3600 * 1000),
    ],
)
async def test_a_task_is_kept_for_a_time_that_makes_sense(ttl: Any, kept: int) -> None:
    app = App("a", "1")
    app.register_tool("work", lambda: "done", task="optional")
    async with surviving(app) as (host, _):
        task = await start(host, "work", {"ttl": ttl})
        assert task["ttl"] == kept


@pytest.mark.parametrize("ttl", ["1000", [], {}, True])
async def test_a_time_that_is_no_number_is_invalid_params(ttl: Any) -> None:
    app = App("a", "1")
    app.register_tool("work", lambda: "done", task="optional")
    async with surviving(app) as (host, _):
        with pytest.raises(ProtocolError) as error:
            await start(host, "work", {"ttl": ttl})
        assert error.value.code == -32602


async def test_a_task_cancelled_by_everyone_at_once_ends_once() -> None:
    app = App("a", "1")
    ended: list[str] = []

    @app.tool(task="optional")
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("once")

    async with surviving(app) as (host, _):
        params = {"taskId": (await start(host, "slow", {}))["taskId"]}
        answers = await asyncio.gather(
            *(host.ask("tasks/cancel", params) for _ in range(10)), return_exceptions=True
        )
        for answer in answers:
            assert isinstance(answer, ProtocolError) or answer["status"] == "cancelled"
        assert ended == ["once"]


async def test_a_task_whose_handler_will_not_stop_can_still_be_asked_about() -> None:
    app = App("a", "1")
    started, release = asyncio.Event(), asyncio.Event()

    @app.tool(task="optional")
    async def stubborn() -> str:
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    async with surviving(app) as (host, _):
        params = {"taskId": (await start(host, "stubborn", {}))["taskId"]}
        await started.wait()
        cancelling = asyncio.ensure_future(host.ask("tasks/cancel", params))
        assert (await host.ask("tasks/get", params))["status"] == "working"
        release.set()
        assert (await cancelling)["status"] == "completed"
        assert text(await host.ask("tasks/result", params)) == "at last"


async def test_closing_before_a_task_began_leaves_nothing_behind() -> None:
    app = App("a", "1")
    begun: list[str] = []

    @app.tool(task="optional")
    async def late() -> None:
        begun.append("late")

    host = RawHost()
    await host.welcome(app)
    await host.say(id=1, method="tools/call", params={"name": "late", "task": {}})
    await app.close()
    assert begun == []


async def test_a_call_cancelled_in_the_same_breath_leaves_nothing_behind() -> None:
    app, errors = make()

    @app.tool
    async def late() -> None:
        await asyncio.Event().wait()

    host = RawHost()
    await host.welcome(app)
    await host.call(1, "late")
    await host.say(method="notifications/cancelled", params={"requestId": 1})
    await host.check(app)
    assert errors == []
    await app.close()
