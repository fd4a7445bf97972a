"""What a View may ask of its host, one method for each thing.

Before sending, `create_message` and `request_display_mode` look whether the host said that it can,
as the spec wants; in strict mode everything does. A host that will not do it answers a `Verdict`
with `is_error`, whichever of the two forms it chose to say so in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from transom.errors import (
    SERVER_ERROR,
    CapabilityMissing,
    InvalidResult,
    NotConnected,
    ProtocolError,
    UsageError,
)
from transom.protocol.messages import (
    CreateTaskResult,
    DisplayModeResult,
    ListResourcesResult,
    ListToolsResult,
    Verdict,
)
from transom.protocol.methods import VIEW
from transom.protocol.peer import Progress
from transom.types import (
    ContentBlock,
    HostCapabilities,
    HostContext,
    LogLevel,
    Open,
    ReadResourceResult,
    Task,
    TextContent,
    Tool,
    ToolResult,
)

__all__ = ["Content", "HostRequests"]

Content = str | ContentBlock | Mapping[str, Any] | Sequence[ContentBlock | Mapping[str, Any]]
"""Text, a content block, or several; blocks as structs or as on the wire."""

_MAX_PAGES = 1000


def _unheard(_: Progress) -> None:
    """Progress nobody listens to still says that the host is alive, and resets the timeout."""


class HostRequests(ABC):
    """The requests and notifications of an `App`."""

    strict: bool

    @property
    @abstractmethod
    def host_capabilities(self) -> HostCapabilities | None:
        """What the host can do; None before the handshake."""

    @property
    @abstractmethod
    def host_context(self) -> HostContext | None:
        """The View's surroundings as they are now; None before the handshake."""

    @abstractmethod
    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | msgspec.Struct | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = -1,
        on_progress: Callable[[Any], object] | None = None,
        result: type[Open] | None = None,
    ) -> Any:
        """Ask the host, by the name of the method."""

    @abstractmethod
    def notify(self, method: str, params: Mapping[str, Any] | msgspec.Struct | None = None) -> None:
        """Tell the host, by the name of the method."""

    # --- the server's tools and resources ----------------------------------------------------

    async def call_server_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = -1,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> ToolResult:
        """Call a tool of the server this View came from.

        Args:
            name: the tool.
            arguments: its arguments.
            timeout: seconds without an answer or a progress notice; None: no limit.
            on_progress: called with each progress notice.

        Returns:
            The result; a tool's own failure is a result with `is_error`.

        Raises:
            ProtocolError: the call itself failed.
        """
        return await self._call(name, arguments, {}, None, timeout, on_progress)

    async def start_server_task(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl: int | None = None,
        timeout: float | None = -1,
    ) -> Task:
        """Call a tool of the server as a task, and get its handle.

        A tool of the View that returns the handle hands the work to the server: the host can follow
        it there, also when the View is gone.

        Raises:
            InvalidResult: the server answered the call at once.
        """
        task = {"task": {} if ttl is None else {"ttl": ttl}}
        made = await self._call(name, arguments, task, CreateTaskResult, timeout, None)
        return made.task

    async def _call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        more: dict[str, Any],
        result: type[Open] | None,
        timeout: float | None,
        on_progress: Callable[[Progress], object] | None,
    ) -> Any:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("call_server_tool(name, arguments): the name is a string")
        self._check("tools/call")
        params = {"name": name, "arguments": dict(arguments or {}), **more}
        listener = on_progress or _unheard
        return await self.request(
            "tools/call", params, timeout=timeout, on_progress=listener, result=result
        )

    async def list_server_tools(self) -> list[Tool]:
        """The tools of the server that this View may call."""
        self._check("tools/list")
        tools: list[Tool] = []
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(_MAX_PAGES):
            page: ListToolsResult = await self.request("tools/list", _page(cursor))
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None:
                return tools
            if cursor in seen:
                break
            seen.add(cursor)
        raise InvalidResult("tools/list: the pages do not end")

    async def read_resource(self, uri: str) -> ReadResourceResult:
        """Read a resource of the server."""
        self._check("resources/read")
        return await self.request("resources/read", {"uri": uri})

    async def list_resources(self, cursor: str | None = None) -> ListResourcesResult:
        """A page of the server's resources; `next_cursor` asks for the next."""
        self._check("resources/list")
        return await self.request("resources/list", _page(cursor))

    # --- the model and the user --------------------------------------------------------------

    async def create_message(
        self,
        messages: Sequence[Mapping[str, Any]] | str,
        *,
        max_tokens: int,
        tools: Sequence[Tool | Mapping[str, Any]] | None = None,
        timeout: float | None = -1,
        **options: Any,
    ) -> Mapping[str, Any]:
        """Ask the host's model for a message (MCP sampling).

        Args:
            messages: the conversation, in MCP's form; a plain text is one message of the user.
            max_tokens: how long the answer may be.
            tools: tools the model may use; needs `sampling.tools`.
            timeout: seconds to wait.
            **options: other params of `sampling/createMessage`, by their wire names.

        Raises:
            CapabilityMissing: the host does not sample, or not with tools.
        """
        self._check("sampling/createMessage")
        sampling = self.host_capabilities.sampling if self.host_capabilities else None
        if tools is not None and (sampling is None or sampling.tools is None):
            raise CapabilityMissing("The host does not offer tools while sampling (sampling.tools)")
        if isinstance(messages, str):
            messages = [{"role": "user", "content": {"type": "text", "text": messages}}]
        params = {"messages": messages, "maxTokens": max_tokens, **options}
        if tools is not None:
            params["tools"] = tools
        return await self.request("sampling/createMessage", params, timeout=timeout)

    async def send_message(self, content: Content) -> Verdict:
        """Say something in the conversation, as the user."""
        self._check("ui/message")
        return await self._verdict("ui/message", {"role": "user", "content": _blocks(content)})

    async def update_model_context(
        self,
        content: Content | None = None,
        structured_content: Mapping[str, Any] | None = None,
    ) -> Verdict:
        """Tell the model what it should know in its next turn. The last update counts."""
        self._check("ui/update-model-context")
        params: dict[str, Any] = {}
        if content is not None:
            params["content"] = _blocks(content)
        if structured_content is not None:
            params["structuredContent"] = structured_content
        return await self._verdict("ui/update-model-context", params)

    async def open_link(self, url: str) -> Verdict:
        """Ask the host to open a link."""
        self._check("ui/open-link")
        return await self._verdict("ui/open-link", {"url": url})

    async def download_file(self, contents: Sequence[ContentBlock | Mapping[str, Any]]) -> Verdict:
        """Ask the host to offer files for download: embedded resources or resource links."""
        self._check("ui/download-file")
        return await self._verdict("ui/download-file", {"contents": list(contents)})

    async def request_display_mode(self, mode: str) -> str:
        """Ask for `inline`, `fullscreen` or `pip`; the mode the View is in afterwards.

        Raises:
            CapabilityMissing: the host does not have that mode.
        """
        self._check("ui/request-display-mode")
        context = self.host_context
        modes = None if context is None else context.available_display_modes
        if mode not in (modes or ()) and (modes is not None or self.strict):
            offered = ", ".join(modes or ()) or "none"
            raise CapabilityMissing(f"The host has no display mode {mode!r}; it has: {offered}")
        result: DisplayModeResult = await self.request("ui/request-display-mode", {"mode": mode})
        return result.mode

    async def _verdict(self, method: str, params: dict[str, Any]) -> Verdict:
        try:
            return await self.request(method, params)
        except ProtocolError as error:
            if error.code != SERVER_ERROR:
                raise
            return Verdict(is_error=True, extra={"message": error.message})

    # --- notifications -----------------------------------------------------------------------

    async def send_log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Send a log message to the host."""
        params: dict[str, Any] = {"level": level, "data": data}
        self.notify("notifications/message", params | ({"logger": logger} if logger else {}))

    async def send_size_changed(
        self, *, width: float | None = None, height: float | None = None
    ) -> None:
        """Tell the host how much room the View's content takes."""
        size = {"width": width, "height": height}
        params = {key: value for key, value in size.items() if value is not None}
        self.notify("ui/notifications/size-changed", params)

    async def request_teardown(self) -> None:
        """Ask the host to close this View. It decides."""
        self.notify("ui/notifications/request-teardown", {})

    async def ping(self) -> None:
        """See that the host is there."""
        await self.request("ping")

    # --- looking first -----------------------------------------------------------------------

    def _check(self, method: str) -> None:
        """See that the host can do it, where the spec or strict mode wants us to look."""
        row = VIEW[method]
        capabilities = self.host_capabilities
        if row.needs is None or not (row.must or self.strict):
            return
        if capabilities is None:
            if row.must:
                raise NotConnected("Not connected")
            return
        if getattr(capabilities, row.needs) is None:
            raise CapabilityMissing(f"{method}: the host did not declare {row.needs!r}")


def _page(cursor: str | None) -> dict[str, Any] | None:
    return None if cursor is None else {"cursor": cursor}


def _blocks(content: Content) -> list[Any]:
    if isinstance(content, str):
        return [TextContent(content)]
    if isinstance(content, Mapping | msgspec.Struct):
        return [content]
    blocks = list(cast("Sequence[object]", content))
    for block in blocks:
        if not isinstance(block, Mapping | msgspec.Struct):
            raise UsageError(f"Content is text, a content block or a list of them, not {block!r}")
    return blocks
