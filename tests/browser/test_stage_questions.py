"""What it takes to answer a question on the Stage: a press that was meant for it, and nothing else.

The page's clock stands still and is moved by the tests, so nothing here waits for time to pass.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import expect

from tests.browser.hosting import Chromium, User
from transom.host.asking.elicit_form import read_form
from transom.host.views.ui_resource import UIResource
from transom.web.stage import Stage

LONG_AGO = 0
WAIT = 600  # milliseconds without a press until a question can be answered, and to notice that

DETAILS: dict[str, dict[str, Any]] = {
    "approve": {"tool": "wipe", "arguments": {"all": True}},
    "link": {"url": "https://example.com/"},
    "download": {"files": [{"name": "a.txt", "bytes": 1}]},
    "pin": {"reason": "music plays"},
}


WORDS = {"approve": "wipe", "link": "example.com", "download": "a.txt", "pin": "music plays"}

LEFT = "(element) => element.getBoundingClientRect().left"
ECHO = """async () => {
  const { link } = await import("/stage.js");
  link.send("-", JSON.stringify({ do: "surroundings", value: {} }));
}"""


class Asked:
    """A question on the Stage."""

    def __init__(self, stage: Stage, kind: str, view: str) -> None:
        details = {"shown": view, "server": "tests", **DETAILS[kind]}
        self.task = asyncio.ensure_future(stage.ask(kind, view, **details))

    async def withdraw(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])

    @property
    def answered(self) -> bool:
        return self.task.done() and not self.task.cancelled()


class Asking:
    """A page on which questions are asked, and a user at it."""

    def __init__(self, user: User, stage: Stage) -> None:
        self.user = user
        self.stage = stage
        self.all: list[Asked] = []

    async def ask(self, kind: str, view: str) -> Asked:
        """Ask, and wait until the page knows."""
        self.all.append(asked := Asked(self.stage, kind, view))
        await self.until_counted()
        return asked

    async def withdraw(self, asked: Asked) -> None:
        """Withdraw a question, and wait until the page knows."""
        await asked.withdraw()
        await self.until_counted()

    async def withdraw_all(self) -> None:
        for asked in self.all:
            await asked.withdraw()
        await self.until_counted()

    async def until_counted(self) -> None:
        open_now = sum(not asked.task.done() for asked in self.all)
        title = re.compile(rf"^\({open_now}\) " if open_now else r"^[^(]")
        await expect(self.user.page).to_have_title(title)

    @property
    def card(self) -> Any:
        return self.user.page.get_by_role("alertdialog")

    async def pass_time(self, milliseconds: int) -> None:
        await self.user.page.clock.run_for(milliseconds)

    async def point_at(self, button: Any) -> None:
        box = await button.bounding_box()
        await self.user.page.mouse.move(
            box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3
        )

    async def press(self) -> None:
        """Press where the pointer is, and wait until an answer would have arrived."""
        await self.user.page.mouse.down()
        await self.user.page.mouse.up()
        await self.echo()

    async def echo(self) -> None:
        """Wait until everything the page has said was heard."""
        self.stage._page_ready.clear()
        await self.user.page.evaluate(ECHO)
        await self.stage.wait_for_page()


def view_page(view_id: str, html: str) -> UIResource:
    return UIResource(view_id=view_id, server="tests", uri=f"ui://tests/{view_id}", html=html)


@asynccontextmanager
async def asking(browser: Chromium) -> AsyncIterator[Asking]:
    async with browser.user() as user, user.renderer() as renderer:
        await user.context.clock.install(time=LONG_AGO)
        await renderer.show_page()
        await user.page.clock.pause_at(60_000)
        made = Asking(user, renderer._stage)
        yield made
        await made.withdraw_all()


AT_END = "(pre) => { pre.scrollTop = pre.scrollHeight; }"


async def test_arguments_are_all_seen_before_they_can_be_allowed(browser: Chromium) -> None:
    async with asking(browser) as page:
        arguments: dict[str, object] = {f"key {n}": n for n in range(40)}
        arguments |= {"to\u200b": "\u202edrow\u2066", "both": {"שלום": "עולם"}}
        about = {"shown": "view-1", "server": "tests", "tool": "pay", "arguments": arguments}
        asked = asyncio.ensure_future(page.stage.ask("approve", "view-1", **about))
        pre = page.card.locator("pre")
        await page.card.get_by_text("There is more. Scroll to its end").wait_for()
        shown = await pre.inner_text()
        assert all(f'"key {n}": {n}' in shown for n in range(40))
        assert r'"to\u200b": "\u202edrow\u2066"' in shown
        # What is written from right to left stays in its place.
        left = [await pre.get_by_text(word).evaluate(LEFT) for word in ("שלום", "עולם")]
        assert left == sorted(left)
        await page.pass_time(WAIT)
        for button in ("Allow", "Always allow"):
            await page.point_at(page.card.get_by_role("button", name=button, exact=True))
            await page.press()
        assert not asked.done()
        await pre.evaluate(AT_END)
        await page.card.get_by_text("There is more").wait_for(state="hidden")
        await pre.evaluate("(pre) => { pre.scrollTop = 0; }")
        await page.pass_time(WAIT)
        await page.card.get_by_role("button", name="Allow", exact=True).click()
        assert await asked == "allow"
        # It can be refused unread.
        asked = asyncio.ensure_future(page.stage.ask("approve", "view-1", **about))
        await page.card.get_by_text("There is more").wait_for()
        await page.pass_time(WAIT)
        await page.card.get_by_role("button", name="Refuse").click()
        assert await asked == "deny"


async def test_a_press_on_a_question_that_left_answers_no_other(browser: Chromium) -> None:
    async with asking(browser) as page:
        for kinds in (("approve", "link"), ("link", "approve")):
            for pause in (0, 150, 10_000):
                asked = {kind: await page.ask(kind, f"view-{kind}") for kind in kinds}
                await page.pass_time(10_000)
                seen = await page.card.last.inner_text()
                on_top = next(kind for kind in kinds if WORDS[kind] in seen)
                await page.point_at(page.card.last.get_by_role("button").first)
                await page.withdraw(asked[on_top])
                await page.pass_time(pause)
                await page.press()
                await page.press()
                answered = [kind for kind in kinds if asked[kind].answered]
                assert answered == [], (kinds, pause)
                await page.withdraw_all()


async def test_after_a_question_that_left_the_user_asks_for_the_next(browser: Chromium) -> None:
    async with asking(browser) as page:
        gone = await page.ask("link", "view-1")
        asked = await page.ask("approve", "view-2")
        assert "and 1 more" in await page.card.inner_text()
        await page.withdraw(gone)
        assert "That question was withdrawn" in await page.card.inner_text()
        await page.pass_time(WAIT)
        await page.card.get_by_role("button", name="Next question").click()
        await page.pass_time(WAIT)
        await page.card.get_by_role("button", name="Always allow").click()
        assert await asked.task == "always"
        await page.card.wait_for(state="detached")


async def test_steady_clicking_answers_nothing(browser: Chromium) -> None:
    async with asking(browser) as page:
        for kind in DETAILS:
            for interval in (100, 450):
                asked = await page.ask(kind, "view-1")
                await page.point_at(page.card.get_by_role("button").first)
                for _ in range(6):  # for longer than a question waits
                    await page.press()
                    await page.pass_time(interval)
                assert not asked.answered, (kind, interval)
                await page.pass_time(WAIT)
                await page.press()
                assert await asked.task in ("allow", True)


async def test_a_double_click_answers_one_question_and_not_the_next(browser: Chromium) -> None:
    async with asking(browser) as page:
        first, second = [await page.ask("approve", f"view-{n}") for n in (1, 2)]
        await page.pass_time(WAIT)
        await page.point_at(page.card.get_by_role("button").first)
        await page.press()
        await page.pass_time(100)
        await page.press()
        assert (await first.task, second.answered) == ("allow", False)


async def test_a_press_that_began_too_early_answers_nothing(browser: Chromium) -> None:
    async with asking(browser) as page:
        asked = await page.ask("approve", "view-1")
        await page.point_at(page.card.get_by_role("button").first)
        await page.user.page.mouse.down()
        await page.pass_time(2 * WAIT)
        await page.user.page.mouse.up()
        await page.echo()
        assert not asked.answered
        for key in ("Enter", " "):
            await page.user.page.evaluate("dispatchEvent(new Event('resize'))")
            await page.card.get_by_role("button").first.evaluate("(button) => button.focus()")
            await page.pass_time(WAIT - 200)
            await page.user.page.keyboard.press(key)
            await page.pass_time(WAIT - 200)
            await page.user.page.keyboard.press(key)
            await page.echo()
            assert not asked.answered


async def test_a_question_that_was_out_of_sight_or_moved_waits_again(browser: Chromium) -> None:
    async with asking(browser) as page:
        asked = await page.ask("approve", "view-1")
        await page.point_at(page.card.get_by_role("button").first)
        for away, back in (
            ("dispatchEvent(new Event('resize'))", "null"),
            ("document.hasFocus = () => false", "delete document.hasFocus"),
            (
                "Object.defineProperty(document, 'hidden', {value: true, configurable: true})",
                "delete document.hidden",
            ),
        ):
            await page.pass_time(WAIT)
            assert await page.card.get_by_role("button").first.is_enabled()
            await page.user.page.evaluate(away)
            await page.pass_time(100)
            await page.user.page.evaluate(back)
            await page.press()
            assert not asked.answered
        await page.pass_time(WAIT)
        await page.press()
        assert await asked.task == "allow"


async def test_a_question_stays_where_it_is_whatever_else_is_asked(browser: Chromium) -> None:
    async with asking(browser) as page:
        first = await page.ask("approve", "view-1")
        before = await page.card.bounding_box()
        others = [await page.ask(kind, "view-2") for kind in DETAILS]
        assert await page.card.bounding_box() == before
        for other in others:
            await page.withdraw(other)
            assert await page.card.bounding_box() == before
        await page.pass_time(WAIT)
        await page.card.get_by_role("button", name="Allow", exact=True).click()
        assert await first.task == "allow"


async def test_whoever_was_busy_in_a_view_is_given_longer(browser: Chromium) -> None:
    async with asking(browser) as page:
        page.stage.mount(view_page("busy-1", "<button>Again</button>"))
        frame = page.user.in_view("busy-1")
        await frame.get_by_role("button").wait_for()
        await page.pass_time(WAIT)
        await frame.get_by_role("button").click()
        asked = await page.ask("approve", "busy-1")
        await page.point_at(page.card.get_by_role("button").first)
        for _ in range(5):
            await page.pass_time(1400)
            await page.press()
        assert not asked.answered
        await page.pass_time(1600)
        await page.press()
        assert await asked.task == "allow"


FORM = {
    "type": "object",
    "required": ["name", "plan"],
    "properties": {
        "name": {"type": "string", "title": "Your <b>name</b>", "minLength": 2, "default": "A"},
        "mail": {"type": "string", "format": "email"},
        "seats": {"type": "integer", "minimum": 1, "default": 3},
        "plan": {"oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "at": {"type": "string", "format": "date-time", "default": "2026-03-01T10:00:00Z"},
        "extras": {"type": "array", "minItems": 2, "items": {"enum": ["x", "y", "z"]}},
        "news": {"type": "boolean", "title": "News", "default": True},
    },
}


async def test_a_server_is_answered_in_a_form_and_opens_a_page_only_when_the_user_says_so(
    browser: Chromium,
) -> None:
    async with asking(browser) as page:
        about = {"shown": "", "server": "shop", "message": "Who are you?"}
        ask = {"url": None, "fields": read_form(FORM), **about}
        asked = asyncio.ensure_future(page.stage.ask("elicit", "", **ask))
        card, form = page.card, page.card.locator("form")
        await card.get_by_text("Server shop").wait_for()
        await card.get_by_text("Who are you?").wait_for()
        await form.get_by_label("Your <b>name</b>").wait_for()  # a stranger's words are text
        send = card.get_by_role("button", name="Send")
        await expect(send).to_have_attribute("aria-disabled", "true")
        await form.evaluate(AT_END)
        await card.get_by_text("There is more").wait_for(state="hidden")
        await page.pass_time(WAIT)
        await send.click()  # the name is too short, no plan is chosen
        await form.get_by_label("Your <b>name</b>").fill("Ada")
        await form.get_by_label("mail").fill("nobody")
        await form.get_by_label("plan").select_option("Large")
        await form.get_by_label("x", exact=True).check()
        await send.click()  # one extra is too few, and that is no mail
        await form.get_by_label("y", exact=True).check()
        await form.get_by_label("mail").fill("")
        await page.echo()
        assert not asked.done()
        await form.get_by_label("seats").press("Enter")
        assert await asked == {
            "name": "Ada",
            "mail": None,
            "seats": 3,
            "plan": "l",
            "at": "2026-03-01T10:00:00.000Z",
            "extras": ["x", "y"],
            "news": True,
        }
        for button, answer in (("Decline", False), ("Open", True)):
            url = "https://pay.invalid/1?a=\u202eb"
            asked = asyncio.ensure_future(page.stage.ask("elicit", "", url=url, fields=(), **about))
            await card.get_by_text("Open pay.invalid?").wait_for()
            await card.get_by_text("https://pay.invalid/1?a=%E2%80%AEb").wait_for()
            assert len(page.user.context.pages) == 1
            await page.pass_time(WAIT)
            if answer is True:
                async with page.user.context.expect_page():
                    await card.get_by_role("button", name=button).click()
            else:
                await card.get_by_role("button", name=button).click()
            assert await asked is answer
        asked = asyncio.ensure_future(page.stage.ask("elicit", "", **ask))
        await card.get_by_text("Server shop").wait_for()
        await card.press("Escape")
        assert await asked == "cancel"
