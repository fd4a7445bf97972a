"""What a server declares about its Views: URIs, names, visibility, annotations, `_meta`, origins.

A mistake that is not found here would show up in a user's host, as a View that stays blank. So
every check raises `RegistrationError` with what to write instead.

A client that does not show Views gets the same tools for its model, without the link to a View; no
tools that only a View may call; and no pages in the list of resources. It may still read a page
whose URI it knows, which is harmless. For a client that shows Views, tools that were not declared
for Views are for the model only, unless they declare a visibility.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, TypedDict, cast

import mcp.types as mcp
import msgspec
import pydantic

from transom.errors import RegistrationError
from transom.mcptypes import supports_views
from transom.protocol.messages import LEGACY_URI_KEY, REUSE
from transom.types import ToolAnnotations

PERMISSIONS: Final = ("camera", "microphone", "geolocation", "clipboardWrite", "tools")
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_DOMAIN: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_PAGE_KEYWORDS: Final = ("csp", "permissions", "domain", "prefers_border", "prefersBorder", "html")
_HINTS: Final = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


# --- origins ---------------------------------------------------------------------------------

_WIRE: Final = {
    "connect": "connectDomains",
    "resource": "resourceDomains",
    "frame": "frameDomains",
    "base_uri": "baseUriDomains",
}
_HOST: Final = r"(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\]"
_ORIGIN: Final = re.compile(rf"(?:https?|wss?)://(?:{_HOST})(?::[0-9]{{1,5}})?")
_BARE_HOST: Final = re.compile(rf"(?:{_HOST})(?::[0-9]{{1,5}})?")
_WITH_PATH: Final = re.compile(rf"({_ORIGIN.pattern})[/?#].*")


@dataclass(frozen=True)
class Csp:
    """What a View may load and connect to, beside itself. Nothing at all when left empty.

    Each is a list of origins: scheme, host and maybe a port, such as `https://api.example.com`,
    `wss://live.example.com:8443` or `https://*.example.com`.

    Attributes:
        connect: for fetch, XHR, EventSource and WebSocket.
        resource: for scripts, styles, images, fonts and media.
        frame: for frames inside the View.
        base_uri: for `<base href>`.

    Raises:
        RegistrationError: an entry is not an origin; the text says what to write.
    """

    connect: Sequence[str] = ()
    resource: Sequence[str] = ()
    frame: Sequence[str] = ()
    base_uri: Sequence[str] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            given = getattr(self, field.name)
            # Frozen means that a list handed in cannot change it later either.
            object.__setattr__(self, field.name, _origins(field.name, given))

    def to_wire(self) -> dict[str, list[str]]:
        """Return it as `_meta.ui.csp`, without the empty lists."""
        return {
            wire: list(getattr(self, name)) for name, wire in _WIRE.items() if getattr(self, name)
        }


def _origins(name: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str):
        raise RegistrationError(f"csp {name} is a list of origins. Write {name}=[{given!r}].")
    if not isinstance(given, Sequence | set | frozenset) or isinstance(given, Mapping):
        raise RegistrationError(
            f"csp {name} is a list of origins, not {type(given).__name__}. "
            f'Write {name}=["https://api.example.com"].'
        )
    entries = tuple(cast("Sequence[Any]", given))
    for entry in entries:
        if reason := _not_an_origin(entry):
            raise RegistrationError(f"csp {name}: {entry!r} is not an origin. {reason}")
    return entries


def _not_an_origin(entry: object) -> str | None:
    """What to write instead of this entry, or None when it is an origin."""
    if not isinstance(entry, str):
        return 'Write a string such as "https://api.example.com".'
    if _ORIGIN.fullmatch(entry):
        return None
    if entry == "*":
        return "Every host is too many: list the origins the View needs."
    if "'" in entry or '"' in entry:
        return "CSP keywords and quotes have no place here: list origins only."
    if re.search(r"[\s;,]", entry):
        return "Write one origin an entry, with no spaces, commas or semicolons."
    if found := _WITH_PATH.fullmatch(entry):
        return f"Leave out the path: {found[1]!r}."
    if entry.startswith("//") and _BARE_HOST.fullmatch(entry[2:]):
        return f"Write {'https:' + entry!r}."
    if _BARE_HOST.fullmatch(entry):
        return f"Write {'https://' + entry!r}."
    return "Write scheme, host and maybe a port, such as 'https://api.example.com'."


# --- Views ------------------------------------------------------------------------------------


def check_uri(uri: object) -> str:
    """Return a View's URI, or say how it must be written."""
    if not isinstance(uri, str) or not uri:
        raise RegistrationError(
            f"a View's URI is a string such as 'ui://orders/list.html', not {uri!r}."
        )
    if not uri.startswith("ui://"):
        rest = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*:/*|^/+", "", uri)
        raise RegistrationError(
            f"a View's URI starts with ui://, not {uri!r}. Write 'ui://{rest}'."
        )
    try:
        normal = str(pydantic.AnyUrl(uri))
    except pydantic.ValidationError:
        normal = ""
    if re.search(r"[\s#?{}]", uri) or not uri.removeprefix("ui://").strip("/") or not normal:
        raise RegistrationError(
            f"{uri!r} does not name a page. Write a host and a path without spaces, braces, "
            "query or fragment, such as 'ui://orders/list.html'."
        )
    if normal != uri:
        # Hosts compare byte by byte; some servers answer with the normal form.
        raise RegistrationError(f"{uri!r} is not in normal form. Write {normal!r}.")
    return uri


class ResourceOptions(TypedDict, total=False):
    """The keywords of `Views.add`, besides `html`."""

    csp: Csp | None
    permissions: Collection[str] | None
    domain: str | None
    prefers_border: bool | None
    name: str | None
    title: str | None
    description: str | None


def view_meta(uri: str, options: ResourceOptions) -> dict[str, Any]:
    """Return a View's `_meta.ui`, or say how its parts must be written."""
    given = cast("Mapping[str, object]", options)  # users may pass anything
    ui: dict[str, Any] = {}
    if (csp := given.get("csp")) is not None:
        if not isinstance(csp, Csp):
            raise RegistrationError(
                f'{uri}: csp is a Csp, not {type(csp).__name__}. Write csp=Csp(connect=["https://..."]).'
            )
        ui["csp"] = csp.to_wire()
    if (permissions := given.get("permissions")) is not None:
        ui["permissions"] = _permissions(uri, permissions)
    if (domain := given.get("domain")) is not None:
        if not isinstance(domain, str) or not _DOMAIN.fullmatch(domain):
            raise RegistrationError(
                f"{uri}: domain is a host name without scheme and path, not {domain!r}. "
                "Write what the host's documentation tells you, such as 'abc.claudemcpcontent.com'."
            )
        ui["domain"] = domain
    if (prefers_border := given.get("prefers_border")) is not None:
        if not isinstance(prefers_border, bool):
            raise RegistrationError(
                f"{uri}: prefers_border is True, False or left out, not {prefers_border!r}."
            )
        ui["prefersBorder"] = prefers_border
    return ui


def _permissions(uri: str, given: object) -> dict[str, Any]:
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence | set | frozenset):
        raise RegistrationError(
            f"{uri}: permissions is a list of names, not {given!r}. "
            f'Write permissions=["camera"], out of {", ".join(PERMISSIONS)}.'
        )
    names = list(cast("Iterable[object]", given))
    for name in names:
        if name not in PERMISSIONS:
            plain = re.sub(r"[^a-z]", "", str(name).lower())
            near = difflib.get_close_matches(plain, [p.lower() for p in PERMISSIONS], n=1)
            meant = next((p for p in PERMISSIONS if near and p.lower() == near[0]), None)
            hint = f"Write {meant!r}." if meant else f"There are {', '.join(PERMISSIONS)}."
            raise RegistrationError(f"{uri}: there is no permission {name!r}. {hint}")
    return {name: {} for name in PERMISSIONS if name in names}


# --- tools ------------------------------------------------------------------------------------


def check_name(name: object) -> str:
    """Return a tool's name, or say how it must be written."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise RegistrationError(
            f"{name!r} cannot be a tool's name. Write 1 to 128 of A-Z a-z 0-9 _ . - as name=."
        )
    return name


def check_visibility(tool: str, visibility: object) -> list[str]:
    """Return who may call a tool, or say how it must be written."""
    if isinstance(visibility, str) or not isinstance(visibility, Sequence | set | frozenset):
        raise RegistrationError(
            f"tool {tool}: visibility is a list, not {visibility!r}. "
            'Write visibility=["model", "app"], or one of the two.'
        )
    entries = list(cast("Iterable[object]", visibility))
    if not entries:
        raise RegistrationError(
            f"tool {tool}: with an empty visibility nobody can call it. "
            'Write ["model"], ["app"] or both.'
        )
    for entry in entries:
        if entry not in ("model", "app"):
            raise RegistrationError(
                f'tool {tool}: visibility knows "model" and "app", not {entry!r}.'
            )
    return [who for who in ("model", "app") if who in entries]


def refuse_unknown(tool: str, keywords: Iterable[str], known: Collection[str]) -> None:
    """Refuse keywords a tool does not take, and say where they belong."""
    for keyword in keywords:
        if keyword in known:
            continue
        if keyword in _PAGE_KEYWORDS:
            raise RegistrationError(
                f"tool {tool}: {keyword} belongs to the View, where hosts look for it. "
                f"Write views.add(uri, {keyword}=...)."
            )
        near = difflib.get_close_matches(keyword, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise RegistrationError(f"tool {tool}: there is no keyword {keyword}.{hint}")


def to_annotations(tool: str, given: object) -> mcp.ToolAnnotations | None:
    """Return a tool's annotations, from a mapping with wire names or a struct."""
    if given is None or isinstance(given, mcp.ToolAnnotations):
        return given
    if isinstance(given, ToolAnnotations):
        given = cast("object", msgspec.to_builtins(given))
    if not isinstance(given, Mapping):
        raise RegistrationError(
            f"tool {tool}: annotations is a mapping, not {type(given).__name__}. "
            'Write annotations={"readOnlyHint": True}.'
        )
    wire = cast("Mapping[str, object]", given)
    for key, value in wire.items():
        if key not in _HINTS:
            near = difflib.get_close_matches(key.replace("_", ""), _HINTS, n=1)
            hint = f"Write {near[0]}." if near else f"There are {', '.join(_HINTS)}."
            raise RegistrationError(f"tool {tool}: there is no annotation {key!r}. {hint}")
        wanted = str if key == "title" else bool
        if value is not None and not isinstance(value, wanted):
            raise RegistrationError(
                f"tool {tool}: annotation {key} is a {wanted.__name__}, not {value!r}."
            )
    return mcp.ToolAnnotations.model_validate(dict(wire))


def app_tool_meta(tool: str, meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a tool's `_meta` with its link to a View under both keys, old and new.

    Hosts from before `_meta.ui.resourceUri` read the flat key; a link under one of them is
    copied to the other. No link and no `_meta` are fine too.
    """
    result = dict(meta or {})
    flat = result.get(LEGACY_URI_KEY)
    given = result.get("ui")
    if given is not None and not isinstance(given, Mapping):
        raise RegistrationError(f"tool {tool}: _meta.ui is an object, not {given!r}.")
    ui: dict[str, Any] = dict(cast("Mapping[str, Any]", given or {}))
    for key in ("csp", "permissions", "domain", "prefersBorder"):
        if key in ui:
            raise RegistrationError(
                f"tool {tool}: _meta.ui.{key} is ignored on a tool. Move it to the View: "
                "register_app_resource or views.add."
            )
    nested = ui.get("resourceUri")
    if nested and flat and nested != flat:
        raise RegistrationError(
            f"tool {tool}: _meta.ui.resourceUri {nested!r} and _meta[{LEGACY_URI_KEY!r}] {flat!r} "
            "disagree. Keep the first."
        )
    if link := nested or flat:
        ui["resourceUri"] = result[LEGACY_URI_KEY] = check_uri(link)
    if "visibility" in ui:
        ui["visibility"] = check_visibility(tool, ui["visibility"])
    if ui:
        result["ui"] = ui
    return result


def is_plain(capabilities: mcp.ClientCapabilities | None, assume_views: bool) -> bool:
    """Whether a client does not show Views.

    `assume_views` decides where its capabilities are not known: a client of a protocol version
    before 2026-07-28, on stateless HTTP.
    """
    return not assume_views if capabilities is None else not supports_views(capabilities)


def hidden(meta: Mapping[str, Any] | None) -> bool:
    """Whether this `_meta` hides a tool from the model."""
    ui = (meta or {}).get("ui")
    if not isinstance(ui, Mapping):
        return False
    visibility = cast("Mapping[str, object]", ui).get("visibility")
    return isinstance(visibility, list | tuple) and "model" not in visibility


def model_only(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """A plain tool's `_meta`: for the model only, unless it has a visibility or opens a View."""
    known = dict(meta or {})
    ui = known.get("ui", {})
    if not isinstance(ui, Mapping) or LEGACY_URI_KEY in known:
        return known
    given = cast("Mapping[str, Any]", ui)
    if "resourceUri" not in given:
        known["ui"] = {"visibility": ["model"], **given}
    return known


def without_view(meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a tool's `_meta` without what MCP Apps put there; None when nothing is left."""
    ours = ("ui", LEGACY_URI_KEY, REUSE)
    rest = {key: value for key, value in (meta or {}).items() if key not in ours}
    return rest or None


def is_ui_resource(uri: object) -> bool:
    """Whether this is the URI, or the URI template, of a View's page."""
    return str(uri).startswith("ui://")


def unknown_tool(name: str) -> str:
    """Return the error text for such a client that calls a tool which only a View may call."""
    return f"Unknown tool: {name}"
