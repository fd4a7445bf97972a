import asyncio
import gc
import logging
import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpcore2
import httpx2
import pytest
from hypothesis import HealthCheck, settings

from tests.docs.promises import promises
from tests.redis_server import RedisServer

pytest_plugins = ["pytester", "tests.forks", "tests.tiers"]

# `nohup` ignores SIGHUP, and a shell ignores SIGINT for what it starts in the background: a child
# process inherits that, and the commands respect it. Those that tests start end by any of them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

# A slow machine is not a failure, so examples may take their time, and so may the making of them.
# In continuous integration they are the same in every run: a failure there is about the change,
# never about luck.
# The quick tier tries fewer, the nightly one and HYPOTHESIS_PROFILE=thorough more.
PATIENT: Any = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", **PATIENT, max_examples=10)
settings.register_profile("test", **PATIENT, max_examples=25)
settings.register_profile("ci", **PATIENT, max_examples=25, derandomize=True, print_blob=True)
settings.register_profile("nightly", **PATIENT, max_examples=200)
settings.register_profile("thorough", **PATIENT, max_examples=1000)


def pytest_configure(config: pytest.Config) -> None:
    tier = config.getoption("--tier")
    in_ci = tier == "test" and "CI" in os.environ
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if in_ci else tier))


def pytest_runtest_setup() -> None:
    """What is logged is not what a command said that an earlier test ran in this process."""
    for name in ("transom", "mcp"):
        logger = logging.getLogger(name)
        if logger.level:
            logger.setLevel(logging.NOTSET)


@pytest.fixture(scope="session", autouse=True)
def state_folder() -> Iterator[str]:
    """What a user's programs remember, who has used none yet.

    The pages of this worker are not shared with those of other workers, either.
    """
    with tempfile.TemporaryDirectory(prefix="transom-state-") as folder:
        os.environ["XDG_STATE_HOME"] = os.environ["XDG_RUNTIME_DIR"] = folder
        yield folder


@pytest.fixture(scope="session", autouse=True)
def node_code(request: pytest.FixtureRequest) -> None:
    """Node compiles what it loads once, in its versions that can keep that: Playwright's can."""
    assert request.config.cache is not None
    os.environ["NODE_COMPILE_CACHE"] = str(request.config.cache.mkdir("node"))


HEADLESS_SHELL = Path("/usr/lib/chromium/chromium-headless-shell")  # of Debian's package


@pytest.fixture(scope="session", autouse=True)
def lean_chromium(request: pytest.FixtureRequest) -> Iterator[None]:
    """Use Chromium without the parts of a window, where it is installed: it needs a third less.

    `make nightly` uses the whole one.
    """
    lean = HEADLESS_SHELL.exists() and request.config.getoption("--tier") != "nightly"
    with pytest.MonkeyPatch.context() as patch:
        if lean and "TRANSOM_CHROMIUM" not in os.environ:
            patch.setenv("TRANSOM_CHROMIUM", str(HEADLESS_SHELL))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_spare_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """Chromium keeps a process ready for the next frame, which most tests never open."""
    if request.config.getoption("--tier") != "test":
        yield
        return
    from transom.web.local import chromium

    off = "--disable-features="
    arguments = [
        argument.replace(off, f"{off}SpareRendererForSitePerProcess,")
        for argument in chromium._ARGUMENTS
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chromium, "_ARGUMENTS", arguments)
        yield


@pytest.fixture
def whole_chromium(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test about its processes, whose command lines name their browser."""
    if os.environ.get("TRANSOM_CHROMIUM") == str(HEADLESS_SHELL):
        monkeypatch.delenv("TRANSOM_CHROMIUM")


@pytest.fixture(scope="session", autouse=True)
def certificates() -> Iterator[None]:
    """The system's certificates are read once, not by every HTTP client: 50 ms each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", cache(httpcore2.default_ssl_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def patient_clients() -> Iterator[None]:
    """An HTTP client of a test waits longer than 5 s: a busy machine may take them to answer."""
    defaults = httpx2.AsyncClient.__init__.__kwdefaults__
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(defaults, "timeout", httpx2.Timeout(60))
        yield


@pytest.fixture(scope="session", autouse=True)
def servers_that_end_soon() -> Iterator[None]:
    """uvicorn looks every 0.1 s whether it shall end, and ends 0.1 s later: too long for a test."""
    hurried = SimpleNamespace(**vars(asyncio))
    hurried.sleep = lambda seconds: asyncio.sleep(seconds / 10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("uvicorn.server.asyncio", hurried)
        yield


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis_url(shared_redis: RedisServer) -> str:
    """A Redis with nothing in it. A test that stops it starts a `RedisServer` of its own."""
    return shared_redis.database()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays: no garbage collection looks at it, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--promise",
        choices=list(promises()),
        help="only the tests of this promise of docs/security.md",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    number = config.getoption("--promise")
    if number is None or collection_path.is_dir():
        return None
    return collection_path not in {file for file, _ in promises()[number]} or None


def _may_take(item: pytest.Item) -> float:
    """Seconds, where more than the usual time is allowed."""
    limit = item.get_closest_marker("timeout")
    return 0 if limit is None else limit.args[0]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_may_take, reverse=True)  # so that nobody waits for the longest at the end
    if number := config.getoption("--promise"):
        wanted = promises()[number]
        items[:] = [
            item for item in items if (item.path, getattr(item, "originalname", "")) in wanted
        ]
