"""The Content-Security-Policy of a View, made from what its resource declares. Pure.

1. The policy is a response header of the sandbox page. Nothing in a page can change it.
2. A declared entry is used if it is an origin: scheme, host, maybe a port, maybe a wildcard for
   subdomains. Anything else (keywords, schemes, `*`, characters that end a directive) is dropped,
   and so is every origin of the application. The header has what was read, not what was declared,
   so that a browser cannot read it in another way.
3. `strict` is the spec's default policy. `compat` also allows what the reference host allows and
   many Views rely on: inline code, eval, `blob:` and `data:`. Neither reaches an origin that was
   not declared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Literal, NamedTuple, cast

CspMode = Literal["compat", "strict"]
"""What a View's page may run: what the reference host allows, or the default of the spec."""

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_SOURCE = re.compile(
    rf"(https?|wss?)://(\*\.)?({_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]+\])(?::([0-9]+))?/?",
    re.IGNORECASE | re.ASCII,  # ASCII: otherwise the long s (U+017F) matches `s`
)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # as the last label, it makes a host an IPv4 address
_FIELDS = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
_MAX_ENTRIES = 100  # for each field, to limit the size of the header
_MAX_LOOKED_AT = 1000
_MAX_PORT = 20  # digits: leading zeros change nothing

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
    declared: Mapping[str, Any] | None,
    mode: CspMode = "compat",
    *,
    ancestors: str = "'none'",
    ours: Sequence[str] = (),
) -> str:
    """The header for a View whose resource declares `declared` (`_meta.ui.csp`).

    `ancestors` has the origins of the page and the frames around it, with spaces between them. The
    View itself may never reach those, or those in `ours`, which may have a `*.` in front of the
    host.
    """
    own = _own_sources((*ancestors.split(), *ours))
    taken = {field: _taken(declared, field, own)[0] for field in _FIELDS}
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


def dropped_entries(declared: Mapping[str, Any] | None, ours: Sequence[str] = ()) -> list[str]:
    """Declared entries that are dropped: see `build_csp`."""
    own = _own_sources(ours)
    return [entry for field in _FIELDS for entry in _taken(declared, field, own)[1]]


def allow_attribute(permissions: Mapping[str, Any] | None) -> str:
    """The `allow` attribute of the frames for the declared permissions, in a fixed order."""
    granted = permissions or {}
    return "; ".join(
        feature for key, feature in _PERMISSIONS.items() if isinstance(granted.get(key), Mapping)
    )


def _taken(
    declared: Mapping[str, Any] | None, field: str, own: Sequence[CspSource]
) -> tuple[list[str], list[str]]:
    """The usable entries of one list, and those that are not origins or cover one of our own."""
    entries: object = (declared or {}).get(field)
    if not isinstance(entries, list):
        return [], [] if entries is None else [f"{field}: {entries!r}"[:200]]
    origins: list[str] = []
    others: list[str] = []
    given = cast("list[object]", entries)
    for entry in given[:_MAX_LOOKED_AT]:
        source = read_source(entry) if isinstance(entry, str) else None
        if (
            source is not None
            and not any(map(source.overlaps, own))
            and len(origins) < _MAX_ENTRIES
        ):
            if (origin := source.text) not in origins:
                origins.append(origin)
        else:
            others.append(f"{field}: {entry!r}"[:200])
    if len(given) > _MAX_LOOKED_AT:
        others.append(f"{field}: {len(given) - _MAX_LOOKED_AT} more entries")
    return origins, others


class CspSource(NamedTuple):
    """An origin as a browser reads it, or with a wildcard all those below a host."""

    scheme: str
    wildcard: bool
    host: str
    port: int | None

    @property
    def text(self) -> str:
        """Its one spelling in a policy."""
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{'*.' if self.wildcard else ''}{self.host}{port}"

    def overlaps(self, other: CspSource) -> bool:
        """Whether a request that one allows may reach the other, by HTTP or a WebSocket."""
        if self._service != other._service:
            return False
        if self._is_loopback and other._is_loopback:
            return True
        return (
            (self.host == other.host and self.wildcard == other.wildcard)
            or (self.wildcard and other.host.endswith(f".{self.host}"))
            or (other.wildcard and self.host.endswith(f".{other.host}"))
        )

    @property
    def _service(self) -> int | None:
        """Ports 80 and 443 count as the same, because requests to 80 may be redirected to 443."""
        return None if self.port in (80, 443) else self.port

    @property
    def _is_loopback(self) -> bool:
        """What listens there has all these names."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            address = ip_address(self.host.strip("[]"))
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return address.is_loopback or address.is_unspecified


def read_source(text: str) -> CspSource | None:
    """A declared source. None: it is no origin, or one that browsers do not agree about."""
    found = _SOURCE.fullmatch(text)
    if found is None or len(found[4] or "") > _MAX_PORT:
        return None
    host, port = found[3].lower(), None if found[4] is None else int(found[4])
    if port is not None and not 0 < port < 65536:
        return None
    if host.startswith("[") or _NUMBER.fullmatch(host.rpartition(".")[2]):
        try:
            address = ip_address(host.strip("[]"))
        except ValueError:
            return None  # such as 127.1 and 0x7f000001, which a browser reads as 127.0.0.1
        if found[2] is not None:
            return None
        host = f"[{address}]" if address.version == 6 else str(address)
    return CspSource(found[1].lower(), found[2] is not None, host, port)


def _own_sources(origins: Sequence[str]) -> list[CspSource]:
    read = map(read_source, origins)
    return [source for source in read if source is not None]


def _join(local: str, origins: list[str]) -> str:
    return " ".join([local, *origins]).strip()
