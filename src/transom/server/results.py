"""What a tool returns: the schema it promises, the data for a View, the text for a model.

1. A return type whose JSON is an object gives `outputSchema` and `structuredContent` of that
   shape. Any other one is wrapped as `{"result": ...}`, in schema and value alike. `str`, content
   blocks and whole results promise nothing and pass as they are.
2. What was promised is checked before it is sent: a client would refuse it anyway, later and with
   less to go on.
3. There is always something to read: the `text` function's answer, a returned string, or the data
   as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, cast, get_args, get_origin

import mcp.types as mcp
import msgspec

from transom.errors import RegistrationError, SchemaError
from transom.mcptypes import content_to_mcp, result_to_mcp
from transom.schema import Schema, output_schema, to_json
from transom.types import ContentBlock, ToolResult

__all__ = ["Outcome", "Output", "error_result"]

Outcome = mcp.CallToolResult | mcp.InputRequiredResult

_OUR_BLOCKS: Final = get_args(ContentBlock)
_THEIR_BLOCKS: Final = get_args(mcp.ContentBlock)
_BLOCKS: Final = (*_OUR_BLOCKS, *_THEIR_BLOCKS)
# Both frameworks have their own Image, Audio and the like, told by what they can do.
_MAKERS: Final = ("to_image_content", "to_audio_content", "to_resource_content")
_WHOLE: Final = (mcp.CallToolResult, ToolResult)
_SILENT: Final = (None, NoneType, Any, object, str, bytes, mcp.InputRequiredResult, *_WHOLE)
_DONE: Final = "Done."


class Output:
    """What one tool promises to return, and how to turn what it did return into a result."""

    def __init__(
        self, tool: str, annotation: Any, text: Callable[[Any], str] | None = None
    ) -> None:
        """Read the promise off a return annotation; `text` makes the text out of a value.

        Raises:
            RegistrationError: the type has no JSON form.
        """
        self._tool = tool
        self._text = text
        self._promise: Schema | None = None
        promised = _promised(annotation)
        if promised is not None:
            try:
                self._promise = output_schema(promised)
            except SchemaError as error:
                raise RegistrationError(
                    f"tool {tool}: its return type has no JSON form: {error}. Return a struct, a "
                    "dataclass, a TypedDict, a pydantic model, a dict or a str."
                ) from error

    @property
    def schema(self) -> dict[str, Any] | None:
        """The promise as a JSON Schema, or None when there is none."""
        return None if self._promise is None else self._promise.json_schema

    def result(self, value: Any) -> Outcome:
        """Turn what the tool returned into what the client gets.

        Raises:
            ValidationError: it does not fit the return type, or has no JSON form.
        """
        if isinstance(value, mcp.InputRequiredResult):
            return value
        if isinstance(value, ToolResult):
            value = result_to_mcp(value)
        elif _is_fastmcp_result(type(value)):
            value = mcp.CallToolResult(
                content=value.content,
                structured_content=value.structured_content,
                is_error=value.is_error,
                _meta=value.meta,
            )
        if isinstance(value, mcp.CallToolResult):
            if self._promise is not None and not value.is_error:
                self._promise.validate(value.structured_content)
            return self._readable(value)
        if (blocks := _blocks(value)) is not None:
            return self._readable(mcp.CallToolResult(content=blocks))
        return self._from_data(value)

    def _from_data(self, value: Any) -> mcp.CallToolResult:
        if self._promise is not None:
            wrapped = self._promise.wrapped
            structured = self._promise.validate({"result": value} if wrapped else value)
            data = structured["result"] if wrapped else structured
        elif value is None:
            structured, data = None, _DONE
        else:
            data = msgspec.json.decode(to_json(value))
            structured = cast("dict[str, Any]", data) if isinstance(data, dict) else None
        text = data if isinstance(data, str) and data.strip() else _pretty(data)
        if self._text is not None:
            text = self._text(value) or text
        return mcp.CallToolResult(
            content=[mcp.TextContent(text=text)], structured_content=structured
        )

    def _readable(self, result: mcp.CallToolResult) -> mcp.CallToolResult:
        """The same result, with text in it where there is nothing to read."""
        for block in result.content:
            if not isinstance(block, mcp.TextContent) or block.text.strip():
                return result
        data = result.structured_content
        if data is not None:
            text = _pretty(data)
        else:
            text = f"Tool {self._tool} failed" if result.is_error else _DONE
        return result.model_copy(update={"content": [mcp.TextContent(text=text)]})


def error_result(text: str) -> mcp.CallToolResult:
    """Make the result of a tool that could not do it."""
    return mcp.CallToolResult(content=[mcp.TextContent(text=text)], is_error=True)


def _promised(annotation: Any) -> Any | None:
    """The data type a return annotation promises, or None when it promises no data."""
    if get_origin(annotation) is Annotated:
        inner, *extras = get_args(annotation)
        if inner in _WHOLE:
            return extras[0]
        return None if _promised(inner) is None else annotation
    if get_origin(annotation) in (Union, UnionType):
        # Asking the client for input is not data: the other arms are what is promised.
        arms = tuple(arm for arm in get_args(annotation) if arm is not mcp.InputRequiredResult)
        if not arms or any(_promised(arm) is None and arm is not NoneType for arm in arms):
            return None
        return Union[arms]  # noqa: UP007  (a union of a tuple has no other spelling)
    return None if annotation in _SILENT or _is_content(annotation) else annotation


def _is_content(annotation: Any) -> bool:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return _is_block(annotation) or _is_fastmcp_result(annotation)
    origin = get_origin(annotation)
    if origin in (list, tuple, Sequence, Annotated, Union, UnionType):
        return any(_is_content(arg) for arg in get_args(annotation) if arg is not Ellipsis)
    return False


def _is_block(kind: Any) -> bool:
    return issubclass(kind, _BLOCKS) or any(hasattr(kind, maker) for maker in _MAKERS)


def _is_fastmcp_result(kind: Any) -> bool:
    # By name: FastMCP is the user's own, and not loaded for this.
    return kind.__name__ == "ToolResult" and kind.__module__.startswith("fastmcp.")


def _blocks(value: Any) -> list[mcp.ContentBlock] | None:
    """The content blocks in a returned value, or None when it is data."""
    if _is_block(type(value)):
        return [_block(value)]
    if isinstance(value, list | tuple):
        items = cast("Iterable[Any]", value)
        if any(_is_block(type(item)) for item in items):
            return [_block(item) for item in items]
    return None


def _block(item: Any) -> mcp.ContentBlock:
    if isinstance(item, _OUR_BLOCKS):
        return content_to_mcp(cast("ContentBlock", item))
    for maker in _MAKERS:
        if hasattr(item, maker):
            return getattr(item, maker)()
    if isinstance(item, _THEIR_BLOCKS):
        return cast("mcp.ContentBlock", item)
    text = item if isinstance(item, str) else _pretty(msgspec.json.decode(to_json(item)))
    return mcp.TextContent(text=text)


def _pretty(data: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
