"""Offering tools to the host: registering, changing, and telling of changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import msgspec

from transom.errors import NotConnected, RegistrationError
from transom.events import Event
from transom.types import ToolAnnotations, Visibility
from transom.view.changes import ListChanges
from transom.view.handlers import description_of, name_of
from transom.view.registry import Registry
from transom.view.tools import RegisteredTool, TaskSupport

__all__ = ["ToolOffering"]

_UPDATABLE = ("disabled", "description", "input_schema")


class ToolOffering(ABC):
    """The tools of an `App`."""

    def __init__(self) -> None:
        self.tools_wanted = False
        self._registry = Registry(self._tool_changed, self.report)
        self._changes = ListChanges(
            lambda: self.connected and self.notify("notifications/tools/list_changed", {})
        )

    on_tool_change = Event["ToolOffering"]()

    @property
    @abstractmethod
    def started(self) -> bool:
        """Whether `connect` was called and the connection has not ended."""

    @property
    @abstractmethod
    def connected(self) -> bool:
        """Whether the handshake is done and the connection lives."""

    @property
    @abstractmethod
    def capabilities(self) -> dict[str, Any]:
        """What `connect` declares, or has declared, in wire form."""

    @abstractmethod
    def notify(self, method: str, params: Mapping[str, Any] | msgspec.Struct | None = None) -> None:
        """Tell the host, by the name of the method."""

    @abstractmethod
    def report(self, error: BaseException) -> None:
        """Tell `on_error`."""

    @abstractmethod
    def run_aside(self, waiting: object) -> bool:
        """Await what handlers returned, if it has to be, beside everything else."""

    @abstractmethod
    def too_early(self, method: str) -> None:
        """Warn, or in strict mode raise, that the handshake has not ended."""

    @property
    def tools(self) -> tuple[RegisteredTool, ...]:
        """Every registered tool, disabled ones too, in the order of registration."""
        return tuple(self._registry)

    def register_tool(
        self,
        name: str,
        handler: Callable[..., Any],
        *,
        title: str | None = None,
        description: str | None = None,
        input_schema: object = None,
        output_schema: object = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        visibility: Sequence[Visibility] | None = None,
        meta: Mapping[str, Any] | None = None,
        enabled: bool = True,
        task: TaskSupport = "forbidden",
        thread: bool = False,
    ) -> RegisteredTool:
        """Offer a tool to the host.

        Args:
            name: 1 to 128 of `A-Za-z0-9_.-`, unique.
            handler: sync or async; gets the arguments by keyword, and a `CallContext` if it has a
                parameter for one. What it returns becomes the result.
            title: a short name for people.
            description: what it does, for the model; the handler's docstring unless given.
            input_schema: a JSON Schema dict, a type, an object with `json_schema()` and
                `validate()`, or a sync function returning one of these, asked at every listing
                and call; from the handler's type hints unless given.
            output_schema: the same for the result; from the return annotation unless given.
            annotations: hints such as `{"readOnlyHint": True}`.
            visibility: who may call it, any of `"model"` and `"app"`; both unless given.
            meta: its `_meta`.
            enabled: whether hosts see it from the start.
            task: whether it may, or must, run as a task.
            thread: run the (sync) handler in a thread, so that it does not block the event loop.

        Raises:
            RegistrationError: the name is bad or taken, or the View is connected and did not
                declare `tools`. The registry is as it was.
            SchemaError: a schema cannot be used.
        """
        self._registry.check_name(name)
        self.want_tools(f"tool {name} was registered", commit=False)
        tool = RegisteredTool(
            self._registry,
            name,
            handler,
            title=title,
            description=description_of(handler) if description is None else description,
            input_schema=input_schema,
            output_schema=output_schema,
            annotations=annotations,
            visibility=visibility,
            meta=meta,
            enabled=enabled,
            task=task,
            thread=thread,
        )
        self.want_tools(f"tool {name} was registered")
        self._registry.add(tool)
        return tool

    @overload
    def tool(self, function: Callable[..., Any]) -> RegisteredTool: ...
    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input_schema: object = None,
        output_schema: object = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        visibility: Sequence[Visibility] | None = None,
        meta: Mapping[str, Any] | None = None,
        enabled: bool = True,
        task: TaskSupport = "forbidden",
        thread: bool = False,
    ) -> Callable[[Callable[..., Any]], RegisteredTool]: ...
    def tool(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> Any:
        """Register a function as a tool: `@app.tool` or `@app.tool(annotations=...)`.

        The name is the function's, the description its docstring, the schemas come from its type
        hints; every keyword of `register_tool` says otherwise.
        """

        def register(function: Callable[..., Any]) -> RegisteredTool:
            return self.register_tool(name or name_of(function), function, **options)

        return register if function is None else register(function)

    def update_tool(self, name: str, /, **changes: Any) -> None:
        """Change a tool by name, as WebMCP does: `disabled`, `description`, `input_schema`.

        Raises:
            RegistrationError: there is no such tool.
            TypeError: something else was to be changed; the text says how to do that.
        """
        tool = self._registry.get(name)
        if tool is None:
            raise RegistrationError(f"Tool {name} is not registered")
        for key in changes:
            if key not in _UPDATABLE:
                raise TypeError(_how_else(name, key))
        disabled = changes.pop("disabled", None)
        if disabled is not None and not isinstance(disabled, bool):
            raise TypeError(f"disabled is True or False, not {disabled!r}")
        tool.update(**changes)
        if disabled is not None:
            if not disabled:
                tool.enable()
            elif tool.enabled:
                tool.disable()

    def want_tools(self, why: str, *, commit: bool = True) -> None:
        """See that the `tools` capability is declared, or will be.

        Raises:
            RegistrationError: it is too late to declare it.
        """
        if not self.started:
            self.tools_wanted = self.tools_wanted or commit
        elif "tools" not in self.capabilities:
            raise RegistrationError(
                f"The View is connected and did not declare the tools capability, but {why}. "
                "Register a tool before connect(), or pass capabilities={'tools': {}} to App."
            )

    def _tool_changed(self, tool: RegisteredTool, listed: bool) -> None:
        if self.on_tool_change:
            self.run_aside(self.on_tool_change.fire(tool, on_problem=self.report))
        if listed and self.connected and self._changes.declared(self.capabilities):
            self._changes.tell_soon()

    def tell_changes(self) -> None:
        """Tell of the changes of this turn before what is said next."""
        self._changes.tell_if_due()

    async def send_tool_list_changed(self) -> None:
        """Tell the host that the tools have changed, now. Counts for changes made in this turn.

        Raises:
            NotConnected: there is no connection.
            RegistrationError: the View did not declare that its tools can change.
        """
        if not self.started:
            raise NotConnected("Not connected")
        if not self._changes.declared(self.capabilities):
            raise RegistrationError(
                "The View did not declare tools: {'listChanged': True}, so the host does not listen"
            )
        if not self.connected:
            self.too_early("send_tool_list_changed")
        self._changes.tell()


def _how_else(name: str, key: str) -> str:
    if key == "enabled":
        return f"update_tool({name!r}) takes disabled, not enabled"
    if key in ("name", "title", "output_schema", "annotations", "visibility", "meta"):
        return (
            f"update_tool({name!r}) cannot change {key}: that would be another tool. "
            f"Use the handle that register_tool returned: handle.update({key}=...)"
        )
    return (
        f"update_tool({name!r}) has no {key}: it changes disabled, description and input_schema. "
        "For another handler, remove the tool and register it again"
    )
