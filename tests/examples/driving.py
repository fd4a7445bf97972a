"""An example's View in Chromium, as a model and a user have it."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transom import Tool, ToolResult
from transom.testing import OpenedView

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

    def __init__(self, opened: OpenedView, module: Any) -> None:
        self.opened = opened
        self.module = module
        self.host = opened.host
        self.view = opened.view
        self.page = opened.page
        self.result = opened.result

    async def call(self, tool: str, /, **arguments: Any) -> ToolResult:
        """Call a tool of the View, as the model does; it must work."""
        result = await self.opened.call(tool, **arguments)
        assert not result.is_error, result.text
        return result

    async def refusal(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool of the View, as the model does; it must say no. What it says."""
        result = await self.opened.call(tool, **arguments)
        assert result.is_error, result.text
        return result.text

    async def tools(self) -> dict[str, Tool]:
        """The View's tools, as a model has them."""
        await self.host.list_tools()
        return self.opened.tools

    async def tools_when(self, so: Callable[[dict[str, Tool]], bool]) -> dict[str, Tool]:
        """The same, as soon as they are so."""
        await self.opened.wait_for_tools(so, timeout=60)
        return self.opened.tools


def enum(tools: dict[str, Tool], tool: str, argument: str) -> list[Any]:
    """What an argument may be, as the model is told."""
    return tools[tool].input_schema["properties"][argument]["enum"]
