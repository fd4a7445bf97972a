"""A server with what the official conformance suite asks a server for.

    python -m tests.conformance.server PORT     by streamable HTTP, at /mcp; 0: any port
    python -m tests.conformance.server          by standard input and output

The names and texts are those that the suite's scenarios describe.
"""

import asyncio
import base64
import json
import sys
from typing import Annotated, Any

import uvicorn
from mcp.server import ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.server.mcpserver.prompts.base import Prompt, UserMessage
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    JSONRPCMessage,
    ListRootsRequest,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel, Field

from tests.conformance.task_tools import Tasks
from transom.serving import listen

PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8Dw"
    "HwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

server = MCPServer(
    "conformance",
    version="1",
    log_level="CRITICAL",
    extensions=[Tasks()],
    request_state_security=RequestStateSecurity(keys=[b"a key of the conformance server's tests"]),
)


def said(text: str) -> SamplingMessage:
    return SamplingMessage(role="user", content=TextContent(text=text))


# --- tools: what they return -----------------------------------------------------------------


@server.tool()
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@server.tool()
def test_image_content() -> list[ImageContent]:
    """Return an image."""
    return [ImageContent(data=PICTURE, mime_type="image/png")]


@server.tool()
def test_audio_content() -> list[AudioContent]:
    """Return a sound."""
    return [AudioContent(data=SOUND, mime_type="audio/wav")]


@server.tool()
def test_embedded_resource() -> list[EmbeddedResource]:
    """Return a resource."""
    return [_embedded("test://embedded-resource", "text/plain", "An embedded resource.")]


@server.tool()
def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    """Return a text, an image and a resource."""
    return [
        TextContent(text="Multiple content types test:"),
        ImageContent(data=PICTURE, mime_type="image/png"),
        _embedded("test://mixed-content-resource", "application/json", '{"test":"data"}'),
    ]


def _embedded(uri: str, kind: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=kind, text=text))


@server.tool()
def test_error_handling() -> str:
    """Fail."""
    raise RuntimeError("This tool intentionally returns an error for testing")


SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@server.tool()
def json_schema_2020_12_tool() -> str:
    """Has a schema with everything that JSON Schema 2020-12 added."""
    return "done"


# The SDK makes schemas from annotations only.
server._tool_manager._tools["json_schema_2020_12_tool"].parameters = SCHEMA


@server.tool()
def test_x_mcp_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
) -> str:
    """Has an argument that a header repeats."""
    return f"region={region}"


# --- tools: what they send meanwhile ---------------------------------------------------------


async def _log_steps(ctx: Context, *steps: str) -> None:
    for step in steps:
        await ctx.log("info", step)
        await asyncio.sleep(0.05)  # the scenario wants them apart


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Log while it works."""
    await _log_steps(ctx, "Tool execution started", "Tool processing data", "Tool completed")
    return "Tool with logging executed successfully"


@server.tool()
async def test_logging_tool(ctx: Context) -> str:
    """Log, which only a client that asks for it may hear."""
    await ctx.log("info", "working")
    return "done"


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress."""
    for step in (0, 50, 100):
        await ctx.report_progress(step, 100, f"Completed step {step} of 100")
        await asyncio.sleep(0.05)
    return "done"


@server.tool()
async def test_reconnection(ctx: Context) -> str:
    """Close the stream of the call; the client fetches the result with another."""
    await ctx.log("info", "Before disconnect")
    await ctx.close_sse_stream()
    await asyncio.sleep(0.2)
    await ctx.log("info", "After reconnect")
    return "Reconnection test completed"


@server.tool()
async def test_trigger_tool_change(ctx: Context) -> str:
    """Change the list of tools."""
    server.add_tool(test_simple_text, name="test_dynamic_tool")
    server.remove_tool("test_dynamic_tool")
    await ctx.notify_tools_changed()
    return "changed"


@server.tool()
async def test_trigger_prompt_change(ctx: Context) -> str:
    """Change the list of prompts."""
    server.add_prompt(Prompt.from_function(test_simple_prompt, name="test_dynamic_prompt"))
    server.remove_prompt("test_dynamic_prompt")
    await ctx.notify_prompts_changed()
    return "changed"


# --- tools: what they ask of the client, in the handshake's versions --------------------------


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Ask the client's model."""
    answer = await ctx.session.create_message(
        messages=[said(prompt)], max_tokens=100, related_request_id=ctx.request_id
    )
    return f"LLM response: {getattr(answer.content, 'text', '')}"


