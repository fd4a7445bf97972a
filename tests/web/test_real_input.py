"""The one mouse of a browser, without a browser."""

from __future__ import annotations

import asyncio
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest

from transom.errors import Refused, RequestTimeout, TooManyRequests
from transom.web.local import real_input
from transom.web.local.real_input import RealInput

CLICK = {"op": "act", "ref": "b1", "action": "click"}
TARGET = {"target": {"x": 1, "y": 1, "scrolled": True}}
TYPE = {"op": "act", "ref": "f3", "action": "type", "value": "hi"}
Answer = dict[str, Any]


class Mouse:
    """Notes what is done with it; hangs while `hangs` is set."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.hangs = False
        self.moved = asyncio.Event()

    async def move(self, x: float, y: float) -> None:
        self.moved.set()
        await self._note("move")

    async def down(self, click_count: int) -> None:
        await self._note("down")

    async def up(self, click_count: int) -> None:
        await self._note("up")

    async def _note(self, what: str) -> None:
        if self.hangs:
            await asyncio.get_running_loop().create_future()
        self.done.append(what)


class Page:
    """One whose View is in front of everything."""

    def __init__(self) -> None:
        self.mouse = Mouse()
        self.keyboard: Any = None
        self.drawn = 0

    async def evaluate(self, script: str, argument: object = None) -> Answer:
        return {"x": 1, "y": 1, "isInside": True, "isInFront": True, "isScrolled": False}

    async def screenshot(self, clip: object) -> None:
        self.drawn += 1


class Script:
    """The script beside a View, which answers `settle` with these, one after the other.

    `later` are its other answers, by what is asked, when they are due.
    """

    scrolled = True

    def __init__(self, *settled: Answer, **later: list[Answer | Exception]) -> None:
        self.settled = [*settled]
        self.later = later

    async def __call__(self, request: Answer) -> Answer:
        if due := self.later.get(request["op"]):
            answer = due.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        if request["op"] == "target":
            return {"target": {**TARGET["target"], "scrolled": self.scrolled}}
        return {"settled": True, **self.settled.pop(0)}


async def act(mouse: RealInput, page: Any, *settled: Answer) -> Answer:
    return await mouse.act(page, "1", {**CLICK}, Script(*settled))


async def test_a_page_that_hangs_under_the_mouse_holds_it_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(real_input, "_PRESSED_WITHIN", 0.05)
    monkeypatch.setattr(real_input, "_CLEANED_WITHIN", 0.05)
    mouse, page = RealInput(), Page()
    page.mouse.hangs = True
    hanging = asyncio.create_task(act(mouse, page))
    await page.mouse.moved.wait()
    with pytest.raises(RequestTimeout, match="does not react to the mouse"):
        await hanging
    monkeypatch.undo()
    page.mouse.hangs = False
    assert (await act(mouse, page, {}))["done"] is True
    assert page.mouse.done == ["move", "move", "down", "up"]


async def test_one_move_is_enough_for_what_was_in_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Script, "scrolled", False)
    page = Page()
    assert (await act(RealInput(), page, {}))["done"] is True
    assert page.mouse.done == ["move", "down", "up"]


async def test_while_the_mouse_is_in_use_another_act_ends_with_that_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(real_input, "_FREE_WITHIN", 0.05)
    mouse, page = RealInput(), Page()
    page.mouse.hangs = True
    hanging = asyncio.create_task(act(mouse, page))
    await page.mouse.moved.wait()
    waiting = await act(mouse, Page())
    assert (waiting["problem"], "in use in another View" in waiting["detail"]) == ("covered", True)
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging


async def test_a_press_that_met_nothing_is_done_again_after_a_picture() -> None:
    page = Page()
    assert (await act(RealInput(), page, {"unmet": True}, {}))["done"] is True
    assert (page.mouse.done.count("down"), page.drawn) == (2, 1)
    never = await act(RealInput(), page, *[{"unmet": True}] * real_input._TRIES)
    assert never == {"problem": "covered", "detail": "The mouse did not reach it", "begun": True}


LEFT = {"problem": "gone", "detail": "left"}
BUSY = TooManyRequests("not answered")


@pytest.mark.parametrize(
    ("wanted", "later"),
    [
        (CLICK, {"target": [TARGET, LEFT], "settle": [{"unmet": True}]}),
        (CLICK, {"target": [TARGET, BUSY], "settle": [{"unmet": True}]}),
        (TYPE, {"focus": [LEFT]}),
        (TYPE, {"focus": [BUSY]}),
        (TYPE, {"focus": [Refused("taken")]}),
        ({**TYPE, "action": "clear"}, {"focus": [{}]}),
        ({**TYPE, "action": "press", "value": "Enter"}, {"focus": [{}]}),
    ],
)
async def test_a_problem_after_something_was_pressed_says_so(
    wanted: Answer, later: dict[str, list[Answer | Exception]]
) -> None:
    page = Page()
    page.keyboard = AsyncMock(press=AsyncMock(side_effect=RuntimeError("the page was closed")))
    answer = await RealInput().act(cast("Any", page), "1", wanted, Script(**later))
    assert ("problem" in answer, answer["begun"]) == (True, True)


@pytest.mark.parametrize(
    ("wanted", "later"),
    [
        (CLICK, {"target": [LEFT]}),
        ({**TYPE, "action": "press", "value": "Enter"}, {"focus": [LEFT]}),
        ({**TYPE, "action": "press", "value": "NoKey"}, {"focus": [{}]}),
    ],
)
async def test_a_problem_before_anything_was_pressed_does_not(
    wanted: Answer, later: dict[str, list[Answer | Exception]]
) -> None:
    page = Page()
    page.keyboard = AsyncMock(press=AsyncMock(side_effect=RuntimeError('Unknown key: "NoKey"')))
    answer = await RealInput().act(cast("Any", page), "1", wanted, Script(**later))
    assert ("problem" in answer, "begun" in answer) == (True, False)


@pytest.mark.parametrize(
    "left", [{"problem": "gone", "detail": "left by it"}, {"error": "boom"}, {"done": False}]
)
async def test_a_press_was_done_even_if_the_page_cannot_say_what_came_of_it(left: Answer) -> None:
    page = Page()
    assert (await act(RealInput(), page, left))["done"] is True
    assert page.mouse.done.count("down") == 1
