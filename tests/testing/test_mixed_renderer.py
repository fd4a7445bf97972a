"""The renderer of the kit: Views in Python beside Views in a browser."""

from typing import Any

from transom import App, Host
from transom.errors import TransomError
from transom.testing.browser import MixedRenderer
from transom.types import Tool


def tool(uri: object) -> Tool:
    return Tool(name="show", input_schema={}, meta={"ui": {"resourceUri": uri}})


async def test_the_browser_is_waited_for_if_a_view_needs_it_and_only_then():
    heard: list[str] = []

    class Browser:
        async def show_page(self) -> None:
            heard.append("shown")

        def attach_host(self, host: Host) -> None:
            heard.append("attached")

    async def browser() -> Any:
        return Browser(), Browser()

    python = "ui://python/view.html"
    apps = {python: lambda: App("python", "1.0.0")}
    renderer = MixedRenderer(apps, browser, lambda: heard.append("configured"))
    async with Host(renderer=renderer, audit=None):
        for tool_of_no_page in (Tool(name="plain", input_schema={}), tool(python), tool(5)):
            assert await renderer.wait_for_browser(tool_of_no_page) == ""
        assert heard == []
        assert await renderer.wait_for_browser(tool("ui://page/view.html")) == ""
        assert await renderer.wait_for_browser(tool(python)) == ""
        assert heard == ["attached", "configured", "shown"]


async def test_why_the_browser_did_not_start_is_known():
    class Browser:
        async def show_page(self) -> None:
            raise TransomError("Chromium is not there")

        def attach_host(self, host: Host) -> None:
            pass

    async def browser() -> Any:
        return Browser(), Browser()

    renderer = MixedRenderer({}, browser, lambda: None)
    async with Host(renderer=renderer, audit=None):
        why = await renderer.wait_for_browser(tool("ui://page/view.html"))
    assert why == "Chromium is not there"
