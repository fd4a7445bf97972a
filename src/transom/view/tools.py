"""A tool of a View: its definition, live.

1. A change is applied whole or not at all, and told once it is real: setting what is there already
   changes nothing.
2. A handle whose tool was removed is stale: it does nothing and tells nobody.
3. What was encoded once is not encoded again until it changes; only a lazy schema is asked for at
   every listing and call, and compiled again only when it says something else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, cast, overload

import msgspec
from msgspec import UNSET, UnsetType

from transom.errors import RegistrationError, SchemaError
from transom.schema import Schema, from_return, from_signature, input_schema, is_lazy, output_schema
from transom.types import Tool, ToolAnnotations, ToolExecution, Visibility
from transom.view.context import CallContext
from transom.view.handlers import ToolFunction

if TYPE_CHECKING:
    from transom.view.registry import Registry

__all__ = ["CallContext", "RegisteredTool", "TaskSupport", "Unavailable"]

TaskSupport = Literal["forbidden", "optional", "required"]
Source = object
"""Anything `transom.schema` makes a schema of, or a function returning such a thing."""

_encode = msgspec.json.encode


class Unavailable(Exception):
    """A tool whose schema cannot be made right now."""


T = TypeVar("T")


class _Field(Generic[T]):
    """A field of a definition. Setting it is the same as `update` with it."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, tool: None, owner: type) -> Self: ...
    @overload
    def __get__(self, tool: RegisteredTool, owner: type) -> T: ...
    def __get__(self, tool: RegisteredTool | None, owner: type) -> Self | T:
        return self if tool is None else tool.field(self._name)

    def __set__(self, tool: RegisteredTool, value: T) -> None:
        changes: dict[str, Any] = {self._name: value}
        tool.update(**changes)


