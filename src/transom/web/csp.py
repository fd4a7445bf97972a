"""The Content-Security-Policy of a View, made from what its resource declares. Pure.

1. The policy is a response header of the sandbox page. Nothing in a page can change it.
2. A declared entry is used if it is an origin: scheme, host, maybe a port, maybe a wildcard for
   subdomains. Anything else (keywords, schemes, `*`, characters that end a directive) is dropped.
3. `strict` is the spec's default policy. `compat` also allows what the reference host allows and
   many Views rely on: inline code, eval, `blob:` and `data:`. Neither reaches an origin that was
   not declared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, cast

CspMode = Literal["compat", "strict"]
"""What a View's page may run: what the reference host allows, or the default of the spec."""

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_ORIGIN = re.compile(
    rf"(?:https?|wss?)://(?:(?:\*\.)?{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]+\])(?::[0-9]{{1,5}})?/?",
    re.IGNORECASE | re.ASCII,  # ASCII: otherwise the long s (U+017F) matches `s`
)
_FIELDS = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
_MAX_ENTRIES = 100  # for each field, to limit the size of the header
_MAX_LOOKED_AT = 1000

_LOCAL: dict[CspMode, dict[str, str]] = {
    "compat": {
        "default-src": "'self' 'unsafe-inline'",
        "script-src": "'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' blob: data:",
        "style-src": "'self' 'unsafe-inline' blob: data:",
        "img-src": "'self' blob: data:",
        "font-src": "'self' blob: data:",
        "media-src": "'self' blob: data:",
        "worker-src": "'self' blob: data:",
        "connect-src": "'self' blob: data:",
    },
    "strict": {
        "default-src": "'none'",
        "script-src": "'self' 'unsafe-inline'",
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data:",
        "font-src": "'self'",
        "media-src": "'self' data:",
        "connect-src": "",
    },
}
_RESOURCES = ("script-src", "style-src", "img-src", "font-src", "media-src", "worker-src")

_PERMISSIONS = {
    "camera": "camera",
    "microphone": "microphone",
    "geolocation": "geolocation",
    "clipboardWrite": "clipboard-write",
    "tools": "tools",  # WebMCP, as proposed in ext-apps pull request 691
}


def build_csp(
    declared: Mapping[str, Any] | None, mode: CspMode = "compat", *, ancestors: str = "'none'"
) -> str:
    """The header for a View whose resource declares `declared` (`_meta.ui.csp`).

    `ancestors` is the origin of the page around it, which the View itself may never reach.
    """
    taken = {field: _taken(declared, field, ancestors)[0] for field in _FIELDS}
    policy = dict(_LOCAL[mode])
    for directive in _RESOURCES:
        if directive in policy or taken["resourceDomains"]:
            policy[directive] = _join(policy.get(directive, ""), taken["resourceDomains"])
    policy["connect-src"] = _join(policy["connect-src"], taken["connectDomains"])
    policy["frame-src"] = _join("", taken["frameDomains"])
    policy["base-uri"] = _join("'self'" if mode == "strict" else "", taken["baseUriDomains"])
    policy["object-src"] = "'none'"
    policy["form-action"] = "'none'"
    policy["frame-ancestors"] = ancestors
    none = "'none'"
    return "; ".join(f"{name} {sources or none}" for name, sources in policy.items())


def dropped_entries(declared: Mapping[str, Any] | None, ancestors: str = "") -> list[str]:
    """Declared entries that are dropped."""
    return [entry for field in _FIELDS for entry in _taken(declared, field, ancestors)[1]]


def allow_attribute(permissions: Mapping[str, Any] | None) -> str:
    """The `allow` attribute of the frames for the declared permissions, in a fixed order."""
    granted = permissions or {}
    return "; ".join(
        feature for key, feature in _PERMISSIONS.items() if isinstance(granted.get(key), Mapping)
    )


def _taken(
    declared: Mapping[str, Any] | None, field: str, page: str
) -> tuple[list[str], list[str]]:
    """The usable entries of one list, and those that are not origins or are the page's own."""
    entries: object = (declared or {}).get(field)
    if not isinstance(entries, list):
        return [], [] if entries is None else [f"{field}: {entries!r}"[:200]]
    origins: list[str] = []
    others: list[str] = []
    given = cast("list[object]", entries)
    for entry in given[:_MAX_LOOKED_AT]:
        if (
            isinstance(entry, str)
            and _ORIGIN.fullmatch(entry)
            and not _covers(entry, page)
            and len(origins) < _MAX_ENTRIES
        ):
            origin = entry.removesuffix("/")
            if origin not in origins:
                origins.append(origin)
        else:
            others.append(f"{field}: {entry!r}"[:200])
    if len(given) > _MAX_LOOKED_AT:
        others.append(f"{field}: {len(given) - _MAX_LOOKED_AT} more entries")
    return origins, others


def _covers(entry: str, page: str) -> bool:
    """Whether an entry lets a View reach the page around it, by HTTP or a WebSocket."""
    (name, port), (ours, our_port) = _host_and_port(entry), _host_and_port(page)
    reached = name == ours or (name.startswith("*.") and ours.endswith(name[1:]))
    return reached and port == our_port


def _host_and_port(origin: str) -> tuple[str, str]:
    """Ports 80 and 443 count as the same, because requests to 80 may be redirected to 443."""
    host = origin.lower().removesuffix("/").partition("://")[2]
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdecimal():
        return host, ""
    return name, "" if port in ("80", "443") else port


def _join(local: str, origins: list[str]) -> str:
    return " ".join([local, *origins]).strip()
