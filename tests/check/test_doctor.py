"""`transom doctor`, what it concludes: each broken server is named by its cause first."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from tests.check.doctor_servers import HEALTHY, SHOWN, UNOPENED, Broken, html, shows, when_ready
from tests.check.fake import SHOW, Server, tool
from transom.check.causes import Exchange, SeenView, ViewFacts, cause_texts, causes
from transom.check.doctor import Diagnosis, diagnose
from transom.check.facts import ListedTool, ServedResource
from transom.check.host_profiles import host_profile
from transom.check.observing import BrowserWatch
from transom.connections import ServerConnection, connect
from transom.errors import NotConnected, UsageError
from transom.host.views.ui_resource import view_uri
from transom.server.resource import inline_transom
from transom.types import ViewProblem
from transom.web import HeadlessRenderer

OFFICIAL = Path(__file__).parents[1] / "servers" / "node_modules" / "@modelcontextprotocol"
PLAIN = host_profile("plain")
BY_DAY = {
    *("script-error", "file-missing", "initialized-missing", "csp-connect", "grows"),
}


@asynccontextmanager
async def connected(server: Server) -> AsyncGenerator[ServerConnection]:
    connection = ServerConnection("orders", server.connect)
    try:
        await connection.start()
        await connection.negotiate()
        yield connection
    finally:
        await connection.aclose()


class Browsers:
    """One browser for all Views of a test, and one more for those that may not use eval."""

    def __init__(self) -> None:
        self.watch = BrowserWatch()
        self.renderers: dict[bool, HeadlessRenderer] = {}
        self.stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stack.aclose()

    @asynccontextmanager
    async def open(self, watch: BrowserWatch, evals: bool) -> AsyncGenerator[HeadlessRenderer]:
        self.watch = watch
        if evals not in self.renderers:
            renderer = HeadlessRenderer(
                csp="compat" if evals else "strict",
                on_violation=lambda found: self.watch.violation(found),
                on_console=lambda kind, text: self.watch.console(kind, text),
                on_request=lambda url: self.watch.request(url),
            )
            self.renderers[evals] = await self.stack.enter_async_context(renderer)
        yield self.renderers[evals]

    async def diagnose(self, server: Server, **options: Any) -> Diagnosis:
        profile = host_profile(options.pop("host", "plain"))
        options = {"quiet": 0.5, "settle": 0.5, **options}
        async with connected(server) as connection:
            return await diagnose(connection, profile=profile, browser=self.open, **options)


def check_named_first(case: Broken, found: Diagnosis) -> None:
    assert [cause.id for cause in found.causes][:1] == [case.cause], found.causes
    first = found.causes[0]
    assert case.says in " ".join([first.text, *first.evidence, first.fix])
    if case.where:
        assert first.line is not None, first
        assert case.where in found.page.splitlines()[first.line - 1]


def no_browser(*_: object) -> Any:
    pytest.fail("No browser is needed for this")


@pytest.mark.parametrize("case", UNOPENED, ids=lambda case: f"{case.cause} {case.also}".strip())
async def test_what_keeps_a_view_from_opening_is_found_without_a_browser(case: Broken):
    async with connected(case.server) as server:
        found = await diagnose(
            server, case.tool, profile=host_profile(case.host), browser=no_browser
        )
    check_named_first(case, found)


@pytest.mark.processes
async def test_a_broken_view_is_named_by_its_cause_first_and_a_healthy_one_has_none():
    async with Browsers() as browsers:
        assert (await browsers.diagnose(HEALTHY)).causes == []
        example = import_module("examples.orders").server
        assert await causes_of_all_views(browsers, example) == {"show_orders": []}
        for case in [each for each in SHOWN if each.cause in BY_DAY and not each.also]:
            check_named_first(case, await browsers.diagnose(case.server, host=case.host))


@pytest.mark.nightly
@pytest.mark.processes
async def test_every_broken_view_is_named_by_its_cause_first():
    async with Browsers() as browsers:
        for case in SHOWN:
            found = await browsers.diagnose(case.server, host=case.host, tool=case.tool)
            check_named_first(case, found)


@asynccontextmanager
async def started(server: Any) -> AsyncGenerator[ServerConnection]:
    connection = await connect(server, timeout=60)
    try:
        yield connection
    finally:
        await connection.aclose()


async def causes_of_all_views(browsers: Browsers, server: Any) -> dict[str, list[str]]:
    """What is found in the View of each tool that a model may call, by name."""
    async with started(server) as connection:
        listed = await connection.tools()
        opening = [
            name for name, tool in listed.items() if view_uri(tool) and "model" in tool.visibility
        ]
        assert opening
        return {
            name: [
                cause.id
                for cause in (
                    await diagnose(
                        connection, name, profile=PLAIN, browser=browsers.open, wait=60.0
                    )
                ).causes
            ]
            for name in opening
        }


EXAMPLES = ("budget", "editor", "lunch", "music", "orders", "tictactoe")


@pytest.mark.nightly
@pytest.mark.processes
async def test_nothing_is_wrong_with_our_examples_and_the_official_servers():
    servers: dict[str, Any] = {name: import_module(f"examples.{name}").server for name in EXAMPLES}
    for script in sorted(OFFICIAL.glob("server-*/dist/index.js")):
        if script.parents[1].name != "server-everything":  # it has no Views
            servers[script.parents[1].name] = ["node", str(script), "--stdio"]
    assert len(servers) == len(EXAMPLES) + 20
    # Without a network, one cannot load its map, and another no document.
    allowed = {"show-map": ["script-missing"], "display_pdf": ["tool-failed"]}
    async with Browsers() as browsers:
        for name, server in servers.items():
            for tool_name, found in (await causes_of_all_views(browsers, server)).items():
                assert found in ([], allowed.get(tool_name, [])), (name, tool_name)


def test_every_cause_has_a_broken_server():
    named = {case.cause for case in (*UNOPENED, *SHOWN)}
    # What is blocked is named by its directive; modules that can be loaded need a network.
    known = {
        "csp" if name.startswith("csp-") and name not in cause_texts() else name for name in named
    }
    assert known == cause_texts().keys() - {"wrong-import", "cors", "unreachable"}
    assert len(named) > 50


HOSTILE = {
    "replaces what the doctor looks with": when_ready(
        "Element.prototype.checkVisibility = () => { throw 1 }; Array.from = () => { throw 2 };"
        "Object.defineProperty(Document.prototype, 'readyState', { value: {} });"
    ),
    "floods": when_ready("for (let n = 0; n < 20000; n++) size(n % 7 + 100);"),
    "reloads itself": html("location.reload();"),
    "empties itself": when_ready("document.open(); document.close();"),
    "writes escapes": html("throw new Error('\\x1b[2J\\u202eevil');"),
}


@pytest.mark.nightly
@pytest.mark.processes
async def test_a_hostile_page_neither_hangs_nor_fools_the_doctor():
    async with Browsers() as browsers:
        for name, text in HOSTILE.items():
            async with asyncio.timeout(60):
                found = await browsers.diagnose(shows(text), wait=5.0)
            said = str(found.causes)
            assert not re.search(r"\\x1b|\\u202e", said), (name, said)


def seen(view: SeenView, page: str = html()) -> ViewFacts:
    answer = shows(page).read("ui://orders/list.html")["result"]
    resource = ServedResource.from_answer("ui://orders/list.html", (), {}, answer, None)
    entry = tool("show", _meta={"ui": {"resourceUri": "ui://orders/list.html"}})
    return ViewFacts(tool=ListedTool.from_entry(1, entry), resource=resource, view=view)


def test_what_is_said_of_a_page_has_nothing_that_a_terminal_obeys():
    problem = ViewProblem("error", "\x1b[2Jboom\u202e\nsecond line")
    [cause] = causes(seen(SeenView(initialized=True, problems=(problem,))), PLAIN)
    assert cause.evidence == ("[2Jboom second line",)


def test_what_cannot_be_reached_is_named_if_nothing_else_is_known():
    lines = (("error", "Failed to load resource: net::ERR_NAME_NOT_RESOLVED"),)
    requests = ("http://view-1.localhost:80/", "https://cdn.example.com/map.js")
    view = SeenView(initialized=False, lines=lines, requests=requests)
    [cause] = causes(seen(view), PLAIN)
    assert cause.id == "unreachable"
    assert "from https://cdn.example.com could not be reached" in cause.text


def test_a_module_that_lacks_a_name_and_a_server_that_refuses_the_origin_are_named():
    said = "SyntaxError: The requested module 'https://x.example/a.js' does not provide an export "
    view = SeenView(initialized=False, lines=(("error", f"{said}named 'App'"),))
    assert [cause.id for cause in causes(seen(view), PLAIN)] == ["wrong-import"]
    said = (
        "Access to fetch at 'https://api.example.com/x' from origin 'null' has been blocked by "
        "CORS policy: No 'Access-Control-Allow-Origin' header is present."
    )
    view = SeenView(initialized=True, lines=(("error", said),))
    assert [cause.id for cause in causes(seen(view), PLAIN)] == ["cors"]


def test_what_every_page_may_use_in_a_host_is_no_cause_there():
    blocked = (("script-src-elem", "https://esm.sh/react"),)
    view = SeenView(initialized=True, blocked=blocked)
    assert [cause.id for cause in causes(seen(view), PLAIN)] == ["csp-script"]
    assert causes(seen(view), host_profile("claude")) == []


def ids(view: SeenView, page: str = html(), *tools: ListedTool) -> list[str]:
    facts = msgspec.structs.replace(seen(view, page), tools=tools)
    return [cause.id for cause in causes(facts, PLAIN)]


def with_transom(script: str) -> str:
    return inline_transom(
        '<!doctype html><p>Orders</p>\n<script type="module">\nimport { App } from "transom";\n'
        f"{script}\n</script>"
    )


def test_the_library_that_is_in_a_page_is_not_taken_for_what_its_author_wrote():
    page = with_transom("const app = new App({});\napp.ontoolresult = draw;")
    [cause] = causes(seen(SeenView(initialized=False), page), PLAIN)
    assert cause.id == "never-connects"
    assert cause.line is not None
    assert page.splitlines()[cause.line - 1] == "const app = new App({});"
    calling = with_transom("const app = new App({});\nif (window.never) app.connect();")
    [cause] = causes(seen(SeenView(initialized=False), calling), PLAIN)
    assert cause.id == "handshake-not-begun"
    assert cause.line is not None
    assert "window.never" in calling.splitlines()[cause.line - 1]
    # What is no line of the library stays.
    bundled = "<!doctype html><script>\nglobalThis.transom={};new App().connect()\n</script>"
    assert ids(SeenView(initialized=False), bundled) == ["handshake-not-begun"]


@pytest.mark.parametrize("initialized", [False, True])
def test_what_is_blocked_goes_before_the_error_that_it_leads_to(initialized: bool):
    def first(said: str, *blocked: tuple[str, str], kind: Any = "error") -> list[str]:
        problems = (ViewProblem(kind, said),)
        return ids(SeenView(initialized=initialized, problems=problems, blocked=blocked))

    error = "page-error" if initialized else "script-error"
    chart = ("script-src-elem", "https://cdn.example.com/chart.js")
    prices = ("connect-src", "https://api.example.com/prices")
    style = ("style-src-elem", "https://css.example.com/a.css")
    assert first("ReferenceError: Chart is not defined", chart) == ["csp-script", error]
    assert first("TypeError: can't access property of undefined", prices) == ["csp-connect", error]
    assert first("Chart is not defined", ("missing", "chart.js")) == ["file-missing", error]
    said = "Error: no https://css.example.com/a.css"
    assert first(said, style, kind="rejection") == ["csp-style", "unhandled-rejection"]
    # An error that says what it is about is not about something else.
    assert first("SyntaxError: Unexpected token", chart) == ["syntax-error", "csp-script"]
    assert first("ReferenceError: draw is not defined", style) == [error, "csp-style"]


@pytest.mark.parametrize("initialized", [False, True])
def test_a_script_that_did_not_load_goes_before_the_error_that_it_leads_to(initialized: bool):
    url = "https://cdn.example.com/chart.js"
    page = html(head=f'\n<script src="{url}"></script>')
    lines = (("error", "Failed to load resource: net::ERR_NAME_NOT_RESOLVED"),)

    def found(*messages: str) -> list[str]:
        problems = tuple(ViewProblem("error", each) for each in messages)
        view = SeenView(initialized=initialized, problems=problems, lines=lines, requests=(url,))
        return ids(view, page)

    error, missing = (
        "page-error" if initialized else "script-error",
        f"A script did not load: {url}",
    )
    assert found("ReferenceError: Chart is not defined", missing) == ["script-missing", error]
    assert found(missing) == ["script-missing"]
    # An error that says what it is about is not about something else.
    assert found("SyntaxError: Unexpected token", missing) == ["syntax-error", "script-missing"]
    assert found("Error: no orders", missing) == [error, "script-missing"]
    assert found("A script did not load: it is not known which")[0] == error
    beside = ViewProblem("error", "A script did not load: http://view-1.localhost:80/chart.js")
    blocked = (("missing", "chart.js"),)
    view = SeenView(initialized=initialized, problems=(beside,), blocked=blocked)
    assert ids(view) == ["file-missing"]


def test_a_refused_call_goes_before_the_rejection_that_it_leads_to():
    entry = tool("count", _meta={"ui": {"visibility": ["model"]}})
    said = "Tool count may not be called by a View: its visibility lacks 'app'"
    call = Exchange("tools/call", {"name": "count"}, (-32000, said))

    def found(*messages: str) -> list[str]:
        problems = tuple(ViewProblem("rejection", each) for each in messages)
        view = SeenView(initialized=True, sent=(call,), problems=problems)
        return ids(view, html(), ListedTool.from_entry(1, entry))

    assert found(f"Error: {said}") == ["call-denied", "unhandled-rejection"]
    assert found("Error: no orders") == ["unhandled-rejection", "call-denied"]
    assert "leave visibility out" not in cause_texts()["call-denied"].fix


def test_a_page_that_asks_for_transom_and_does_not_get_it_is_told_who_puts_it_there():
    said = 'TypeError: Failed to resolve module specifier "transom". Relative references must start'
    imports = SeenView(initialized=False, problems=(ViewProblem("error", said),))
    loads = SeenView(initialized=False, blocked=(("missing", "./transom.js"),))
    for view in (imports, loads):
        [cause] = causes(seen(view), PLAIN)
        assert cause.id == "transom-import"
        assert cause.fix.index("views.add") < cause.fix.index("bundle")


async def test_a_tool_that_does_not_exist_or_is_one_of_several_is_not_a_cause():
    two = [tool(name, _meta={"ui": {"resourceUri": "ui://a/b"}}) for name in ("one", "two")]
    helper = tool("tick", _meta={"ui": {"visibility": ["app"]}})
    async with connected(Server(tools=[*two, helper])) as server:
        with pytest.raises(UsageError, match="name one: one, two"):
            await diagnose(server, profile=PLAIN, browser=no_browser)
        with pytest.raises(UsageError, match="no tool three; it has: one, two$"):
            await diagnose(server, "three", profile=PLAIN, browser=no_browser)


@dataclass
class Silent(Server):
    """It never answers a request of one method."""

    method: str = ""

    def answer(self, message: Any, session: Any) -> Any:
        return None if message["method"] == self.method else super().answer(message, session)


async def test_a_server_that_never_answers_a_request_is_not_waited_for():
    async def ask(method: str) -> str:
        async with connected(Silent(tools=[SHOW], method=method)) as server:
            with pytest.raises(NotConnected) as refused:
                await diagnose(server, profile=PLAIN, browser=no_browser, wait=5.0)
            return str(refused.value)

    requests = {
        "tools/list": "tools/list",
        "resources/list": "resources/list",
        "resources/read": "resources/read",
        "tools/call": "tools/call show_orders",
    }
    assert await asyncio.gather(*map(ask, requests)) == [
        f"the server did not answer {request} within 5 s" for request in requests.values()
    ]
