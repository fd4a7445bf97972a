"""One page at a time, and what it and the host say to each other."""

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.websockets import WebSocket

from tests.web.page import StagePage
from transom.channel import Channel
from transom.errors import ChannelClosed, Refused, TransomError, UsageError
from transom.host.asking.grants import Grant
from transom.host.views.ui_resource import UIResource
from transom.web.cards import GoneView
from transom.web.local.stage_server import StageServer
from transom.web.mounted_views import MountedView, ViewOwner, Violation
from transom.web.page_link import LinkLimits
from transom.web.stage import Stage


@pytest.fixture
def seen() -> list[Violation]:
    """What the policies of Views have blocked."""
    return []


@pytest.fixture
async def stage(seen: list[Violation]) -> AsyncIterator[Stage]:
    made = Stage(on_violation=seen.append)
    async with StageServer(made):
        yield made


class Owner(ViewOwner):
    """Records what it is told about its Views."""

    def __init__(self, *, closes: bool = True) -> None:
        self.told: list[tuple[object, ...]] = []
        self._closes = closes

    def set_view_context(self, key: str, changes: dict[str, Any]) -> None:
        self.told.append(("context", key, changes))

    def lose_view(self, key: str, reason: str) -> None:
        self.told.append(("lose", key, reason))

    def close_view(self, key: str) -> bool:
        self.told.append(("close", key))
        return self._closes

    def reopen_view(self, key: str) -> None:
        self.told.append(("reopen", key))

    def forget_view(self, key: str) -> None:
        self.told.append(("forget", key))

    def withdraw(self, key: str, grant: Grant) -> None:
        self.told.append(("withdraw", key, grant))


@pytest.fixture
def owner() -> Owner:
    return Owner()


def view(view_id: str = "orders-1", **more: Any) -> UIResource:
    return UIResource(view_id=view_id, server="orders", uri="ui://orders/list", html="<p>", **more)


async def speak(
    stage: Stage, page: StagePage, view_id: str = "orders-1", owner: ViewOwner | None = None
) -> Channel:
    """Mount a View that has said something."""
    channel = stage.mount(view(view_id), owner=owner)
    end = await page.view(view_id)
    await end.send(b"{}")
    assert await channel.receive() == b"{}"
    return channel


# --- Views -----------------------------------------------------------------------------------


async def test_a_mounted_view_reaches_the_page_with_all_it_needs(stage: Stage) -> None:
    async with StagePage(stage) as page:
        stage.mount(view(permissions={"camera": {}}, prefers_border=False))
        told = await page.heard("mount")
    mounted = stage.mounted("orders-1")
    assert mounted is not None
    host = mounted.host
    assert told == {
        "do": "mount",
        "view": "orders-1",
        "shown": "orders-1",
        "title": "",
        "client": "",
        "origin": f"http://{host}",
        "guard": stage.sandbox.replace("*", "guard"),
        "number": 1,
        "server": "orders",
        "uri": "ui://orders/list",
        "html": "<p>",
        "allow": "camera",
        "border": False,
    }
    assert stage.token not in str(told)


async def test_a_view_mounted_before_there_is_a_page_is_shown_when_there_is(stage: Stage) -> None:
    stage.mount(view())
    async with StagePage(stage) as page:
        assert (await page.heard("mount"))["view"] == "orders-1"


async def test_two_views_of_one_id_are_a_mistake(stage: Stage) -> None:
    stage.mount(view())
    with pytest.raises(UsageError, match="orders-1 is already on the Stage"):
        stage.mount(view())


async def test_closing_the_channel_takes_the_view_off(stage: Stage) -> None:
    async with StagePage(stage) as page:
        channel = stage.mount(view())
        await page.view("orders-1")
        await channel.aclose()
        assert (await page.heard("unmount"))["view"] == "orders-1"
    assert stage.views == []


async def test_closing_a_channel_again_leaves_the_next_view_of_that_key_alone(stage: Stage) -> None:
    before = stage.mount(view())
    await before.aclose()
    now = stage.mount(view())
    await before.aclose()
    assert stage.views == ["orders-1"]
    assert now.reason is None


