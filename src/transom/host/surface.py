"""The surface: the tools a model may call right now, their names, and what it reads about them.

1. Every owner, a server or a View, has one block of tools. Blocks are in the order in which their
   owners were added, tools in the order in which their owner lists them.
2. The cost of a change depends only on the number of the owner's own tools.
3. A name is 1 to 64 of `A-Za-z0-9_-`: what every model API takes. A View's tool is `VIEWID__TOOL`,
   at most 40 of them, because MCP clients put `mcp__SERVER__` in front. A server's tool keeps its
   name, or is `SERVER__TOOL` if that name is taken or could be mistaken for another owner's. Server
   names have no `__` and no View has the name of a server, so the part before the first `__` is the
   owner.
4. A name that is too long loses its middle and gets a digest of the tool's name at its end. A name
   that already ends like a digest gets one too, so no tool can take another one's name. The same
   tool gets the same name every time, and the same digest in every View.
5. A plain name that a server's tool once had is reserved for that server as long as the host is
   open, so a name that a model has learned never means another server's tool.
6. The description of a View's tool begins with `⟦View ID · server NAME · app "NAME VERSION"⟧`,
   written by the host. What a View or a server wrote has no such brackets, so no description can
   claim another origin.
7. Tools whose visibility lacks `model` are left out. For clients that never list again, two tools
   list and call the tools of all Views.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, Literal, cast, overload

import msgspec

from transom.errors import INVALID_PARAMS, ProtocolError, UsageError
from transom.host.policy import Label, model_may_call
from transom.json_values import as_list, as_object, clean, is_clean, without_marks
from transom.types import (
    TextContent,
    Tool,
    ToolAnnotations,
    ToolExecution,
    ToolResult,
)

Api = Literal["anthropic", "openai", "mcp"]

# Model APIs refuse a whole request if one schema has these at its top level. The tool's owner
# validates the arguments against the full schema in any case.
_NOT_AT_TOP = frozenset({"allOf", "anyOf", "enum", "not", "oneOf"})


def tools_for(api: str, tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Definitions for the API `anthropic` (Messages), `openai` (Chat Completions) or `mcp`."""
    match api:
        case "anthropic":
            return [{**_described(tool), "input_schema": _schema(tool)} for tool in tools]
        case "openai":
            functions = [{**_described(tool), "parameters": _schema(tool)} for tool in tools]
            return [{"type": "function", "function": function} for function in functions]
        case "mcp":
            # A schema equal to the default would be left out, and the protocol wants it there.
            return [{**msgspec.to_builtins(t), "inputSchema": t.input_schema} for t in tools]
        case _:
            raise UsageError(f"{api!r} is not a known API: use anthropic, openai or mcp")


def _described(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description or ""}


def _schema(tool: Tool) -> dict[str, Any]:
    schema = tool.input_schema
    if schema.get("type") == "object" and "properties" in schema and not _NOT_AT_TOP & set(schema):
        return schema
    kept = {key: value for key, value in schema.items() if key not in _NOT_AT_TOP}
    return {"properties": {}, **kept, "type": "object"}


_MAX_NAME = 64
_MAX_OWNED = 40
_MIN_OF_TOOL = 16  # of a name with an owner in it, however long a server's name is
_MAX_SERVER = 32
_MAX_VIEW_STEM = 12
SEPARATOR = "__"
_DIGEST = 6

_FITS = re.compile(rf"[A-Za-z0-9_-]{{1,{_MAX_NAME}}}")
_ODD = re.compile(r"[^A-Za-z0-9_-]")
_DIGESTED = re.compile(rf".*_[0-9a-f]{{{_DIGEST}}}", re.DOTALL)
_VIEW_ID = re.compile(r"[A-Za-z0-9_-]+-\d+")


def check_server_name(name: str) -> None:
    """Check that a server may have this name."""
    fits = _FITS.fullmatch(name) and len(name) <= _MAX_SERVER and name[0].isalnum()
    if not fits or SEPARATOR in name or name.endswith("_"):
        raise UsageError(
            f"{name!r} is not a valid server name: use 1 to {_MAX_SERVER} of A-Z a-z 0-9 - and _, "
            "begin with a letter or digit, do not end with _ or have two _ in a row"
        )


