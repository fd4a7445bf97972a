"""The facts about one server, collected once. Every rule is a pure function of `Facts`.

1. Values are kept as the server sent them (`raw`): a rule is there to judge their shape.
2. What could not be learned is `None` or carries a `failure`; nothing is guessed.
3. A server is asked as three clients: one that shows Views (`apps`), one that does not know MCP
   Apps (`text`), and one that names the extension but accepts no type (`no_mime`). One that speaks
   MCP 2026-07-28 is asked for its lists on two connections (`lists`).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from transom.check.scan import HtmlScan
from transom.json_values import Json, JsonObject, as_list, as_object
from transom.protocol.messages import LEGACY_URI_KEY, VIEW_MIME_TYPE

RESOURCE_FIELDS = ("csp", "permissions", "domain", "prefersBorder")
CSP_FIELDS = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
_LOADING = ("script-src", "style-src", "img-src", "font-src", "media-src", "worker-src")
CSP_DIRECTIVES = {
    "connect-src": ("connect", "connectDomains"),
    "frame-src": ("frame", "frameDomains"),
    "base-uri": ("base_uri", "baseUriDomains"),
    **dict.fromkeys(_LOADING, ("resource", "resourceDomains")),
}
"""By directive: what declares an origin for it, in `Csp` and in `_meta.ui.csp`."""

CallKind = Literal["example", "again", "invalid"]
Client = Literal["apps", "text"]


class ListedTool(msgspec.Struct, frozen=True):
    """One entry of `tools/list`; `name` is its position when it has none."""

    name: str
    raw: JsonObject
    meta: JsonObject
    ui: JsonObject
    nested_link: Json
    flat_link: Json
    """The deprecated `_meta["ui/resourceUri"]`."""
    link: str | None
    """The URI a host would follow."""
    visibility: tuple[str, ...]
    """Who may call it; both when nothing valid is declared."""
    annotations: JsonObject

    @classmethod
    def from_entry(cls, position: int, entry: Json) -> ListedTool:
        """Read the entry at `position`, which may be anything."""
        raw = as_object(entry)
        name, meta, ui = raw.get("name"), as_object(raw.get("_meta")), _ui(raw)
        links = (ui.get("resourceUri"), meta.get(LEGACY_URI_KEY))
        declared = ui.get("visibility")
        callers = declared if isinstance(declared, list) else ["model", "app"]
        return cls(
            name if isinstance(name, str) and name else f"#{position}",
            raw,
            meta,
            ui,
            *links,
            next((link for link in links if isinstance(link, str) and link), None),
            tuple(caller for caller in callers if isinstance(caller, str)),
            as_object(raw.get("annotations")),
        )

    @property
    def for_model(self) -> bool:
        """Whether the model may call it."""
        return "model" in self.visibility

    @property
    def app_only(self) -> bool:
        """Whether only Views may call it."""
        return self.visibility == ("app",)

    @property
    def verb(self) -> str:
        """The word its name starts with."""
        return next(iter(name_words(self.name)), "")

    def hints(self, name: str) -> bool:
        """Whether the annotation `name` is stated as true."""
        return self.annotations.get(name) is True


def listed_tools(entries: Iterable[Json]) -> tuple[ListedTool, ...]:
    """The entries of `tools/list`, which may be anything."""
    return tuple(ListedTool.from_entry(at, entry) for at, entry in enumerate(entries, 1))


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def name_words(name: str) -> list[str]:
    """The words of a name in snake_case, kebab-case or camelCase, in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


class ServedResource(msgspec.Struct, frozen=True):
    """One `ui://` resource: how it is listed, what reading it gave, and what its HTML holds."""

    uri: str
    linked_by: tuple[str, ...]
    listed: JsonObject
    result: JsonObject | None
    failure: str | None
    """Why reading failed."""
    contents: list[JsonObject]
    item: JsonObject
    """The content item a host would use: the first one of the right type, else the first."""
    html: str | None
    scan: HtmlScan
    again: JsonObject | None = None
    """A later read of the same resource."""

    @classmethod
    def from_answer(
        cls,
        uri: str,
        linked_by: tuple[str, ...],
        listed: JsonObject,
        result: JsonObject | None,
        failure: str | None,
    ) -> ServedResource:
        """Read the answer to `resources/read`, which may be anything, and scan its HTML."""
        contents = [as_object(item) for item in as_list(as_object(result).get("contents"))]
        fitting = (item for item in contents if item.get("mimeType") == VIEW_MIME_TYPE)
        item = next(fitting, contents[0] if contents else {})
        html = _body(item)
        found = HtmlScan(html or "")
        return cls(uri, linked_by, listed, result, failure, contents, item, html, found)

    @property
    def ui(self) -> JsonObject:
        """`_meta.ui` of the content item."""
        return _ui(self.item)

    @property
    def listed_ui(self) -> JsonObject:
        """`_meta.ui` of the entry in resources/list."""
        return _ui(self.listed)

    @property
    def effective_ui(self) -> JsonObject:
        """What a host goes by: each field of the content item, else of the listing."""
        return {**self.listed_ui, **self.ui}

    def origins(self, key: str) -> list[str]:
        """The strings declared in `csp.KEY`."""
        declared = as_object(self.effective_ui.get("csp")).get(key)
        return [entry for entry in as_list(declared) if isinstance(entry, str)]


def _ui(entry: JsonObject) -> JsonObject:
    return as_object(as_object(entry.get("_meta")).get("ui"))


