"""An example's View in Chromium, as a model and a user have it."""

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transom import Tool
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


async def tools_when(view: OpenedView, so: Callable[[Mapping[str, Tool]], bool]) -> dict[str, Tool]:
    """The View's tools, as soon as they are so; a busy machine may take its time."""
    await view.wait_for_tools(so, timeout=60)
    return view.tools


def enum(tools: dict[str, Tool], tool: str, argument: str) -> list[Any]:
    """What an argument may be, as the model is told."""
    return tools[tool].input_schema["properties"][argument]["enum"]
