"""A Python View in a real browser, in a frame of another origin than its host."""

import io
import shutil
import zipfile
from pathlib import Path

import pytest
from playwright.async_api import Route, async_playwright

ROOT = Path(__file__).parents[2]
PAGES = Path(__file__).parent / "pages"
KNOWN = ROOT / ".venv" / ".chromium"
TYPES = {".mjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}


def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    return found or KNOWN.read_text().strip()


def transom_as_zip() -> bytes:
    archive = io.BytesIO()
    source = ROOT / "src"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in source.rglob("*.py"):
            packed.write(file, file.relative_to(source))
    return archive.getvalue()


@pytest.mark.timeout(180)  # WebAssembly is compiled at each start
async def test_an_app_in_a_frame_of_another_origin_talks_to_its_host() -> None:
    (wheel,) = (ROOT / ".venv" / "pyodide").glob("msgspec-*.whl")
    archives = {"/msgspec.zip": wheel.read_bytes(), "/transom.zip": transom_as_zip()}
    complaints: list[str] = []

    async def answer(route: Route) -> None:
        origin, _, path = route.request.url.removeprefix("http://").partition("/")
        if origin == "host.test":
            await route.fulfill(path=PAGES / "host.html")
        elif path == "":
            await route.fulfill(path=ROOT / "docs" / "samples" / "page.html")
        elif f"/{path}" in archives:
            await route.fulfill(body=archives[f"/{path}"])
        else:
            file = ROOT / "node_modules" / path
            await route.fulfill(path=file, content_type=TYPES.get(file.suffix))

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium())
        page = await browser.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        await page.route("**/*", answer)
        await page.goto("http://host.test/")
        try:
            await page.wait_for_function("document.title === 'done'", timeout=160_000)
        except Exception as error:
            raise AssertionError(complaints) from error
        seen = await page.evaluate("window.seen")
        await browser.close()
    assert seen["app"] == {"origin": "http://view.test", "name": "in-a-page", "version": "1"}
    assert [tool["name"] for tool in seen["list"]["tools"]] == ["shout"]
    assert seen["call"]["content"] == [{"type": "text", "text": "HI! (dark)"}]
