import asyncio
import json
import logging
from typing import Any

import pytest
from msgspec import Raw

from tests.connections.scripted_server import Listener, ScriptedServer
from tests.host.bare_view import begun, tool
from transom.connections import connection as module
from transom.connections.connection import ServerConnection
from transom.connections.upstream import InputRequired, Server
from transom.errors import ConnectionClosed, InvalidResult, NotConnected, ProtocolError
from transom.protocol import wire
from transom.protocol.peer import Progress

TOOLS_CHANGED = "notifications/tools/list_changed"
PROTOCOL_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
ADDING = {"tools/list": {"tools": [tool("add")]}}
UI = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}


# --- requests and answers --------------------------------------------------------------------


async def test_params_and_result_pass_as_they_are():
    server = ScriptedServer({**ADDING, "odd/method": None})
    async with server.connection() as connection:
        params = b'{ "a": 1.0, "b": [1e3], "_meta": {"x": null} }'
        asking = asyncio.create_task(connection.forward("odd/method", params))
        request = await server.has("odd/method")
        result = b'{ "n": 1.00, "resultType": "input_required" }'
        await server.write(b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (request["id"], result))
        assert request["params"] == json.loads(params)
        assert await asking == result


async def test_an_error_of_the_server_keeps_its_code_message_and_data():
    server = ScriptedServer({**ADDING, "x": {"error": {"code": -5, "message": "no", "data": [1]}}})
    async with server.connection() as connection:
        with pytest.raises(ProtocolError) as caught:
            await connection.forward("x")
        assert (caught.value.code, caught.value.message, caught.value.data) == (-5, "no", [1])


async def test_a_request_and_a_notification_leave_in_the_order_they_were_sent():
    server = ScriptedServer({**ADDING, "x": None})
    async with server.connection() as connection:
        asking = [await begun(connection.forward("x"))]  # it is sent in its first step
        connection.notify("notifications/y")
        asking.append(await begun(connection.forward("x", b'{"n":2}')))
        await server.has("x", 2)
        for each in asking:
            each.cancel()
        assert [each["method"] for each in server.received] == ["x", "notifications/y", "x"]


async def test_cancelling_a_request_tells_the_server_to_stop_with_the_reason():
    server = ScriptedServer({**ADDING, "x": None, "initialize": None})
    async with server.connection() as connection:
        asking = asyncio.create_task(connection.forward("x"))
        request = await server.has("x")
        asking.cancel("enough")
        cancelled = await server.has("notifications/cancelled")
        assert cancelled["params"] == {"requestId": request["id"], "reason": "enough"}
        await server.say({"id": request["id"], "result": {}})  # late, and ignored
        opening = asyncio.create_task(connection.forward("initialize"))
        opening.cancel()
        connection.notify("notifications/last")
        await server.has("notifications/last")
        assert len(server.sent("notifications/cancelled")) == 1  # MCP forbids it for initialize


async def test_progress_comes_with_its_params_and_the_callers_meta_is_kept():
    server = ScriptedServer({**ADDING, "x": None})
    steps: list[Progress] = []
    async with server.connection() as connection:
        params = b'{"_meta":{"progressToken":"mine","trace":1},"n":2}'
        asking = asyncio.create_task(connection.forward("x", params, on_progress=steps.append))
        request = await server.has("x")
        token = request["params"]["_meta"]["progressToken"]
        assert request["params"] == {"n": 2, "_meta": {"progressToken": token, "trace": 1}}
        assert token != "mine"
        notice = {"progressToken": token, "progress": 1, "extra": {"k": None}, "_meta": {"a": 1}}
        await server.notify("notifications/progress", notice)
        await server.notify("notifications/progress", {"progressToken": "mine", "progress": 9})
        await server.say({"id": request["id"], "result": {}})
        await asking
    [step] = steps
    assert (step.progress, step.total) == (1, None)
    assert json.loads(bytes(step.params or b"")) == notice


