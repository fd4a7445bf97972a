"""A server that goes: every call is answered, it comes back, and knows what it knew."""

import asyncio
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.memory import Gateway, Server, gateway, text, words
from tests.gateway.raw_client import GATEWAY, PYTHON, alive, raw_client
from transom import App
from transom.gateway import members

VIEW = "shop-1"
STANDING = ["show", "plain", "only-model", "list_view_tools", "call_view_tool"]


# --- in memory -------------------------------------------------------------------------------


async def test_every_call_in_flight_is_answered_when_the_server_goes():
    begun = asyncio.Event()

    def setup(app: App) -> None:
        @app.tool(annotations={"readOnlyHint": True})
        async def slow() -> str:
            """Wait for the server."""
            begun.set()
            return (await app.call_server_tool("only-app", {})).text

    async with gateway(setup=setup) as at:
        await at.open()
        at.server.answers.update({"tools/call": None, "resources/read": None, "odd/method": None})
        asked = [
            await at.begin("tools/call", {"name": "plain"}),
            await at.begin("tools/call", {"name": "show"}),
            await at.begin("resources/read", {"uri": "x:y"}),
            await at.begin("odd/method", {}),
        ]
        through_view = await at.begin("tools/call", {"name": f"{VIEW}__slow"})
        await begun.wait()
        server = at.server.now
        await server.until(lambda: len(server.requests("tools/call")) == 4)
        await at.server.kill()
        for each in asked:
            error = (await each.answer)["error"]
            assert error["code"] == -32000
            assert "shop" in error["message"]
        message = await through_view.answer
        assert "error" in message or message["result"]["isError"] is True


async def test_it_comes_back_and_is_told_what_it_was_told_before():
    async with gateway(Server({"logging/setLevel": {}, "resources/subscribe": {}})) as at:
        await at.ask("logging/setLevel", {"level": "debug"})
        await at.ask("resources/subscribe", {"uri": "x:1"})
        await at.ask("resources/subscribe", {"uri": "x:2"})
        first = at.server.now
        await at.server.kill()
        await at.server.started.wait()
        assert await at.call("plain") == text("called plain")
        again = at.server.now
        assert again is not first
        assert again.requests("initialize") == first.requests("initialize")
        assert again.noted("notifications/initialized") == [None]
        assert again.requests("logging/setLevel") == [{"level": "debug"}]
        assert again.requests("resources/subscribe") == [{"uri": "x:1"}, {"uri": "x:2"}]


