"""An inlined `transom.js` runs in a browser under the strictest policy a host may set."""

from __future__ import annotations

import importlib.resources
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Route, async_playwright

from transom.server import resource as inline
from transom.server.resource import ViewHtml

pytestmark = pytest.mark.processes

STRICT = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
KNOWN = Path(__file__).parents[2] / ".venv" / ".chromium"

LIBRARY = """
/** Closes itself: </script> and <!-- */
(() => {
  class App {
    constructor(name) { this.name = name; }
    html() { return "</script><!--"; }
  }
  globalThis.transom = { App, VERSION: "1" };
})();
"""

PAGE = """<!doctype html>
<title>Inlined</title>
<script src="transom.js"></script>
<script>window.classic = new transom.App("classic").name</script>
<script type="module">
  import { App, VERSION as version } from "transom";
  window.module = new App("module").name + version + new App("").html();
</script>
<script type="module">
  import * as t from "transom";
  window.second = new t.App("second").name;
  document.title = "done";
</script>
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    file = tmp_path / "web" / "static" / "inline.js"
    file.parent.mkdir(parents=True)
    file.write_text(LIBRARY)
    monkeypatch.setattr(importlib.resources, "files", lambda _: tmp_path)
    inline._library.cache_clear()
    yield
    inline._library.cache_clear()


async def test_classic_and_module_scripts_find_the_library(library: None):
    page_text = ViewHtml("ui://a/b", PAGE).read()
    errors: list[str] = []

    async def answer(route: Route) -> None:
        headers = {"content-type": "text/html", "content-security-policy": STRICT}
        await route.fulfill(body=page_text, headers=headers)

    chromium = shutil.which("chromium") or (KNOWN.read_text().strip() if KNOWN.exists() else None)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = await browser.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text))
        await page.route("**/*", answer)
        await page.goto("http://view.invalid/")
        await page.wait_for_function("document.title === 'done'")
        seen = await page.evaluate("[window.classic, window.module, window.second]")
        await browser.close()
    assert seen == ["classic", "module1</script><!--", "second"]
    assert errors == []
