"""Chromium for the browser tests: one for all tests of a worker, a fresh context for each."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, async_playwright

from tests.browser.hosting import Chromium
from tests.browser.transomjs_host import Node
from transom.web.local.chromium import chromium_arguments, find_chromium

HERE = Path(__file__).parent

Launch = Callable[..., Awaitable[Browser]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Playwright and Node live on one event loop: all async tests of them share the session's."""
    shared = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        if HERE not in item.path.parents:
            continue  # this hook is called with the tests of every folder
        used = set(getattr(item, "fixturenames", ()))
        if not used.isdisjoint({"launch", "node"}) and pytest_asyncio.is_async_test(item):
            item.add_marker(shared, append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def launch() -> AsyncIterator[Launch]:
    """`await launch("--enable-features=WebMCP")`: a Chromium with these flags, started once."""
    running: dict[tuple[str, ...], Browser] = {}
    async with AsyncExitStack() as stack:
        playwright = await stack.enter_async_context(async_playwright())

        async def start(*flags: str) -> Browser:
            if flags not in running:
                browser = await playwright.chromium.launch(
                    executable_path=find_chromium(), args=[*chromium_arguments(), *flags]
                )
                stack.push_async_callback(browser.close)
                running[flags] = browser
            return running[flags]

        yield start


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def node() -> AsyncIterator[Node]:
    """Views with `transom.js` without a browser, for tests of what needs no page."""
    async with Node.started() as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium(launch: Launch) -> Browser:
    """The Chromium that the tests of this worker share."""
    return await launch()


@pytest.fixture(scope="session")
def browser(chromium: Browser) -> Chromium:
    """The same, with a user in front of it."""
    return Chromium(chromium)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_context(chromium: Browser) -> AsyncIterator[BrowserContext]:
    async with await chromium.new_context() as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def context(
    request: pytest.FixtureRequest, chromium: Browser, shared_context: BrowserContext
) -> AsyncIterator[BrowserContext]:
    """A browser context of the test's own: no storage, cookies or routes of any other.

    The tests of `transom.js` share one. Their Views are in sandboxed frames, which keep nothing.
    """
    if request.path.name.startswith("test_transomjs_"):
        yield shared_context
        return
    async with await chromium.new_context() as made:
        yield made
