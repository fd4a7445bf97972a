"""One Chromium for the examples' tests of a worker, and a fresh server for each test."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.examples.driving import Shown, fresh
from transom import Host, Limits, Policy
from transom.web.headless import HeadlessRenderer

Open = Callable[..., Awaitable[Shown]]
Problems = list[str]
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Playwright lives on one event loop, so all async tests that use it share the session's."""
    shared = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        if HERE not in item.path.parents:
            continue  # this hook is called with the tests of every folder
        if "host" in getattr(item, "fixturenames", ()) and pytest_asyncio.is_async_test(item):
            item.add_marker(shared, append=False)


@pytest.fixture(scope="session")
def problems() -> Problems:
    """What the browser complained about."""
    return []


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def host(problems: Problems) -> AsyncIterator[Host]:
    """A host whose Views are in Chromium, under the strict policy."""
    renderer = HeadlessRenderer(
        csp="strict",
        on_violation=lambda violation: problems.append(str(violation)),
        on_console=lambda kind, text: problems.append(f"{kind}: {text}"),
    )
    async with Host(
        renderer=renderer,
        policy=Policy.trusting(),
        limits=Limits(relist_interval=0),
        audit=None,
        open_timeout=40,
    ) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def open_view(host: Host, problems: Problems) -> AsyncIterator[Open]:
    """`await open_view("music", "show_player")`: an example's View, its server a fresh one."""
    problems.clear()

    async def show(example: str, tool: str, **arguments: Any) -> Shown:
        module = fresh(example)
        await host.add_server(example, module.server)
        result = await host.call_tool(tool, arguments)
        note = (result.meta or {})["transom/view"]
        assert note["state"] == "live", note
        return Shown(host, host.views[note["id"]], module, result)

    yield show
    for server in host.servers:
        await host.remove_server(server)
    assert problems == []
