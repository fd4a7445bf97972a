"""What happens to calls and Views when something between host and View breaks."""

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.hosting import (
    Chromium,
    Cut,
    Told,
    User,
    UsersOwnBrowser,
    chromium,
    hosted,
    processes,
    show,
    signal_all,
    text_of,
)
from transom import Host, Limits
from transom.errors import ProtocolError, RequestCancelled, RequestTimeout, ViewClosed
from transom.host.views.view import View
from transom.web.local.renderers import BrowserRenderer
from transom.web.mounted_views import Violation

WORK = """
let made = 0;
const waiting = [];
tools.work = ({ n }) => {
  made += 1;
  return new Promise((resolve) => waiting.push(() => resolve(`done ${n}`)));
};
const finish = () => waiting.splice(0).forEach((done) => done());
tools.finish = finish;
tools.count = () => made;
let asked = 0;
tools.ask = ({ text }) => new Promise((resolve) => {
  asked += 1;
  const id = `ask-${asked}`;
  addEventListener("message", ({ data }) => {
    if (data.id === id) resolve(data.result.content[0].text);
  });
  say({ id, method: "tools/call", params: { name: "note", arguments: { text } } });
});
tools.forever = () => new Promise(() => {});
tools.hang = () => { while (true); };
"""


async def test_a_socket_that_is_cut_costs_a_call_nothing_but_time(
    browser: Chromium,
) -> None:
    async with browser.user() as user:
        renderer = user.renderer()
        async with hosted(renderer, WORK) as host, Cut.of(renderer) as between:
            view = await show(host)
            calls = [asyncio.create_task(view.call_tool("work", {"n": n})) for n in range(20)]
            await asyncio.sleep(0)
            assert await text_of(view.call_tool("count")) == "20"  # all of them are under way
            calls.append(asyncio.create_task(view.call_tool("ask", {"text": "from the View"})))
            await asyncio.sleep(0)
            between.cut()
            await user.run_in_view(view.id, "finish()")  # the View answers, and nobody hears it
            calls += [asyncio.create_task(view.call_tool("work", {"n": n})) for n in (20, 21)]
            for _ in range(4):  # the page tries again and again
                await between.refused.get()
            assert not any(call.done() for call in calls)
            between.restore()
            assert [await text_of(call) for call in calls[:20]] == [f"done {n}" for n in range(20)]
            assert await text_of(calls[20]) == "noted from the View"
            assert await text_of(view.call_tool("count")) == "22"
            await view.call_tool("finish")
            assert [await text_of(call) for call in calls[21:]] == ["done 20", "done 21"]
            assert await text_of(view.call_tool("count")) == "22"
            assert host.noted == ["from the View"]
            assert host.views == {view.id: view}


@pytest.mark.nightly
async def test_a_socket_dropped_again_and_again_loses_and_doubles_nothing(
    browser: Chromium,
) -> None:
    async with browser.user() as user, hosted(user.renderer(), WORK) as host:
        view = await show(host)
        drop = "import('/stage.js').then(({ link }) => link.drop())"
        for turn in range(5):
            calls = [view.call_tool("ask", {"text": f"{turn}.{n}"}) for n in range(20)]
            answers = asyncio.gather(*(text_of(call) for call in calls))
            await user.page.evaluate(drop)
            assert await answers == [f"noted {turn}.{n}" for n in range(20)]
        expected = [f"{turn}.{n}" for turn in range(5) for n in range(20)]
        assert sorted(host.noted) == sorted(expected)


async def test_a_reloaded_page_fails_running_calls_and_brings_the_view_back_as_it_was(
    browser: Chromium,
) -> None:
    async with browser.user() as user, hosted(user.renderer(), WORK) as host:
        told = Told(host)
        view = await show(host, "A")
        other = await show(host, "B")
        assert {(await told.opened.get()).id, (await told.opened.get()).id} == {view.id, other.id}
        running = asyncio.create_task(view.call_tool("forever"))
        assert await text_of(view.call_tool("count")) == "0"
        await user.page.reload()
        with pytest.raises(ViewClosed, match=f"{view.id} is closed.*the page was reloaded"):
            await running
        again = {v.id: v for v in (await told.opened.get(), await told.opened.get())}
        assert set(again) == {view.id, other.id}
        assert again[view.id] is not view
        heard = json.loads(await text_of(again[view.id].call_tool("told")))
        data = {m["method"].rpartition("/")[2]: m["params"] for m in heard}
        assert data["tool-input"] == {"arguments": {"label": "A"}}
        assert data["tool-result"]["content"][0]["text"] == "shown A"
        names = {tool.name for tool in await host.list_tools()}
        assert {f"{view.id}__work", f"{other.id}__work"} <= names
        assert len(user.opened) == 1


