"""The values users touch: tools, results, content, capabilities, the host's context.

snake_case in Python, camelCase on the wire, frozen. What happens to keys we do not know:

1. In params and capabilities they are dropped.
2. In results and in the host context they are kept in `extra`, and sent on unchanged.
3. Inside content blocks they are dropped.

Structs of rule 2 inherit from `Open`; read them with `from_wire` and write them with `to_wire`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, cast, final

import msgspec
from msgspec import field

Meta = dict[str, Any]
"""A `_meta` object: keys that the protocol does not define."""
DisplayMode = Literal["inline", "fullscreen", "pip"]
"""Where a View is shown: in the conversation, over everything, or in a small window on top."""
Visibility = Literal["model", "app"]
"""Who may call a tool: the model, or Views of the same server."""
LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""How much a log message matters, the least first."""


class Wire(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, repr_omit_defaults=True
):
    """A frozen value with camelCase names on the wire. Unknown keys are dropped."""

    def _shorten_texts(self, **limits: int) -> None:
        """Cut the texts that are longer than their limits, in `__post_init__`."""
        for name, limit in limits.items():
            text: str | None = getattr(self, name)
            if text is not None and len(text) > limit:
                msgspec.structs.force_setattr(self, name, text[:limit])


class Open(Wire, frozen=True, forbid_unknown_fields=True):
    """A value that keeps the keys it does not know, in `extra`."""

    # Its wire name is never sent, so that a key called "extra" is as unknown as any other. msgspec
    # copies the default, and leaves it out when it is empty.
    extra: dict[str, Any] = field(name="(unknown keys)", default={})

    __decoders__: ClassVar[dict[type, msgspec.json.Decoder[Any]]] = {}

    @classmethod
    def from_wire(cls, source: bytes | msgspec.Raw | Mapping[str, Any]) -> Self:
        """Read it from JSON or from a mapping with wire names.

        Raises:
            msgspec.ValidationError: a known key has the wrong type, or a needed one is missing.
            msgspec.DecodeError: `source` is not JSON.
        """
        if isinstance(source, Mapping):
            source = msgspec.json.encode(source)
        decoder = cls.__decoders__.get(cls)
        if decoder is None:
            decoder = cls.__decoders__[cls] = msgspec.json.Decoder(cls)
        try:
            value = decoder.decode(source)
            if not value.extra:
                return value
        except msgspec.ValidationError:
            pass  # an unknown key, or a real mistake: see below
        members = msgspec.json.decode(source, type=dict[str, msgspec.Raw])
        names = _names(cls)
        unknown = {
            key: msgspec.json.decode(members.pop(key)) for key in list(members) if key not in names
        }
        value = decoder.decode(msgspec.json.encode(members))
        return msgspec.structs.replace(value, extra=unknown) if unknown else value

    def to_wire(self) -> bytes:
        """Write it as JSON, unknown keys included."""
        if not self.extra:
            return msgspec.json.encode(self)
        known = msgspec.json.encode(msgspec.structs.replace(self, extra={}))
        members: dict[str, Any] = msgspec.json.decode(known, type=dict[str, msgspec.Raw])
        names = _names(type(self))
        unknown = {key: value for key, value in self.extra.items() if key not in names}
        return msgspec.json.encode(unknown | members)


def _names(kind: type[Open]) -> set[str]:
    """The keys a struct knows."""
    return {f.encode_name for f in msgspec.structs.fields(kind) if f.name != "extra"}


# --- content ---------------------------------------------------------------------------------


class _Content(Wire, frozen=True, kw_only=True):
    annotations: dict[str, Any] | None = None
    meta: Meta | None = field(name="_meta", default=None)


class TextContent(_Content, frozen=True, tag_field="type", tag="text"):
    """Text for the model or the user."""

    type: ClassVar[Literal["text"]] = "text"
    text: str


class ImageContent(_Content, frozen=True, tag_field="type", tag="image"):
    """An image; `data` is base64."""

    type: ClassVar[Literal["image"]] = "image"
    data: str
    mime_type: str


class AudioContent(_Content, frozen=True, tag_field="type", tag="audio"):
    """A sound; `data` is base64."""

    type: ClassVar[Literal["audio"]] = "audio"
    data: str
    mime_type: str


