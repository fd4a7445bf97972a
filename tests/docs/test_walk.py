"""docs/architecture.md names every file that a call passes: a profiler follows two calls."""

import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.gateway.memory import Gateway, gateway

ROOT = Path(__file__).parents[2]
SOURCE = f"{ROOT / 'src' / 'transom'}/"
PAGE = re.sub(r"(?<!\n)\n(?!\n)", " ", (ROOT / "docs" / "architecture.md").read_text())
# The View is a Python program in the same process here; its own side is not the gateway's path.
OF_THE_VIEW = ("view/", "schema/", "results.py")


def named(title: str) -> list[str]:
    """The files of one list of the page, which begins with its title and their number."""
    found = re.search(rf"^\*\*{title}\*\* \((\d+)\)[:,] (.*)$", PAGE, re.MULTILINE)
    assert found is not None, f"docs/architecture.md has no list {title}"
    files = re.findall(r"`([\w/]+\.py)`", found[2])
    assert len(files) == len(set(files)) == int(found[1])
    return files


async def crossed(work: Callable[[], Awaitable[object]]) -> set[str]:
    """The files of Transom in which a function runs, until the work is done."""
    seen: set[str] = set()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            seen.add(frame.f_code.co_filename.removeprefix(SOURCE))

    sys.setprofile(profile)
    try:
        await work()
    finally:
        sys.setprofile(None)
    return {name for name in seen if not name.startswith(OF_THE_VIEW)}


async def opening(at: Gateway) -> set[str]:
    await at.open()  # so that the client's host is there
    await at.changed()

    async def work() -> None:
        await at.call("show")
        await at.changed(2)

    return await crossed(work)


async def calling(at: Gateway) -> set[str]:
    await at.open()
    await at.changed()
    [tool] = [name for name in await at.tools() if name.endswith("__read")]
    await at.call(tool)
    return await crossed(lambda: at.call(tool))


CALL, OPENING, BEGINNING, HELPERS = (
    "A View tool's call",
    "A call that opens a View",
    "The View begins meanwhile",
    "Helpers",
)
LISTS = (CALL, OPENING, BEGINNING, HELPERS)


@pytest.mark.parametrize(
    ("title", "walk", "beside"), [(CALL, calling, []), (OPENING, opening, named(BEGINNING))]
)
async def test_the_page_names_the_files_that_a_call_passes(
    title: str, walk: Callable[[Gateway], Awaitable[set[str]]], beside: list[str]
) -> None:
    async with gateway() as at:
        seen = await walk(at)
    everything = {name for each in LISTS for name in named(each)}
    assert sorted(seen - everything) == [], "files that the page does not name"
    assert sorted({*named(title), *beside} - seen) == [], "files that the call does not pass"
    count = re.search(
        rf"{title[0].lower()}{title[1:]} (crosses )?(\d+)", PAGE.replace(". A", ". a")
    )
    assert count is not None
    assert abs(int(count[2]) - len(seen)) <= 2  # a timer of something else may run meanwhile


def test_few_files_do_something_to_a_call() -> None:
    assert len(named(CALL)) <= 18
    assert len(named(OPENING)) <= 22


async def test_a_helper_is_used_by_one_of_the_calls_and_is_on_the_path_of_none() -> None:
    async with gateway() as first, gateway() as second:
        seen = await calling(first) | await opening(second)
    *paths, helpers = (set(named(each)) for each in LISTS)
    assert sorted(helpers - seen) == []
    assert [sorted(helpers & path) for path in paths] == [[], [], []]
    assert set(named(OPENING)).isdisjoint(named(BEGINNING))