@pytest.mark.nightly
async def test_a_page_reloaded_twice_in_a_row_ends_with_its_views(browser: Chromium) -> None:
    async with browser.user() as user, hosted(user.renderer(), WORK) as host:
        view = await show(host, "A")
        told = Told(host)
        await user.page.reload()
        await user.page.reload()
        while True:
            again = await told.opened.get()
            try:
                assert await text_of(again.call_tool("count")) == "0"
            except ViewClosed:
                continue  # it was open for as long as the first reload lasted
            break
        assert again.id == view.id
        assert list(host.views) == [view.id]


@pytest.mark.nightly
async def test_a_second_page_takes_the_views_over_and_the_first_says_so(browser: Chromium) -> None:
    async with browser.user() as user:
        renderer = user.renderer()
        async with hosted(renderer, WORK) as host:
            view = await show(host, "A")
            first, told = user.page, Told(host)
            await user.open_page(renderer.url)
            again = await told.opened.get()
            assert again.id == view.id
            await first.get_by_text("Everything is shown in another tab").wait_for()
            assert await first.locator("transom-view").count() == 0
            assert await text_of(again.call_tool("count")) == "0"
            # Not even a lost socket makes the first one take them back.
            await first.evaluate("import('/stage.js').then(({ link }) => link.hurry())")
            assert await text_of(again.call_tool("count")) == "0"


@asynccontextmanager
async def impatient(user: User) -> AsyncIterator[Host]:
    """A Host that waits only a moment for a page that said goodbye."""
    renderer = user.renderer()
    renderer._stage.grace = 0.5
    async with hosted(renderer, WORK) as host:
        yield host


async def test_a_closed_tab_closes_its_views_and_the_next_call_opens_another(
    browser: Chromium,
) -> None:
    async with browser.user() as user, impatient(user) as host:
        told = Told(host)
        view = await show(host)
        running = asyncio.create_task(view.call_tool("forever"))
        assert await text_of(view.call_tool("count")) == "0"
        await user.page.close()
        with pytest.raises(ViewClosed, match="the page was closed"):
            await running
        closed = await told.closed.get()
        assert (closed.id, closed.state) == (view.id, "closed")
        with pytest.raises(ViewClosed, match=f"{view.id} is closed"):
            await host.call_tool(f"{view.id}__count")
        fresh = await show(host)
        assert len(user.opened) == 2
        assert await text_of(fresh.call_tool("count")) == "0"


@pytest.mark.nightly
async def test_a_call_right_after_the_tab_was_closed_opens_a_page_too(browser: Chromium) -> None:
    async with browser.user() as user, impatient(user) as host:
        await show(host)
        await user.page.close()
        fresh = await show(host)
        assert len(user.opened) == 2
        assert await text_of(fresh.call_tool("count")) == "0"


@pytest.mark.processes
async def test_a_browser_that_is_killed_closes_its_views_and_the_next_call_opens_another(
    tmp_path: Path,
) -> None:
    async with chromium(tmp_path) as browser, browser.user() as user:
        renderer = user.renderer()
        renderer._stage.grace = 1  # such a browser says no goodbye: it might come back
        async with hosted(renderer, WORK) as host:
            told = Told(host)
            view = await show(host)
            running = asyncio.create_task(view.call_tool("forever"))
            asking = asyncio.create_task(view.call_tool("ask", {"text": "once"}))
            assert await text_of(asking) == "noted once"
            signal_all(processes(str(tmp_path))[:1], signal.SIGKILL)
            with pytest.raises(ViewClosed, match="the page was (disconnected|closed)"):
                await running
            assert (await told.closed.get()).id == view.id
            with pytest.raises(ViewClosed, match=f"{view.id} is closed"):
                await host.call_tool(f"{view.id}__count")
            async with chromium() as another, another.user() as back:
                user.context = back.context
                fresh = await show(host)
                assert await text_of(fresh.call_tool("count")) == "0"
                assert host.noted == ["once"]


async def test_a_view_that_hangs_hangs_alone(browser: Chromium) -> None:
    async with browser.user() as user, hosted(user.renderer(), WORK) as host:
        view, other = await show(host), await show(host)
        with pytest.raises(RequestTimeout):
            await view.call_tool("hang", timeout=0.5)
        assert await text_of(other.call_tool("count")) == "0"
        assert await text_of(other.call_tool("ask", {"text": "fine"})) == "noted fine"
        with pytest.raises((RequestTimeout, ViewClosed)):
            await view.call_tool("count", timeout=0.2)
        await view.close()  # it does not say goodbye, and is closed all the same
        assert list(host.views) == [other.id]
        await user.page.locator(f"#view-{view.id} iframe").wait_for(state="detached")
        third = await show(host)
        assert await text_of(third.call_tool("count")) == "0"


