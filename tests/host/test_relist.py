import asyncio

from transom.host.refresh import Relist, settle


async def relisted(relist: Relist, times: int) -> None:
    for _ in range(times):
        relist.changed()
        await settle([relist], 0.05)


async def test_a_few_changes_in_a_row_are_listed_at_once_and_a_flood_is_not() -> None:
    listed: list[float] = []
    loop = asyncio.get_running_loop()

    async def work() -> None:
        listed.append(loop.time())

    relist = Relist(work, 60.0, set())
    await relisted(relist, 3)
    assert len(listed) == 3
    await relisted(relist, 100)
    assert len(listed) == 5
    relist.stop()


async def test_after_a_pause_a_few_more_go_at_once() -> None:
    done = asyncio.Event()
    listed: list[int] = []

    async def work() -> None:
        listed.append(len(listed))
        if len(listed) == 6:
            done.set()

    relist = Relist(work, 0.01, set())
    await relisted(relist, 5)
    relist.changed()
    await done.wait()
    relist.stop()
    assert len(listed) == 6
