"""Why a View stays blank: what `transom doctor` finds, on the page of `transom dev`."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import msgspec

from transom.background import logged_task
from transom.check.doctor import Diagnosis, diagnose
from transom.check.facts import TrialCall
from transom.check.host_profiles import HostProfile
from transom.dev.files import find_in_files
from transom.dev.page import DevPage
from transom.dev.run import ServerRun
from transom.errors import TransomError
from transom.host.views.liveness import ViewState
from transom.host.views.view import View

_log = logging.getLogger("transom.dev")

_CONNECTS_WITHIN = 3.0  # seconds, as a page does that is not broken


class Diagnoses:
    """Shows why a View stays blank: when its author asks, and when its page does not connect.

    Args:
        page: its panel `diagnosis` has the newest one.
        folder: where the pages of Views may be written.
        wait: seconds for each answer of the server, and for the handshake.
    """

    def __init__(self, page: DevPage, folder: Path | None, wait: float) -> None:
        self._page = page
        self._folder = folder
        self._wait = wait
        self._looking: asyncio.Task[None] | None = None

    def clear(self) -> None:
        """End the one that is being made, and forget what was found."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        self._page.set("diagnosis", None)

    def watch(self, run: ServerRun, profile: HostProfile) -> None:
        """A call begins: diagnose its View, unless that connects soon."""

        async def look_later() -> None:
            await asyncio.sleep(_CONNECTS_WITHIN)
            if (view := run.unconnected) is not None:
                await self._look(run, profile, run.called(view), view)

        self.clear()
        self._looking = logged_task(look_later(), _log)

    def view_opened(self, view: View, run: ServerRun, profile: HostProfile) -> None:
        """A View is there, or could not be opened."""
        if view.state is not ViewState.FAILED:
            self.clear()
        elif self._page.get("diagnosis") is None:
            self.clear()
            self._looking = logged_task(self._look(run, profile, run.called(view), view), _log)

    def ask(
        self, run: ServerRun, profile: HostProfile, tool: str | None, arguments: dict[str, Any]
    ) -> None:
        """Diagnose the View that is shown, or else that of a tool, which is then called."""
        self.clear()
        view = run.shown_view
        called = None if view is None else run.called(view)
        asked = called or (None if tool is None else TrialCall(tool, arguments))
        look = self._look(run, profile, asked, None, is_called=called is not None)
        self._looking = logged_task(look, _log)

    async def _look(
        self,
        run: ServerRun,
        profile: HostProfile,
        call: TrialCall | None,
        blank: View | None,
        *,
        is_called: bool = True,
    ) -> None:
        about = {"blank": None if blank is None else blank.id}
        self._page.set("diagnosis", {**about, "state": "looking"})
        try:
            found = await diagnose(
                run.server,
                None if call is None else call.tool,
                None if call is None else call.arguments,
                profile=profile,
                called=call if is_called else None,
                wait=self._wait,
            )
        except TransomError as error:
            failed = {**about, "state": "failed", "reason": str(error)}
            self._page.set("diagnosis", failed)
        else:
            causes = self._placed(found)
            done = {**about, "state": "done", "causes": causes, "notes": found.notes}
            self._page.set("diagnosis", done)

    def _placed(self, found: Diagnosis) -> list[dict[str, Any]]:
        """The causes, each with its place, in a file if that is known."""
        shown: list[dict[str, Any]] = msgspec.to_builtins(found.causes)
        for cause in shown:
            line, column = cause.get("line"), cause.get("column") or 1
            if line is not None:
                place = find_in_files(found.page, line, column, self._folder)
                cause["place"] = msgspec.to_builtins(place)
        return shown
