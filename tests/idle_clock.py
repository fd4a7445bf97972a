"""Limits that are reached at once, and only by what never comes: on a busy machine as well."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar

_T = TypeVar("_T")


class _Selector(selectors.DefaultSelector):
    """Where an event loop waits for its next timer: that time has passed if nothing is to do."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            return super().select()
        ready = super().select(0)
        self.now += 0 if ready else timeout
        return ready


class _IdleClockLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._idle = _Selector()
        super().__init__(self._idle)

    def time(self) -> float:
        return self._idle.now

    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """A thread would work while time passes: it is done here."""

        async def work() -> Any:
            return func(*args)

        return self.create_task(work())


def run_at_once(work: Coroutine[Any, Any, _T]) -> _T:
    """Run what uses nothing outside of this process, without waiting for its limits."""
    with asyncio.Runner(loop_factory=_IdleClockLoop) as runner:
        return runner.run(work)
