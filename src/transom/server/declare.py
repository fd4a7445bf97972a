"""What may be declared, and what to write instead of what may not.

Every mistake here would otherwise surface in somebody else's host, as a View that stays blank.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import mcp.types as mcp
import pydantic

from transom.errors import RegistrationError
from transom.mcptypes import LEGACY_URI_KEY
from transom.server.csp import Csp
from transom.types import ToolAnnotations

__all__ = [
    "app_tool_meta",
    "check_name",
    "check_uri",
    "check_visibility",
    "refuse_unknown",
    "to_annotations",
    "view_meta",
]

PERMISSIONS: Final = ("camera", "microphone", "geolocation", "clipboardWrite")
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_DOMAIN: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_OF_THE_VIEW: Final = ("csp", "permissions", "domain", "prefers_border", "prefersBorder", "html")
_HINTS: Final = tuple(ToolAnnotations.__struct_encode_fields__)


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


def refuse_unknown(tool: str, keywords: Mapping[str, object], known: Iterable[str]) -> None:
    """Refuse keywords a tool does not take, and say where they belong."""
    for keyword in keywords:
        if keyword in _OF_THE_VIEW:
            raise RegistrationError(
                f"tool {tool}: {keyword} belongs to the View, where hosts look for it. "
                f"Write views.add(uri, {keyword}=...)."
            )
        near = difflib.get_close_matches(keyword, list(known), n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise RegistrationError(f"tool {tool}: there is no keyword {keyword}.{hint}")


def to_annotations(tool: str, given: object) -> mcp.ToolAnnotations | None:
    """Return a tool's annotations, from a mapping with wire names or a struct."""
    if given is None or isinstance(given, mcp.ToolAnnotations):
        return given
    if isinstance(given, ToolAnnotations):
        given = {name: getattr(given, field) for name, field in _hints()}
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


def _hints() -> list[tuple[str, str]]:
    return list(zip(_HINTS, ToolAnnotations.__struct_fields__, strict=True))


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


def view_meta(
    uri: str,
    *,
    csp: object = None,
    permissions: object = None,
    domain: object = None,
    prefers_border: object = None,
) -> dict[str, Any]:
    """Return a View's `_meta.ui`, or say how its parts must be written."""
    ui: dict[str, Any] = {}
    if csp is not None:
        if not isinstance(csp, Csp):
            raise RegistrationError(
                f'{uri}: csp is a Csp, not {type(csp).__name__}. Write csp=Csp(connect=["https://..."]).'
            )
        ui["csp"] = csp.to_wire()
    if permissions is not None:
        ui["permissions"] = _permissions(uri, permissions)
    if domain is not None:
        if not isinstance(domain, str) or not _DOMAIN.fullmatch(domain):
            raise RegistrationError(
                f"{uri}: domain is a host name without scheme and path, not {domain!r}. "
                "Write what the host's documentation tells you, such as 'abc.claudemcpcontent.com'."
            )
        ui["domain"] = domain
    if prefers_border is not None:
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
