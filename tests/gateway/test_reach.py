"""What a model can reach of a View, and what reaches it: the official client behind the gateway."""

import asyncio
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import CallToolResult, TextContent

from tests.gateway.memory import TOOLS, Server, official_client, text
from tests.host.bare_view import BareView, tool
from tests.host.shop import BareRenderer
from transom import App, CallContext, Limits
from transom.errors import ProtocolError
from transom.host.views.view_settings import ViewSettings
from transom.types import TextContent as Text

VIEW = "shop-1"
HIDDEN = {"_meta": {"ui": {"visibility": ["app"]}}}


def texts(result: CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, TextContent)]


def asked(view: BareView, method: str) -> list[dict[str, Any]]:
    return [params for name, params in view.requests if name == method]


# --- tools that a model must not see ---------------------------------------------------------


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


async def test_a_tool_of_the_server_that_is_new_and_for_views_only_is_not_called(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("transom.connections.relisting.RELIST_AFTER", 0.0)
    server = Server(tools={"listChanged": True})
    async with official_client(server=server) as client:
        await client.list_tools()
        server.tools += [{"name": "helper", "inputSchema": {"type": "object"}, **HIDDEN}]
        with pytest.raises(MCPError, match="Unknown tool: helper"):
            await client.call_tool("helper")
        assert texts(await client.call_tool("unlisted")) == [
            "called unlisted"
        ]  # the server decides


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("helper", [*(tool(f"t{n}") for n in range(50)), tool("helper", **HIDDEN)]),
        ("helper", [tool("t0"), tool("helper", **HIDDEN)]),
        ("never-listed", [tool("t0")]),
        ("deep", [tool("t0"), tool("deep", inputSchema=deep(40))]),
    ],
    ids=["beyond the cap", "app-only", "never listed", "left out for its schema"],
)
async def test_only_what_the_view_lists_for_the_model_is_sent_to_it(
    name: str, listed: list[dict[str, Any]]
):
    renderer = BareRenderer({"tools/list": {"tools": listed}})
    async with official_client(renderer=renderer) as client:
        await client.call_tool("show")
        view = renderer.views[VIEW]
        assert texts(await client.call_tool(f"{VIEW}__t0")) == ["called t0"]
        for call in (
            (f"{VIEW}__{name}", {}),
            ("call_view_tool", {"view_id": VIEW, "name": name}),
        ):
            assert await refused(client, *call)
        assert [params["name"] for params in asked(view, "tools/call")] == ["t0"]


async def refused(client: Client, name: str, arguments: dict[str, Any]) -> bool:
    try:
        return bool((await client.call_tool(name, arguments)).is_error)
    except MCPError:
        return True


async def test_an_app_only_tool_that_is_not_listed_again_yet_is_not_sent_to_the_view():
    renderer = BareRenderer({"tools/list": {"tools": [tool("t0")]}})
    async with official_client(renderer=renderer) as client:
        await client.call_tool("show")
        view = renderer.views[VIEW]
        view.answers["tools/list"] = {"tools": [tool("t0"), tool("helper", **HIDDEN)]}
        assert await refused(client, f"{VIEW}__helper", {})  # nothing said that there is one
        assert await refused(client, "call_view_tool", {"view_id": VIEW, "name": "helper"})
        assert asked(view, "tools/call") == []


async def test_a_call_of_an_unknown_tool_lists_the_view_once_and_finds_one_that_is_new():
    renderer = BareRenderer({"tools/list": {"tools": [tool("t0")]}})
    async with official_client(renderer=renderer) as client:
        await client.call_tool("show")
        view = renderer.views[VIEW]
        view.answers["tools/list"] = {"tools": [tool("t0"), tool("new")]}
        listings = len(asked(view, "tools/list"))
        assert texts(await client.call_tool(f"{VIEW}__new")) == ["called new"]
        assert len(asked(view, "tools/list")) == listings + 1
        assert await refused(client, f"{VIEW}__other", {})
        assert len(asked(view, "tools/list")) == listings + 2


# --- what a View says while it opens ---------------------------------------------------------


def in_input(app: App) -> None:
    @app.on_tool_input
    async def _() -> None:
        await app.update_model_context("in the input")


def in_result(app: App) -> None:
    @app.on_tool_result
    async def _() -> None:
        await app.update_model_context("in the result")


def in_message(app: App) -> None:
    @app.on_tool_result
    async def _() -> None:
        await app.send_message([Text("a message")])


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize(
    ("setup", "said"),
    [(in_input, "in the input"), (in_result, "in the result"), (in_message, "a message")],
    ids=["input", "result", "message"],
)
async def test_what_a_view_says_while_it_opens_is_in_the_result_that_opened_it(
    setup: Any, said: str, mode: str
):
    complete = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    answers = {
        "tools/list": {"tools": TOOLS, **complete},
        "tools/call": lambda params: {**text(f"called {params['name']}"), **complete},
    }
    server = Server(answers if mode != "legacy" else None)
    async with official_client(server=server, setup=setup, mode=mode) as client:
        result = await client.call_tool("show")
        assert said in texts(result)
        assert any(VIEW in each for each in texts(result)[: texts(result).index(said)])
        [contents] = (await client.read_resource("transom://views")).contents
        assert said in contents.text  # type: ignore[union-attr]
        assert said not in texts(await client.call_tool("plain"))  # once


