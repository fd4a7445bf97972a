"""Pages in Chromium, three workers behind a balancer, a Redis: and each of them is killed."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext
from playwright.async_api import Page as BrowserPage

from tests.fleet.worker import LEASE
from tests.fleet.workers import Fleet, Worker, until

pytestmark = pytest.mark.timeout(240)

NAMED = {"BusError", "BusUnreachable", "OutcomeUnknown", "OwnerGone", "ViewClosed"}
ASK = """
globalThis.asked = 0;
document.addEventListener("approval", (event) => {
  event.preventDefault();
  asked += 1;
  event.detail.answer("always");
});
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def running() -> AsyncIterator[Fleet]:
    async with Fleet() as fleet:
        yield fleet


@pytest_asyncio.fixture(loop_scope="session")
async def fleet(running: Fleet) -> AsyncIterator[Fleet]:
    """All workers are there, whatever the test before has killed."""
    await running.restore()
    yield running


async def open_page(fleet: Fleet, context: BrowserContext, user: str) -> BrowserPage:
    await context.add_cookies([{"name": "user", "value": user, "url": fleet.origin}])
    page = await context.new_page()
    await page.goto(fleet.origin)
    await page.evaluate(ASK)
    return page


async def own(worker: Worker, user: str) -> None:
    """Have that worker make the user's Host."""
    assert (await worker.call(user, "nothing"))["host"] == "Host"


async def show(worker: Worker, user: str, label: str) -> str:
    """Open a View from there; its id."""
    opened = await worker.call(user, "show", label=label)
    assert opened.get("view", {}).get("state") == "live", opened
    return opened["view"]["id"]


async def answers(worker: Worker, user: str, tool: str, wanted: str) -> dict[str, Any]:
    """Call until that is the answer: what was killed is replaced."""

    async def look() -> dict[str, Any] | None:
        got = await worker.call(user, tool)
        return got if got.get("text") == wanted else None

    return await until(look)


@pytest.mark.nightly
async def test_the_page_the_host_and_the_agent_are_on_three_workers(
    fleet: Fleet, context: BrowserContext
) -> None:
    front, back, third = fleet.workers
    await own(back, "ada")
    fleet.through(front)
    page = await open_page(fleet, context, "ada")
    fleet.through(front, third)  # the frames come to workers that do not have the View
    view = await show(third, "ada", "one")
    await page.locator(f'transom-view[view="{view}"][data-state=live]').wait_for()
    for worker, kind in ((front, "RemoteHost"), (back, "Host"), (third, "RemoteHost")):
        calls = (worker.call("ada", f"{view}__work", id=f"{worker.port}-{n}") for n in range(10))
        for n, answer in enumerate(await asyncio.gather(*calls)):
            assert answer | {"text": f"end {worker.port}-{n}", "host": kind} == answer
    assert (await third.call("ada", f"{view}__input"))["text"] == "shown one"
    assert set(fleet.effects().values()) == {1}
    assert (await third.call("bob", f"{view}__input"))["error"] == "ProtocolError"


@pytest.mark.nightly
async def test_the_worker_of_the_pages_socket_is_killed_and_a_call_goes_on(
    fleet: Fleet, context: BrowserContext
) -> None:
    front, back, third = fleet.workers
    await own(back, "cleo")
    fleet.through(front)
    await open_page(fleet, context, "cleo")
    view = await show(third, "cleo", "cleo")
    call = asyncio.create_task(third.call("cleo", f"{view}__work", id="cut", ms=1500))
    await fleet.effect("begin cut")
    fleet.through(third)
    await front.stop()
    assert (await call).get("text") == "end cut"
    assert (await back.call("cleo", f"{view}__work", id="after"))["text"] == "end after"
    done = fleet.effects()
    assert [done[each] for each in ("begin cut", "end cut", "end after", "show cleo")] == [1] * 4