def view_stem(server: str) -> str:
    """The beginning of the ids of a server's Views: `orders` in `orders-1`."""
    return server[:_MAX_VIEW_STEM].rstrip("-_")


def plain_name(tool: str) -> str:
    """A tool's own name, in a form that a model API takes."""
    return _fitted(tool, _MAX_NAME)


def owned_name(owner: str, tool: str, *, digest: bool = False) -> str:
    """The name of a tool with its View or server in front; `digest`: always add a digest."""
    prefix = f"{owner}{SEPARATOR}"
    room = max(_MAX_OWNED - len(prefix), _MIN_OF_TOOL)
    return prefix + _fitted(tool, room, digest=digest)


def owner_of(name: str) -> str | None:
    """The View or server that a name with an owner in it belongs to."""
    owner, separator, _ = name.partition(SEPARATOR)
    return owner if separator else None


def looks_owned(name: str) -> bool:
    """Whether a name looks like that of a View's tool."""
    owner = owner_of(name)
    return owner is not None and _VIEW_ID.fullmatch(owner) is not None


def _fitted(tool: str, room: int, *, digest: bool = False) -> str:
    """A tool's name in at most `room` characters that a model API takes."""
    short = len(tool) <= room
    if short and _FITS.fullmatch(tool) and not _DIGESTED.fullmatch(tool) and not digest:
        return tool
    whole = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()
    room -= _DIGEST + 1
    kept = _ODD.sub("_", tool)
    if len(kept) > room:
        tail = room // 3
        kept = f"{kept[: room - tail - 1]}-{kept[-tail:]}"
    return f"{kept}_{whole[:_DIGEST]}"


_MAX_TITLE = 128


def as_view_tool(tool: Tool, name: str, lead: str, max_description: int) -> Tool:
    """A View's tool as the model sees it. `lead` is its `Label.text()`."""
    description = clean(tool.description or "", max_description)
    return Tool(
        name=name,
        title=None if tool.title is None else clean(tool.title, _MAX_TITLE),
        description=f"{lead} {description}".rstrip(),
        input_schema=_clean_schema(tool.input_schema, max_description),
        output_schema=None
        if tool.output_schema is None
        else _clean_schema(tool.output_schema, max_description),
        annotations=tool.annotations
        if tool.annotations is None or tool.annotations.title is None
        else msgspec.structs.replace(
            tool.annotations, title=clean(tool.annotations.title, _MAX_TITLE)
        ),
        execution=tool.execution,
    )


def as_server_tool(tool: Tool, name: str) -> Tool:
    """A server's tool as the model sees it: unchanged, except for the host's brackets."""
    data = msgspec.json.encode(tool)
    if (unmarked := without_marks(data)) is not data:
        tool = msgspec.json.decode(unmarked, type=Tool)
    return tool if name == tool.name else msgspec.structs.replace(tool, name=name)


def _clean_schema(schema: dict[str, Any], limit: int) -> dict[str, Any]:
    text = msgspec.json.encode(schema).decode()
    return schema if "\\" not in text and is_clean(text) else _clean_texts(schema, limit)


def _clean_texts(value: Any, limit: int) -> Any:
    """A schema with every text cleaned, including names and values: a model reads them all."""
    if isinstance(value, str):
        return clean(value, limit)
    if isinstance(value, list):
        return [_clean_texts(inner, limit) for inner in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {clean(key, limit): _clean_texts(inner, limit) for key, inner in members.items()}
    return value


def _with_originals(value: Any, schema: object, limit: int) -> Any:
    """A model's arguments, with the schema's original names and values in place of cleaned ones."""
    node: Any = as_object(schema)
    if isinstance(value, str):
        known = [*as_list(node.get("enum")), node.get("const")]
        meant = [each for each in known if isinstance(each, str) and clean(each, limit) == value]
        return value if value in known or not meant else meant[0]
    if isinstance(value, list) and node:
        entries = cast("list[Any]", value)
        return [_with_originals(inner, node.get("items"), limit) for inner in entries]
    if isinstance(value, dict) and node:
        properties = as_object(node.get("properties"))
        names = {clean(name, limit): name for name in properties}
        names |= {name: name for name in properties}
        members = cast("dict[str, Any]", value)
        return {
            (name := names.get(key, key)): _with_originals(inner, properties.get(name), limit)
            for key, inner in members.items()
        }
    return cast("Any", value)


class ToolList(Sequence[Tool]):
    """Tools, to be read like any list; it never changes. `list(tools)` makes a list of it."""

    __slots__ = ("_flat", "_parts")

    def __init__(self, parts: Sequence[tuple[Tool, ...]]) -> None:
        self._parts = parts
        self._flat: list[Tool] | None = None

    def _all(self) -> list[Tool]:
        if self._flat is None:
            self._flat = list(chain.from_iterable(self._parts))
        return self._flat

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[Tool]:
        return chain.from_iterable(self._parts)

    @overload
    def __getitem__(self, index: int) -> Tool: ...
    @overload
    def __getitem__(self, index: slice) -> list[Tool]: ...
    def __getitem__(self, index: int | slice) -> Tool | list[Tool]:
        return self._all()[index]

    def __add__(self, other: Iterable[Tool]) -> list[Tool]:
        return [*self, *other]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ToolList | list | tuple):
            return self._all() == list(other)  # pyright: ignore[reportUnknownArgumentType]
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._all())


