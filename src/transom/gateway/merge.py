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

from transom.gateway.eras import INTRODUCTIONS, tasks_capability
from transom.host.tools.tool_names import looks_owned, owned_name, owner_of, view_stem
from transom.json_values import as_object, member, members, with_member
from transom.protocol import wire
from transom.version import __version__

_MAX_SERVER = 32
_MAX_HELD = 20_000  # names of one server
_EXPRESSION = re.compile(r"\{[^{}]*\}")
_INFO: Final = {"name": "transom-gateway", "version": __version__}

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
    for key, value in tasks_capability(answer).items():
        can[key] = wire.raw(_union(member(can.get(key)) or {}, value))
    return with_member(answer, "capabilities", can)


def merge_introductions(
    introduction: str, answers: Mapping[str, bytes], requested: str, *, missing: bool
) -> bytes:
    """The answers of several servers to the client's introduction, `initialize` or not, as one.

    `requested` is the version that the client asked for. What is `missing` has not answered yet.
    """
    form = INTRODUCTIONS[introduction]
    told = {name: form.introduced(each, name, requested) for name, each in answers.items()}
    head = form.merged(list(told.values()), _INFO)
    possible = {**(_POSSIBLE if missing else {}), **tasks_capability(wire.encode(head))}
    merged = {
        **head,
        "capabilities": _merged_capabilities(told, possible),
        **_merged_instructions(told),
    }
    return form.own_result(wire.encode(merged))


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
