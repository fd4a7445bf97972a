"""The facts about one server, collected once. Every rule is a pure function of a `Snapshot`.

1. Values are kept as the server sent them (`raw`): a rule is there to judge their shape.
2. What could not be learned is `None` or carries a `problem`; nothing is guessed.
3. A server is visited three times, as three clients: one that shows Views (`apps`), one that does
   not know MCP Apps (`text`), and one that names the extension but accepts no type (`no_mime`).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from transom.check.scan import HtmlScan, scan
from transom.json_values import Json, JsonObject, as_list, as_object
from transom.protocol.messages import LEGACY_URI_KEY, VIEW_MIME_TYPE

PAGE_FIELDS = ("csp", "permissions", "domain", "prefersBorder")
CSP_FIELDS = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")

CallKind = Literal["example", "again", "invalid"]
Client = Literal["apps", "text"]


# --- tools -----------------------------------------------------------------------------------


class ListedTool(msgspec.Struct, frozen=True):
    """One entry of `tools/list`; `name` is its position when it has none."""

    name: str
    raw: JsonObject

    @classmethod
    def from_entry(cls, position: int, entry: Json) -> ListedTool:
        """Read the entry at `position`, which may be anything."""
        raw = as_object(entry)
        name = raw.get("name")
        return cls(name if isinstance(name, str) and name else f"#{position}", raw)

    @property
    def meta(self) -> JsonObject:
        """`_meta`, empty when it is no object."""
        return as_object(self.raw.get("_meta"))

    @property
    def ui(self) -> JsonObject:
        """`_meta.ui`, empty when it is no object."""
        return _ui(self.raw)

    @property
    def nested_link(self) -> Json:
        """`_meta.ui.resourceUri`, whatever its type."""
        return self.ui.get("resourceUri")

    @property
    def flat_link(self) -> Json:
        """The deprecated `_meta["ui/resourceUri"]`, whatever its type."""
        return self.meta.get(LEGACY_URI_KEY)

    @property
    def link(self) -> str | None:
        """The URI a host would follow."""
        links = (self.nested_link, self.flat_link)
        return next((link for link in links if isinstance(link, str) and link), None)

    @property
    def visibility(self) -> tuple[str, ...]:
        """Who may call it; both when nothing valid is declared."""
        declared = self.ui.get("visibility")
        entries = declared if isinstance(declared, list) else ["model", "app"]
        return tuple(entry for entry in entries if isinstance(entry, str))

    @property
    def for_model(self) -> bool:
        """Whether the model may call it."""
        return "model" in self.visibility

    @property
    def app_only(self) -> bool:
        """Whether only Views may call it."""
        return self.visibility == ("app",)

    @property
    def annotations(self) -> JsonObject:
        """Its annotations, empty when they are no object."""
        return as_object(self.raw.get("annotations"))

    @property
    def verb(self) -> str:
        """The word its name starts with."""
        return next(iter(name_words(self.name)), "")

    def hints(self, name: str) -> bool:
        """Whether the annotation `name` is stated as true."""
        return self.annotations.get(name) is True


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def name_words(name: str) -> list[str]:
    """The words of a name in snake_case, kebab-case or camelCase, in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


# --- pages -----------------------------------------------------------------------------------


class ServedPage(msgspec.Struct, frozen=True):
    """One `ui://` resource: how it is listed, what reading it gave, and what its HTML holds."""

    uri: str
    linked_by: tuple[str, ...] = ()
    listed: JsonObject | None = None
    result: JsonObject | None = None
    problem: str | None = None
    """Why reading failed."""
    again: JsonObject | None = None
    """A later read of the same resource."""
    html: str | None = None
    scan: HtmlScan | None = None

    @property
    def contents(self) -> list[JsonObject]:
        """The items of the answer to `resources/read`."""
        return [as_object(item) for item in as_list(as_object(self.result).get("contents"))]

    @property
    def item(self) -> JsonObject | None:
        """The content item a host would use: the first one of the right type, else the first."""
        contents = self.contents
        fitting = (item for item in contents if item.get("mimeType") == VIEW_MIME_TYPE)
        return next(fitting, contents[0] if contents else None)

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

    def scanned(self) -> ServedPage:
        """The page with its HTML decoded and scanned."""
        html = body(self.item or {})
        return msgspec.structs.replace(self, html=html, scan=None if html is None else scan(html))


def _ui(entry: JsonObject | None) -> JsonObject:
    return as_object(as_object(as_object(entry).get("_meta")).get("ui"))


