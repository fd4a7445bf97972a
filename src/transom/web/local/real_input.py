"""Uses a View with the mouse and the keyboard of a browser that Playwright drives.

1. A press is at a place in the View's own frame, which has to be in front there: whatever a page
   says about where its elements are, nothing outside of its View is pressed.
2. Keys are pressed while the View's frame has the focus and no other View could take it, one at a
   time: a chord of several, such as Tab+Enter, would leave the View.
3. The browser has one mouse and one keyboard: one thing is done at a time. Others wait for a press,
   which takes a few seconds at most, and not for what comes of it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transom.errors import Refused, RequestTimeout, TooManyRequests, TransomError
from transom.json_values import as_object

if TYPE_CHECKING:
    from playwright.async_api import Page as BrowserPage

Answer = dict[str, Any]
Drive = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends a request to the page of the View that is used: `Stage.drive`."""

_PRESSED_WITHIN = 4.0  # seconds
_IN_FRONT_WITHIN = 2.0  # a shield may be in front for half a second
_CLEANED_WITHIN = 1.0
_FREE_WITHIN = 5.0  # with the two above, that is what `aim.ts` waits for a press
_TRIES = 6
_LOOK_EVERY = 0.05
_OUTSIDE = "It is outside of the View"
_GONE = "The View is not on the page any more"
_WITH_MOUSE = ("click", "double_click", "check", "uncheck", "hover", "drag_to")
_WITH_KEYBOARD = ("type", "clear", "press")
_CHORD = re.compile(r"((Control|Shift|Alt|Meta|ControlOrMeta)\+)*(\+|[^+]+)")
_CLIPBOARD = re.compile(
    r"(.+\+)?((Control|Meta|ControlOrMeta)\+(.+\+)?(Key)?[cvx]|(Shift|Control)\+(.+\+)?Insert"
    r"|Shift\+(.+\+)?Delete|Copy|Cut|Paste)",
    re.IGNORECASE,
)
_SCRIPT = Path(__file__).with_suffix(".js").read_text("utf-8").rstrip()
_RELEASE, _FOCUS = f"{_SCRIPT}.release", f"{_SCRIPT}.focus"
_HAS_FOCUS, _FIND_POINT = f"{_SCRIPT}.hasFocus", f"{_SCRIPT}.findPoint"


class RealInput:
    """The mouse and the keyboard of a browser."""

    def __init__(self) -> None:
        self.in_use = asyncio.Lock()
        """Held while the page must not move."""

    async def act(
        self, page: BrowserPage, key: str, request: dict[str, Any], drive: Drive
    ) -> dict[str, Any]:
        """Do what `request` says in the View with this key; what needs neither, its page does."""
        if request.get("action") not in (*_WITH_MOUSE, *_WITH_KEYBOARD):
            return await drive(request)
        use = _Use(page, key, request, drive)
        try:
            answer = await self._act(use)
        except (Refused, TooManyRequests) as error:  # before it was ended
            if not use.begun:
                raise
            answer = _problem("interrupted", str(error))
        return {**answer, "begun": True} if use.begun and "problem" in answer else answer

    async def _act(self, use: _Use) -> Answer:
        for tries in range(_TRIES):
            found = await use.drive({**use.request, "op": "target", "aim": True})
            target = as_object(found.get("target"))
            if not target:
                return found
            if found.get("already") is True:
                return {"done": True, "settled": True, "ignored": False}
            if found.get("byScript") is True:
                return await use.drive(use.request)
            done = await self._run(use, found)
            if done is not None:
                return done
            settled = await use.settle()
            if use.action not in _WITH_MOUSE or settled.get("unmet") is not True:
                break
            await _draw(use.page)  # the press went to what was there before
            await asyncio.sleep(tries * _LOOK_EVERY)  # a busy browser draws a frame inside later
        else:
            return _problem("covered", "The mouse did not reach it")
        if settled.get("missed") is True:
            return _problem("changed", "It moved away while it was pressed")
        return {"secret": target.get("secret") is True, **settled, "done": True}

    async def _run(self, use: _Use, found: Answer) -> Answer | None:
        """Press or type while nobody else does; the problem, if there is one."""
        try:
            async with asyncio.timeout(_FREE_WITHIN):
                await self.in_use.acquire()
        except TimeoutError:
            return _problem("covered", "The mouse is in use in another View: try again")
        try:
            async with asyncio.timeout(_PRESSED_WITHIN):
                return await use.run(found)
        except TransomError:
            raise
        except TimeoutError:
            raise RequestTimeout("The View's page does not react to the mouse") from None
        except Exception as error:  # noqa: BLE001 - whatever Playwright raises
            return _problem("covered", f"It could not be pressed: {brief(error)}")
        finally:
            self.in_use.release()


