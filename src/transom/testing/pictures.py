"""Where two pictures differ: compared by the browser that took one of them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from playwright.async_api import Page

_SCRIPT = Path(__file__).with_name("compare_pictures.js")


class PictureDifference(NamedTuple):
    """What differs between two pictures."""

    part: float
    """How many dots differ, as a part of all; 1 if the sizes do."""
    sizes: str
    """Both sizes, if they differ."""
    picture: bytes
    """A PNG of the second, faded, with what differs in red."""


async def compare_pictures(beside: Page, one: bytes, other: bytes) -> PictureDifference:
    """Compare two PNGs, in a page of their own beside another."""
    page = await beside.context.new_page()
    try:
        texts = [base64.b64encode(each).decode() for each in (one, other)]
        found: Any = await page.evaluate(_SCRIPT.read_text(), texts)
    finally:
        await page.close()
    sizes = f" ({found['sizes']})" if found["sizes"] else ""
    return PictureDifference(found["part"], sizes, base64.b64decode(found["picture"]))