async def test_an_only_server_whose_introduction_names_no_version_comes_back():
    unversioned = {"capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}}
    async with gateway(Server({"initialize": unversioned})) as at:
        await at.server.kill()
        assert await at.call("plain") == text("called plain")
        assert len(at.server.starts) == 2


async def test_its_views_and_their_tools_are_withdrawn_and_can_be_had_again():
    closed: list[str] = []

    def setup(app: App) -> None:
        app.on_teardown = lambda: closed.append("torn down")

    async with gateway(setup=setup) as at:
        await at.open()
        await at.changed()
        assert f"{VIEW}__read" in await at.tools()
        at.client.notes.clear()
        await at.server.kill()
        await at.changed(2)  # gone, and back
        while await at.tools() != STANDING:
            await at.changed(len(at.client.noted("notifications/tools/list_changed")))
        gone = await at.call(f"{VIEW}__read")
        assert gone["isError"] is True
        assert "server" in words(gone)[0]
        assert "shop-2" in words(await at.call("show"))[-1]
        assert "shop-2__read" in await at.tools()
        assert words(await at.call("shop-2__read")) == ["read"]


@pytest.mark.parametrize("prompts", [{}, {"prompts": {}}])
async def test_only_lists_that_the_server_has_are_told_to_have_changed(prompts: dict[str, Any]):
    async with gateway(Server(**prompts)) as at:
        await at.server.kill()
        await at.changed(2)
        assert await at.call("plain") == text("called plain")
        told = {note["method"] for note in at.client.notes}
        assert ("notifications/prompts/list_changed" in told) is bool(prompts)


async def test_a_request_waits_for_a_server_that_is_being_started():
    async with gateway() as at:
        at.server.broken = True
        await at.server.kill()
        await at.changed()
        asked = await at.begin("tools/call", {"name": "plain"})
        at.server.broken = False
        assert (await asked.answer)["result"] == text("called plain")


async def test_a_tool_called_while_its_server_is_being_started_opens_its_view():
    async with gateway() as at:
        at.server.broken = True
        await at.server.kill()
        await at.changed()
        asked = await at.begin("tools/call", {"name": "show"})
        at.server.broken = False
        told = words((await asked.answer)["result"])
        assert f"View {VIEW} is open" in told[-1]


async def test_a_server_that_does_not_come_back_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(members, "_PATIENCE", 0.05)
    async with gateway() as at:
        at.server.broken = True
        await at.server.kill()
        await at.changed()
        for method, params in (("tools/call", {"name": "plain"}), ("tools/list", {}), ("x/y", {})):
            error = await at.ask(method, params)
            assert error["code"] == -32000
            assert "not running" in error["message"]


async def test_what_the_lost_server_asked_is_cancelled_and_its_answer_goes_nowhere():
    async with gateway() as at:
        at.client.answers["sampling/createMessage"] = None
        await at.server.now.say({"id": 7, "method": "sampling/createMessage", "params": {}})
        await at.client.until(lambda: at.client.asked)
        await at.server.kill()
        await at.client.until(lambda: at.client.noted("notifications/cancelled"))
        [asked] = at.client.asked
        assert at.client.noted("notifications/cancelled")[0]["requestId"] == asked["id"]
        await at.server.started.wait()
        await at.client.say({"id": asked["id"], "result": {"late": True}})
        assert await at.call("plain") == text("called plain")
        assert at.server.now.stray == []


async def test_a_2026_07_28_stream_goes_on_with_the_server_that_came_back():
    key = "io.modelcontextprotocol/subscriptionId"
    server = Server({"subscriptions/listen": None})
    async with gateway(server, modern=True) as at:
        wanted = {"notifications": {"toolsListChanged": True}}
        stream = await at.begin("subscriptions/listen", wanted)
        await server.now.until(lambda: server.now.requests("subscriptions/listen"))
        await server.kill()
        await at.changed(2)
        assert at.client.noted("notifications/tools/list_changed")[0] == {"_meta": {key: stream.id}}
        await server.started.wait()
        await server.now.until(lambda: server.now.requests("subscriptions/listen"))
        [again] = [each for each in server.now.asked if each["method"] == "subscriptions/listen"]
        change = {"_meta": {key: again["id"]}, "odd": 1}
        await server.now.tell("notifications/tools/list_changed", change)
        await at.changed(3)
        told = at.client.noted("notifications/tools/list_changed")[-1]
        assert told == {"_meta": {key: stream.id}, "odd": 1}


async def test_killed_again_and_again_every_call_is_answered():
    async with gateway() as at:
        await at.tools()
        answered = 0

        async def call_on() -> None:
            nonlocal answered
            for number in range(40):
                name = "show" if number % 8 == 0 else "plain"
                message = await (await at.begin("tools/call", {"name": name})).answer
                answered += "result" in message or message["error"]["code"] == -32000

        calling = [asyncio.create_task(call_on()) for _ in range(4)]
        for _ in range(2):
            await at.server.started.wait()
            await at.server.now.until(lambda: len(at.server.now.requests("tools/call")) >= 3)
            await at.server.kill()
        await asyncio.gather(*calling)
        assert answered == 160
        assert len(at.server.starts) == 3


@pytest.mark.parametrize("modern", [False, True])
async def test_a_server_that_hangs_is_restarted_once_a_call_was_given_up(modern: bool):
    server = Server()
    async with gateway(server, modern=modern, hung_after=0.2) as at:
        await at.tools()
        for method, answer in server.answers.items():
            server.answers[method] = partial(in_second_start, server, answer)
        waiting = await at.begin("tools/call", {"name": "plain"})
        await given_up(at)
        server.started.clear()
        error = (await waiting.answer)["error"]
        assert "it has sent nothing for 0.2 s, and hangs" in error["message"]
        await server.started.wait()
        assert words(await at.call("plain")) == ["called plain"]
        assert len(server.starts) == 2
        first = server.starts[0]
        probe = first.requests("server/discover" if modern else "ping")[-1]
        assert ("_meta" in (probe or {})) is modern
        assert not (modern and first.requests("ping"))


async def test_a_server_that_answers_a_ping_is_left_alone_whatever_it_does_not_answer():
    server = Server({"tools/call": None, "ping": {"error": {"code": -32601, "message": "no"}}})
    async with gateway(server, hung_after=0.2) as at:
        for number in range(1, 4):
            await given_up(at)
            await server.now.until(lambda: len(server.now.requests("ping")) == number)  # noqa: B023
            assert await at.ask("resources/list")
        assert len(server.starts) == 1


async def test_a_server_that_sends_anything_does_not_hang():
    server = Server({"tools/call": None, "ping": None})
    async with gateway(server, hung_after=0.4) as at:
        await given_up(at)
        await server.now.until(lambda: server.now.requests("ping"))
        for _ in range(20):  # twice as long
            await server.now.tell("notifications/message", {"level": "info", "data": "busy"})
            await asyncio.sleep(0.04)
        assert len(server.starts) == 1
        server.started.clear()
        await server.started.wait()


async def test_with_0_no_server_is_suspected():
    server = Server({"tools/call": None})
    async with gateway(server, hung_after=0.0) as at:
        await given_up(at)
        assert await at.ask("ping") == {}
        assert len(server.now.requests("ping")) == 1  # the client's
        assert len(server.starts) == 1


def in_second_start(server: Server, answer: Any, params: dict[str, Any]) -> Any:
    if len(server.starts) < 2:
        return None
    return answer(params) if callable(answer) else answer


async def given_up(at: Gateway) -> None:
    """A call that its client cancels when the server has it."""
    server = at.server.now
    had = len(server.requests("tools/call"))
    call = await at.begin("tools/call", {"name": "plain"})
    await server.until(lambda: len(server.requests("tools/call")) > had)
    told = len(server.noted("notifications/cancelled"))
    await at.client.tell("notifications/cancelled", {"requestId": call.id})
    await server.until(lambda: len(server.noted("notifications/cancelled")) > told)


# --- processes -------------------------------------------------------------------------------

CHATTY = """
import json, os, subprocess, sys
child = subprocess.Popen(["sleep", "600"])
with open(sys.argv[1], "a") as pids:
    pids.write(f"{os.getpid()} {child.pid}\\n")
print("Welcome to this server!", flush=True)
os.write(1, b"\\xff\\xfe garbage\\n\\n{}\\n")
for line in sys.stdin:
    message = json.loads(line)
    print("I was asked:", message.get("method"), flush=True)
    if message.get("method") == "die":
        os._exit(3)
    if "id" in message and message.get("method") != "hang":
        result = {"capabilities": {"tools": {}}, "protocolVersion": "2025-11-25"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    if message.get("method") == "leave-me":
        sys.stderr.write("on stderr\\n")
"""


def pids(file: Path) -> list[int]:
    return [int(word) for word in file.read_text().split()]


@pytest.fixture
def chatty(tmp_path: Path) -> list[str]:
    script = tmp_path / "chatty.py"
    script.write_text(CHATTY)
    return [*GATEWAY, "--", PYTHON, str(script), str(tmp_path / "pids")]


@pytest.mark.processes
async def test_nothing_but_protocol_is_on_standard_output_and_garbage_is_ignored(
    chatty: list[str], tmp_path: Path
):
    async with raw_client(chatty) as client:
        answer = await client.ask(1, "initialize", {"capabilities": {}})
        assert "result" in answer
        assert "result" in await client.ask(2, "leave-me")
        assert client.stray == []
        assert client.notes == []
    assert [alive(pid) for pid in pids(tmp_path / "pids")] == [False, False]


@pytest.mark.processes
async def test_a_server_that_dies_says_how_and_comes_back(chatty: list[str], tmp_path: Path):
    async with raw_client(chatty) as client:
        await client.ask(1, "initialize", {"capabilities": {}})
        client.tell("notifications/initialized")
        error = (await client.ask(2, "die"))["error"]
        assert "exited with code 3" in error["message"]
        assert "result" in await client.ask(3, "ping")
        hanging = client.begin(4, "hang")
        await client.ask(5, "ping")
        os.kill(pids(tmp_path / "pids")[2], signal.SIGKILL)
        assert "SIGKILL" in (await hanging)["error"]["message"]
        assert "result" in await client.ask(6, "ping")
    found = pids(tmp_path / "pids")
    assert len(found) == 6
    assert not any(alive(pid) for pid in found)


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_leaves_no_process_behind(
    chatty: list[str], tmp_path: Path, number: signal.Signals
):
    async with raw_client(chatty) as client:
        await client.ask(1, "initialize", {"capabilities": {}})
        client.begin(2, "hang")
        client.process.send_signal(number)
        await client.process.wait()
        assert not any(alive(pid) for pid in pids(tmp_path / "pids"))


@pytest.mark.processes
async def test_a_command_that_cannot_be_started_is_said_so():
    for command in (["no-such-command-anywhere"], ["/"]):
        async with raw_client([*GATEWAY, "--", *command]) as client:
            assert await client.process.wait() == 2


@pytest.mark.processes
async def test_a_client_that_goes_in_the_middle_of_a_call_leaves_no_process(
    chatty: list[str], tmp_path: Path
):
    async with raw_client(chatty) as client:
        await client.ask(1, "initialize", {"capabilities": {}})
        client.begin(2, "hang")
        await client.ask(3, "ping")
        assert await client.aclose() == 0
    assert not any(alive(pid) for pid in pids(tmp_path / "pids"))


def test_the_check_for_life_tells_the_living_from_the_dead():
    assert alive(os.getpid())
    assert not alive(2**22 + 1)
