import asyncio

from transom.host.tools.refresh import Refresh, wait_refreshed


async def refreshed(refresh: Refresh, times: int) -> None:
    for _ in range(times):
        refresh.trigger()
        await wait_refreshed([refresh], 0.05)


async def test_a_few_changes_in_a_row_are_listed_at_once_and_a_flood_is_not() -> None:
    listed: list[float] = []
    loop = asyncio.get_running_loop()

    async def work() -> None:
        listed.append(loop.time())

    refresh = Refresh(work, 60.0, set(), print, print)
    await refreshed(refresh, 3)
    assert len(listed) == 3
    await refreshed(refresh, 100)
    assert len(listed) == 5
    refresh.stop()


async def test_after_a_pause_a_few_more_go_at_once() -> None:
    done = asyncio.Event()
    listed: list[int] = []

    async def work() -> None:
        listed.append(len(listed))
        if len(listed) == 6:
            done.set()

    refresh = Refresh(work, 0.01, set(), print, print)
    await refreshed(refresh, 5)
    refresh.trigger()
    await done.wait()
    refresh.stop()
    assert len(listed) == 6


async def test_a_pull_is_listed_at_once_however_many_there_were() -> None:
    listed: list[bool] = []

    async def work() -> None:
        listed.append(refresh.pulling)

    refresh = Refresh(work, 60.0, set(), print, print)
    await refreshed(refresh, 6)  # the sixth has to wait for a minute
    assert len(listed) == 5
    refresh.pull()
    await wait_refreshed([refresh], 60)
    assert len(listed) == 6  # and served the one that waited
    for _ in range(10):
        refresh.pull()
        await wait_refreshed([refresh], 60)
    assert listed == [False] * 6 + [True] * 10
    refresh.stop()


async def test_whoever_waits_goes_on_when_it_is_stopped() -> None:
    never = asyncio.Event()
    refresh = Refresh(lambda: never.wait(), 0.0, set(), print, print)  # type: ignore[arg-type]
    refresh.pull()
    waiting = asyncio.create_task(wait_refreshed([refresh], 60))
    await asyncio.sleep(0)
    refresh.stop()
    await waiting
