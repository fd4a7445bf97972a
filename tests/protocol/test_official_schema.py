"""What we write is valid by the JSON Schema that the official package publishes."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from transom import types as t
from transom.protocol import messages as m
from transom.protocol.methods import METHODS, Sender

PACKAGE = Path(__file__).parents[2] / "node_modules/@modelcontextprotocol/ext-apps"
DEFINITIONS = json.loads((PACKAGE / "dist/src/generated/schema.json").read_text())["$defs"]


def written(value: object) -> Any:
    """The value as it is on the wire."""
    raw = value.to_wire() if isinstance(value, t.Open) else msgspec.json.encode(value)
    return json.loads(raw)


def complaints(definition: str, value: object) -> list[str]:
    # Each is a document of its own: that is what its references are relative to.
    validator = jsonschema_rs.validator_for(DEFINITIONS[definition])
    return [f"{error.instance_path}: {error.message}" for error in validator.iter_errors(value)]


INFO = t.Implementation("n", "1", title="T", description="d", website_url="https://example.com")
TEXT = t.TextContent("hi")
FILE = t.EmbeddedResource(t.ResourceContents("file:///a", "text/plain", text=""))
LINK = t.ResourceLink("file:///a", "a")
MODALITIES = t.Modalities({}, {}, {}, {}, {}, {})
CONTEXT = t.HostContext(
    tool_info=t.ToolInfo(t.Tool("t"), id=0),
    theme="dark",
    # No variables and no dimensions. By this schema, unlike by the package's own reader, there
    # are all 77 variables or none, and a width forbids a height and the other way round.
    styles=t.HostStyles(css=t.StyleCss("@font-face{}")),
    display_mode="inline",
    available_display_modes=["inline", "fullscreen", "pip"],
    container_dimensions=t.ContainerDimensions(),
    locale="en-GB",
    time_zone="Europe/Lisbon",
    user_agent="x",
    platform="web",
    device_capabilities=t.DeviceCapabilities(touch=False, hover=False),
    safe_area_insets=t.SafeAreaInsets(),
)
HOST_CAPABILITIES = t.HostCapabilities(
    experimental={},
    open_links={},
    download_file={},
    server_tools=t.ListChanged(list_changed=False),
    server_resources=t.ListChanged(list_changed=True),
    logging={},
    sandbox=t.SandboxCapability({"camera": {}}, {"connectDomains": ["https://example.com"]}),
    update_model_context=MODALITIES,
    message=MODALITIES,
    sampling=t.SamplingCapability(tools={}),
)
APP_CAPABILITIES = t.AppCapabilities({}, t.ListChanged(list_changed=False), ["inline", "pip"])

OBJECTS = [
    ("McpUiHostContext", t.HostContext()),
    ("McpUiHostContext", CONTEXT),
    ("McpUiHostContext", t.HostContext(safe_area_insets=t.SafeAreaInsets(top=10))),
    ("McpUiHostContext", t.HostContext(extra={"moon": "full"})),
    ("McpUiHostCapabilities", t.HostCapabilities()),
    ("McpUiHostCapabilities", HOST_CAPABILITIES),
    ("McpUiHostCapabilities", t.HostCapabilities(sampling=t.SamplingCapability())),
    ("McpUiAppCapabilities", t.AppCapabilities()),
    ("McpUiAppCapabilities", APP_CAPABILITIES),
    (
        "McpUiInitializeResult",
        m.InitializeResult(
            protocol_version=m.PROTOCOL_VERSION,
            host_info=INFO,
            host_capabilities=HOST_CAPABILITIES,
            host_context=msgspec.Raw(CONTEXT.to_wire()),
        ),
    ),
    ("McpUiOpenLinkResult", m.Verdict()),
    ("McpUiMessageResult", m.Verdict(is_error=True)),
    ("McpUiDownloadFileResult", m.Verdict(extra={"why": 1})),
    ("McpUiRequestDisplayModeResult", m.DisplayModeResult(mode="pip")),
    ("McpUiResourceTeardownResult", m.Empty()),
]


@pytest.mark.parametrize(
    ("definition", "value"), OBJECTS, ids=[f"{n}-{name}" for n, (name, _) in enumerate(OBJECTS)]
)
def test_an_object_we_write_is_valid(definition: str, value: object):
    assert complaints(definition, written(value)) == []


MESSAGES: list[tuple[str, Sender, str, object]] = [
    (
        "McpUiInitializeRequest",
        "view",
        "ui/initialize",
        m.InitializeParams(INFO, APP_CAPABILITIES, m.PROTOCOL_VERSION),
    ),
    ("McpUiOpenLinkRequest", "view", "ui/open-link", m.OpenLinkParams("https://example.com")),
    ("McpUiDownloadFileRequest", "view", "ui/download-file", m.DownloadFileParams([FILE, LINK])),
    ("McpUiMessageRequest", "view", "ui/message", m.MessageParams("user", [TEXT])),
    (
        "McpUiUpdateModelContextRequest",
        "view",
        "ui/update-model-context",
        m.ModelContextParams([TEXT], {"a": 1}),
    ),
    (
        "McpUiUpdateModelContextRequest",
        "view",
        "ui/update-model-context",
        m.ModelContextParams([], {}),
    ),
    (
        "McpUiRequestDisplayModeRequest",
        "view",
        "ui/request-display-mode",
        m.DisplayModeParams("pip"),
    ),
    ("McpUiInitializedNotification", "view", "ui/notifications/initialized", m.Nothing()),
    ("McpUiSizeChangedNotification", "view", "ui/notifications/size-changed", m.SizeParams(0, 0)),
    ("McpUiRequestTeardownNotification", "view", "ui/notifications/request-teardown", m.Nothing()),
    (
        "McpUiSandboxProxyReadyNotification",
        "view",
        "ui/notifications/sandbox-proxy-ready",
        m.Nothing(),
    ),
    ("McpUiResourceTeardownRequest", "host", "ui/resource-teardown", m.TeardownParams()),
    (
        "McpUiToolInputNotification",
        "host",
        "ui/notifications/tool-input",
        m.ToolInputParams({"a": [1]}),
    ),
    (
        "McpUiToolInputPartialNotification",
        "host",
        "ui/notifications/tool-input-partial",
        m.ToolInputParams({}),
    ),
    ("McpUiToolResultNotification", "host", "ui/notifications/tool-result", t.ToolResult()),
    (
        "McpUiToolResultNotification",
        "host",
        "ui/notifications/tool-result",
        t.ToolResult(
            content=[TEXT, FILE, LINK, t.ImageContent("aGk=", "image/png")],
            structured_content={},
            is_error=True,
            meta={},
        ),
    ),
    (
        "McpUiToolCancelledNotification",
        "host",
        "ui/notifications/tool-cancelled",
        m.ToolCancelledParams(),
    ),
    (
        "McpUiHostContextChangedNotification",
        "host",
        "ui/notifications/host-context-changed",
        CONTEXT,
    ),
    (
        "McpUiSandboxResourceReadyNotification",
        "host",
        "ui/notifications/sandbox-resource-ready",
        m.SandboxResourceParams("<p>", "allow-scripts", {}, {}),
    ),
]


@pytest.mark.parametrize(
    ("definition", "sender", "method", "params"),
    MESSAGES,
    ids=[f"{n}-{message[2]}" for n, message in enumerate(MESSAGES)],
)
def test_a_message_we_write_is_valid(definition: str, sender: Sender, method: str, params: object):
    assert isinstance(params, METHODS[sender, method].params)
    assert complaints(definition, {"method": method, "params": written(params)}) == []


def test_every_request_and_notification_of_the_official_schema_is_tried():
    official = {name for name in DEFINITIONS if name.endswith(("Request", "Notification"))}
    assert official == {definition for definition, *_ in MESSAGES}


@pytest.mark.parametrize(
    ("definition", "struct", "beyond"),
    [
        ("McpUiHostContext", t.HostContext, {"extra"}),
        ("McpUiHostCapabilities", t.HostCapabilities, {"tools", "appTools"}),
        ("McpUiAppCapabilities", t.AppCapabilities, set()),
        ("McpUiSupportedContentBlockModalities", t.Modalities, set()),
        ("McpUiHostStyles", t.HostStyles, set()),
        ("McpUiHostCss", t.StyleCss, set()),
    ],
)
def test_a_struct_has_the_keys_that_the_official_schema_has(
    definition: str, struct: type[msgspec.Struct], beyond: set[str]
):
    ours = {field.encode_name for field in msgspec.structs.fields(struct) if field.name != "extra"}
    assert ours - beyond == set(DEFINITIONS[definition]["properties"])
