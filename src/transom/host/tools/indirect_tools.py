"""Two tools that list and call the tools of all Views, for clients that never list again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from transom.drive.tools import VIEW_ID_SCHEMA
from transom.errors import INVALID_PARAMS, ProtocolError
from transom.host.tools.tool_names import SEPARATOR
from transom.host.tools.tool_texts import Provenance
from transom.types import TextContent, Tool, ToolAnnotations, ToolExecution, ToolResult

LIST_VIEW_TOOLS: Final = "list_view_tools"
CALL_VIEW_TOOL: Final = "call_view_tool"

INDIRECT_TOOLS: Final = (
    Tool(
        name=LIST_VIEW_TOOLS,
        title="List the tools of open Views",
        description="List the open Views and the tools that each of them offers right now. "
        "What they offer changes as they are used. Without view_id: all of them.",
        input_schema={"type": "object", "properties": {"view_id": VIEW_ID_SCHEMA}},
        annotations=ToolAnnotations(read_only_hint=True),
    ),
    Tool(
        name=CALL_VIEW_TOOL,
        title="Call a tool of an open View",
        description=f"Call a tool of an open View, as {LIST_VIEW_TOOLS} names it.",
        input_schema={
            "type": "object",
            "properties": {
                "view_id": VIEW_ID_SCHEMA,
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
    def read(cls, tool: str, arguments: Mapping[str, Any] | None) -> IndirectCall:
        """Read what a model sent."""
        try:
            return msgspec.convert(dict(arguments or {}), cls)
        except msgspec.ValidationError as error:
            raise ProtocolError(INVALID_PARAMS, f"Invalid arguments for {tool}: {error}") from None


def view_listing(views: Iterable[tuple[Provenance, Iterable[Tool]]]) -> ToolResult:
    """The result of `list_view_tools`: the Views and their tools, as the model sees them."""
    listed: list[dict[str, Any]] = []
    for source, tools in views:
        entries = [
            {**msgspec.to_builtins(tool), "name": tool.name.partition(SEPARATOR)[2]}
            for tool in tools
        ]
        about = {"view_id": source.view, "server": source.server, "app": source.own_name}
        listed.append({**about, "tools": entries})
    answer = {"views": listed}
    text = TextContent(msgspec.json.encode(answer).decode())
    return ToolResult(content=[text], structured_content=answer)
