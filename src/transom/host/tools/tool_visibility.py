"""Who may call a tool, and whether it opens a View, by what its server declares.

A model sees and calls only tools whose visibility has `model`, a View only those with `app`. An
explicit list is taken as it is: an empty one means nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from transom.json_values import as_object
from transom.protocol.messages import LEGACY_URI_KEY
from transom.types import Tool

ViewCalls = Literal["spec", "linked", "declared"]
"""Which tools of its server a View may call: see `Policy`."""


def links_view(meta: Mapping[str, Any] | None) -> bool:
    """Whether a tool with this `_meta` opens a View, or would if its link were valid."""
    return meta is not None and (
        "resourceUri" in as_object(meta.get("ui")) or LEGACY_URI_KEY in meta
    )


def model_may_call(tool: Tool) -> bool:
    """Whether the model may see and call it."""
    return "model" in tool.visibility


def view_may_call(tool: Tool, view_calls: ViewCalls = "spec") -> bool:
    """Whether a View of the same server may call it."""
    if "app" not in tool.visibility:
        return False
    declared = as_object((tool.meta or {}).get("ui")).get("visibility")
    linked = view_calls == "linked" and links_view(tool.meta)
    return view_calls == "spec" or linked or isinstance(declared, list | str)
