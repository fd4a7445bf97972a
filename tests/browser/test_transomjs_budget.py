"""What `transom.js` may cost, and what it must not use."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.browser.transomjs_host import LIBRARY, ROOT
from transom.server.page import inline_transom

WEBMCP = LIBRARY.with_name("webmcp.js")


def minified(file: Path) -> bytes:
    command = [str(ROOT / "node_modules" / ".bin" / "esbuild"), str(file), "--minify"]
    return subprocess.run(command, capture_output=True, check=True).stdout


def test_minified_it_is_less_than_sixteen_kilobytes():
    library = minified(LIBRARY)
    assert b"registerTool" in library
    assert len(library) < 16 * 1024


def test_the_hooks_are_five_more_for_pages_with_react():
    assert len(minified(LIBRARY.with_name("react.js"))) < 5 * 1024


def test_webmcp_is_three_more_for_pages_that_use_it():
    assert len(minified(WEBMCP)) < 3 * 1024
    code = WEBMCP.read_text()
    assert re.findall(r"^(?:import|export)\b.*", code, re.MULTILINE) == [
        'import { App } from "./transom.js";'
    ]


@pytest.mark.parametrize("file", [LIBRARY, WEBMCP], ids=lambda file: file.name)
def test_it_depends_on_nothing_and_evaluates_nothing(file: Path):
    code = re.sub(r"/\*.*?\*/|(?<!:)//[^\n]*", "", file.read_text(), flags=re.DOTALL)
    code = code.replace('import { App } from "./transom.js";', "")
    for forbidden in (
        r"\bimport\b",
        r"\beval\b",
        r"\bnew Function\b",
        "blob:",
        "data:",
        r"\bfetch\b",
    ):
        assert not re.search(forbidden, code), forbidden


def test_it_can_be_put_into_a_page():
    page = inline_transom('<!doctype html><script src="transom.js"></script>')
    assert "globalThis.transom = { App, ProtocolError, ToolError }" in page