async def test_a_message_that_cannot_be_handled_does_not_cut_off_those_after_it(
    caplog: pytest.LogCaptureFixture,
):
    heard: asyncio.Queue[str] = asyncio.Queue()

    def handle(notification: wire.Notification) -> None:
        if notification.method == "notifications/odd":
            raise RuntimeError("odd")
        heard.put_nowait(notification.method)

    server = ScriptedServer(ADDING)
    async with server.connection(on_notification=handle):
        with caplog.at_level(logging.ERROR, "transom.connections"):
            await server.notify("notifications/odd")
            await server.notify("notifications/message")
            assert await heard.get() == "notifications/message"
        assert "a message of server shop was lost" in caplog.text


@pytest.mark.parametrize(
    "noise",
    [b"Welcome!", b"\xff\xfe", b"{}", b"[1]", b"null", b'{"jsonrpc":"2.0","id":99,"result":{}}'],
)
async def test_noise_on_the_pipe_is_ignored(noise: bytes):
    server = ScriptedServer({**ADDING, "x": {"n": 1}})
    async with server.connection() as connection:
        await server.write(noise)
        assert await connection.forward("x") == b'{"n": 1}'


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":%d,"result":"no object"}',
        b'{"jsonrpc":"2.0","id":%d,"result":{"text":"\xff"}}',
        b'{"id":%d,"result":{}}',
        b'{"jsonrpc":"2.0","pad":"' + b"x" * 500 + b'","id":%d,"more":"' + b"x" * 500 + b'"}',
    ],
)
async def test_an_answer_that_cannot_be_read_ends_its_request(line: bytes):
    server = ScriptedServer({**ADDING, "x": None, "y": {}})
    async with server.connection() as connection:
        asking = asyncio.create_task(connection.forward("x"))
        request = await server.has("x")
        await server.write(line.replace(b"%d", str(request["id"]).encode()))
        with pytest.raises(InvalidResult):
            await asking
        assert await connection.forward("y") == b"{}"


async def test_the_servers_requests_are_answered():
    server = ScriptedServer(ADDING)
    async with server.connection():
        await server.say({"id": "a", "method": "ping"})
        await server.say({"id": "b", "method": "roots/list"})
        await server.until(lambda: len(server.received) == 2)
        assert server.received[0] == {"jsonrpc": "2.0", "id": "a", "result": {}}
        assert server.received[1]["error"]["code"] == -32601


async def test_a_request_of_the_server_that_it_cancels_is_stopped():
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def answer(request: wire.Request) -> bytes:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return b"{}"

    server = ScriptedServer(ADDING)
    async with server.connection(on_request=answer):
        await server.say({"id": 1, "method": "sampling/createMessage"})
        await begun.wait()
        await server.notify("notifications/cancelled", {"requestId": 1})
        await stopped.wait()


async def test_messages_are_not_read_while_they_cannot_be_handled():
    room = asyncio.Event()
    room.set()
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def wait_for_room() -> None:
        await room.wait()

    def handle(notification: wire.Notification) -> None:
        heard.put_nowait(notification.method)
        room.clear()

    server = ScriptedServer(ADDING)
    async with server.connection(on_notification=handle, wait_writable=wait_for_room):
        await server.notify("notifications/one")
        await server.notify("notifications/two")
        assert await heard.get() == "notifications/one"
        await asyncio.sleep(0)
        assert heard.empty()
        room.set()
        assert await heard.get() == "notifications/two"


# --- a server that goes ----------------------------------------------------------------------


async def test_everything_in_flight_fails_when_the_server_goes():
    server = ScriptedServer({**ADDING, "x": None})
    lost: asyncio.Queue[str] = asyncio.Queue()
    async with server.connection(on_lost=lost.put_nowait) as connection:
        asking = [
            asyncio.create_task(connection.forward("x")),
            asyncio.create_task(connection.forward("x")),
        ]
        await server.has("x", 2)
        await server.kill()
        for each in asking:
            with pytest.raises(ConnectionClosed):
                await each
            assert not connection.up
        assert await lost.get() == connection.reason
        with pytest.raises(ConnectionClosed, match="Server shop is gone"):
            await connection.forward("x")
        connection.notify("notifications/unheard")
        assert server.starts == 1