@pytest.mark.nightly
async def test_the_worker_of_the_host_is_killed_and_another_goes_on_with_the_views(
    fleet: Fleet, context: BrowserContext
) -> None:
    front, back, third = fleet.workers
    await own(back, "dan")
    fleet.through(front)
    page = await open_page(fleet, context, "dan")
    view = await show(third, "dan", "dan")
    assert (await third.call("dan", f"{view}__risky"))["text"] == "done"
    assert await page.evaluate("asked") == 1
    calls = [
        asyncio.create_task(
            worker.call("dan", f"{view}__work", id=f"lost-{worker.port}-{n}", ms=60_000)
        )
        for worker in (front, third)
        for n in range(5)
    ]
    for worker in (front, third):
        for n in range(5):
            await fleet.effect(f"begin lost-{worker.port}-{n}")
    fleet.through(front, third)
    began = time.monotonic()
    await back.stop()
    for call in calls:
        answer = await call
        assert answer.get("error") in NAMED, answer
    took = time.monotonic() - began
    assert took < 3 * LEASE + 10
    await answers(third, "dan", f"{view}__input", "shown dan")
    await page.locator(f'transom-view[view="{view}"][data-state=live]').wait_for()
    # What the user allowed for good is known to the worker that has the View now.
    assert (await third.call("dan", f"{view}__risky"))["text"] == "done"
    assert await page.evaluate("asked") == 1
    assert (await front.call("dan", f"{view}__work", id="again"))["text"] == "end again"
    assert await show(third, "dan", "dan 2") == "tests-2"
    done = fleet.effects()
    assert [done[each] for each in ("show dan", "show dan 2", "begin again", "end again")] == [
        1
    ] * 4
    assert {n for each, n in done.items() if "lost-" in each} == {1}


@pytest.mark.nightly
async def test_a_worker_that_ends_hands_its_users_over_at_once(
    fleet: Fleet, context: BrowserContext
) -> None:
    front, back, third = fleet.workers
    await own(back, "eve")
    fleet.through(back)
    page = await open_page(fleet, context, "eve")
    view = await show(back, "eve", "eve")
    fleet.through(front, third)
    await back.stop(signal.SIGTERM)
    await answers(third, "eve", f"{view}__input", "shown eve")
    await page.locator(f'transom-view[view="{view}"][data-state=live]').wait_for()
    assert fleet.effects()["show eve"] == 1


@pytest.mark.nightly
async def test_redis_is_killed_and_what_is_on_one_worker_goes_on(
    fleet: Fleet, context: BrowserContext
) -> None:
    front, back, third = fleet.workers
    users = ("fay", "gus")
    for user in users:
        await own(back, user)
    fleet.through(back)
    await open_page(fleet, context, "fay")
    view = await show(third, "fay", "fay")
    fleet.through(front)
    assert context.browser is not None
    others = await context.browser.new_context()
    try:
        await open_page(fleet, others, "gus")
        assert await show(third, "gus", "gus") == view
        remote = [
            asyncio.create_task(third.call(user, f"{view}__work", id=f"{user} far", ms=2000))
            for user in users
        ]
        local = asyncio.create_task(back.call("fay", f"{view}__work", id="near", ms=2000))
        for each in ("fay far", "gus far", "near"):
            await fleet.effect(f"begin {each}")
        fleet.redis.kill()
        for call in remote:
            answer = await call
            assert answer.get("error") in NAMED or answer["text"].endswith("far"), answer
        assert (await local)["text"] == "end near"
        refused = await third.call("fay", f"{view}__input")
        assert refused["error"] == "BusUnreachable"
        assert "127.0.0.1" in refused["message"]
        assert (await back.call("fay", f"{view}__work", id="still near"))[
            "text"
        ] == "end still near"
        fleet.redis.start()
        for user in users:
            await answers(third, user, f"{view}__input", f"shown {user}")
            assert await show(third, user, f"{user} 2") == "tests-2"
        done = fleet.effects()
        for each in ("begin fay far", "begin gus far", "end near", "show fay", "show gus"):
            assert done[each] == 1
    finally:
        await others.close()
