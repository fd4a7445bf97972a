"""The pytest plugin: the fixture `views`, its options, and the event loop of tests that use it.

pytest loads this for everyone who has Transom installed, so it loads next to nothing itself.

1. A test that uses `views` is async. It runs here, on one event loop for all such tests, because a
   connection to a browser belongs to one. That holds for tests of pytest-asyncio and anyio as well,
   unless one has async fixtures: those live on the loop of their plugin, and so does the test.
2. Its Views are closed inside the test, on the test's event loop, whoever runs that. What went
   wrong in them fails the test there.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Generator
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from transom.testing.browser import SharedBrowser
    from transom.testing.fixture import ViewsFixture

_UNDECLARED = object()
browser_key = pytest.StashKey["SharedBrowser"]()
_test_key = pytest.StashKey[Callable[[], None]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option whose name nobody else has."""
    parser.getgroup("transom", "tests of Views").addoption(
        "--transom-output",
        metavar="FOLDER",
        help="where failed tests leave pictures and messages of their Views "
        "(by default in the folder of pytest's cache)",
    )


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser
) -> Generator[None, object, object]:
    """Declare `--update-views`, unless a conftest has one of its own, which then counts."""
    result = yield
    if early_config.getoption("--update-views", default=_UNDECLARED) is _UNDECLARED:
        parser.getgroup("transom").addoption(
            "--update-views",
            action="store_true",
            help="write the text and picture snapshots of Views, instead of comparing",
        )
    return result


def _browser(config: pytest.Config) -> SharedBrowser:
    if browser_key not in config.stash:
        from transom.testing.browser import SharedBrowser

        config.stash[browser_key] = SharedBrowser()
    return config.stash[browser_key]


@pytest.fixture
def views(request: pytest.FixtureRequest) -> ViewsFixture:
    """Opens Views of MCP servers: `view = await views.open("server.py", "show", …)`."""
    from transom.testing.fixture import ViewsFixture
    from transom.testing.view_files import ViewFiles

    config, item = request.config, request.node
    if not isinstance(item, pytest.Function) or not inspect.iscoroutinefunction(item.obj):
        pytest.fail(f"{item.name} uses `views`, so it has to be `async def`", pytrace=False)
    update = bool(config.getoption("--update-views", default=False))
    files = ViewFiles(item.path, item.nodeid, partial(_output, config), update=update)
    return ViewsFixture(_browser(config), files)


def _output(config: pytest.Config) -> Path:
    """The folder for what failed tests leave; the cache makes its own, so only when needed."""
    if (given := config.getoption("--transom-output")) is not None:
        return Path(given)
    cache: pytest.Cache | None = getattr(config, "cache", None)  # it can be turned off
    return config.rootpath / "views-output" if cache is None else cache.mkdir("views")


def _fixture_of(item: pytest.Item) -> ViewsFixture | None:
    made: Any = getattr(item, "funcargs", {}).get("views")
    return made if hasattr(made, "run_test") else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave the browser to a test that will not run here."""
    if (
        browser_key in item.config.stash
        and isinstance(item, pytest.Function)
        and "views" in item.fixturenames
        and _has_async_fixtures(item)
    ):
        item.config.stash[browser_key].disconnect()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Have the test close its Views at its end, on its own event loop."""
    fixture = _fixture_of(item)
    if fixture is None or not isinstance(item, pytest.Function):
        return (yield)
    test = item.obj

    @wraps(test)
    async def run(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return await fixture.run_test(partial(test, *args, **kwargs))

    if _has_async_fixtures(item):
        item.obj = run
    else:
        item.obj = item.stash[_test_key] = partial(_run_here, item, run)
    try:
        return (yield)
    finally:
        item.obj = test
        if fixture.report:
            item.add_report_section("call", "views", fixture.report)


def _run_here(item: pytest.Function, test: Callable[..., Coroutine[Any, Any, object]]) -> None:
    names = inspect.signature(test).parameters
    known = {name: item.funcargs[name] for name in names if name in item.funcargs}
    _browser(item.config).run(test(**known))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Run a test here; pytest-asyncio has made a function of its own of it, and anyio has not."""
    test = pyfuncitem.stash.get(_test_key, None)
    if test is None:
        return None
    test()
    return True


def _has_async_fixtures(item: pytest.Function) -> bool:
    definitions = item._fixtureinfo.name2fixturedefs
    functions = [inspect.unwrap(each.func) for found in definitions.values() for each in found]
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in functions
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the browser."""
    if browser_key in config.stash:
        config.stash[browser_key].close()
