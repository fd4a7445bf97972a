"""Through the gateway: an open View is used for another call, and calls that open none."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.memory import OPENS, Server, gateway, text, words
from tests.host.shop import Heard
from transom import Allow, App, Deny
from transom.cli.options import find_command
from transom.errors import UsageError
from transom.gateway.configuration.config import read_config
from transom.host.views.view_settings import ViewSettings

AGAIN = "It was open already, and shows this call now."
ASK = {"shop": ViewSettings(open="ask")}


def reusing(answers: Any = None, reuse: str = "always") -> Server:
    server = Server(answers)
    server.tools[0] = {**OPENS, "_meta": {**OPENS["_meta"], "transom/reuse": reuse}}
    return server


class Log(Heard):
    """What the Views of a test got, as `gateway(setup=log.watch)` has it."""

    def watch(self, app: App) -> None:
        app.on_tool_input = lambda arguments: self.append(("input", arguments))
        app.on_tool_result = lambda result: self.append(("result", result.text))
        app.on_tool_cancelled = lambda reason: self.append(("cancelled", reason))


# --- an open View ----------------------------------------------------------------------------


@pytest.mark.parametrize("modern", [False, True])
async def test_an_open_view_is_used_and_the_result_names_it(modern: bool):
    log = Log()
    async with gateway(reusing(), setup=log.watch, modern=modern) as at:
        assert AGAIN not in words(await at.open(n=1))[1]
        about = words(await at.call("show", n=2))[1].splitlines()
        assert about[:2] == [
            "View shop-1 is open, and the user sees it at http://stage.test/",
            AGAIN,
        ]
        await log.has(("result", "called show"), 2)
        assert [entry for entry in log if entry[0] == "input"] == [
            ("input", {"n": 1}),
            ("input", {"n": 2}),
        ]
        assert [what for what, _ in log] == ["input", "result"] * 2


async def test_the_gateways_setting_comes_before_the_servers():
    for reuse, used in (("never", "shop-2"), ("arguments", "shop-1")):
        async with gateway(reusing(), settings={"shop": ViewSettings(reuse=reuse)}) as at:
            await at.open(n=1)
            assert f"View {used} is open" in words(await at.call("show", n=1))[1]
            assert "View shop-3 is open" in words(await at.call("show", n=2))[1] or used == "shop-1"


async def test_calls_at_once_pair_their_inputs_and_results():
    log, held = Log(), {"one": asyncio.Event(), "two": asyncio.Event()}

    async def answer(params: Any) -> Any:
        name = params["arguments"]["n"]
        if name in held:
            await held[name].wait()
        return text(name)

    async with gateway(reusing({"tools/call": answer}), setup=log.watch) as at:
        await at.open(n="zero")
        one = await at.begin("tools/call", {"name": "show", "arguments": {"n": "one"}})
        await log.has(("input", {"n": "one"}))
        two = await at.begin("tools/call", {"name": "show", "arguments": {"n": "two"}})
        held["two"].set()
        assert AGAIN in words((await two.answer)["result"])[1]
        held["one"].set()
        await one.answer
        await log.has(("result", "one"))
        assert log[2:] == [
            ("input", {"n": "one"}),
            ("cancelled", "It is used for another call"),
            ("input", {"n": "two"}),
            ("result", "two"),
            ("input", {"n": "one"}),
            ("result", "one"),
        ]


async def test_a_call_that_fails_is_told_to_the_view_that_is_used():
    log = Log()

    def answer(params: Any) -> Any:
        fails = params["arguments"].get("fails")
        return {"error": {"code": -32603, "message": "no"}} if fails else text("fine")

    async with gateway(reusing({"tools/call": answer}), setup=log.watch) as at:
        await at.open()
        assert (await at.call("show", fails=True))["message"] == "no"
        await log.has(("cancelled", "The call failed"))
        assert AGAIN in words(await at.call("show"))[1]


# --- calls that open none --------------------------------------------------------------------


async def test_a_call_may_say_that_it_opens_no_view():
    async with gateway() as at:
        await at.tools()
        call = {"name": "show", "_meta": {"transom/open": False}}
        assert words(await at.ask("tools/call", call)) == ["called show"]
        assert at.shop.made == []
        assert "View shop-1 is open" in words(await at.call("show"))[1]


@pytest.mark.parametrize("setting", ["never", {"show": "never"}, {"*": "never", "x": "always"}])
async def test_a_tool_may_be_set_to_open_no_view(setting: Any):
    async with gateway(settings={"shop": ViewSettings(open=setting)}) as at:
        assert words(await at.open()) == ["called show"]
        assert at.shop.made == []


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("approval", ["client", "page"])
async def test_the_user_is_asked_on_the_page_before_a_view_opens(modern: bool, approval: Any):
    async with gateway(settings=ASK, approval=approval, modern=modern) as at:
        at.screen.decision = Deny("not now")
        done, about = words(await at.open(n=1))
        assert (done, about) == (
            "called show",
            "The View of this tool could not be shown: show opened no View: not now",
        )
        at.screen.decision = Allow()
        assert "View shop-1 is open" in words(await at.call("show"))[1]
        [first, _] = at.screen.asked
        assert (first.opens, first.tool.name, first.arguments) == (True, "show", {"n": 1})


async def test_the_user_is_asked_through_the_client_before_a_view_opens():
    answers = {"elicitation/create": lambda _: {"action": "accept", "content": {"always": True}}}
    options: Any = {"approval": "elicit", "answers": answers, "capabilities": {"elicitation": {}}}
    async with gateway(settings=ASK, **options) as at:
        assert "View shop-1 is open" in words(await at.open(n=1))[1]
        assert "View shop-2 is open" in words(await at.call("show"))[1]
        [question] = at.client.requests("elicitation/create")
        assert question["message"].splitlines() == [
            "May show of server shop open a View? It is called in any case, with these arguments:",
            '{"n":1}',
            "The server describes it so: Opens a View.",
        ]
        assert at.screen.asked == []


async def test_a_2026_07_28_client_is_asked_on_the_page():
    options: Any = {"approval": "elicit", "capabilities": {"elicitation": {}}, "modern": True}
    async with gateway(settings=ASK, **options) as at:
        at.screen.decision = Allow()
        assert "View shop-1 is open" in words(await at.open())[1]
        assert len(at.screen.asked) == 1


async def test_where_nobody_may_be_asked_no_view_opens():
    async with gateway(settings=ASK, approval="never") as at:
        assert "--approve never" in words(await at.open())[1]
        assert at.screen.asked == []


async def test_a_question_is_withdrawn_when_the_call_is_cancelled():
    asking, withdrawn = asyncio.Event(), asyncio.Event()

    async def ask(_: Any) -> Any:
        asking.set()
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()

    async with gateway(settings=ASK, approval="page") as at:
        at.screen.ask = ask
        await at.tools()
        call = await at.begin("tools/call", {"name": "show"})
        await asking.wait()
        assert at.server.now.requests("tools/call") == []
        await at.client.tell("notifications/cancelled", {"requestId": call.id})
        await withdrawn.wait()
        assert words(await at.call("plain")) == ["called plain"]
        assert at.shop.made == []


# --- how it is set ---------------------------------------------------------------------------


def settings_in(tmp_path: Path, ours: Any) -> Any:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "x", "transom": ours}}}))
    [server] = read_config(file)
    return server.open_views, server.reuse_views


def test_a_configuration_file_sets_it_by_server_and_tool(tmp_path: Path):
    ours = {"open": "ask", "reuse": {"show": "always", "*": "never"}}
    assert settings_in(tmp_path, ours) == ({"*": "ask"}, {"show": "always", "*": "never"})
    assert settings_in(tmp_path, None) == ({}, {})


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        ("always", "'transom' must be an object"),
        ({"opens": "ask"}, "'transom' has no 'opens': it takes open and reuse"),
        ({"open": "no"}, "'open' is one of always, ask, never, not 'no'"),
        ({"open": None}, "'open' is one of always, ask, never, not null"),
        (
            {"reuse": {"show": True}},
            "'reuse' of 'show' is one of never, arguments, always, not true",
        ),
        ({"reuse": ["always"]}, "'reuse' is one of never, arguments, always, not a list"),
    ],
)
def test_what_a_configuration_file_has_wrong_is_named(tmp_path: Path, ours: Any, words: str):
    with pytest.raises(UsageError) as refused:
        settings_in(tmp_path, ours)
    assert words in str(refused.value)


def test_the_command_line_sets_it_for_all_tools_or_for_one():
    line = "gateway --open never --open show=ask --reuse a=b=always -- x --open y"
    command, rest = find_command(line.split())
    options = command.read(rest)
    assert dict(options.open) == {"*": "never", "show": "ask"}
    assert dict(options.reuse) == {"a=b": "always"}
    for wrong in ("sometimes", "show=", "=ask", "show=sometimes"):
        with pytest.raises(UsageError, match="is none of always, ask, never"):
            command.read(["--open", wrong])