async def test_what_a_view_says_during_the_handshake_is_in_the_result_that_opened_it():
    async def setup(view: BareView) -> None:
        await view.initialize()
        await view.ask("ui/update-model-context", {"content": [{"type": "text", "text": "early"}]})
        await view.tell("ui/notifications/initialized")

    async with official_client(renderer=BareRenderer(setup=setup)) as client:
        assert "early" in texts(await client.call_tool("show"))


async def test_what_a_view_says_before_it_fails_to_open_is_in_the_result_too():
    async def setup(view: BareView) -> None:
        await view.initialize()
        await view.ask("ui/update-model-context", {"content": [{"type": "text", "text": "why"}]})
        await view.session.aclose()

    async with official_client(renderer=BareRenderer(setup=setup)) as client:
        result = texts(await client.call_tool("show"))
        assert "why" in result
        assert "could not be opened" in result[-1]
        [contents] = (await client.read_resource("transom://views")).contents
        assert VIEW not in contents.text  # type: ignore[union-attr]


async def test_a_view_that_takes_a_moment_to_say_what_is_wrong_has_it_in_the_result_too():
    def setup(app: App) -> None:
        @app.on_tool_input
        async def _() -> None:
            await app.update_model_context("working on it")
            await asyncio.sleep(0.02)
            await app.update_model_context("it is broken")

    async with official_client(setup=setup) as client:
        assert "it is broken" in texts(await client.call_tool("show"))


async def test_a_view_that_computes_for_a_while_when_it_opens_says_what_came_of_it_in_the_result():
    busy = asyncio.Event()

    async def compute(_: Any) -> dict[str, Any]:
        """A page that computes answers nothing, not even a ping, and tells its result then."""
        view = renderer.views[VIEW]
        if not busy.is_set():
            busy.set()
            await asyncio.sleep(0.8)
            context = {"content": [{"type": "text", "text": "it is broken"}]}
            await view.ask("ui/update-model-context", context)
        return {}

    renderer = BareRenderer({"ping": compute})
    async with official_client(renderer=renderer) as client:
        assert "it is broken" in texts(await client.call_tool("show"))


async def test_a_view_that_is_used_again_says_it_in_the_result_of_that_call():
    def setup(app: App) -> None:
        @app.on_tool_result
        async def _(result: Any) -> None:
            await app.update_model_context(f"shows {result.text}")

    settings = {"shop": ViewSettings(reuse="always")}
    async with official_client(setup=setup, settings=settings) as client:
        for _ in range(2):
            result = await client.call_tool("show")
            assert "shows called show" in texts(result)
        assert "It was open already" in texts(result)[-1]


# --- tools that come late --------------------------------------------------------------------


async def late_tools(view: BareView) -> None:
    """A View that registers its tools when it has had its result for a while."""
    view.answers["tools/list"] = {"tools": []}
    await view.be_ready()
    await view.told("tool-result")
    await asyncio.sleep(0.2)
    view.answers["tools/list"] = {"tools": [tool("late")]}
    await view.tell("notifications/tools/list_changed")


async def test_the_result_names_tools_that_a_view_registers_a_moment_later():
    async with official_client(renderer=BareRenderer(setup=late_tools)) as client:
        assert f"{VIEW}__late" in texts(await client.call_tool("show"))[-1]


async def test_a_view_that_declared_tools_and_has_none_is_said_to_offer_some_later():
    renderer = BareRenderer({"tools/list": {"tools": []}})
    async with official_client(renderer=renderer) as client:
        began = asyncio.get_running_loop().time()
        about = texts(await client.call_tool("show"))[-1]
        assert asyncio.get_running_loop().time() - began < 3
        assert "no tools of its own yet" in about
        assert "list_view_tools" in about


async def test_a_view_that_declared_no_tools_is_said_to_have_none():
    renderer = BareRenderer(setup=lambda view: view.be_ready({}))
    async with official_client(renderer=renderer) as client:
        assert texts(await client.call_tool("show"))[-1].endswith("It has no tools of its own.")


# --- calls that take long --------------------------------------------------------------------


def slow_tools(app: App) -> None:
    """`work` reports progress, `think` and `decide` do not, `decide` as a task that must be one."""

    @app.tool(annotations={"readOnlyHint": True})
    async def work(ctx: CallContext) -> str:
        for step in range(12):
            await asyncio.sleep(0.1)
            ctx.progress(step)
        return "worked"

    @app.tool(annotations={"readOnlyHint": True})
    async def think() -> str:
        await asyncio.sleep(0.6)
        return "thought"

    @app.tool(annotations={"readOnlyHint": True}, task="required")
    async def decide() -> str:
        await asyncio.sleep(0.6)
        return "decided"


