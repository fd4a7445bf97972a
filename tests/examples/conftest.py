"""The Views of the examples in Chromium, under the strict policy; a fresh server for each test."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.examples.driving import fresh
from transom.testing import OpenedView, ViewsFixture


class Open:
    """`await open_view("music", "show_player")`: an example's View, its server a fresh one."""

    module: Any
    """That of the last one."""

    def __init__(self, views: ViewsFixture) -> None:
        self._views = views
        self.opened: list[OpenedView] = []

    async def __call__(self, example: str, tool: str, **arguments: Any) -> OpenedView:
        self.module = fresh(example)
        self.opened.append(await self._views.open(self.module.server, tool, **arguments))
        return self.opened[-1]


@pytest.fixture
def open_view(views: ViewsFixture) -> Iterator[Open]:
    views.configure(csp="strict", open_timeout=60)
    opens = Open(views)
    yield opens
    assert [problem for view in opens.opened for problem in view.problems] == []
