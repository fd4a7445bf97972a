"""A host's tools for [Pydantic AI](https://ai.pydantic.dev): `Agent(toolsets=[HostToolset(host)])`.

The extra `transom[pydantic-ai]` has what it needs.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import msgspec
from pydantic_core import SchemaValidator, core_schema

from transom.agents.content import (
    Image,
    Part,
    as_text,
    beside_result,
    error_for_model,
    linked_view,
    open_view,
    parts_for_model,
    question_about,
)
from transom.agents.streamed_calls import StreamedCalls
from transom.agents.view_words import ViewWords
from transom.host.asking.policy import Allow, AllowAlways, Deny
from transom.host.tool_host import ToolHost
from transom.host.tools.tool_list import tools_for
from transom.json_values import as_object
from transom.types import Tool, ToolResult

try:
    from pydantic_ai import BinaryImage, RunContext, ToolReturn
    from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
    from pydantic_ai.messages import (
        AgentStreamEvent,
        ModelRequest,
        ModelResponse,
        PartDeltaEvent,
        PartStartEvent,
        ToolCallPart,
        ToolCallPartDelta,
        ToolReturnPart,
    )
    from pydantic_ai.tools import AgentDepsT, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
except ImportError as error:
    raise ImportError(
        "transom.agents.pydantic_ai needs Pydantic AI 2: pip install 'transom[pydantic-ai]'"
    ) from error

__all__ = ["HostToolset"]

_OBJECT = SchemaValidator(
    core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema())
)


@dataclass(kw_only=True)
class _HostTool(ToolsetTool[AgentDepsT]):
    shown: Tool


class HostToolset(AbstractToolset[AgentDepsT]):
    """The tools of a host's servers and open Views, as they are at each step of a run.

        agent = Agent("openai:gpt-5", toolsets=[HostToolset(host)])
        result = await agent.run("Which orders are late?")

    A tool's failure, and a call that cannot be made, is a failed tool result that the model reads.
    Images are `BinaryImage`s. Beside each result `ToolReturnPart.metadata` has `structured_content`
    and, where the call opened a View or used one, `view` (`{"id": …, "state": …}`) and `mcp_app`,
    which Pydantic AI's adapters for AG-UI and Vercel AI send on as `mcp-apps` events.

    What Views tell the model (their context, their messages) is a user message before the next
    step, marked as the View's. Use one toolset for one conversation.

    If the host's policy has an approver (`Policy(approve=…)`), that is asked. If it has none, a
    call that needs approval ends the run with `DeferredToolRequests`, so add that to the agent's
    output types. `metadata` has what to show the user. An approval is used once, for what was
    shown; with `DeferredToolResults(metadata={id: {"always": True}})` the user is not asked again.

    Args:
        host: a `Host`.
        id: as for any toolset of Pydantic AI.
    """

    def __init__(self, host: ToolHost, *, id: str | None = None) -> None:
        self._host = host
        self._id = id
        self._words = ViewWords(host)
        self._streamed = StreamedCalls(host)

    @property
    def id(self) -> str | None:
        """A name that no other toolset of the agent has."""
        return self._id

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """The tools as they are now."""
        await self._take_refusals(ctx)
        if ctx.pending_messages is not None and (words := self._words.take()):
            ctx.enqueue(*(_content(part) for part in words))
        tools = await self._host.list_tools()
        return {
            tool.name: _HostTool(
                toolset=self,
                tool_def=_definition(tool, described["function"]),
                max_retries=ctx.max_retries,
                args_validator=_OBJECT,
                shown=tool,
            )
            for tool, described in zip(tools, tools_for("openai", tools), strict=True)
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[AgentDepsT],
        tool: ToolsetTool[AgentDepsT],
    ) -> Any:
        """Call a tool of the host.

        Raises:
            ApprovalRequired: the user has to be asked first.
            ToolFailed: what the model should read about a failure.
        """
        call_id = ctx.tool_call_id or ""
        if ctx.tool_call_approved:
            always = as_object(ctx.tool_call_metadata).get("always") is True
            decision = AllowAlways() if always else Allow()
            called_with = _arguments_of(ctx, call_id)
            edited = called_with is not None and called_with != tool_args
            await self._host.decide(call_id, decision, edited=edited)
        elif request := await self._host.approval_needed(name, tool_args, call_id=call_id):
            raise ApprovalRequired(metadata=question_about(request))
        result = await self._host.answer(name, tool_args, call_id=call_id)
        if result.is_error:
            raise ToolFailed(error_for_model(result))
        parts = [
            part if isinstance(part, dict) else _content(part) for part in parts_for_model(result)
        ]
        return ToolReturn(
            return_value=parts[0] if len(parts) == 1 else parts,
            metadata={**beside_result(result), **self._app_record(tool, tool_args, result)},
        )

    def on_event(self, event: AgentStreamEvent, *, run: Hashable = None) -> None:
        """Take an event of a streamed run, so that Views show arguments while they are written.

            async def watch(ctx, events):
                async for event in events:
                    toolset.on_event(event, run=ctx.run_id)

            await agent.run("Which orders are late?", event_stream_handler=watch)

        A call whose tool links a View then opens it: see `Host.stream_arguments`. `run` tells runs
        apart that go on at the same time: it is the same for all events of one.
        """
        match event:
            case PartStartEvent(index=index, part=ToolCallPart() as part):
                self._streamed.begin((run, index), part.tool_name, part.tool_call_id)
                self._streamed.add((run, index), part.args)
            case PartDeltaEvent(index=index, delta=ToolCallPartDelta(args_delta=text)):
                self._streamed.add((run, index), text)
            case _:
                pass

    async def _take_refusals(self, ctx: RunContext[AgentDepsT]) -> None:
        """Record refusals: a call that the user refused reaches no toolset, only the messages."""
        last = ctx.messages[-1] if ctx.messages else None
        for part in last.parts if isinstance(last, ModelRequest) else ():
            if isinstance(part, ToolReturnPart) and part.outcome == "denied":
                reason = part.model_response_str()
                await self._host.decide(part.tool_call_id, Deny(reason))

    def _app_record(
        self, tool: ToolsetTool[AgentDepsT], arguments: dict[str, Any], result: ToolResult
    ) -> dict[str, Any]:
        """What Pydantic AI's adapters for user interfaces send on, in Pydantic AI's own format."""
        uri = linked_view(tool.shown) if isinstance(tool, _HostTool) else None
        if uri is None or open_view(result) is None:
            return {}
        wire = {"isError": False, **msgspec.to_builtins(result)}
        record = {"resource_uri": uri, "tool_input": arguments, "result": wire}
        return {"mcp_app": {**record, "toolset_id": self._id}}


def _content(part: Part) -> str | BinaryImage:
    if isinstance(part, Image):
        return BinaryImage(data=part.bytes, media_type=part.mime_type)
    return as_text(part)


def _definition(tool: Tool, described: dict[str, Any]) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        description=described["description"],
        parameters_json_schema=described["parameters"],
        return_schema=tool.output_schema,
        metadata={"meta": tool.meta, "annotations": msgspec.to_builtins(tool.annotations)},
    )


def _arguments_of(ctx: RunContext[Any], call_id: str) -> dict[str, Any] | None:
    """The model's own arguments: the user may have changed them in the approval."""
    for message in reversed(ctx.messages):
        for part in message.parts if isinstance(message, ModelResponse) else ():
            if isinstance(part, ToolCallPart) and part.tool_call_id == call_id:
                return part.args_as_dict()
    return None
