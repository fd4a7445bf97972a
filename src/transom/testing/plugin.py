"""The pytest plugin: the fixture `views`, its options, and the event loop of tests that use it.

pytest loads this for everyone who has Transom installed, so it loads next to nothing itself.

1. A test that uses `views` is async. pytest-asyncio or anyio run it, if it is theirs; otherwise it
   runs here, on one event loop for all such tests, which then share one browser as well.
2. Its Views are closed inside the test, on the test's event loop, whoever runs that. What went
   wrong in them fails the test there.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import inspect
from collections.abc import Generator
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from transom.testing.browser import SharedBrowser
    from transom.testing.fixture import ViewsFixture

_UNDECLARED = object()
_browser_key = pytest.StashKey["SharedBrowser"]()


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
    if _browser_key not in config.stash:
        from transom.testing.browser import SharedBrowser

        config.stash[_browser_key] = SharedBrowser()
    return config.stash[_browser_key]


@pytest.fixture
def views(request: pytest.FixtureRequest) -> ViewsFixture:
    """Opens Views of MCP servers: `view = await views.open("server.py", "show", …)`."""
    from transom.testing.fixture import ViewsFixture
    from transom.testing.view_files import ViewFiles

    config, item = request.config, request.node
    if not isinstance(item, pytest.Function) or not inspect.iscoroutinefunction(item.obj):
        pytest.fail(f"{item.name} uses `views`, so it has to be `async def`", pytrace=False)
    output = config.getoption("--transom-output")
    if output is None:
        cache: pytest.Cache | None = getattr(config, "cache", None)  # it can be turned off
        output = config.rootpath / "views-output" if cache is None else cache.mkdir("views")
    update = bool(config.getoption("--update-views", default=False))
    return ViewsFixture(_browser(config), ViewFiles(item.path, item.name, output, update=update))


def _fixture_of(item: pytest.Item) -> ViewsFixture | None:
    made: Any = getattr(item, "funcargs", {}).get("views")
    return made if hasattr(made, "run_test") else None


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

    item.obj = run
    try:
        return (yield)
    finally:
        item.obj = test
        if fixture.report:
            item.add_report_section("call", "views", fixture.report)


@pytest.hookimpl
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Run a test that no other plugin runs; anyio's goes before this, pytest's own after it."""
    if _fixture_of(pyfuncitem) is None or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    known = {name: pyfuncitem.funcargs[name] for name in names if name in pyfuncitem.funcargs}
    _browser(pyfuncitem.config).run(pyfuncitem.obj(**known))
    return True


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the browser."""
    if _browser_key in config.stash:
        config.stash[_browser_key].close()
