"""Views in the pages of an application, in Chromium: the elements, two users, and the chat."""

import asyncio
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Route, expect
from playwright.async_api import Page as BrowserPage

from examples.chat import app as chat
from tests.browser.application import live, opened, site
from tests.browser.bundling import bundle
from tests.browser.hosting import inside, show, text_of
from tests.browser.transomjs_host import ROOT
from transom.host.views.view import View
from transom.serving import listen, serve
from transom.web.csp import build_csp

OURS = ("https://chat.example.com", "https://admin.example.com:8443")
SPELLINGS = [
    *("https://chat.example.com", "HTTPS://CHAT.Example.com", "https://chat.example.com."),
    *("https://chat.example.com:443", "https://chat.example.com:0443", "wss://chat.example.com"),
    *("https://chat.example.com:000000000443", "http://chat.example.com:080", "chat.example.com"),
    *("ws://chat.example.com", "http://chat.example.com", "https://*.example.com", "https://*.com"),
    *("https://ch%61t.example.com", "https://chat.example.com:*", "https://*:443", "https:"),
    *("https://admin.example.com:8443", "wss://admin.example.com:08443", "https://*.com:08443"),
]
# Which of these policies let a page reach one of these addresses.
REACHED = """async ([policies, urls]) => {
  const reached = async (policy) => {
    const meta = document.createElement("meta");
    Object.assign(meta, { httpEquiv: "Content-Security-Policy", content: policy });
    const frame = document.createElement("iframe");
    frame.srcdoc = meta.outerHTML;
    const loaded = new Promise((resolve) => { frame.onload = resolve; });
    document.body.append(frame);
    await loaded;
    const tries = urls.map((url) => frame.contentWindow.fetch(url).then(() => true, () => false));
    const answers = await Promise.all(tries);
    frame.remove();
    return answers.includes(true);
  };
  return Promise.all(policies.map(reached));
}"""


async def test_what_chromium_reads_as_an_origin_of_the_application_is_not_in_the_policy(
    context: BrowserContext,
) -> None:
    async def answer(route: Route) -> None:
        headers = {"Access-Control-Allow-Origin": "*", "Content-Type": "text/html"}
        await route.fulfill(headers=headers, body="<!doctype html>")

    await context.route("**", answer)
    page = await context.new_page()
    await page.goto("https://page.test/")

    async def reached(policies: list[str]) -> list[bool]:
        return await page.evaluate(REACHED, [policies, list(OURS)])

    as_declared = await reached([f"connect-src {spelling}" for spelling in SPELLINGS])
    assert as_declared.count(True) > len(SPELLINGS) / 2
    taken = {
        build_csp({"connectDomains": [spelling]}, ancestors=OURS[0], ours=OURS[1:])
        for spelling in SPELLINGS
    }
    assert not any(await reached(list(taken)))
    other = build_csp({"connectDomains": ["https://chat.example.com"]}, ancestors=OURS[1])
    assert await reached([other]) == [True]


async def test_the_stage_of_a_page_shows_views_and_a_loaded_page_shows_them_again(
    context: BrowserContext,
) -> None:
    async with site() as made:
        page = await made.open(context)
        host = await made.views.host("ada")
        view = await show(host, "one")
        await live(page).wait_for()
        assert await page.evaluate("seen") == [["opened", "tests-1"]]
        assert await text_of(view.call_tool("count")) == "1"
        # The page's own styles do not get in.
        frame = page.locator("transom-view iframe")
        assert await frame.evaluate("e => getComputedStyle(e).borderTopWidth") == "0px"
        again = asyncio.create_task(opened(host))
        await page.reload()
        assert (await again).id == view.id
        assert await text_of(host.call_tool("tests-1__count")) == "1"
        await page.get_by_role("button", name="Close: tests-1").click()
        await live(page).wait_for(state="detached")
        assert await page.evaluate("seen") == [["closed", "tests-1"]]


