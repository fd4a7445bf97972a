"""Renderers turn a View's page into a running View. The one here needs no browser."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol, Self, runtime_checkable

from transom.background import Background
from transom.channel import Channel, memory_pair
from transom.errors import TransomError, UsageError
from transom.host.views.ui_resource import UIResource
from transom.view.app import App

_log = logging.getLogger("transom.host")


class NoPlace(TransomError):
    """There is no place to show a View yet. `found` waits until there is one."""

    def __init__(self, reason: str, found: Callable[[], Awaitable[object]]) -> None:
        super().__init__(reason)
        self.found = found


@runtime_checkable
class Renderer(Protocol):
    """Shows Views. Closing the channel it returned ends the View.

    A renderer that is an async context manager is entered and left with its host.
    """

    async def open(self, resource: UIResource) -> Channel:
        """Start the View and return the pipe to it. The View may speak at once.

        Raises:
            NoPlace: there is no place to show it yet; the View waits for one.
            TransomError: it cannot be shown; the text says why.
        """
        ...


@runtime_checkable
class TakesScreenshots(Protocol):
    """A renderer that can take pictures of its Views."""

    async def screenshot(self, view_id: str) -> bytes:
        """A PNG of what the View shows now."""
        ...


@runtime_checkable
class DrivesViews(Protocol):
    """A renderer whose Views can be read and used as a person does, without tools of their own."""

    async def drive(self, view_id: str, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request to the script beside a View's page, and return its answer.

        Requests have an `op`, and are answered so (`js/src/drive.ts` has the other end):

        * `look`, with `find`, `under` (a reference) or neither, and `show` to outline what was
          read: `nodes`, `actionable`, `left_out`, `private` and `offscreen`
        * `target`, with what an `act` has: the `target` with its `role` and `name`, and `to`
          likewise, or a `problem`
        * `act`, with `ref` and `action`, and `value`, `to`, `role` and `name` where it needs
          them: `done`, `settled` and `ignored`, or a `problem`, its `detail`, and `begun` if
          something may have been done before it was found
        * `mark`, with `ref`: nothing; the element is outlined until the next `mark`

        One with an `error` says that the script itself has failed. An answer is the View's word.

        Raises:
            Refused: the user has taken control of the View.
            ViewClosed: it is not shown, or was closed before there was an answer.
            TransomError: there was no answer in time, or none that can be read.
        """
        ...


Turn = Callable[[], AbstractAsyncContextManager[object]]
"""To be entered for each request of a View to its server: may wait first."""


@runtime_checkable
class TakesTurns(Protocol):
    """A renderer for one of several users, whose Views take turns at using servers."""

    _turn: Turn


def turn_of(renderer: Renderer) -> Turn:
    """How its Views take turns; at once if it does not say."""
    return renderer._turn if isinstance(renderer, TakesTurns) else nullcontext


MakeApp = Callable[[], App | Awaitable[App]]
"""Makes a fresh App for each View."""


class InProcessRenderer:
    """Runs Views that are written in Python, beside their host.

    Args:
        apps: for each `ui://` resource, a function that makes its App. It is called for every
            View, so that no two share one.
    """

    def __init__(self, apps: Mapping[str, MakeApp]) -> None:
        self._apps = dict(apps)
        self._connecting = Background(_log.error)

    async def open(self, resource: UIResource) -> Channel:
        """Make the App and connect it.

        Raises:
            UsageError: there is no App for that resource, or what was made is not one.
        """
        make = self._apps.get(resource.uri)
        if make is None:
            known = ", ".join(self._apps) or "none"
            raise UsageError(f"There is no App for {resource.uri}; there are: {known}")
        made = make()
        app = await made if inspect.isawaitable(made) else made
        ours, theirs = memory_pair()
        # The handshake needs the host's answer, which comes after this has returned.
        self._connecting.start(_connect(app, theirs))
        return ours

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        connecting, self._connecting = self._connecting, Background(_log.error)
        connecting.cancel()
        await connecting.aclose()


async def _connect(app: App, channel: Channel) -> None:
    try:
        await app.connect(channel)
    except TransomError as error:
        app.report(error)
    finally:
        if not app.connected:
            await channel.aclose()
