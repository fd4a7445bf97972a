"""Arguments reach a View while the model of each framework writes them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agents import Agent as OpenAIAgent
from agents import Model as OpenAIModel
from agents import RunConfig, Runner
from langchain.agents import create_agent
from langchain.chat_models import BaseChatModel
from langchain.messages import AIMessageChunk, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemAddedEvent,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import (
    PartDeltaEvent,
    PartStartEvent,
    ToolCallPart,
    ToolCallPartDelta,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from tests.agents.test_remote import elsewhere
from tests.host.shop import URI, Heard, editor, hosting
from transom import Host, InProcessRenderer
from transom.agents.langchain import HostMiddleware
from transom.agents.openai_agents import HostServer
from transom.agents.pydantic_ai import HostToolset

NAME, CALL_ID = "show_orders", "call-1"
PIECES = ('{"sta', 'tus": "la', 'te"}')


class Writer:
    """A model that goes on writing when the View has shown what it wrote so far."""

    def __init__(self, log: Heard) -> None:
        self._log = log

    async def pieces(self) -> AsyncIterator[str]:
        yield PIECES[0]
        yield PIECES[1]
        await self._log.has(("partial", {"status": "la"}))
        yield PIECES[2]


async def run_pydantic_ai(host: Any, writer: Writer) -> None:
    async def model(messages: list[Any], _: AgentInfo) -> AsyncIterator[Any]:
        if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
            yield "done"
            return
        yield {0: DeltaToolCall(NAME, tool_call_id=CALL_ID)}
        async for piece in writer.pieces():
            yield {0: DeltaToolCall(json_args=piece)}

    toolset = HostToolset[None](host)

    async def watch(_: Any, events: Any) -> None:
        async for event in events:
            toolset.on_event(event)

    agent = PydanticAgent(FunctionModel(stream_function=model), toolsets=[toolset])
    assert (await agent.run("go", event_stream_handler=watch)).output == "done"


class _OpenAIWriter(OpenAIModel):
    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def get_response(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("it is streamed")

    async def stream_response(self, system: Any, given: Any, *_: Any, **__: Any) -> Any:
        if isinstance(given, list) and given[-1].get("type") == "function_call_output":
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            output: Any = ResponseOutputMessage(
                id="m", role="assistant", status="completed", type="message", content=[text]
            )
        else:
            call = {"call_id": CALL_ID, "name": NAME, "type": "function_call"}
            output = ResponseFunctionToolCall(**call, arguments="".join(PIECES))
            begun = ResponseFunctionToolCall(**call, arguments="")
            yield ResponseOutputItemAddedEvent(
                item=begun, output_index=0, sequence_number=0, type="response.output_item.added"
            )
            async for piece in self._writer.pieces():
                yield ResponseFunctionCallArgumentsDeltaEvent(
                    delta=piece,
                    item_id="i",
                    output_index=0,
                    sequence_number=1,
                    type="response.function_call_arguments.delta",
                )
        response = Response(
            id="r",
            created_at=0,
            model="m",
            object="response",
            output=[output],
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(
            response=response, sequence_number=2, type="response.completed"
        )


async def run_openai_agents(host: Any, writer: Writer) -> None:
    server = HostServer(host)
    agent = OpenAIAgent(name="a", model=_OpenAIWriter(writer), mcp_servers=[server])
    result = Runner.run_streamed(agent, "go", run_config=RunConfig(tracing_disabled=True))
    async for event in result.stream_events():
        server.on_event(event)
    assert result.final_output == "done"


class _LangChainWriter(BaseChatModel):
    writer: Any

    @property
    def _llm_type(self) -> str:
        return "writer"

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    def _generate(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("it is streamed")

    async def _astream(self, messages: list[Any], *_: Any, **__: Any) -> Any:
        if isinstance(messages[-1], ToolMessage):
            yield ChatGenerationChunk(message=AIMessageChunk("done"))
            return
        first = {"name": NAME, "id": CALL_ID, "args": "", "index": 0}
        yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[first]))
        async for piece in self.writer.pieces():
            more = {"name": None, "id": None, "args": piece, "index": 0}
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[more]))


async def run_langchain(host: Any, writer: Writer) -> None:
    middleware = HostMiddleware(host)
    agent: Any = create_agent(_LangChainWriter(writer=writer), middleware=[middleware])
    given = {"messages": [{"role": "user", "content": "go"}]}
    said = ""
    async for chunk, _ in agent.astream(given, stream_mode="messages"):
        middleware.on_event(chunk)
        said += "" if isinstance(chunk, ToolMessage) else chunk.text
    assert said == "done"


@asynccontextmanager
async def here(host: Host) -> AsyncIterator[Host]:
    yield host


@pytest.mark.parametrize("where", [here, elsewhere])
@pytest.mark.parametrize("run", [run_pydantic_ai, run_openai_agents, run_langchain])
async def test_a_view_shows_the_arguments_while_the_model_writes_them(run: Any, where: Any):
    log = Heard()
    renderer = InProcessRenderer({URI: editor(log)})
    async with hosting(renderer=renderer) as host, where(host) as reached:
        await run(reached, Writer(log))
        assert log[-2:] == [("input", {"status": "late"}), ("result", "orders: late")]
        assert list(host.views) == ["orders-1"]


async def test_two_runs_at_once_do_not_get_each_others_arguments():
    log = Heard()
    async with hosting("orders", "bank", renderer=InProcessRenderer({URI: editor(log)})) as host:
        toolset = HostToolset[None](host)
        events = [
            PartStartEvent(index=0, part=ToolCallPart(name, "", tool_call_id=name))
            for name in ("show_orders", "show_bank")
        ]
        for run, event in enumerate(events):
            toolset.on_event(event, run=run)
        for run, text in enumerate(('{"status": "la', '{"status": "secret')):
            delta = ToolCallPartDelta(args_delta=text)
            toolset.on_event(PartDeltaEvent(index=0, delta=delta), run=run)
        await log.has(("partial", {"status": "la"}))
        assert "secret" not in str(log)
