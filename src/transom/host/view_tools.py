"""A View's tools: listed and called by its host.

1. Nothing is sent to a View that is not ready, or that did not declare tools.
2. Tool definitions are untrusted. One that cannot be used is left out, with a reason; the others
   are not affected. Definitions are recognised by their bytes, so one that was read before, for
   this View or another, is neither read nor kept again.
3. A result is checked and no larger than the limits allow. A View that reports progress may take
   longer, but not for ever.
4. The caller's timeout covers everything: the wait for the View, and the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, TypedDict
from weakref import WeakValueDictionary

import msgspec
from msgspec import Raw

from transom.errors import CapabilityMissing, InvalidResult, PeerError, RequestTimeout
from transom.host.policy import Limits
from transom.host.tasks import task_in
from transom.host.view_state import Readiness
from transom.json_values import depth_exceeds
from transom.protocol import wire
from transom.protocol.lifecycle import State
from transom.protocol.messages import TaskRequest
from transom.protocol.methods import HOST, describe
from transom.session import OnProgress, Session
from transom.types import Task, Tool, ToolResult

__all__ = ["CallOptions", "TaskCallOptions", "ToolDefinitions", "ToolListing", "ViewTools"]

_MAX_NAME = 128
_MAX_TITLE = 256
_MAX_REASONS = 100  # tools that are left out with a reason each
_MAX_CURSOR = 4096
_MAX_READ = 10  # definitions that are read, bad ones included, for each that may be kept


class CallOptions(TypedDict, total=False):
    """What `call_tool` and `start_task` take beside the tool and its arguments."""

    timeout: float | None
    """Seconds without an answer or a progress notification; the host's limit unless given."""
    on_progress: OnProgress | None
    """Called with each progress notification; may be async."""


class TaskCallOptions(CallOptions):
    """The options of a call as a task. Inside the host they go where those of any call go."""

    task: TaskRequest


class _ToolPage(msgspec.Struct, rename="camel"):
    """One page of `tools/list`, its tools still unread."""

    tools: list[Raw]
    next_cursor: str | None = None


_decode_page = msgspec.json.Decoder(_ToolPage).decode
_decode_tool = msgspec.json.Decoder(Tool).decode


def _read_page(raw: Raw) -> _ToolPage:
    try:
        return _decode_page(raw)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise InvalidResult(f"Invalid result for tools/list: {describe(error)}") from None


class _Definition:
    """A definition that was read, kept as long as some View lists it."""

    __slots__ = ("__weakref__", "data", "tool")

    def __init__(self, data: bytes, tool: Tool) -> None:
        self.data = data
        self.tool = tool


@lru_cache(maxsize=16)
def _shared_definitions(limits: Limits) -> WeakValueDictionary[bytes, _Definition]:
    """What any View lists, by its bytes: the same limits make the same of the same bytes."""
    del limits
    return WeakValueDictionary()


class ToolListing:
    """One listing: the tools that can be used, and those left out with the reason."""

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.left_out: dict[str, str] = {}
        self.known: dict[bytes, _Definition] = {}
        self.number = 0

    def leave_out(self, name: str, reason: str) -> None:
        """Keep why a tool, or with "" several tools, were left out; up to a number of reasons."""
        if not name or len(self.left_out) < _MAX_REASONS:
            self.left_out.setdefault(name, reason)


