"""The parts of the page of `transom dev` in Chromium, with a server in this process."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Annotated, Any, Literal

import pytest
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations
from playwright.async_api import Locator, expect
from playwright.async_api import Page as BrowserPage
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp

from tests.browser.hosting import Chromium, User, expect_shown
from tests.browser.test_dev import view_in
from tests.browser.test_stage_views import AXE, SERIOUS
from tests.ports import reserved_port
from transom.dev.run import ServerRun
from transom.dev.session import DevSession, DevTarget
from transom.server import Views
from transom.serving import listen, serve

PAGE = """<!doctype html><title>Shop</title><p id="input"></p><p id="told"></p><p id="context"></p>
<script src="transom.js"></script>
<script>
const app = new transom.App({ name: "Shop", version: "1" });
const say = (text) => { told.textContent += ` ${text}`; };
const tell = () => {
  const { locale, timeZone, safeAreaInsets, containerDimensions, displayMode } =
    app.getHostContext();
  context.textContent =
    JSON.stringify({ locale, timeZone, safeAreaInsets, containerDimensions, displayMode });
};
let colours = ["red"];
app.registerTool("paint", { inputSchema: () => ({ type: "object",
  properties: { colour: { type: "string", enum: colours } }, required: ["colour"] }) },
  ({ colour }) => `painted ${colour}`);
