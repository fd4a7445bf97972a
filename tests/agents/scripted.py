"""A model that does what a test says, in each framework, and a shop for it to work with."""

import base64
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

from agents import Agent as OpenAIAgent
from agents import Model as OpenAIModel
from agents import ModelResponse as OpenAIResponse
from agents import RunConfig, Runner, RunState, Usage
from langchain.agents import create_agent
from langchain.chat_models import BaseChatModel
from langchain.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import BinaryContent, DeferredToolRequests, DeferredToolResults, ToolDenied
from pydantic_ai.messages import (
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from transom import App, Host, InProcessRenderer, Policy
from transom.agents.langchain import HostMiddleware
from transom.agents.openai_agents import HostServer
from transom.agents.pydantic_ai import HostToolset
from transom.server import Views

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
URI = "ui://shop/orders.html"


class Call(NamedTuple):
    """What the model calls."""

    name: str
    arguments: Any = None


class Read(NamedTuple):
    """What the model reads of one result."""

    text: str
    images: tuple[bytes, ...] = ()
    failed: bool = False


class Question(NamedTuple):
    """What the user is asked: a call, and what the application can show of it."""

    id: str
    name: str
    arguments: dict[str, Any]
    words: str


class Script:
    """A model: what it does, turn by turn; what it was offered, and what it read."""

    def __init__(self, *turns: Call | list[Call]) -> None:
        self._turns = [[turn] if isinstance(turn, Call) else turn for turn in turns]
        self.offered: list[dict[str, str]] = []
        self.schemas: list[dict[str, Any]] = []
        self.read: list[Read] = []
        self.prompts: list[list[str]] = []
        """What users said to it, as it read that turn by turn."""

    def turn(
        self,
        tools: dict[str, str],
        schemas: dict[str, Any],
        read: list[Read],
        prompts: list[str],
    ) -> list[Call]:
        """What to call now; nothing: it is done."""
        self.prompts.append(prompts)
        self.offered.append(tools)
        self.schemas.append(schemas)
        self.read = read
        number = len(self.offered) - 1
        return self._turns[number] if number < len(self._turns) else []

    @property
    def names(self) -> list[set[str]]:
        return [set(tools) for tools in self.offered]


class Framework(Protocol):
    """One framework's agent with a host's tools."""

    result: Any

    def __init__(self, host: Host, script: Script) -> None: ...

    async def run(self) -> list[Question]:
        """Begin; what the user is asked, or nothing when the model is done."""
        ...

    async def resume(self, answers: dict[str, bool | str | dict[str, Any]]) -> list[Question]:
        """Go on: True, a reason why not, or other arguments, by the id of the question."""
        ...

    def beside(self) -> list[dict[str, Any]]:
        """What the application got beside each result."""
        ...


class PydanticAI:
    def __init__(self, host: Host, script: Script) -> None:
        self.result: Any = None

        def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
            tools = {tool.name: tool.description or "" for tool in info.function_tools}
            schemas = {tool.name: tool.parameters_json_schema for tool in info.function_tools}
            read = [
                Read(
                    part.model_response_str(),
                    tuple(file.data for file in part.files if isinstance(file, BinaryContent)),
                    part.outcome != "success",
                )
                for message in messages
                for part in message.parts
                if isinstance(part, ToolReturnPart)
            ]
            prompts = [
                text
                for message in messages
                for part in message.parts
                if isinstance(part, UserPromptPart)
                for text in ([part.content] if isinstance(part.content, str) else part.content)
                if isinstance(text, str) and not text.startswith("<system>")  # the framework's
            ]
            calls = script.turn(tools, schemas, read, prompts)
            parts = [ToolCallPart(call.name, call.arguments or {}) for call in calls]
            return ModelResponse(parts=parts or [TextPart("done")])

        self.agent = PydanticAgent(
            FunctionModel(answer),
            toolsets=[HostToolset(host)],
            output_type=[str, DeferredToolRequests],
        )

    async def run(self) -> list[Question]:
        history = None if self.result is None else self.result.all_messages()
        return self._questions(await self.agent.run("go", message_history=history))

    async def resume(self, answers: dict[str, Any]) -> list[Question]:
        results = DeferredToolResults(metadata=answers.pop("metadata", {}))
        for call_id, answer in answers.items():
            results.approvals[call_id] = ToolDenied(answer) if isinstance(answer, str) else answer
        history = self.result.all_messages()
        run = await self.agent.run(message_history=history, deferred_tool_results=results)
        return self._questions(run)

    def _questions(self, result: Any) -> list[Question]:
        self.result = result
        output = result.output
        if not isinstance(output, DeferredToolRequests):
            assert output == "done"
            return []
        return [
            Question(
                call.tool_call_id,
                call.tool_name,
                call.args_as_dict(),
                output.metadata[call.tool_call_id]["question"],
            )
            for call in output.approvals
        ]

    def beside(self) -> list[dict[str, Any]]:
        parts = (part for message in self.result.all_messages() for part in message.parts)
        return [part.metadata or {} for part in parts if isinstance(part, ToolReturnPart)]


class OpenAIAgents(OpenAIModel):
    def __init__(self, host: Host, script: Script) -> None:
        self._script = script
        self._ids = iter(range(1_000_000))
        self.result: Any = None
        self.server = HostServer(host)
        self.agent = OpenAIAgent(name="a", model=self, mcp_servers=[self.server])
        self.config = RunConfig(
            tracing_disabled=True, call_model_input_filter=self.server.add_words
        )

    async def run(self) -> list[Question]:
        return await self._run("go")

    async def resume(self, answers: dict[str, Any]) -> list[Question]:
        state: RunState[Any] = self.result.to_state()
        for item in self.result.interruptions:
            answer = answers[item.call_id]
            if isinstance(answer, str):
                state.reject(item, rejection_message=answer)
            else:
                state.approve(item, always_approve=answer == "always" or answer is not True)
        return await self._run(state)

    async def _run(self, given: Any) -> list[Question]:
        if self.result is not None and isinstance(given, str):  # it goes on
            given = [*self.result.to_input_list(), {"role": "user", "content": given}]
        self.result = await Runner.run(self.agent, given, run_config=self.config)
        if not self.result.interruptions:
            assert self.result.final_output == "done"
        return [
            Question(item.call_id, item.name, json.loads(item.arguments), "")
            for item in self.result.interruptions
        ]

    def beside(self) -> list[dict[str, Any]]:
        items = self.result.new_items
        return [item.custom_data or {} for item in items if item.type == "tool_call_output_item"]

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002 - the SDK's name for it
        model_settings: Any,
        tools: Any,
        *_: Any,
        **__: Any,
    ) -> OpenAIResponse:
        outputs = [] if isinstance(input, str) else input
        read = [
            _openai_read(it["output"]) for it in outputs if it.get("type") == "function_call_output"
        ]
        described = {tool.name: tool.description for tool in tools}
        schemas = {tool.name: tool.params_json_schema for tool in tools}
        said = [input] if isinstance(input, str) else [it.get("content") for it in input]
        prompts = [text for content in said for text in _openai_prompts(content)]
        calls = self._script.turn(described, schemas, read, prompts)
        output: list[Any] = [
            ResponseFunctionToolCall(
                call_id=f"c{next(self._ids)}",
                name=call.name,
                arguments=json.dumps(call.arguments or {}),
                type="function_call",
            )
            for call in calls
        ]
        if not calls:
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            output.append(
                ResponseOutputMessage(
                    id="m", role="assistant", status="completed", type="message", content=[text]
                )
            )
        return OpenAIResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nobody here asks for a stream")