async def test_a_server_that_goes_is_reached_again_and_brought_up_to_date():
    server = ScriptedServer({**ADDING, "x": {"n": 1}})
    back = asyncio.Event()
    async with server.negotiated(reconnect=True, on_restored=back.set) as connection:
        await connection.tools()
        await server.kill()
        await back.wait()
        assert connection.up
        assert server.starts == 2
        await server.has("notifications/initialized")
        assert not connection.current
        assert await connection.forward("x") == b'{"n": 1}'


async def test_it_is_up_only_once_it_knows_what_it_must():
    server = ScriptedServer({**ADDING, "x": {}})
    go_on = asyncio.Event()

    async def resume(connection: ServerConnection) -> None:
        await connection.forward("x")
        await go_on.wait()

    listener = Listener(resume=resume)
    connection = ServerConnection("shop", server.connect, listener, reconnect=True)
    await connection.start(resume=True)
    await server.has("x")
    assert not connection.up
    assert not await connection.wait_up(0)
    go_on.set()
    assert await connection.wait_up(10)
    await connection.aclose()
    assert not connection.up


async def test_a_server_that_cannot_be_brought_up_to_date_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(module, "_BACKOFF", (0.0,))
    server = ScriptedServer(ADDING)
    reasons: list[str] = []

    async def resume(connection: ServerConnection) -> None:
        if server.starts == 1:
            raise ProtocolError(-1, "not today")
        if server.starts == 2:
            server.answers["initialize"] = None
            await connection.negotiate(timeout=0.05)

    listener = Listener(resume=resume, on_lost=reasons.append)
    connection = ServerConnection("shop", server.connect, listener, reconnect=True)
    await connection.start(resume=True)
    assert await connection.wait_up(10)
    assert reasons == ["not today (-1)", "it did not answer within 0.05 s"]
    await connection.aclose()


