"""Calls the tools of a server, those that may be called, and notes what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from transom.check.client import Answered, Conversation, NoAnswer
from transom.check.examples import fitting_arguments, unfitting_arguments
from transom.check.facts import ListedTool
from transom.check.snapshot import Call, CallKind, RpcFault, Visit
from transom.json_values import JsonObject, as_object

__all__ = ["Caller", "Calling"]


class Calling(msgspec.Struct, frozen=True, kw_only=True):
    """Which tools may be called, and with what."""

    all: bool = False
    """Also those that do not say they only read."""
    arguments: Mapping[str, JsonObject] = {}
    """Arguments by tool name, instead of made-up ones; a tool named here may be called."""
    max_calls: int = 100
    max_silent: int = 3
    """Calls in a row without an answer, after which no more are made."""


class Caller:
    """Makes the calls. `announce` hears of steps to come and of each one; `note` of trouble."""

    def __init__(
        self,
        calling: Calling,
        announce: Callable[[int, str], None],
        note: Callable[[str], None],
    ) -> None:
        self._calling = calling
        self._announce = announce
        self._note = note
        self.calls: list[Call] = []
        self.uncalled: list[tuple[str, str]] = []

    async def call_tools(self, server: Conversation, tools: Sequence[ListedTool]) -> None:
        """Call each tool that may be called: as it should be, again, and as it should not be."""
        chosen = self._chosen(tools)
        self._announce(len(chosen), "")
        silent = 0
        for position, tool in enumerate(chosen):
            if server.closed is not None or silent >= self._calling.max_silent:
                why = server.closed or f"{silent} calls in a row got no answer"
                self.uncalled.extend((left.name, why) for left in chosen[position:])
                self._note(f"no more tools were called: {why}")
                return
            self._announce(0, f"calling {tool.name}")
            call = await self._call(server, tool, "example")
            silent = silent + 1 if call and call.problem else 0
            if call is None or call.problem is not None:
                continue
            if tool.hints("idempotentHint") and not tool.hints("readOnlyHint"):
                await self._call(server, tool, "again")
            await self._call(server, tool, "invalid")

    async def call_as_text(self, server: Conversation, apps: Visit, text: Visit) -> None:
        """Call the tools that have a View once more, as a client that shows none."""
        answered = {call.tool for call in self.calls if call.problem is None}
        for tool in apps.tools:
            if tool.link is None or tool.name not in answered or server.closed is not None:
                continue
            if text.tool(tool.name) is not None:
                await self._call(server, tool, "example", "text")

    def _chosen(self, tools: Sequence[ListedTool]) -> list[ListedTool]:
        chosen: list[ListedTool] = []
        for tool in tools:
            if tool.raw.get("name") != tool.name:
                self.uncalled.append((tool.name, "it has no name to call it by"))
                continue
            safe = tool.hints("readOnlyHint") and not tool.hints("destructiveHint")
            allowed = safe or self._calling.all or tool.name in self._calling.arguments
            if not allowed:
                self.uncalled.append((tool.name, "not marked read-only; --call-all calls it"))
            elif len(chosen) >= self._calling.max_calls:
                limit = f"no more than {self._calling.max_calls} tools are called"
                self.uncalled.append((tool.name, limit))
            else:
                chosen.append(tool)
        return chosen

    async def _call(
        self,
        server: Conversation,
        tool: ListedTool,
        kind: CallKind,
        client: Literal["apps", "text"] = "apps",
    ) -> Call | None:
        arguments = self._arguments(tool, kind)
        if arguments is None:
            if kind == "example":
                self.uncalled.append((tool.name, "no arguments could be made from its schema"))
            return None
        call = Call(tool.name, arguments, client, kind)
        try:
            asked: JsonObject = {"name": tool.name, "arguments": arguments}
            result = await server.request("tools/call", asked)
            call = msgspec.structs.replace(call, result=result)
        except Answered as error:
            fault = RpcFault(error.code, error.message)
            call = msgspec.structs.replace(call, fault=fault)
        except NoAnswer as error:
            call = msgspec.structs.replace(call, problem=str(error))
            self._note(f"tool {tool.name}: {error}")
        self.calls.append(call)
        return call

    def _arguments(self, tool: ListedTool, kind: CallKind) -> JsonObject | None:
        schema = as_object(tool.raw.get("inputSchema"))
        if kind == "invalid":
            return unfitting_arguments(schema)
        if tool.name in self._calling.arguments:
            return self._calling.arguments[tool.name]
        return fitting_arguments(schema)
