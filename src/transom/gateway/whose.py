"""The resources of several servers, and of the gateway: whose each of them is.

A resource belongs to the first server that listed it. One that nobody listed is asked for from
those with a template that it fits, then from the others, until one knows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from msgspec import Raw

from transom.errors import INVALID_PARAMS, ProtocolError
from transom.gateway.adding import member as member_of
from transom.gateway.adding import with_entries
from transom.gateway.listening import OWN, Listening
from transom.gateway.merging import fits_template
from transom.gateway.roster import Member, Roster
from transom.gateway.views import ClientViews

__all__ = ["Resources"]

_NOT_FOUND = -32002  # MCP's "Resource not found"


class Resources:
    """All resources that a client can reach.

    Args:
        roster: the servers.
        views: what Views told can be read as well.
        listening: the client's subscriptions to that.
    """

    def __init__(self, roster: Roster, views: ClientViews, listening: Listening) -> None:
        self._roster = roster
        self._views = views
        self._listening = listening

    # --- listing -----------------------------------------------------------------------------

    async def list_all(self) -> bytes:
        """The result of `resources/list`.

        Raises:
            TransomError: every server failed.
        """
        merged: dict[str, Raw | bytes] = {}
        for member, entries in await self._roster.listing(
            "resources/list", "resources", "resources"
        ):
            theirs = _by(entries, "uri")
            member.uris = frozenset(theirs)
            for uri, entry in theirs.items():
                if not uri.startswith(OWN):
                    merged.setdefault(uri, entry)
        return with_entries(b"{}", "resources", [*merged.values(), *self._views.resources()])

    async def list_templates(self) -> bytes:
        """The result of `resources/templates/list`.

        Raises:
            TransomError: every server failed.
        """
        merged: dict[str, Raw] = {}
        for member, entries in await self._roster.listing(
            "resources/templates/list", "resourceTemplates", "resources"
        ):
            theirs = _by(entries, "uriTemplate")
            member.templates = tuple(theirs)
            for template, entry in theirs.items():
                merged.setdefault(template, entry)
        return with_entries(b"{}", "resourceTemplates", list(merged.values()))

    # --- one of them -------------------------------------------------------------------------

    async def read(self, params: Raw | None) -> bytes:
        """The result of `resources/read`.

        Raises:
            ProtocolError: nobody has it; or the owner's error.
        """
        uri = _uri(params)
        own = self._views.read(uri)
        if own is not None:
            return own
        return (await self._ask("resources/read", uri, params))[1]

    async def subscribe(self, params: Raw | None) -> bytes:
        """The result of `resources/subscribe`.

        Raises:
            ProtocolError: nobody has it; or the owner's error.
        """
        uri = _uri(params)
        if self._views.read(uri) is not None:
            self._listening.subscribe(uri)
            return b"{}"
        if self._owner(uri) is None:
            # Many servers let anybody subscribe to anything: better find out whose it is first.
            await asyncio.gather(self.list_all(), self.list_templates(), return_exceptions=True)
        member, result = await self._ask("resources/subscribe", uri, params)
        member.subscriptions[uri] = bytes(params or b"{}")
        return result

    async def unsubscribe(self, params: Raw | None) -> bytes:
        """The result of `resources/unsubscribe`.

        Raises:
            ProtocolError: nobody has it; or the owner's error.
        """
        uri = _uri(params)
        if self._listening.unsubscribe(uri):
            return b"{}"
        for member in self._roster.members:
            if member.subscriptions.pop(uri, None) is not None:
                return await member.ask("resources/unsubscribe", params)
        return (await self._ask("resources/unsubscribe", uri, params))[1]

    def candidates(self, uri: str) -> Iterator[Member]:
        """Who may have a resource, or a template of that very text; the likeliest first."""
        owner = self._owner(uri)
        if owner is not None:
            yield owner
            return
        present = [each for each in self._roster.present if each.can("resources")]
        likely = [
            each for each in present if any(fits_template(uri, text) for text in each.templates)
        ]
        yield from likely
        yield from (each for each in present if each not in likely)

    def _owner(self, uri: str) -> Member | None:
        for member in self._roster.members:
            if uri in member.uris or uri in member.templates:
                return member
        return None

    async def _ask(self, method: str, uri: str, params: Raw | None) -> tuple[Member, bytes]:
        unknown = ProtocolError(_NOT_FOUND, f"Resource not found: {uri[:1000]}", {"uri": uri})
        return await self._roster.first(self.candidates(uri), method, params, unknown)


def _uri(params: Raw | None) -> str:
    uri: object = member_of(params, "uri")
    if not isinstance(uri, str):
        raise ProtocolError(INVALID_PARAMS, "The params need a uri, which is text")
    return uri


def _by(entries: list[Raw], key: str) -> dict[str, Raw]:
    found: dict[str, Raw] = {}
    for entry in entries:
        name: object = member_of(entry, key)
        if isinstance(name, str):
            found.setdefault(name, entry)
    return found