class Answer(BaseModel):
    response: str = Field(description="User's response")


class Defaults(BaseModel):
    name: str = Field(default="John Doe")
    age: int = Field(default=30)
    score: float = Field(default=95.5)
    status: str = Field(
        default="active", json_schema_extra={"enum": ["active", "inactive", "pending"]}
    )
    verified: bool = Field(default=True)


def _titled(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in pairs]


class Enums(BaseModel):
    untitledSingle: str = Field(json_schema_extra={"enum": ["active", "inactive", "pending"]})  # noqa: N815
    titledSingle: str = Field(  # noqa: N815
        json_schema_extra={"oneOf": [*_titled(("low", "Low"), ("medium", "Medium"))]}
    )
    untitledMulti: list[str] = Field(  # noqa: N815
        json_schema_extra={"items": {"type": "string", "enum": ["read", "write", "execute"]}}
    )
    titledMulti: list[str] = Field(  # noqa: N815
        json_schema_extra={"items": {"anyOf": [*_titled(("bug", "Bug"), ("docs", "Docs"))]}}
    )
    legacyEnum: str = Field(  # noqa: N815
        json_schema_extra={"enum": ["small", "large"], "enumNames": ["Small", "Large"]}
    )


async def _elicit(ctx: Context, message: str, schema: type[BaseModel]) -> str:
    answer = await ctx.elicit(message, schema)
    content = answer.data.model_dump_json() if answer.action == "accept" else "{}"
    return f"action={answer.action}, content={content}"


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user."""
    return await _elicit(ctx, message, Answer)


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with defaults."""
    return await _elicit(ctx, "Please provide user information", Defaults)


@server.tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask for a choice."""
    return await _elicit(ctx, "Please choose", Enums)


# --- tools: what they ask of the client, in 2026-07-28 ----------------------------------------


def _form(message: str, **properties: str) -> ElicitRequest:
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sample(text: str) -> CreateMessageRequest:
    return CreateMessageRequest(
        params=CreateMessageRequestParams(messages=[said(text)], max_tokens=100)
    )


def _content(ctx: Context, key: str, field: str) -> Any:
    answer = (ctx.input_responses or {}).get(key)
    return (answer.content or {}).get(field) if isinstance(answer, ElicitResult) else None


@server.tool()
async def test_missing_capability(ctx: Context) -> str:
    """Needs the capability `sampling`."""
    can = ctx.client_capabilities
    if can is None or can.sampling is None:
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="This tool requires sampling",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    return "done"


@server.tool()
async def test_streaming_elicitation(ctx: Context) -> str | InputRequiredResult:
    """Ask for input in the answer, never with a request on the stream."""
    if ctx.input_responses:
        return "done"
    return InputRequiredResult(input_requests={"confirm": _form("Confirm", ok="boolean")})


@server.tool()
async def test_input_required_result_elicitation(ctx: Context) -> str | InputRequiredResult:
    """Ask for a name."""
    if (name := _content(ctx, "user_name", "name")) is not None:
        return f"Hello, {name}!"
    return InputRequiredResult(input_requests={"user_name": _form("Your name?", name="string")})


@server.tool()
async def test_input_required_result_sampling(ctx: Context) -> str | InputRequiredResult:
    """Ask the client's model."""
    if "capital_question" in (ctx.input_responses or {}):
        return "answered"
    question = _sample("What is the capital of France?")
    return InputRequiredResult(input_requests={"capital_question": question})


@server.tool()
async def test_input_required_result_list_roots(ctx: Context) -> str | InputRequiredResult:
    """Ask for the client's roots."""
    if "client_roots" in (ctx.input_responses or {}):
        return "answered"
    return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})


@server.tool()
async def test_input_required_result_request_state(ctx: Context) -> str | InputRequiredResult:
    """Have its state back with the answer."""
    if ctx.request_state == "nonce" and "confirm" in (ctx.input_responses or {}):
        return "state-ok: confirmation received"
    confirm = {"confirm": _form("Please confirm", ok="boolean")}
    return InputRequiredResult(input_requests=confirm, request_state="nonce")


@server.tool()
async def test_input_required_result_tampered_state(ctx: Context) -> str | InputRequiredResult:
    """Refuse a state that is not its own, which the SDK does."""
    if ctx.request_state is not None:
        return f"state-ok: {ctx.request_state}"
    confirm = {"confirm": _form("Please confirm", ok="boolean")}
    return InputRequiredResult(input_requests=confirm, request_state="round-1")


