"""L: lists and caching, as MCP 2026-07-28 wants them."""

from __future__ import annotations

from collections.abc import Iterator

from transom.check.rule import Hits, rule, show
from transom.check.snapshot import ListedTools, Snapshot
from transom.json_values import type_name

_DAY = 24 * 3600 * 1000
_MAX_NAMED = 5
_SUBJECT = "tools/list"


@rule("L1")
def list_is_the_same_for_every_connection(seen: Snapshot) -> Hits:
    first, *others = seen.lists.listings
    for listing in others:
        if not listing.after_calls:
            for how in _differences(first, listing):
                yield _SUBJECT, f"tools/list differs {listing.when}: {how}."


@rule("L2")
def list_is_the_same_after_a_call(seen: Snapshot) -> Hits:
    first, *others = seen.lists.listings
    for listing in others:
        if listing.after_calls:
            for how in _differences(first, listing):
                yield _SUBJECT, f"tools/list differs {listing.when}: {how}."


@rule("L3")
def list_has_an_order(seen: Snapshot) -> Hits:
    first, *others = seen.lists.listings
    for listing in others:
        names, again = list(first.tools), list(listing.tools)
        if names != again and sorted(names) == sorted(again):
            yield _SUBJECT, f"tools/list has another order {listing.when}."
            return


@rule("L4")
def cache_hints_are_there(seen: Snapshot) -> Hits:
    for hint in seen.lists.hints:
        ttl, scope = hint.ttl, hint.scope
        if ttl is None or scope is None:
            missing = " and ".join(
                key for key, value in (("ttlMs", ttl), ("cacheScope", scope)) if value is None
            )
            yield hint.what, f"{hint.what} answers without {missing}."
        if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int) or ttl < 0):
            got = type_name(ttl) if isinstance(ttl, list | dict) else show(ttl)
            yield hint.what, f"{hint.what}: ttlMs must be an integer of 0 or more, got {got}."
        if scope is not None and scope not in ("public", "private"):
            yield (
                hint.what,
                f"{hint.what}: cacheScope must be public or private, got {show(scope)}.",
            )


@rule("L5")
def cache_hints_make_sense(seen: Snapshot) -> Hits:
    for hint in seen.lists.hints:
        ttl = hint.ttl
        if isinstance(ttl, int) and ttl > _DAY:
            days = ttl // _DAY
            yield hint.what, f"{hint.what}: ttlMs lets clients keep the answer for {days} days."


def _differences(first: ListedTools, other: ListedTools) -> Iterator[str]:
    """How the tools of two listings differ, apart from their order."""
    gone = [name for name in first.tools if name not in other.tools]
    come = [name for name in other.tools if name not in first.tools]
    changed = [name for name, tool in first.tools.items() if other.tools.get(name, tool) != tool]
    for names, what in ((come, "more"), (gone, "less"), (changed, "changed")):
        if names:
            named = ", ".join(f"`{show(name)}`" for name in names[:_MAX_NAMED])
            more = len(names) - _MAX_NAMED
            yield f"{named}{f' and {more} others' if more > 0 else ''} {what}"
