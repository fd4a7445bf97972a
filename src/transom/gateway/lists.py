"""The lists of all servers as one: their pages, their merged entries, and whose each entry is.

1. With one server, its pages pass through; entries of Views are added to the last one. With
   several, there is one page, in which names are unique (`Names`).
2. A name that is not known yet is looked for in a new listing, but not more often than once a
   second, and again once the servers that are still starting have started.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec
from msgspec import Raw

from transom.connections.relisting import Relisting
from transom.errors import INVALID_PARAMS, METHOD_NOT_FOUND, ProtocolError, TransomError
from transom.gateway.client_views import STANDING_TOOLS, ClientViews, ToolHead
from transom.gateway.eras import ClientRequest
from transom.gateway.members import Member, Members
from transom.gateway.merge import Names, renamed
from transom.gateway.subscriptions import OWN_RESOURCES
from transom.json_values import has_word, member, members, with_entries, without_marks

Listed = list[tuple[Member, list[Raw]]]
"""The entries that each server listed."""
Merge = Callable[[Listed], list[Raw | bytes]]
"""Merges the entries of several servers into one list."""


class MergedLists:
    """The lists of all servers of a proxy, with what Views add to them."""

    def __init__(self, members: Members, views: ClientViews, *, checks_headers: bool) -> None:
        self._members = members
        self._checks_headers = checks_headers  # what the client sends in them is checked
        self._views = views
        names = [each.name for each in members]
        self._tools = Names(names, STANDING_TOOLS)
        self._tools_relisting = Relisting(self.relist_tools)
        self._prompts = Names(names)
        self._prompts_relisting = Relisting(self._relist_prompts)

    # --- for the client ----------------------------------------------------------------------

    async def list_page(
        self, request: ClientRequest, key: str, *, optional: bool = False
    ) -> tuple[bytes, Listed | None, bool]:
        """The lists of all servers, or a page of the only one's; `optional`: it may have none.

        Returns:
            The result without the entries; the entries of each server, or None if a single server's
            result is not a listing and passes unchanged; and whether this is the last page.
        """
        only = self._members.only
        if only is None and request.cursor is not None:
            raise ProtocolError(INVALID_PARAMS, "Invalid cursor: there is one page only")
        try:
            if only is None:
                listed = await self._members.list_all(request.method, key)
                return request.own_result(b"{}"), listed, True
            result = await only.forward(request)
        except ProtocolError as error:
            if error.code != METHOD_NOT_FOUND or not optional:
                raise
            return request.own_result(b"{}"), [], True
        try:
            entries = msgspec.json.decode(members(result).get(key, b"[]"), type=list[Raw])
        except msgspec.DecodeError:
            return result, None, True
        return result, [(only, entries)], member(result, "nextCursor") is None

    async def tools(self, request: ClientRequest) -> bytes:
        """Answer `tools/list`."""
        result, listed, last = await self.list_page(request, "tools")
        if listed is None:
            return result
        entries = self._merge_tools(listed, whole=request.cursor is None and last)
        if last:
            more, changing = await self._views.tools(request)
            entries += more
            if changing:  # this list must not be cached, whatever the server says
                result = request.own_result(result)
        return with_entries(result, "tools", entries)

    async def resources(self, request: ClientRequest) -> bytes:
        """Answer `resources/list`."""
        result, listed, last = await self.list_page(request, "resources", optional=True)
        if listed is None:
            return result
        entries = self._merged(listed, self._merge_resources)
        if last:
            entries += self._views.resources(request)
        return with_entries(result, "resources", entries)

    async def prompts(self, request: ClientRequest) -> bytes:
        """Answer `prompts/list`."""
        return await self._others(request, "prompts", self._merge_prompts)

    async def templates(self, request: ClientRequest) -> bytes:
        """Answer `resources/templates/list`."""
        return await self._others(request, "resourceTemplates", self._merge_templates)

    async def _others(self, request: ClientRequest, key: str, merge: Merge) -> bytes:
        """A list to which the gateway adds nothing."""
        result, listed, _ = await self.list_page(request, key)
        if listed is None:
            return result
        return with_entries(result, key, self._merged(listed, merge))

    def _merged(self, listed: Listed, merge: Merge) -> list[Raw | bytes]:
        """The entries of all servers; those of a single server unchanged."""
        only = self._members.only
        return merge(listed) if only is None else [each for _, page in listed for each in page]

    # --- merging -----------------------------------------------------------------------------

    def _merge_tools(self, listed: Listed, *, whole: bool) -> list[Raw | bytes]:
        merged: list[Raw | bytes] = []
        heads: dict[str, ToolHead] = {}
        for server, entries in listed:
            if whole:
                server.connection.tool_cache.fill(entries)
            for entry in entries:
                try:
                    head = msgspec.json.decode(entry, type=ToolHead)
                except msgspec.DecodeError:
                    # It has no name to call it by. With a single server, the client sees it anyway.
                    if server is self._members.only:
                        merged.append(entry)
                    continue
                if self._checks_headers and has_invalid_headers(entry):
                    continue
                shown = self._tools.shown(server.name, head.name) if head.for_model else None
                if shown is None or (shown in heads and server is not self._members.only):
                    continue
                heads.setdefault(shown, ToolHead(shown, head.meta))
                merged.append(without_marks(bytes(renamed(entry, head.name, shown))))
        self._views.learn_tools(heads.values())
        return merged

    def _merge_prompts(self, listed: Listed) -> list[Raw | bytes]:
        merged: dict[str, Raw | bytes] = {}
        for server, entries in listed:
            for name, entry in _by(entries, "name").items():
                shown = self._prompts.shown(server.name, name)
                if shown is not None:
                    merged.setdefault(shown, renamed(entry, name, shown))
        return list(merged.values())

    @staticmethod
    def _merge_resources(listed: Listed) -> list[Raw | bytes]:
        merged: dict[str, Raw | bytes] = {}
        for server, entries in listed:
            theirs = _by(entries, "uri")
            server.uris = frozenset(theirs)
            for uri, entry in theirs.items():
                if not uri.startswith(OWN_RESOURCES):
                    merged.setdefault(uri, entry)
        return list(merged.values())

    @staticmethod
    def _merge_templates(listed: Listed) -> list[Raw | bytes]:
        merged: dict[str, Raw | bytes] = {}
        for server, entries in listed:
            theirs = _by(entries, "uriTemplate")
            server.templates = tuple(theirs)
            for template, entry in theirs.items():
                merged.setdefault(template, entry)
        return list(merged.values())

    # --- whose it is -------------------------------------------------------------------------

    async def find_tool(self, name: str) -> tuple[Member, str] | None:
        """The server that has a tool, and its own name for it; None if there is none."""
        return await self._find(self._tools, name, self._tools_relisting)

    async def find_prompt(self, name: str) -> tuple[Member, str]:
        """The same for a prompt.

        Raises:
            ProtocolError: there is none.
        """
        found = await self._find(self._prompts, name, self._prompts_relisting)
        if found is None:
            raise self._members.unknown("prompt", name)
        return found

    async def _find(
        self, names: Names, shown: str, relisting: Relisting
    ) -> tuple[Member, str] | None:
        """The server of a name, and its own name for it; lists again before it returns None."""
        if (found := names.meant(shown)) is None and await relisting.search_again():
            found = names.meant(shown)
        if found is None and await self._members.wait_started():
            relisting.invalidate()
            await relisting.wait_current()
            found = names.meant(shown)
        return None if found is None else (self._members[found[0]], found[1])

    async def relist_tools(self) -> None:
        """List the tools of all servers again."""
        self._merge_tools(await self._members.list_all("tools/list", "tools"), whole=True)

    async def _relist_prompts(self) -> None:
        self._merge_prompts(await self._members.list_all("prompts/list", "prompts"))

    async def relist_resources(self) -> None:
        """List the resources and templates of all servers again."""
        for method, key, merge in (
            ("resources/list", "resources", self._merge_resources),
            ("resources/templates/list", "resourceTemplates", self._merge_templates),
        ):
            with suppress(TransomError):  # a server may have only one of them
                merge(await self._members.list_all(method, key))


def has_invalid_headers(tool: Raw) -> bool:
    """Whether no client can call a tool by HTTP: its `x-mcp-header` is invalid."""
    if not has_word(tool, "x-mcp-header"):
        return False
    # The SDK takes a while to load, and few tools need this.
    from mcp.shared.inbound import find_invalid_x_mcp_header  # noqa: PLC0415

    try:
        return find_invalid_x_mcp_header(member(tool, "inputSchema")) is not None
    except RecursionError:  # too deep to be read
        return True


def _by(entries: Sequence[Raw], key: str) -> dict[str, Raw]:
    """Entries by one of their texts; the first one if several have the same."""
    found: dict[str, Raw] = {}
    for entry in entries:
        text: object = member(entry, key)
        if isinstance(text, str):
            found.setdefault(text, entry)
    return found
