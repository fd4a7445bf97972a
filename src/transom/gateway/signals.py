"""Ending when the system says so."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

__all__ = ["on_signals"]


def on_signals(call: Callable[[], object], *, interrupt: bool = True) -> None:
    """Call this when the process is asked to end; with `interrupt`, also on Ctrl-C.

    Where an event loop cannot do that (Windows), signals do what they always do.
    """
    loop = asyncio.get_running_loop()
    names = ("SIGTERM", "SIGHUP", "SIGINT") if interrupt else ("SIGTERM", "SIGHUP")
    for number in (getattr(signal, name, None) for name in names):
        if number is not None:
            try:
                loop.add_signal_handler(number, call)
            except NotImplementedError:
                return
