"""Waiting for what a View does with the call that it shows, before the call returns.

1. A View answers a ping after it has taken what it was sent before. What it sends about its input
   and result right away arrives before that answer.
2. A View that has sent something may send more: wait until it has been quiet for a moment.
3. A View that declared tools and has none yet may register them when it has its result.
4. Time in which a View's page did not run is not time in which it was watched.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Final

from transom.errors import ProtocolError, TransomError
from transom.host.views.bridge import Bridge
from transom.host.views.view import View

_ANSWERS_WITHIN: Final = 3.0  # seconds: a page may compute for a while when it gets its input
_AT_MOST: Final = 0.5  # seconds after that answer
_LOOK_EVERY: Final = 0.01  # a View does not say when it has done what it does
_LOOKS: Final = 5  # at a View that is watched
_QUIET: Final = 5  # looks in a row, not seconds: a machine that stalls makes no View quiet


async def wait_settled(view: View, used: float) -> None:
    """Wait briefly until a View that is live has reacted to its call.

    Args:
        view: the View.
        used: its `last_used` before it got the call.
    """
    if view.bridge is not None:
        with suppress(TransomError):  # a View that does not answer in time is not waited for
            await view.bridge.ping(timeout=_ANSWERS_WITHIN)
    end = time.perf_counter() + _AT_MOST
    seen, quiet = view.last_used, 0
    while view.takes_calls and time.perf_counter() < end:
        if view.last_used != seen:
            seen, quiet = view.last_used, 0
        is_quiet = seen == used or quiet >= _QUIET
        if is_quiet and (view.tools or not view.offers_tools):
            return
        await asyncio.sleep(_LOOK_EVERY)
        quiet += 1


async def wait_for_failed_page(view: View) -> None:
    """Wait for a View whose page failed before it connected, until it is live or has failed."""
    if view.bridge is not None and view.opening is not None:
        await asyncio.wait([view.opening])


async def watch(bridge: Bridge, seconds: float) -> None:
    """Wait for what a View does by itself, which has no event, while its page runs so long."""
    answers = True
    for _ in range(_LOOKS):
        await asyncio.sleep(seconds / _LOOKS)
        try:
            if answers:
                await bridge.ping(timeout=_ANSWERS_WITHIN)
        except ProtocolError:
            continue  # an error is an answer, too
        except TransomError:
            answers = False
