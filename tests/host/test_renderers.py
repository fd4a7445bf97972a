import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer

from tests.host.shop import HTML, URI, BareRenderer, editor, hosting, shop
from transom import App, Host, InProcessRenderer, Limits, Policy
from transom.channel import Channel, memory_pair
from transom.errors import ChannelClosed, InvalidResult, UsageError, ViewClosed
from transom.host.views.liveness import ViewState
from transom.host.views.renderers import Renderer, TakesScreenshots
from transom.host.views.ui_resource import UIResource, load_ui_resource, view_uri
from transom.json_values import member
from transom.protocol import wire
from transom.types import Tool

VIEW_TYPE = "text/html;profile=mcp-app"


def page(uri: str = URI) -> UIResource:
    return UIResource(view_id="v-1", server="v", uri=uri, html="")


# --- which View a tool opens -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("meta", "uri"),
    [
        (None, None),
        ({}, None),
        ({"ui": {}}, None),
        ({"ui": "odd"}, None),
        ({"ui": {"visibility": ["app"]}}, None),
        ({"ui": {"resourceUri": "ui://a"}}, "ui://a"),
        ({"ui/resourceUri": "ui://old"}, "ui://old"),
        ({"ui": {}, "ui/resourceUri": "ui://old"}, "ui://old"),
        ({"ui": {"resourceUri": "ui://new"}, "ui/resourceUri": "ui://old"}, "ui://new"),
        ({"ui": {"resourceUri": "ui://"}}, "ui://"),
    ],
)
def test_the_nested_key_says_which_view_a_tool_opens_and_the_flat_one_where_it_is_not_there(
    meta: Any, uri: str | None
):
    assert view_uri(Tool(name="t", meta=meta)) == uri


@pytest.mark.parametrize("uri", [None, "", 5, "UI://a", "https://a", ["ui://a"], {"x": 1}, True])
@pytest.mark.parametrize("key", ["nested", "flat"])
def test_a_link_to_something_else_is_an_error(uri: Any, key: str):
    meta = {"ui": {"resourceUri": uri}} if key == "nested" else {"ui/resourceUri": uri}
    with pytest.raises(InvalidResult, match="Tool t links .*, which is not a ui:// resource"):
        view_uri(Tool(name="t", meta=meta))


def test_a_bad_nested_link_is_not_saved_by_a_good_flat_one():
    meta = {"ui": {"resourceUri": None}, "ui/resourceUri": "ui://old"}
    with pytest.raises(InvalidResult, match="links null, which is not a ui:// resource"):
        view_uri(Tool(name="t", meta=meta))


# --- what the page is ------------------------------------------------------------------------


class ResourceServer:
    """A server that has these resources."""

    capabilities: Mapping[str, Any] = {"resources": {}}

    def __init__(self, contents: list[dict[str, Any]], listed: list[Any] | None = None) -> None:
        self.contents = contents
        self.listed = listed or [[]]
        self.asked: list[str] = []

    async def request(self, method: str, params: Any = None, **_: Any) -> bytes:
        self.asked.append(method)
        if method == "resources/read":
            return wire.encode({"contents": self.contents})
        number = int(member(params, "cursor") or 0)
        listing: dict[str, Any] = {"resources": self.listed[number]}
        if number + 1 < len(self.listed):
            listing["nextCursor"] = str(number + 1)
        return wire.encode(listing)


def part(**members: Any) -> dict[str, Any]:
    return {"uri": URI, "mimeType": VIEW_TYPE, **members}


async def load(server: Any, max_bytes: int = 1000) -> UIResource:
    return await load_ui_resource(
        server, view_id="v-1", server_name="v", uri=URI, max_bytes=max_bytes
    )


async def test_a_page_is_read_from_text():
    loaded = await load(ResourceServer([part(text="<p>ü</p>")]))
    assert (loaded.html, loaded.uri, loaded.view_id, loaded.server) == ("<p>ü</p>", URI, "v-1", "v")
    assert (loaded.csp, loaded.permissions, loaded.domain, loaded.prefers_border) == (None,) * 4


async def test_a_page_is_read_from_base64_of_utf8():
    blob = base64.b64encode("<p>ü€</p>".encode()).decode()
    assert (await load(ResourceServer([part(blob=blob)]))).html == "<p>ü€</p>"