class ResourceLink(_Content, frozen=True, tag_field="type", tag="resource_link"):
    """A resource that can be read at `uri`."""

    type: ClassVar[Literal["resource_link"]] = "resource_link"
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    icons: list[dict[str, Any]] | None = None


class ResourceContents(Wire, frozen=True):
    """What a resource holds: `text`, or base64 in `blob`."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None
    meta: Meta | None = field(name="_meta", default=None)


class EmbeddedResource(_Content, frozen=True, tag_field="type", tag="resource"):
    """A resource inside a message."""

    type: ClassVar[Literal["resource"]] = "resource"
    resource: ResourceContents


ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
"""One piece of a result or a message."""


class Resource(Wire, frozen=True):
    """A resource as a server lists it."""

    uri: str
    name: str = field(default_factory=lambda: "")  # tolerated when absent, always written
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: dict[str, Any] | None = None
    meta: Meta | None = field(name="_meta", default=None)


class ReadResourceResult(Open, frozen=True, kw_only=True):
    """The answer to `resources/read`."""

    contents: list[ResourceContents]
    meta: Meta | None = field(name="_meta", default=None)


# --- tools -----------------------------------------------------------------------------------


class Icon(Wire, frozen=True):
    """A picture for a user interface."""

    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None


class ToolAnnotations(Wire, frozen=True):
    """Hints about what a tool does. They are as trustworthy as the author of the tool.

    `untrusted_content_hint` is WebMCP's: what the tool returns was written by others. A host marks
    the results of such a tool of a View for the model.
    """

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None
    untrusted_content_hint: bool | None = None


class ToolExecution(Wire, frozen=True):
    """Whether a tool may run as a task: `forbidden` (the default), `optional` or `required`."""

    task_support: Literal["forbidden", "optional", "required"] | None = None


class Tool(Wire, frozen=True, weakref=True):
    """A tool's definition, as it is listed."""

    name: str
    title: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] = field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )
    output_schema: dict[str, Any] | None = None
    annotations: ToolAnnotations | None = None
    execution: ToolExecution | None = None
    icons: list[Icon] | None = None
    meta: Meta | None = field(name="_meta", default=None)

    @property
    def visibility(self) -> tuple[str, ...]:
        """Who may call it: `_meta.ui.visibility`, or model and app if that is missing."""
        ui: object = (self.meta or {}).get("ui")
        declared = cast("dict[str, object]", ui).get("visibility") if isinstance(ui, dict) else None
        if isinstance(declared, str):  # meant as a list of one
            return (declared,)
        if not isinstance(declared, list):
            return ("model", "app")
        return tuple(entry for entry in cast("list[object]", declared) if isinstance(entry, str))

    @property
    def lazy(self) -> bool:
        """Whether its input schema is computed for each listing. Views made with Transom say so."""
        return (self.meta or {}).get("transom/lazy") is True

    @property
    def registration(self) -> int | None:
        """A number that differs from that of a tool registered later under the same name."""
        number = (self.meta or {}).get("transom/registration")
        return number if type(number) is int else None


class ToolResult(Open, frozen=True, kw_only=True):
    """What a tool answered: `content` to read, `structured_content` to compute with."""

    # Not plain `list`: msgspec would leave an empty one out, and the protocol wants it there.
    content: list[ContentBlock] = field(default_factory=lambda: list[ContentBlock]())
    structured_content: dict[str, Any] | None = None
    is_error: bool = False
    meta: Meta | None = field(name="_meta", default=None)

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))


class DisabledTool(Wire, frozen=True):
    """A tool that a View has but does not offer at the moment."""

    name: str
    reason: str | None = None
    registration: int | None = None

    def __post_init__(self) -> None:
        """Shorten the View's texts."""
        self._shorten_texts(name=128, reason=500)


TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""The state of a task. The last three are final."""


@final
class Task(Wire, frozen=True):
    """A handle on work that outlives its call."""

    task_id: str
    status: TaskStatus
    created_at: str | None = None
    last_updated_at: str | None = None
    ttl: int | None = field(default_factory=lambda: None)  # null is written: no time limit
    poll_interval: int | None = None
    status_message: str | None = None


ProblemKind = Literal["error", "rejection", "console", "blocked", "schema", "tool", "tools"]
"""What went wrong in a View: `error` and `rejection` were not caught, `blocked` was a request that
its policy forbids, `schema` and `tool` are a lazy schema and a handler that raised, `tools` are
tools that the host left out of its list or could not list."""


class ViewProblem(Wire, frozen=True):
    """Something that went wrong inside a View, for its author: models never see it."""

    kind: ProblemKind
    message: str
    tool: str | None = None
    source: str | None = None
    line: int | None = None
    column: int | None = None
    stack: str | None = None
    """The error's own, from a View that does not know the place; a host makes that of it."""

    def __post_init__(self) -> None:
        """Shorten the View's texts."""
        self._shorten_texts(message=2000, tool=128, source=500, stack=2000)

    @property
    def is_in_page(self) -> bool:
        """Whether its place is in the page itself, rather than in a file that the page loads."""
        return self.source == "about:srcdoc"


