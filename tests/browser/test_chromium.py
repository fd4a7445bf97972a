"""A Chromium that runs by itself: renderers of several event loops use it, one after the other."""

import asyncio
import gc
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.browser.hosting import (
    descendants,
    hosted,
    processes,
    show,
    shows_pages,
    signal_all,
    until_gone,
)
from transom.errors import TransomError
from transom.web.local.chromium import ChromiumProcess, find_chromium
from transom.web.local.headless import HeadlessRenderer

pytestmark = pytest.mark.processes

START = """
import asyncio, os, signal
from transom.web.local.chromium import ChromiumProcess
process = ChromiumProcess()
asyncio.run(process.address(""))
print(process._profile.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""

START_HUNG = START.replace(
    "os.kill(os",
    "os.killpg(process._process.pid, signal.SIGSTOP)\n"
    "os.kill(process._process.pid, signal.SIGCONT)\nos.kill(os",
)


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


@pytest.mark.nightly
async def test_one_that_does_not_answer_is_replaced_after_the_renderer_that_waited_for_it() -> None:
    process = ChromiumProcess()
    hung = await use(process)
    signal_all(hung, signal.SIGSTOP)
    async with HeadlessRenderer(process=process, timeout=1) as renderer:
        with pytest.raises(
            TransomError, match="could not be started: it did not answer within 1 s$"
        ):
            await renderer.show_page()
    assert not set(await use(process)) & set(hung)
    await asyncio.to_thread(process.close)


async def test_one_that_never_says_where_it_listens_is_ended_and_nothing_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "chromium"
    script.write_text("#!/bin/sh\nexec sleep 600\n")
    script.chmod(0o755)
    monkeypatch.setenv("TRANSOM_CHROMIUM", str(script))
    logged: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
    async with HeadlessRenderer(process=ChromiumProcess(), timeout=0.5) as renderer:
        with pytest.raises(TransomError, match="it did not answer within 0.5 s"):
            await renderer.show_page()
    assert processes(str(script)) == []
    del renderer
    gc.collect()
    assert logged == []


@pytest.mark.parametrize(
    ("which", "number"),
    [(0, signal.SIGKILL), (-1, signal.SIGSTOP)],
    ids=["its keeper is gone", "a child hangs"],
)
async def test_all_of_it_ends_whatever_state_it_is_in(which: int, number: signal.Signals) -> None:
    process = ChromiumProcess()
    await process.address("")
    mark = mark_of(process)
    signal_all([processes(mark)[which]], number)
    await asyncio.to_thread(process.close)
    assert processes(mark) == []


@pytest.mark.nightly
async def test_one_that_hangs_ends_with_the_process_that_started_it() -> None:
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-c", START_HUNG, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await started.communicate()
    await until_gone(printed.decode().strip())


async def test_it_begins_without_a_page_whose_loading_playwright_would_wait_for() -> None:
    process = ChromiumProcess()
    url = urlsplit(await process.address(""))
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"http://{url.netloc}/json/list")
    assert [each for each in answer.json() if each["type"] == "page"] == []
    await asyncio.to_thread(process.close)


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


async def test_playwrights_chromium_without_a_window_is_found_if_it_alone_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "chromium_headless_shell-1254" / "chrome-linux" / "headless_shell"
    there.parent.mkdir(parents=True)
    there.write_text(f'#!/bin/sh\nexec {find_chromium()} "$@"')
    there.chmod(0o755)
    monkeypatch.setattr("transom.web.local.chromium.find_chromium", lambda: None)
    process = ChromiumProcess()
    address = await process.address(str(tmp_path / "chromium-1254" / "chrome-linux" / "chrome"))
    assert address.startswith("ws://127.0.0.1:")
    mark = mark_of(process)
    process.close()  # also where an event loop runs
    assert processes(mark) == []


# It is started as another user, who may be forbidden what its sandbox needs.
AS_ANOTHER = r"""#!/bin/sh
for given; do case $given in --user-data-dir=*) chown -R 65534 "${given#*=}" ;; esac; done
another="setpriv --reuid=65534 --clear-groups --inh-caps=-all --ambient-caps=-all"
FORBID exec $another CHROMIUM "$@"
"""
FORBID = r"""
exec $another unshare --user --map-current-user --keep-caps /bin/sh -c '
echo 0 >/proc/sys/user/max_user_namespaces
exec setpriv --inh-caps=-all --ambient-caps=-all "$@"' sh CHROMIUM "$@"
"""


def confined(pid: int) -> bool:
    """Whether a process has another namespace of users, and may make few calls of the system."""
    status = Path(f"/proc/{pid}/status").read_text()
    own = Path(f"/proc/{pid}/ns/user").readlink() != Path("/proc/self/ns/user").readlink()
    return own and "Seccomp:\t2" in status


def is_possible() -> bool:
    """Whether this can be tried here: root can be another user, who has namespaces."""
    another = ["setpriv", "--reuid=65534", "--clear-groups", "unshare", "--user", "true"]
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("setpriv") is None:
        return False
    return subprocess.run(another, check=False).returncode == 0


@pytest.mark.skipif(not is_possible(), reason="not root, or other users have no namespaces")
@pytest.mark.parametrize(
    ("is_shared", "is_allowed"),
    [
        (False, True),
        (True, False),
        pytest.param(True, True, marks=pytest.mark.nightly),
        pytest.param(False, False, marks=pytest.mark.nightly),
    ],
)
async def test_views_without_a_window_are_in_chromiums_process_sandbox_if_the_system_allows_it(
    is_shared: bool,
    is_allowed: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole = find_chromium()
    assert whole is not None
    script = tmp_path / "chromium"
    text = AS_ANOTHER.replace("FORBID", "" if is_allowed else FORBID)
    script.write_text(text.replace("CHROMIUM", whole))
    script.chmod(0o755)
    monkeypatch.setenv("TRANSOM_CHROMIUM", str(script))
    monkeypatch.setattr("transom.web.local.chromium._is_root", lambda: False)
    others = set(descendants(os.getpid()))  # browsers that tests share
    process = ChromiumProcess() if is_shared else None
    async with hosted(HeadlessRenderer(process=process)) as host:
        await show(host)
        pages = [pid for pid in set(descendants(os.getpid())) - others if shows_pages(pid)]
        assert pages
        assert [confined(pid) for pid in pages] == [is_allowed] * len(pages)
    assert ("without its process sandbox" in caplog.text) is not is_allowed
    if process is not None:
        await asyncio.to_thread(process.close)