class ToolDefinitions:
    """Reads definitions within the limits, and keeps the last ones by their bytes."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[bytes, _Definition] = {}
        self._shared = _shared_definitions(limits)

    async def list_all(self, request: Callable[[bytes], Awaitable[Raw]]) -> ToolListing:
        """List, page by page, but no more pages or tools than the limits allow.

        Args:
            request: sends `tools/list` with these params, returns its result.

        Raises:
            InvalidResult: the answer is not a page of tools at all.
        """
        limits, listing = self._limits, ToolListing()
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(limits.max_pages):
            params = b"{}" if cursor is None else wire.encode({"cursor": cursor})
            page = _read_page(await request(params))
            if not self._add_page(listing, page):
                listing.leave_out("", f"the View has more than {limits.max_tools} tools")
                break
            cursor = page.next_cursor
            if cursor is None:
                break
            if cursor in seen or len(cursor) > _MAX_CURSOR:
                listing.leave_out("", "the View's list of tools repeats a cursor")
                break
            seen.add(cursor)
        else:
            listing.leave_out("", f"the View's list has more than {limits.max_pages} pages")
        self._known = listing.known
        return listing

    def _add_page(self, listing: ToolListing, page: _ToolPage) -> bool:
        """Add a page to a listing. False: there is no room for more."""
        limit = self._limits.max_tools
        for raw in page.tools:
            if len(listing.tools) >= limit or listing.number >= _MAX_READ * limit:
                return False
            listing.number += 1
            data = bytes(raw)
            known = self._known.get(data) or self._shared.get(data)
            if known is None:
                tool = self._read(listing, data)
                if tool is None:
                    continue
                known = self._shared[data] = _Definition(data, tool)
            name = known.tool.name
            if name in listing.tools:
                listing.leave_out(name, "listed twice; the first counts")
                continue
            listing.known[known.data] = known
            listing.tools[name] = known.tool
        return True

    def _read(self, listing: ToolListing, data: bytes) -> Tool | None:
        limits, unnamed = self._limits, f"tool {listing.number}"
        if len(data) > limits.max_definition_bytes:
            size = f"{len(data)} bytes is over the limit of {limits.max_definition_bytes}"
            listing.leave_out(unnamed, f"a definition of {size}")
            return None
        try:
            tool = _decode_tool(data)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            listing.leave_out(unnamed, describe(error))
            return None
        problem = self._problem(tool)
        if problem is not None:
            name = tool.name if tool.name.isprintable() else unnamed
            listing.leave_out(name[:_MAX_NAME] or unnamed, problem)
            return None
        return self._shortened(tool)

    def _problem(self, tool: Tool) -> str | None:
        if not tool.name or len(tool.name) > _MAX_NAME or not tool.name.isprintable():
            return f"a name has 1 to {_MAX_NAME} printable characters"
        depth = self._limits.max_schema_depth
        for word, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
            if schema is not None and schema.get("type") != "object":
                return f"its {word} schema is not of type object"
            if schema is not None and depth_exceeds(schema, depth):
                return f"its {word} schema is nested deeper than {depth}"
        if depth_exceeds(tool.meta, depth):
            return f"its metadata is nested deeper than {depth}"
        return None

    def _shortened(self, tool: Tool) -> Tool:
        limit = self._limits.max_description
        if tool.description is not None and len(tool.description) > limit:
            cut = tool.description[:limit] + "… (cut)"
            tool = msgspec.structs.replace(tool, description=cut)
        if tool.title is not None and len(tool.title) > _MAX_TITLE:
            tool = msgspec.structs.replace(tool, title=tool.title[:_MAX_TITLE] + "…")
        return tool


_READY = State.READY  # looking a member up in its enum is slow, and every call does
_decode_result = msgspec.json.Decoder(ToolResult).decode
_read_result = HOST["tools/call"].read_result


class ViewTools:
    """Lists and calls the tools of one View.

    Args:
        session: the conversation with the View.
        readiness: whether the View is ready.
        limits: how much the View may cost.
        report: called with an error for each definition that had to be left out.
    """

    def __init__(
        self,
        session: Session,
        readiness: Readiness,
        limits: Limits,
        report: Callable[[BaseException], object],
    ) -> None:
        self.offered = False
        """Whether the View declared tools."""
        self.app = "the View"
        """The name the View gave itself."""
        self.left_out: Mapping[str, str] = {}
        """Tools of the last listing that could not be used, with the reason."""
        self._session = session
        self._readiness = readiness
        self._lifecycle = readiness.lifecycle
        self._limits = limits
        self._report = report
        self._definitions = ToolDefinitions(limits)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        task: TaskRequest | None = None,
    ) -> Any:
        """Call a tool; returns a `ToolResult`, or the `Task` it has become if one was wanted."""
        if timeout is None:
            timeout = self._limits.call_timeout
        if self._lifecycle.state is not _READY or not self.offered:
            timeout = await self._until_callable("tools/call", timeout)
        call: dict[str, Any] = {"name": name}
        if arguments is not None:
            call["arguments"] = arguments if isinstance(arguments, dict) else dict(arguments)
        if task is not None:
            call["task"] = task
        params = wire.encode(call)
        if on_progress is None:
            raw = await self._session.request("tools/call", params, timeout=timeout)
        else:
            raw = await self._call_with_progress(params, timeout, on_progress)
        if len(raw) > self._limits.max_result_bytes:
            raise self._too_large(name, raw)
        try:
            result = _decode_result(raw)
            if not result.extra:
                return result
        except (msgspec.DecodeError, RecursionError, ValueError):
            pass  # members we do not know, or no result at all: sorted out below
        result = _read_result(raw)
        if "task" in result.extra and not result.content:
            return self._task_handle(name, raw, wanted=task is not None)
        return result

    async def _call_with_progress(
        self, params: bytes, timeout: float, on_progress: OnProgress
    ) -> Raw:
        longest = max(timeout, self._limits.max_call_time)
        try:
            async with asyncio.timeout(longest):
                return await self._session.request(
                    "tools/call", params, timeout=timeout, on_progress=on_progress
                )
        except TimeoutError:
            raise RequestTimeout(f"tools/call: no answer within {longest:g} s") from None

    @staticmethod
    def _task_handle(name: str, raw: Raw, *, wanted: bool) -> Task:
        if not wanted:
            raise InvalidResult(f"{name}: the View answered with a task that nobody asked for")
        task = task_in(raw)
        if task is None:
            raise InvalidResult(f"{name}: the View answered with a task that cannot be read")
        return task

    async def list_all(self, timeout: float | None) -> list[Tool]:
        """The tools, all pages, without those that cannot be used."""
        limit = self._limits.list_timeout if timeout is None else timeout
        clock = asyncio.get_running_loop().time
        deadline = clock() + limit
        if self._lifecycle.state is not _READY or not self.offered:
            await self._until_callable("tools/list", limit)

        def request(params: bytes) -> Awaitable[Raw]:
            left = max(deadline - clock(), 0.001)
            return self._session.request("tools/list", params, timeout=left)

        listing = await self._definitions.list_all(request)
        before, self.left_out = self.left_out, listing.left_out
        for name, reason in listing.left_out.items():
            if before.get(name) != reason:
                what = f"{name} left out: " if name else ""
                self._report(PeerError(f"tools/list: {what}{reason}"))
        return list(listing.tools.values())

    async def request(self, method: str, params: Mapping[str, Any], timeout: float | None) -> Any:
        """Send another request about tools, such as `tasks/get`; its result."""
        limit = self._limits.call_timeout if timeout is None else timeout
        left = await self._until_callable(method, limit)
        raw = await self._session.request(method, wire.encode(params), timeout=left)
        if len(raw) > self._limits.max_result_bytes:
            raise self._too_large(method, raw)
        return HOST[method].read_result(raw)

    def _too_large(self, what: str, raw: Raw) -> InvalidResult:
        size = f"{len(raw)} bytes is over the limit of {self._limits.max_result_bytes}"
        return InvalidResult(f"{what}: a result of {size}")

    async def _until_callable(self, method: str, timeout: float) -> float:
        """Wait until the View is ready and check that it has tools; the time that is left."""
        left = await self._readiness.until_ready(method, timeout)
        if not self.offered:
            text = f"{method}: {self.app} did not declare the tools capability"
            raise CapabilityMissing(text)
        return left
