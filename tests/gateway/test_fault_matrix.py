"""Everybody around a gateway fails in every way at every moment, in real processes.

Every call ends once and in time, the next one works, and nothing is left running. `make test` runs
some of the combinations, and `make faults` all of them.
"""

import asyncio
import os
import re
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from benchmarks.client import Client, client_of
from benchmarks.processes import command_of, marked
from tests.gateway.raw_client import ROOT
from tests.host.bare_view import BareView, text, tool
from tests.web.page import PageEnd, StagePage
from transom.errors import ChannelClosed

WITHIN = 90.0
"""Seconds for each answer, however busy the machine is."""
WHO = ("server", "browser", "page", "gateway", "client")
FAULTS = ("killed", "hung", "garbage", "slow", "half-closed")
WHEN = ("idle", "in a call", "while opening")
MEANINGLESS = {
    ("browser", "garbage"): "a browser sends what its page sends: see there",
    ("browser", "half-closed"): "its pipe is Playwright's own, and its page's socket is: see there",
    ("gateway", "garbage"): "what a gateway sends is what all other tests look at",
    ("gateway", "half-closed"): "its pipes are the client's and the server's: see there",
}
HARMLESS = {
    *(("server", "garbage"), ("server", "slow"), ("browser", "slow")),
    *(("page", "garbage"), ("page", "slow"), ("page", "half-closed")),
    *(("gateway", "hung"), ("gateway", "slow")),
    *(("client", "hung"), ("client", "garbage"), ("client", "slow")),
}
"""These cost a call nothing but time. A gateway that hangs for good is killed: see there."""
ENDS_THE_GATEWAY = {("gateway", "killed"), ("client", "killed"), ("client", "half-closed")}
"""After these the next call is another gateway's. After all others the View is gone, and with it
what was wrong: nothing but this says so, and then the next call works."""
CASES = [case for case in product(WHO, FAULTS, WHEN) if case[:2] not in MEANINGLESS]
IN_SHORT = {
    ("server", "killed", "while opening"),
    ("server", "garbage", "idle"),
    ("browser", "killed", "in a call"),
    ("page", "hung", "in a call"),
    ("page", "half-closed", "while opening"),
    ("gateway", "killed", "in a call"),
    ("gateway", "slow", "while opening"),
    ("client", "half-closed", "in a call"),
}


# --- the page --------------------------------------------------------------------------------


class FaultyPage:
    """The user's page, without a browser: it connects when the gateway prints its address."""

    def __init__(self) -> None:
        self.mounted = asyncio.Event()
        self._connected = asyncio.Event()
        self._pages: list[StagePage] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._views: list[BareView] = []

    def read(self, line: str) -> None:
        if found := re.search(r"(http://\S+)/#token=(\S+)", line):
            self._start(self._connect(SimpleNamespace(origin=found[1], token=found[2])))

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, stage: Any) -> None:
        page = StagePage(stage)
        page.on_mount = self._mount
        self._pages.append(page)
        await page.__aenter__()
        self._connected.set()
        await page.tell(do="surroundings", value={})

    def _mount(self, _: str, end: PageEnd) -> None:
        async def call(params: dict[str, Any]) -> Any:
            await asyncio.sleep(params.get("arguments", {}).get("seconds", 0))
            await self._connected.wait()
            return text("waited")

        wait = tool("wait", annotations={"readOnlyHint": True})
        view = BareView(end, {"tools/call": call, "tools/list": {"tools": [wait]}})
        self._views.append(view)
        view.session.start()
        self._start(self._introduce(view))
        self.mounted.set()

    async def _introduce(self, view: BareView) -> None:
        with suppress(Exception):  # the page may be gone before its View is there
            await asyncio.sleep(0.2)
            await self._connected.wait()
            await view.be_ready()

    async def fail(self, fault: str) -> None:
        page = self._pages[-1]
        assert page._socket is not None
        transport: Any = page._socket.transport
        if fault == "killed":
            await page.drop()
        elif fault == "hung":
            transport.pause_reading()
        elif fault == "slow":
            transport.pause_reading()
            asyncio.get_running_loop().call_later(2, transport.resume_reading)
        else:
            self._connected.clear()
            views, page.views = page.views, {}  # which outlive the socket, as in a browser
            if fault == "garbage":
                await page.write("no frame at all")
            else:
                transport.get_extra_info("socket").shutdown(1)
            await page.over()
            transport.abort()
            page.views = views
            await page.resume()
            self._connected.set()

    async def aclose(self) -> None:
        for view in self._views:
            with suppress(ChannelClosed):  # with its page
                await view.session.aclose()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for page in self._pages:
            if page._reader is not None and page._socket is not None:
                page._reader.cancel()
                await asyncio.gather(page._reader, return_exceptions=True)
                page._socket.transport.abort()


