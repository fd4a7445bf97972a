"""What messages carry: params and results, what users pass as JSON, and the names of MCP Apps."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Raw, field

from transom.errors import INVALID_PARAMS, ProtocolError
from transom.protocol import wire
from transom.types import (
    AppCapabilities,
    ContentBlock,
    DisabledTool,
    DisplayMode,
    EmbeddedResource,
    HostCapabilities,
    HostContext,
    Implementation,
    LogLevel,
    Meta,
    Open,
    Resource,
    ResourceLink,
    Task,
    TextContent,
    Tool,
    ToolResult,
    Wire,
)

PROTOCOL_VERSION = "2026-01-26"
"""The version of MCP Apps that Transom offers."""

UI_EXTENSION: Final = "io.modelcontextprotocol/ui"
"""The name of the MCP Apps extension, in `capabilities.extensions`."""

VIEW_MIME_TYPE: Final = "text/html;profile=mcp-app"
"""The type of a View's page, and what a client lists in `mimeTypes` to say that it shows Views."""

LEGACY_URI_KEY: Final = "ui/resourceUri"
"""The flat `_meta` key that linked a tool to its View before `_meta.ui.resourceUri`."""

# Transom's own extensions. Peers that do not know them can ignore them.

PIN: Final = "transom/pin"
"""In a host's `experimental` capabilities: a View may ask to stay open."""

PROBLEMS: Final = "transom/problems"
"""In a host's `experimental` capabilities: it wants to know what goes wrong inside a View."""

LAZY: Final = "transom/lazy"
"""In the `_meta` of a View's tool: its input schema is computed for each listing. Also in the
`_meta` of the first page of tools, because such a tool may be missing from the list right now.
"""

DISABLED_TOOLS: Final = "transom/disabled"
"""In the `_meta` of the first page of a View's tools: the disabled ones."""

REUSE: Final = "transom/reuse"
"""In the `_meta` of a server's tool: when a call of it uses a View that is open already."""

OPEN: Final = "transom/open"
"""In the `_meta` of a call: false if it should open no View."""


def is_ours(key: str) -> bool:
    """Whether a key of a `_meta` is Transom's own: between View and host, not for models."""
    return key.startswith("transom/")


RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
"""The key of a result's `_meta` that names the task it is the result of."""
MAX_DISABLED = 100
"""How many disabled tools a listing reports."""

MAX_PROBLEMS = 100
"""How many problems a View reports per connection; one more says that there were too many."""


class Nothing(Wire, frozen=True):
    """Params that carry nothing we need."""


class Empty(Open, frozen=True):
    """A result with nothing in it, or nothing we know."""


class Verdict(Open, frozen=True, kw_only=True):
    """Whether the host did what the View asked; `is_error`: it refused."""

    is_error: bool = False


class InitializeParams(Wire, frozen=True):
    """`ui/initialize`, from the View."""

    app_info: Implementation
    app_capabilities: AppCapabilities
    protocol_version: str


class InitializeResult(Open, frozen=True, kw_only=True):
    """`ui/initialize`, from the host. A host that leaves out its context is tolerated."""

    protocol_version: str
    host_info: Implementation
    host_capabilities: HostCapabilities
    host_context: Raw = field(default_factory=lambda: Raw(b"{}"))

    def context(self) -> HostContext:
        """The host's context, unknown keys included."""
        return HostContext.from_wire(self.host_context)


class OpenLinkParams(Wire, frozen=True):
    """`ui/open-link`."""

    url: str


class DownloadFileParams(Wire, frozen=True):
    """`ui/download-file`."""

    contents: list[EmbeddedResource | ResourceLink]


class MessageParams(Wire, frozen=True):
    """`ui/message`. The spec shows one block, the SDK sends a list; both are taken."""

    role: Literal["user"]
    content: list[ContentBlock] | ContentBlock

    @property
    def blocks(self) -> list[ContentBlock]:
        """The content as a list, whichever form it came in."""
        return self.content if isinstance(self.content, list) else [self.content]


class ModelContextParams(Wire, frozen=True):
    """`ui/update-model-context`."""

    content: list[ContentBlock] | None = None
    structured_content: dict[str, Any] | None = None


class DisplayModeParams(Wire, frozen=True):
    """`ui/request-display-mode`."""

    mode: DisplayMode


class DisplayModeResult(Open, frozen=True, kw_only=True):
    """The mode the View is in now."""

    mode: str


class PinParams(Wire, frozen=True):
    """`transom/request-pin`: the View asks to stay open."""

    reason: str | None = None

    def __post_init__(self) -> None:
        """Shorten the View's text."""
        self._shorten_texts(reason=500)


class TaskRequest(Wire, frozen=True):
    """Asks to run a call as a task; `ttl` in milliseconds."""

    ttl: float | None = None


class CallToolParams(Wire, frozen=True, gc=False):
    """`tools/call`. The arguments stay raw until the tool's schema reads them."""

    name: str
    arguments: Raw = field(default_factory=lambda: Raw(b"{}"))
    task: TaskRequest | None = None
    meta: Meta | None = field(name="_meta", default=None)


