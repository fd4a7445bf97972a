"""`--forks N`: N processes run the tests that one process has collected.

The workers of xdist would import and collect everything again, and send each report through
messages of their own: a quarter of what the quick tier needs. Collecting starts no process and no
thread, so the tests can run in copies of the process that has collected them.
"""

import gc
import os
import sys
from ctypes import c_int
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest._io import TerminalWriter

_MAKING = get_context("fork")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, metavar="N", help="run the tests in N processes")


def pytest_runtestloop(session: pytest.Session) -> object:
    count = session.config.getoption("--forks")
    if not count or session.config.option.collectonly or session.testsfailed:
        return None
    taken = _MAKING.Value("i", 0)
    forks: dict[Connection, Fork] = {}
    try:
        for number in range(count):
            fork = Fork(session, number, taken)
            forks[fork.reports] = fork
        _pass_on_reports(session, forks)
    finally:
        for fork in forks.values():
            fork.process.kill()
            fork.process.join()
    return True


def _pass_on_reports(session: pytest.Session, forks: "dict[Connection, Fork]") -> None:
    """Until every process has run its last test."""
    config, hook = session.config, session.config.hook
    running = list(forks)
    while running:
        for ready in wait(running):
            fork = forks[ready]  # pyright: ignore[reportArgumentType]
            try:
                ran = fork.reports.recv()
            except EOFError:
                fork.process.join()
                test = session.items[fork.at.value].nodeid
                pytest.exit(f"{test} ended its process ({fork.process.exitcode})", returncode=3)
            if ran is None:
                running.remove(fork.reports)
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

    def __init__(self, session: pytest.Session, number: int, taken: Any) -> None:
        self._session = session
        self._share = 4 * session.config.getoption("--forks")
        self._taken = taken  # so many tests have been given to processes
        self._folder = session.config._tmp_path_factory.getbasetemp() / f"fork-{number}"  # pyright: ignore[reportAttributeAccessIssue]
        self._made: list[object] = []  # reports of the current test
        self.at = _MAKING.RawValue(c_int, 0)  # the current test
        self.reports, self._sending = _MAKING.Pipe(duplex=False)
        self.process = _MAKING.Process(target=self._run)
        self.process.start()
        self._sending.close()

    def _run(self) -> None:
        config: Any = self._session.config
        gc.set_threshold(20_000)  # there is memory enough, and each collection takes a while
        self._folder.mkdir()
        config._tmp_path_factory._basetemp = self._folder
        plugins = config.pluginmanager
        _print_elsewhere(plugins.getplugin("capturemanager"))
        plugins.unregister(name="terminalreporter")
        plugins.register(SimpleNamespace(_tw=TerminalWriter(sys.stderr)), "terminalreporter")
        plugins.register(self)
        items = self._session.items
        part = self._next_part()
        while part:
            following = self._next_part()
            for index in part:
                after = index + 1 if index + 1 in part else following.start
                self.at.value = index
                config.hook.pytest_runtest_protocol(
                    item=items[index], nextitem=items[after] if after < len(items) else None
                )
                self._sending.send((index, self._made))
                self._made = []
            part = following
        self._sending.send(None)
        os._exit(0)  # what ends with a process of pytest, such as its summary, is the other's

    def _next_part(self) -> range:
        """The next tests of one file, which may share what they need; towards the end, fewer.

        One that may take long, as its mark says, is alone: nobody shall wait behind it.
        """
        items = self._session.items
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
        config = self._session.config
        data = config.hook.pytest_report_to_serializable(config=config, report=report)
        self._made.append(data)