def _openai_prompts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content or () if part["type"] == "input_text"]


def _openai_read(output: Any) -> Read:
    if isinstance(output, str):
        return Read(output)
    texts = [part["text"] for part in output if part["type"] == "input_text"]
    urls = [part["image_url"] for part in output if part["type"] == "input_image"]
    return Read("\n".join(texts), tuple(base64.b64decode(url.partition(",")[2]) for url in urls))


class _ChatModel(BaseChatModel):
    script: Any
    offered: Any = ()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        return self.model_copy(
            update={"offered": [convert_to_openai_tool(tool)["function"] for tool in tools]}
        )

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        read = [
            _langchain_read(message) for message in messages if isinstance(message, ToolMessage)
        ]
        tools = {tool["name"]: tool["description"] for tool in self.offered}
        schemas = {tool["name"]: tool["parameters"] for tool in self.offered}
        prompts = [
            text
            for message in messages
            if isinstance(message, HumanMessage)
            for text in _texts(message.content)
        ]
        calls = self.script.turn(tools, schemas, read, prompts)
        number = len(self.script.offered)
        message = AIMessage(
            "" if calls else "done",
            tool_calls=[
                {"name": call.name, "args": call.arguments or {}, "id": f"c{number}-{index}"}
                for index, call in enumerate(calls)
            ],
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block["type"] == "text"]


