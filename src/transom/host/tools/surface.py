"""The surface: the tools a model may call right now.

1. Every owner, a server or a View, has one block of tools. Blocks are in the order in which their
   owners were added, tools in the order in which their owner lists them.
2. The cost of a change depends only on the number of the owner's own tools.
3. A plain name that a server's tool once had is reserved for that server as long as the host is
   open, so a name that a model has learned never means another server's tool.
4. Tools whose visibility lacks `model` are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from transom.drive.tools import ACT_ON_VIEW, DRIVE_TOOLS, LOOK_AT_VIEW
from transom.host.tools.indirect_tools import CALL_VIEW_TOOL, INDIRECT_TOOLS, LIST_VIEW_TOOLS
from transom.host.tools.tool_list import ToolList
from transom.host.tools.tool_names import SEPARATOR, looks_owned, owned_name, owner_of, plain_name
from transom.host.tools.tool_texts import as_server_tool, as_view_tool, with_originals
from transom.host.tools.tool_visibility import model_may_call
from transom.types import Tool

Naming = Literal["flat", "indirect", "both"]
"""Each View tool has its own entry; two tools list and call them all; or both."""

_MAX_RESERVED = 50_000
_OURS = frozenset({LIST_VIEW_TOOLS, CALL_VIEW_TOOL, LOOK_AT_VIEW, ACT_ON_VIEW})


class Entry(msgspec.Struct, frozen=True):
    """One tool a model may call: its owner, the owner's definition, and what the model sees."""

    kind: Literal["server", "view", "indirect", "drive"]
    owner: str
    tool: Tool
    shown: Tool


class Change(msgspec.Struct):
    """How an owner's tools changed; `left_out` has the reason for each that cannot be shown."""

    added: list[Entry] = []
    changed: list[Entry] = []
    removed: list[Entry] = []
    left_out: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


_Owner = tuple[str, str]
"""`server` or `view`, and the name of the server or the id of the View."""
_FIXED: _Owner = ("", "")