@pytest.mark.parametrize("blob", ["not base64!", base64.b64encode(b"\xff\xfe").decode(), "YQ"])
async def test_a_blob_that_is_no_text_is_an_error(blob: str):
    with pytest.raises(InvalidResult, match="not base64 of UTF-8"):
        await load(ResourceServer([part(blob=blob)]))


@pytest.mark.parametrize(
    "contents",
    [
        [],
        [part(text="a", mimeType="text/html")],
        [part(text="a", mimeType="text/html; profile=mcp-app")],
        [part(text="a", mimeType=None)],
        [part()],
        [part(text="a", blob="YQ==")],
        [part(text="a"), part(text="b")],
    ],
)
async def test_a_page_is_exactly_one_part_of_exactly_the_right_type(contents: list[Any]):
    with pytest.raises(InvalidResult, match="must have one text or blob of type text/html;profile"):
        await load(ResourceServer(contents))


async def test_other_parts_beside_the_page_do_no_harm():
    contents = [part(text="a", mimeType="text/plain"), part(text="page")]
    assert (await load(ResourceServer(contents))).html == "page"


async def test_a_page_that_is_too_large_is_an_error():
    assert (await load(ResourceServer([part(text="ü" * 500)]))).html == "ü" * 500
    with pytest.raises(InvalidResult, match="1002 bytes, over the limit of 1000"):
        await load(ResourceServer([part(text="ü" * 501)]))
    with pytest.raises(InvalidResult, match="over the limit of 1000"):
        await load(ResourceServer([part(blob=base64.b64encode(b"a" * 1001).decode())]))
    with pytest.raises(InvalidResult, match="over the limit of 1000"):
        await load(ResourceServer([part(text="x" * 100_000)]))
    with pytest.raises(InvalidResult, match="has too many control characters"):
        await load(ResourceServer([part(text="\x01" * 900)]))


WISHES = {
    "csp": {"connectDomains": ["https://a.example"]},
    "permissions": {"camera": {}},
    "domain": "x.example",
    "prefersBorder": False,
}


async def test_what_a_page_needs_stands_beside_its_content():
    server = ResourceServer(
        [part(text="a", _meta={"ui": WISHES})],
        [[{"uri": URI, "name": "x", "_meta": {"ui": {"csp": {"connectDomains": ["evil"]}}}}]],
    )
    loaded = await load(server)
    assert loaded.csp == WISHES["csp"]
    assert loaded.permissions == WISHES["permissions"]
    assert (loaded.domain, loaded.prefers_border) == ("x.example", False)
    assert server.asked == ["resources/read"]


async def test_or_else_in_the_listing_on_whatever_page_of_it():
    server = ResourceServer(
        [part(text="a")],
        [
            [{"uri": "ui://other", "name": "o", "_meta": {"ui": {"domain": "wrong"}}}],
            [{"uri": URI, "name": "x", "_meta": {"ui": WISHES}}],
        ],
    )
    loaded = await load(server)
    assert loaded.csp == WISHES["csp"]
    assert loaded.domain == "x.example"


async def test_wishes_of_the_wrong_kind_are_no_wishes():
    ui = {"csp": ["*"], "permissions": "all", "domain": 5, "prefersBorder": "yes"}
    loaded = await load(ResourceServer([part(text="a", _meta={"ui": ui})]))
    assert (loaded.csp, loaded.permissions, loaded.domain, loaded.prefers_border) == (None,) * 4


# --- rendering in process --------------------------------------------------------------------


async def test_every_view_gets_an_app_of_its_own():
    made: list[App] = []

    def make() -> App:
        made.append(App("a", "1"))
        return made[-1]

    renderer = InProcessRenderer({URI: make})
    async with Host(renderer=renderer, policy=Policy.trusting()) as host:
        await host.add_server("orders", shop())
        await host.call_tool("show_orders")
        await host.call_tool("show_orders")
        assert len(made) == 2
        assert all(app.connected for app in made)
    assert not any(app.connected for app in made)


async def test_an_app_may_be_made_in_a_while():
    async def make() -> App:
        await asyncio.sleep(0)
        return editor()()

    async with Host(renderer=InProcessRenderer({URI: make}), policy=Policy.trusting()) as host:
        await host.add_server("orders", shop())
        await host.call_tool("show_orders")
        assert (await host.call_tool("orders-1__read")).text == "nothing"


