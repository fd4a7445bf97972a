"""The runner sees what is there, over every kind of connection, and calls only what it may."""

import asyncio
import contextlib
import socket
from dataclasses import dataclass, field
from typing import Any

import fastmcp
import pytest
import uvicorn
from mcp.server import Server as LowLevelServer
from mcp.server.apps import Apps
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tests.check.fake import (
    BACKEND,
    EXTENSION,
    HELPER,
    HTML,
    MIME,
    SHOW,
    URI,
    Server,
    error,
    page,
    result,
    tool,
)
from transom.channel import Channel
from transom.check import Calling, Options, check
from transom.check.facts import Facts, ViewObservation, Visit
from transom.check.rule import selected
from transom.check.rules import RULES
from transom.check.runner import Conversation, NothingToCheck, ObservingOptions, collect
from transom.connections.targets import way_to
from transom.errors import UsageError
from transom.serving import listen


def apps_server() -> MCPServer:
    apps = Apps()

    @apps.tool(resource_uri=URI, title="Show orders")
    def show_orders(status: str) -> str:
        """Show the orders."""
        return f"No orders are {status}."

    apps.add_html_resource(URI, HTML, prefers_border=True)
    return MCPServer("orders", version="2.1", extensions=[apps])


async def test_a_server_of_the_official_sdk_is_seen_whole():
    seen = await collect(way_to(apps_server()), Options())

    assert [tool.name for tool in seen.tools] == ["show_orders"]
    assert seen.tools[0].link == URI
    assert seen.resources[0].html == HTML
    assert seen.resources[0].linked_by == ("show_orders",)
    assert seen.apps.handshake is not None
    assert seen.apps.handshake["serverInfo"] == {"name": "orders", "version": "2.1"}


async def test_a_server_of_fastmcp_is_seen_whole():
    server = fastmcp.FastMCP("orders")

    @server.tool(meta={"ui": {"resourceUri": URI}})
    def show_orders() -> str:
        """Show the orders."""
        return "No orders."

    @server.resource(URI, mime_type="text/html;profile=mcp-app")
    def orders() -> str:
        return HTML

    report = await check("orders", server, options=Options(calling=Calling(all=True)))

    assert report.failure is None
    assert report.summary.error == 0
    assert "D1" in report.checked


async def test_the_low_level_server_is_taken_too():
    report = await check("bare", LowLevelServer("bare"))

    assert report.failure is None
    assert report.tools == 0


async def test_what_is_no_server_is_refused():
    with pytest.raises(UsageError, match="is not a server: give a command as a list"):
        await check("orders", object())


# --- over HTTP -------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def listening(app: Any):
    with listen("127.0.0.1", 0) as sock:
        config = uvicorn.Config(app, log_level="critical", ws="none")
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await running


async def test_a_server_behind_a_url_is_checked():
    async with listening(apps_server().streamable_http_app()) as address:
        report = await check("orders", address, options=Options(calling=Calling(all=True)))

    assert report.failure is None
    assert report.views == 1
    assert {"A2", "N1"} <= {finding.rule for finding in report.findings}
    assert "A5" in report.checked


async def test_an_address_where_nobody_listens_is_reported():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # bound but not listening: refused
        address = f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
        report = await check("gone", address, options=Options(timeout=10))

    assert report.failure is not None
    assert report.checked == ()


async def test_a_web_page_that_is_no_server_is_reported():
    app = Starlette(
        routes=[Route("/mcp", lambda _: PlainTextResponse("Hello"), methods=["GET", "POST"])]
    )
    async with listening(app) as address:
        report = await check("page", address, options=Options(timeout=10))

    assert report.failure is not None
    assert "answered 200 OK: that is no answer of an MCP server" in report.failure


async def test_an_answer_that_is_too_long_over_http_is_refused():
    async def reply(_: Any) -> Response:
        body = b'{"jsonrpc":"2.0"' + b" " * (2 * 1024 * 1024)
        return Response(body, media_type="application/json")

    app = Starlette(routes=[Route("/mcp", reply, methods=["POST"])])
    async with listening(app) as address:
        report = await check("long", way_to(address, max_bytes=1024 * 1024))

    assert report.failure is not None
    assert "longer than 1 MB" in report.failure


# --- the later protocol revision -------------------------------------------------------------


