"""A Chromium that runs by itself: renderers of several event loops use it, one after the other."""

import asyncio
import signal
import sys

import pytest

from tests.browser.hosting import hosted, processes, show, signal_all, until_gone
from transom.errors import TransomError
from transom.web.chromium import ChromiumProcess
from transom.web.headless import HeadlessRenderer

pytestmark = pytest.mark.processes

START = """
import asyncio, os, signal
from transom.web.chromium import ChromiumProcess
process = ChromiumProcess()
asyncio.run(process.address(""))
print(process._profile.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def mark_of(process: ChromiumProcess) -> str:
    """What its processes have in their command lines."""
    assert process._profile is not None
    return f"--user-data-dir={process._profile.path}"


async def use(process: ChromiumProcess) -> list[int]:
    """Open a View in it; its processes then."""
    renderer = HeadlessRenderer(process=process, size=(700, 500))
    async with hosted(renderer) as host:
        view = await show(host)
        assert (await view.screenshot()).startswith(b"\x89PNG")
        return processes(mark_of(process))


def test_it_serves_one_event_loop_after_the_other_and_is_replaced_when_it_dies() -> None:
    process = ChromiumProcess()
    first = asyncio.run(use(process))
    again = asyncio.run(use(process))
    assert again[0] == first[0]
    mark = mark_of(process)
    signal_all(again, signal.SIGKILL)
    asyncio.run(until_gone(mark))
    other = asyncio.run(use(process))
    assert other[0] != first[0]
    mark = mark_of(process)
    process.close()
    assert processes(mark) == []


async def test_it_ends_with_the_process_that_started_it() -> None:
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-c", START, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await started.communicate()
    await until_gone(printed.decode().strip())


async def test_why_it_did_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSOM_CHROMIUM", "/nowhere/chromium")
    process = ChromiumProcess()
    with pytest.raises(TransomError, match="/nowhere/chromium: not found"):
        await process.address("")
    await asyncio.to_thread(process.close)