async def test_a_resource_without_an_app_says_which_there_are():
    with pytest.raises(UsageError, match=f"no App for ui://x; there are: {URI}"):
        await InProcessRenderer({URI: editor()}).open(page("ui://x"))


async def test_leaving_the_renderer_ends_what_is_still_connecting():
    renderer = InProcessRenderer({URI: editor()})
    async with renderer:
        channel = await renderer.open(page())
        await asyncio.sleep(0)
        assert b"ui/initialize" in await channel.receive()
    assert b"notifications/cancelled" in await channel.receive()
    with pytest.raises(ChannelClosed):
        await channel.receive()


# --- renderers of one's own ------------------------------------------------------------------


async def test_a_host_enters_and_leaves_a_renderer_that_can_be():
    life: list[str] = []

    class Living(BareRenderer):
        async def __aenter__(self) -> None:
            life.append("in")

        async def __aexit__(self, *_: object) -> None:
            life.append("out")

    renderer = Living()
    assert isinstance(renderer, Renderer)
    async with Host(renderer=renderer) as host:
        assert life == ["in"]
        await host.add_server("orders", shop())
        await host.call_tool("show_orders")
    assert life == ["in", "out"]


async def test_the_renderer_gets_the_page_and_what_it_needs():
    renderer = BareRenderer()
    async with Host(renderer=renderer) as host:
        await host.add_server("orders", shop())
        await host.call_tool("show_orders")
    [shown] = renderer.pages
    assert shown.html == HTML.format("orders")
    assert (shown.view_id, shown.server, shown.uri) == ("orders-1", "orders", URI)


async def test_screenshots_come_from_a_renderer_that_takes_them():
    class Camera(BareRenderer):
        async def screenshot(self, view_id: str) -> bytes:
            return f"PNG of {view_id}".encode()

    assert isinstance(Camera(), TakesScreenshots)
    async with Host(renderer=Camera()) as host:
        await host.add_server("orders", shop())
        await host.call_tool("show_orders")
        assert await host.views["orders-1"].screenshot() == b"PNG of orders-1"


async def test_a_renderer_that_takes_none_says_so():
    async with Host(renderer=BareRenderer()) as host:
        await host.add_server("orders", shop())
        await host.call_tool("show_orders")
        with pytest.raises(UsageError, match="BareRenderer cannot take screenshots"):
            await host.views["orders-1"].screenshot()


class Failing:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def open(self, page: UIResource) -> Channel:
        raise self.error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (UsageError("no screen"), "no screen"),
        (TimeoutError("of its own"), "it could not be shown: TimeoutError"),
        (ZeroDivisionError("a secret"), "it could not be shown: ZeroDivisionError"),
    ],
)
async def test_a_renderer_that_fails_costs_the_view_and_not_the_result(error: Exception, told: str):
    failed: list[Any] = []
    async with Host(renderer=Failing(error)) as host:
        host.on_view_failed = lambda view, why: failed.append((view.id, view.state, why))
        await host.add_server("orders", shop())
        result = await host.call_tool("show_orders", {"status": "late"})
        assert result.text == "orders: late"
        note = result.meta["transom/view"]
        assert note == {"id": "orders-1", "state": "failed", "error": told}
        assert failed == [("orders-1", "failed", error)]
        assert not host.views
        [event] = await host.audit.read(event="view")
        assert (event.outcome, event.view, event.detail) == ("failed", "orders-1", told)


class Impatient:
    """It gives its browser less time than a View has."""

    async def open(self, page: UIResource) -> Channel:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()
        raise AssertionError


class Silent:
    """Its Views never say anything."""

    async def open(self, page: UIResource) -> Channel:
        ours, self.theirs = memory_pair()
        return ours