# --- a View that is busy or gone -------------------------------------------------------------

DEAD = (
    WORK
    + """
const soon = (act) => () => { setTimeout(act); return "soon"; };
tools.navigate = soon(() => { location.href = "https://example.com/"; });
tools.overwrite = soon(() => { document.open(); document.write("gone"); document.close(); });
tools.overwrite_unfinished = soon(() => { document.open(); document.write("gone"); });
tools.reload_silently = soon(() => { window.name = "silent"; location.reload(); });
tools.unload_sandbox = soon(() => { parent.document.open(); parent.document.write("gone"); });
tools.rewrite = soon(() => {
  const code = document.scripts[0].textContent;
  document.open();
  document.write("<scr" + "ipt>{" + code + "}</scr" + "ipt>");  // a block: constants are new
  document.close();
});
tools.compute = ({ ms }) => {
  const end = Date.now() + ms;
  while (Date.now() < end);
  return "computed";
};
"""
)
SILENT = """
if (window.name === "silent") {
  before.ping = () => { throw new Error("no answer"); };
  throw new Error("no introduction");
}
"""


class Condition:
    """Waits for changes of one View: that it stops to respond, and that it does again.

    Where a View is busy after a second, a machine that stands still makes it so in between.
    """

    def __init__(self, host: Host, view: View) -> None:
        self.changes: asyncio.Queue[str] = asyncio.Queue()
        for event in (host.on_view_unresponsive, host.on_view_responsive):
            event(lambda each: each.id == view.id and self.changes.put_nowait(each.state))

    async def until(self, *states: str) -> None:
        """Wait until these have followed each other."""
        seen: list[str] = []
        while tuple(seen[-len(states) :]) != states:
            seen.append(await self.changes.get())


def trouble(user: User, view: View) -> Any:
    return user.page.locator(f"#view-{view.id}").get_by_role("alert")


def caption(user: User, view: View) -> Any:
    return user.page.locator(f"#view-{view.id}").get_by_role("timer")


GONE = ["navigate", "overwrite", "overwrite_unfinished", "reload_silently", "unload_sandbox"]
NO_PINGS = Limits(unresponsive_after=120, gone_after=240)  # what is noticed is not by silence


async def test_a_view_that_is_gone_loses_its_tools_and_can_be_reloaded_by_the_user(
    browser: Chromium,
) -> None:
    script = SILENT + DEAD
    async with browser.user() as user, hosted(user.renderer(), script, limits=NO_PINGS) as host:
        view, other = await show(host), await show(host)
        for how in GONE:
            running = asyncio.create_task(view.call_tool("forever"))
            assert await text_of(view.call_tool("count")) == "0"
            condition = Condition(host, view)
            with suppress(RequestTimeout, RequestCancelled):
                await view.call_tool(how, timeout=1)
            assert await condition.changes.get() == "gone", how
            with pytest.raises(RequestCancelled):  # at once, not when it is reloaded
                await running
            view = await check_that_it_is_gone_and_reload(user, host, view, other)


@pytest.mark.nightly
async def test_a_view_that_hangs_for_long_is_gone_too(browser: Chromium) -> None:
    limits = Limits(unresponsive_after=1, gone_after=2)
    async with browser.user() as user, hosted(user.renderer(), DEAD, limits=limits) as host:
        view, other = await show(host), await show(host)
        condition = Condition(host, view)
        running = asyncio.create_task(view.call_tool("forever"))
        assert await text_of(view.call_tool("count")) == "0"
        with suppress(RequestTimeout):
            await view.call_tool("hang", timeout=1)
        await condition.until("busy", "gone")
        assert not running.done()
        await check_that_it_is_gone_and_reload(user, host, view, other)
        with pytest.raises((RequestCancelled, ViewClosed)):
            await running


async def check_that_it_is_gone_and_reload(user: User, host: Host, view: View, other: View) -> View:
    """Look for its tools and at its card, and press Reload; the View that then opens."""
    names = {tool.name for tool in await host.list_tools()}
    assert f"{view.id}__count" not in names
    assert f"{other.id}__count" in names
    with pytest.raises(ViewClosed, match=f"View {view.id} does not respond"):
        await host.call_tool(f"{view.id}__count")
    await expect(trouble(user, view)).to_contain_text("It does not respond: ")
    told = Told(host)
    await trouble(user, view).get_by_role("button", name="Reload").click()
    opened = await told.opened.get()
    assert opened.id == view.id
    assert await text_of(host.call_tool(f"{view.id}__count")) == "0"
    assert await trouble(user, view).count() == 0
    assert await text_of(other.call_tool("count")) == "0"
    return opened


