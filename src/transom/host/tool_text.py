"""What a model reads about a tool, and where it comes from.

The description of a View's tool begins with `⟦View ID · server NAME · app "NAME VERSION"⟧`, written
by the host. Those brackets are removed from everything that a View or a server wrote, so no
description can claim another origin. Text becomes one line, without control characters, line
breaks, bidirectional marks and invisible characters.
"""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

from transom.json_values import clean, has_marks, unmarked
from transom.types import Implementation, Tool

__all__ = ["Label", "as_server_tool", "as_view_tool"]

_IN_LABEL = re.compile(r'["·]')
_MAX_LABEL_PART = 60
_MAX_TITLE = 128
_WORDS = frozenset({"description", "title", "$comment"})
_VALUES = frozenset({"const", "default", "enum", "examples"})


class Label(msgspec.Struct, frozen=True):
    """Whose tools these are."""

    view: str
    server: str
    app: Implementation | None

    def text(self) -> str:
        """The beginning of every description."""
        who = ""
        if self.app is not None:
            name, version = _label_part(self.app.name), _label_part(self.app.version)
            who = f' · app "{name} {version}"'
        return f"⟦View {self.view} · server {self.server}{who}⟧"


def _label_part(text: str) -> str:
    return clean(_IN_LABEL.sub(" ", text[: 4 * _MAX_LABEL_PART]), _MAX_LABEL_PART)


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
    )


def as_server_tool(tool: Tool, name: str) -> Tool:
    """A server's tool as the model sees it: unchanged, except for the host's brackets."""
    description = tool.description
    if description is not None and has_marks(description):
        description = unmarked(description)
    if name == tool.name and description is tool.description:
        return tool
    return msgspec.structs.replace(tool, name=name, description=description)


def _clean_schema(schema: dict[str, Any], limit: int) -> dict[str, Any]:
    """The schema with cleaned texts. Names and values stay as they are, because calls need them."""
    text = msgspec.json.encode(schema).decode()
    if "\\" not in text and text.isprintable() and not has_marks(text):
        return schema
    return cast("dict[str, Any]", _clean_words(schema, limit))


def _clean_words(value: object, limit: int) -> object:
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {key: _clean_member(key, inner, limit) for key, inner in members.items()}
    if isinstance(value, list):
        return [_clean_words(inner, limit) for inner in cast("list[object]", value)]
    return value


def _clean_member(key: str, value: object, limit: int) -> object:
    if key in _VALUES:
        return value
    if key in _WORDS and isinstance(value, str):
        return clean(value, limit)
    return _clean_words(value, limit)
