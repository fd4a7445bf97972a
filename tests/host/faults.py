"""A server whose tool fails as a test says, and a View that loads again without tools."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.host.bare_view import BareView
from transom import Tool
from transom.errors import TransomError


class FaultyServer:
    """A server with the tool `stock`; each call of it raises `error`."""

    capabilities: Mapping[str, Any] = {"tools": {}}
    current = True

    def __init__(self, error: TransomError) -> None:
        self.error = error

    async def tools(self) -> dict[str, Tool]:
        return {"stock": Tool("stock")}

    async def tool(self, name: str) -> Tool | None:
        return (await self.tools()).get(name)

    async def request(self, method: str, params: Any = None, *, on_progress: Any = None) -> bytes:
        raise self.error

    def subscribe(self, observer: Callable[[str], object]) -> Callable[[], None]:
        return lambda: None


async def reload_without_tools(view: BareView) -> None:
    """The page of the View is loaded again, and this time it declares no tools."""
    await view.be_ready({})
