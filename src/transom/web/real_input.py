"""Uses a View with the mouse and the keyboard of a browser that Playwright drives.

1. A press is at a place in the View's own frame, which has to be in front there: whatever a page
   says about where its elements are, nothing outside of its View is pressed.
2. Keys are pressed while the View's frame has the focus, and not otherwise.
3. The browser has one mouse and one keyboard: one thing is done at a time.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from transom.errors import TransomError
from transom.json_values import as_object

if TYPE_CHECKING:
    from playwright.async_api import Locator, Position
    from playwright.async_api import Page as BrowserPage

Drive = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends a request to the page of the View that is used: `Stage.drive`."""

_PRESSED_WITHIN = 5000  # milliseconds; a shield may be in front for half a second
_WITH_MOUSE = ("click", "double_click", "check", "uncheck", "hover", "drag_to")
_WITH_KEYBOARD = ("type", "clear", "press")
_HAS_FOCUS = """(frame) => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at === frame;
}"""


class RealInput:
    """The mouse and the keyboard of a browser."""

    def __init__(self) -> None:
        self._in_use = asyncio.Lock()

    async def act(
        self, page: BrowserPage, key: str, request: dict[str, Any], drive: Drive
    ) -> dict[str, Any]:
        """Do what `request` says in the View with this key; what needs neither, its page does."""
        action = request.get("action")
        if action not in (*_WITH_MOUSE, *_WITH_KEYBOARD):
            return await drive(request)
        async with self._in_use:
            found = await drive({**request, "op": "target", "aim": True})
            target = as_object(found.get("target"))
            if not target:
                return found
            if found.get("already") is True:
                return {"done": True, "settled": True, "ignored": False}
            frame = page.locator(f'[id="view-{key}"] iframe')
            try:
                if action in _WITH_MOUSE:
                    done = await _press(page, frame, str(action), target, found.get("to"))
                else:
                    done = await _type(page, frame, request, target, drive)
            except TransomError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever Playwright raises
                return _problem("covered", f"It could not be pressed: {_first_line(error)}")
            if done is not None:
                return done
            settled = await drive({"op": "settle"})
        if settled.get("missed") is True:
            return _problem("changed", "It moved away while it was pressed: nothing was pressed")
        return {"done": True, **settled}


async def _press(
    page: BrowserPage, frame: Locator, action: str, target: object, to: object
) -> dict[str, Any] | None:
    point = await _point(frame, target)
    if point is None:
        return _outside()
    if action == "hover":
        await frame.hover(position=point, timeout=_PRESSED_WITHIN)
    elif action == "double_click":
        await frame.dblclick(position=point, timeout=_PRESSED_WITHIN)
    elif action != "drag_to":
        await frame.click(position=point, timeout=_PRESSED_WITHIN)
    else:
        end = await _point(frame, to)
        if end is None:
            return _outside()
        await frame.hover(position=point, timeout=_PRESSED_WITHIN)
        await page.mouse.down()
        try:
            for _ in range(2):  # a browser begins to drag with the first move
                await frame.hover(position=end, timeout=_PRESSED_WITHIN)
        finally:
            await page.mouse.up()
    return None


async def _type(
    page: BrowserPage, frame: Locator, request: dict[str, Any], target: object, drive: Drive
) -> dict[str, Any] | None:
    action, value = request["action"], str(request.get("value") or "")
    if action == "press":
        await frame.focus(timeout=_PRESSED_WITHIN)
    else:
        point = await _point(frame, target)
        if point is None:
            return _outside()
        await frame.click(position=point, timeout=_PRESSED_WITHIN)
    focused = await drive({"op": "focus", "ref": request["ref"], "action": action})
    if "problem" in focused:
        return focused
    if not await frame.evaluate(_HAS_FOCUS):
        return await drive(request)  # by events: keys would go somewhere else
    if action == "type":
        await page.keyboard.insert_text(value)
    else:
        try:
            await page.keyboard.press("Delete" if action == "clear" else value)
        except Exception as error:  # noqa: BLE001 - as above
            return _problem("unfit", f"It is no key: {_first_line(error)}")
    return None


async def _point(frame: Locator, target: object) -> Position | None:
    """Where to press in the frame; None if that is not in it."""
    place, box = as_object(target), await frame.bounding_box(timeout=_PRESSED_WITHIN)
    x, y = place.get("x"), place.get("y")
    if box is None or not isinstance(x, int | float) or not isinstance(y, int | float):
        return None
    if not (math.isfinite(x) and math.isfinite(y)):
        return None
    inside = 0 <= x < box["width"] and 0 <= y < box["height"]
    return {"x": float(x), "y": float(y)} if inside else None


def _problem(kind: str, detail: str) -> dict[str, Any]:
    return {"problem": kind, "detail": detail}


def _outside() -> dict[str, Any]:
    return _problem("hidden", "It is outside of the View")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
