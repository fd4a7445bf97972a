"""`transom gateway` with Views in Python: `viewing_gateway.py SURFACE CONFIG.json | -- COMMAND`."""

import asyncio
import sys
from importlib import import_module
from typing import Any

from transom.gateway import Gateway
from transom.gateway.configuration.config import read_config, server_from_command

URI = "ui://orders/list.html"


class Screen:
    """Loads what shows Views when there is something to show, as the real one does."""

    pictures = drives = False

    def __init__(self) -> None:
        self._closing: set[asyncio.Task[None]] = set()

    async def seat(self, client: str) -> Any:
        memory: Any = await asyncio.to_thread(import_module, "tests.gateway.memory")
        return await memory.Screen({URI: memory.Shop(self._with_leave)}).seat(client)

    def where(self) -> str:
        return "http://stage.test/"

    def _with_leave(self, app: Any) -> None:
        @app.tool(annotations={"readOnlyHint": True})
        async def leave() -> str:
            """Close this View."""
            self._closing.add(asyncio.create_task(app.close()))
            return "left"


async def main() -> None:
    surface: Any = sys.argv[1]
    if sys.argv[2] == "--":
        servers = [server_from_command(sys.argv[3:], name="orders")]
    else:
        servers = read_config(sys.argv[2])
    await Gateway(servers, renderer=Screen(), naming=surface, hung_after=0).serve_stdio()


if __name__ == "__main__":
    asyncio.run(main())
