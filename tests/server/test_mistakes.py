"""Every mistake is caught where it is written, and the message says what to write instead."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp.types as mcp
import pytest
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

from transom.errors import RegistrationError, UsageError
from transom.server import Csp, Views, register_app_resource, register_app_tool
from transom.types import ToolAnnotations

PAGE = "<!doctype html><p>hi"
URI = "ui://orders/list.html"


def show(status: str) -> str:
    """Show orders."""
    return status


def add(uri: Any = URI, html: Any = PAGE, **keywords: Any) -> None:
    Views().add(uri, html=html, **keywords)


@pytest.mark.parametrize(
    ("mistake", "instead"),
    [
        (lambda: add("https://orders/list.html"), "Write 'ui://orders/list.html'"),
        (lambda: add("UI://orders/list.html"), "Write 'ui://orders/list.html'"),
        (lambda: add("ui:/orders"), "Write 'ui://orders'"),
        (lambda: add("orders/list.html"), "Write 'ui://orders/list.html'"),
        (lambda: add("/orders"), "Write 'ui://orders'"),
        (lambda: add(""), "such as 'ui://orders/list.html'"),
        (lambda: add(None), "such as 'ui://orders/list.html'"),
        (lambda: add("ui://"), "Write a host and a path"),
        (lambda: add("ui:///"), "Write a host and a path"),
        (lambda: add("ui://orders/my list"), "without spaces"),
        (lambda: add("ui://orders/{id}"), "without spaces, braces"),
        (lambda: add("ui://orders/a?b=1"), "query or fragment"),
        (lambda: add("ui://orders/a#b"), "query or fragment"),
        (lambda: add("ui://orders/../x"), "Write 'ui://orders/x'"),
        (lambda: add("ui://orders/ü"), "Write 'ui://orders/%C3%BC'"),
        (lambda: add(html="<p>hi"), "Start it with <!doctype html>"),
        (lambda: add(html="orders.html"), "html=Path('orders.html')"),
        (lambda: add(html=Path("no/such/file.html")), "Path(__file__).with_name('file.html')"),
        (lambda: add(html=7), "html is text, a Path or a function"),
        (lambda: add(csp={"connectDomains": []}), "Write csp=Csp(connect="),
        (lambda: add(permissions="camera"), 'Write permissions=["camera"]'),
        (lambda: add(permissions={"camera": {}}), 'Write permissions=["camera"]'),
        (lambda: add(permissions=["clipboard-write"]), "Write 'clipboardWrite'"),
        (lambda: add(permissions=["clipboard_write"]), "Write 'clipboardWrite'"),
        (lambda: add(permissions=["mic"]), "There are camera, microphone"),
        (lambda: add(permissions=["microfone"]), "Write 'microphone'"),
        (lambda: add(permissions=[None]), "There are camera, microphone"),
        (lambda: add(prefers_border="yes"), "True, False or left out"),
        (lambda: add(prefers_border=1), "True, False or left out"),
        (lambda: add(domain="https://x.example.com"), "without scheme and path"),
        (lambda: add(domain="x.example.com/a"), "without scheme and path"),
        (lambda: add(domain=""), "without scheme and path"),
        (lambda: add(domain=7), "without scheme and path"),
    ],
)
def test_a_view_declared_wrongly_is_refused(mistake: Callable[[], None], instead: str):
    with pytest.raises(RegistrationError) as refused:
        mistake()
    assert instead in str(refused.value)


def test_two_views_at_one_uri_are_refused():
    views = Views()
    views.add(URI, html=PAGE)
    with pytest.raises(RegistrationError, match="Choose another URI"):
        views.add(URI, html=PAGE)


@pytest.mark.parametrize(
    ("entry", "instead"),
    [
        ("https://api.example.com/v1", "Leave out the path: 'https://api.example.com'"),
        ("https://api.example.com/", "Leave out the path: 'https://api.example.com'"),
        ("https://api.example.com:8443?x", "Leave out the path: 'https://api.example.com:8443'"),
        ("api.example.com", "Write 'https://api.example.com'"),
        ("localhost:3000", "Write 'https://localhost:3000'"),
        ("*.example.com", "Write 'https://*.example.com'"),
        ("//cdn.example.com", "Write 'https://cdn.example.com'"),
        ("*", "list the origins"),
        ("https://*", "Write scheme, host and maybe a port"),
        ("https://a.*.example.com", "Write scheme, host and maybe a port"),
        ("https://example.com:*", "Write scheme, host and maybe a port"),
        ("'self'", "CSP keywords and quotes"),
        ("'unsafe-eval'", "CSP keywords and quotes"),
        ('https://"x".com', "CSP keywords and quotes"),
        ("https://a.com https://b.com", "one origin an entry"),
        ("https://a.com; script-src *", "one origin an entry"),
        ("https://a.com,https://b.com", "one origin an entry"),
        ("https://a.com\n", "one origin an entry"),
        ("data:", "Write scheme, host and maybe a port"),
        ("blob:", "Write scheme, host and maybe a port"),
        ("https:", "Write scheme, host and maybe a port"),
        ("ftp://example.com", "Write scheme, host and maybe a port"),
        ("https://user@example.com", "Write scheme, host and maybe a port"),
        ("https://exämple.com", "Write scheme, host and maybe a port"),
        ("", "Write scheme, host and maybe a port"),
        (7, "Write a string"),
        (None, "Write a string"),
    ],
)
@pytest.mark.parametrize("field", ["connect", "resource", "frame", "base_uri"])
def test_what_is_no_origin_is_refused(field: str, entry: Any, instead: str):
    with pytest.raises(RegistrationError) as refused:
        Csp(**{field: ["https://fine.example.com", entry]})
    assert instead in str(refused.value)
    assert f"csp {field}" in str(refused.value)


@pytest.mark.parametrize("given", ["https://a.com", {"https://a.com": 1}, 7, None])
def test_origins_are_a_list(given: Any):
    with pytest.raises(RegistrationError, match=r"Write connect=\["):
        Csp(connect=given)


ORIGINS = [
    "https://api.example.com",
    "http://localhost:3000",
    "wss://live.example.com:8443",
    "ws://127.0.0.1",
    "https://*.example.com",
    "https://[::1]:8080",
    "https://a_b.example.com",
]


def test_origins_reach_the_wire_as_they_are():
    given = list(ORIGINS)
    csp = Csp(connect=given, resource=(ORIGINS[0],), frame=[ORIGINS[4]], base_uri={ORIGINS[0]})
    given.append("*")
    assert csp.to_wire() == {
        "connectDomains": ORIGINS,
        "resourceDomains": [ORIGINS[0]],
        "frameDomains": [ORIGINS[4]],
        "baseUriDomains": [ORIGINS[0]],
    }
    assert Csp().to_wire() == {}
    assert Csp(connect=ORIGINS) == Csp(connect=tuple(ORIGINS))
    with pytest.raises(AttributeError):
        csp.connect = []  # type: ignore[misc]


class Caller:
    def __call__(self, status: str) -> str:
        return status


def takes_rest(**rest: str) -> str:
    """Take anything."""
    return str(rest)


def takes_list(*rest: str) -> str:
    """Take anything."""
    return str(rest)


def takes_position(status: str, /) -> str:
    """Take one."""
    return status


def no_docstring(status: str) -> str:
    return status


def blank_docstring(status: str) -> str:
    """ """
    return status


def returns_socket(status: str) -> Callable[[], None]:
    """Return something without a JSON form."""
    raise NotImplementedError


def mystery(status: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821
    """Take a type that does not exist."""
    return str(status)


def tool(function: Callable[..., Any] = show, **keywords: Any) -> None:
    views = Views()
    page = views.add(URI, html=PAGE)
    views.tool(**{"opens": page, **keywords})(function)


def helper(function: Callable[..., Any] = show, **keywords: Any) -> None:
    Views().helper(**keywords)(function)


@pytest.mark.parametrize(
    ("mistake", "instead"),
    [
        (lambda: tool(opens="ui://orders/lst.html"), "Did you mean 'ui://orders/list.html'?"),
        (lambda: tool(opens="ui://x"), "Declare it first, with views.add(...)"),
        (lambda: tool(opens=7), "what views.add(...) returned"),
        (lambda: tool(opens=Views().add(URI, html=PAGE)), "was added to other Views"),
        (lambda: tool(opens=None), "@views.tool(opens=...)"),
        (lambda: Views().tool(show), "@views.tool(opens=...)"),
        (lambda: Views().tool(), "@views.tool(opens=...)"),
        (lambda: tool(visibility=["user"]), 'visibility knows "model" and "app"'),
        (lambda: tool(visibility="app"), 'Write visibility=["model", "app"]'),
        (lambda: tool(visibility=True), 'Write visibility=["model", "app"]'),
        (lambda: tool(visibility=[]), 'Write ["model"], ["app"] or both'),
        (lambda: tool(reuse="sometimes"), 'reuse is "arguments" or "always", not '),
        (lambda: tool(reuse=True), 'reuse is "arguments" or "always", not True'),
        (lambda: tool(csp=Csp()), "Write views.add(uri, csp=...)"),
        (lambda: tool(opens=None, csp=Csp()), "Write views.add(uri, csp=...)"),
        (lambda: tool(permissions=["camera"]), "Write views.add(uri, permissions=...)"),
        (lambda: tool(prefers_border=True), "Write views.add(uri, prefers_border=...)"),
        (lambda: tool(domain="x"), "Write views.add(uri, domain=...)"),
        (lambda: tool(html=PAGE), "Write views.add(uri, html=...)"),
        (lambda: tool(anotations={}), "Did you mean annotations?"),
        (lambda: tool(colour="red"), "there is no keyword colour"),
        (lambda: tool(meta={"ui": {}}), "Use opens= and visibility="),
        (lambda: tool(meta={"ui/resourceUri": URI}), "Use opens= and visibility="),
        (lambda: tool(annotations=["readOnlyHint"]), 'Write annotations={"readOnlyHint": True}'),
        (lambda: tool(annotations={"read_only_hint": True}), "Write readOnlyHint."),
        (lambda: tool(annotations={"readonlyhint": True}), "Write readOnlyHint."),
        (lambda: tool(annotations={"zzz": True}), "There are title, readOnlyHint"),
        (lambda: tool(annotations={"readOnlyHint": "yes"}), "readOnlyHint is a bool"),
        (lambda: tool(annotations={"title": True}), "title is a str"),
        (lambda: tool(name="show orders"), "Write 1 to 128 of"),
        (lambda: tool(name=""), "Write 1 to 128 of"),
        (lambda: tool(name="x" * 129), "Write 1 to 128 of"),
        (lambda: tool(text="3 orders"), "text is a function"),
        (lambda: tool(no_docstring), "in a docstring or as description="),
        (lambda: tool(blank_docstring), "in a docstring or as description="),
        (lambda: tool(description="  "), "in a docstring or as description="),
        (lambda: tool(lambda status: status), "'<lambda>' cannot be a tool's name"),
        (lambda: tool(functools.partial(show)), "cannot be a tool's name"),
        (lambda: tool(functools.partial(show), name="x"), "in a docstring or as description="),
        (lambda: tool(Caller(), name="x"), "in a docstring or as description="),
        (lambda: tool(7), "a tool is a function, not int"),  # type: ignore[arg-type]
        (lambda: tool(takes_rest), "Name each parameter"),
        (lambda: tool(takes_list), "Name each parameter"),
        (lambda: tool(takes_position), "Remove the /"),
        (lambda: tool(mystery), "Define it at the top of a module"),
        (lambda: tool(returns_socket), "its return type has no JSON form"),
        (lambda: helper(visibility=["model"]), "Write @views.tool(opens=..., visibility=[...])"),
        (lambda: helper(opens="ui://x"), "Declare it first"),
        (lambda: helper(csp=Csp()), "Write views.add(uri, csp=...)"),
        (lambda: helper(no_docstring), "in a docstring or as description="),
        (lambda: Views().helper(no_docstring), "in a docstring or as description="),
        (lambda: helper(meta={"ui": {"visibility": ["app"]}}), "Use opens="),
    ],
)
def test_a_tool_declared_wrongly_is_refused(mistake: Callable[[], None], instead: str):
    with pytest.raises(RegistrationError) as refused:
        mistake()
    assert instead in str(refused.value)


def test_a_refused_tool_leaves_nothing_behind():
    views = Views()
    page = views.add(URI, html=PAGE)
    with pytest.raises(RegistrationError):
        views.tool(opens=page, visibility=["user"])(show)  # type: ignore[list-item]
    views.tool(opens=page)(show)


def test_two_tools_of_one_name_are_refused():
    views = Views()
    views.helper(show)
    with pytest.raises(RegistrationError, match="Give this one a name="):
        views.helper(show)
    views.helper(name="show_again")(show)


@pytest.mark.parametrize(
    "annotations",
    [
        {"readOnlyHint": True, "title": "Orders", "destructiveHint": None},
        ToolAnnotations(read_only_hint=True, title="Orders"),
        mcp.ToolAnnotations(read_only_hint=True, title="Orders"),
    ],
)
async def test_annotations_may_be_a_mapping_or_a_struct(annotations: Any):
    server = MCPServer("x")
    register_app_tool(server, "show", show, annotations=annotations)
    [listed] = await server.list_tools()
    assert listed.annotations == mcp.ToolAnnotations(read_only_hint=True, title="Orders")


@pytest.mark.parametrize("place", [Server("x"), object(), None, "orders.py"])
def test_only_known_servers_can_have_views(place: Any):
    for mistake in (
        lambda: Views().install(place),
        lambda: register_app_tool(place, "show", show),
        lambda: register_app_resource(place, URI, html=PAGE),
    ):
        with pytest.raises(UsageError, match="an MCPServer or a FastMCP server"):
            mistake()


def test_views_go_on_a_server_once():
    views = Views()
    server = MCPServer("x", extensions=[views])
    with pytest.raises(UsageError, match="already on this server"):
        views.install(server)


def test_views_say_so_when_they_cannot_find_their_server():
    with pytest.raises(UsageError, match=r"Write views.install\(server\)"):
        Views().tools()


@pytest.mark.parametrize(
    ("meta", "instead"),
    [
        ({"ui": {"resourceUri": "https://x/y"}}, "Write 'ui://x/y'"),
        ({"ui/resourceUri": "orders"}, "Write 'ui://orders'"),
        ({"ui": {"resourceUri": 7}}, "such as 'ui://orders/list.html'"),
        ({"ui": {"resourceUri": URI}, "ui/resourceUri": "ui://other"}, "disagree. Keep the first"),
        ({"ui": {"visibility": ["modle"]}}, 'visibility knows "model" and "app"'),
        ({"ui": {"visibility": []}}, 'Write ["model"], ["app"] or both'),
        ({"ui": {"csp": {}}}, "Move it to the View"),
        ({"ui": {"permissions": {}}}, "Move it to the View"),
        ({"ui": {"prefersBorder": True}}, "Move it to the View"),
        ({"ui": "ui://orders"}, "_meta.ui is an object"),
    ],
)
async def test_register_app_tool_refuses_wrong_meta(meta: dict[str, Any], instead: str):
    server = MCPServer("x")
    with pytest.raises(RegistrationError) as refused:
        register_app_tool(server, "show", show, meta=meta)
    assert instead in str(refused.value)
    assert not await server.list_tools()