class _Use:
    """One request that is done in a View; `begun` when the first button or key is pressed."""

    def __init__(self, page: BrowserPage, key: str, request: dict[str, Any], drive: Drive) -> None:
        self.page = page
        self.key = key
        self.request = request
        self.drive = drive
        self.action = str(request["action"])
        self.begun = False

    async def settle(self) -> Answer:
        """What came of it; nothing if the page cannot say, which may have left by it."""
        with suppress(TransomError):
            settled = await self.drive({"op": "settle"})
            if not settled.keys() & {"problem", "error"}:
                return settled
        return {}

    async def run(self, found: Answer) -> Answer | None:
        """Do it; the problem, if there is one."""
        try:
            if self.action in _WITH_MOUSE:
                return await self._press(self.action, found.get("target"), found.get("to"))
            return await self._type(found.get("target"))
        finally:
            await _clean_up(self.page.evaluate(_RELEASE))

    async def _press(self, action: str, target: object, to: object = None) -> Answer | None:
        page, key = self.page, self.key
        problem = await _point_at(page, key, target)
        if action == "hover" or problem is not None:
            return problem
        times = 2 if action == "double_click" else 1
        self.begun = True
        for count in range(1, times + 1):
            await page.mouse.down(click_count=count)
            try:
                if action == "drag_to":
                    problem = await _point_at(page, key, to, is_dragged=True)
            finally:
                await _clean_up(page.mouse.up(click_count=count))
        return problem

    async def _type(self, target: object) -> Answer | None:
        page, key, action = self.page, self.key, self.action
        value = str(self.request.get("value") or "")
        if action == "press" and _CHORD.fullmatch(value) is None:
            return _problem("unfit", "It is no key, nor a chord such as Control+A")
        if action == "press" and _CLIPBOARD.fullmatch(value) is not None:
            return _problem("unfit", "No model uses the clipboard, which all Views share")
        if action == "press":
            if not await page.evaluate(_FOCUS, key):
                return _problem("gone", _GONE)
        elif (problem := await self._press("click", target)) is not None:
            return problem
        focused = await self.drive({"op": "focus", "ref": self.request["ref"], "action": action})
        if focused:  # a problem
            return focused
        if not await page.evaluate(_HAS_FOCUS, key):
            return await self.drive(self.request)  # by events: keys would go somewhere else
        if action == "type":
            await page.keyboard.insert_text(value)
            return None
        try:
            await page.keyboard.press("Delete" if action == "clear" else value)
        except Exception as error:
            if "Unknown key" in str(error):
                return _problem("unfit", f"It is no key: {brief(error)}")
            self.begun = True  # by which the page may have been closed
            raise
        self.begun = True
        return None


async def _point_at(
    page: BrowserPage, key: str, target: object, *, is_dragged: bool = False
) -> dict[str, Any] | None:
    """Move the mouse to a place in the frame; the problem, if the frame is not in front there."""
    place, scrolls = as_object(target), not is_dragged
    x, y = place.get("x"), place.get("y")
    if not isinstance(x, int | float) or not isinstance(y, int | float):
        return _problem("hidden", _OUTSIDE)
    loop = asyncio.get_running_loop()
    until = loop.time() + _IN_FRONT_WITHIN
    while loop.time() < until:
        wanted = {"key": key, "x": x, "y": y, "mayScroll": scrolls}
        found = await page.evaluate(_FIND_POINT, wanted)
        if found.get("isGone"):
            return _problem("gone", _GONE)
        if not found["isInside"]:
            return _problem("hidden", _OUTSIDE)
        if found["isScrolled"]:
            await _draw(page)
            scrolls = False
        elif found["isInFront"]:
            # A browser begins to drag with the first move, and has drawn what was scrolled by the
            # second one.
            for _ in range(2 if is_dragged or place.get("scrolled") is not False else 1):
                await page.mouse.move(found["x"], found["y"])
            return None
        else:
            await asyncio.sleep(_LOOK_EVERY)  # a shield is in front for a moment
    return _problem("covered", "Something is in front of the View there")


async def _draw(page: BrowserPage) -> None:
    """Let the browser draw the page: it finds out what is pressed by the last picture it has."""
    await page.screenshot(clip={"x": 0, "y": 0, "width": 1, "height": 1})


async def _clean_up(doing: Awaitable[object]) -> None:
    """Wait for what has to be done in any case, but not for a page that hangs."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_CLEANED_WITHIN):
            await doing


def _problem(kind: str, detail: str) -> dict[str, Any]:
    return {"problem": kind, "detail": detail}


def brief(error: BaseException) -> str:
    """Of what Playwright says is wrong, without the name of its function."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.sub(r"^\w+\.\w+: ", "", line)[:300].rstrip(".")
