"""A host's tools for the OpenAI Agents SDK: `Agent(mcp_servers=[HostServer(host)])`.

The extra `transom[openai-agents]` has what it needs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any

import mcp.types as mcp

from transom.agents.content import Image, Part, as_text, parts_for_model
from transom.agents.streamed_calls import StreamedCalls
from transom.agents.view_words import ViewWords
from transom.host.asking.policy import Allow, AllowAlways, Deny
from transom.host.tool_host import ToolHost
from transom.host.tools.tool_list import tools_for
from transom.recent import Recent

try:
    from agents import AgentBase, RunContextWrapper, StreamEvent
    from agents.mcp import MCPServer, MCPToolCustomDataContext, MCPToolMetaContext
    from agents.run_config import CallModelData, ModelInputData
    from agents.tool_context import ToolContext
    from openai.types.responses import (
        ResponseFunctionCallArgumentsDeltaEvent,
        ResponseFunctionToolCall,
        ResponseOutputItemAddedEvent,
    )
except ImportError as error:
    raise ImportError(
        "transom.agents.openai_agents needs the OpenAI Agents SDK: "
        "pip install 'transom[openai-agents]'"
    ) from error

__all__ = ["HostServer"]

_MAX_ASKED = 1000
_ANY_CALL = "any call of this tool"


class HostServer(MCPServer):
    """The tools of a host's servers and open Views, as they are at each turn of a run.

        agent = Agent(name="Shop", mcp_servers=[HostServer(host)])
        result = await Runner.run(agent, "Which orders are late?")

    To the SDK it is an MCP server that needs no connection: `connect` and `cleanup` do nothing, and
    the host stays yours to close. A failure is a text that the model reads. The item of each tool's
    output has `custom_data` with `structured_content` and, where the call opened a View or used
    one, `view` (`{"id": …, "state": …}`).

    What Views tell the model (their context, their messages) comes with the next result of a tool,
    marked as the View's; with `RunConfig(call_model_input_filter=server.add_words)` before its next
    step, whatever that is. Use one server for one conversation.

    If the host's policy has an approver (`Policy(approve=…)`), that is asked. If it has none, a
    call that needs approval interrupts the run: `result.interruptions`, `state.approve(item)` or
    `state.reject(item)`, and `Runner.run(agent, state)`. An approval is used once, for what was
    shown, in the process that asked; with `always_approve=True` it holds while the View is open and
    the tool stays the same.

    Args:
        host: a `Host`.
        name: what the SDK calls it in traces.
    """

    def __init__(self, host: ToolHost, *, name: str = "transom") -> None:
        super().__init__(tool_meta_resolver=_call_of, custom_data_extractor=_custom_data)
        self._host = host
        self._name = name
        self._words = ViewWords(host)
        self._streamed = StreamedCalls(host)
        self._adds_words = False
        # By the call that a user is asked about.
        self._asked: Recent[str, mcp.Tool] = Recent(_MAX_ASKED)

    @property
    def name(self) -> str:
        """What the SDK calls it."""
        return self._name

    async def connect(self) -> None:
        """Nothing: the host is connected."""

    async def cleanup(self) -> None:
        """Nothing: the host is yours to close."""

    async def list_tools(
        self,
        run_context: RunContextWrapper[Any] | None = None,
        agent: AgentBase | None = None,  # noqa: ARG002 - the SDK's signature, as below
    ) -> list[mcp.Tool]:
        """The tools as they are now."""
        tools = await self._host.list_tools()
        # Definitions for the Messages API have the names of MCP's fields.
        listed = {each["name"]: mcp.Tool(**each) for each in tools_for("anthropic", tools)}
        for call_id, tool in list(self._asked.items()):
            answer = (
                None if run_context is None else run_context.is_tool_approved(tool.name, call_id)
            )
            if answer is not None:
                # The run is resumed. The SDK would end it if the tool had disappeared meanwhile;
                # with this, the host answers with an error and the run continues.
                listed.setdefault(tool.name, tool)
            if answer is False:  # such a call never gets here
                del self._asked[call_id]
                await self._host.decide(call_id, Deny())
        return list(listed.values())

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> mcp.CallToolResult:
        """Call a tool of the host; `meta` is what `_call_of` found out about the call."""
        call: dict[str, Any] = meta or {}
        call_id = call.get("call_id")
        if call_id is not None and call["approved"]:
            self._asked.pop(call_id, None)
            await self._host.decide(call_id, AllowAlways() if call["always"] else Allow())
        result = await self._host.answer(tool_name, arguments, call_id=call_id)
        words = [] if self._adds_words else self._words.take()
        return mcp.CallToolResult(
            content=[
                mcp.ImageContent(type="image", data=part.data, mime_type=part.mime_type)
                if isinstance(part, Image)
                else mcp.TextContent(type="text", text=as_text(part))
                for part in (*parts_for_model(result), *words)
            ],
            structured_content=result.structured_content,
            is_error=result.is_error,
            _meta=result.meta,
        )

    def on_event(self, event: StreamEvent, *, run: Hashable = None) -> None:
        """Take an event of a streamed run, so that Views show arguments while they are written.

            result = Runner.run_streamed(agent, "Which orders are late?")
            async for event in result.stream_events():
                server.on_event(event, run=id(result))

        A call whose tool links a View then opens it: see `Host.stream_arguments`. `run` tells runs
        apart that go on at the same time: it is the same for all events of one.
        """
        match getattr(event, "data", None):
            case ResponseOutputItemAddedEvent(item=ResponseFunctionToolCall() as item) as added:
                self._streamed.begin((run, added.output_index), item.name, item.call_id)
            case ResponseFunctionCallArgumentsDeltaEvent(output_index=index, delta=text):
                self._streamed.add((run, index), text)
            case _:
                pass

    def add_words(self, data: CallModelData[Any]) -> ModelInputData:
        """Add what Views tell the model to what it reads at this step, as a marked user message.

        For `RunConfig(call_model_input_filter=server.add_words)`. The SDK does not store what a
        filter adds, so every step has the context of each open View as it is then.
        """
        self._adds_words = True
        words = self._words.take(again=True)
        given = data.model_data
        if not words:
            return given
        message: Any = {"role": "user", "content": [_input(part) for part in words]}
        return ModelInputData(input=[*given.input, message], instructions=given.instructions)

    def _get_needs_approval_for_tool(
        self,
        tool: mcp.Tool,
        agent: AgentBase | None,  # noqa: ARG002
    ) -> bool | Callable[[RunContextWrapper[Any], dict[str, Any], str], Awaitable[bool]]:
        """Whether a call needs approval. The SDK's public hook for this does not get the call.

        If a later SDK does not call this, the host refuses such calls, so nothing runs without
        approval.
        """

        async def needs_approval(
            _: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str
        ) -> bool:
            request = await self._host.approval_needed(tool.name, arguments, call_id=call_id)
            if request is None:
                return False
            self._asked[call_id] = tool
            return True

        return needs_approval

    async def list_prompts(
        self,
        cursor: str | None = None,  # noqa: ARG002
    ) -> mcp.ListPromptsResult:
        """None."""
        return mcp.ListPromptsResult(prompts=[])

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> mcp.GetPromptResult:
        """There are none."""
        raise LookupError(f"A host has no prompts, and so not {name}")


def _input(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        url = f"data:{part.mime_type};base64,{part.data}"
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"type": "input_text", "text": as_text(part)}


def _call_of(context: MCPToolMetaContext) -> dict[str, Any] | None:
    """Which call this is, and whether the user approved it."""
    call = context.run_context
    if not isinstance(call, ToolContext):
        return None
    return {
        "call_id": call.tool_call_id,
        "approved": call.is_tool_approved(call.tool_name, call.tool_call_id) is True,
        "always": call.is_tool_approved(call.tool_name, _ANY_CALL) is True,
    }


def _custom_data(context: MCPToolCustomDataContext) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    if context.structured_content is not None:
        found["structured_content"] = dict(context.structured_content)
    if (view := (context.result_meta or {}).get("transom/view")) is not None:
        found["view"] = view
    return found or None
