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

from transom.errors import RequestTimeout, TransomError
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
        action = request.get("action")
        if action not in (*_WITH_MOUSE, *_WITH_KEYBOARD):
            return await drive(request)
        settled: dict[str, Any] = {}
        for tries in range(_TRIES):
            found = await drive({**request, "op": "target", "aim": True})
            if not as_object(found.get("target")):
                return found
            if found.get("already") is True:
                return {"done": True, "settled": True, "ignored": False}
            if found.get("byScript") is True:
                return await drive(request)
            done = await self._use(page, key, request, found, drive)
            if done is not None:
                return done
            settled = await _settle(drive)
            if action not in _WITH_MOUSE or settled.get("unmet") is not True:
                break
            await _draw(page)  # the press went to what was there before
            await asyncio.sleep(tries * _LOOK_EVERY)  # a busy browser draws a frame inside later
        else:
            return _begun(_problem("covered", "The mouse did not reach it"))
        if settled.get("missed") is True:
            return _begun(_problem("changed", "It moved away while it was pressed"))
        return {"done": True, **settled}

    async def _use(
        self, page: BrowserPage, key: str, request: dict[str, Any], found: Answer, drive: Drive
    ) -> Answer | None:
        """Press or type while nobody else does; the problem, if there is one."""
        try:
            async with asyncio.timeout(_FREE_WITHIN):
                await self.in_use.acquire()
        except TimeoutError:
            return _problem("covered", "The mouse is in use in another View: try again")
        try:
            async with asyncio.timeout(_PRESSED_WITHIN):
                return await _with_frame(page, key, request, found, drive)
        except TransomError:
            raise
        except TimeoutError:
            text = "The View's page does not react to the mouse: look again to see what was done"
            raise RequestTimeout(text) from None
        except Exception as error:  # noqa: BLE001 - whatever Playwright raises
            return _begun(_problem("covered", f"It could not be pressed: {brief(error)}"))
        finally:
            self.in_use.release()


async def _settle(drive: Drive) -> Answer:
    """What came of it; nothing if the page cannot say, which may have left by it."""
    with suppress(TransomError):
        settled = await drive({"op": "settle"})
        if not settled.keys() & {"problem", "error"}:
            return settled
    return {}


async def _with_frame(
    page: BrowserPage, key: str, request: dict[str, Any], found: Answer, drive: Drive
) -> Answer | None:
    try:
        if request["action"] in _WITH_MOUSE:
            action = str(request["action"])
            return await _press(page, key, action, found.get("target"), found.get("to"))
        return await _type(page, key, request, found.get("target"), drive)
    finally:
        await _clean_up(page.evaluate(_RELEASE))


async def _press(
    page: BrowserPage, key: str, action: str, target: object, to: object
) -> dict[str, Any] | None:
    problem = await _point_at(page, key, target)
    if action == "hover" or problem is not None:
        return problem
    times = 2 if action == "double_click" else 1
    for count in range(1, times + 1):
        await page.mouse.down(click_count=count)
        try:
            if action == "drag_to":
                problem = await _point_at(page, key, to, is_dragged=True)
                problem = problem and _begun(problem)
        finally:
            await _clean_up(page.mouse.up(click_count=count))
    return problem


async def _type(
    page: BrowserPage, key: str, request: dict[str, Any], target: object, drive: Drive
) -> dict[str, Any] | None:
    action, value = request["action"], str(request.get("value") or "")
    if action == "press" and _CHORD.fullmatch(value) is None:
        return _problem("unfit", "It is no key, nor a chord such as Control+A")
    if action == "press" and _CLIPBOARD.fullmatch(value) is not None:
        return _problem("unfit", "No model uses the clipboard, which all Views share")
    if action == "press":
        if not await page.evaluate(_FOCUS, key):
            return _problem("gone", _GONE)
    elif (problem := await _press(page, key, "click", target, None)) is not None:
        return problem
    focused = await drive({"op": "focus", "ref": request["ref"], "action": action})
    if focused:  # a problem
        return focused if action == "press" else _begun(focused)
    if not await page.evaluate(_HAS_FOCUS, key):
        return await drive(request)  # by events: keys would go somewhere else
    if action == "type":
        await page.keyboard.insert_text(value)
    else:
        try:
            await page.keyboard.press("Delete" if action == "clear" else value)
        except Exception as error:  # noqa: BLE001 - as above
            return _problem("unfit", f"It is no key: {brief(error)}")
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


def _begun(problem: Answer) -> Answer:
    """A problem that was found when something may have been pressed already."""
    return {**problem, "begun": True}


def brief(error: BaseException) -> str:
    """Of what Playwright says is wrong, without the name of its function."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.sub(r"^\w+\.\w+: ", "", line)[:300].rstrip(".")
