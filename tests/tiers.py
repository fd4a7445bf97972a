"""Which tests `make quick`, `make test` and `make nightly` run: `--tier`, and three markers.

A test that starts a process (a server, a browser, Redis, Node) is marked `processes`, or uses a
fixture that starts one; one that is about masses (sizes, floods, random input), or needs much else
(logins at authorization servers, pytest within pytest), is marked `load`. All others are the quick
tier, except those of the agent frameworks, which take as long to import as the rest of it takes to
run. A test of the quick tier that starts a process after all fails.
"""

import re
import sys
from collections.abc import Generator, Iterable
from itertools import combinations, product
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

_LEFT_OUT = {"quick": ("processes", "load", "nightly"), "test": ("nightly",), "nightly": ()}
_MARKED_FILE = re.compile(r"^pytestmark = .*\bmark\.(processes|load|nightly)\b", re.MULTILINE)
_FRAMEWORKS = {Path(__file__).with_name(name) for name in ("agents", "evals")}
STARTING_FIXTURES = {"launch", "node", "shared_redis"}
_STARTS = {"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.spawn", "os.system"}
_OF_CTYPES = {"ldconfig", "gcc", "ld", "objdump"}  # what Python itself runs to find a C library


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        choices=["quick", "test", "nightly"],
        default="test",
        help="quick: no processes, no load, no agent frameworks; test: what CI runs; nightly: all",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "processes: starts a process, so not in the quick tier")
    config.addinivalue_line("markers", "load: very much of something, so not in the quick tier")
    config.addinivalue_line(
        "markers", "nightly: too long for every change, in the nightly tier only"
    )
    config.pluginmanager.register(ProcessGuard(), "process-guard")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The quick tier does not import what it would leave out: the frameworks, and marked files."""
    if config.getoption("--tier") != "quick":
        return None
    marked = collection_path.suffix == ".py" and _MARKED_FILE.search(collection_path.read_text())
    return True if marked or collection_path in _FRAMEWORKS else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if not STARTING_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("processes")
    tier = config.getoption("--tier")
    out = [item for item in items if any(map(item.get_closest_marker, _LEFT_OUT[tier]))]
    if out:
        config.hook.pytest_deselected(items=out)
        dropped = set(out)
        items[:] = [item for item in items if item not in dropped]


class ProcessGuard:
    """Fails a test of the quick tier that starts a process."""

    def __init__(self) -> None:
        self._guarded: str | None = None
        self._started: list[str] = []
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._guarded is None or event not in _STARTS:
            return
        if Path(str(arguments[0])).name in _OF_CTYPES:
            return
        self._started.append(f"{event} {arguments[0]}")
        raise RuntimeError(f"{self._guarded} starts a process: mark it `processes`")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._guarded = None if item.get_closest_marker("processes") else item.nodeid
        self._started.clear()
        try:
            return (yield)
        finally:
            self._guarded = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """The code under test may have caught the error of the audit hook."""
        result = yield
        if self._started:
            pytest.fail(f"{item.nodeid} starts a process ({self._started[0]}): mark it `processes`")
        return result


def grid(*axes: Iterable[object]) -> list[ParameterSet]:
    """Every combination of values, for `parametrize`.

    `make test` runs as many as it takes to have each two values together, the nightly tier all.
    """
    left = list(product(*axes))
    missing = set[tuple[object, ...]]().union(*map(_pairs, left))
    params: list[ParameterSet] = []
    while left:
        best = max(left, key=lambda values: len(_pairs(values) & missing))
        adds = not missing.isdisjoint(_pairs(best))
        params.append(pytest.param(*best, marks=() if adds else pytest.mark.nightly))
        missing -= _pairs(best)
        left.remove(best)
    return params


def _pairs(values: tuple[object, ...]) -> set[tuple[object, ...]]:
    return set(combinations(enumerate(values), 2))