# --- the gateway -----------------------------------------------------------------------------


class Call:
    """One call: it ends once."""

    def __init__(self, client: Client, name: str, arguments: dict[str, Any]) -> None:
        self._client = client
        params = {"name": name, "arguments": arguments}
        self._id, self._answer = client.begin("tools/call", params)

    async def end(self, *, within: float = WITHIN) -> dict[str, Any]:
        """The result, or what went wrong as one."""
        async with asyncio.timeout(within):
            try:
                answer = await asyncio.shield(self._answer)
            except ConnectionError as gone:
                return {"gone": str(gone)}
        return answer.error if answer.error is not None else msgspec.json.decode(answer.result)

    async def give_up(self) -> None:
        """As a client does whose own time is up."""
        with pytest.raises(TimeoutError):
            await self.end(within=0.5)
        self._client.cancel(self._id)


class Running:
    """A gateway, its client, and whoever else there is."""

    def __init__(self, client: Client, mark: str, page: FaultyPage) -> None:
        self.client = client
        self.mark = mark
        self.page = page
        self.view = ""
        self._news = asyncio.Event()
        client.on_note = lambda _: self._news.set()

    def pids(self, word: str) -> list[int]:
        """Processes below the gateway with such a word in their command line."""
        others = [pid for pid in marked(self.mark) if pid != self.client.process.pid]
        return [pid for pid in others if any(word in each for each in command_of(pid))]

    def servers(self) -> list[int]:
        return self.pids("tests.gateway.fault_server")

    def browsers(self) -> list[int]:
        def is_part(pid: int) -> bool:
            return any(word.startswith("--type=") for word in command_of(pid))

        return [pid for pid in self.pids("--user-data-dir") if not is_part(pid)]

    def begin(self, name: str, **arguments: Any) -> Call:
        return Call(self.client, name, arguments)

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return await self.begin(name, **arguments).end()

    async def check_that_it_works(self) -> None:
        """The first call does, opens a View, and so does the View's tool."""
        assert words(await self.call("echo")) == ["echo"]
        shown = await self.call("show")
        found = re.search(r"View (\S+) is open", " ".join(words(shown)))
        assert found is not None, shown
        self.view = found[1]
        assert words(await self.call(f"{self.view}__wait", seconds=0)) == ["waited"]

    async def until_view_gone(self) -> None:
        """Wait until the client can know that the View is not there any more."""
        async with asyncio.timeout(WITHIN):
            while True:
                self._news.clear()
                index = await self.client.ask("resources/read", {"uri": "transom://views"})
                if f'"{self.view}\\"' not in bytes(index).decode():
                    return
                await self._news.wait()


def words(result: dict[str, Any]) -> list[str]:
    return [each.get("text", "") for each in result.get("content", [result])]


