"""The first test of `docs/testing.md`, pytest and all, beside what starts in it, started bare.

python -m benchmarks.testing_rows
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from playwright.async_api import async_playwright

from benchmarks.client import client_of
from benchmarks.page import ROOT, print_lines
from transom.web.local.chromium import chromium_arguments, find_chromium

__all__ = ["measure"]

BUDGET = 10.0
FILES = ("docs/testing/test_orders.py", "examples/orders.py", "examples/orders.html")
FIRST = "test_the_model_sees_what_the_user_selects"
# As a stranger has it: without our settings, and without what else is installed for our tests.
PYTEST = [
    *(sys.executable, "-m", "pytest", "-q", "-c", os.devnull),
    *("-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:timeout"),
]


def test_bare() -> None:
    """The peer: the same server answers, and the same browser clicks; run by pytest as well."""
    asyncio.run(_start_bare())


async def _start_bare() -> None:
    async with client_of([sys.executable, str(ROOT / "examples" / "orders.py")]) as client:
        await client.initialize()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_chromium(), args=chromium_arguments()
        )
        page = await browser.new_page()
        await page.set_content("<button>Oak desk</button>")
        await page.get_by_text("Oak desk").click()
        await browser.close()


def _seconds(command: Sequence[str], folder: str | Path) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def measure(seconds: float = 1.0) -> list[tuple[Any, ...]]:
    """The rows of `make bench`."""
    ours: list[float] = []
    bare: list[float] = []
    with TemporaryDirectory() as folder:
        for file in FILES:
            shutil.copy(ROOT / file, folder)
        for _ in range(max(3, int(10 * seconds))):
            ours.append(_seconds([*PYTEST, f"test_orders.py::{FIRST}"], folder))
            bare.append(_seconds([*PYTEST, f"{__file__}::test_bare"], ROOT))
    took, theirs = median(ours), median(bare)
    return [
        (
            "a first test of a View, pytest and all",
            took * 1000,
            "ms",
            "its server and Chromium, bare",
            theirs * 1000,
            took / theirs,
            f"<= {BUDGET:g} s",
            took <= BUDGET,
        )
    ]


if __name__ == "__main__":
    print_lines(measure())
