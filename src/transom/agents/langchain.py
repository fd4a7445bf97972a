"""A host's tools for LangChain: `create_agent(model, middleware=[HostMiddleware(host)])`.

The extra `transom[langchain]` has what it needs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from pydantic import Discriminator

from transom.agents.agent_calls import AgentCall, AgentCalls, PendingElicitation
from transom.agents.content import (
    Image,
    Part,
    as_text,
    beside_result,
    error_for_model,
    parts_for_model,
)
from transom.agents.streamed_calls import StreamedCalls
from transom.agents.view_words import ViewWords
from transom.host.asking.policy import Allow, ApprovalRequest, Deny
from transom.host.tool_host import ToolHost
from transom.host.tools.tool_list import tools_for

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain.agents.middleware.human_in_the_loop import (
        ApproveDecision,
        EditDecision,
        RejectDecision,
        ToolApprovalRequest,
    )
    from langchain.agents.middleware.types import ToolCallRequest
    from langchain.messages import AIMessageChunk, HumanMessage, ToolMessage
    from langgraph.types import Command, interrupt
except ImportError as error:
    raise ImportError(
        "transom.agents.langchain needs LangChain 1.4: pip install 'transom[langchain]'"
    ) from error

__all__ = ["HostMiddleware"]

# LangGraph checks an answer before it stores it, so that a wrong one can be corrected.
_ANSWER: Any = Annotated[ApproveDecision | EditDecision | RejectDecision, Discriminator("type")]
_KEY = "question"


@dataclass
class _Response:
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


@dataclass
class _Responses:
    responses: dict[str, _Response]


class HostMiddleware(AgentMiddleware[Any, Any, Any]):
    """The tools of a host's servers and open Views, as they are at each step of an agent.

        agent = create_agent("openai:gpt-5", middleware=[HostMiddleware(host)])
        await agent.ainvoke({"messages": [{"role": "user", "content": "Which orders are late?"}]})

    Use the agent's async methods. A tool of the agent's own takes precedence over one of the host
    with the same name. A failure is a `ToolMessage` with `status="error"`. The `artifact` of each
    has `structured_content` and, where the call opened a View or used one, `view`
    (`{"id": …, "state": …}`). What Views tell the model (their context, their messages) is a
    `HumanMessage` before its next step, marked as the View's: use one middleware for one
    conversation.

    If the host's policy has an approver (`Policy(approve=…)`), that is asked. If it has none, a
    call that needs approval is a LangGraph interrupt, so the agent needs a checkpointer. Its value
    is a `ToolApprovalRequest`, as that of LangChain's `HumanInTheLoopMiddleware` per call; resume
    with `{"type": "approve"}`, `{"type": "reject", "message": …}` or `{"type": "edit", …}`. An
    approval is used once, for what was shown, in the process that asked.

    What a server asks the user (elicitation) is an interrupt as well, in the format of
    `langchain.mcp`, if the host has no `on_elicit` and no page to ask on, and the middleware was
    made before the server was added: `{"type": "mcp_elicitation", "tool_name": …, "requests":
    [{"key": …, "server": …, "message": …, "mode": …, …}]}`, resumed with `{"responses": {key:
    {"action": "accept", "content": …}}}`. The call goes on where it was, in the process that asked.
    `tool_name` is None if several calls run and the server, of MCP before 2026-07-28, does not say
    for which of them it asks.

    Args:
        host: a `Host`.
    """

    def __init__(self, host: ToolHost) -> None:
        super().__init__()
        self.tools = []
        self._host = host
        self._words = ViewWords(host)
        self._streamed = StreamedCalls(host)
        self._calls = AgentCalls(host)

    def on_event(self, chunk: object) -> None:
        """Take a chunk of a streamed message, so that Views show arguments while they are written.

            async for chunk, _ in agent.astream(messages, stream_mode="messages"):
                middleware.on_event(chunk)

        A call whose tool links a View then opens it at once: see `Host.stream_arguments`.
        """
        if not isinstance(chunk, AIMessageChunk):
            return
        for piece in chunk.tool_call_chunks:
            place = chunk.id, piece["index"]
            if piece["name"] and piece["id"]:
                self._streamed.begin(place, piece["name"], piece["id"])
            self._streamed.add(place, piece["args"])

    async def abefore_model(
        self,
        state: Any,  # noqa: ARG002 - LangChain's signature
        runtime: Any,  # noqa: ARG002
    ) -> dict[str, Any] | None:
        """Add what Views tell the model to the messages."""
        words = self._words.take()
        return {"messages": [HumanMessage(_blocks(words))]} if words else None

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Give the model the host's tools as they are now."""
        own = {each.get("name") if isinstance(each, dict) else each.name for each in request.tools}
        tools = [tool for tool in await self._host.list_tools() if tool.name not in own]
        return await handler(request.override(tools=[*request.tools, *tools_for("openai", tools)]))

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Call a tool of the host; the agent's own tools are left to it."""
        if request.tool is not None:
            return await handler(request)
        call = request.tool_call
        name, arguments, call_id = call["name"], call["args"], call["id"] or ""
        key = _call_key(call_id, name, arguments)
        if key in self._calls.waiting:
            return await self._go_on(key, name, call_id)
        asked: list[Any] = []
        needed = await self._host.approval_needed(name, arguments, call_id=call_id)
        if needed is not None:
            asked = [(_question(needed, name, arguments, call_id), _ANSWER)]
            answer = _decision(
                needed, name, arguments, interrupt(asked[0][0], response_schema=_ANSWER)
            )
            if isinstance(answer, Deny):
                await self._host.decide(call_id, answer)
                return ToolMessage(answer.reason, name=name, tool_call_id=call_id, status="error")
            edited, arguments = answer != arguments, answer
            await self._host.decide(call_id, Allow(), edited=edited)
        running = self._calls.begin(lambda: self._host.answer(name, arguments, call_id=call_id))
        running.asked = asked
        return await self._finish(running, key, name, call_id)

    async def _go_on(self, key: str, name: str, call_id: str) -> ToolMessage:
        """Go on with a call after an interrupt that was about what its server asks."""
        running, question = self._calls.waiting[key]
        # LangGraph tells interrupts apart by their order: those before are repeated.
        *_, given = [interrupt(value, response_schema=schema) for value, schema in running.asked]
        del self._calls.waiting[key]
        question.resolve(_answer(given.responses.get(_KEY)))
        return await self._finish(running, key, name, call_id)

    async def _finish(self, running: AgentCall, key: str, name: str, call_id: str) -> ToolMessage:
        while (question := await running.next_question()) is not None:
            running.asked.append((_elicitation(question, name), _Responses))
            self._calls.waiting[key] = running, question
            value, schema = running.asked[-1]
            interrupt(value, response_schema=schema)
            # It has an answer already, from an earlier process: to what was asked there.
            del self._calls.waiting[key]
            question.resolve(None)
        result = await running.task
        return ToolMessage(
            error_for_model(result) if result.is_error else _blocks(parts_for_model(result)),
            name=name,
            tool_call_id=call_id,
            status="error" if result.is_error else "success",
            artifact=beside_result(result),
        )


