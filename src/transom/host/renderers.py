"""What turns a View's page into a running View, and the one that needs no browser."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from transom.channel import Channel, memory_pair
from transom.errors import TransomError, UsageError
from transom.host.page import Page
from transom.view.app import App

if TYPE_CHECKING:
    from transom.host.host import Host

__all__ = ["AttachesToHost", "InProcessRenderer", "MakeApp", "Renderer", "TakesScreenshots"]


@runtime_checkable
class Renderer(Protocol):
    """Shows Views. Closing the channel it returned ends the View.

    A renderer that is an async context manager is entered and left with its host.
    """

    async def open(self, page: Page) -> Channel:
        """Start the View and return the pipe to it. The View may speak at once.

        Raises:
            TransomError: it cannot be shown; the text says why.
        """
        ...


@runtime_checkable
class AttachesToHost(Protocol):
    """A renderer that serves its host's other wishes too: links, files, display modes, context."""

    def attach_host(self, host: Host) -> None:
        """It is about to show the Views of `host`."""
        ...


@runtime_checkable
class TakesScreenshots(Protocol):
    """A renderer that can take pictures of its Views."""

    async def screenshot(self, view_id: str) -> bytes:
        """A PNG of what the View shows now."""
        ...


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
        self._connecting: set[asyncio.Task[None]] = set()

    async def open(self, page: Page) -> Channel:
        """Make the App and connect it.

        Raises:
            UsageError: there is no App for that resource, or what was made is none.
        """
        make = self._apps.get(page.uri)
        if make is None:
            known = ", ".join(self._apps) or "none"
            raise UsageError(f"There is no App for {page.uri}; there are: {known}")
        made = make()
        app = await made if inspect.isawaitable(made) else made
        ours, theirs = memory_pair()
        # The handshake needs the host's answer, which comes after this has returned.
        task = asyncio.create_task(self._connect(app, theirs))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        return ours

    @staticmethod
    async def _connect(app: App, channel: Channel) -> None:
        try:
            await app.connect(channel)
        except TransomError as error:
            app.report(error)
        finally:
            if not app.connected:
                await channel.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        connecting = list(self._connecting)
        for task in connecting:
            task.cancel()
        if connecting:
            await asyncio.wait(connecting)
