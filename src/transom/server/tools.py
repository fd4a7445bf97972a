"""A tool of a server with Views: its declaration, the function that runs it, and its results.

1. A return type whose JSON is an object gives `outputSchema` and `structuredContent` of that
   shape. Any other one is wrapped as `{"result": ...}`, in schema and value alike. `str`, content
   blocks and whole results declare nothing and pass as they are.
2. Results are validated against the declared type before they are sent: a client would refuse
   invalid ones anyway, with a less helpful error.
3. A result always has text: what the `text` function returned, a returned string, or the data as
   JSON.
4. Parameters that are msgspec structs are described to frameworks that only know pydantic.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypedDict, Union, Unpack, cast, get_args, get_origin

import mcp.types as mcp
import msgspec
from mcp.shared.exceptions import MCPError
from pydantic import PlainValidator, WithJsonSchema

from transom.errors import (
    ProtocolError,
    RegistrationError,
    SchemaError,
    ToolError,
    ValidationError,
)
from transom.events import is_async
from transom.mcptypes import content_to_mcp, result_to_mcp
from transom.results import is_result, read_result
from transom.schema import (
    Schema,
    from_signature,
    input_schema,
    is_lazy,
    output_schema,
    to_json,
)
from transom.server import declare
from transom.types import ContentBlock, ToolAnnotations, ToolResult

Handler = Callable[..., Any]
Outcome = mcp.CallToolResult | mcp.InputRequiredResult

_log = logging.getLogger(__name__)


class AppToolOptions(TypedDict, total=False):
    """The keywords of `register_app_tool`."""

    title: str | None
    description: str | None
    annotations: ToolAnnotations | Mapping[str, Any] | None
    meta: Mapping[str, Any] | None
    text: Callable[[Any], str] | None
    input_schema: object
    output_schema: object


@dataclass(frozen=True)
class AppTool:
    """One tool of a server with Views. `meta` says which View it opens and who may call it."""

    name: str
    title: str | None
    description: str
    annotations: mcp.ToolAnnotations | None
    meta: dict[str, Any]
    handler: Handler
    signature: inspect.Signature
    input: GivenInput | None
    output: Output

    @property
    def keywords(self) -> dict[str, Any]:
        """What both frameworks are told of it, beside its function and `_meta`."""
        names = ("name", "title", "description", "annotations")
        return {name: getattr(self, name) for name in names}

    def bound(self, returns: Any, *, passed: tuple[type[Exception], ...]) -> Handler:
        """Return the function to register: the handler's parameters, `returns` as return type.

        It returns a whole result. `ToolError` becomes an error result, `ProtocolError` a JSON-RPC
        error; exceptions of the types in `passed` are raised, for the framework to handle; any
        other one is logged, and the caller only learns that the tool failed.
        """
        handler, schema, output, name = self.handler, self.input, self.output, self.name
        signature = self.signature.replace(return_annotation=returns)

        def call(*args: Any, **kwargs: Any) -> Any:
            return handler(*args, **(kwargs if schema is None else schema.arguments(kwargs)))

        def failed(error: Exception) -> Outcome:
            if isinstance(error, ToolError):
                return error_result(str(error) or f"Tool {name} failed")
            if isinstance(error, ProtocolError):
                raise MCPError(error.code, error.message, error.data) from error
            if isinstance(error, (MCPError, *passed)):
                raise error
            _log.error("tool %s failed", name, exc_info=error)
            return error_result(f"Tool {name} failed")

        if is_async(handler):

            async def run_async(*args: Any, **kwargs: Any) -> Outcome:
                try:
                    return output.result(await call(*args, **kwargs))
                except Exception as error:  # noqa: BLE001  (the handler is anybody's code)
                    return failed(error)

            function: Handler = run_async
        else:

            def run(*args: Any, **kwargs: Any) -> Outcome:
                try:
                    return output.result(call(*args, **kwargs))
                except Exception as error:  # noqa: BLE001  (the handler is anybody's code)
                    return failed(error)

            function = run

        functools.update_wrapper(function, handler)
        # Frameworks follow `__wrapped__` to the handler, and would read its return type there.
        del function.__wrapped__  # pyright: ignore[reportFunctionMemberAccess]
        function.__name__ = name
        function.__signature__ = signature
        hints = {key: p.annotation for key, p in signature.parameters.items()}
        given = {key: hint for key, hint in hints.items() if hint is not inspect.Parameter.empty}
        function.__annotations__ = {**given, "return": returns}
        return function


def app_tool(name: str | None, handler: Handler, **options: Unpack[AppToolOptions]) -> AppTool:
    """Check a tool's declaration and make it."""
    if not callable(handler):
        raise RegistrationError(f"a tool is a function, not {type(handler).__name__}.")
    name = declare.check_name(name if name is not None else getattr(handler, "__name__", None))
    declare.refuse_unknown(name, options, AppToolOptions.__optional_keys__)
    description, text = options.get("description"), options.get("text")
    if description is None and inspect.isroutine(handler):
        description = inspect.getdoc(handler)
    if not description or not description.strip():
        raise RegistrationError(
            f"tool {name}: say what it does, in a docstring or as description=. Models go by it."
        )
    if text is not None and not callable(text):
        raise RegistrationError(
            f"tool {name}: text is a function from what the tool returns to a string, not {text!r}."
        )
    source = options.get("input_schema")
    signature = _signature(name, handler, described=source is not None)
    returns = signature.return_annotation
    if returns is inspect.Signature.empty:
        returns = Any
    given = None if source is None else GivenInput(name, signature, source)
    return AppTool(
        name=name,
        title=options.get("title"),
        description=description.strip(),
        annotations=declare.to_annotations(name, options.get("annotations")),
        meta=declare.app_tool_meta(name, options.get("meta")),
        handler=handler,
        signature=given.signature if given else without_structs(name, handler, signature),
        input=given,
        output=Output(name, returns, text, options.get("output_schema")),
    )


