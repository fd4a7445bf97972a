"""What an agent uses of a host, wherever the host is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Coroutine, Mapping
from typing import Any, TypedDict, Unpack

from transom.errors import ProtocolError, TransomError, UsageError
from transom.host.asking.policy import ApprovalRequest, Decision
from transom.host.tools.tool_list import ModelApi, ToolList, tools_for
from transom.host.views.bridge import CallsTools, OutgoingCall
from transom.host.views.model_context import ModelContext
from transom.json_values import sendable
from transom.session import OnProgress
from transom.types import Task, TextContent, ToolResult


class HostCallOptions(TypedDict, total=False):
    """The keywords of `ToolHost.call_tool`, which explains them."""

    timeout: float | None
    on_progress: OnProgress | None
    open_view: bool
    call_id: str | None


class ToolHost(CallsTools):
    """What an agent needs of a host: a `Host`, or what stands for one on another worker."""

    on_message: Any
    """An event: a View sends the model a message."""

    @abstractmethod
    async def list_tools(self) -> ToolList:
        """The tools a model may call right now."""

    async def tools_for(self, api: ModelApi) -> list[dict[str, Any]]:
        """What `list_tools` returns, in the shape that an API takes.

        Args:
            api: `anthropic` (Messages), `openai` (Chat Completions) or `mcp` (`tools/list`).

        Raises:
            UsageError: there is no such API.
        """
        return tools_for(api, await self.list_tools())

    @abstractmethod
    def model_context(self) -> list[ModelContext]:
        """The last context that each open View sent for the model, the oldest first."""

    @abstractmethod
    async def approval_needed(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, call_id: str
    ) -> ApprovalRequest | None:
        """What to ask the user before a call, if anything."""

    @abstractmethod
    async def decide(self, call_id: str, decision: Decision, *, edited: bool = False) -> None:
        """Store the user's decision."""

    @abstractmethod
    def stream_arguments(self, name: str, text: str, *, call_id: str) -> None:
        """Take what a model has just written of the arguments of a call, before it makes the call.

        If the tool links a View, the View opens now, and gets what can be read of the arguments so
        far. The call, `call_tool` with the same `call_id`, then uses this View. If it is not made
        within a minute, the View is told so and closed. Nothing happens for other tools, and where
        the user is asked before the View opens, or an open one is used for the same arguments.

        Args:
            name: the tool, as `list_tools` names it.
            text: the next piece of the JSON text of the arguments.
            call_id: the agent's name for this call, as in `call_tool`.
        """

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        **options: Unpack[HostCallOptions],
    ) -> Coroutine[Any, Any, ToolResult]:
        """Call a tool that `list_tools` shows; raises what `View.call_tool` does.

        A server's tool that links a View opens it, or uses one that is open (see `add_server`), and
        the call waits until it is live, or until it is clear that no page has a place for it, or
        that its page failed before it connected (its `state` is `waiting` then). The
        result's `meta["transom/view"]` has the View's `id` and `state`, `reused` if it was open
        before, and the `error` if it is not open.

        Args:
            name: the tool.
            arguments: a JSON object.
            timeout: seconds without an answer or a progress notification.
            on_progress: called with each progress notification; may be async.
            open_view: False: the tool is called without opening or using a View.
            call_id: the id that was passed to `approval_needed`, `decide` and `stream_arguments`.
        """
        return self._call(OutgoingCall(name, arguments, **options))

    async def answer(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        **options: Unpack[HostCallOptions],
    ) -> ToolResult:
        """`call_tool` for an agent's loop: failures that the model should read become results.

        A call that is refused or times out, whose View or server is gone or fails, or that names an
        unknown tool returns a result with `is_error` and a text that says why.

        Raises:
            UsageError: the program is wrong, as when the host was never opened: the model can do
                nothing about it.
        """
        try:
            return await self.call_tool(name, arguments, **options)
        except UsageError:
            raise
        except TransomError as error:
            text = error.message if isinstance(error, ProtocolError) else str(error)
            return ToolResult(content=[TextContent(sendable(text))], is_error=True)

    async def get_task(self, task_id: str) -> Task:
        """The state of a task that `start_task` answered with.

        Raises:
            ViewClosed: the View that worked on it is closed, and its server does not have it.
            ProtocolError: there is no such task.
        """
        return await self.request_task("tasks/get", task_id)

    async def task_result(self, task_id: str, *, timeout: float | None = None) -> ToolResult:
        """The result of a task; waits until there is one.

        Raises:
            ViewClosed, ProtocolError: as for `get_task`.
            RequestTimeout: there was none in time.
        """
        return await self.request_task("tasks/result", task_id, timeout)

    async def cancel_task(self, task_id: str) -> Task:
        """Stop a task.

        Raises:
            ViewClosed, ProtocolError: as for `get_task`.
        """
        return await self.request_task("tasks/cancel", task_id)

    @abstractmethod
    async def request_task(self, method: str, task_id: str, timeout: float | None = None) -> Any:
        """Send a request about a task to the View or the server that has it."""