LIST_VIEW_TOOLS: Final = "list_view_tools"
CALL_VIEW_TOOL: Final = "call_view_tool"

_VIEW_ID_SCHEMA = {"type": "string", "description": "The id of an open View, such as orders-1"}

INDIRECT_TOOLS: Final = (
    Tool(
        name=LIST_VIEW_TOOLS,
        title="List the tools of open Views",
        description="List the open Views and the tools that each of them offers right now. "
        "What they offer changes as they are used. Without view_id: all of them.",
        input_schema={"type": "object", "properties": {"view_id": _VIEW_ID_SCHEMA}},
        annotations=ToolAnnotations(read_only_hint=True),
    ),
    Tool(
        name=CALL_VIEW_TOOL,
        title="Call a tool of an open View",
        description=f"Call a tool of an open View, as {LIST_VIEW_TOOLS} names it.",
        input_schema={
            "type": "object",
            "properties": {
                "view_id": _VIEW_ID_SCHEMA,
                "name": {"type": "string", "description": "The tool's name"},
                "arguments": {"type": "object", "description": "What the tool's schema asks for"},
            },
            "required": ["view_id", "name"],
        },
        execution=ToolExecution("optional"),
    ),
)


class IndirectCall(msgspec.Struct):
    """The arguments of both tools."""

    view_id: str | None = None
    name: str | None = None
    arguments: dict[str, Any] | None = None

    @classmethod
    def read(cls, tool: str, arguments: dict[str, Any]) -> IndirectCall:
        """Read what a model sent."""
        try:
            return msgspec.convert(arguments, cls)
        except msgspec.ValidationError as error:
            raise ProtocolError(INVALID_PARAMS, f"Invalid arguments for {tool}: {error}") from None


def view_listing(views: Iterable[tuple[Label, Iterable[Tool]]]) -> ToolResult:
    """The result of `list_view_tools`: the Views and their tools, as the model sees them."""
    listed: list[dict[str, Any]] = []
    for label, tools in views:
        entries = [
            {
                "name": tool.name.partition("__")[2],
                "description": tool.description,
                "inputSchema": tool.input_schema,
            }
            for tool in tools
        ]
        listed.append({"view_id": label.view, "server": label.server, "tools": entries})
    answer = {"views": listed}
    text = TextContent(msgspec.json.encode(answer).decode())
    return ToolResult(content=[text], structured_content=answer)


Style = Literal["flat", "indirect", "both"]
"""Each View tool has its own entry; two tools list and call them all; or both."""

_MAX_RESERVED = 50_000


class Entry(msgspec.Struct, frozen=True):
    """One tool a model may call: its owner, the owner's definition, and what the model sees."""

    kind: Literal["server", "view", "indirect"]
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


class _Block(msgspec.Struct, eq=False):
    """One owner's tools, and the position of its block."""

    index: int
    entries: dict[str, Entry] = {}
    lead: str | None = None