def _langchain_read(message: ToolMessage) -> Read:
    blocks: list[Any] = (
        [{"type": "text", "text": message.content}]
        if isinstance(message.content, str)
        else message.content
    )
    return Read(
        "\n".join(block["text"] for block in blocks if block["type"] == "text"),
        tuple(base64.b64decode(block["base64"]) for block in blocks if block["type"] == "image"),
        message.status == "error",
    )


class LangChain:
    def __init__(self, host: Host, script: Script) -> None:
        self.result: Any = None
        self.middleware = HostMiddleware(host)
        self.agent = create_agent(
            _ChatModel(script=script),
            middleware=[self.middleware],
            checkpointer=InMemorySaver(),
        )

    async def run(self) -> list[Question]:
        return await self._run({"messages": [{"role": "user", "content": "go"}]})

    async def resume(self, answers: dict[str, Any]) -> list[Question]:
        decisions: dict[str, Any] = {}
        for pending in self.result["__interrupt__"]:
            answer = answers[pending.value["tool_call_id"]]
            decisions[pending.id] = {"type": "approve"}
            if isinstance(answer, str):
                decisions[pending.id] = {"type": "reject", "message": answer}
            elif isinstance(answer, dict):
                edited = {"name": pending.value["name"], "args": answer}
                decisions[pending.id] = {"type": "edit", "edited_action": edited}
        return await self._run(Command(resume=decisions))

    async def _run(self, given: Any) -> list[Question]:
        config: Any = {"configurable": {"thread_id": "1"}}
        self.result = await self.agent.ainvoke(given, config)
        pending = self.result.get("__interrupt__", [])
        if not pending:
            assert self.result["messages"][-1].content == "done"
        values = [each.value for each in pending if each.value["type"] == "tool_approval"]
        return [
            Question(it["tool_call_id"], it["name"], it["args"], it["description"]) for it in values
        ]

    def beside(self) -> list[dict[str, Any]]:
        messages = self.result["messages"]
        return [message.artifact or {} for message in messages if isinstance(message, ToolMessage)]


FRAMEWORKS: list[type[Framework]] = [PydanticAI, OpenAIAgents, LangChain]


# --- the shop --------------------------------------------------------------------------------


def shop() -> MCPServer:
    """`show_orders` opens a View; `chart` is a picture; `stock` has structured content."""
    views = Views()
    page = views.add(URI, html="<!doctype html><title>Orders</title>")

    @views.tool(opens=page, annotations={"readOnlyHint": True})
    def show_orders(status: str = "open") -> dict[str, Any]:
        """Show the shop's orders."""
        return {"orders": ["A-1", "A-2"], "status": status}

    server = MCPServer("shop", extensions=[views])

    @server.tool()
    def chart() -> Image:
        """A picture of the orders."""
        return Image(data=PIXEL, format="png")

    @server.tool()
    def stock() -> dict[str, int]:
        """What is left."""
        return {"desks": 3}

    @server.tool()
    def fail() -> str:
        """Always fails."""
        raise ToolError("the warehouse is on fire")

    return server


def orders_view(add: Callable[[App], object] = lambda app: None) -> Callable[[], App]:
    """Makes the shop's View."""

    def make() -> App:
        app = App("orders", "1.0.0")

        @app.tool(annotations={"readOnlyHint": True})
        def get_selection() -> dict[str, list[str]]:
            """The orders that the user has selected."""
            return {"selected": ["A-1"]}

        @app.tool
        def mark_shipped(order: str = "A-1") -> str:
            """Mark an order as shipped."""
            mark_shipped.disable("everything is shipped")
            return f"Shipped {order}"

        @app.tool
        def cancel_order(order: str) -> str:
            """Cancel an order."""
            return f"Cancelled {order}"

        add(app)
        return app

    return make


@asynccontextmanager
async def hosting(
    policy: Policy | None = None,
    add: Callable[[App], object] = lambda app: None,
    renderer: Any = None,
) -> AsyncIterator[Host]:
    """A host with the shop; by itself nobody but the framework asks the user."""
    renderer = renderer or InProcessRenderer({URI: orders_view(add)})
    async with Host(renderer=renderer, policy=policy) as host:
        await host.add_server("shop", shop())
        yield host