class Surface:
    """All tools a model may call, updated owner by owner."""

    def __init__(self, naming: Naming = "flat", *, max_description: int = 4096) -> None:
        self.naming: Naming = naming
        self._max_description = max_description
        self._blocks: dict[_Owner, dict[str, Entry]] = {}  # by the owner's names for its tools
        self._by_name: dict[str, Entry] = {}
        self._reserved: dict[str, str] = {}
        for tool in INDIRECT_TOOLS:
            self._by_name[tool.name] = Entry("indirect", "", tool, tool)
        for tool in DRIVE_TOOLS:
            self._by_name[tool.name] = Entry("drive", "", tool, tool)
        # What each block shows, in order; the first one is that of the fixed tools.
        self._fixed = () if naming == "flat" else INDIRECT_TOOLS
        self._shown: dict[_Owner, tuple[Tool, ...]] = {_FIXED: self._fixed}
        self._list: ToolList | None = None

    def tools(self) -> ToolList:
        """Everything, as the model sees it."""
        if self._list is None:
            self._list = ToolList(list(self._shown.values()))
        return self._list

    def show_drive_tools(self, tools: tuple[Tool, ...]) -> bool:
        """Show the tools that use Views by their pages, or none; whether that is a change."""
        before, self._shown[_FIXED] = self._shown[_FIXED], (*self._fixed, *tools)
        if self._shown[_FIXED] == before:
            return False
        self._list = None
        return True

    def find(self, name: str) -> Entry | None:
        """The tool that the model knows as `name`."""
        entry = self._by_name.get(name)
        hidden = entry is not None and entry.kind == "indirect" and self.naming == "flat"
        return None if hidden else entry

    def view_tools(self, view_id: str) -> Mapping[str, Entry]:
        """A View's tools, by the names the View gave them."""
        return self._blocks.get(("view", view_id), {})

    def find_view_tool(self, view_id: str, name: str) -> Entry | None:
        """A View's tool, by the name the View gave it or the one the model sees."""
        entry = self.view_tools(view_id).get(name)
        if entry is not None:
            return entry
        for seen in (name, f"{view_id}{SEPARATOR}{name}"):
            entry = self._by_name.get(seen)
            if entry is not None and entry.kind == "view" and entry.owner == view_id:
                return entry
        return None

    def original(self, entry: Entry, arguments: Mapping[str, Any] | None) -> Any:
        """A model's arguments for a View's tool, as the View's own schema has them."""
        schema = entry.tool.input_schema
        if arguments is None or entry.shown.input_schema is schema:
            return arguments
        return with_originals(dict(arguments), schema, self._max_description)

    def shown(self, view_id: str) -> list[Tool]:
        """A View's tools, as the model sees them."""
        return [entry.shown for entry in self.view_tools(view_id).values()]

    def reserved_for(self, name: str) -> str | None:
        """The server that a name is reserved for, connected or not."""
        return self._reserved.get(name)

    # --- owners ------------------------------------------------------------------------------

    def put_server(self, server: str, tools: Iterable[Tool]) -> Change:
        """Set a server's tools."""
        owner = "server", server
        before = self._block(owner)
        entries: dict[str, Entry] = {}
        for tool in tools:
            if not model_may_call(tool) or tool.name in entries:
                continue
            old = before.get(tool.name)
            if old is not None and old.tool == tool:
                entries[tool.name] = old
                continue
            name = old.shown.name if old is not None else self._server_tool_name(server, tool.name)
            entries[tool.name] = Entry("server", server, tool, as_server_tool(tool, name))
            # At once, so that the next tool of this server cannot get the same name.
            self._by_name[name] = entries[tool.name]
        return self._put(owner, entries)

    def put_view(self, view_id: str, tools: Iterable[Tool]) -> Change:
        """Set a View's tools."""
        owner = "view", view_id
        before = self._block(owner)
        entries: dict[str, Entry] = {}
        left_out: dict[str, str] = {}
        names: set[str] = set()
        for tool in tools:
            if not model_may_call(tool):
                continue
            old = before.get(tool.name)
            if old is not None and (old.tool is tool or old.tool == tool):
                entry = old
            else:
                shown = as_view_tool(tool, owned_name(view_id, tool.name), self._max_description)
                entry = Entry("view", view_id, tool, shown)
            if entry.shown.name in names:
                left_out[tool.name] = f"the model would see it as {entry.shown.name} too"
                continue
            names.add(entry.shown.name)
            entries[tool.name] = entry
        change = self._put(owner, entries)
        change.left_out = left_out
        return change

    def drop(self, kind: Literal["server", "view"], owner: str) -> Change:
        """Remove an owner with its tools."""
        if (kind, owner) not in self._blocks:
            return Change()
        change = self._put((kind, owner), {})
        del self._blocks[kind, owner], self._shown[kind, owner]
        self._list = None
        return change

    # --- blocks and names --------------------------------------------------------------------

    def _block(self, owner: _Owner) -> dict[str, Entry]:
        self._shown.setdefault(owner, ())
        return self._blocks.setdefault(owner, {})

    def _put(self, owner: _Owner, entries: dict[str, Entry]) -> Change:
        before, change = self._blocks[owner], Change()
        if before == entries and list(before) == list(entries):
            return change
        change.added = [entry for name, entry in entries.items() if name not in before]
        change.removed = [entry for name, entry in before.items() if name not in entries]
        change.changed = [
            entry for name, entry in entries.items() if before.get(name, entry) is not entry
        ]
        for entry in before.values():
            self._by_name.pop(entry.shown.name, None)
        for entry in entries.values():
            self._by_name[entry.shown.name] = entry
        self._blocks[owner] = entries
        shows = self.naming != "indirect" or owner[0] == "server"
        self._shown[owner] = tuple(e.shown for e in entries.values()) if shows else ()
        self._list = None
        return change

    def _server_tool_name(self, server: str, tool: str) -> str:
        name = plain_name(tool)
        mine = self._reserved.get(name, server) == server and not self._misleading(name, server)
        if mine and self._free(name, server, tool):
            if len(self._reserved) >= _MAX_RESERVED:
                self._reserved = {
                    name: owner for name, owner in self._reserved.items() if name in self._by_name
                }
            self._reserved[name] = server
            return name
        name = owned_name(server, tool)
        return name if self._free(name, server, tool) else owned_name(server, tool, digest=True)

    def _misleading(self, name: str, server: str) -> bool:
        """Whether a plain name looks like a View's tool, one of ours, or another server's."""
        owner = owner_of(name)
        of_another = owner != server and ("server", owner) in self._blocks
        return name in _OURS or looks_owned(name) or of_another

    def _free(self, name: str, server: str, tool: str) -> bool:
        entry = self._by_name.get(name)
        return entry is None or (entry.owner == server and entry.tool.name == tool)
