"""Pages with React: the hooks of ext-apps and of sunpeak, and ours in their place. In Chromium."""

import pytest
from playwright.async_api import BrowserContext

from tests.browser.bundling import bundled_page
from tests.browser.transomjs_host import LIBRARY, ROOT, View, mounted
from transom.testing import ViewsFixture

SAMPLES = ROOT / "tests" / "web" / "js" / "react"
REACT = LIBRARY.with_name("react.js")
OURS = (f"sunpeak={REACT}", f"@modelcontextprotocol/ext-apps/react={REACT}")
BODY = '<div id="root"></div>'


SAMPLED = ["ext_apps", "sunpeak_register", "sunpeak_tools"]


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.parametrize(
    "alias",
    [pytest.param((), id="theirs"), pytest.param(OURS, id="ours")],
)
async def test_a_page_written_for_their_hooks_runs_in_our_host_with_theirs_and_with_ours(
    views: ViewsFixture, alias: tuple[str, ...]
):
    views.configure(theme="dark", open_timeout=60)
    for sample in SAMPLED:
        html = bundled_page(SAMPLES / f"{sample}.tsx", alias=alias, body=BODY)
        view = await views.open(html=html, arguments={"label": f"for {sample}"})
        await view.assert_tools("insert-text", timeout=60)
        assert view.tools["insert-text"].input_schema["properties"]["text"]["type"] == "string"
        assert (await view.call("insert-text", text=" And more.")).text == "Inserted"
        await view.page.get_by_text("Some words. And more.").wait_for()
        await view.page.locator("h1", has_text=f"for {sample}").wait_for()
        await view.page.locator('main[data-look="dark"]').wait_for()


# --- ours ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own() -> str:
    # With React's development build: Strict Mode mounts every component twice there.
    return bundled_page(
        SAMPLES / "own.tsx", alias=(f"transom/react={REACT}",), body=BODY, mode="development"
    )


async def names(view: View) -> list[str]:
    return sorted(await view.names())


async def change(view: View, changes: str) -> None:
    await view.run(f"set.state({{ ...{changes}, renders: performance.now() }})")


class TestTools:
    async def test_tools_of_components_are_there_from_the_first_listing_once_and_see_the_state(
        self, context: BrowserContext, own: str
    ):
        async with mounted(context, own) as view:
            assert await names(view) == ["first", "named", "remove"]
            assert await view.seen("notifications/tools/list_changed") == []
            [hello] = await view.seen("ui/initialize")
            assert hello["params"]["appInfo"] == {"name": "own", "version": "1"}
            assert hello["params"]["appCapabilities"] == {"tools": {"listChanged": True}}
            assert await view.run("created") == 1
            await view.until("state.isConnected")
            assert await view.run("[state.app.tools.length, state.error]") == [2, None]
            for _ in range(5):  # renders that change nothing tell nobody
                await change(view, "{}")
            assert await view.text("remove", {"track": "one"}) == "Removed one, after 0 others."
            await view.until("document.getElementById('log').textContent === 'one'")
            assert await view.text("remove", {"track": "one"}) == "Removed one, after 1 others."
            assert await view.seen("notifications/tools/list_changed") == []

    async def test_a_schema_that_is_a_function_is_asked_again_and_pushes_nothing(
        self, context: BrowserContext, own: str
    ):
        async with mounted(context, own) as view:
            await change(view, "{ tracks: ['two', 'three'] }")
            await view.until("state.app.tools.some((t) => t.description === 'Remove one of 2')")
            [remove] = [tool for tool in await view.tools() if tool["name"] == "remove"]
            assert remove["inputSchema"]["properties"]["track"]["enum"] == ["two", "three"]
            assert remove["_meta"]["transom/lazy"] is True
            count = len(await view.heard("notifications/tools/list_changed"))
            assert count == 1  # of the description
            await change(view, "{ tracks: ['four', 'five'] }")
            await view.ask("ping")
            [remove] = [tool for tool in await view.tools() if tool["name"] == "remove"]
            assert remove["inputSchema"]["properties"]["track"]["enum"] == ["four", "five"]
            assert len(await view.seen("notifications/tools/list_changed")) == 1

    async def test_what_changes_between_renders_changes_the_tool_and_keeps_it(
        self, context: BrowserContext, own: str
    ):
        async with mounted(context, own) as view:
            await change(view, "{ tracks: [] }")
            await view.heard("notifications/tools/list_changed")
            assert await names(view) == ["first", "named"]
            refused = await view.call("remove", {"track": "one"})
            assert refused["content"][0]["text"] == "Tool remove is disabled: the queue is empty"
            before = await view.run(
                "state.app.tools.find((tool) => tool.name === 'remove').registration"
            )
            await change(view, "{ tracks: ['one'] }")
            await view.heard("notifications/tools/list_changed", 2)
            [remove] = [tool for tool in await view.tools() if tool["name"] == "remove"]
            assert remove["_meta"]["transom/registration"] == before

    async def test_a_tool_goes_with_its_component_and_changes_its_name_with_it(
        self, context: BrowserContext, own: str
    ):
        async with mounted(context, own) as view:
            await change(view, "{ queue: false, name: 'renamed' }")
            await view.heard("notifications/tools/list_changed")
            assert await names(view) == ["first", "renamed"]
            assert await view.text("renamed", {"n": 5}) == "number 5"
            assert (await view.call("renamed", {"n": "x"}))["isError"]
            assert await view.text("renamed", {"n": 13}) == "Not that one."
            await change(view, "{ typed: false }")
            await view.until("state.app.tools.every((tool) => tool.inputSchema === undefined)")
            assert await view.text("renamed", {"n": "x"}) == 'anything {"n":"x"}'
            [renamed] = [tool for tool in await view.tools() if tool["name"] == "renamed"]
            assert "title" not in renamed

    async def test_fixed_lists_of_several_components_are_one(
        self, context: BrowserContext, own: str
    ):
        async with mounted(context, own) as view:
            await view.until("state.isConnected")
            await change(view, "{ second: 'y' }")
            await view.heard("notifications/tools/list_changed")
            assert await names(view) == ["first", "named", "remove", "second"]
            assert await view.text("first") == "first: x"
            assert await view.text("second") == "second: y"
            await change(view, "{ first: null }")
            await view.heard("notifications/tools/list_changed", 2)
            assert await names(view) == ["named", "remove", "second"]


