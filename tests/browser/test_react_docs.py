"""The code in docs/react.md compiles and runs, in Chromium."""

import re
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext

from tests.browser.bundling import bundled_page
from tests.browser.test_transomjs_types import TYPES, compiled
from tests.browser.transomjs_host import LIBRARY, ROOT, mounted

PAGE = (ROOT / "docs" / "react.md").read_text()
CSP = "default-src 'none'; script-src 'unsafe-inline'"
BODY = '<div id="root"></div>'


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


EDITOR, TOOLS, DATA = blocks("tsx")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the code of the page, and with Transom's files where it looks for them."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "transom").symlink_to(LIBRARY.parent)
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    (folder / "tsconfig.json").write_text((TYPES / "tsconfig.json").read_text())
    for name, code in {"editor": EDITOR, "tools": TOOLS, "data": DATA}.items():
        (folder / f"{name}.tsx").write_text(code)
    (folder / "all.tsx").write_text("""
      import { z } from "zod";
      import { useState } from "react";
      import { createRoot } from "react-dom/client";
      import { AppProvider } from "./transom/react.js";
      import { Queue, Selection } from "./tools";
      import { OrderList } from "./data";

      z.config({ jitless: true });

      function Player() {
        const [tracks, setTracks] = useState(["one", "two"]);
        const [selected, select] = useState<string | null>(null);
        (globalThis as any).select = select;
        return (
          <AppProvider appInfo={{ name: "all", version: "1" }}>
            <Queue
              tracks={tracks}
              onRemove={(gone) => setTracks(tracks.filter((track) => track !== gone))}
            />
            <Selection selected={selected} />
            <OrderList />
          </AppProvider>
        );
      }
      createRoot(document.getElementById("root")!).render(<Player />);
    """)
    return folder


@pytest.mark.processes
def test_it_compiles(project: Path):
    assert compiled("-p", str(project)) == ""


def test_the_settings_are_those_of_the_example():
    [config] = blocks("ts")
    example = (ROOT / "examples" / "vite-react" / "vite.config.ts").read_text()
    assert config == re.sub(r"^//.*\n", "", example, flags=re.MULTILINE)


async def test_the_first_page_works_as_it_stands(context: BrowserContext, project: Path):
    page = bundled_page(project / "editor.tsx", body=BODY)
    async with mounted(context, page, csp=CSP) as view:
        assert await view.names() == ["read_text", "write_text"]
        assert await view.text("read_text") == "Some words."
        assert await view.text("write_text", {"text": "Others."}) == "Done."
        await view.until("document.querySelector('textarea')?.value === 'Others.'")
        assert await view.text("read_text") == "Others."
        assert await view.run("document.documentElement.style.colorScheme") == "dark"


async def test_tools_and_data_do_what_the_page_says(context: BrowserContext, project: Path):
    page = bundled_page(project / "all.tsx", body=BODY)
    async with mounted(context, page, csp=CSP) as view:
        [remove] = await view.tools()
        assert remove["inputSchema"]["properties"]["track"]["enum"] == ["one", "two"]
        assert await view.text("remove_from_queue", {"track": "one"}) == "That one is playing."
        assert await view.text("remove_from_queue", {"track": "two"}) == "Removed two."
        await view.until("document.querySelectorAll('ol li').length === 1")
        [remove] = await view.tools()
        assert remove["inputSchema"]["properties"]["track"]["enum"] == ["one"]

        await view.run("select('some words')")
        await view.heard("notifications/tools/list_changed")
        assert await view.names() == ["remove_from_queue", "get-selection"]
        assert await view.text("get-selection") == "some words"

        await view.tell("ui/notifications/tool-input", {"arguments": {"status": "open"}})
        await view.until("document.body.innerText.includes('Orders that are open')")
        await view.tell("ui/notifications/tool-result", {"structuredContent": {"orders": ["A-1"]}})
        await view.until("document.querySelector('ul li')?.textContent === 'A-1'")
        await view.run("document.querySelector('ul li').click()")
        [log] = await view.heard("notifications/message")
        assert log["params"] == {"level": "info", "data": "A-1"}


def test_every_hook_is_on_the_page():
    code = (ROOT / "js" / "src" / "react.ts").read_text()
    hooks = set(re.findall(r"^export function (\w+)", code, re.MULTILINE))
    assert len(hooks) == 11
    assert {hook for hook in hooks if hook not in PAGE} == set()
