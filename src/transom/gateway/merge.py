"""Several servers as one: their merged capabilities, and the names of their tools and prompts.

1. A name is kept. If two servers have it, it belongs to the one that came first: in the order of
   the configuration, if both are running. The other's is `SERVER__NAME`.
2. A name that could be mistaken for a View's tool, another server's or one of the gateway's own
   always gets its server in front.
3. A name that was listed is never given to another tool or prompt, even if its server is not
   running.
4. With one server, names are not changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Raw

from transom.connections.versions import DISCOVERY_VERSION, HANDSHAKE_VERSIONS, TASKS_EXTENSION
from transom.host.tool_names import looks_owned, owned_name, owner_of, view_stem
from transom.json_values import as_list, as_object, member, members, with_member
from transom.protocol import wire
from transom.version import __version__

_MAX_SERVER = 32
_MAX_HELD = 20_000  # names of one server
_EXPRESSION = re.compile(r"\{[^{}]*\}")
_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
_INFO: Final = {"name": "transom-gateway", "version": __version__}

_TASKS: Final[dict[str, Any]] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
_NONE: Final = Raw(b"{}")
_COMPLETE: Final = {"resultType": "complete"}
_UNCACHED: Final = {"ttlMs": 0, "cacheScope": "private"}
_CACHED: Final = frozenset(
    {
        *("tools/list", "prompts/list", "resources/list", "resources/templates/list"),
        *("resources/read", "server/discover"),
    }
)
"""Methods whose results a 2026-07-28 client may cache."""

# Capabilities that a server that is not running yet may have.
_POSSIBLE: Final[Mapping[str, Any]] = {
    "tools": {},
    "resources": {},
    "prompts": {},
    "logging": {},
    "completions": {},
}


# --- what servers say about themselves -------------------------------------------------------


def with_own_capabilities(answer: Raw | bytes) -> bytes:
    """A server's answer to `initialize` or `server/discover`, with what the gateway adds to it."""
    can = members(members(answer).get("capabilities"))
    if "tools" in can:
        can["tools"] = wire.raw({**members(can["tools"]), "listChanged": True})
    resources = members(can.get("resources"))
    can["resources"] = wire.raw({**resources, "subscribe": True, "listChanged": True})
    for key, value in _own_tasks(member(answer, "protocolVersion")).items():
        can[key] = wire.raw(_union(member(can.get(key)) or {}, value))
    return with_member(answer, "capabilities", can)


def _own_tasks(version: object) -> dict[str, Any]:
    """The tasks capability for a client of this version; None is 2026-07-28."""
    if version is None:
        return {"extensions": {TASKS_EXTENSION: {}}}
    return {"tasks": _TASKS} if version == HANDSHAKE_VERSIONS[-1] else {}


def as_initialized(answer: bytes, name: str, requested: str) -> bytes:
    """A server's answer to its introduction, as a client before 2026-07-28 expects it."""
    given = members(answer)
    if "protocolVersion" in given:
        return answer
    found = {
        "protocolVersion": requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
        "capabilities": given.get("capabilities", _NONE),
        "serverInfo": members(given.get("_meta")).get(_SERVER_INFO, {"name": name, "version": "0"}),
    }
    if "instructions" in given:
        found["instructions"] = given["instructions"]
    return wire.encode(found)


def as_discovered(answer: bytes) -> bytes:
    """A server's answer to its introduction, as a 2026-07-28 client expects it."""
    given = members(answer)
    if "supportedVersions" in given:
        return answer
    found: dict[str, Any] = {
        "supportedVersions": [DISCOVERY_VERSION],
        "capabilities": given.get("capabilities", _NONE),
    }
    if "serverInfo" in given:
        found["_meta"] = {_SERVER_INFO: given["serverInfo"]}
    if "instructions" in given:
        found["instructions"] = given["instructions"]
    return as_modern(wire.encode(found))


def merge_initialized(answers: Mapping[str, bytes], requested: str, *, missing: bool) -> bytes:
    """The result of `initialize` for several servers."""
    told = {name: as_initialized(each, name, requested) for name, each in answers.items()}
    version = min(str(member(each, "protocolVersion")) for each in told.values())
    possible = {**(_POSSIBLE if missing else {}), **_own_tasks(version)}
    merged: dict[str, Any] = {
        "protocolVersion": version,
        "capabilities": _merged_capabilities(told, possible),
        "serverInfo": _INFO,
    }
    return wire.encode({**merged, **_merged_instructions(told)})


def merge_discovered(answers: Mapping[str, bytes], *, missing: bool) -> bytes:
    """The result of `server/discover` for several servers."""
    told = {name: as_discovered(each) for name, each in answers.items()}
    offered = [as_list(member(each, "supportedVersions")) for each in told.values()]
    possible = {**(_POSSIBLE if missing else {}), **_own_tasks(None)}
    merged: dict[str, Any] = {
        "supportedVersions": [v for v in offered[0] if all(v in each for each in offered)],
        "capabilities": _merged_capabilities(told, possible),
        "_meta": {_SERVER_INFO: _INFO},
    }
    return as_modern(wire.encode({**merged, **_merged_instructions(told)}))