async def test_a_view_is_where_its_element_is_and_goes_with_it(context: BrowserContext) -> None:
    async with site() as made:
        made.body = "<ul><li></li><li></li></ul>"
        page = await made.open(context)
        host = await made.views.host("ada")
        await page.evaluate(
            """document.addEventListener("opened", ({ detail: { view } }) => {
              const made = document.createElement("transom-view");
              made.setAttribute("view", view);
              document.querySelector("li").append(made);
            })"""
        )
        view = await show(host, "one")
        await page.locator("li:first-child transom-view[data-state=live]").wait_for()
        again = asyncio.create_task(opened(host))
        await page.evaluate(
            "document.querySelectorAll('li')[1].append(document.querySelector('transom-view'))"
        )
        await again
        await page.locator("li:last-child transom-view[data-state=live]").wait_for()
        closed: asyncio.Queue[View] = asyncio.Queue()
        host.on_view_closed(closed.put_nowait)
        await page.evaluate("document.querySelector('ul').remove()")
        assert "no page shows it any more" in (await closed.get()).reason
        again = asyncio.create_task(opened(host))
        await page.evaluate(f"document.body.innerHTML = '<transom-view view={view.id}>'")
        await again
        assert await text_of(host.call_tool("tests-1__count")) == "1"


async def test_a_view_is_as_dark_as_a_page_whose_meta_element_says_so(
    context: BrowserContext,
) -> None:
    async with site() as made:
        made.script += '<meta name="color-scheme" content="light dark" />'
        made.script += "<style>:root { color-scheme: normal; }</style>"
        page = await made.open(context)
        await page.emulate_media(color_scheme="dark")
        await page.reload()  # it says what its colours are before it shows a View
        view = await show(await made.views.host("ada"))
        assert await text_of(view.call_tool("theme")) == "dark"


async def test_a_view_opens_at_the_element_that_is_added_with_the_answer_of_its_call(
    context: BrowserContext,
) -> None:
    async with site(show_within=0.05) as made:
        made.script, made.body = "", (ROOT / "docs/samples/web_answer.html").read_text()
        page = await made.open(context)
        host = await made.views.host("ada")
        await page.get_by_role("button", name="Show the orders").click()
        await live(page).wait_for()
        assert await page.locator("article").inner_text() == "shown"
        assert await text_of(host.call_tool("tests-1__count")) == "1"


async def test_a_view_is_in_one_tab_at_a_time_and_the_other_says_so(
    context: BrowserContext,
) -> None:
    async with site() as made:
        first = await made.open(context)
        host = await made.views.host("ada")
        await show(host, "one")
        await live(first).wait_for()
        again = asyncio.create_task(opened(host))
        second = await made.open(context)
        await again
        await live(second).wait_for()
        await expect(first.locator("transom-view")).to_contain_text("another tab or window")
        again = asyncio.create_task(opened(host))
        await first.get_by_role("button", name="Show it here: tests-1").click()
        await again
        await live(first).wait_for()
        await expect(second.locator("transom-view")).to_contain_text("another tab or window")


async def test_the_page_asks_in_its_own_way_or_leaves_it_to_the_card(
    context: BrowserContext,
) -> None:
    async with site() as made:
        made.asks = True
        page = await made.open(context)
        view = await show(await made.views.host("ada"), "one")
        call = asyncio.create_task(view.call_tool("theme"))
        card = page.locator(".question")
        await card.wait_for()
        allow = card.get_by_role("button", name="Allow", exact=True)
        await expect(allow).to_have_attribute("aria-disabled", "false")
        await allow.click()
        assert await text_of(call) == "light"
        await page.evaluate(
            """document.addEventListener("approval", (event) => {
              event.preventDefault();
              seen.push(event.detail.tool);
              event.detail.answer("allow");
            })"""
        )
        await page.evaluate("document.documentElement.className = 'dark'")
        await live(page).wait_for()
        async with asyncio.timeout(60):
            while await text_of(view.call_tool("theme")) != "dark":  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.05)
        assert "theme" in await page.evaluate("seen")
        assert await card.count() == 0


