"""Runs a server object from a Python file or module over stdio: `python -m transom.cli.serve X`.

X is `FILE.py`, `FILE.py:name`, `module` or `module:name`. Without a name, the server is the one
called `mcp`, `server` or `app`, or the only one there is. A file that has none runs as a script: it
starts its server by itself.

With `--spare` it loads what the server needs from installed packages, and waits for a byte on stdin
before it loads the server: so the next start of a server that its author edits takes no time.

Its log shows warnings and worse, an exception in it as one line with the place in the user's code.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import importlib.util
import inspect
import logging
import os
import runpy
import select
import sys
import sysconfig
import traceback
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server

from transom.connections.process import NOT_THE_USERS, cause
from transom.errors import UsageError
from transom.python_files import load_python_file
from transom.server.views import Views


class ServeError(UsageError):
    """What was named cannot be served."""


_USUAL_NAMES = ("mcp", "server", "app")


def main(text: str) -> None:
    """Load the server and run it until stdin closes."""
    place, _, name = text.rpartition(":") if ":" in text[2:] else (text, "", "")
    path = Path(place)
    if place.endswith(".py"):
        sys.argv = [place]
        module = load_python_file(path)
        server = find_server(module, name)
        if server is None:
            runpy.run_path(place, run_name="__main__")
            if _input_is_open():
                raise ServeError(_NO_SERVER.format(place=place, name=path.stem))
            return
    else:
        sys.path.insert(0, "")
        module = importlib.import_module(place)
        server = find_server(module, name)
        if server is None:
            raise ServeError(f"there is no MCP server in {place}: name one, as in {place}:server")
    _check_views(module, server)
    _log_briefly()
    asyncio.run(_serve(server))


def wait_as_spare(text: str) -> None:
    """Load the installed packages that the server imports, then wait until it is to start.

    None of its own modules: they may be others by then.
    """
    place = text.rpartition(":")[0] if ":" in text[2:] else text
    path = Path(place)
    if not place.endswith(".py"):
        path = Path(*place.split(".")).with_suffix(".py")
    sys.path.insert(0, str(path.resolve().parent))
    installed = tuple(sysconfig.get_paths()[key] for key in ("stdlib", "purelib", "platlib"))
    _load_imports(path, installed, set())
    sys.path.pop(0)
    importlib.invalidate_caches()
    if not os.read(0, 1):
        sys.exit()


def _load_imports(path: Path, installed: tuple[str, ...], seen: set[tuple[str, ...]]) -> None:
    """Load what a file imports from installed packages; likewise what its own modules import."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return  # which the server's own start will report
    for node in ast.walk(tree):
        parts: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names, parts = [node.module], [each.name for each in node.names]
        else:
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            if (name, *parts) in seen:
                continue
            seen.add((name, *parts))
            with suppress(Exception):  # the server may catch it, and do without
                spec = importlib.util.find_spec(name.partition(".")[0])
                origin = "" if spec is None or spec.origin is None else spec.origin
                if origin.startswith(installed):
                    module = importlib.import_module(name)
                    for part in parts:  # some packages load what is in them when it is used
                        getattr(module, part, None)
                elif origin:
                    _load_imports(Path(origin), installed, seen)


_NO_SERVER = """\
there is no MCP server in {place}. Write one at the top level of the file:
    server = MCPServer("{name}", extensions=[views])"""


def _input_is_open() -> bool:
    """Whether a script that ended has left its client waiting: it was no server."""
    if sys.platform == "win32":  # where one cannot look into a pipe
        return False
    readable, _, _ = select.select([0], [], [], 0)
    return not readable or os.read(0, 1) != b""


def _check_views(module: ModuleType, server: object) -> None:
    for name, value in vars(module).items():
        if isinstance(value, Views) and not value.installed:
            called = next((key for key, each in vars(module).items() if each is server), "server")
            write = f"{called} = MCPServer(…, extensions=[{name}])"
            if not isinstance(server, MCPServer):
                write = f"{name}.install({called})"
            raise ServeError(f"the server does not have its Views ({name}). Write: {write}")


def _log_briefly() -> None:
    brief = logging.StreamHandler()
    brief.setLevel(logging.WARNING)
    brief.setFormatter(_Brief("%(levelname)s: %(message)s"))
    root = logging.getLogger()
    others = [each for each in root.handlers if type(each).__name__ not in _FOR_THE_TERMINAL]
    root.handlers = [*others, brief]


_FOR_THE_TERMINAL = {"RichHandler", "StreamHandler"}


class _Brief(logging.Formatter):
    """A record with its exception in one line: what it was, and the user's own line."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        """The first exception of a chain: the others say only that there was one."""
        error: BaseException = ei[1]
        while error.__cause__ is not None:
            error = error.__cause__
        text = "".join(traceback.format_exception(error, chain=False))
        return f"  {cause(text) or text}"


def own_traceback(error: BaseException) -> str:
    """A traceback that begins in the user's own files: without what loads and runs them."""
    shown = traceback.TracebackException.from_exception(error)
    chain: list[traceback.TracebackException | None] = [shown]
    while chain:
        if (each := chain.pop()) is None:
            continue
        chain += [each.__cause__, each.__context__]
        own = [at for at, frame in enumerate(each.stack) if not _is_foreign(frame.filename)]
        if own or isinstance(error, SyntaxError):  # whose own line is no frame
            each.stack = traceback.StackSummary.from_list(
                each.stack[own[0] if own else len(each.stack) :]
            )
    return "".join(shown.format())


def _is_foreign(file: str) -> bool:
    return NOT_THE_USERS.search(file) is not None


def find_server(module: ModuleType, name: str = "") -> object | None:
    """The server object in `module`, or `None` when it has none."""
    if name:
        found: object = module
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not None and not _is_server(found) and callable(found):
            found = found()
        if not _is_server(found):
            raise ServeError(f"{name} in {module.__name__} is not an MCPServer, FastMCP or Server")
        return found
    servers = {key: value for key, value in vars(module).items() if _is_server(value)}
    for usual in _USUAL_NAMES:
        if usual in servers:
            return servers[usual]
    different = {id(value): value for value in servers.values()}
    if len(different) > 1:
        raise ServeError(f"there are several servers, name one: {', '.join(sorted(servers))}")
    return next(iter(different.values()), None)


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
    run: Callable[..., Coroutine[Any, Any, None]] = getattr(server, "run_stdio_async")  # noqa: B009
    banner = {"show_banner": False} if "show_banner" in inspect.signature(run).parameters else {}
    await run(**banner)


if __name__ == "__main__":
    try:
        if sys.argv[1] == "--spare":
            del sys.argv[1]
            wait_as_spare(sys.argv[1])
        main(sys.argv[1])
    except ServeError as error:
        sys.exit(f"transom: {error}")
    except Exception as error:  # noqa: BLE001 - whatever it is, it ends here
        sys.stderr.write(own_traceback(error))
        sys.stderr.flush()
        os._exit(1)  # at once: who started it waits to say why it died