class ModernServer(Server):
    """Knows no `initialize`; reads who is asking from every request."""

    def answer(self, message: Any, session: Any) -> Any:
        if message["method"] == "initialize":
            return error(-32022, "Unsupported protocol version")
        meta = message["params"].get("_meta", {})
        if meta.get("io.modelcontextprotocol/protocolVersion") != "2026-07-28":
            return error(-32602, "Who is asking?")
        session.clear()
        session.update(meta["io.modelcontextprotocol/clientCapabilities"])
        return super().answer(message, session)


async def test_a_server_of_the_later_revision_is_asked_in_its_own_way():
    options = Options(calling=Calling(all=True))
    report = await check("modern", ModernServer().connect, options=options)

    assert report.failure is None
    assert report.findings == ()
    assert report.tools == 3


async def test_a_server_that_only_knows_the_handshake_is_not_checked_for_what_came_later():
    class Old(Server):
        def answer(self, message: Any, session: Any) -> Any:
            discovers = message["method"] == "server/discover"
            return error(-32601, "no") if discovers else super().answer(message, session)

    report = await check("old", Old().connect)

    assert report.findings == ()
    assert report.notes == ()
    why = "the server does not speak MCP 2026-07-28: no (-32601)"
    assert {skip.rule for skip in report.skipped if skip.reason == why} == {
        *("L1", "L2", "L3", "L4", "L5")
    }


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "resources/read"])
async def test_a_server_that_falls_silent_in_the_later_revision_is_reported_all_the_same(
    method: str,
):
    class Silent(Server):
        def answer(self, message: Any, session: Any) -> Any:
            meta = message.get("params", {}).get("_meta")
            return (
                None if meta and message["method"] == method else super().answer(message, session)
            )

    report = await check("silent", Silent().connect, options=Options(timeout=1.0))

    assert report.failure is None
    assert report.findings == ()


# --- calling ---------------------------------------------------------------------------------


async def calls_of(server: Server, calling: Calling | None) -> Any:
    return await collect(server.connect, Options(calling=calling))


WRITER = tool("save_order", annotations={"readOnlyHint": False})
LIAR = tool("wipe", annotations={"readOnlyHint": True, "destructiveHint": True})


async def test_nothing_is_called_unless_it_is_allowed():
    called: list[Any] = []
    server = Server(results={"show_orders": called.append})

    seen = await calls_of(server, None)

    assert seen.calls is None
    assert called == []


async def test_only_tools_that_only_read_are_called_by_default():
    seen = await calls_of(Server(tools=[SHOW, WRITER, LIAR]), Calling())

    assert {call.tool for call in seen.calls} == {"show_orders"}
    assert dict(seen.uncalled) == {
        "save_order": "not marked read-only; --call-all calls it",
        "wipe": "not marked read-only; --call-all calls it",
    }


async def test_every_tool_is_called_when_that_is_allowed():
    seen = await calls_of(Server(tools=[SHOW, WRITER, LIAR]), Calling(all=True))

    assert {call.tool for call in seen.calls} == {"show_orders", "save_order", "wipe"}
    assert seen.uncalled == ()


async def test_a_tool_with_a_view_is_called_by_both_kinds_of_client_and_once_wrongly():
    seen = await calls_of(Server(), Calling())

    show = [(call.client, call.kind) for call in seen.calls if call.tool == "show_orders"]
    assert show == [("apps", "example"), ("apps", "invalid"), ("text", "example")]


async def test_a_tool_that_is_given_arguments_is_called_with_them():
    given: list[Any] = []

    def remember(arguments: Any) -> Any:
        given.append(arguments)
        return result()

    server = Server(tools=[WRITER, LIAR], results={"save_order": remember})
    seen = await calls_of(server, Calling(arguments={"save_order": {"id": 7}}))

    assert given[0] == {"id": 7}
    assert [name for name, _ in seen.uncalled] == ["wipe"]


async def test_a_tool_whose_schema_gives_no_arguments_is_not_called():
    puzzling = tool(
        "puzzle",
        inputSchema={
            "type": "object",
            "properties": {"code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{9}$"}},
            "required": ["code"],
        },
    )
    seen = await calls_of(Server(tools=[puzzling]), Calling())

    assert seen.calls == ()
    assert dict(seen.uncalled) == {"puzzle": "no arguments could be made from its schema"}