@server.tool()
async def test_input_required_result_multiple_inputs(ctx: Context) -> str | InputRequiredResult:
    """Ask for three things at once."""
    if {"user_name", "greeting", "client_roots"} <= (ctx.input_responses or {}).keys():
        return "All inputs received."
    return InputRequiredResult(
        input_requests={
            "user_name": _form("Your name?", name="string"),
            "greeting": _sample("Generate a greeting"),
            "client_roots": ListRootsRequest(),
        },
        request_state="multiple-inputs",
    )


@server.tool()
async def test_input_required_result_multi_round(ctx: Context) -> str | InputRequiredResult:
    """Ask twice, with a state that remembers the first answer."""
    state = json.loads(ctx.request_state or "{}")
    if "name" in state and (color := _content(ctx, "step2", "color")) is not None:
        return f"{state['name']} likes {color}."
    if state and (name := _content(ctx, "step1", "name")) is not None:
        return InputRequiredResult(
            input_requests={"step2": _form("Step 2: your favorite color?", color="string")},
            request_state=json.dumps({"round": 2, "name": name}),
        )
    return InputRequiredResult(
        input_requests={"step1": _form("Step 1: your name?", name="string")},
        request_state=json.dumps({"round": 1}),
    )


@server.tool()
async def test_input_required_result_capabilities(ctx: Context) -> InputRequiredResult:
    """Ask only for what the client can do."""
    can = ctx.client_capabilities
    requests: dict[str, InputRequest] = {}
    if can is not None and can.sampling is not None:
        requests["sample"] = _sample("Say hello")
    if can is not None and can.elicitation is not None:
        requests["ask"] = _form("Your name?", name="string")
    return InputRequiredResult(input_requests=requests, request_state="gated")


# --- resources, prompts and the rest ---------------------------------------------------------


@server.resource("test://static-text")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary")
def static_binary() -> bytes:
    """An image."""
    return base64.b64decode(PICTURE)


@server.resource("test://template/{id}/data")
def template(id: str) -> str:
    """One of many."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.resource("test://watched-resource")
def watched() -> str:
    """A resource to subscribe to."""
    return "Watched resource content"


def _user(content: Any) -> UserMessage:
    return UserMessage(role="user", content=content)


@server.prompt()
def test_simple_prompt() -> list[UserMessage]:
    """A text."""
    return [_user(TextContent(text="This is a simple prompt for testing."))]


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> list[UserMessage]:
    """A text with arguments."""
    return [_user(TextContent(text=f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))]


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803
    """A resource."""
    resource = _embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [_user(resource), _user(TextContent(text="Please process the resource above."))]


@server.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    """An image."""
    picture = ImageContent(data=PICTURE, mime_type="image/png")
    return [_user(picture), _user(TextContent(text="Please analyze the image above."))]


@server.prompt()
async def test_input_required_result_prompt(
    ctx: Context,
) -> list[UserMessage] | InputRequiredResult:
    """A prompt that asks first."""
    if (context := _content(ctx, "user_context", "context")) is not None:
        return [_user(TextContent(text=f"Use the following context: {context}"))]
    return InputRequiredResult(input_requests={"user_context": _form("Which?", context="string")})


@server.completion()
async def _complete(*_: object) -> Completion:
    return Completion(values=[], total=0, has_more=False)


async def _accept(_: ServerRequestContext, __: object) -> EmptyResult:
    return EmptyResult()


# Methods of the handshake's versions that MCPServer has no name for.
for method, params in (
    ("logging/setLevel", SetLevelRequestParams),
    ("resources/subscribe", SubscribeRequestParams),
    ("resources/unsubscribe", UnsubscribeRequestParams),
):
    server._lowlevel_server.add_request_handler(method, params, _accept)


# --- serving ---------------------------------------------------------------------------------


class Events(EventStore):
    """Every event of every stream, so that a client can fetch what it missed."""

    def __init__(self) -> None:
        self._events: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        stream = self._events[int(last_event_id) - 1][0]
        for number, (other, message) in enumerate(self._events, 1):
            if other == stream and number > int(last_event_id) and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def main(port: int | None) -> None:
    if port is None:
        server.run("stdio")
        return
    with listen("127.0.0.1", port) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        app = server.streamable_http_app(event_store=Events(), retry_interval=100)
        sys.stderr.write(f"The server is at {url}\n")
        config = uvicorn.Config(app, log_level="critical", ws="none")
        asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