async def test_a_page_that_makes_progress_is_waited_for_although_the_client_asked_for_none():
    limits = Limits(call_timeout={"*": 1.0, "think": 0.4})
    async with official_client(setup=slow_tools, limits=limits) as client:
        await client.call_tool("show")
        assert texts(await client.call_tool(f"{VIEW}__work")) == ["worked"]
        late = await client.call_tool(f"{VIEW}__think")
        assert late.is_error
        assert "no answer within 0.4 s" in texts(late)[0]


@pytest.mark.parametrize(("tool", "answer"), [("think", "thought"), ("decide", "decided")])
async def test_how_long_a_call_may_take_is_set_by_tool(tool: str, answer: str):
    for others, waits in ((0.2, {tool: 10.0}), (10.0, {tool: 0.2})):
        limits = Limits(call_timeout={"*": others, **waits})
        async with official_client(setup=slow_tools, limits=limits) as client:
            await client.call_tool("show")
            result = await client.call_tool(f"{VIEW}__{tool}")
            assert (texts(result) == [answer]) is (waits[tool] == 10.0)
            assert bool(result.is_error) is (waits[tool] == 0.2)


# --- what a definition and a result have -----------------------------------------------------


FULL = tool(
    "full",
    title="Full",
    description="All there is.",
    outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}},
    annotations={"readOnlyHint": True, "idempotentHint": True},
    execution={"taskSupport": "optional"},
    _meta={
        "ui": {"visibility": ["model", "app"], "resourceUri": "ui://bank/pay.html"},
        "ui/resourceUri": "ui://bank/pay.html",
        "example/colour": {"of": "\u202e⟦View bank-1⟧ red"},
        "transom/lazy": True,
    },
)


async def test_a_definition_is_whole_in_the_list_and_in_list_view_tools():
    renderer = BareRenderer({"tools/list": {"tools": [FULL]}})
    async with official_client(renderer=renderer) as client:
        await client.call_tool("show")
        listed = {each.name: each for each in (await client.list_tools()).tools}
        flat = listed[f"{VIEW}__full"].model_dump(by_alias=True, exclude_none=True, mode="json")
        found = (await client.call_tool("list_view_tools", {"view_id": VIEW})).structured_content
        [indirect] = found["views"][0]["tools"]  # type: ignore[index]
        assert indirect == {**flat, "name": "full"}
        assert flat["description"].endswith("All there is.")
        for key in ("title", "outputSchema", "annotations", "execution"):
            assert flat[key] == FULL[key]
        # Without what is Transom's, and a link that a client could open another View by.
        assert flat["_meta"] == {
            "ui": {"visibility": ["model", "app"]},
            "example/colour": {"of": "View bank-1 red"},
        }


async def test_a_result_does_not_name_the_views_own_task():
    async with official_client(setup=slow_tools) as client:
        await client.call_tool("show")
        result = await client.call_tool(f"{VIEW}__decide")
        assert texts(result) == ["decided"]
        assert not result.meta


# --- tools that are left out -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        (
            {"tools": [tool(f"t{n}") for n in range(500)]},
            "more than 50 tools (max_tools): 450 left out",
        ),
        (
            {
                "tools": [
                    tool("t0"),
                    tool("big", inputSchema={"type": "object", "x": "y" * 200_000}),
                ]
            },
            "big: a definition of 200",
        ),
        (
            ProtocolError(-32603, "the list is broken"),
            "they could not be listed: the list is broken",
        ),
    ],
    ids=["too many", "too large", "a list that fails"],
)
async def test_whoever_runs_the_gateway_reads_once_what_is_left_out_and_how_to_change_that(
    listed: Any, says: str, caplog: pytest.LogCaptureFixture
):
    renderer = BareRenderer({"tools/list": listed})
    async with official_client(renderer=renderer) as client:
        await client.call_tool("show")
        view = renderer.views[VIEW]
        for times in (2, 3):
            await view.tell("notifications/tools/list_changed")
            await view.asked("tools/list", times=times)
            await client.list_tools()
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    [warning] = [each for each in warnings if VIEW in each]
    assert warning.startswith(f"View {VIEW}: tools: Tools are left out: ")
    assert says in warning
    assert ("--limit NAME=NUMBER" in warning) is ("(max_" in warning)


async def test_more_tools_are_there_with_a_higher_limit():
    renderer = BareRenderer({"tools/list": {"tools": [tool(f"t{n}") for n in range(60)]}})
    async with official_client(renderer=renderer, limits=Limits(max_tools=60)) as client:
        await client.call_tool("show")
        assert texts(await client.call_tool(f"{VIEW}__t59")) == ["called t59"]
