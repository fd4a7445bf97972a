"""One user's pages take their share of a worker's time, and no more."""

import asyncio
import json
from contextlib import suppress

import pytest

from tests.web.browser import play
from tests.web.site import site
from transom import fair_share
from transom.errors import ChannelClosed, UsageError
from transom.fair_share import FairShare, FairShares
from transom.web import UserLimits, WebViews

ENOUGH = 60.0


class Clock:
    """A clock that a test turns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(fair_share, "perf_counter", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_a_burst_is_free_and_what_comes_after_it_takes_no_more_than_the_share(clock: Clock) -> None:
    share = FairShare(0.25)
    assert share.charge(0.05) == 0  # a quarter of the 0.2 s that a user saves up
    spent, until = 0.0, clock.now + 10
    while clock.now < until:
        spent += 0.001
        clock.now += share.charge(0.001)
    assert spent == pytest.approx(2.5, rel=0.01)
    clock.now += 60
    assert share.charge(0.05) == 0
    assert share.charge(0.05) > 0


def test_no_pause_is_long_whatever_the_worker_was_kept_from(clock: Clock) -> None:
    assert FairShare(0.25).charge(3600) == pytest.approx(1)


def test_a_user_who_is_over_the_limit_is_in_the_log_once_a_minute(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    shares = FairShares(0.25)
    for _ in range(100):
        clock.now += shares.of("eve").charge(0.1)
        shares.of("ann").charge(0.001)
    assert [record.args for record in caplog.records] == [("eve", 25)]
    clock.now += 60
    shares.of("eve").charge(1)
    assert len(caplog.records) == 2


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(UsageError, match="max_share"):
        WebViews(authenticate=lambda _: None, limits=UserLimits(max_share=share))


async def test_the_flood_of_one_user_waits_and_loses_nothing_and_another_user_does_not_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flood = 300
    async with (
        asyncio.timeout(ENOUGH),
        site(users=UserLimits(max_share=0.04, show_within=30)) as shop,
        shop.page("eve") as eve,
        shop.page("ann"),
    ):
        await play(await shop.views.host("eve"))  # type: ignore[arg-type]
        host = await shop.views.host("ann")
        view = await play(host)  # type: ignore[arg-type]
        [key] = eve.views
        for number in range(flood):
            request = {"jsonrpc": "2.0", "id": f"flood-{number}", "method": "ping"}
            await eve.send(key, json.dumps(request))
        sent = eve.sent
        calls = 0
        while eve.acknowledged < sent:
            assert (await host.call_tool(f"{view.id}__key", {})).text == view.id
            calls += 1
        assert calls > 10  # there was time for them
        assert eve.closed is None
    assert ("eve", 4) in [record.args for record in caplog.records]


async def test_pages_of_one_user_that_read_nothing_have_one_limit_together() -> None:
    limits = UserLimits(max_unread=50_000, max_share=1)
    async with (
        asyncio.timeout(ENOUGH),
        site(users=limits) as shop,
        shop.page("eve") as eve,
        shop.page("eve") as other,
        shop.page("ann"),
    ):
        await play(await shop.views.host("eve"))  # type: ignore[arg-type]
        view = await play(await shop.views.host("ann"))  # type: ignore[arg-type]
        [offered] = {message["view"] for message in eve.told if message["do"] == "offer"}
        for page in (eve, other):
            page.acknowledge = deaf  # type: ignore[method-assign]
        while not (closed := eve.closed or other.closed):
            with suppress(ChannelClosed):
                await eve.place(offered)
                await other.place(offered)
            await asyncio.sleep(0)
        assert closed[1] == "the pages of this user do not read what is sent to them"
        assert await view.call_tool("key") is not None


async def deaf(_: int) -> None:
    """Take what was sent, and do not say so."""