def _signature(name: str, handler: Handler, *, described: bool) -> inspect.Signature:
    try:
        signature = inspect.signature(handler, eval_str=True)
    except NameError as error:
        raise RegistrationError(
            f"tool {name}: a type in its signature cannot be found ({error}). "
            "Define it at the top of a module, before the tool."
        ) from error
    except (TypeError, ValueError) as error:
        raise RegistrationError(f"tool {name}: its signature cannot be read ({error}).") from error
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD and described:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise RegistrationError(
                f"tool {name}: *{parameter.name} cannot be described to a model. "
                "Name each parameter."
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise RegistrationError(
                f"tool {name}: arguments come by name, and {parameter.name} is positional only. "
                "Remove the / from its signature."
            )
    return signature


# --- input schemas that are given -------------------------------------------------------------


# Stands for an argument that was left out. Text, because frameworks publish defaults as JSON.
_LEFT_OUT: Final = "\0left out"


class GivenInput:
    """An input schema that was given, for frameworks that read schemas from signatures.

    The function that they get has a parameter for each property. What it is called with is
    validated against the whole schema. Parameters of the handler that are no properties are left
    to the framework, which may pass its `Context`.
    """

    def __init__(self, tool: str, signature: inspect.Signature, source: object) -> None:
        self._tool = tool
        if is_lazy(source):
            raise RegistrationError(
                f"tool {tool}: a server's input_schema is a schema, not a function. Only the tools "
                "of a View can have a lazy one."
            )
        try:
            self.schema = input_schema(source)
        except SchemaError as error:
            raise RegistrationError(f"tool {tool}: input_schema: {error}.") from error
        properties: dict[str, Any] = without_circles(self.schema.json_schema).get("properties", {})
        required = self.schema.json_schema.get("required", ())
        own = {name: p for name, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD}
        self._object: str | None = None
        if self.schema.spread:
            self._check(own, properties, required, takes_any=len(own) < len(signature.parameters))
        else:
            typed = (name for name, parameter in own.items() if parameter.annotation is source)
            self._object = next(typed, next(iter(own), None))
            if self._object is None:
                raise RegistrationError(
                    f"tool {tool}: input_schema gives the function one object, but it has no "
                    "parameter for it."
                )
        self._names = frozenset(properties)
        others = [p for name, p in own.items() if name not in (*properties, self._object)]
        parameters = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if name in required else _LEFT_OUT,
                annotation=_described(part),
            )
            for name, part in properties.items()
        ]
        keyword_only = [p.replace(kind=p.KEYWORD_ONLY) for p in others]
        self.signature = signature.replace(parameters=[*parameters, *keyword_only])

    def _check(
        self,
        own: Mapping[str, inspect.Parameter],
        properties: Mapping[str, Any],
        required: Sequence[str],
        *,
        takes_any: bool,
    ) -> None:
        for name, part in properties.items():
            if not name.isidentifier() or iskeyword(name) or name.startswith("_"):
                raise RegistrationError(
                    f"tool {self._tool}: {name!r} in input_schema cannot be the name of a "
                    "parameter. Choose another name."
                )
            if name not in own and not takes_any:
                raise RegistrationError(
                    f"tool {self._tool}: input_schema has {name}, but the function has no such "
                    "parameter."
                )
            optional = name not in required and "default" not in (part or {})
            if optional and name in own and own[name].default is inspect.Parameter.empty:
                raise RegistrationError(
                    f"tool {self._tool}: {name} may be left out by input_schema, but not by the "
                    "function. Give the parameter a default, or list it in required."
                )

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the handler gets."""
        others = {name: value for name, value in given.items() if name not in self._names}
        sent = {
            name: given[name] for name in self._names & given.keys() if given[name] != _LEFT_OUT
        }
        try:
            value = self.schema.validate(sent)
        except ValidationError as error:
            mismatches = "".join(f"\n- {mismatch}" for mismatch in error.mismatches)
            raise ToolError(f"Invalid arguments for tool {self._tool}:{mismatches}") from error
        return {**others, **(value if self._object is None else {self._object: value})}


def _described(part: object) -> Any:
    """A parameter's annotation. Text stays text: the SDK would parse JSON in anything else."""
    entries = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    hint = str if entries.get("type") == "string" else Any
    return Annotated[hint, WithJsonSchema(entries)]