def body(item: JsonObject) -> str | None:
    """The HTML in a content item, or `None` when there is none that can be read."""
    text, blob = item.get("text"), item.get("blob")
    if isinstance(text, str) and text:
        return text
    if not isinstance(blob, str) or not blob:
        return None
    try:
        return base64.b64decode(blob, validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def rough(uri: str) -> str:
    """A URI without what people get wrong in it: case, a trailing slash, `.html`."""
    return uri.lower().rstrip("/").removesuffix(".html").rstrip("/")


def near_miss(link: str, uri: Json) -> bool:
    """Whether `uri` is not `link` but was surely meant to be."""
    return isinstance(uri, str) and link != uri and rough(link) == rough(uri)


# --- calls -----------------------------------------------------------------------------------


class RpcFault(msgspec.Struct, frozen=True):
    """A JSON-RPC error the server answered with."""

    code: int
    message: str


class TrialCall(msgspec.Struct, frozen=True):
    """One `tools/call` that the checker made.

    It gave a `result` or a `fault`, or there was no answer and `problem` says why.
    """

    tool: str
    arguments: JsonObject
    client: Client = "apps"
    kind: CallKind = "example"
    result: JsonObject | None = None
    fault: RpcFault | None = None
    problem: str | None = None


def has_text(result: JsonObject) -> bool:
    """Whether there is at least one text that is not blank."""
    return any(text.strip() for text in _texts(result))


def has_content(result: JsonObject) -> bool:
    """Whether there is something for a model: text that is not blank, or another kind of block."""
    kinds = [as_object(block).get("type") for block in as_list(result.get("content"))]
    others = ("image", "audio", "resource", "resource_link")
    return has_text(result) or any(kind in others for kind in kinds)


def text_length(result: JsonObject) -> int:
    """How many characters of text there are."""
    return sum(len(text) for text in _texts(result))


def _texts(result: JsonObject) -> Iterator[str]:
    """Every text a model would read: text blocks and the text of embedded resources."""
    for entry in as_list(result.get("content")):
        block = as_object(entry)
        if block.get("type") == "resource":
            block = as_object(block.get("resource"))
        if isinstance(text := block.get("text"), str):
            yield text


# --- rendered Views --------------------------------------------------------------------------


class Blocked(msgspec.Struct, frozen=True):
    """Something the browser blocked: the CSP directive and the origin it was for."""

    directive: str
    origin: str


class AttemptedCall(msgspec.Struct, frozen=True):
    """A server tool a View tried to call, and why the host refused it (`None`: it did not)."""

    tool: str
    refusal: str | None = None


class ViewToolFault(msgspec.Struct, frozen=True):
    """How a View's own tool answered arguments that do not fit: a JSON-RPC code or `None`."""

    tool: str
    code: int | None = None


class ViewObservation(msgspec.Struct, frozen=True):
    """One rendering of one View in a browser, in a light or a dark page."""

    uri: str
    waited: float
    theme: str = "light"
    initialized: bool = True
    late_handler: bool = False
    """The SDK warned that a handler was set after `connect()`."""
    uncaught: tuple[str, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    requests: tuple[str, ...] = ()
    """Origins the View loaded from or connected to, or tried to."""
    calls: tuple[AttemptedCall, ...] = ()
    declared_tools: bool = False
    tools: tuple[str, ...] | None = None
    """What the View's `tools/list` answered; `None` when it was not asked or gave no list."""
    list_fault: int | None = None
    tool_faults: tuple[ViewToolFault, ...] = ()
    denied_failures: tuple[tuple[str, str], ...] = ()
    """The names of the denied permissions, with an uncaught error that is about one of them."""
    cors_refusals: tuple[str, ...] = ()
    """Declared connect origins whose server refused the View's origin."""


# --- all of it -------------------------------------------------------------------------------


class ListAnswer(msgspec.Struct, frozen=True):
    """What a list method answered, all pages; `problem` says why it is missing or cut short."""

    items: tuple[JsonObject, ...] = ()
    problem: str | None = None


class Visit(msgspec.Struct, frozen=True):
    """One connection to the server, as one kind of client."""

    handshake: JsonObject | None = None
    tools: tuple[ListedTool, ...] = ()
    tools_problem: str | None = None
    resources: ListAnswer = ListAnswer()

    def tool(self, name: str) -> ListedTool | None:
        """The listed tool of that name."""
        return next((tool for tool in self.tools if tool.name == name), None)


class Snapshot(msgspec.Struct, frozen=True):
    """Everything the rules may look at."""

    apps: Visit
    text: Visit | None = None
    text_problem: str | None = None
    no_mime: Visit | None = None
    no_mime_problem: str | None = None
    pages: tuple[ServedPage, ...] = ()
    calls: tuple[TrialCall, ...] | None = None
    """`None` when calling was not allowed."""
    uncalled: tuple[tuple[str, str], ...] = ()
    """Tools that were not called, each with the reason."""
    views: tuple[ViewObservation, ...] | None = None
    """`None` when nothing was rendered."""
    views_problem: str | None = None
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