@asynccontextmanager
async def gateway(tmp_path: Path, fault: str, *, headless: bool) -> AsyncIterator[Running]:
    mark = f"TRANSOM_FAULTS={secrets.token_hex(8)}"
    name, _, value = mark.partition("=")
    env = {**os.environ, name: value, "XDG_RUNTIME_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    options = ["--headless" if headless else "--no-open", "--hung-after", "1"]
    command = [sys.executable, "-m", "tests.gateway.impatient_gateway", "gateway", *options]
    command += ["--", sys.executable, "-m", "tests.gateway.fault_server", fault]
    page = FaultyPage()
    try:
        async with client_of(command, env=env, cwd=str(ROOT), stderr=page.read) as client:
            async with asyncio.timeout(WITHIN):
                await client.initialize()
                await client.ask("tools/list")
            yield Running(client, mark, page)
        await until_none_is_left(mark)
    finally:
        await page.aclose()
        send_signal(marked(mark), signal.SIGKILL)


async def until_none_is_left(mark: str) -> None:
    async with asyncio.timeout(WITHIN):
        while marked(mark):  # noqa: ASYNC110 - there is no event for the end of strangers
            await asyncio.sleep(0.1)


# --- faults ----------------------------------------------------------------------------------


def send_signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


async def fail(at: Running, who: str, fault: str) -> None:
    """Let it happen."""
    if who == "page":
        await at.page.fail(fault)
    elif who == "client":
        await fail_client(at, fault)
    elif who == "server" and fault not in ("killed", "hung"):
        send_signal(at.servers()[-1:], signal.SIGUSR1)
    else:
        own = {"server": at.servers, "browser": at.browsers}
        pids = own[who]() if who in own else [at.client.process.pid]
        assert pids
        if fault == "killed":
            send_signal(pids, signal.SIGKILL)
        elif fault == "hung":
            send_signal(pids, signal.SIGSTOP)
            if who == "gateway":
                await asyncio.sleep(1.0)
                send_signal(pids, signal.SIGCONT)
        else:
            for _ in range(20):
                send_signal(pids, signal.SIGSTOP)
                await asyncio.sleep(0.05)
                send_signal(pids, signal.SIGCONT)
                await asyncio.sleep(0.02)


async def fail_client(at: Running, fault: str) -> None:
    stdin, stdout = at.client.process.stdin, at.client.process.stdout
    assert stdin is not None
    assert stdout is not None
    transport: Any = stdout._transport  # type: ignore[attr-defined]
    match fault:
        case "killed":
            stdin.close()
            transport.close()
        case "hung":
            transport.pause_reading()
            calls = [at.begin("large") for _ in range(20)]
            await asyncio.sleep(1.0)
            transport.resume_reading()
            for call in calls:
                assert len(words(await call.end())[0]) == 500_000
        case "garbage":
            for line in (b"\xff\xfe", b"{" * 3000, b"[]", b'""', b'{"id":{}}', b"x" * 100_000):
                stdin.write(line + b"\n")
        case "slow":
            write, pieces = stdin.write, list[bytes]()
            stdin.write = pieces.append  # type: ignore[method-assign]
            call = at.begin("echo")
            stdin.write = write  # type: ignore[method-assign]
            line = b"".join(pieces)
            for start in range(0, len(line), 8):
                stdin.write(line[start : start + 8])
                await asyncio.sleep(0.02)
            assert words(await call.end()) == ["echo"]
        case _:
            stdin.close()


async def under_way(at: Running, who: str, fault: str, when: str) -> Call | None:
    """The call that the fault happens to."""
    if when == "idle":
        return None
    if when == "in a call":
        if who in ("browser", "page"):
            call = at.begin(f"{at.view}__wait", seconds=1.5)
        else:
            call = at.begin("wait", seconds=60 if (who, fault) == ("server", "hung") else 1.5)
        await at.client.ask("ping")
        return call
    at.page.mounted.clear()
    call = at.begin("show", seconds=1.5)
    async with asyncio.timeout(WITHIN):
        if who != "browser":
            await at.page.mounted.wait()
        else:
            while not at.browsers():  # noqa: ASYNC110 - there is no event for a stranger's start
                await asyncio.sleep(0.02)
    return call


async def meet_the_hung(at: Running, who: str) -> None:
    """Nobody knows that somebody hangs before a call meets him. It ends all the same."""
    if who == "server":
        await at.begin("echo").give_up()
    else:
        assert (await at.call(f"{at.view}__wait")).get("isError")


# --- the matrix ------------------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        every = metafunc.config.getoption("--tier") == "nightly"
        cases = [case for case in CASES if every or case in IN_SHORT]
        metafunc.parametrize("case", cases, ids=[" ".join(case) for case in cases])


@pytest.mark.processes
@pytest.mark.timeout(300)
async def test_every_call_ends_once_the_next_works_and_nothing_is_left_running(
    case: tuple[str, str, str], tmp_path: Path
) -> None:
    who, fault, when = case
    async with gateway(tmp_path, fault, headless=who == "browser") as at:
        if who != "browser" or when != "while opening":
            await at.check_that_it_works()
        call = await under_way(at, who, fault, when)
        await fail(at, who, fault)
        if call is not None and (who, fault) == ("server", "hung"):
            await call.give_up()
        elif call is not None:
            outcome = await call.end()
            if case[:2] in HARMLESS:
                assert set(words(outcome)) & {"waited", "wait", "show"}, outcome
        # A page that reads nothing may still have answered the call that was under way.
        if fault == "hung" and case[:2] not in HARMLESS and (call is None or who == "page"):
            await meet_the_hung(at, who)
        if case[:2] in ENDS_THE_GATEWAY:
            async with asyncio.timeout(WITHIN):
                code = await at.client.process.wait()
            assert code == (-signal.SIGKILL if who == "gateway" else 0)
        else:
            if at.view and case[:2] not in HARMLESS:
                await at.until_view_gone()
            await at.check_that_it_works()
            async with asyncio.timeout(WITHIN):
                assert await at.client.aclose(patience=WITHIN) == 0
        assert [line for line in at.client.stray if '"id":null' not in line] == []
    if case[:2] in ENDS_THE_GATEWAY:
        async with gateway(tmp_path, fault, headless=False) as another:
            await another.check_that_it_works()


def test_every_combination_is_run_or_has_a_reason() -> None:
    assert len(CASES) + len(MEANINGLESS) * len(WHEN) == len(WHO) * len(FAULTS) * len(WHEN)
    assert set(CASES) >= IN_SHORT
    assert {who for who, _, _ in IN_SHORT} == set(WHO)
    assert {fault for _, fault, _ in IN_SHORT} == set(FAULTS)
    assert {when for _, _, when in IN_SHORT} == set(WHEN)
