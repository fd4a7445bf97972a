"""Background tasks and debouncing."""

import asyncio
import threading

import pytest

from transom.background import Background, Debounced
from transom.events import Slot


@pytest.fixture
def errors():
    return []


async def test_a_background_task_is_kept_and_forgotten_when_it_ends(errors):
    done = asyncio.Event()
    background = Background(errors.append)
    assert background.start(done.wait())
    assert len(background) == 1
    done.set()
    await background.aclose()
    assert (len(background), errors) == (0, [])


async def test_what_a_background_task_raises_is_reported(errors):
    async def fail():
        raise ValueError("broken")

    background = Background(errors.append)
    background.start(fail())
    await background.aclose()
    assert [str(error) for error in errors] == ["broken"]


async def test_no_more_tasks_than_the_limit_run(errors):
    background = Background(errors.append, limit=1)
    assert background.start(asyncio.Event().wait())
    assert not background.start(asyncio.Event().wait())  # dropped without a warning
    background.cancel()


async def test_closing_cancels_what_does_not_end_in_time(errors):
    cancelled = asyncio.Event()

    async def stubborn():
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    background = Background(errors.append)
    background.start(stubborn())
    await asyncio.sleep(0)
    await background.aclose(grace=0.01)
    await cancelled.wait()
    assert not background.start(stubborn())
    assert errors == []


async def test_a_background_closed_by_one_of_its_own_tasks_does_not_wait_for_it(errors):
    background = Background(errors.append)
    over = asyncio.Event()

    async def close():
        await background.aclose()
        over.set()

    background.start(close())
    await over.wait()


async def test_handlers_that_are_async_run_in_the_background(errors):
    seen = asyncio.Queue()
    slot = Slot("on_something")
    slot(seen.put)
    slot(lambda value: 1 / value)
    background = Background(errors.append)
    background.fire(slot, 0)
    assert await seen.get() == 0
    await background.aclose()
    assert [type(error) for error in errors] == [ZeroDivisionError]


async def test_a_background_takes_work_from_other_threads(errors):
    background = Background(errors.append)
    background.start(asyncio.sleep(0))  # its event loop is this one from now on
    ran = asyncio.Event()

    async def work():
        ran.set()

    thread = threading.Thread(target=lambda: background.start(work()))
    thread.start()
    await ran.wait()
    thread.join()
    await background.aclose()


async def test_many_triggers_in_one_turn_are_one_call(errors):
    calls = []
    debounced = Debounced(lambda: calls.append(1), errors.append)
    for _ in range(5):
        debounced.trigger()
    assert calls == []
    assert debounced.pending
    await asyncio.sleep(0)
    assert calls == [1]
    debounced.trigger()
    await asyncio.sleep(0)
    assert calls == [1, 1]


async def test_a_debounced_call_can_be_made_at_once_or_forgotten(errors):
    calls = []
    debounced = Debounced(lambda: calls.append(1), errors.append, delay=60)
    debounced.flush()  # nothing is due
    debounced.trigger()
    debounced.flush()
    assert calls == [1]
    debounced.trigger()
    debounced.drop()
    assert not debounced.pending
    debounced.flush()
    assert calls == [1]


async def test_a_trigger_while_an_async_call_runs_leads_to_one_more(errors):
    go, calls, begun = asyncio.Semaphore(0), [], asyncio.Semaphore(0)

    async def call():
        calls.append(1)
        begun.release()
        await go.acquire()

    debounced = Debounced(call, errors.append)
    debounced.trigger()
    await begun.acquire()
    for _ in range(3):
        debounced.trigger()
    assert calls == [1]
    go.release()
    await begun.acquire()
    go.release()
    for _ in range(5):
        await asyncio.sleep(0)
    assert calls == [1, 1]
    debounced.close()


async def test_what_a_debounced_call_raises_is_reported_and_the_next_one_runs(errors):
    async def fail_later():
        raise ValueError("later")

    def fail():
        if errors:
            return fail_later()
        raise ValueError("now")

    reported = asyncio.Semaphore(0)
    debounced = Debounced(fail, lambda error: (errors.append(error), reported.release()))
    for _ in range(2):
        debounced.trigger()
        await reported.acquire()
    assert [str(error) for error in errors] == ["now", "later"]


async def test_a_closed_debounce_makes_no_call_and_cancels_the_one_that_runs(errors):
    cancelled = asyncio.Event()

    async def call():
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    debounced = Debounced(call, errors.append)
    debounced.trigger()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    debounced.close()
    await cancelled.wait()
    debounced.trigger()
    assert not debounced.pending
    assert errors == []


async def test_a_trigger_from_another_thread_leads_to_a_call_in_the_event_loop(errors):
    called = asyncio.Event()
    debounced = Debounced(called.set, errors.append)
    debounced.bind()
    thread = threading.Thread(target=debounced.trigger)
    thread.start()
    await called.wait()
    thread.join()


async def test_work_that_a_thread_starts_counts_at_once_and_is_dropped_when_it_is_closed(errors):
    background = Background(errors.append, limit=2)
    background.bind()
    ran = []

    async def work():
        ran.append(1)

    def start():
        return [background.start(work()) for _ in range(3)]

    thread = threading.Thread(target=lambda: ran.append(start()))
    thread.start()
    thread.join()  # the event loop has had no turn since
    assert ran == [[True, True, False]]
    background.cancel()
    await asyncio.sleep(0)
    assert (len(ran), len(background), errors) == (1, 0, [])
