"""`--forks N`: N processes run the tests that one process has collected.

The workers of xdist would import and collect everything again, and send each report through
messages of their own: a quarter of what the quick tier needs. Collecting starts no process and no
thread, so the tests can run in copies of the process that has collected them.

A test that ends its process has failed, and so has one that goes on although its time is over, as
where the code under test took the exception of pytest-timeout for its own: its process is ended
then. Another copy runs the tests that were left to it.
"""

import faulthandler
import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from ctypes import c_double, c_int
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest._io import TerminalWriter

_MAKING = get_context("fork")
_GRACE = float(os.environ.get("FORKS_GRACE", "60"))
"""Seconds that a test may go on for after its time is over."""
_LOOKS_EVERY = min(5.0, _GRACE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, metavar="N", help="run the tests in N processes")


def pytest_runtestloop(session: pytest.Session) -> object:
    count = session.config.getoption("--forks")
    if not count or session.config.option.collectonly or session.testsfailed:
        return None
    taken = _MAKING.Value("i", 0)
    forks = {fork.reports: fork for fork in (Fork(session, n, taken) for n in range(count))}
    try:
        _pass_on_reports(session, forks)
    finally:
        for fork in forks.values():
            fork.end()
    return True


def _pass_on_reports(session: pytest.Session, forks: "dict[Connection, Fork]") -> None:
    """Until every process has run its last test."""
    config, hook = session.config, session.config.hook
    while forks:
        for ready in wait(forks, timeout=_LOOKS_EVERY):
            fork = forks[ready]  # pyright: ignore[reportArgumentType]
            try:
                ran = fork.reports.recv()
            except EOFError:
                fork.process.join()
                _replace(forks, fork, f"The test ended its process ({fork.process.exitcode}).")
                continue
            if ran is None:
                del forks[fork.reports]
                fork.end()
                continue
            item = session.items[ran[0]]
            hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            for data in ran[1]:
                report = hook.pytest_report_from_serializable(config=config, data=data)
                hook.pytest_runtest_logreport(report=report)
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        for fork in list(forks.values()):
            if fork.is_overdue() and not fork.reports.poll():
                _replace(
                    forks, fork, f"The test went on after its time was over.\n\n{fork.stacks()}"
                )


def _replace(forks: "dict[Connection, Fork]", fork: "Fork", reason: str) -> None:
    """The test that a process was at has failed; another process runs what was left to it."""
    report = pytest.TestReport(
        nodeid=fork.test.nodeid,
        location=fork.test.location,
        keywords={},
        outcome="failed",
        longrepr=reason,
        when="call",
    )
    fork.session.config.hook.pytest_runtest_logreport(report=report)
    fork.end()
    del forks[fork.reports]
    following = fork.replacement()
    forks[following.reports] = following


def _print_elsewhere(capturing: Any) -> None:
    """What this process prints goes to files of its own. The streams stay: others know them."""
    capturing.suspend_global_capture()
    for capture in (capturing._global_capturing.out, capturing._global_capturing.err):
        if capture is not None:  # as with --capture=no
            with TemporaryFile() as own:
                os.dup2(own.fileno(), capture.tmpfile.fileno(), inheritable=False)
    capturing.resume_global_capture()


class Fork:
    """A copy of this process, which runs a share of the tests."""

    def __init__(
        self, session: pytest.Session, number: int, taken: Any, left: tuple[range, ...] = ()
    ) -> None:
        self.session = session
        self._number = number
        self._share = 4 * session.config.getoption("--forks")
        self._taken = taken  # so many tests have been given to processes
        self._left = left  # tests that a process before this one was given
        base = session.config._tmp_path_factory.getbasetemp()  # pyright: ignore[reportAttributeAccessIssue]
        self._folder = base / f"fork-{number}"
        self._made: list[object] = []  # reports of the current test
        self._at = _MAKING.RawValue(c_int, 0)  # the current test
        self._since = _MAKING.RawValue(c_double, time.monotonic())  # when it began
        self._given = _MAKING.RawArray(c_int, 3)  # end of its part; the next part's begin and end
        self._stacks = TemporaryFile("w+")  # noqa: SIM115 - the process may write there at any time
        self.reports, self._sending = _MAKING.Pipe(duplex=False)
        self.process = _MAKING.Process(target=self._run)
        self.process.start()
        self._sending.close()

    @property
    def test(self) -> pytest.Item:
        return self.session.items[self._at.value]

    def is_overdue(self) -> bool:
        """Whether it still runs a test that pytest-timeout should have ended a while ago."""
        limit = self.test.get_closest_marker("timeout")
        allowed = limit.args[0] if limit else float(self.session.config.getini("timeout") or 0)
        return 0 < allowed + _GRACE < time.monotonic() - self._since.value

    def stacks(self) -> str:
        """What its threads are doing."""
        os.kill(self.process.pid or 0, signal.SIGUSR2)
        time.sleep(1)  # a process that hangs tells nobody that it has written them
        self._stacks.seek(0)
        return self._stacks.read()

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self._stacks.close()

    def replacement(self) -> "Fork":
        stop, *following = self._given
        left = (range(self._at.value + 1, stop), range(*following))
        number = self._number + self.session.config.getoption("--forks")
        return Fork(self.session, number, self._taken, tuple(part for part in left if part))

    def _run(self) -> None:
        config: Any = self.session.config
        gc.set_threshold(20_000)  # there is memory enough, and each collection takes a while
        faulthandler.register(signal.SIGUSR2, self._stacks)
        self._folder.mkdir()
        config._tmp_path_factory._basetemp = self._folder
        plugins = config.pluginmanager
        _print_elsewhere(plugins.getplugin("capturemanager"))
        plugins.unregister(name="terminalreporter")
        plugins.register(SimpleNamespace(_tw=TerminalWriter(sys.stderr)), "terminalreporter")
        plugins.register(self)
        items = self.session.items
        parts = iter(self._parts())
        part = next(parts)
        while part:
            following = next(parts)
            self._given[:] = [part.stop, following.start, following.stop]
            for index in part:
                after = index + 1 if index + 1 in part else following.start
                self._at.value = index
                self._since.value = time.monotonic()
                config.hook.pytest_runtest_protocol(
                    item=items[index], nextitem=items[after] if after < len(items) else None
                )
                self._sending.send((index, self._made))
                self._made = []
            part = following
        self._sending.send(None)
        os._exit(0)  # what ends with a process of pytest, such as its summary, is the other's

    def _parts(self) -> Iterator[range]:
        yield from self._left
        while True:
            yield self._next_part()

    def _next_part(self) -> range:
        """The next tests of one file, which may share what they need; towards the end, fewer.

        One that may take long, as its mark says, is alone: nobody shall wait behind it.
        """
        items = self.session.items
        with self._taken.get_lock():
            start: int = self._taken.value
            end = start + -(-(len(items) - start) // self._share)
            if end > start and items[start].get_closest_marker("timeout"):
                end = start + 1
            while end > start and items[end - 1].path != items[start].path:
                end -= 1
            self._taken.value = end
        return range(start, end)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        config = self.session.config
        data = config.hook.pytest_report_to_serializable(config=config, report=report)
        self._made.append(data)