class Starting:
    """A browser that takes too long to start."""

    async def open(self, page: UIResource) -> Channel:
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.parametrize(
    ("renderer", "timeout", "said"),
    [
        (Starting(), 0.05, "could not be opened: it was not shown within 0.05 s: its page had"),
        (Silent(), 1, "could not be opened: it was not initialised within 1 s: its page has"),
        (Failing(RuntimeError()), 15, "could not be opened: it could not be shown: RuntimeError"),
        (Impatient(), 15, "could not be opened: it could not be shown: TimeoutError"),
    ],
)
async def test_the_error_of_a_view_that_failed_always_says_why(
    renderer: Renderer, timeout: float, said: str
):
    failed: list[Exception] = []
    limits = Limits(initialize_timeout=0.01)  # of a Bridge without a Host
    async with Host(renderer=renderer, open_timeout=timeout, limits=limits) as host:
        host.on_view_failed = lambda _, error: failed.append(error)
        await host.add_server("orders", shop())
        await host.call_tool("show_orders")
        (error,) = failed
        assert str(error).startswith(f"View orders-1 {said}")


class FailingPages:
    """A script of its pages fails; their sandbox says that they do not connect, if `given_up`."""

    def __init__(self, kind: str, message: str, *, given_up: bool = True) -> None:
        self._problem = {"kind": kind, "message": message, "source": "about:srcdoc", "line": 3}
        self._given_up = given_up

    async def open(self, page: UIResource) -> Channel:
        ours, self.theirs = memory_pair()
        await self._send("problem", self._problem)
        if self._given_up:
            await self._send("unconnected", {})
        return ours

    async def _send(self, name: str, params: dict[str, Any]) -> None:
        method = f"transom/notifications/{name}"
        await self.theirs.send(wire.encode_notification(method, bytes(wire.raw(params))))


FAILURES = [
    ("error", "TypeError: secret is undefined"),
    ("rejection", "no answer"),
    ("blocked", "script-src-elem blocked https://cdn.example.com/app.js"),
]


@pytest.mark.parametrize(("kind", "message"), FAILURES)
async def test_a_call_does_not_wait_for_a_page_that_failed_and_does_not_connect(
    kind: str, message: str
):
    problems: list[str] = []
    async with Host(renderer=FailingPages(kind, message), open_timeout=10_000) as host:
        host.on_view_problem = lambda _, problem: problems.append(problem.message)
        await host.add_server("orders", shop())
        result = await host.call_tool("show_orders")
        assert result.meta["transom/view"] == {
            "id": "orders-1",
            "state": "waiting",
            "error": "its page failed before `connect()`",
        }
        assert problems == [message]
        assert host.views["orders-1"].failure.message == message


async def test_a_page_that_failed_is_used_if_it_connects_after_all():
    renderer, states = FailingPages(*FAILURES[0]), []
    async with Host(renderer=renderer, open_timeout=10_000) as host:
        opened, responsive = asyncio.Event(), asyncio.Event()
        host.on_view_unresponsive = lambda view: states.append(view.state)
        host.on_view_opened = lambda _: opened.set()
        host.on_view_responsive = lambda _: responsive.set()
        await host.add_server("orders", shop())
        result = await host.call_tool("show_orders")
        assert result.meta["transom/view"]["state"] == "waiting"
        await editor()().connect(renderer.theirs)
        await opened.wait()
        await responsive.wait()
        view = host.views["orders-1"]
        assert (view.state, view.reason, states) == ("live", "", [ViewState.WAITING])
        assert view.tools


async def test_a_page_that_failed_and_never_connects_has_failed_when_its_time_is_over():
    failed: list[BaseException] = []
    ended = asyncio.Event()
    async with Host(renderer=FailingPages(*FAILURES[0]), open_timeout=2) as host:
        host.on_view_failed = lambda _, error: (failed.append(error), ended.set())
        await host.add_server("orders", shop())
        await host.call_tool("show_orders")
        await ended.wait()
        assert str(failed[0]) == (
            "View orders-1 could not be opened: its page failed before `connect()`"
        )
        assert not host.views


async def test_a_page_that_failed_makes_room_for_the_next_view():
    limits = Limits(max_live_views=1)
    async with Host(
        renderer=FailingPages(*FAILURES[0]), open_timeout=10_000, limits=limits
    ) as host:
        await host.add_server("orders", shop())
        for number in (1, 2, 3):
            await host.call_tool("show_orders")
            assert list(host.views) == [f"orders-{number}"]


async def test_only_what_may_keep_a_page_from_connecting_is_why_it_failed():
    harmless = "ResizeObserver loop completed with undelivered notifications."
    for kind, message in [
        ("blocked", "img-src blocked https://example.com/logo.png"),
        ("blocked", "script-src blocked eval"),
        ("error", harmless),
    ]:
        async with Host(renderer=FailingPages(kind, message), open_timeout=10_000) as host:
            await host.add_server("orders", shop())
            await host.call_tool("show_orders")
            assert host.views["orders-1"].failure is None