class RegisteredTool:
    """A tool, live: what it says now is what hosts see and what calls are checked against.

    Change it with `enable`, `disable`, `update` and `remove`, or by setting a field. Hosts are told
    of every change that makes a difference to them. It stays callable as the function it wraps.
    """

    def __init__(
        self,
        registry: Registry,
        name: str,
        handler: Callable[..., Any],
        *,
        title: str | None = None,
        description: str | None = None,
        input_schema: Source = None,
        output_schema: Source = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        visibility: Sequence[Visibility] | None = None,
        meta: Mapping[str, Any] | None = None,
        enabled: bool = True,
        task: TaskSupport = "forbidden",
        thread: bool = False,
    ) -> None:
        self._registry = registry
        self.function = ToolFunction(handler, thread=thread)
        self._enabled = enabled
        self._reason: str | None = None
        self._error: BaseException | None = None
        self._lazy_bytes = b""
        self._lazy_schema: Schema | None = None
        self._encoded = b""
        self.task_support: TaskSupport = _checked_task(task)
        self._fields: dict[str, Any] = {}
        self._input: Schema | None = None
        self.output: Schema | None = None
        """The compiled output schema."""
        self.fits = False
        """Whether the schema is the function's own, so that what it lets pass can be called."""
        self._apply(
            {
                "name": name,
                "title": title,
                "description": description,
                "input_schema": input_schema,
                "output_schema": output_schema,
                "annotations": annotations,
                "visibility": visibility,
                "meta": meta,
            }
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, as if it had never been registered."""
        return self.function.function(*args, **kwargs)

    def __repr__(self) -> str:
        state = "stale" if self.stale else "enabled" if self._enabled else "disabled"
        return f"<RegisteredTool {self.name!r} {state}>"

    def field(self, name: str) -> Any:
        """A field of its definition, as it was given."""
        return self._fields[name]

    # --- fields ------------------------------------------------------------------------------

    name = _Field[str]("The name hosts call it by. Setting it renames the tool.")
    title = _Field[str | None]("A short name for people.")
    description = _Field[str | None]("What it does, for the model.")
    input_schema = _Field[Source]("Where its input schema comes from; None: the function.")
    output_schema = _Field[Source]("Where its output schema comes from; None: the function.")
    annotations = _Field[ToolAnnotations | Mapping[str, Any] | None]("Hints about what it does.")
    visibility = _Field[Sequence[Visibility] | None]("Who may call it; None: model and app.")
    meta = _Field[Mapping[str, Any] | None]("Its `_meta`, as given.")

    @property
    def enabled(self) -> bool:
        """Whether hosts see it and may call it."""
        return self._enabled

    @enabled.setter
    def enabled(self, value: bool) -> None:
        if value:
            self.enable()
        else:
            self.disable()

    @property
    def reason(self) -> str | None:
        """Why it is disabled, if that was said."""
        return self._reason

    @property
    def error(self) -> BaseException | None:
        """Why its lazy schema could not be made the last time, if it could not."""
        return self._error

    @property
    def stale(self) -> bool:
        """Whether it was removed."""
        return self._registry.get(self.name) is not self

    # --- changes -----------------------------------------------------------------------------

    def enable(self) -> None:
        """Show it to hosts again."""
        if not self._enabled and not self.stale:
            self._enabled = True
            self._reason = None
            self._registry.changed(self, listed=True)

    def disable(self, reason: str | None = None) -> None:
        """Hide it from hosts and refuse calls, telling them `reason`. It stays registered."""
        if self.stale:
            return
        was, told = self._enabled, self._reason
        self._enabled, self._reason = False, reason
        if was or told != reason:
            self._registry.changed(self, listed=was)

    def update(
        self,
        *,
        name: str | UnsetType = UNSET,
        title: str | UnsetType | None = UNSET,
        description: str | UnsetType | None = UNSET,
        input_schema: Source | UnsetType = UNSET,
        output_schema: Source | UnsetType = UNSET,
        annotations: ToolAnnotations | Mapping[str, Any] | UnsetType | None = UNSET,
        visibility: Sequence[Visibility] | UnsetType | None = UNSET,
        meta: Mapping[str, Any] | UnsetType | None = UNSET,
    ) -> None:
        """Change what is given; None takes a field away.

        Raises:
            RegistrationError: the new name is bad or taken. Nothing has changed.
            SchemaError: a schema cannot be used. Nothing has changed.
        """
        given = {
            "name": name,
            "title": title,
            "description": description,
            "input_schema": input_schema,
            "output_schema": output_schema,
            "annotations": annotations,
            "visibility": visibility,
            "meta": meta,
        }
        changes = {key: value for key, value in given.items() if value is not UNSET}
        if self.stale or not changes:
            return
        before, lazy_before = self._encoded, self.lazy
        old_name = self.name
        if changes.get("name", old_name) != old_name:
            self._registry.check_name(changes["name"])
        self._apply(changes)
        if self.name != old_name:
            self._registry.rename(old_name, self)
        if self.lazy or lazy_before or self._encoded != before:
            self._registry.changed(self, listed=self._enabled)

    def remove(self) -> None:
        """Take it out of the registry. Calls that run go on to their end."""
        if not self.stale:
            self._registry.remove(self)

    def _apply(self, changes: Mapping[str, Any]) -> None:
        """Compile everything first, then change; an error leaves the tool as it was."""
        fields = {**self._fields, **changes}
        fields["visibility"] = _checked_visibility(fields["visibility"])
        _checked_annotations(fields["annotations"])
        source, output = self._input, self.output
        if "input_schema" in changes:
            source = self._compile_input(changes["input_schema"])
        if "output_schema" in changes:
            given = changes["output_schema"]
            output = from_return(self.function.function) if given is None else output_schema(given)
        self._encoded = self._encode(fields, source, output)
        self._fields, self._input, self.output = fields, source, output
        self.fits = fields["input_schema"] is None
        self._error = None

    def _compile_input(self, source: Source) -> Schema | None:
        if source is None:
            name = self.function.context_name
            return from_signature(self.function.function, skip=() if name is None else (name,))
        if not is_lazy(source):
            schema = input_schema(source)
            if not schema.spread and not self.function.takes_one:
                raise SchemaError(
                    f"{self._title()}: the input schema gives the handler one object, "
                    "but the handler has no parameter for it"
                )
            return schema
        if inspect.iscoroutinefunction(source) or inspect.iscoroutinefunction(
            getattr(source, "__call__", None)  # noqa: B004
        ):
            raise SchemaError(
                f"{self._title()}: a lazy input_schema must be a sync function; keep what is "
                "fetched in your state and call update(input_schema=...) when it changes"
            )
        return None

    def _title(self) -> str:
        return f"Tool {self._fields.get('name', '?')}"

    # --- what hosts see ----------------------------------------------------------------------

    @property
    def lazy(self) -> bool:
        """Whether its input schema is made anew at every listing and call."""
        return self._input is None

    def schema(self) -> Schema:
        """The input schema as it is now.

        Raises:
            Unavailable: a lazy one could not be made; `error` says why.
        """
        return self._input if self._input is not None else self._resolve()

    def _resolve(self) -> Schema:
        source = cast("Callable[[], object]", self._fields["input_schema"])
        try:
            made: Any = source()
            if inspect.isawaitable(made):
                if inspect.iscoroutine(made):
                    made.close()
                raise SchemaError("a lazy input_schema must not be async")
            if is_lazy(made):
                raise SchemaError("a lazy input_schema must return a schema, not a function")
            encoded = _encode(made) if isinstance(made, dict) else b""
            if encoded and encoded == self._lazy_bytes and self._lazy_schema is not None:
                self._error = None
                return self._lazy_schema
            schema = input_schema(cast("object", made))
            if not schema.spread and not self.function.takes_one:
                raise SchemaError("it gives one object, but the handler has no parameter for it")
        except BaseException as error:  # noqa: BLE001 - the author's function may raise anything
            if self._error is None or _wording(self._error) != _wording(error):
                self._error = error
                self._registry.on_problem(error)
            raise Unavailable from None
        self._error = None
        self._lazy_bytes, self._lazy_schema = encoded, schema
        return schema

    def encoded(self) -> bytes:
        """Its entry in a listing, as JSON.

        Raises:
            Unavailable: its lazy schema could not be made.
        """
        if self._input is None:
            return b'%b,"inputSchema":%b}' % (self._encoded[:-1], bytes(self.schema().json_bytes))
        return self._encoded

    def _encode(
        self, fields: Mapping[str, Any], source: Schema | None, output: Schema | None
    ) -> bytes:
        """Its entry in a listing with these; without the input schema if that is lazy.

        Raises:
            RegistrationError: it could not be sent, or would be no tool.
        """
        given = (
            ("name", fields["name"]),
            ("title", fields["title"]),
            ("description", fields["description"]),
            ("inputSchema", None if source is None else source.json_bytes),
            ("outputSchema", None if output is None else output.json_bytes),
            ("annotations", fields["annotations"]),
            ("execution", _execution(self.task_support)),
        )
        entry = {key: value for key, value in given if value is not None}
        try:
            meta = _meta_entry(fields["meta"], fields["visibility"])
            encoded = _encode(entry if meta is None else {**entry, "_meta": meta})
            msgspec.json.decode(encoded, type=Tool)
        except Exception as error:
            text = f"Tool {fields['name']}: its definition cannot be sent: {_wording(error)}"
            raise RegistrationError(text) from error
        return encoded

    def definition(self) -> Tool:
        """Its definition as a `Tool`, as a host would get it.

        Raises:
            Unavailable: its lazy schema could not be made.
        """
        return msgspec.json.decode(self.encoded(), type=Tool)


def _execution(support: TaskSupport) -> ToolExecution | None:
    return None if support == "forbidden" else ToolExecution(support)


def _meta_entry(
    meta: Mapping[str, Any] | None, visibility: Sequence[str] | None
) -> dict[str, Any] | None:
    if visibility is None:
        return None if meta is None else dict(meta)
    entry = dict(meta or {})
    ui: object = entry.get("ui")
    known = cast("dict[str, Any]", ui) if isinstance(ui, Mapping) else {}
    entry["ui"] = {**known, "visibility": list(visibility)}
    return entry


def _wording(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - the author's exception may not even have a text
        return type(error).__name__


def _checked_visibility(value: object) -> tuple[Visibility, ...] | None:
    if value is None:
        return None
    entries = (value,) if isinstance(value, str) else tuple(cast("Sequence[object]", value))
    if not entries or any(entry not in ("model", "app") for entry in entries):
        raise RegistrationError(f"visibility is any of 'model' and 'app', not {value!r}")
    return cast("tuple[Visibility, ...]", entries)


def _checked_annotations(value: object) -> None:
    if value is None or isinstance(value, ToolAnnotations):
        return
    try:
        msgspec.convert(value, ToolAnnotations)
    except msgspec.ValidationError as error:
        raise RegistrationError(f"annotations: {error}") from None
    for field in msgspec.structs.fields(ToolAnnotations):
        if field.name != field.encode_name and field.name in cast("Mapping[str, Any]", value):
            text = f"annotations have wire names: {field.encode_name}, not {field.name}"
            raise RegistrationError(text)


def _checked_task(value: object) -> TaskSupport:
    try:
        return msgspec.convert({"taskSupport": value}, ToolExecution).task_support or "forbidden"
    except msgspec.ValidationError:
        text = f"task is 'forbidden', 'optional' or 'required', not {value!r}"
        raise RegistrationError(text) from None
