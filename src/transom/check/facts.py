"""A listed tool and a served page, with the questions that rules ask of them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

import msgspec

from transom.check.scan import HtmlScan, scan
from transom.json_values import Json, JsonObject, as_list, as_object

__all__ = [
    "APP_MIME_TYPE",
    "EXTENSION_ID",
    "FLAT_LINK_KEY",
    "ListedTool",
    "Page",
    "body",
    "near_miss",
    "page",
    "rough",
]

EXTENSION_ID = "io.modelcontextprotocol/ui"
APP_MIME_TYPE = "text/html;profile=mcp-app"
FLAT_LINK_KEY = "ui/resourceUri"


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
        return as_object(self.meta.get("ui"))

    @property
    def nested_link(self) -> Json:
        """`_meta.ui.resourceUri`, whatever its type."""
        return self.ui.get("resourceUri")

    @property
    def flat_link(self) -> Json:
        """The deprecated `_meta["ui/resourceUri"]`, whatever its type."""
        return self.meta.get(FLAT_LINK_KEY)

    @property
    def link(self) -> str | None:
        """The URI a host would follow."""
        for value in (self.nested_link, self.flat_link):
            if isinstance(value, str) and value:
                return value
        return None

    @property
    def visibility(self) -> tuple[str, ...]:
        """Who may call it; both when nothing valid is said."""
        declared = self.ui.get("visibility")
        if not isinstance(declared, list):
            return ("model", "app")
        return tuple(entry for entry in declared if isinstance(entry, str))

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

    def hints(self, name: str) -> bool:
        """Whether the annotation `name` is stated as true."""
        return self.annotations.get(name) is True


class Page(msgspec.Struct, frozen=True):
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
        return _pick(self.contents)

    @property
    def ui(self) -> JsonObject:
        """`_meta.ui` of the content item."""
        return as_object(as_object((self.item or {}).get("_meta")).get("ui"))

    @property
    def listed_ui(self) -> JsonObject:
        """`_meta.ui` of the entry in resources/list."""
        return as_object(as_object((self.listed or {}).get("_meta")).get("ui"))

    @property
    def effective_ui(self) -> JsonObject:
        """What a host goes by: each field of the content item, else of the listing."""
        return {**self.listed_ui, **self.ui}

    def origins(self, key: str) -> list[str]:
        """The strings declared in `csp.KEY`."""
        declared = as_object(self.effective_ui.get("csp")).get(key)
        return [entry for entry in as_list(declared) if isinstance(entry, str)]


def page(
    uri: str,
    *,
    linked_by: Sequence[str] = (),
    listed: JsonObject | None = None,
    result: JsonObject | None = None,
    problem: str | None = None,
    again: JsonObject | None = None,
) -> Page:
    """Make a page, with its HTML decoded and scanned."""
    bare = Page(uri, tuple(linked_by), listed, result, problem, again)
    html = body(bare.item or {})
    if html is None:
        return bare
    return msgspec.structs.replace(bare, html=html, scan=scan(html))


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


def near_miss(link: str | None, uri: Json) -> bool:
    """Whether `uri` is not `link` but was surely meant to be."""
    if link is None or not isinstance(uri, str):
        return False
    return link != uri and rough(link) == rough(uri)


def _pick(contents: list[JsonObject]) -> JsonObject | None:
    for item in contents:
        if item.get("mimeType") == APP_MIME_TYPE:
            return item
    return contents[0] if contents else None
