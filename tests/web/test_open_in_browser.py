"""Opening the user's browser: what it is told, and how."""

import asyncio
from pathlib import Path

import pytest

from transom.errors import TransomError
from transom.web.renderers import open_in_browser

URL = "http://127.0.0.1:9/#token=a-secret-that-nobody-sees"


def browser(folder: Path, script: str) -> str:
    """A browser of our own, for the environment's BROWSER."""
    made = folder / "browser"
    made.write_text(f"#!/bin/sh\n{script}\n")
    made.chmod(0o755)
    return str(made)


async def test_the_browser_gets_the_address_and_its_opener_has_it_on_no_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, opener = tmp_path / "told", tmp_path / "opener"
    script = f'tr "\\0" " " </proc/$PPID/cmdline >{opener}; printf %s "$1" >{told}'
    monkeypatch.setenv("BROWSER", browser(tmp_path, script))
    await open_in_browser(URL)
    assert await asyncio.to_thread(told.read_text) == URL
    command = await asyncio.to_thread(opener.read_text)
    assert "webbrowser" in command
    assert "token" not in command


async def test_a_browser_that_fails_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER", browser(tmp_path, "exit 1"))
    monkeypatch.setenv("DISPLAY", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TransomError, match="No browser could be opened"):
        await open_in_browser(URL)
