"""The samples of the documents, as a model has them: four times each.

As they stand with `transom.js`, in Chromium, and translated, as an `App` in Python; through a
`Host`, and through the gateway to a client that has never heard of Views.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.browser.bundling import bundled_page
from tests.browser.test_react import BODY, OURS
from tests.browser.test_react import SAMPLES as REACT
from tests.browser.test_transomjs_samples import (
    page_of,
    page_that_lists_its_form,
    page_with_names_alone,
)
from tests.browser.test_transomjs_webmcp import MUSIC, STRAWMAN
from tests.browser.transomjs_host import PAGES, page_with
from tests.contract import samples
from tests.contract.model import (
    EMPTY,
    HostModel,
    InPython,
    Model,
    Side,
    Through,
    model_of,
    server_of,
    user_of_page,
    user_of_world,
)
from tests.contract.samples import World
from transom.errors import ProtocolError
from transom.server.resource import inline_transom
from transom.web.local.headless import HeadlessRenderer

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.processes]

SAMPLES: dict[str, tuple[Callable[[], str], Any]] = {
    "end to end": (partial(page_of, "end_to_end.ts"), samples.end_to_end),
    "static list": (partial(page_of, "static_list.ts"), samples.static_list),
    "definitions": (partial(page_of, "names_only.ts"), samples.names_only(definitions=True)),
    "names": (page_with_names_alone, samples.names_only(definitions=False)),
    "selection": (partial(page_of, "selection.ts"), samples.selection),
    "errors": (page_that_lists_its_form, samples.errors),
    "registry": (partial(page_of, "dynamic.ts"), samples.dynamic),
    "webmcp": (partial(page_with, MUSIC + STRAWMAN, kind="text/javascript"), samples.webmcp),
    "handles": (partial(page_with, samples.HANDLES), samples.handles),
    "orders": (partial(page_with, samples.ORDERS), samples.orders),
    "stays": (partial(page_with, samples.STAYS), samples.stays),
}

HOOKS = {
    name: (partial(bundled_page, REACT / f"{name}.tsx", alias=OURS, body=BODY), None)
    for name in ("ext_apps", "sunpeak_register", "sunpeak_tools")
}
SAMPLES["orders of the official SDK"] = SAMPLES["orders"]

Show = Callable[..., Awaitable[Model]]


def server_for(sample: str, html: str, file: Path) -> object:
    """The server whose tool opens the sample."""
    if sample == "orders":
        return samples.orders_server(html)
    if sample == "orders of the official SDK":
        file.write_text(inline_transom(html))
        return ["node", str(PAGES / "samples" / "orders_server.mjs"), str(file)]
    return server_of(html)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[HeadlessRenderer]:
    async with HeadlessRenderer() as made:
        yield made


IN_A_PAGE = [
    ("gateway", "transom.js"),
    pytest.param(("Host", "transom.js"), marks=pytest.mark.nightly),
]
IN_PYTHON = [("gateway", "Python"), ("Host", "Python")]


@pytest_asyncio.fixture(params=[*IN_A_PAGE, *IN_PYTHON], ids="-".join, loop_scope="module")
async def show(
    request: pytest.FixtureRequest, browser: HeadlessRenderer, tmp_path: Path
) -> AsyncIterator[Show]:
    """`await show(sample)`: a model in front of it. A gateway has a Host, so its page is enough."""
    through: Through
    side: Side
    through, side = request.param
    async with AsyncExitStack() as stack:

        async def shown(sample: str, **options: Any) -> Model:
            page, start = {**SAMPLES, **HOOKS}[sample]
            if side == "Python":
                world = World()
                renderer, html = InPython(partial(start, world)), EMPTY
                user = user_of_world(world)
            else:
                renderer, html = browser.seat(through), page()
                user = user_of_page(browser, renderer.key_of(Model.view))
            server = server_for(sample, html, tmp_path / "page.html")
            model = await stack.enter_async_context(model_of(through, server, renderer, **options))
            await model.call_any("open_sample")
            model.user = user
            return model

        yield shown


async def test_the_example_from_end_to_end(show: Show):
    model = await show("end to end")
    tools = await model.until("insert-text", "get-selection")
    assert tools["insert-text"].input_schema["required"] == ["text"]
    assert "Insert text at the cursor" in (tools["insert-text"].description or "")
    assert "Read the user's current selection" in (tools["get-selection"].description or "")
    assert (await model.call("insert-text", {"text": "Hello"})).text == "Inserted"
    assert await model.user("written") == ["Hello"]
    refused = await model.call("insert-text", {"text": 5})
    assert refused.is_error
    assert refused.text.startswith("Invalid arguments for tool insert-text:\n- text: ")
    await model.user("select")
    assert (await model.call("get-selection")).text == "Some words to select."


async def test_a_static_list(show: Show):
    model = await show("static list")
    tools = await model.until("get-selection", "insert-text")
    assert tools["insert-text"].input_schema["properties"] == {"text": {"type": "string"}}
    assert (await model.call("insert-text", {"text": "x"})).text == "Inserted"
    assert await model.user("written") == ["x"]
    await model.user("select")
    assert (await model.call("get-selection")).text == "Some words to select."


@pytest.mark.parametrize("sample", ["definitions", "names"])
async def test_tools_that_are_handled_by_name(show: Show, sample: str):
    model = await show(sample)
    tools = await model.until("get-selection", "format-text")
    assert tools["format-text"].input_schema["type"] == "object"
    assert (await model.call("get-selection")).text == "selected"
    assert (await model.call("format-text", {"bold": True})).text == '{"bold":true}'


async def test_errors_are_returned(show: Show):
    model = await show("errors")
    await model.until("submit-form")
    refused = await model.call("submit-form")
    assert refused.is_error
    assert refused.text == "Form has validation errors"


async def test_a_list_that_follows_the_state_of_the_page(show: Show):
    model = await show("selection")
    await model.until("format-text")
    await model.user("select")
    await model.until("format-text", "get-selection")
    await model.user("deselect")
    await model.until("format-text")


async def test_a_registry_that_changes(show: Show):
    model = await show("registry")
    tools = await model.until("insert-text")  # refresh is for the user interface only
    assert tools["insert-text"].input_schema["properties"]["text"]["type"] == "string"
    refused = await model.call("insert-text", {"text": 7})
    assert refused.is_error
    assert refused.text.startswith("Invalid arguments for tool insert-text:\n- text: ")
    assert not (await model.call("insert-text", {"text": "Hello"})).is_error
    with pytest.raises(ProtocolError):
        await model.call("refresh")
    refused = await model.call("save")
    assert refused.is_error
    assert refused.text == "Tool save is disabled"
    await model.user("dirty")
    await model.until("insert-text", "save")
    assert not (await model.call("save")).is_error


async def test_the_strawman_of_webmcp(show: Show):
    model = await show("webmcp")
    tools = await model.until("play_track")
    assert tools["play_track"].input_schema["properties"]["id"]["enum"] == ["one", "two"]
    assert "Play a track from the user's library." in (tools["play_track"].description or "")
    assert not (await model.call("play_track", {"id": "two"})).is_error
    assert await model.user("played") == ["two"]
    refused = await model.call("remove_from_queue", {"position": 0})
    assert refused.is_error
    assert refused.text == "Tool remove_from_queue is disabled"
    await model.user("enqueue", ["a"])
    await model.until("play_track", "remove_from_queue")
    assert not (await model.call("remove_from_queue", {"position": 0})).is_error
    await model.user("enqueue", [])
    await model.until("play_track")
    await model.user("stock", ["three"])
    refused = await model.call("play_track", {"id": "two"})
    assert refused.is_error
    assert refused.text.startswith("Invalid arguments for tool play_track:\n- id: ")
    assert "three" in refused.text


async def test_a_handle_updates_disables_enables_and_removes(show: Show):
    model = await show("handles")
    tools = await model.until("echo", "plain")
    assert tools["echo"].annotations is not None
    assert tools["echo"].annotations.read_only_hint
    result = await model.call("echo", {"text": "Hello"})
    assert result.text == "echoed"
    assert result.structured_content == {"text": "Hello"}

    await model.user("rename")
    tools = await model.until("say", "plain")
    assert "Say" in (tools["say"].description or "")
    assert tools["say"].input_schema["required"] == ["words"]
    assert (await model.call("say", {"text": "Hello"})).is_error
    assert (await model.call("say", {"words": "Hello"})).text == "echoed"

    await model.user("disable")
    await model.until("plain")
    refused = await model.call("say", {"words": "Hello"})
    assert refused.is_error
    assert refused.text == "Tool say is disabled: not now"
    await model.user("enable")
    await model.until("say", "plain")

    await model.user("remove")
    await model.until("plain")
    with pytest.raises(ProtocolError, match="say"):
        await model.call("say", {"words": "Hello"})


async def test_a_page_that_fetches_its_data_pushes_the_schema(show: Show):
    model = await show("handles")
    assert (await model.call("plain")).text == "plain"
    await model.user("fetched", ["a", "b"])
    tools = await model.when(lambda tools: "required" in tools["plain"].input_schema)
    assert tools["plain"].input_schema["properties"]["id"]["enum"] == ["a", "b"]
    assert (await model.call("plain", {"id": "c"})).is_error
    assert not (await model.call("plain", {"id": "b"})).is_error


async def listings(model: Model) -> list[dict[str, Any]]:
    """The schema of `play_track` in every listing there is for a model."""
    found = [(await model.tools())["play_track"].input_schema]
    if isinstance(model, HostModel):
        for_api = await model.host.tools_for("anthropic")
        found += [tool["input_schema"] for tool in for_api if "play_track" in tool["name"]]
    else:
        listed = await model.call_any("list_view_tools", {"view_id": model.view})
        assert listed.structured_content is not None
        found += [
            tool["inputSchema"]
            for view in listed.structured_content["views"]
            for tool in view["tools"]
            if tool["name"] == "play_track"
        ]
    assert len(found) == 2
    return found


async def test_a_lazy_schema_is_pulled_at_every_listing(show: Show):
    model = await show("webmcp")
    await model.until("play_track")
    for tracks in (["three"], ["four", "five"], ["one"]):
        await model.user("stock", tracks)  # nothing is pushed
        for schema in await listings(model):
            assert schema["properties"]["id"]["enum"] == tracks
        assert not (await model.call("play_track", {"id": tracks[-1]})).is_error


async def test_a_lazy_schema_that_throws_takes_its_tool_away_until_it_does_not(show: Show):
    model = await show("webmcp")
    await model.until("play_track")
    await model.user("enqueue", ["a"])
    await model.until("play_track", "remove_from_queue")
    await model.user("stock", None)
    assert [*await model.tools()] == ["remove_from_queue"]
    with pytest.raises(ProtocolError, match=f"View {model.view} has no tool play_track"):
        await model.call("play_track", {"id": "one"})
    assert not (await model.call("remove_from_queue", {"position": 0})).is_error
    await model.user("stock", ["three"])
    assert [*await model.tools()] == ["play_track", "remove_from_queue"]
    assert not (await model.call("play_track", {"id": "three"})).is_error


async def test_a_grant_lasts_through_a_toggle_and_ends_with_the_registration(show: Show):
    model = await show("handles", asks=True)
    await model.until("echo", "plain")
    for _ in range(2):
        assert (await model.call("plain")).text == "plain"
    assert model.asked == ["plain"]

    await model.user("hide")
    await model.until("echo")
    refused = await model.call("plain")
    assert refused.is_error
    assert refused.text == "Tool plain is disabled: hidden"
    if isinstance(model, HostModel):
        [hidden] = model.host.views[model.view].disabled_tools
        assert (hidden.name, hidden.reason) == ("plain", "hidden")
    await model.user("unhide")
    await model.until("echo", "plain")
    assert (await model.call("plain")).text == "plain"
    assert model.asked == ["plain"]

    await model.user("unregister")
    await model.until("echo")
    await model.user("again")
    await model.until("echo", "plain")
    assert (await model.call("plain")).text == "plain"
    assert model.asked == ["plain", "plain"]


async def test_a_view_asks_to_stay_and_is_told(show: Show):
    model = await show("stays")
    await model.until("stay", "fail")
    assert (await model.call("stay")).text == "true"
    if isinstance(model, HostModel):
        assert model.pins == ["playing music"]
        assert model.host.views[model.view].pinned_by == "view"


async def test_what_goes_wrong_in_a_page_is_told_to_the_host_and_never_to_the_model(show: Show):
    model = await show("stays")
    await model.until("stay", "fail")
    with pytest.raises(ProtocolError) as failed:
        await model.call("fail")
    assert failed.value.message == "Tool fail failed"
    if isinstance(model, HostModel):
        problem = await model.problems.get()
        assert (problem.kind, problem.tool) == ("tool", "fail")
        assert "a secret of the page" in problem.message
    else:
        await model.listed()
        assert not any(b"secret" in line for line in model.client.lines)


@pytest.mark.parametrize(
    ("sample", "view_calls"), [("orders", "spec"), ("orders of the official SDK", "linked")]
)
async def test_a_helper_of_the_server_answers_its_view_and_not_the_model(
    show: Show, sample: str, view_calls: str
):
    model = await show(sample, view_calls=view_calls)
    await model.until("reload", "count")
    assert "refresh-orders" not in [tool.name for tool in await model.listed()]
    with pytest.raises(ProtocolError, match="refresh-orders"):
        await model.call_any("refresh-orders", {"query": "ada"})
    result = await model.call("reload", {"query": "ada"})
    assert result.structured_content == {"orders": ["o1", "o2"]}
    assert json.loads(result.text) == {"orders": ["o1", "o2"]}
    assert (await model.call("reload", {"query": 5})).is_error

    assert (await model.call_any("count-orders")).structured_content == {"result": 3}
    assert (await model.call("count")).text.startswith("refused: ")
    assert [tool for tool in await model.listed() if "samples-2" in tool.name] == []


@pytest.mark.parametrize("show", IN_A_PAGE, ids="-".join, indirect=True)
@pytest.mark.parametrize("sample", HOOKS)
async def test_a_page_with_hooks(show: Show, sample: str):
    model = await show(sample)
    tools = await model.when(lambda tools: "insert-text" in tools)
    assert tools["insert-text"].input_schema["properties"]["text"]["type"] == "string"
    assert (await model.call("insert-text", {"text": " And more."})).text == "Inserted"