async def test_no_more_tools_are_called_than_the_limit():
    many = [tool(f"tell_{number}") for number in range(5)]
    seen = await calls_of(Server(tools=many), Calling(max_calls=2))

    assert {call.tool for call in seen.calls} == {"tell_0", "tell_1"}
    assert [name for name, _ in seen.uncalled] == ["tell_2", "tell_3", "tell_4"]


async def test_calling_ends_when_a_server_stops_answering():
    silent = [tool(f"tell_{number}") for number in range(6)]

    class Silent(Server):
        def answer(self, message: Any, session: Any) -> Any:
            if message["method"] == "tools/call":
                return None
            return super().answer(message, session)

    options = Options(calling=Calling(max_silent=2), timeout=0.5)
    seen = await collect(Silent(tools=silent).connect, options)

    assert len(seen.calls or ()) == 2
    assert "no more tools were called: 2 calls in a row got no answer" in seen.notes


async def test_a_tool_that_is_listed_a_thousand_times_is_called_once_as_a_text_client():
    calls: list[str] = []

    class Repeating(Server):
        def answer(self, message: Any, session: Any) -> Any:
            if message["method"] == "tools/call":
                calls.append(message["params"]["name"])
            return super().answer(message, session)

    await collect(Repeating(tools=[SHOW] * 1000).connect, Options(calling=Calling(max_calls=1)))

    # As it should be, with wrong arguments, as a text-only client, and in MCP 2026-07-28.
    assert len(calls) == 4


# --- pages -----------------------------------------------------------------------------------


async def test_pages_that_are_linked_or_listed_are_read_and_nothing_else():
    read: list[str] = []

    class Watched(Server):
        def read(self, uri: str) -> Any:
            read.append(uri)
            return super().read(uri)

    server = Watched(
        tools=[SHOW, HELPER, BACKEND, tool("web", _meta={"ui": {"resourceUri": "https://a.b"}})],
        resources=[{"uri": "ui://other"}, {"uri": "file:///etc/passwd"}, {"uri": 3}, {}],
        pages={"ui://other": page("ui://other")},
    )
    await collect(server.connect, Options())

    assert read == [
        URI,
        "ui://other",
        URI,
    ]  # the last in MCP 2026-07-28, for what it says of caching


async def test_reading_ends_when_a_server_stops_answering():
    class Silent(Server):
        def answer(self, message: Any, session: Any) -> Any:
            if message["method"] == "resources/read":
                return None
            return super().answer(message, session)

    resources = [{"uri": f"ui://{number}"} for number in range(9)]
    server = Silent(tools=[BACKEND], resources=resources)
    seen = await collect(server.connect, Options(timeout=0.5))

    assert len(seen.resources) == 3
    assert any(note.startswith("6 UI resources were not read") for note in seen.notes)


async def test_a_list_that_comes_too_slowly_is_cut(monkeypatch):
    class Paged(Server):
        def answer(self, message: Any, session: Any) -> Any:
            if message["method"] != "tools/list":
                return super().answer(message, session)
            number = int(message["params"].get("cursor", 0))
            return {"result": {"tools": [tool(f"t{number}")], "nextCursor": str(number + 1)}}

    monkeypatch.setattr("transom.check.runner.LIST_TIMEOUTS", 0)
    channel = await Paged().connect()
    items, problem = await Conversation(channel, 10).list_all("tools/list", "tools")

    assert problem == "tools/list takes too long; stopped after 1"
    assert len(items) == 1


async def test_no_more_pages_are_read_than_the_limit():
    resources = [{"uri": f"ui://{number}"} for number in range(5)]
    seen = await collect(Server(resources=resources).connect, Options(max_resources=2))

    assert len(seen.resources) == 2
    assert "only the first 2 UI resources were read" in seen.notes


WITH_VIEWS = {"extensions": {EXTENSION: {"mimeTypes": [MIME]}}}
WITHOUT_TYPES = {"extensions": {EXTENSION: {"mimeTypes": []}}}


@dataclass
class Watched(Server):
    """Keeps, for each connection, the method of each request and the client's capabilities."""

    asked: list[tuple[int, str, Any]] = field(default_factory=list)
    knows_discover: bool = True

    def answer(self, message: Any, session: Any) -> Any:
        params = message.get("params", {})
        stamped = params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities")
        capabilities = stamped if stamped is not None else params.get("capabilities")
        self.asked.append((session["connection"], message["method"], capabilities))
        if message["method"] == "server/discover" and not self.knows_discover:
            return error(-32601, "Method not found")
        return super().answer(message, session)