def _merged_capabilities(
    answers: Mapping[str, bytes], possible: Mapping[str, Any]
) -> dict[str, Any]:
    can: dict[str, Any] = {}
    for each in answers.values():
        can = _union(can, as_object(member(each, "capabilities")))
    can = _union(can, dict(possible))
    for key in ("tools", "prompts"):
        if key in can:
            can[key] = _union(can[key], {"listChanged": True})
    can["resources"] = _union(can.get("resources"), {"subscribe": True, "listChanged": True})
    return can


def _merged_instructions(answers: Mapping[str, bytes]) -> dict[str, str]:
    parts: list[str] = []
    for name, answer in answers.items():
        text: object = member(answer, "instructions")
        if isinstance(text, str) and text.strip():
            # Quoted, so that no line of one server can imitate the heading of another.
            quoted = "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())
            parts.append(f"# {name}\n\n{quoted}")
    return {"instructions": "\n\n".join(parts)} if parts else {}


def _union(one: Any, other: Any) -> Any:
    """The union of two values; where they differ, the more permissive one."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return cast("Any", one or other)
    both = cast("dict[str, Any]", one).copy()
    for key, value in cast("dict[str, Any]", other).items():
        both[key] = _union(both[key], value) if key in both else value
    return both


def as_modern(result: bytes) -> bytes:
    """A listing or resource of the gateway, with what a 2026-07-28 result must have."""
    return wire.encode({**members(result), **_COMPLETE, **_UNCACHED})


def as_newer(method: str, result: bytes) -> bytes:
    """A result of an older server, with what a 2026-07-28 result must have."""
    cached = _UNCACHED if method in _CACHED else {}
    return wire.encode({**members(result), **_COMPLETE, **cached})


# --- names -----------------------------------------------------------------------------------


def server_names(names: Sequence[str]) -> list[str]:
    """The servers' names, with a `_` in one that could be the id of another one's View.

    `shop-2` is what the second View of `shop` is called, so next to a `shop` it becomes `shop_2`.
    """
    taken = set(names)
    apart: list[str] = []
    for name in names:
        server, _, number = name.rpartition("-")
        chosen = name
        if number.isdecimal() and any(view_stem(o) == server for o in names if o != name):
            while chosen in taken:
                chosen = f"{server[: _MAX_SERVER - 1 - len(number)].rstrip('-_')}_{number}"
                number += "0"
            taken.add(chosen)
        apart.append(chosen)
    return apart


class Names:
    """One kind of names of all servers, as the client knows them."""

    def __init__(self, servers: Sequence[str], reserved: Iterable[str] = ()) -> None:
        self._only = servers[0] if len(servers) == 1 else None
        self._held = dict.fromkeys(servers, 0)
        self._reserved = frozenset(reserved)
        self._shown: dict[tuple[str, str], str] = {}
        self._meant: dict[str, tuple[str, str]] = {}

    def shown(self, server: str, name: str) -> str | None:
        """The client's name for it; None if this server has had too many names."""
        if self._only is not None:
            return name
        key = (server, name)
        found = self._shown.get(key)
        if found is None and self._held[server] < _MAX_HELD:
            self._held[server] += 1
            found = self._shown[key] = self._new(server, name)
            self._meant[found] = key
        return found

    def meant(self, shown: str) -> tuple[str, str] | None:
        """The server that a client's name belongs to, and the server's own name."""
        return self._meant.get(shown) if self._only is None else (self._only, shown)

    def _new(self, server: str, name: str) -> str:
        odd = name in self._reserved or looks_owned(name) or owner_of(name) in self._held
        if not odd and name not in self._meant:
            return name
        owned = owned_name(server, name)
        return owned if owned not in self._meant else owned_name(server, name, digest=True)


def renamed(value: Raw | bytes | None, before: str, after: str) -> bytes:
    """A definition or params with another `name`; unchanged if the names are the same."""
    return bytes(value or b"{}") if before == after else with_member(value, "name", after)


def fits_template(uri: str, template: str) -> bool:
    """Whether a URI may match a template: it has the literal parts of the template, in order.

    This is only a guess for choosing a server; the server decides.
    """
    first, *others = _EXPRESSION.split(template)
    if not others:
        return uri == template
    last = others.pop()
    if len(uri) < len(first) + len(last) or not (uri.startswith(first) and uri.endswith(last)):
        return False
    at, end = len(first), len(uri) - len(last)
    for literal in others:
        at = uri.find(literal, at, end)
        if at < 0:
            return False
        at += len(literal)
    return True
