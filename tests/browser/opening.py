"""`transom open` as a command that tests run."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.browser.views import html
from tests.cli.running import TRANSOM
from tests.processes import ended

ROOT = Path(__file__).parents[2]
ORDERS = ROOT / "examples" / "orders.py"


class Run:
    """The command while it runs, and what it printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def line(self) -> str:
        assert self.process.stdout is not None
        line = (await self.process.stdout.readline()).decode()
        assert line, (await self.stderr(), self.lines)
        self.lines.append(line)
        return line

    async def event(self, kind: str) -> dict[str, Any]:
        """Read events up to the next of that kind."""
        while True:
            event = json.loads(await self.line())
            if event["event"] == kind:
                return event

    async def stderr(self) -> str:
        assert self.process.stderr is not None
        return (await self.process.stderr.read()).decode()

    async def error_line(self, word: str) -> str:
        """Read standard error up to a line with this word."""
        assert self.process.stderr is not None
        while True:
            line = (await self.process.stderr.readline()).decode()
            assert line, "the command ended"
            if word in line:
                return line


@asynccontextmanager
async def transom_open(*arguments: str, **environment: str) -> AsyncIterator[Run]:
    """The command, in a process group of its own, which is gone afterwards."""
    process = await asyncio.create_subprocess_exec(
        *(*TRANSOM, "open", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "COLUMNS": "100", **environment},
        cwd=ROOT,
        limit=16 * 1024 * 1024,
        start_new_session=True,
    )
    try:
        yield Run(process)
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        await ended(process)


async def ran(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """Run it to its end: exit code, standard output, standard error."""
    async with transom_open(*arguments, **environment) as run:
        out, err = await run.process.communicate()
        assert run.process.returncode is not None
        return run.process.returncode, out.decode(), err.decode()


async def events_of(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """Run it without a window; its exit code and its events."""
    code, out, err = await ran(*arguments, "--headless", "--json")
    assert "Traceback" not in err, err
    return code, [json.loads(line) for line in out.splitlines()]


def server_with(folder: Path, script: str) -> str:
    """A server in a file, whose tool `show` opens a View with this script."""
    page = folder / "view.html"
    page.write_text(html(script))
    file = folder / "made.py"
    file.write_text(
        "from pathlib import Path\n"
        "from mcp.server.mcpserver import MCPServer\n"
        "from transom.server import Views\n"
        "views = Views()\n"
        f"page = views.add('ui://made/x.html', html=Path({str(page)!r}))\n"
        "@views.tool(opens=page)\n"
        "def show() -> str:\n    '''Open a View.'''\n"
        "    return 'shown'\n"
        "server = MCPServer('made', extensions=[views])\n"
    )
    return str(file)