class ListParams(Wire, frozen=True):
    """A list request; `cursor` asks for the next page."""

    cursor: str | None = None


class ListToolsResult(Open, frozen=True, kw_only=True):
    """A page of tools."""

    tools: list[Tool] = field(default_factory=lambda: list[Tool]())
    next_cursor: str | None = None
    meta: Meta | None = field(name="_meta", default=None)

    @property
    def lazy(self) -> bool:
        """Whether a schema of the View's tools is computed for each listing."""
        return (self.meta or {}).get(LAZY) is True

    @property
    def disabled(self) -> list[DisabledTool]:
        """The disabled tools that this page reports; unreadable entries are left out."""
        entries: object = (self.meta or {}).get(DISABLED_TOOLS)
        found: list[DisabledTool] = []
        if isinstance(entries, list):
            for entry in cast("list[object]", entries)[:MAX_DISABLED]:
                with suppress(msgspec.ValidationError):
                    found.append(msgspec.convert(entry, DisabledTool))
        return found


class ListResourcesResult(Open, frozen=True, kw_only=True):
    """A page of resources."""

    resources: list[Resource] = field(default_factory=lambda: list[Resource]())
    next_cursor: str | None = None
    meta: Meta | None = field(name="_meta", default=None)


class ReadResourceParams(Wire, frozen=True):
    """`resources/read`."""

    uri: str


class TaskParams(Wire, frozen=True):
    """`tasks/get`, `tasks/result`, `tasks/cancel`."""

    task_id: str


class CreateTaskResult(Open, frozen=True, kw_only=True):
    """The answer to a call that became a task."""

    task: Task
    meta: Meta | None = field(name="_meta", default=None)


class ListTasksResult(Open, frozen=True, kw_only=True):
    """A page of tasks."""

    tasks: list[Task]
    next_cursor: str | None = None


class TeardownParams(Wire, frozen=True):
    """`ui/resource-teardown`."""

    reason: str | None = None


class SizeParams(Wire, frozen=True):
    """`ui/notifications/size-changed`."""

    width: float | None = None
    height: float | None = None


class LogParams(Wire, frozen=True):
    """`notifications/message`."""

    level: LogLevel
    data: Any
    logger: str | None = None


class ToolInputParams(Wire, frozen=True):
    """`ui/notifications/tool-input` and its partial form."""

    arguments: dict[str, Any] | None = None


class ToolCancelledParams(Wire, frozen=True):
    """`ui/notifications/tool-cancelled`."""

    reason: str | None = None


class SandboxResourceParams(Wire, frozen=True):
    """`ui/notifications/sandbox-resource-ready`, from the host to its own sandbox proxy."""

    html: str
    sandbox: str | None = None
    csp: dict[str, Any] | None = None
    permissions: dict[str, Any] | None = None


# --- what users pass ---------------------------------------------------------------------------

_AROUND_ARGUMENTS = 2  # levels of a message: the envelope and its params

ToolOutcome = ToolResult | Mapping[str, Any] | str
"""A tool's result: a struct, a mapping with wire names, or just its text."""


def object_json(value: object) -> bytes:
    """A struct or a mapping as a JSON object."""
    if isinstance(value, Open):
        return value.to_wire()
    if isinstance(value, dict | msgspec.Struct):
        return wire.encode(value)
    if isinstance(value, Mapping):
        return wire.encode(dict(value))  # pyright: ignore[reportUnknownArgumentType]
    raise TypeError(f"Expected a struct or a mapping, not {type(value).__name__}")


def check_arguments(tool: str, arguments: object, max_depth: int = wire.MAX_DEPTH) -> None:
    """Check that the arguments of a call, if any, are an object that can be sent, stored and shown.

    `max_depth` is that of a message.

    Raises:
        ProtocolError: they are not; its text is for the model that wrote them.
    """
    problem = None if arguments is None else _why_not_sent(arguments, max_depth)
    if problem is not None:
        raise ProtocolError(INVALID_PARAMS, f"Invalid arguments for {tool[:128]}: they {problem}")


def _why_not_sent(arguments: object, max_depth: int) -> str | None:
    if not isinstance(arguments, Mapping):
        return "have to be a JSON object"
    limit = max(max_depth - _AROUND_ARGUMENTS, 0)
    try:
        if not wire.is_deeper(object_json(cast("Mapping[str, Any]", arguments)), limit):
            return None
    except UnicodeEncodeError:
        return "cannot be written as JSON: a text has half of a surrogate pair"
    except (TypeError, ValueError, OverflowError):
        return "cannot be written as JSON"
    except RecursionError:
        pass  # so deep that it is not even written
    return f"may be nested at most {limit} levels deep"


def result_json(value: ToolOutcome) -> bytes:
    """A tool's result as JSON. `content` is always there."""
    if isinstance(value, str):
        return ToolResult(content=[TextContent(value)]).to_wire()
    if isinstance(value, Mapping) and "content" not in value:
        return wire.encode({"content": [], **value})
    return object_json(value)
