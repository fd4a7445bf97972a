"""Tools, Views and the model's surface, as the page of `transom dev` shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

import msgspec

from transom.errors import InvalidResult
from transom.host.tools.surface import Naming, Surface
from transom.host.tools.tool_list import tools_for
from transom.host.tools.tool_visibility import model_may_call
from transom.host.views.ui_resource import view_uri
from transom.host.views.view import View
from transom.json_values import as_list, as_object
from transom.types import Tool, ToolResult

Shape = Literal["opens", "views", "plain"]
"""A tool that opens a View, one that only Views may call, or any other."""

_BYTES_PER_TOKEN = 4  # roughly, of JSON in English


def shape_of(tool: Tool) -> Shape:
    """Which shape a tool has."""
    if not model_may_call(tool):
        return "views"
    try:
        return "plain" if view_uri(tool) is None else "opens"
    except InvalidResult:  # its link is not valid: the call, and a finding, will say so
        return "opens"


def wire_tool(tool: Tool) -> dict[str, Any]:
    """A tool with its wire names."""
    return msgspec.json.decode(msgspec.json.encode(tool))


def wire_result(result: ToolResult) -> dict[str, Any]:
    """A result with its wire names."""
    return msgspec.json.decode(result.to_wire())


def described_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """The tools of a server, each with its shape."""
    return [{**wire_tool(tool), "shape": shape_of(tool)} for tool in tools]


def described_view(
    view: View, before: Mapping[str, Tool], unlisted: Mapping[str, str]
) -> dict[str, Any]:
    """A View and its tools: enabled, disabled or unavailable, and how they differ from `before`.

    `unlisted`: why tools may be missing from its list.
    """
    bridge, app = view.bridge, view.app
    tools: list[dict[str, Any]] = [
        {
            **wire_tool(tool),
            "state": "enabled",
            "lazy": tool.lazy,
            "visibility": as_list(as_object((tool.meta or {}).get("ui")).get("visibility"))
            or ["model", "app"],
        }
        for tool in view.tools
    ]
    tools += [
        {"name": each.name, "state": "disabled", "reason": each.reason}
        for each in view.disabled_tools
    ]
    listed = {tool["name"] for tool in tools}
    missing = {name: reason for name, reason in unlisted.items() if name not in listed}
    missing |= {} if bridge is None else bridge.left_out
    tools += [
        {"name": name or "more tools", "state": "unavailable", "reason": reason}
        for name, reason in missing.items()
    ]
    return {
        "id": view.id,
        "state": view.state,
        "reason": view.reason,
        "uri": view.uri,
        "tool": view.origin.tool.name,
        "arguments": view.origin.arguments,
        "app": None if app is None else {"name": app.name, "version": app.version},
        "context": None if bridge is None else bridge.context,
        "tools": tools,
        "changes": changes(before, {tool.name: tool for tool in view.tools}),
        "grants": [{"tool": grant.tool, "by": grant.by} for grant in view.grants],
        "leftOut": view.left_out,
    }


def changes(before: Mapping[str, Tool], now: Mapping[str, Tool]) -> dict[str, Any]:
    """How a list of tools differs from an earlier one."""
    return {
        "added": [name for name in now if name not in before],
        "removed": [name for name in before if name not in now],
        "changed": [
            {"name": name, "before": wire_tool(before[name]), "after": wire_tool(tool)}
            for name, tool in now.items()
            if name in before and before[name] != tool
        ],
    }


def described_surface(
    server: str, tools: Iterable[Tool], views: Iterable[View], drive: Iterable[Tool]
) -> list[dict[str, Any]]:
    """What a model is given, for each naming, and how much of its context that takes."""
    listed, opened, driving = list(tools), list(views), tuple(drive)
    found: list[dict[str, Any]] = []
    for naming in get_args(Naming):
        surface = Surface(naming)
        surface.put_server(server, listed)
        for view in opened:
            surface.put_view(view.id, view.tools)
        surface.show_drive_tools(driving)
        given = tools_for("mcp", surface.tools())
        size = len(msgspec.json.encode(given))
        tokens = round(size / _BYTES_PER_TOKEN)
        found.append({"naming": naming, "tools": given, "bytes": size, "estimatedTokens": tokens})
    return found