def _call_key(call_id: str, name: str, arguments: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode([call_id, name, arguments]).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return repr((call_id, name))  # the host refuses such arguments: no call of them waits


def _blocks(parts: list[Part]) -> list[str | dict[Any, Any]]:
    return [
        {"type": "image", "base64": part.data, "mime_type": part.mime_type}
        if isinstance(part, Image)
        else {"type": "text", "text": as_text(part)}
        for part in parts
    ]


def _question(
    needed: ApprovalRequest, name: str, arguments: dict[str, Any], call_id: str
) -> ToolApprovalRequest:
    return ToolApprovalRequest(
        type="tool_approval",
        tool_call_id=call_id,
        name=name,
        args=arguments,
        description=needed.question(),
    )


def _decision(
    needed: ApprovalRequest, name: str, arguments: dict[str, Any], answer: Any
) -> dict[str, Any] | Deny:
    """The arguments to call with, or the refusal."""
    if not needed.repeated:  # the answer is to a question that this host never asked
        return Deny("The user was not asked about this call here; call it again to ask them")
    if answer["type"] == "approve":
        return arguments
    if answer["type"] == "edit" and answer["edited_action"]["name"] == name:
        return answer["edited_action"]["args"]
    return Deny(answer.get("message") or Deny().reason)


def _elicitation(question: PendingElicitation, name: str) -> dict[str, Any]:
    """What a server asks, in the format of `langchain.mcp`."""
    request = question.request
    what = (
        {"requested_schema": request.requested_schema}
        if request.mode == "form"
        else {"url": request.url}
    )
    about = {"key": _KEY, "server": question.server, "message": request.message}
    asked = {**about, "mode": request.mode, **what}
    tool = name if question.certain else None
    return {"type": "mcp_elicitation", "tool_name": tool, "requests": [asked]}


def _answer(response: _Response | None) -> dict[str, Any] | bool | None:
    """The user's answer, as `host.on_elicit` returns it."""
    if response is None or response.action == "cancel":
        return None
    return response.action == "accept" and (response.content or True)