async def test_two_users_at_once_see_their_own_views_and_nothing_of_the_other(
    chromium: Browser,
) -> None:
    async with site() as made:
        made.asks = True
        contexts = [await chromium.new_context() for _ in range(2)]
        try:
            users = ["ada", "bob"]
            pages = [await made.open(c, u) for c, u in zip(contexts, users, strict=True)]
            hosts = [await made.views.host(user) for user in users]
            views = await asyncio.gather(*(show(host, "x") for host in hosts))
            for page in pages:
                await live(page).wait_for()
            origins = [await p.locator("transom-view").evaluate("v => v.origin") for p in pages]
            assert origins[0] != origins[1]
            # Bob knows what ada's View is called; the frame of another's page stays empty.
            stolen = await contexts[1].new_page()
            await stolen.goto(f"{origins[0]}/transom-view")
            assert await stolen.locator("iframe").count() == 0
            cookies = await stolen.evaluate("document.cookie")
            assert cookies == ""
            asking = asyncio.create_task(views[0].call_tool("theme"))
            await pages[0].locator(".question").wait_for()
            assert await pages[1].locator(".question").count() == 0
            asking.cancel()
            await pages[0].locator(".question").wait_for(state="detached")
        finally:
            for made_context in contexts:
                await made_context.close()


@pytest.mark.nightly
async def test_several_users_with_views_of_their_own_have_every_call_answered(
    chromium: Browser,
) -> None:
    async with site() as made:
        users = [f"user-{n}" for n in range(3)]
        contexts = [await chromium.new_context() for _ in users]
        try:
            for context, user in zip(contexts, users, strict=True):
                await made.open(context, user)
            hosts = await asyncio.gather(*(made.views.host(user) for user in users))
            views = await asyncio.gather(*(show(host, str(n)) for host in hosts for n in range(2)))
            calls = [text_of(view.call_tool("count")) for view in views for _ in range(3)]
            assert await asyncio.gather(*calls) == ["1", "2", "3"] * len(views)
        finally:
            for context in contexts:
                await context.close()


SOCKETS = """
globalThis.sockets = [];
globalThis.WebSocket = class extends WebSocket {
  constructor(...given) { super(...given); sockets.push(this); }
};
"""


async def test_the_page_is_told_that_the_connection_is_lost_and_that_it_is_back(
    context: BrowserContext,
) -> None:
    async with site() as made:
        await context.add_init_script(SOCKETS)
        page = await made.open(context)
        for _ in range(2):
            await page.evaluate("seen.length = 0; sockets.at(-1).close()")
            await page.wait_for_function("seen.length >= 2")
            assert await page.evaluate("seen") == [
                ["problem", "connection"],
                ["recovered", "connection"],
            ]


async def test_the_page_is_told_that_a_view_responds_again(context: BrowserContext) -> None:
    async with site() as made:
        page = await made.open(context)
        await show(await made.views.host("ada"), "one")
        await live(page).wait_for()
        await page.evaluate("seen.length = 0")
        frame = inside(page)
        await frame.locator("body").evaluate("() => { location.href = 'about:blank'; }")
        await page.get_by_role("button", name="Reload: tests-1").wait_for()
        await page.evaluate("history.back()")
        await page.wait_for_function("seen.length >= 2")
        assert await page.evaluate("seen") == [["problem", "tests-1"], ["recovered", "tests-1"]]


def bundled_with_package(folder: Path, script: str) -> str:
    """The bundle of a script that imports the packed npm package."""
    command = ["node", str(ROOT / "js" / "pack.mjs"), str(folder)]
    packed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    with tarfile.open(packed) as archive:
        archive.extractall(folder / "node_modules", filter="data")
    (folder / "node_modules" / "package").rename(folder / "node_modules" / "transom")
    entry = folder / "page.ts"
    entry.write_text(script)
    return bundle(entry)


