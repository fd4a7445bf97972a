"""Several servers as one: what they say of themselves, what they list, and whose a resource is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import Raw

from transom.errors import InvalidResult
from transom.gateway.adding import entries_of, members
from transom.gateway.leg import Leg
from transom.protocol import wire
from transom.version import __version__

__all__ = ["Introduction", "fits_template", "pages_of", "together", "with_member"]

_MAX_PAGES: Final = 200
_MAX_ENTRIES: Final = 10_000
_EXPRESSION = re.compile(r"\{[^{}]*\}")

# What a server that is not there yet may be able to do once it comes.
_POSSIBLE: Final[Mapping[str, Any]] = {
    "tools": {},
    "resources": {},
    "prompts": {},
    "logging": {},
    "completions": {},
}


class Introduction(msgspec.Struct, rename="camel", frozen=True):
    """What a server says of itself."""

    protocol_version: str
    capabilities: dict[str, Any] = {}
    instructions: str | None = None


def together(introductions: Mapping[str, Introduction], *, missing: bool) -> bytes:
    """The result of `initialize` for all these servers, by name.

    Args:
        introductions: what each said; one at least.
        missing: whether there are more, which may come later.
    """
    can: dict[str, Any] = {}
    for each in introductions.values():
        can = _union(can, each.capabilities)
    if missing:
        can = _union(can, _POSSIBLE)
    for key in ("tools", "prompts"):
        if key in can:
            can[key] = _union(can[key], {"listChanged": True})
    can["resources"] = _union(can.get("resources"), {"subscribe": True, "listChanged": True})
    result: dict[str, Any] = {
        "protocolVersion": min(each.protocol_version for each in introductions.values()),
        "capabilities": can,
        "serverInfo": {"name": "transom-gateway", "version": __version__},
    }
    told = [
        f"# {name}\n\n{each.instructions.strip()}"
        for name, each in introductions.items()
        if each.instructions and each.instructions.strip()
    ]
    if told:
        result["instructions"] = "\n\n".join(told)
    return wire.encode(result)


def _union(one: Any, other: Any) -> Any:
    """Both; where they differ, the one that says more."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return cast("Any", one or other)
    both = cast("dict[str, Any]", one).copy()
    for key, value in cast("dict[str, Any]", other).items():
        both[key] = _union(both[key], value) if key in both else value
    return both


async def pages_of(leg: Leg, method: str, key: str) -> list[Raw]:
    """All entries of a list, each as it came.

    Raises:
        ProtocolError: the server's error.
        ConnectionClosed: it is gone.
        InvalidResult: it lists nothing that could be read.
    """
    entries: list[Raw] = []
    cursor: Raw | None = None
    seen = {b"null"}
    for _ in range(_MAX_PAGES):
        params = None if cursor is None else wire.encode({"cursor": cursor})
        page = members(await leg.ask(method, params))
        if key not in page:
            raise InvalidResult(f"Invalid result for {method} from server {leg.name}")
        entries += entries_of(page[key])
        cursor = page.get("nextCursor")
        if cursor is None or bytes(cursor) in seen or len(entries) > _MAX_ENTRIES:
            break
        seen.add(bytes(cursor))
    return entries[:_MAX_ENTRIES]


def with_member(value: Raw | bytes | None, key: str, text: str) -> bytes:
    """An object with another text as one of its members."""
    return wire.encode({**members(value), key: Raw(wire.encode(text))})


def fits_template(uri: str, template: str) -> bool:
    """Whether a URI may come from a template: what stands outside of its braces is there, in order.

    It says no more than that: a server knows its own best.
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