async def test_what_a_page_says_counts_for_that_view_only(stage: Stage) -> None:
    async with StagePage(stage) as page:
        one, two = await speak(stage, page), await speak(stage, page, "orders-2")
        await page.tell(do="closed", view="orders-2")
        with pytest.raises(ChannelClosed, match="the user closed it"):
            await two.receive()
        await (await page.view("orders-1")).send(b'{"still":1}')
        assert await one.receive() == b'{"still":1}'
    assert stage.views == ["orders-1"]


async def test_who_shows_views_is_asked_to_close_one(stage: Stage, owner: Owner) -> None:
    async with StagePage(stage) as page:
        channel = await speak(stage, page, owner=owner)
        await page.tell(do="closed", view="orders-1")
        await (await page.view("orders-1")).send(b'{"goodbye":1}')
        assert await channel.receive() == b'{"goodbye":1}'
    assert owner.told == [("close", "orders-1")]
    assert stage.views == ["orders-1"]


async def test_a_view_that_its_owner_does_not_know_is_removed_when_the_user_closes_it(
    stage: Stage,
) -> None:
    owner = Owner(closes=False)
    async with StagePage(stage) as page:
        channel = await speak(stage, page, owner=owner)
        await page.tell(do="closed", view="orders-1")
        with pytest.raises(ChannelClosed, match="the user closed it"):
            await channel.receive()
    assert owner.told == [("close", "orders-1")]


async def test_each_view_of_two_owners_is_reported_to_its_own(stage: Stage) -> None:
    one, two = Owner(), Owner()
    async with StagePage(stage) as page:
        await speak(stage, page, "orders-1", one)
        channel = await speak(stage, page, "orders-2", two)
        await page.tell(do="withdraw", view="orders-1", tool="save", by="view")
        await page.tell(do="vanished", view="orders-2", reason="it crashed")
        await page.tell(do="reload", view="orders-2")
        await (await page.view("orders-2")).send(b"{}")
        await channel.receive()
    assert one.told == [("withdraw", "orders-1", Grant("save", "view"))]
    assert two.told == [("lose", "orders-2", "it crashed"), ("reopen", "orders-2")]


async def test_a_view_that_breaks_is_gone_and_says_why(stage: Stage) -> None:
    async with StagePage(stage) as page:
        channel = await speak(stage, page)
        await page.tell(do="broken", view="orders-1", reason="it " + "x" * 1000)
        with pytest.raises(ChannelClosed, match="The View is gone: it x{197}$"):
            await channel.receive()
        assert (await page.heard("gone"))["view"] == "orders-1"


async def test_of_too_many_failures_the_oldest_leave_and_every_text_is_cut(
    stage: Stage, owner: Owner
) -> None:
    for number in range(22):
        card = GoneView(f"orders-{number}", "orders", "orders", "", "no\u202e " * 500)
        stage.gone.show(card, owner)
    assert stage.gone.owned_by(owner) == [f"orders-{number}" for number in range(2, 22)]
    async with StagePage(stage) as page:
        await page.until(lambda page: len(page.told) == 20)
        assert all(m["do"] == "gone" and len(m["reason"]) <= 200 for m in page.told)
        assert "\u202e" not in page.told[0]["reason"]
        for view in ("orders-1", "orders-2", "elsewhere"):
            await page.tell(do="retry", view=view)
            await page.tell(do="closed", view=view)
        await page.heard("unmount")
        assert owner.told == [("reopen", "orders-2"), ("forget", "orders-2")]
        assert "orders-2" not in stage.gone


async def test_what_the_page_does_not_pass_on_is_told_as_a_violation(
    stage: Stage, seen: list[Violation]
) -> None:
    async with StagePage(stage) as page:
        channel = await speak(stage, page)
        await page.tell(do="refused", view="orders-1", reason="A message is not JSON")
        await (await page.view("orders-1")).send(b"{}")
        await channel.receive()
    assert seen == [Violation("orders-1", "message", "A message is not JSON")]


async def test_declared_origins_that_are_none_are_told_as_violations(
    stage: Stage, seen: list[Violation]
) -> None:
    stage.mount(view(csp={"connectDomains": ["*", "https://fine.example"]}))
    assert [(v.directive, v.blocked) for v in seen] == [("declared", "connectDomains: '*'")]


