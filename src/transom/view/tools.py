"""The tools of an App: each tool's definition, live, and the registry that holds them by name.

1. A change is applied whole or not at all, and the host is notified of real changes only: setting
   a field to the value it has changes nothing.
2. A handle whose tool was removed is stale: it does nothing and notifies nobody.
3. Encoded definitions are cached until they change. A lazy schema is called at every listing and
   call, but compiled again only if it returns something else.
4. A name is 1 to 128 of `A-Za-z0-9_.-`, and unique; names such as `constructor` are allowed.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, Self, TypedDict, TypeVar, Unpack, cast, get_args, overload

import msgspec

from transom.errors import RegistrationError, SchemaError
from transom.events import abandon, is_async, is_awaitable
from transom.json_values import sendable
from transom.schema import Schema, from_return, from_signature, input_schema, is_lazy, output_schema
from transom.types import DisabledTool, Tool, ToolAnnotations, ToolExecution, Visibility
from transom.view.invoke import ReportProblem, ToolFunction, description_of, wording

TaskSupport = Literal["forbidden", "optional", "required"]
"""Whether a tool may or must run as a task."""
SchemaSource = object
"""Anything `transom.schema` makes a schema of, or a function returning such a thing."""

_MAX_NAME = 128
_IN_NAMES = frozenset(string.ascii_letters + string.digits + "_.-")
_UPDATABLE = ("disabled", "description", "input_schema")

_encode = msgspec.json.encode


class ToolDefinition(TypedDict, total=False):
    """What a listing shows of a tool, besides its name. `App.register_tool` explains each."""

    title: str | None
    description: str | None
    input_schema: SchemaSource
    output_schema: SchemaSource
    annotations: ToolAnnotations | Mapping[str, Any] | None
    visibility: Sequence[Visibility] | None
    meta: Mapping[str, Any] | None


class ToolOptions(ToolDefinition, total=False):
    """The keywords of `App.register_tool` and `App.tool`."""

    enabled: bool
    task: TaskSupport
    thread: bool


class ToolChanges(ToolDefinition, total=False):
    """The keywords of `RegisteredTool.update`."""

    name: str


class Unavailable(Exception):
    """A tool that cannot be called now; the text says what it is, such as "disabled"."""


def _refuse_unknown(call: str, given: Iterable[str], known: Iterable[str]) -> None:
    for key in given:
        if key not in known:
            raise TypeError(f"{call} got an unexpected keyword argument {key!r}")


_NO_PARAMETER = (
    "the input schema gives the handler one object, but the handler has no parameter for it"
)

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
        changes: Any = {self._name: value}
        tool.update(**changes)


class RegisteredTool:
    """A live handle of a tool: hosts see its current fields, and calls are checked against them.

    Change it with `enable`, `disable`, `update` and `remove`, or by setting a field. Hosts are
    notified of every change that they can see. It stays callable as the function it wraps.
    """

    def __init__(
        self,
        registry: Registry,
        name: str,
        handler: Callable[..., Any],
        *,
        enabled: bool = True,
        task: TaskSupport = "forbidden",
        thread: bool = False,
        **definition: Unpack[ToolDefinition],
    ) -> None:
        _refuse_unknown("register_tool()", definition, ToolDefinition.__optional_keys__)
        self._registry = registry
        self._registration = registry.next_registration()
        self._function = ToolFunction(handler, thread=thread)
        self._enabled = enabled
        self._reason: str | None = None
        self._error: BaseException | None = None
        self._lazy_bytes = b""
        self._lazy_schema: Schema | None = None
        self._encoded = b""
        self.task_support: TaskSupport = _checked_task(task)
        self._fields: dict[str, Any] = {}
        self._input: Schema | None = None
        self._output: Schema | None = None
        """The compiled output schema."""
        self._fits = False
        """Whether the schema is the function's own, so that valid arguments can be passed to it."""
        if definition.get("description") is None:
            definition["description"] = description_of(handler)
        fields = dict.fromkeys(ToolDefinition.__optional_keys__)
        self._apply({**fields, **definition, "name": name})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, as if it had never been registered."""
        return self._function.function(*args, **kwargs)

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
    input_schema = _Field[SchemaSource]("Where its input schema comes from; None: the function.")
    output_schema = _Field[SchemaSource]("Where its output schema comes from; None: the function.")
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
        """Why it is disabled, if a reason was given."""
        return self._reason

    @property
    def error(self) -> BaseException | None:
        """Why its lazy schema failed the last time, if it did."""
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
        """Hide it from hosts, and refuse calls with `reason`. It stays registered."""
        if self.stale:
            return
        before = (self._enabled, self._reason)
        self._enabled, self._reason = False, reason
        if before != (False, reason):
            self._registry.changed(self, listed=before[0])

    def update(self, **changes: Unpack[ToolChanges]) -> None:
        """Change what is given: `name` and the fields of its definition. None removes a field.

        Raises:
            RegistrationError: the new name is bad or taken. Nothing has changed.
            SchemaError: a schema cannot be used. Nothing has changed.
        """
        _refuse_unknown("update()", changes, ToolChanges.__optional_keys__)
        if self.stale or not changes:
            return
        before, lazy_before = self._encoded, self.lazy
        old_name = self.name
        if (new_name := changes.get("name", old_name)) != old_name:
            self._registry.check_name(new_name)
        self._apply(changes)
        if self.name != old_name:
            self._registry.rename(old_name, self)
        if self.lazy or lazy_before or self._encoded != before:
            self._registry.changed(self, listed=self._enabled)

    def remove(self) -> None:
        """Remove it from the registry. Running calls are not cancelled."""
        if not self.stale:
            self._registry.remove(self)

    def _apply(self, changes: Mapping[str, Any]) -> None:
        """Compile everything first, then change; an error leaves the tool as it was."""
        fields = {**self._fields, **changes}
        fields["visibility"] = _checked_visibility(fields["visibility"])
        _checked_annotations(fields["annotations"])
        source, output = self._input, self._output
        if "input_schema" in changes:
            source = self._compile_input(fields["name"], changes["input_schema"])
        if "output_schema" in changes:
            given = changes["output_schema"]
            output = from_return(self._function.function) if given is None else output_schema(given)
        self._encoded = self._encode(fields, source, output)
        self._fields, self._input, self._output = fields, source, output
        self._fits = fields["input_schema"] is None
        self._error = None

    def _compile_input(self, name: str, source: SchemaSource) -> Schema | None:
        if source is None:
            skipped = [name for name in (self._function.context_name,) if name is not None]
            return from_signature(self._function.function, skip=skipped)
        if not is_lazy(source):
            schema = input_schema(source)
            if not schema.spread and not self._function.takes_one:
                raise SchemaError(f"Tool {name}: {_NO_PARAMETER}")
            return schema
        if is_async(source):
            raise SchemaError(
                f"Tool {name}: a lazy input_schema must be a sync function; keep what is "
                "fetched in your state and call update(input_schema=...) when it changes"
            )
        return None

    # --- what hosts see ----------------------------------------------------------------------

    @property
    def lazy(self) -> bool:
        """Whether its input schema is made again at every listing and call."""
        return self._input is None

    def _schema(self) -> Schema:
        """The input schema of a call made now.

        Raises:
            Unavailable: it is disabled, or its lazy schema could not be made.
        """
        if not self._enabled:
            raise Unavailable(f"disabled: {self._reason}" if self._reason else "disabled")
        return self._input if self._input is not None else self._resolve()

    def _resolve(self) -> Schema:
        source = cast("Callable[[], object]", self._fields["input_schema"])
        try:
            made: Any = source()
            if is_awaitable(made):
                abandon(made)
                raise SchemaError("a lazy input_schema must not be async")
            if is_lazy(made):
                raise SchemaError("a lazy input_schema must return a schema, not a function")
            encoded = _encode(made) if isinstance(made, dict) else b""
            if encoded and encoded == self._lazy_bytes and self._lazy_schema is not None:
                self._error = None
                return self._lazy_schema
            schema = input_schema(cast("object", made))
            if not schema.spread and not self._function.takes_one:
                raise SchemaError(_NO_PARAMETER)
        except BaseException as error:  # noqa: BLE001 - the author's function may raise anything
            if self._error is None or wording(self._error) != wording(error):
                self._error = error
                self._registry.report(error, "schema", self.name)
            raise Unavailable("unavailable right now") from None
        self._error = None
        self._lazy_bytes, self._lazy_schema = encoded, schema
        return schema

    def encoded(self) -> bytes:
        """Its entry in a listing, as JSON.

        Raises:
            Unavailable: its lazy schema could not be made.
        """
        if self._input is None:
            return b'%b,"inputSchema":%b}' % (self._encoded[:-1], bytes(self._resolve().json_bytes))
        return self._encoded

    def _encode(
        self, fields: Mapping[str, Any], source: Schema | None, output: Schema | None
    ) -> bytes:
        """Its entry in a listing; without the input schema if that is lazy."""
        given = (
            ("name", fields["name"]),
            ("title", fields["title"]),
            ("description", fields["description"]),
            ("inputSchema", None if source is None else source.json_bytes),
            ("outputSchema", None if output is None else output.json_bytes),
            ("annotations", fields["annotations"]),
            (
                "execution",
                None if self.task_support == "forbidden" else ToolExecution(self.task_support),
            ),
        )
        entry: dict[str, Any] = {key: value for key, value in given if value is not None}
        try:
            entry["_meta"] = _meta_entry(fields["meta"], fields["visibility"])
            entry["_meta"]["transom/registration"] = self._registration
            if source is None:
                entry["_meta"]["transom/lazy"] = True
            encoded = _encode(entry)
            msgspec.json.decode(encoded, type=Tool)
        except Exception as error:
            text = f"Tool {fields['name']}: its definition cannot be sent: {wording(error)}"
            raise RegistrationError(text) from error
        return encoded

    def as_disabled(self) -> DisabledTool:
        """How a listing describes it while it is disabled."""
        reason = None if self._reason is None else sendable(str(self._reason))
        return DisabledTool(self.name, reason, self._registration)

    def definition(self) -> Tool:
        """Its definition as a `Tool`, as a host would get it."""
        return msgspec.json.decode(self.encoded(), type=Tool)


class Registry:
    """The tools of one App, by name, in the order of registration."""

    def __init__(
        self,
        on_change: Callable[[RegisteredTool, bool], None],
        report: ReportProblem,
    ) -> None:
        self._on_change = on_change
        self.report = report
        self._tools: dict[str, RegisteredTool] = {}
        self._registrations = 0
        self.version = 0
        """Counts the changes."""

    def next_registration(self) -> int:
        """A number that no other tool of this App has had."""
        self._registrations += 1
        return self._registrations

    def __iter__(self) -> Iterator[RegisteredTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def get(self, name: str) -> RegisteredTool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def check_name(self, name: object) -> None:
        """Check that a tool could be registered under this name."""
        if not (
            isinstance(name, str) and 0 < len(name) <= _MAX_NAME and _IN_NAMES.issuperset(name)
        ):
            raise RegistrationError(
                f"{str(name)[:200]!r} is not a tool name: use 1 to 128 of A-Z a-z 0-9 _ . -"
            )
        if name in self._tools:
            raise RegistrationError(f"Tool {name} is already registered")

    def add(self, tool: RegisteredTool) -> None:
        """Add a new tool."""
        self.check_name(tool.name)
        self._tools[tool.name] = tool
        self.changed(tool, listed=tool.enabled)

    def remove(self, tool: RegisteredTool) -> None:
        """Remove a tool."""
        del self._tools[tool.name]
        self.changed(tool, listed=tool.enabled)

    def rename(self, old: str, tool: RegisteredTool) -> None:
        """Store a tool under its new name; its position stays."""
        self._tools = {(tool.name if n == old else n): t for n, t in self._tools.items()}

    def update(self, name: str, changes: dict[str, Any]) -> None:
        """Change a tool by name; see `App.update_tool`."""
        tool = self.get(name)
        if tool is None:
            raise RegistrationError(f"Tool {name} is not registered")
        for key in changes:
            if key not in _UPDATABLE:
                raise TypeError(_how_else(name, key))
        disabled = changes.pop("disabled", None)
        if disabled is not None and not isinstance(disabled, bool):
            raise TypeError(f"disabled is True or False, not {disabled!r}")
        tool.update(**changes)
        if disabled is False:
            tool.enable()
        elif disabled and tool.enabled:
            tool.disable()

    def changed(self, tool: RegisteredTool, *, listed: bool) -> None:
        """Report a change; `listed`: a listing shows it."""
        self.version += 1
        self._on_change(tool, listed)


def _how_else(name: str, key: str) -> str:
    if key == "enabled":
        return f"update_tool({name!r}) takes disabled, not enabled"
    if key in ToolChanges.__optional_keys__:
        return (
            f"update_tool({name!r}) cannot change {key}: that would be another tool. "
            f"Use the handle that register_tool returned: handle.update({key}=...)"
        )
    return (
        f"update_tool({name!r}) has no {key}: it changes disabled, description and input_schema. "
        "For another handler, remove the tool and register it again"
    )


def _meta_entry(meta: Mapping[str, Any] | None, visibility: Sequence[str] | None) -> dict[str, Any]:
    entry = dict(meta or {})
    if visibility is None:
        return entry
    ui: object = entry.get("ui")
    known = cast("dict[str, Any]", ui) if isinstance(ui, Mapping) else {}
    entry["ui"] = {**known, "visibility": list(visibility)}
    return entry


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
    if value not in get_args(TaskSupport):
        text = f"task is 'forbidden', 'optional' or 'required', not {value!r}"
        raise RegistrationError(text)
    return cast("TaskSupport", value)
