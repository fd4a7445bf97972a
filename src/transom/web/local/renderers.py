"""A renderer that shows Views on a page in the user's own browser."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from transom.errors import TransomError
from transom.web.csp import CspMode
from transom.web.local.local_stage import LocalStage, OpenPage
from transom.web.mounted_views import Violation
from transom.web.seat import Seat, SeatOptions
from transom.web.stage import Stage
from transom.web.view_storage import ViewStorage

_OPEN = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.stdin.read()))"
_LOOK_EVERY = 0.02
_LOOKS = 250  # not seconds: a machine that stalls does not make a failure a success


async def open_in_browser(url: str) -> None:
    """Open a page in the user's browser.

    The browser gets none of this process's streams, and stays open when this process ends. The
    process that opens it reads the address from its standard input, because every user of this
    machine can see a command line; how the browser itself gets it depends on the system.

    Raises:
        TransomError: there is no browser to open.
    """
    process = subprocess.Popen(  # noqa: ASYNC220 - it returns at once, and must outlive this loop
        [sys.executable, "-c", _OPEN],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if process.stdin is not None:
        with suppress(OSError), process.stdin as stdin:  # it may have failed already
            stdin.write(url.encode())
    for _ in range(_LOOKS):
        if process.poll() is not None:
            break
        await asyncio.sleep(_LOOK_EVERY)
    if process.returncode:
        raise TransomError("No browser could be opened")


class BrowserRenderer(Seat):
    """Shows Views on a page in the user's browser.

    Args:
        csp: what a View's page may run: `compat` or `strict`.
        open_page: opens the page; in the user's browser unless given. It is called when a View
            opens and there is no page. None: the user opens `renderer.url` by hand.
        port: the port of the page; 0: any that is free.
        sandbox_port: the port of the sandboxes; 0: any that is free.
        page_timeout: seconds to wait for the page.
        share: use a page that another process of this user has open, if there is one, and let
            others use this one's. If that fails, a page is opened as usual.
        confirm: ask the user on the page before links are opened and files are saved. False:
            there is no user, so both are refused.
        ephemeral: store nothing for Views: each View has an origin that is never used again, and
            none can be reopened in the next run. Otherwise a View finds what Views of the same
            server and resource have stored, also in the next run, if its server is a command or a
            URL.
        program: identifies this program among others of the user that show Views at the same time.
            What Views store belongs to one program, which has its own ports.
        on_violation: called with everything that a View's policy blocked.
        on_unopened: called with the address when a page is needed but could not be opened, so that
            the user can open it by hand; the View waits for that. Without it, a View whose page
            cannot be opened fails at once.

    `renderer.approve` asks on the page whether the model may call a tool:
    `Host(renderer=renderer, policy=Policy(approve=renderer.approve))`. Several Hosts share the page
    when each has a `renderer.seat()`.
    """

    def __init__(
        self,
        *,
        csp: CspMode = "compat",
        open_page: OpenPage | None = open_in_browser,
        port: int = 0,
        sandbox_port: int = 0,
        page_timeout: float = 30.0,
        confirm: bool = True,
        share: bool = False,
        ephemeral: bool = False,
        program: str = "",
        on_violation: Callable[[Violation], object] | None = None,
        on_unopened: Callable[[str], object] | None = None,
    ) -> None:
        storage = None if ephemeral else ViewStorage(program)
        self._local = LocalStage(
            open_page,
            SeatOptions(confirm=confirm, keeps_closed=True, earlier=storage if confirm else None),
            csp=csp,
            ports=(port, sandbox_port),
            page_timeout=page_timeout,
            share=share,
            storage=storage,
            on_violation=on_violation,
            on_unopened=on_unopened,
        )
        super().__init__(self._local)

    @property
    def _stage(self) -> Stage:
        """The Stage the Views are on."""
        return self._local.stage

    async def __aenter__(self) -> Self:
        await self._local.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._local.close()

    async def show_page(self, *, timeout: float | None = None) -> None:
        """Find or open a page if there is none, and wait for it.

        Args:
            timeout: seconds to wait; None: for as long as it takes.

        Raises:
            TransomError: none could be opened, or none connected in time.
            UsageError: the renderer is not running.
        """
        await self._local.find_page(timeout)

    def seat(self, client: str = "") -> Seat:
        """A renderer for one of several Hosts that share this page: `Host(renderer=r.seat())`.

        The page stays until this renderer is left, not with the Host.

        Args:
            client: for whom the Host works, such as the name of an MCP client. The user sees it
                beside the Host's Views and in questions.
        """
        return Seat(self._local, self._local.new_mark(), client)