@pytest.mark.parametrize("label", ["orders-abc", None])
async def test_a_prepared_sandbox_is_the_next_views_if_that_has_the_same_rights(
    stage: Stage, label: str | None
) -> None:
    rights: dict[str, Any] = {"csp": {"connectDomains": ["https://one.example"]}}
    async with StagePage(stage) as page:
        stage.mount(view(**rights), key="first", label=label)
        stage.prepare("nobody", label)
        stage.prepare("first", label)
        prepared = await page.heard("prepare")
        served = stage.sandboxes.find(
            prepared["origin"].partition("//")[2], f"{prepared['number']}"
        )
        assert served is not None
        stage.mount(view(**rights), key="second", label=label)
        second = stage.mounted("second")
        assert second is not None
        assert (second.number, second.host) == (served.number, served.host)
        assert (second.csp, second.page_origin) == (served.csp, served.page_origin)
        first = stage.mounted("first")
        assert first is not None
        assert (first.host == second.host) is (label is not None)
        assert first.number != second.number

        # It is for one View.
        stage.mount(view(**rights), key="third", label=label)
        third = stage.mounted("third")
        assert third is not None
        assert third.number not in (first.number, second.number)


async def test_no_view_gets_the_origin_of_one_in_an_endless_loop_until_that_is_gone_for_a_while(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(key: str) -> MountedView:
        stage.mount(view(), key=key, label="orders-abc")
        mounted = stage.mounted(key)
        assert mounted is not None
        return mounted

    first = shown("first")
    stage.prepare("first", "orders-abc")
    prepared = stage.sandboxes.find(first.host)
    assert prepared is not None
    assert prepared is not first
    stage.avoid_origin("nobody")
    stage.avoid_origin("first")
    second = shown("second")
    assert second.host != first.host
    assert second.number != prepared.number
    stage.prepare("second", "orders-abc")  # a later View would have that origin, too
    assert stage.sandboxes.find(first.host) is first
    assert shown("third").host not in (first.host, second.host)
    stage.remove("first", "it was closed")
    assert shown("fourth").host != first.host  # a browser lets a page finish

    monkeypatch.setattr("transom.web.mounted_views._ENDS_WITHIN", 0.0)
    monkeypatch.setattr(stage.sandboxes, "_ending", {})
    fifth = shown("fifth")
    assert fifth.host == first.host
    stage.avoid_origin("fifth")
    stage.remove("fifth", "it was closed")
    assert shown("sixth").host == first.host


def _less_csp(_: Stage, given: dict[str, Any]) -> None:
    given["csp"] = {}


def _permissions(_: Stage, given: dict[str, Any]) -> None:
    given["permissions"] = {"camera": {}}


def _strict(stage: Stage, _: dict[str, Any]) -> None:
    stage.csp_mode = "strict"


def _other_label(_: Stage, given: dict[str, Any]) -> None:
    given["label"] = "orders-def"


def _no_label(_: Stage, given: dict[str, Any]) -> None:
    given["label"] = None


@pytest.mark.parametrize("change", [_less_csp, _permissions, _strict, _other_label, _no_label])
async def test_a_view_with_other_rights_or_of_another_origin_gets_no_prepared_sandbox(
    stage: Stage, change: Callable[[Stage, dict[str, Any]], None]
) -> None:
    given: dict[str, Any] = {"csp": {"connectDomains": ["https://one.example"]}}
    stage.mount(view(**given), key="first", label="orders-abc")
    stage.prepare("first", "orders-abc")
    prepared = stage.sandboxes.find(stage.host_of("orders-abc"))
    assert prepared is not None
    given["label"] = "orders-abc"
    change(stage, given)
    label = given.pop("label")
    stage.mount(view(**given), key="second", label=label)
    second = stage.mounted("second")
    assert second is not None
    assert second.number != prepared.number
    assert stage.sandboxes.find(prepared.host, str(prepared.number)) is not prepared


async def test_modes_go_both_ways_with_the_size_that_comes_with_them(
    stage: Stage, owner: Owner
) -> None:
    async with StagePage(stage) as page:
        channel = await speak(stage, page, owner=owner)
        stage.set_mode("orders-1", "pip")
        stage.set_mode("nobody", "pip")
        told = await page.heard("mode")
        assert told == {"do": "mode", "view": "orders-1", "mode": "pip"}
        size = {"width": 380, "height": 240}
        await page.tell(do="mode", view="orders-1", mode="pip", size=size)
        await page.tell(do="mode", view="orders-1", mode="sideways")
        await page.tell(do="mode", view="nobody", mode="pip")
        await (await page.view("orders-1")).send(b"{}")
        await channel.receive()
    changes = {"displayMode": "pip", "containerDimensions": size}
    assert owner.told == [("context", "orders-1", changes)]


# --- pages -----------------------------------------------------------------------------------


async def test_a_page_that_comes_back_goes_on_where_it_was(stage: Stage, owner: Owner) -> None:
    async with StagePage(stage) as page:
        channel = await speak(stage, page, owner=owner)
        await page.drop()
        await channel.send(b'{"meanwhile":1}')
        first = page.welcome["page"]
        await page.resume()
        assert page.welcome == {"page": first, "received": 1, "resumed": True}
        assert await page.views["orders-1"].receive() == b'{"meanwhile":1}'
    assert owner.told == []
    assert stage.views == ["orders-1"]


async def test_a_reloaded_page_takes_over_and_its_views_are_lost(
    stage: Stage, owner: Owner
) -> None:
    async with StagePage(stage) as page:
        channel = await speak(stage, page, owner=owner)
        silent = stage.mount(view("never-spoke"), owner=owner)
        await page.view("never-spoke")
        async with StagePage(stage) as reloaded:
            assert reloaded.welcome["resumed"] is False
            with pytest.raises(ChannelClosed, match="the page was reloaded"):
                await channel.receive()
            assert (await page.over()) == (4410, "another page took over")
            assert owner.told == [("reopen", "orders-1")]
            # What had not begun to run has lost nothing, and runs on the new page.
            await (await reloaded.view("never-spoke")).send(b"{}")
            assert await silent.receive() == b"{}"
            assert list(reloaded.views) == ["never-spoke"]


async def test_a_page_that_was_taken_over_from_does_not_take_over_in_turn(stage: Stage) -> None:
    async with StagePage(stage) as first:
        pass
    async with StagePage(stage) as second:
        channel = await speak(stage, second)
        stale = StagePage(stage, page=first.welcome["page"])
        await stale.connect()
        assert await stale.closed_with() == (4410, "another page shows the Views now")
        await (await second.view("orders-1")).send(b'{"here":1}')
        assert await channel.receive() == b'{"here":1}'


async def test_a_page_that_was_away_too_long_starts_over() -> None:
    stage = Stage(grace=0.01)
    async with StageServer(stage):
        async with StagePage(stage) as page:
            channel = await speak(stage, page)
            await page.drop()
            with pytest.raises(
                ChannelClosed, match="the page was disconnected for more than 0.01 s"
            ):
                await channel.receive()
        assert not stage.has_page
        async with StagePage(stage, page=page.welcome["page"], received=page.received) as again:
            assert again.welcome["resumed"] is False
            stage.mount(view("orders-2"))
            await again.view("orders-2")


async def test_a_page_that_says_it_is_leaving_is_not_waited_for_long(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with StagePage(stage) as page:
        channel = await speak(stage, page)
        monkeypatch.setattr(stage._link, "_limits", LinkLimits(leaving_grace=0.05))
        await page.leave()
        await page.over()
        await stage.wait_while_leaving()
        assert not stage.has_page
        with pytest.raises(ChannelClosed, match="the page was closed"):
            await channel.receive()


async def test_a_page_that_leaves_to_reload_is_settled_when_it_is_back(stage: Stage) -> None:
    async with StagePage(stage) as page:
        await page.leave()
        await page.over()
        settled = asyncio.create_task(stage.wait_while_leaving())
        await asyncio.sleep(0)
        assert not settled.done()
        async with StagePage(stage) as reloaded:
            await settled
            assert stage.has_page
            stage.mount(view())
            await reloaded.view("orders-1")


@pytest.mark.parametrize("turns", [0, 20])
async def test_a_stage_that_is_closed_hangs_up_and_says_so(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    impatient = SimpleNamespace(**vars(asyncio))
    impatient.sleep = lambda _: asyncio.sleep(0)
    monkeypatch.setattr("uvicorn.server.asyncio", impatient)  # it closes sockets when it ends
    close = WebSocket.close

    async def close_late(self: WebSocket, *given: Any) -> None:
        for _ in range(turns):  # as if it had more to send before
            await asyncio.sleep(0)
        await close(self, *given)

    monkeypatch.setattr(WebSocket, "close", close_late)
    stage = Stage()
    async with StageServer(stage):
        page = await StagePage(stage).__aenter__()
        channel = await speak(stage, page)
    assert await page.over() == (4410, "the program has ended")
    with pytest.raises(ChannelClosed, match="The Stage was closed"):
        await channel.receive()
    with pytest.raises(ChannelClosed):
        await channel.send(b"{}")
    await page.__aexit__(None, None, None)


async def test_a_lost_page_is_not_waited_for(stage: Stage) -> None:
    async with StagePage(stage) as page:
        channel = await speak(stage, page)
        stage.page_lost("the browser is gone")
        with pytest.raises(ChannelClosed, match="the browser is gone"):
            await channel.receive()
        assert await page.over() == (4410, "the browser is gone")
    assert not stage.has_page
    stage.page_lost("twice is fine")


# --- questions -------------------------------------------------------------------------------


async def test_an_answer_on_the_page_ends_the_question(stage: Stage) -> None:
    async with StagePage(stage) as page:
        asking = asyncio.create_task(stage.ask("link", "orders-1", url="https://x.example"))
        told = await page.heard("ask")
        assert told == {
            "do": "ask",
            "id": 1,
            "kind": "link",
            "view": "orders-1",
            "url": "https://x.example",
        }
        await page.tell(do="answer", id=2, value=True)
        await page.tell(do="answer", id=1, value=False)
        await page.tell(do="answer", id=1, value=True)
        assert await asking is False


async def test_without_a_page_there_is_nobody_to_ask(stage: Stage) -> None:
    with pytest.raises(TransomError, match="no page"):
        await stage.ask("approve", "orders-1")


async def test_a_question_ends_with_its_page(stage: Stage) -> None:
    async with StagePage(stage) as page:
        asking = asyncio.create_task(stage.ask("approve", "orders-1"))
        await page.heard("ask")
        stage.page_lost("closed")
        with pytest.raises(TransomError, match="page went away"):
            await asking


async def test_a_question_ends_with_its_view(stage: Stage) -> None:
    async with StagePage(stage) as page:
        channel = await speak(stage, page)
        asking = asyncio.create_task(stage.ask("approve", "orders-1"))
        other = asyncio.create_task(stage.ask("approve", "orders-2"))
        await page.until(lambda p: sum(m["do"] == "ask" for m in p.told) == 2)
        await channel.aclose()
        with pytest.raises(TransomError, match="The View is gone"):
            await asking
        assert (await page.heard("unask"))["id"] == 1
        await page.tell(do="answer", id=2, value="allow")
        assert await other == "allow"


async def test_whoever_asks_can_stop_asking(stage: Stage) -> None:
    async with StagePage(stage) as page:
        asking = asyncio.create_task(stage.ask("approve", "orders-1"))
        await page.heard("ask")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await page.heard("unask"))["id"] == 1


async def test_a_view_asks_one_thing_at_a_time(stage: Stage) -> None:
    async with StagePage(stage) as page:
        first = asyncio.create_task(stage.ask("link", "orders-1"))
        await page.heard("ask")
        with pytest.raises(Refused, match="not answered"):
            await stage.ask("link", "orders-1")
        others = [asyncio.create_task(stage.ask("approve", "orders-1")) for _ in range(19)]
        await page.until(lambda p: sum(m["do"] == "ask" for m in p.told) == 20)
        with pytest.raises(Refused, match="not answered"):
            await stage.ask("approve", "orders-2")
        await page.tell(do="answer", id=1, value=True)
        assert await first is True
        for asking in others:
            asking.cancel()
        await asyncio.wait(others)
