"""Background tasks and debouncing. Every task that nobody awaits belongs to a `Background`.

1. asyncio has only a weak reference to a running task, and drops what it raises. A `Background`
   holds its tasks, reports their errors, and cancels them when it is closed.
2. A `Debounced` turns any number of triggers into one call.
3. Both may be used from other threads: a tool's handler may run in one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from transom.events import Slot, abandon, is_awaitable

T = TypeVar("T")
OnError = Callable[[BaseException], object]


def ignore(*_: object) -> None:
    """A handler for what nobody has to know of."""


def logs_errors(log: logging.Logger) -> OnError:
    """An `on_error` that writes errors to the log, with where they come from."""

    def report(error: BaseException) -> None:
        if not isinstance(error, asyncio.CancelledError):
            log.error("%s: %s", type(error).__name__, error, exc_info=error)

    return report


def retrieve(task: asyncio.Future[Any]) -> None:
    """A done callback that marks an error as seen, so that asyncio does not warn about it."""
    if not task.cancelled():
        task.exception()


def shared_task(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task that several wait for, shielded: its error is seen even if none of them waits on."""
    task = asyncio.create_task(work)
    task.add_done_callback(retrieve)
    return task


def logged_task(work: Coroutine[Any, Any, T], log: logging.Logger) -> asyncio.Task[T]:
    """A task that nobody waits for: its failure is logged, and ends nothing else."""

    def report(done: asyncio.Task[T]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            logs_errors(log)(error)

    task = asyncio.create_task(work)
    task.add_done_callback(report)
    return task


async def stop(task: asyncio.Future[Any] | None) -> None:
    """Cancel a task, if there is one, and wait until it has ended."""
    if task is not None:
        task.cancel()
        await asyncio.wait([task])


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


class Background:
    """Owns tasks that nobody awaits.

    Args:
        on_error: called with whatever a task raises.
        limit: how many tasks may run at once, where untrusted input decides how many start.
    """

    def __init__(self, on_error: OnError, *, limit: int | None = None) -> None:
        self._on_error = on_error
        self._limit = limit
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Future[Any]] = set()
        # Includes work from other threads, which becomes a task in the loop's next turn.
        self._started = 0
        self._closed = False

    def __len__(self) -> int:
        return self._started

    def bind(self) -> None:
        """Use the running event loop, also for work that other threads start."""
        self._loop = asyncio.get_running_loop()

    def start(self, work: Awaitable[object]) -> bool:
        """Run `work`. False: it was dropped, because this is closed or `limit` tasks run."""
        full = self._limit is not None and self._started >= self._limit
        if self._closed or full or (self._loop is not None and self._loop.is_closed()):
            abandon(work)
            return False
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._started += 1
        if _runs_here(self._loop):
            self._begin(work)
        else:
            self._loop.call_soon_threadsafe(self._begin, work)
        return True

    def fire(self, handlers: Slot, *arguments: object) -> None:
        """Call event handlers. Async ones run in the background; errors are reported."""
        if handlers:
            waiting = handlers.fire(*arguments, on_error=self._on_error)
            if is_awaitable(waiting):
                self.start(waiting)

    def _begin(self, work: Awaitable[object]) -> None:
        if self._closed:  # after another thread started this
            self._started -= 1
            abandon(work)
            return
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        self._started -= 1
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(error)

    def cancel(self) -> None:
        """Cancel the running tasks, and start no more."""
        self._closed = True
        for task in self._others():
            task.cancel()

    async def aclose(self, *, grace: float = 1.0) -> None:
        """Give the running tasks `grace` seconds to end, then cancel them. Safe to repeat."""
        self._closed = True
        if others := self._others():
            await asyncio.wait(others, timeout=grace)
            self.cancel()

    def _others(self) -> list[asyncio.Future[Any]]:
        current = asyncio.current_task()
        return [task for task in self._tasks if task is not current]


class Debounced:
    """Calls a function once for any number of triggers.

    A trigger while an async function runs leads to one more call after it.

    Args:
        call: the function; may be async.
        on_error: called with whatever it raises.
        delay: seconds from the first trigger to the call; 0: in the next turn of the event loop.
    """

    def __init__(
        self, call: Callable[[], object], on_error: OnError, *, delay: float = 0.0
    ) -> None:
        self._call = call
        self._on_error = on_error
        self._delay = delay
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handle: asyncio.Handle | None = None
        self._running: asyncio.Future[Any] | None = None
        self._again = False
        self._closed = False

    @property
    def pending(self) -> bool:
        """Whether a call is pending."""
        return self._handle is not None or self._again

    def bind(self) -> None:
        """Use the running event loop, also for triggers from other threads."""
        self._loop = asyncio.get_running_loop()

    def trigger(self) -> None:
        """Ask for a call."""
        if self._loop is not None and self._loop.is_closed():  # what it had left is lost with it
            self._loop = self._handle = self._running = None
        if self._closed or self._handle is not None:
            return
        if self._running is not None:
            self._again = True
            return
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        if not _runs_here(self._loop):
            self._handle = self._loop.call_soon_threadsafe(self._fire)
        elif self._delay:
            self._handle = self._loop.call_later(self._delay, self._fire)
        else:
            self._handle = self._loop.call_soon(self._fire)

    def flush(self) -> None:
        """Make a pending call now."""
        if self._handle is not None:
            self._fire()

    def drop(self) -> None:
        """Drop a pending call."""
        self._again = False
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def close(self) -> None:
        """Make no more calls, and cancel a running one."""
        self._closed = True
        self.drop()
        if self._running is not None and self._running is not asyncio.current_task():
            self._running.cancel()

    def _fire(self) -> None:
        self.drop()
        try:
            waiting = self._call()
        except Exception as error:  # noqa: BLE001 - a timer's callback has no caller to raise to
            self._on_error(error)
            return
        if is_awaitable(waiting):
            self._running = asyncio.ensure_future(waiting)
            self._running.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Future[Any]) -> None:
        self._running = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(error)
        if self._again:
            self._again = False
            self.trigger()