async def test_a_view_that_writes_its_document_anew_and_connects_is_the_same_view(
    browser: Chromium,
) -> None:
    async with browser.user() as user, hosted(user.renderer(), DEAD, limits=NO_PINGS) as host:
        view = await show(host)
        condition = Condition(host, view)
        running = asyncio.create_task(view.call_tool("forever"))
        assert await text_of(view.call_tool("count")) == "0"
        await view.call_tool("rewrite")
        with pytest.raises(RequestCancelled, match="the View restarted"):
            await running
        assert await text_of(host.call_tool(f"{view.id}__count")) == "0"
        assert condition.changes.empty()


@pytest.mark.nightly
async def test_a_view_that_computes_is_busy_keeps_its_tools_and_answers_every_call(
    browser: Chromium,
) -> None:
    limits = Limits(unresponsive_after=1)
    async with browser.user() as user, hosted(user.renderer(), DEAD, limits=limits) as host:
        view = await show(host)
        condition = Condition(host, view)
        computing = asyncio.create_task(view.call_tool("compute", {"ms": 5000}))
        await condition.until("busy")
        waiting = asyncio.create_task(host.call_tool(f"{view.id}__count"))
        assert f"{view.id}__count" in {tool.name for tool in await host.list_tools()}
        await expect(caption(user, view)).to_have_text(re.compile(r"^busy for \d+ s$"))
        assert await trouble(user, view).count() == 0
        await condition.until("live")
        assert [await text_of(computing), await text_of(waiting)] == ["computed", "0"]
        await caption(user, view).wait_for(state="hidden")


@pytest.mark.processes
@pytest.mark.nightly
async def test_a_view_whose_process_is_killed_in_the_users_browser_is_gone(
    tmp_path: Path,
) -> None:
    async with (
        UsersOwnBrowser(tmp_path / "profile") as browser,
        hosted(BrowserRenderer(open_page=browser.open_page), DEAD, limits=NO_PINGS) as host,
    ):
        view, other = await show(host), await show(host)
        condition = Condition(host, view)
        running = asyncio.create_task(view.call_tool("hang"))
        [process] = await browser.working_processes()
        signal_all([process], signal.SIGKILL)
        assert await condition.changes.get() == "gone"
        with pytest.raises(RequestCancelled, match="its page crashed or was unloaded"):
            await running
        names = {tool.name for tool in await host.list_tools()}
        assert f"{view.id}__count" not in names
        assert await text_of(other.call_tool("count")) == "0"


# --- too much, too fast ----------------------------------------------------------------------

SLOW = (
    WORK
    + """
let taken = 0;
tools.slow = ({ ms, data }) => {
  const until = performance.now() + ms;
  while (performance.now() < until);
  taken += data.length;
  return taken;
};
tools.give = ({ bytes }) => "x".repeat(bytes);
tools.wide = ({ characters }) => "\u6c34".repeat(characters);
tools.flood = ({ count, bytes }) => {
  const data = "x".repeat(bytes);
  for (let n = 0; n < count; n += 1) {
    say({ method: "notifications/message", params: { level: "info", data } });
  }
  return "sent";
};
tools.cycle = () => {
  const cycle = {};
  cycle.self = cycle;
  say({ method: "notifications/message", params: { level: "info", data: cycle } });
  say({ method: "notifications/message", params: { level: "info", data: 10n } });
  return "sent";
};
"""
)


@pytest.mark.nightly
async def test_many_megabytes_to_a_slow_page_arrive_once_and_never_pile_up(
    browser: Chromium,
) -> None:
    async with browser.user() as user:
        renderer = user.renderer()
        async with hosted(renderer, SLOW) as host:
            view = await show(host)
            data = "x" * 500_000
            link = renderer._stage._link
            assert link is not None
            most = 0

            async def slow() -> int:
                nonlocal most
                result = await view.call_tool("slow", {"ms": 10, "data": data}, timeout=50)
                most = max(most, link._kept_bytes)
                return int(result.text)

            taken = await asyncio.gather(*(slow() for _ in range(40)))
            assert sorted(taken) == [500_000 * n for n in range(1, 41)]
            assert most < 8 * 1024 * 1024
            assert await text_of(view.call_tool("count")) == "0"