# --- who is who ------------------------------------------------------------------------------


class Implementation(Wire, frozen=True):
    """The name and version of an App or a host."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: list[Icon] | None = None


class ListChanged(Wire, frozen=True):
    """A capability that may say that its list can change."""

    list_changed: bool | None = None


class AppCapabilities(Wire, frozen=True):
    """What a View can do."""

    experimental: dict[str, Any] | None = None
    tools: ListChanged | None = None
    available_display_modes: list[DisplayMode] | None = None


class SandboxCapability(Wire, frozen=True):
    """What the host's sandbox grants."""

    permissions: dict[str, Any] | None = None
    csp: dict[str, Any] | None = None


class Modalities(Wire, frozen=True):
    """Kinds of content a host takes."""

    text: dict[str, Any] | None = None
    image: dict[str, Any] | None = None
    audio: dict[str, Any] | None = None
    resource: dict[str, Any] | None = None
    resource_link: dict[str, Any] | None = None
    structured_content: dict[str, Any] | None = None


class SamplingCapability(Wire, frozen=True):
    """The host samples its model for a View; `tools` when it may offer tools while doing so."""

    tools: dict[str, Any] | None = None


class HostCapabilities(Wire, frozen=True):
    """What a host can do for a View."""

    experimental: dict[str, Any] | None = None
    open_links: dict[str, Any] | None = None
    download_file: dict[str, Any] | None = None
    server_tools: ListChanged | None = None
    server_resources: ListChanged | None = None
    logging: dict[str, Any] | None = None
    sandbox: SandboxCapability | None = None
    update_model_context: Modalities | None = None
    message: Modalities | None = None
    sampling: SamplingCapability | None = None
    tools: ListChanged | None = None
    app_tools: ListChanged | None = None
    """Another name for `tools`: the draft has not decided on one yet."""


class ContainerDimensions(Wire, frozen=True):
    """The room a View has. A fixed size wins over a maximum."""

    width: float | None = None
    max_width: float | None = None
    height: float | None = None
    max_height: float | None = None

    def __post_init__(self) -> None:
        """Drop a maximum beside a fixed size."""
        for fixed, most in (("width", "max_width"), ("height", "max_height")):
            if getattr(self, fixed) is not None and getattr(self, most) is not None:
                msgspec.structs.force_setattr(self, most, None)


class StyleCss(Wire, frozen=True):
    """CSS that the host gives a View."""

    fonts: str | None = None


class HostStyles(Wire, frozen=True):
    """The host's look: CSS variables by name, and fonts."""

    variables: dict[str, str | None] | None = None
    css: StyleCss | None = None


class DeviceCapabilities(Wire, frozen=True):
    """What the user's device can do."""

    touch: bool | None = None
    hover: bool | None = None


class SafeAreaInsets(Wire, frozen=True, omit_defaults=False):
    """Room to leave free at each edge. All four are always written, as the protocol requires."""

    top: float = 0
    right: float = 0
    bottom: float = 0
    left: float = 0


class ToolInfo(Wire, frozen=True):
    """The tool call that opened the View."""

    tool: Tool
    id: str | int | None = None


class HostContext(Open, frozen=True, kw_only=True):
    """What a View knows of its surroundings. Unknown values are accepted."""

    tool_info: ToolInfo | None = None
    theme: str | None = None
    styles: HostStyles | None = None
    display_mode: str | None = None
    available_display_modes: list[str] | None = None
    container_dimensions: ContainerDimensions | None = None
    locale: str | None = None
    time_zone: str | None = None
    user_agent: str | None = None
    platform: str | None = None
    device_capabilities: DeviceCapabilities | None = None
    safe_area_insets: SafeAreaInsets | None = None