# --- parameters that are structs --------------------------------------------------------------


def without_structs(
    tool: str, handler: Callable[..., Any], signature: inspect.Signature
) -> inspect.Signature:
    """Return the signature with each struct in it annotated for pydantic."""
    ours = [p.name for p in signature.parameters.values() if _has_struct(p.annotation)]
    if not ours:
        return signature
    others = [name for name in signature.parameters if name not in ours]
    try:
        schema = from_signature(handler, skip=others).json_schema
    except SchemaError as error:
        raise RegistrationError(f"tool {tool}: {error}.") from error
    properties = without_circles(schema)["properties"]
    parameters = [
        parameter.replace(annotation=_annotated(parameter.annotation, properties[name]))
        if name in ours
        else parameter
        for name, parameter in signature.parameters.items()
    ]
    return signature.replace(parameters=parameters)


def without_circles(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without references; a type that contains itself is left open there.

    pydantic cannot publish references that it has not made.
    """
    definitions = cast("Mapping[str, Any]", schema.get("$defs", {}))

    def inlined(node: Any, inside: frozenset[str]) -> Any:
        if isinstance(node, list):
            return [inlined(part, inside) for part in cast("list[Any]", node)]
        if not isinstance(node, dict):
            return node
        entries = cast("dict[str, Any]", node)
        if not isinstance(ref := entries.get("$ref"), str):
            return {key: inlined(part, inside) for key, part in entries.items()}
        name = ref.removeprefix("#/$defs/")
        if name not in definitions:
            return entries
        return {} if name in inside else inlined(definitions[name], inside | {name})

    outside = {key: part for key, part in schema.items() if key != "$defs"}
    return cast("dict[str, Any]", inlined(outside, frozenset()))


def _has_struct(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return True
    return any(_has_struct(argument) for argument in get_args(hint))


def _annotated(hint: Any, schema: Any) -> Any:
    def read(value: object) -> Any:
        try:
            return msgspec.convert(value, hint)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from error

    return Annotated[Any, PlainValidator(read), WithJsonSchema(schema)]


# --- results ----------------------------------------------------------------------------------

_OUR_BLOCKS: Final = get_args(ContentBlock)
_THEIR_BLOCKS: Final = get_args(mcp.ContentBlock)
_BLOCKS: Final = (*_OUR_BLOCKS, *_THEIR_BLOCKS)
# Both frameworks have their own Image, Audio and so on, recognised by these methods.
_MAKERS: Final = ("to_image_content", "to_audio_content", "to_resource_content")
_WHOLE: Final = (mcp.CallToolResult, ToolResult)
_NO_SCHEMA: Final = (None, NoneType, Any, object, str, bytes, mcp.InputRequiredResult, *_WHOLE)
_DONE: Final = "Done."


class Output:
    """What one tool declares to return, and how to turn what it returned into a result."""

    def __init__(
        self,
        tool: str,
        annotation: Any,
        text: Callable[[Any], str] | None = None,
        given: object = None,
    ) -> None:
        self._tool = tool
        self._text = text
        self._schema: Schema | None = None
        declared = _declared(annotation) if given is None else given
        if declared is not None:
            try:
                self._schema = output_schema(declared)
            except SchemaError as error:
                if given is not None:
                    raise RegistrationError(f"tool {tool}: output_schema: {error}.") from error
                raise RegistrationError(
                    f"tool {tool}: its return type has no JSON form: {error}. Return a struct, a "
                    "dataclass, a TypedDict, a pydantic model, a dict or a str."
                ) from error

    @property
    def schema(self) -> dict[str, Any] | None:
        """The output schema, or None when there is none."""
        return None if self._schema is None else self._schema.json_schema

    def result(self, value: Any) -> Outcome:
        """Turn what the tool returned into what the client gets."""
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
            if self._schema is not None and not value.is_error:
                self._schema.validate(value.structured_content)
            return self._readable(value)
        if isinstance(value, Mapping) and is_result(cast("Any", value), self._schema):
            return self.result(read_result(cast("Any", value)))
        if (blocks := _blocks(value)) is not None:
            return self._readable(mcp.CallToolResult(content=blocks))
        return self._from_data(value)

    def _from_data(self, value: Any) -> mcp.CallToolResult:
        if self._schema is not None:
            wrapped = self._schema.wrapped
            structured = self._schema.validate({"result": value} if wrapped else value)
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
    """Make the result of a tool that failed."""
    return mcp.CallToolResult(content=[mcp.TextContent(text=text)], is_error=True)


def _declared(annotation: Any) -> Any | None:
    """The data type that a return annotation declares, or None when it declares no data."""
    if get_origin(annotation) is Annotated:
        inner, *extras = get_args(annotation)
        if inner in _WHOLE:
            return extras[0]
        return None if _declared(inner) is None else annotation
    if get_origin(annotation) in (Union, UnionType):
        # Asking the client for input is not data: the other members are what is declared.
        members = tuple(
            member for member in get_args(annotation) if member is not mcp.InputRequiredResult
        )
        if not members or any(
            _declared(member) is None and member is not NoneType for member in members
        ):
            return None
        return Union[members]  # noqa: UP007  (a union of a tuple has no other spelling)
    return None if annotation in _NO_SCHEMA or _is_content(annotation) else annotation


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
    # By name, because FastMCP is optional and must not be loaded for this.
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
