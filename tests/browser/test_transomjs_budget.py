"""What `transom.js` may cost, and what it must not use."""

import re
import subprocess

from tests.browser.transomjs_host import LIBRARY, ROOT
from transom.server.inline import inline_transom

BUDGET = 12 * 1024


def test_minified_it_is_less_than_twelve_kilobytes():
    command = [str(ROOT / "node_modules" / ".bin" / "esbuild"), str(LIBRARY), "--minify"]
    minified = subprocess.run(command, capture_output=True, check=True).stdout
    assert b"modelContext" in minified
    assert len(minified) < BUDGET


def test_it_depends_on_nothing_and_evaluates_nothing():
    code = re.sub(r"/\*.*?\*/|(?<!:)//[^\n]*", "", LIBRARY.read_text(), flags=re.DOTALL)
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