async def test_a_client_without_types_is_listed_on_a_connection_that_serves_any_client():
    server = Watched()
    seen = await collect(server.connect, Options())

    opened = [each for each in server.asked if each[1] in ("initialize", "server/discover")]
    assert opened == [
        (1, "initialize", WITH_VIEWS),
        (2, "initialize", {}),
        (3, "server/discover", WITH_VIEWS),
        (4, "server/discover", WITH_VIEWS),
    ]
    assert (3, "tools/list", WITHOUT_TYPES) in server.asked
    assert [tool.link for tool in seen.no_mime.tools] == [None, None]


async def test_a_server_that_refuses_discover_is_asked_on_the_same_connection():
    server = Watched(knows_discover=False)
    seen = await collect(server.connect, Options())

    opened = [each for each in server.asked if each[1] in ("initialize", "server/discover")]
    assert opened == [
        (1, "initialize", WITH_VIEWS),
        (2, "initialize", {}),
        (3, "server/discover", WITH_VIEWS),
        (3, "initialize", WITHOUT_TYPES),
    ]
    assert seen.no_mime.failure is None
    assert seen.lists.failure is not None


async def test_a_server_that_links_views_for_everyone_is_not_asked_without_types():
    server = Watched(knows_discover=False, gated=lambda _: True)
    seen = await collect(server.connect, Options())

    assert server.connections == 3
    assert seen.no_mime == Visit()


@pytest.mark.parametrize(
    ("select", "visits"),
    [("B", 1), ("A2", 2), ("A4", 2), ("A5", 2), ("L", 3), ("B,N,L2", 3), ("A,L", 4), ("", 4)],
)
async def test_only_the_visits_that_the_rules_need_are_made(select: str, visits: int):
    connect, made = way_to(apps_server()), []

    async def counted() -> Channel:
        made.append(1)
        return await connect()

    told: list[tuple[str, int, int]] = []
    rules = selected(RULES, filter(None, select.split(",")))
    options = Options(calling=Calling(all=True))
    report = await check(
        "orders", counted, rules=rules, options=options, progress=lambda *step: told.append(step)
    )

    assert len(made) == visits
    assert told[-1][0] == "done"
    assert told[-1][1] == told[-1][2]
    whole = await check("orders", connect, options=options)
    asked = {rule.id for rule in rules}
    assert set(report.checked) == asked & set(whole.checked)
    assert report.findings == tuple(each for each in whole.findings if each.rule in asked)


async def test_views_are_rendered_when_there_is_someone_to_do_it():
    async def observe(seen: Facts) -> list[ViewObservation]:
        return [ViewObservation(page.uri, 3, initialized=False) for page in seen.resources]

    report = await check("orders", Server().connect, options=ObservingOptions(observer=observe))

    assert "V2" in report.checked
    (finding,) = report.findings
    assert finding.message.startswith(f"`{URI}` never completed ui/initialize within 3s; its page")


async def test_progress_is_told_and_ends_complete():
    told: list[tuple[str, int, int]] = []
    options = Options(calling=Calling())
    await collect(Server().connect, options, progress=lambda *step: told.append(step))

    assert told[0][0] == "initializing"
    assert any(text.startswith("calling show_orders") for text, _, _ in told)
    done, total = told[-1][1:]
    assert done == total


async def test_a_server_that_refuses_the_handshake_cannot_be_checked():
    class Refusing(Server):
        def answer(self, message: Any, session: Any) -> Any:
            return error(-32000, "Not today")

    with pytest.raises(NothingToCheck, match="Not today"):
        await collect(Refusing().connect, Options())


async def test_a_server_that_only_some_clients_may_enter_is_checked_as_far_as_it_goes():
    class Choosy(Server):
        def answer(self, message: Any, session: Any) -> Any:
            if message["method"] == "initialize" and not message["params"]["capabilities"]:
                return error(-32000, "Views or nothing")
            return super().answer(message, session)

    report = await check("choosy", Choosy().connect)

    assert report.failure is None
    skipped = {skip.rule: skip.reason for skip in report.skipped}
    assert "Views or nothing" in skipped["A2"]
    assert "B2" in report.checked