class Surface:
    """All tools a model may call, updated owner by owner."""

    def __init__(self, style: Style = "flat", *, max_description: int = 4096) -> None:
        self.style = style
        self._max_description = max_description
        self._blocks: dict[tuple[str, str], _Block] = {}
        self._by_name: dict[str, Entry] = {}
        self._reserved: dict[str, str] = {}
        for tool in INDIRECT_TOOLS:
            self._by_name[tool.name] = Entry("indirect", "", tool, tool)
        # What each block shows, in order; the first one is that of the two indirect tools.
        self._shown: list[tuple[Tool, ...]] = [() if style == "flat" else INDIRECT_TOOLS]
        self._list: ToolList | None = None

    def tools(self) -> ToolList:
        """Everything, as the model sees it."""
        if self._list is None:
            self._list = ToolList(self._shown.copy())
        return self._list

    def find(self, name: str) -> Entry | None:
        """The tool that the model knows as `name`."""
        entry = self._by_name.get(name)
        hidden = entry is not None and entry.kind == "indirect" and self.style == "flat"
        return None if hidden else entry

    def view_tools(self, view_id: str) -> Mapping[str, Entry]:
        """A View's tools, by the names the View gave them."""
        block = self._blocks.get(("view", view_id))
        return {} if block is None else block.entries

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
        return _with_originals(dict(arguments), schema, self._max_description)

    def shown(self, view_id: str) -> list[Tool]:
        """A View's tools, as the model sees them."""
        return [entry.shown for entry in self.view_tools(view_id).values()]

    def reserved_for(self, name: str) -> str | None:
        """The server that a name is reserved for, connected or not."""
        return self._reserved.get(name)

    # --- owners ------------------------------------------------------------------------------

    def put_server(self, server: str, tools: Iterable[Tool]) -> Change:
        """Set a server's tools."""
        block = self._block("server", server)
        entries: dict[str, Entry] = {}
        change = Change()
        for tool in tools:
            if not model_may_call(tool) or tool.name in entries:
                continue
            old = block.entries.get(tool.name)
            if old is not None and old.tool == tool:
                entries[tool.name] = old
                continue
            name = old.shown.name if old is not None else self._server_tool_name(server, tool.name)
            entries[tool.name] = Entry("server", server, tool, as_server_tool(tool, name))
            # At once, so that the next tool of this server cannot get the same name.
            self._by_name[name] = entries[tool.name]
        return self._put(block, entries, change)

    def put_view(self, label: Label, tools: Iterable[Tool]) -> Change:
        """Set a View's tools."""
        block = self._block("view", label.view)
        lead = label.text()
        same_lead = lead == block.lead
        block.lead = lead
        entries: dict[str, Entry] = {}
        change = Change()
        names: set[str] = set()
        for tool in tools:
            if not model_may_call(tool):
                continue
            old = block.entries.get(tool.name)
            if old is not None and same_lead and (old.tool is tool or old.tool == tool):
                entry = old
            else:
                name = owned_name(label.view, tool.name)
                shown = as_view_tool(tool, name, lead, self._max_description)
                entry = Entry("view", label.view, tool, shown)
            if entry.shown.name in names:
                change.left_out[tool.name] = f"the model would see it as {entry.shown.name} too"
                continue
            names.add(entry.shown.name)
            entries[tool.name] = entry
        return self._put(block, entries, change)

    def drop(self, kind: Literal["server", "view"], owner: str) -> Change:
        """Remove an owner with its tools."""
        block = self._blocks.get((kind, owner))
        if block is None:
            return Change()
        change = self._put(block, {}, Change())
        del self._blocks[kind, owner]
        del self._shown[block.index]
        self._list = None
        for other in self._blocks.values():
            if other.index > block.index:
                other.index -= 1
        return change

    # --- blocks and names --------------------------------------------------------------------

    def _block(self, kind: str, owner: str) -> _Block:
        block = self._blocks.get((kind, owner))
        if block is None:
            block = self._blocks[kind, owner] = _Block(len(self._shown))
            self._shown.append(())
        return block

    def _put(self, block: _Block, entries: dict[str, Entry], change: Change) -> Change:
        before = block.entries
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
        block.entries = entries
        shows = self.style != "indirect" or all(e.kind == "server" for e in entries.values())
        self._shown[block.index] = tuple(e.shown for e in entries.values()) if shows else ()
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
        return name in {LIST_VIEW_TOOLS, CALL_VIEW_TOOL} or looks_owned(name) or of_another

    def _free(self, name: str, server: str, tool: str) -> bool:
        entry = self._by_name.get(name)
        return entry is None or (entry.owner == server and entry.tool.name == tool)
