import asyncio

from transom.host.refresh import Refresh, wait_refreshed


async def refreshed(refresh: Refresh, times: int) -> None:
    for _ in range(times):
        refresh.trigger()
        await wait_refreshed([refresh], 0.05)


async def test_a_few_changes_in_a_row_are_listed_at_once_and_a_flood_is_not() -> None:
    listed: list[float] = []
    loop = asyncio.get_running_loop()

    async def work() -> None:
        listed.append(loop.time())

    refresh = Refresh(work, 60.0, set(), print)
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

    refresh = Refresh(work, 0.01, set(), print)
    await refreshed(refresh, 5)
    refresh.trigger()
    await done.wait()
    refresh.stop()
    assert len(listed) == 6
