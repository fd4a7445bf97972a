"""The Views of the examples in Chromium, under the strict policy; a fresh server for each test."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.examples.driving import Shown, fresh
from transom.testing import ViewsFixture

Open = Callable[..., Awaitable[Shown]]


@pytest.fixture
def open_view(views: ViewsFixture) -> Iterator[Open]:
    """`await open_view("music", "show_player")`: an example's View, its server a fresh one."""
    views.configure(csp="strict", open_timeout=60)
    opened: list[Shown] = []

    async def show(example: str, tool: str, **arguments: Any) -> Shown:
        module = fresh(example)
        view = await views.open(module.server, tool, **arguments)
        opened.append(Shown(view, module))
        return opened[-1]

    yield show
    assert [problem for shown in opened for problem in shown.opened.problems] == []
