"""What the scripts may cost, and what they must not use. `make js` has built them from `js/src`."""

import re

import pytest

from tests.browser.transomjs_host import LIBRARY
from transom.server.resource import inline_transom

STATIC = LIBRARY.parent
KILOBYTE = 1024


@pytest.mark.parametrize(
    ("asks", "most"),
    [
        ("", 20),
        ("document.modelContext.registerTool({})", 23),
        ("import('zod')", 24),
        ("'<form toolname>'", 27),
    ],
)
def test_a_page_carries_twenty_kilobytes_and_more_for_what_it_mentions(asks: str, most: int):
    tag = '<script src="transom.js"></script>'
    page = f"<!doctype html>{tag}<script>{asks}</script>"
    carried = inline_transom(page)
    assert "registerTool" in carried
    assert len(carried.encode()) - len(page.replace(tag, "<script></script>")) <= most * KILOBYTE


def test_the_lines_of_a_page_keep_their_numbers():
    text = '<!doctype html>\n<script type="module">\nimport {\n  App,\n}\nfrom\n"transom";\nlast\n'
    page = inline_transom(text + "</script><form toolname=a></form>")
    assert "registerTool" in page
    assert page.splitlines().index("last") == text.splitlines().index("last")


@pytest.mark.parametrize(("module", "most"), [("react.js", 5), ("webmcp.js", 7.5), ("zod.js", 4)])
def test_a_module_beside_it_does_not_carry_it_again(module: str, most: float):
    assert (STATIC / module).stat().st_size <= most * KILOBYTE


@pytest.mark.parametrize(
    "name", ["inline.js", "inline-webmcp.js", "inline-forms.js", "inline-zod.js"]
)
def test_what_a_page_carries_depends_on_nothing_and_evaluates_nothing(name: str):
    code = (STATIC / name).read_text()
    for forbidden in (
        r"\bimport\b",
        r"\beval\b",
        r"\bnew Function\b",
        r"[\"'`](blob|data):",
        r"\bfetch\b",
    ):
        assert not re.search(forbidden, code), forbidden