async def test_a_problem_alone_ends_no_wait():
    renderer = FailingPages(*FAILURES[0], given_up=False)
    async with Host(renderer=renderer, open_timeout=1) as host:
        await host.add_server("orders", shop())
        result = await host.call_tool("show_orders")
        assert "not initialised within 1 s" in result.meta["transom/view"]["error"]


class Introducing:
    """Its pages send this `ui/initialize`, and nothing else."""

    def __init__(self, params: dict[str, Any]) -> None:
        self._params = params

    async def open(self, page: UIResource) -> Channel:
        ours, self.theirs = memory_pair()
        params = bytes(wire.raw(self._params))
        await self.theirs.send(wire.encode_request(1, "ui/initialize", params))
        return ours


async def test_a_page_whose_initialize_is_refused_is_said_to_be_and_not_waited_for():
    async with Host(renderer=Introducing({}), open_timeout=10_000) as host:
        await host.add_server("orders", shop())
        note = (await host.call_tool("show_orders")).meta["transom/view"]
        assert note["error"].startswith("its `ui/initialize` was refused: Invalid params")
        assert note["state"] == "waiting"


async def test_a_page_that_never_says_that_it_is_initialised_is_said_to():
    params = {
        "appInfo": {"name": "x", "version": "1"},
        "appCapabilities": {},
        "protocolVersion": "2026-01-26",
    }
    async with Host(renderer=Introducing(params), open_timeout=2) as host:
        await host.add_server("orders", shop())
        note = (await host.call_tool("show_orders")).meta["transom/view"]
        assert "sent `ui/initialize`, and no `ui/notifications/initialized`" in note["error"]


async def test_the_reason_of_a_view_whose_page_went_away_while_it_opened_is_just_that():
    renderer = FailingPages(*FAILURES[0])
    async with Host(renderer=renderer, open_timeout=10_000) as host:
        failed = asyncio.get_running_loop().create_future()
        host.on_view_failed = lambda view, _: failed.set_result(view.reason)
        await host.add_server("orders", shop())
        await host.call_tool("show_orders")
        await renderer.theirs.aclose()
        assert not (await failed).startswith("initialized:")


async def test_the_error_of_a_view_that_was_closed_while_it_opened_says_so():
    failed: list[BaseException] = []
    async with Host(renderer=Silent()) as host:
        host.on_view_failed = lambda _, error: failed.append(error)
        await host.add_server("orders", shop())
        view = await host.open_view("orders", "show_orders")
        await view.close("the user closed it")
        assert [type(error) for error in failed] == [ViewClosed]
        assert str(failed[0]) == "View orders-1 could not be opened: the user closed it"


async def test_a_view_that_does_not_answer_its_teardown_is_no_error_in_the_log(
    caplog: pytest.LogCaptureFixture,
):
    silence = asyncio.Event()
    renderer = BareRenderer({"ui/resource-teardown": lambda _: silence.wait()})
    async with hosting(renderer=renderer, limits=Limits(teardown_timeout=0.02)) as host:
        await host.call_tool("show_orders")
        await host.view("orders-1").close()
    assert [entry.getMessage() for entry in caplog.records if entry.levelname != "DEBUG"] == []


async def test_without_a_renderer_tools_that_link_a_view_just_run():
    async with Host() as host:
        await host.add_server("orders", shop())
        result = await host.call_tool("show_orders")
        assert result.text == "orders: open"
        assert "transom/view" not in (result.meta or {})
        assert not host.views


async def test_a_tool_with_a_bad_link_runs_and_the_link_is_reported():
    server = MCPServer("x")
    errors: list[BaseException] = []

    @server.tool(meta={"ui": {"resourceUri": "https://elsewhere.example"}})
    def look() -> str:
        """Look."""
        return "seen"

    async with Host(renderer=BareRenderer()) as host:
        host.on_error = errors.append
        await host.add_server("x", server)
        result = await host.call_tool("look")
        assert result.text == "seen"
        assert "which is not a ui:// resource" in result.meta["transom/view"]["error"]
        assert "which is not a ui:// resource" in str(errors[0])
        assert not host.views
