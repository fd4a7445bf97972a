"""An example's View in Chromium, as a model and a user have it."""

import asyncio
import importlib.util
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.async_api import FrameLocator

from tests.browser.hosting import inside
from transom import Host, Tool, ToolResult
from transom.host.view import View
from transom.web.headless import HeadlessRenderer

EXAMPLES = Path(__file__).parents[2] / "examples"


def fresh(name: str) -> Any:
    """An example's module, with data that no other test has touched."""
    spec = importlib.util.spec_from_file_location(f"fresh_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Shown:
    """One View: `call` is what its model does, `page` is what its user sees."""

    def __init__(self, host: Host, view: View, module: Any, result: ToolResult) -> None:
        self.host = host
        self.view = view
        self.module = module
        self.result = result
        self._changed = asyncio.Event()
        host.on_tools_changed = lambda *_: self._changed.set()

    @property
    def page(self) -> FrameLocator:
        """The View's page."""
        renderer = self.host.renderer
        assert isinstance(renderer, HeadlessRenderer)
        assert renderer.page is not None
        return inside(renderer.page, f'[id="view-{self.view.id}"]')

    async def call(self, tool: str, /, **arguments: Any) -> ToolResult:
        """Call a tool of the View, as the model does; it must work."""
        result = await self.host.call_tool(f"{self.view.id}__{tool}", arguments)
        assert not result.is_error, result.text
        return result

    async def refusal(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool of the View, as the model does; it must say no. What it says."""
        result = await self.host.call_tool(f"{self.view.id}__{tool}", arguments)
        assert result.is_error, result.text
        return result.text

    async def tools(self) -> dict[str, Tool]:
        """The View's tools on the host's surface, by the View's names for them."""
        mine = f"{self.view.id}__"
        return {
            tool.name.removeprefix(mine): tool
            for tool in await self.host.list_tools()
            if tool.name.startswith(mine)
        }

    async def tools_when(self, so: Callable[[dict[str, Tool]], bool]) -> dict[str, Tool]:
        """The same, as soon as they are so."""
        async with asyncio.timeout(60):
            while True:
                self._changed.clear()
                tools = await self.tools()
                if so(tools):
                    return tools
                with suppress(TimeoutError):  # a lazy schema changes without a word
                    async with asyncio.timeout(0.1):
                        await self._changed.wait()


def enum(tools: dict[str, Tool], tool: str, argument: str) -> list[Any]:
    """What an argument may be, as the model is told."""
    return tools[tool].input_schema["properties"][argument]["enum"]