async def test_data_context_and_style_reach_components(context: BrowserContext, own: str):
    csp = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
    async with mounted(context, own, csp=csp) as view:
        assert await view.run("document.documentElement.style.colorScheme") == "dark"
        await view.tell("ui/notifications/tool-input", {"arguments": {"q": 1}})
        await view.tell(
            "ui/notifications/tool-result", {"content": [], "structuredContent": {"n": 2}}
        )
        await view.until("document.querySelector('output').textContent === '[{\"q\":1},{\"n\":2}]'")
        await view.until("document.querySelector('main').dataset.loading === 'false'")
        await view.tell("ui/notifications/tool-input", {"arguments": {"q": 2}})  # another call
        await view.until("document.querySelector('output').textContent === '[{\"q\":2},null]'")
        await view.until("document.querySelector('main').dataset.loading === 'true'")
        fonts = {"styles": {"css": {"fonts": "@font-face { font-family: Host; }"}}}
        changed = {"theme": "light", "locale": "de", **fonts}
        await view.tell("ui/notifications/host-context-changed", changed)
        await view.until("document.querySelector('main').dataset.locale === 'de'")
        assert await view.run("document.documentElement.style.colorScheme") == "light"
        await view.until("document.head.lastElementChild.textContent.includes('Host')")


async def test_a_host_that_refuses_is_an_error_to_show(context: BrowserContext, own: str):
    async with mounted(context, own, ready=False, refuse="not here") as view:
        await view.until("state.error")
        assert await view.run("state") == {"app": None, "isConnected": False, "error": "not here"}


HOOKS = ["useRegisterTool", "useAppTools"]


@pytest.mark.parametrize("hook", HOOKS)
async def test_a_hook_without_an_app_says_what_it_needs(context: BrowserContext, hook: str):
    given = {"useRegisterTool": '"t", {}, () => ""', "useAppTools": "{ tools: [] }"}[hook]
    script = f"""
      import {{ {hook} }} from "transom/react";
      import {{ createElement }} from "react";
      import {{ createRoot }} from "react-dom/client";
      const Alone = () => {{ {hook}({given}); return null; }};
      const options = {{ onUncaughtError: (error) => {{ globalThis.said = error.message; }} }};
      createRoot(document.getElementById("root"), options).render(createElement(Alone));
    """
    page = bundled_page(script, alias=(f"transom/react={REACT}",), body=BODY)
    async with mounted(context, page, ready=False) as view:
        await view.until("globalThis.said")
        assert await view.run("said") == (
            f"{hook} needs useApp({{ appInfo }}) or <AppProvider> above it"
        )
