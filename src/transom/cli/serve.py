"""Runs a server object from a Python file or module over stdio: `python -m transom.cli.serve X`.

X is `FILE.py`, `FILE.py:name`, `module` or `module:name`. Without a name, the server is the one
called `mcp`, `server` or `app`, or the only one there is. A file that has none runs as a script: it
starts its server by itself.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import runpy
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from mcp.server import Server
from mcp.server.stdio import stdio_server

from transom.errors import UsageError

_USUAL_NAMES = ("mcp", "server", "app")


def main(text: str) -> None:
    """Load the server and run it until stdin closes."""
    place, _, name = text.rpartition(":") if ":" in text[2:] else (text, "", "")
    path = Path(place)
    if place.endswith(".py"):
        sys.path.insert(0, str(path.resolve().parent))
        sys.argv = [place]
        server = find_server(_load(path), name)
        if server is None:
            runpy.run_path(place, run_name="__main__")
            return
    else:
        sys.path.insert(0, "")
        server = find_server(importlib.import_module(place), name)
        if server is None:
            raise UsageError(f"there is no MCP server in {place}: name one, as in {place}:server")
    asyncio.run(_serve(server))


def find_server(module: ModuleType, name: str = "") -> object | None:
    """The server object in `module`, or `None` when it has none."""
    if name:
        found: object = module
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not None and not _is_server(found) and callable(found):
            found = found()
        if not _is_server(found):
            raise UsageError(f"{name} in {module.__name__} is not an MCPServer, FastMCP or Server")
        return found
    servers = {key: value for key, value in vars(module).items() if _is_server(value)}
    for usual in _USUAL_NAMES:
        if usual in servers:
            return servers[usual]
    different = {id(value): value for value in servers.values()}
    if len(different) > 1:
        raise UsageError(f"there are several servers, name one: {', '.join(sorted(servers))}")
    return next(iter(different.values()), None)


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _is_server(value: object) -> bool:
    if isinstance(value, type):
        return False
    return isinstance(value, Server) or callable(getattr(value, "run_stdio_async", None))


async def _serve(server: object) -> None:
    if isinstance(server, Server):
        lowlevel = cast("Server[Any]", server)
        async with stdio_server() as (read, write):
            await lowlevel.run(read, write, lowlevel.create_initialization_options())
        return
    run: Callable[[], Coroutine[Any, Any, None]] = getattr(server, "run_stdio_async")  # noqa: B009
    await run()


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except UsageError as error:
        sys.exit(f"transom: {error}")