@pytest.mark.nightly
async def test_many_megabytes_from_a_view_arrive(browser: Chromium) -> None:
    async with browser.user() as user, hosted(user.renderer(), SLOW) as host:
        view = await show(host)
        calls = [view.call_tool("give", {"bytes": 5_000_000}, timeout=50) for _ in range(4)]
        texts = await asyncio.gather(*map(text_of, calls))
        assert [len(text) for text in texts] == [5_000_000] * 4


@pytest.mark.nightly
async def test_an_answer_too_large_to_pass_on_is_an_error_at_once(browser: Chromium) -> None:
    violations: list[Violation] = []
    async with browser.user() as user:
        renderer = user.renderer(on_violation=violations.append)
        async with hosted(renderer, SLOW) as host:
            view = await show(host)
            with pytest.raises(ProtocolError, match="larger than 16777216 bytes"):
                await view.call_tool("give", {"bytes": 17_000_000})
            with pytest.raises(ProtocolError, match="larger than 16777216 bytes"):
                await view.call_tool("wide", {"characters": 6_000_000})
            assert await text_of(view.call_tool("count")) == "0"
            assert [v.directive for v in violations] == ["message", "message"]


async def test_what_is_not_json_is_not_passed_on(browser: Chromium) -> None:
    violations: list[Violation] = []
    async with browser.user() as user:
        renderer = user.renderer(on_violation=violations.append)
        async with hosted(renderer, SLOW) as host:
            view = await show(host)
            assert await text_of(view.call_tool("cycle")) == "sent"
            assert [v.blocked for v in violations] == ["A message is not JSON"] * 2


@pytest.mark.nightly
async def test_a_view_that_floods_the_host_is_closed_and_others_are_not(browser: Chromium) -> None:
    async with browser.user() as user:
        renderer = user.renderer()
        async with hosted(renderer, SLOW) as host, Cut.of(renderer) as between:
            view, other = await show(host), await show(host)
            told = Told(host)
            running = asyncio.create_task(view.call_tool("forever"))
            assert await text_of(view.call_tool("count")) == "0"
            between.cut()
            await between.refused.get()
            await user.run_in_view(view.id, "tools.flood({ count: 12, bytes: 10_000_000 })")
            await user.page.locator(f"#view-{view.id} iframe").wait_for(state="detached")
            between.restore()
            with pytest.raises(ViewClosed, match="it sends more than the host takes"):
                await running
            assert (await told.closed.get()).id == view.id
            await user.page.get_by_text("it sends more than").wait_for(state="attached")
            assert await text_of(other.call_tool("count")) == "0"


# --- a View that reloads itself -----------------------------------------------------------

RELOADED = (
    WORK
    + """
const turn = Number(window.name || 0) + 1;
window.name = turn;  // it outlives the page
tools[`turn${turn}`] = () => turn;
tools.reload = () => { setTimeout(() => location.reload()); return "reloading"; };
"""
)


async def test_a_view_that_reloads_itself_ends_its_calls_and_begins_as_it_was_opened(
    browser: Chromium,
) -> None:
    async with browser.user() as user, hosted(user.renderer(), RELOADED) as host:
        view = await show(host, "A")
        assert f"{view.id}__turn1" in {tool.name for tool in await host.list_tools()}
        running = asyncio.create_task(view.call_tool("forever"))
        assert await text_of(view.call_tool("count")) == "0"
        changed = asyncio.Event()
        host.on_tools_changed(changed.set)
        # Not as a call: whether its answer or the reload comes first is nobody's to say.
        await user.run_in_view(view.id, "tools.reload()")
        with pytest.raises(RequestCancelled, match="tools/call: the View restarted"):
            await running
        await changed.wait()
        names = {tool.name for tool in await host.list_tools()}
        assert f"{view.id}__turn2" in names
        assert f"{view.id}__turn1" not in names
        assert host.views == {view.id: view}
        assert await text_of(view.call_tool("turn2")) == "2"
        heard = json.loads(await text_of(view.call_tool("told")))
        data = [(m["method"].rpartition("/")[2], m["params"]) for m in heard]
        assert [name for name, _ in data if name.startswith("tool-")] == [
            "tool-input",
            "tool-result",
        ]
        assert dict(data)["tool-input"] == {"arguments": {"label": "A"}}
        assert dict(data)["tool-result"]["content"][0]["text"] == "shown A"
        # Ids of requests start over with the page, and its requests are answered.
        assert await text_of(view.call_tool("ask", {"text": "again"})) == "noted again"