async def test_one_that_cannot_be_reached_is_an_error_or_tried_later(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(module, "_BACKOFF", (0.0,))
    server = ScriptedServer(ADDING)
    server.broken = True
    connection = ServerConnection("shop", server.connect, reconnect=True)
    with pytest.raises(NotConnected, match="it is broken"):
        await connection.start()
    connection.start_later("it is broken")
    assert connection.reason == "it is broken"
    server.broken = False
    assert await connection.wait_up(10)
    await connection.aclose()
    with pytest.raises(ConnectionClosed, match="this side closed the connection"):
        await connection.forward("x")


async def test_a_server_that_never_comes_up_is_not_waited_for_and_one_that_did_is(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(module, "_BACKOFF", (0.0,))
    server = ScriptedServer(ADDING)
    server.broken = True
    connection = ServerConnection("shop", server.connect, reconnect=True)
    connection.start_later("it is broken")
    assert not await connection.wait_up(None, tries=3)
    server.broken = False
    assert await connection.wait_up(None, tries=4)  # it is started again all the same
    await connection.negotiate(timeout=10)
    server.broken = True
    await server.kill()
    waiting = asyncio.ensure_future(connection.wait_up(None, tries=3))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    server.broken = False
    assert await waiting
    await connection.aclose()


# --- the handshake ---------------------------------------------------------------------------


async def test_a_server_of_the_handshake_era_is_told_that_views_can_be_shown():
    server = ScriptedServer(ADDING)
    async with server.negotiated() as connection:
        assert connection.protocol_version == "2025-11-25"
        assert connection.capabilities == server.capabilities
        await server.has("notifications/initialized")
        [initialize] = server.sent("initialize")
        assert initialize["params"]["capabilities"] == {"extensions": UI}
        await connection.tools()
        assert "params" not in server.sent("tools/list")[0]
        assert isinstance(connection, Server)


async def test_a_2026_server_gets_an_envelope_in_each_request_and_is_listened_to():
    server = ScriptedServer({**ADDING, "subscriptions/listen": None}, modern=True)
    changed: asyncio.Queue[str] = asyncio.Queue()
    async with server.negotiated() as connection:
        connection.subscribe(changed.put_nowait)
        assert connection.protocol_version == "2026-07-28"
        listen = await server.has("subscriptions/listen")
        wanted = {f"{kind}ListChanged": True for kind in ("tools", "resources", "prompts")}
        assert listen["params"]["notifications"] == wanted
        meta = {"_meta": {SUBSCRIPTION_KEY: listen["id"]}}
        assert not connection.current
        await server.notify("notifications/subscriptions/acknowledged", meta)
        assert list(await connection.tools()) == ["add"]
        assert connection.current
        [request] = server.sent("tools/list")
        envelope = request["params"]["_meta"]
        assert envelope[PROTOCOL_KEY] == "2026-07-28"
        assert envelope[CAPABILITIES_KEY] == {"extensions": UI}
        await server.notify(TOOLS_CHANGED, meta)
        assert await changed.get() == TOOLS_CHANGED
        assert not connection.current
        assert server.sent("initialize") == []


async def test_a_subscription_that_is_lost_is_opened_again_and_everything_may_have_changed(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(module, "_BACKOFF", (0.0,))
    server = ScriptedServer({**ADDING, "subscriptions/listen": None}, modern=True)
    changed: asyncio.Queue[str] = asyncio.Queue()
    async with server.negotiated() as connection:
        connection.subscribe(changed.put_nowait)
        for turn in (1, 2, 3):
            listen = await server.has("subscriptions/listen", turn)
            meta = {"_meta": {SUBSCRIPTION_KEY: listen["id"]}}
            await server.notify("notifications/subscriptions/acknowledged", meta)
            if turn == 1:
                broken = {"code": -32000, "message": "stream broke"}
                await server.say({"id": listen["id"], "error": broken})
            elif turn == 2:
                await server.notify("notifications/cancelled", {"requestId": listen["id"]})
        told = {await changed.get() for _ in range(3)}
        kinds = ("tools", "resources", "prompts")
        assert told == {f"notifications/{kind}/list_changed" for kind in kinds}


@pytest.mark.parametrize(
    "ending", [{"resultType": "complete"}, {"error": {"code": 1, "message": ""}}]
)
async def test_a_server_that_will_not_be_listened_to_is_listed_again_when_asked(
    ending: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("transom.connections.relisting.RELIST_AFTER", 0.0)
    server = ScriptedServer({**ADDING, "subscriptions/listen": ending}, modern=True)
    async with server.negotiated() as connection:
        await server.has("subscriptions/listen")
        await connection.tools()
        await connection.tools()
        assert not connection.current
        assert len(server.sent("tools/list")) == 2
        assert len(server.sent("subscriptions/listen")) == 1


async def test_a_server_that_answers_discover_late_is_asked_again():
    asked = 0

    def discover(_: Any) -> Any:
        nonlocal asked
        asked += 1
        return None if asked == 1 else server._discover({})

    refused = {"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}}
    server = ScriptedServer(
        {
            **ADDING,
            "server/discover": discover,
            "initialize": {"error": refused},
            "subscriptions/listen": None,
        }
    )
    async with server.connection() as connection:
        await connection.negotiate(timeout=1)
        assert connection.protocol_version == "2026-07-28"


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"initialize": None}, "it did not answer within 0.1 s"),
        ({"initialize": {"error": {"code": -1, "message": "go away"}}}, "refused .*go away"),
        ({"initialize": {"protocolVersion": "1999-01-01"}}, "version '1999-01-01'"),
        ({"initialize": {"protocolVersion": 5}}, "without a protocolVersion"),
        (
            {"initialize": {"protocolVersion": "2025-11-25", "capabilities": []}},
            "cannot be read",
        ),
        (
            {
                "server/discover": {
                    "error": {
                        "code": -32022,
                        "message": "new",
                        "data": {"supported": ["2030-01-01"]},
                    }
                }
            },
            "refused .*new",
        ),
    ],
)
async def test_a_handshake_that_fails_says_why(answers: dict[str, Any], message: str):
    async with ScriptedServer({**ADDING, **answers}).connection() as connection:
        with pytest.raises(NotConnected, match=message):
            await connection.negotiate(timeout=0.1 if "within 0.1 s" in message else 30)


async def test_a_server_that_dies_in_the_handshake_is_not_connected():
    server = ScriptedServer({**ADDING, "initialize": None})
    async with server.connection() as connection:
        negotiating = asyncio.create_task(connection.negotiate())
        await server.has("initialize")
        await server.kill()
        with pytest.raises(NotConnected, match="closed"):
            await negotiating


# --- as a server -----------------------------------------------------------------------------


async def test_a_proxys_handshake_makes_it_a_server_too():
    server = ScriptedServer(
        {**ADDING, "x": {"resultType": "complete", "ttlMs": 1, "cacheScope": "private", "n": 1}}
    )
    async with server.connection() as connection:
        assert await connection.tools() == {}
        envelope = {PROTOCOL_KEY: Raw(b'"2026-07-28"'), CAPABILITIES_KEY: Raw(b"{}")}
        connection.introduced({"tools": {}}, lambda: envelope)
        assert list(await connection.tools()) == ["add"]
        assert await connection.request("x", {"a": 1}) == b'{"n":1}'
        params = server.sent("x")[0]["params"]
        assert params["a"] == 1
        assert params["_meta"] == {
            PROTOCOL_KEY: "2026-07-28",
            CAPABILITIES_KEY: {"extensions": UI},
        }


async def test_a_list_is_read_page_by_page_and_ends_when_it_goes_in_circles():
    def page(params: Any) -> Any:
        cursor = (params or {}).get("cursor", "")
        return {
            "tools": [tool(f"t{cursor}")],
            "nextCursor": "ab"[len(cursor) : len(cursor) + 1] or "b",
        }

    server = ScriptedServer({**ADDING, "tools/list": page})
    async with server.negotiated() as connection:
        entries = await connection.list_all("tools/list", "tools")
        assert [json.loads(bytes(each))["name"] for each in entries] == ["t", "ta", "tb"]


@pytest.mark.parametrize("listed", [{}, {"tools": "x"}, {"tools": {"a": 1}}])
async def test_a_list_that_is_none_is_an_invalid_result(listed: Any):
    async with ScriptedServer({**ADDING, "tools/list": listed}).negotiated() as connection:
        with pytest.raises(InvalidResult, match="Invalid result for tools/list from the server"):
            await connection.tools()


async def test_a_server_that_wants_input_which_nobody_can_give_is_an_error_with_its_result():
    wanted = {"resultType": "input_required", "inputRequests": {"a": {"method": "x"}}}
    async with ScriptedServer({**ADDING, "tools/call": wanted}).negotiated() as connection:
        with pytest.raises(InputRequired) as caught:
            await connection.request("tools/call", {"name": "add"})
        assert json.loads(caught.value.result) == wanted


async def test_a_server_that_is_not_ready_yet_is_asked_again_with_its_state():
    def call(params: Any) -> Any:
        if "requestState" not in params:
            return {"resultType": "input_required", "requestState": "s1"}
        return {"content": [], "structuredContent": [params["requestState"]]}

    async with ScriptedServer({**ADDING, "tools/call": call}).negotiated() as connection:
        result = json.loads(await connection.request("tools/call", {"name": "add"}))
        assert result == {"content": [], "structuredContent": {"result": ["s1"]}}


async def test_a_call_whose_headers_do_not_fit_is_sent_again_after_listing():
    calls: list[Any] = []

    def call(params: Any) -> Any:
        calls.append(params)
        return {"error": {"code": -32020, "message": "header"}} if len(calls) == 1 else {}

    server = ScriptedServer({**ADDING, "tools/call": call})
    async with server.negotiated() as connection:
        assert await connection.request("tools/call", {"name": "add"}) == b"{}"
        assert len(calls) == 2
        assert len(server.sent("tools/list")) == 1


# --- tasks of the extension ------------------------------------------------------------------

TASKS = "io.modelcontextprotocol/tasks"
STAMPS = {"createdAt": "2026-08-01T12:00:00Z", "lastUpdatedAt": "2026-08-01T12:00:00Z"}
MADE = {"taskId": "t", "status": "working", **STAMPS, "ttlMs": 9, "pollIntervalMs": 20}


def worker(*states: dict[str, Any], **answers: Any) -> ScriptedServer:
    """A 2026-07-28 server whose `add` becomes a task, which goes through these states."""
    left = list(states)
    return ScriptedServer(
        {
            **ADDING,
            "tools/call": {**MADE, "resultType": "task"},
            "tasks/get": lambda _: {**MADE, **left.pop(0), "resultType": "complete"},
            "tasks/cancel": {"resultType": "complete"},
            "tasks/update": {"resultType": "complete"},
            **answers,
        },
        modern=True,
    )


DONE = {"status": "completed", "result": {"content": [], "isError": True}}


async def test_a_task_of_the_extension_is_asked_for_and_followed_as_before_it():
    server = worker({}, {}, DONE, {"status": "cancelled"})
    async with server.negotiated() as connection:
        made = await connection.request("tools/call", {"name": "add", "task": {"ttl": 5}})
        old = {"taskId": "t", "status": "working", **STAMPS, "ttl": 9, "pollInterval": 20}
        assert json.loads(made) == {"task": old}
        [call] = server.asked("tools/call")
        assert "task" not in call
        assert TASKS in call["_meta"][CAPABILITIES_KEY]["extensions"]
        assert json.loads(await connection.request("tasks/get", {"taskId": "t"})) == old
        result = await connection.request("tasks/result", {"taskId": "t"})
        assert json.loads(result) == DONE["result"]
        ended = json.loads(await connection.request("tasks/cancel", {"taskId": "t"}))
        assert ended == {**old, "status": "cancelled"}
        for asked in server.asked("tasks/get"):
            assert asked["taskId"] == "t"
            assert TASKS in asked["_meta"][CAPABILITIES_KEY]["extensions"]


async def test_a_server_that_makes_a_task_unasked_is_waited_for_and_called_once():
    server = worker({}, DONE)
    async with server.negotiated() as connection:
        result = await connection.request("tools/call", {"name": "add"})
        assert json.loads(result) == DONE["result"]
        [call] = server.asked("tools/call")
        assert TASKS not in call["_meta"][CAPABILITIES_KEY]["extensions"]


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ({"status": "failed", "error": {"code": -7, "message": "no"}}, "no"),
        ({"status": "failed"}, "The task failed"),
        ({"status": "failed", "error": {"code": True, "message": 5}}, "The task failed"),
        ({"status": "cancelled"}, "The task was cancelled"),
        ({"status": "input_required", "inputRequests": {"a": {}}}, "wants input"),
    ],
)
async def test_a_task_that_has_no_result_says_why(state: dict[str, Any], error: str):
    async with worker(state).negotiated() as connection:
        with pytest.raises(ProtocolError, match=error):
            await connection.request("tasks/result", {"taskId": "t"})


@pytest.mark.parametrize("state", [{"status": "completed"}, {"status": 5}, {"status": "lost"}])
async def test_the_state_of_a_task_that_makes_no_sense_is_an_invalid_result(state: dict[str, Any]):
    async with worker(state).negotiated() as connection:
        with pytest.raises(InvalidResult):
            await connection.request("tasks/result", {"taskId": "t"})


@pytest.mark.parametrize(("method", "id"), [("tasks/list", "t"), ("tasks/get", 5)])
async def test_what_the_extension_does_not_have_is_refused(method: str, id: Any):
    async with worker().negotiated() as connection:
        with pytest.raises(ProtocolError, match="Method not found"):
            await connection.request(method, {"taskId": id})
