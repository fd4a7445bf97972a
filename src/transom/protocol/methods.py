"""Every method of MCP Apps, in one table.

A method is known by who sends it and its name: `tools/call` from the View asks the server for
something, `tools/call` from the host asks the View. `needs` names the capability the receiver
declares when it serves the method; where the spec says the sender MUST look first, `must` is set.
`early` methods may be sent before the View is initialised.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import msgspec
from msgspec import Raw

from transom.errors import INVALID_PARAMS, InvalidResult, ProtocolError
from transom.protocol import messages as m
from transom.types import HostContext, Open, ReadResourceResult, Task, ToolResult, ViewProblem

Sender = Literal["view", "host"]


class Method(msgspec.Struct, frozen=True, eq=False):
    """One row. `result` is None for a notification; `dict` is core MCP, forwarded unread."""

    sender: Sender
    name: str
    params: Any
    result: Any = None
    needs: str | None = None
    must: bool = False
    early: bool = False

    @property
    def is_request(self) -> bool:
        """Whether it wants an answer."""
        return self.result is not None

    def read_params(self, raw: Raw | bytes | None) -> Any:
        """The params as this method's struct; absent ones are `{}`."""
        try:
            return _reader(self.params)(b"{}" if raw is None else raw)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            text = f"Invalid params for {self.name}: {describe(error)}"
            raise ProtocolError(INVALID_PARAMS, text) from None

    def read_result(self, raw: Raw | bytes) -> Any:
        """The result as this method's struct."""
        return read_result(self.name, self.result, raw)


def read_result(method: str, type_: Any, raw: Raw | bytes) -> Any:
    """A result of `method`, read as `type_`."""
    try:
        return _reader(type_)(raw)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise InvalidResult(f"Invalid result for {method}: {describe(error)}") from None


@cache
def _reader(type_: Any) -> Callable[[Raw | bytes], Any]:
    if type_ is not dict and issubclass(type_, Open):
        return type_.from_wire
    return msgspec.json.Decoder(type_).decode


_PLACE = r" - at `\$\.?(?P<where>[^`]*)`$"  # compiled when it is first used


def describe(error: Exception) -> str:
    """`place: what is wrong` from a decoder's error, without the value itself."""
    if not isinstance(error, msgspec.DecodeError):
        return "not readable"
    text = str(error)[:300]
    place = re.search(_PLACE, text)
    if place is None:
        return text
    what = text[: place.start()]
    return f"{place['where']}: {what}" if place["where"] else what


_TABLE = [
    # --- requests of the View ---------------------------------------------------------------
    Method("view", "ui/initialize", m.InitializeParams, m.InitializeResult, early=True),
    Method("view", "ui/open-link", m.OpenLinkParams, m.Verdict, "open_links"),
    Method("view", "ui/download-file", m.DownloadFileParams, m.Verdict, "download_file"),
    Method("view", "ui/message", m.MessageParams, m.Verdict, "message"),
    Method(
        "view", "ui/update-model-context", m.ModelContextParams, m.Verdict, "update_model_context"
    ),
    Method("view", "ui/request-display-mode", m.DisplayModeParams, m.DisplayModeResult),
    Method("view", "tools/call", m.CallToolParams, ToolResult, "server_tools"),
    Method("view", "tools/list", m.ListParams, m.ListToolsResult, "server_tools"),
    Method("view", "resources/list", m.ListParams, m.ListResourcesResult, "server_resources"),
    Method("view", "resources/templates/list", m.ListParams, dict, "server_resources"),
    Method("view", "resources/read", m.ReadResourceParams, ReadResourceResult, "server_resources"),
    Method("view", "prompts/list", m.ListParams, dict),
    Method("view", "tasks/get", m.TaskParams, Task, "server_tools"),
    Method("view", "tasks/result", m.TaskParams, ToolResult, "server_tools"),
    Method("view", "tasks/cancel", m.TaskParams, Task, "server_tools"),
    Method("view", "sampling/createMessage", dict, dict, "sampling", must=True),
    Method("view", "transom/request-pin", m.PinParams, m.Verdict),
    Method("view", "ping", m.Nothing, m.Empty, early=True),
    # --- notifications of the View ----------------------------------------------------------
    Method("view", "ui/notifications/initialized", m.Nothing, early=True),
    Method("view", "ui/notifications/size-changed", m.SizeParams),
    Method("view", "ui/notifications/request-teardown", m.Nothing),
    Method("view", "notifications/message", m.LogParams, needs="logging"),
    Method("view", "notifications/tools/list_changed", m.Nothing),
    Method("view", "transom/notifications/problem", ViewProblem, early=True),
    Method("view", "transom/notifications/unconnected", m.Nothing, early=True),
    Method("view", "notifications/progress", dict, early=True),
    Method("view", "notifications/cancelled", dict, early=True),
    Method("view", "ui/notifications/sandbox-proxy-ready", m.Nothing, early=True),
    # --- requests of the host ---------------------------------------------------------------
    Method("host", "tools/list", m.ListParams, m.ListToolsResult, "tools", must=True),
    Method("host", "tools/call", m.CallToolParams, ToolResult, "tools", must=True),
    Method("host", "tasks/get", m.TaskParams, Task, "tools"),
    Method("host", "tasks/list", m.ListParams, m.ListTasksResult, "tools"),
    Method("host", "tasks/result", m.TaskParams, ToolResult, "tools"),
    Method("host", "tasks/cancel", m.TaskParams, Task, "tools"),
    Method("host", "ui/resource-teardown", m.TeardownParams, m.Empty),
    Method("host", "ping", m.Nothing, m.Empty),
    # --- notifications of the host ---------------------------------------------------------
    Method("host", "ui/notifications/tool-input", m.ToolInputParams),
    Method("host", "ui/notifications/tool-input-partial", m.ToolInputParams),
    Method("host", "ui/notifications/tool-result", ToolResult),
    Method("host", "ui/notifications/tool-cancelled", m.ToolCancelledParams),
    Method("host", "ui/notifications/host-context-changed", HostContext),
    Method("host", "notifications/tools/list_changed", m.Nothing),
    Method("host", "notifications/resources/list_changed", m.Nothing),
    Method("host", "notifications/prompts/list_changed", m.Nothing),
    Method("host", "notifications/progress", dict, early=True),
    Method("host", "notifications/cancelled", dict, early=True),
    Method("host", "ui/notifications/sandbox-resource-ready", m.SandboxResourceParams, early=True),
]

METHODS: dict[tuple[Sender, str], Method] = {(row.sender, row.name): row for row in _TABLE}
"""The whole table, by sender and name."""

VIEW: dict[str, Method] = {row.name: row for row in _TABLE if row.sender == "view"}
"""What a View may send."""

HOST: dict[str, Method] = {row.name: row for row in _TABLE if row.sender == "host"}
"""What a host may send."""