async def test_a_page_that_has_a_bundler_imports_the_npm_package(
    context: BrowserContext, tmp_path: Path
) -> None:
    script = """
      import { connectElements } from "transom/elements";
      connectElements("/transom");
      connectElements(new URL("/transom/", location.href));
      try { connectElements("/elsewhere"); } catch (error) { seen.push(error.message); }
    """
    code = bundled_with_package(tmp_path, script)
    async with site() as made:
        made.script = f'<script type="module">{code}</script>'
        page = await made.open(context)
        view = await show(await made.views.host("ada"), "one")
        await live(page).wait_for()
        assert await text_of(view.call_tool("count")) == "1"
        socket = made.origin.replace("http", "ws") + "/transom/socket"
        assert await page.evaluate("seen") == [
            f"The elements are connected with {socket} already",
            ["opened", "tests-1"],
        ]


async def test_somebody_who_is_not_signed_in_is_told_so(context: BrowserContext) -> None:
    async with site() as made:
        made.body = "<transom-view view='tests-1'></transom-view>"
        page = await context.new_page()
        await page.goto(made.origin)
        await expect(page.locator("transom-view")).to_contain_text("You are not signed in")
        assert await page.evaluate("seen") == [["problem", "over"]]


# --- the chat --------------------------------------------------------------------------------


async def sign_in(context: BrowserContext, origin: str, name: str) -> BrowserPage:
    page = await context.new_page()
    await page.goto(origin)
    await page.get_by_placeholder("Your name").fill(name)
    await page.get_by_role("button", name="Sign in").click()
    await page.locator("#who").get_by_text(name).wait_for()
    return page


async def say(page: BrowserPage, text: str) -> None:
    await page.get_by_placeholder("Write a message").fill(text)
    await page.get_by_role("button", name="Send").click()


def in_view(page: BrowserPage) -> Any:
    return inside(page)


LOSE = """() => new Promise((resolve) => {
  const said = [];
  const note = ({ type }) => {
    said.push(document.getElementById("state").textContent);
    if (type === "recovered") resolve(said);
  };
  for (const name of ["problem", "recovered"]) document.addEventListener(name, note);
  sockets.at(-1).close();
})"""


@pytest.mark.timeout(180)
@pytest.mark.nightly
async def test_the_chat_is_used_by_two_people_at_once(chromium: Browser) -> None:
    sock = listen("127.0.0.1", 0)
    origin = f"http://localhost:{sock.getsockname()[1]}"
    contexts = [await chromium.new_context() for _ in range(2)]
    async with serve(chat.app, [sock], ws="websockets-sansio"):
        try:
            await contexts[0].add_init_script(SOCKETS)
            ada, bob = [
                await sign_in(c, origin, name)
                for c, name in zip(contexts, ("Ada", "Bob"), strict=True)
            ]
            await asyncio.gather(say(ada, "show the open orders"), say(bob, "show the paid orders"))
            await expect(in_view(ada).locator("body")).to_contain_text("Armchair", timeout=40_000)
            await expect(in_view(bob).locator("body")).to_contain_text("Reading lamp")
            await ada.get_by_text("3 orders, €1840.00 in all.").wait_for()
            await say(ada, "select A-1041")
            await ada.get_by_role("alertdialog").get_by_role("button", name="Allow").first.click()
            await ada.get_by_text("A-1041 is selected.").wait_for()
            await say(ada, "what is selected?")
            await ada.get_by_text("Selected: A-1041").wait_for()
            await say(bob, "what is selected?")
            await bob.get_by_text("Selected: Nothing is selected.").wait_for()
            assert await bob.get_by_role("alertdialog").count() == 0
            assert await ada.evaluate(LOSE) == ["No connection. Trying again…", ""]
            await ada.reload()
            await expect(in_view(ada).locator("body")).to_contain_text("Armchair", timeout=40_000)
            assert await ada.locator("article").count() == 6
            await ada.get_by_role("button", name="Sign out").click()
            await ada.get_by_text("Who are you?").wait_for()
            assert chat.views.users == ["Bob"]
        finally:
            for context in contexts:
                await context.close()
            await chat.views.aclose()