def _body(item: JsonObject) -> str | None:
    text, blob = item.get("text"), item.get("blob")
    if isinstance(text, str) and text:
        return text
    if not isinstance(blob, str) or not blob:
        return None
    try:
        return base64.b64decode(blob, validate=True).decode()
    except ValueError:
        return None


def rough(uri: str) -> str:
    """A URI without what people get wrong in it: case, a trailing slash, `.html`."""
    return uri.lower().rstrip("/").removesuffix(".html").rstrip("/")


def near_miss(link: str, uri: Json) -> bool:
    """Whether `uri` is not `link` but was surely meant to be."""
    return isinstance(uri, str) and link != uri and rough(link) == rough(uri)


class TrialCall(msgspec.Struct, frozen=True):
    """One `tools/call` that the checker made.

    It gave a `result` or a `fault` (the code and message of a JSON-RPC error), or there was no
    answer and `failure` says why.
    """

    tool: str
    arguments: JsonObject
    client: Client = "apps"
    kind: CallKind = "example"
    result: JsonObject | None = None
    fault: tuple[int, str] | None = None
    failure: str | None = None


def texts(result: JsonObject) -> Iterator[str]:
    """Every text a model would read: text blocks and the text of embedded resources."""
    for entry in as_list(result.get("content")):
        block = as_object(entry)
        if block.get("type") == "resource":
            block = as_object(block.get("resource"))
        if isinstance(text := block.get("text"), str):
            yield text


def has_text(result: JsonObject) -> bool:
    """Whether there is at least one text that is not blank."""
    return any(text.strip() for text in texts(result))


class ViewObservation(msgspec.Struct, frozen=True):
    """One rendering of one View in a browser, in a light or a dark page."""

    uri: str
    waited: float
    theme: str = "light"
    initialized: bool = True
    late_handler: bool = False
    """The SDK warned that a handler was set after `connect()`."""
    uncaught: tuple[str, ...] = ()
    blocked: tuple[tuple[str, str], ...] = ()
    """What the browser blocked: the CSP directive and the origin it was for."""
    requests: tuple[str, ...] = ()
    """Origins the View loaded from or connected to, or tried to."""
    calls: tuple[str, ...] = ()
    """The server tools it tried to call."""
    declared_tools: bool = False
    tools: tuple[str, ...] | None = None
    """What the View's `tools/list` answered; `None` when it was not asked or gave no list."""
    list_fault: int | None = None
    tool_faults: tuple[tuple[str, int], ...] = ()
    """Its own tools that answered unfitting arguments with a JSON-RPC error, and its code."""
    bad_schemas: tuple[tuple[str, str], ...] = ()
    """Its own tools that no host can offer, and why."""
    denied_failures: tuple[tuple[str, str], ...] = ()
    """The names of the denied permissions, with an uncaught error that is about one of them."""
    cors_refusals: tuple[str, ...] = ()
    """Declared connect origins whose server refused the View's origin."""


class Visit(msgspec.Struct, frozen=True):
    """One connection to the server, as one kind of client."""

    handshake: JsonObject | None = None
    tools: tuple[ListedTool, ...] = ()
    resources: tuple[JsonObject, ...] = ()
    failure: str | None = None
    """Why the tools could not be listed, or not all of them."""


class ListedTools(msgspec.Struct, frozen=True):
    """The tools as they were listed once in MCP 2026-07-28, by name; `when` ends a sentence."""

    when: str
    tools: dict[str, JsonObject]
    after_calls: bool = False


class CacheHint(msgspec.Struct, frozen=True):
    """The cache hints of an answer in MCP 2026-07-28, unchanged."""

    what: str
    ttl: Json
    scope: Json


class Lists(msgspec.Struct, frozen=True):
    """What a server listed in MCP 2026-07-28, several times."""

    listings: tuple[ListedTools, ...] = ()
    hints: tuple[CacheHint, ...] = ()
    failure: str | None = None
    """Why there is nothing to look at."""


class Facts(msgspec.Struct, frozen=True):
    """Everything the rules may look at."""

    apps: Visit
    text: Visit = Visit(failure="the server was not listed as a text-only client")
    no_mime: Visit = Visit(failure="the server was not listed without types")
    resources: tuple[ServedResource, ...] = ()
    calls: tuple[TrialCall, ...] | None = None
    """`None` when calling was not allowed."""
    uncalled: tuple[tuple[str, str], ...] = ()
    """Tools that were not called, each with the reason."""
    lists: Lists = Lists(failure="the server was not listed in MCP 2026-07-28")
    views: tuple[ViewObservation, ...] | None = None
    """`None` when nothing was rendered."""
    views_failure: str | None = None
    """Why nothing could be rendered, when it was requested."""
    server_host: str | None = None
    """The host name of the server, when it was reached by URL."""
    dev: bool = False
    notes: tuple[str, ...] = ()
    """Remarks about how the facts were collected."""

    @property
    def tools(self) -> tuple[ListedTool, ...]:
        """The tools as a client with MCP Apps sees them."""
        return self.apps.tools

    def called(
        self, *kinds: CallKind, client: Client = "apps"
    ) -> Iterator[tuple[ListedTool, TrialCall]]:
        """The calls by that client for these purposes (`example` if none), with their tools."""
        tools = {tool.name: tool for tool in reversed(self.tools)}
        for call in self.calls or ():
            tool = tools.get(call.tool)
            if tool and call.client == client and call.kind in (kinds or ("example",)):
                yield tool, call

    def results(self) -> Iterator[tuple[ListedTool, JsonObject]]:
        """The results of the example calls, with their tools."""
        for tool, call in self.called():
            if call.result is not None:
                yield tool, call.result