app.registerTool("torn", { inputSchema: () => { throw new Error("no colours"); } }, () => "");
app.registerTool("inner", { _meta: { ui: { visibility: ["app"] } } }, () => "inside");
const gone = app.registerTool("gone", {}, () => "still here");
app.registerTool("change", {}, () => {
  gone.remove();
  colours = ["red", "green"];
  app.sendToolListChanged();
  return "changed";
});
app.ontoolinputpartial = ({ arguments: given }) => say(`partial ${given.title}`);
app.ontoolinput = ({ arguments: given }) => { input.textContent = JSON.stringify(given); };
app.ontoolresult = () => say("result");
app.ontoolcancelled = ({ reason }) => say(`cancelled: ${reason}`);
app.onhostcontextchanged = tell;
app.connect().then(tell);
</script>"""


class Address(BaseModel):
    """Where it goes."""

    street: str
    floor: int | None = None


class Card(BaseModel):
    """By card."""

    number: str


class Cash(BaseModel):
    """In cash."""

    coins: int


class Van(BaseModel):
    """By van."""

    kind: Literal["van"]
    doors: int


class Bike(BaseModel):
    """By bike."""

    kind: Literal["bike"]
    gears: int


Size = Literal["small", "large"]


def shop() -> MCPServer:
    views = Views()
    page = views.add("ui://shop/page.html", html=PAGE)
    waiting = asyncio.Event()

    @views.tool(opens=page, annotations={"readOnlyHint": True})
    async def show(title: str = "") -> str:
        """Show the shop; or never, if it shall wait."""
        if title == "wait":
            await waiting.wait()
        return f"shown {title}"

    server = MCPServer("shop", extensions=[views])

    @server.tool(annotations=ToolAnnotations(destructive_hint=False), structured_output=False)
    def order(
        name: str,
        size: Size,
        gift: bool,
        address: Address,
        pay: Annotated[Card | Cash, Field(description="How")],
        count: int = 2,
        price: float = 1.5,
        tags: list[str] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> str:
        """Order something."""
        given = [name, size, gift, address.model_dump(), pay.model_dump(), count, price]
        return json.dumps([*given, tags, extra])

    @server.tool()
    def send(by: Annotated[Van | Bike, Field(discriminator="kind")]) -> str:  # a `oneOf`
        """Send it."""
        return by.model_dump_json()

    @server.tool()
    async def work(ctx: Context[Any, Any]) -> str:
        """Work without an end."""
        await ctx.report_progress(1, 3, "step one")
        await waiting.wait()
        return "never"

    return server


@asynccontextmanager
async def developed(
    server: Any, browser: Chromium, *, state: str = "running", **options: Any
) -> AsyncIterator[tuple[User, DevSession]]:
    """A session for a server, and an author at its page, in which nothing may go wrong."""
    problems: list[str] = []
    async with browser.user(viewport={"width": 1280, "height": 720}) as user:
        opened = asyncio.Event()

        async def open_page(url: str) -> None:
            await user.open_page(url)
            opened.set()

        options = {"checks": False, "ephemeral": True, "timeout": 60.0, **options}
        session = DevSession(DevTarget("shop", "shop.py", server), open_page, **options)
        running = asyncio.create_task(session.run())
        try:
            await opened.wait()
            user.page.on("pageerror", lambda error: problems.append(str(error)))
            await expect(user.page.locator("#server")).to_have_attribute("data-state", state)
            yield user, session
        finally:
            running.cancel()
            await asyncio.wait([running])
    assert problems == []


async def press_call(page: BrowserPage) -> None:
    await page.get_by_role("button", name="Call", exact=True).click()


async def test_a_form_has_a_field_for_every_kind_of_argument_and_keeps_what_was_entered(
    browser: Chromium,
) -> None:
    async with developed(shop(), browser) as (user, _):
        page = user.page
        form, result = page.locator("#tool-form"), page.locator("#result")
        await page.get_by_role("button", name="order", exact=True).click()
        await expect(form.locator(".badges")).to_have_text("not destructive")
        await expect(form.get_by_role("textbox", name="Name")).to_have_attribute(
            "aria-required", "true"
        )
        await expect(form.get_by_label("count")).not_to_have_attribute("aria-required", "true")
        await expect(form.get_by_label("count")).to_have_value("2")
        await form.get_by_role("textbox", name="Name").fill("Tea")
        await form.get_by_label("size").select_option("large")
        await form.get_by_label("gift").check()
        await form.get_by_label("street").fill("High Street")
        await form.get_by_label("floor").fill("3")
        await form.get_by_label("Variant of pay").select_option("Cash")
        await form.get_by_role("spinbutton", name="Coins").fill("7")
        await form.get_by_label("price").fill("2.25")
        await form.get_by_role("button", name="Add item").click()
        await page.keyboard.type("green")
        await form.get_by_label("extra").fill('{"note": ')
        await page.keyboard.press("Control+Enter")
        await expect(form.get_by_role("alert")).to_contain_text("Extra is not JSON")
        await form.get_by_label("extra").fill('{"note": [1]}')
        await page.keyboard.press("Control+Enter")
        await expect(result.locator("pre").first).to_contain_text("Tea")
        assert json.loads(await result.locator("pre").first.inner_text()) == [
            *("Tea", "large", True, {"street": "High Street", "floor": 3}, {"coins": 7}, 2, 2.25),
            *(["green"], {"note": [1]}),
        ]

        # As JSON, and back; saved, and chosen again; all of it is there after a reload.
        await form.get_by_role("button", name="Save call").click()
        await form.get_by_label("Edit as JSON").check()
        written = form.get_by_label("Arguments")
        given = json.loads(await written.input_value())
        await written.fill(json.dumps({**given, "name": "Coffee"}))
        await form.get_by_label("Edit as JSON").uncheck()
        await expect(form.get_by_role("textbox", name="Name")).to_have_value("Coffee")
        await page.reload()
        await expect(form.get_by_role("textbox", name="Name")).to_have_value("Coffee")
        await form.locator(".saved").get_by_role("button", name="Tea").first.click()
        await expect(form.get_by_role("textbox", name="Name")).to_have_value("Tea")
        await expect(form.get_by_role("spinbutton", name="Coins")).to_have_value("7")

        # One of several, as `oneOf` has it.
        await page.get_by_role("button", name="send", exact=True).click()
        await expect(form.get_by_label("doors")).to_be_visible()
        await form.get_by_label("Variant of By").select_option("Bike")
        await expect(form.get_by_label("doors")).to_have_count(0)
        await form.get_by_label("gears").fill("7")
        await press_call(page)
        await expect(result.locator("pre").first).to_have_text('{"kind":"bike","gears":7}')
        await page.reload()
        await expect(form.get_by_label("gears")).to_have_value("7")
        await expect(form.get_by_label("Variant of By")).to_have_value("1")

        # Progress, and cancelled.
        await page.get_by_role("button", name="work", exact=True).click()
        await press_call(page)
        await expect(result).to_contain_text("1 of 3 step one")
        await form.get_by_role("button", name="Cancel").click()
        await expect(result.locator(".badge")).to_have_text("cancelled")


async def test_the_host_is_chosen_the_input_typed_and_the_tools_of_a_view_followed(
    browser: Chromium, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def screenshot(_: ServerRun) -> bytes:
        return b"a picture"

    monkeypatch.setattr(ServerRun, "screenshot", screenshot)
    async with developed(shop(), browser) as (user, session):
        page, view = user.page, view_in(user.page)
        panel, title = page.locator("#view-panel"), page.get_by_role("textbox", name="title")

        # The View sees what is typed, then the call; and another call that is cancelled.
        await page.get_by_label("Input").select_option("as I type")
        await title.press_sequentially("Te")
        await expect(view.locator("#told")).to_contain_text("partial Te")
        await title.press_sequentially("a")
        await expect(view.locator("#told")).to_contain_text("partial Tea")
        await expect(view.locator("#input")).to_have_text("")
        await press_call(page)
        await expect(view.locator("#input")).to_have_text('{"title":"Tea"}')
        await expect(view.locator("#told")).to_contain_text("result")
        await expect(panel).to_contain_text("liveshop-1")
        await page.get_by_label("Input").select_option("with the call")

        # Its tools, and how they change.
        rows = panel.locator("ul.tools > li")
        await expect(rows.filter(has_text="paint")).to_contain_text("lazy")
        await expect(rows.filter(has_text="torn")).to_contain_text("unavailable")
        await expect(rows.filter(has_text="torn")).to_contain_text("no colours")
        await expect(rows.filter(has_text="inner")).to_contain_text("app only")
        await rows.get_by_role("button", name="change").click()
        await panel.get_by_role("button", name="Call as the page").click()
        await expect(panel).to_contain_text("\N{MINUS SIGN} gone")
        await panel.get_by_text("± paint").click()
        await expect(panel.get_by_label("Now")).to_contain_text("green")
        await expect(panel.get_by_label("Before")).not_to_contain_text("green")

        # What it is told of its host; the same again by a link.
        await page.get_by_text("More", exact=True).click()
        for name, value in {"Locale": "de-CH", "Time zone": "Asia/Tokyo"}.items():
            await page.get_by_label(name).fill(value)
        await page.get_by_label("Largest height").fill("300")
        await page.get_by_label("Safe area").fill("20")
        await page.get_by_label("Width").select_option("phone (390)")
        told = view.locator("#context")
        for text in (
            '"locale":"de-CH","timeZone":"Asia/Tokyo"',
            '{"top":20,"right":20,"bottom":20,"left":20}',
            '{"width":388,"maxHeight":300}',
        ):
            await expect(told).to_contain_text(text)
        await page.locator("#mode").select_option("fullscreen")
        await expect(told).to_contain_text('"displayMode":"fullscreen"')
        await page.keyboard.press("Escape")
        await expect(told).to_contain_text('"displayMode":"inline"')
        await expect(page.locator("#mode")).to_have_value("")
        for part in ("locale=de-CH", "zone=Asia", "height=300", "inset=20", "width=phone"):
            assert part in page.url
        await page.reload()
        restored = {"Width": "phone", "Safe area": "20", "Largest height": "300"}
        restored |= {"Locale": "de-CH", "Time zone": "Asia/Tokyo"}
        for name, value in restored.items():
            await expect(page.get_by_label(name)).to_have_value(value)
        await expect(told).to_contain_text('"locale":"de-CH","timeZone":"Asia/Tokyo"')
        await expect(told).to_contain_text('{"width":388,"maxHeight":300}')

        async with page.expect_download() as saved:
            await page.get_by_text("More", exact=True).click()
            await page.get_by_role("button", name="Screenshot").click()
        assert (await saved.value).suggested_filename == "view.png"
        assert (await (await saved.value).path()).read_bytes() == b"a picture"

        # A call that is cancelled; what is always allowed, and who was asked.
        await title.fill("wait")
        await press_call(page)
        await expect(view.locator("#input")).to_have_text('{"title":"wait"}')
        await page.locator("#tool-form").get_by_role("button", name="Cancel").click()
        await expect(view.locator("#told")).to_contain_text("cancelled")
        await page.get_by_label("Approvals").select_option("ask me")
        await rows.get_by_role("button", name="paint").click()
        await panel.get_by_role("button", name="Call as the model").click()
        card = page.get_by_role("alertdialog")
        await card.get_by_role("button", name="Always allow").click()
        await page.get_by_role("tab", name="Context").click()
        await expect(page.locator("#context")).to_contain_text("paint (model)")
        await page.get_by_role("tab", name="Context").press("ArrowRight")
        await expect(page.locator("#audit")).to_contain_text("approval")

        # As narrow as a phone, and dark.
        await page.emulate_media(color_scheme="dark")
        await page.set_viewport_size({"width": 400, "height": 800})
        assert await page.evaluate("document.documentElement.scrollWidth") <= 400
        await page.evaluate(AXE)
        assert await page.evaluate(SERIOUS) == []
        assert session.page.get("server")["state"] == "running"


async def tab_to(page: BrowserPage, wanted: Locator) -> None:
    """Press Tab until this has the focus."""
    await expect(wanted).to_be_visible()
    for _ in range(100):
        await page.keyboard.press("Tab")
        if await wanted.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"Tab does not reach {wanted}")


async def test_everything_can_be_done_by_keyboard(browser: Chromium) -> None:
    async with developed(shop(), browser) as (user, _):
        page, view = user.page, view_in(user.page)
        form, panel = page.locator("#tool-form"), page.locator("#view-panel")
        result = page.locator("#result")

        async def use(wanted: Locator, *keys: str) -> None:
            await tab_to(page, wanted)
            for key in keys:
                await page.keyboard.press(key)

        # A tool is chosen, its form filled, and the call made.
        await use(page.get_by_role("button", name="send", exact=True), "Enter")
        await use(form.get_by_label("Variant of By"), "ArrowDown")
        await use(form.get_by_label("gears"), "3")
        await use(form.get_by_role("button", name="Call", exact=True), "Enter")
        await expect(result.locator("pre").first).to_have_text('{"kind":"bike","gears":3}')
        await use(page.get_by_role("button", name="show", exact=True), "Enter")
        await tab_to(page, form.get_by_role("textbox", name="title"))
        await page.keyboard.type("Tea")
        await page.keyboard.press("Control+Enter")
        await expect(view.locator("#input")).to_have_text('{"title":"Tea"}')

        # The same with a tool of the View, which Tab passes through.
        await use(panel.get_by_role("button", name="paint"), "Enter")
        await use(panel.get_by_role("combobox", name="colour"), "ArrowDown")
        await use(panel.get_by_role("button", name="Call as the model"), "Enter")
        await expect(result.locator("pre").first).to_have_text("painted red")

        # The traffic: filtered, and a message read.
        await use(page.get_by_role("tab", name="Result"), "ArrowRight")
        await expect(page.get_by_role("tab", name="Traffic")).to_be_focused()
        traffic = page.locator("#traffic")
        await tab_to(page, traffic.get_by_role("searchbox"))
        await page.keyboard.type("ui/initialize")
        await use(traffic.get_by_label("Which messages"), "V")
        lines = traffic.locator(".line")
        await expect(lines).to_have_count(2)
        await use(traffic.get_by_role("listbox"), "Home", "ArrowDown")
        await expect(lines.nth(1)).to_have_attribute("aria-selected", "true")
        await expect(traffic.locator(".detail")).to_contain_text("Its request")


async def test_another_program_at_the_address_of_a_server_is_explained_until_it_is_gone(
    browser: Chromium,
) -> None:
    port, server = reserved_port(), shop()
    app, stranger = server.streamable_http_app(), PlainTextResponse("another program", 404)

    def at_port(app: ASGIApp) -> AbstractAsyncContextManager[None]:
        return serve(app, [listen("127.0.0.1", port)])

    async with AsyncExitStack() as there:
        await there.enter_async_context(at_port(stranger))
        url = f"http://127.0.0.1:{port}/mcp"
        async with developed(url, browser, state="failed") as (user, _):
            page, failure = user.page, user.page.locator("#failure")
            await expect(failure).to_contain_text("The server does not start")
            await expect(failure).to_contain_text("404")
            await expect(failure).to_contain_text("It is tried again by itself.")
            await there.aclose()
            await there.enter_async_context(server.session_manager.run())
            await there.enter_async_context(at_port(app))
            await expect(failure).not_to_be_visible()
            await press_call(page)
            await expect_shown(view_in(page).locator("#told")).to_contain_text("result")


async def test_rules_that_a_server_breaks_and_views_that_cannot_be_opened_are_explained(
    browser: Chromium, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transom.dev.contract._QUIET_FOR", 0)
    server = shop()
    link = {"ui": {"resourceUri": "ui://shop/text"}}

    @server.resource("ui://shop/text", mime_type="text/plain")
    def text() -> str:
        """No page."""
        return "no page"

    @server.tool(meta=link)
    def wrong() -> str:
        """Open what is no page."""
        return "shown"

    async with developed(server, browser, checks=True) as (user, _):
        page, findings = user.page, user.page.locator("#findings")
        await page.get_by_role("tab", name="Findings").click()
        broken = findings.locator("li", has_text="ui://shop/text").first
        await expect(broken).to_be_visible()
        await expect(broken.locator(".badge")).to_have_text("error")
        await broken.locator("summary").click()
        await expect(broken.locator("details .note")).to_have_count(2)
        await page.get_by_role("button", name="wrong", exact=True).click()
        await press_call(page)
        shown = page.locator("#views transom-view")
        await expect(shown).to_contain_text("text/plain")
        await expect(shown).not_to_contain_text("tell the author")
