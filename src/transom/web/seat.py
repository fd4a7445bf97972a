"""Seats: several Hosts show their Views on one Stage, and each deals with its own Views only.

1. What a Host calls its View and what the Stage calls it differ by the mark of the Host's seat.
   Marks are never used again, so no View of one Host is ever taken for another's.
2. The user sees the Host's own name for the View, and for whom the Host works.
3. A Host that leaves its seat is forgotten, and its Views are removed from the Stage.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

import msgspec

from transom.background import Background
from transom.channel import Channel
from transom.errors import Refused, TransomError, UsageError
from transom.host.host import Host
from transom.host.page import Page
from transom.host.policy import Allow, AllowAlways, ApprovalRequest, Decision, Deny
from transom.host.view import View
from transom.host.view_requests import Download
from transom.json_values import clean
from transom.types import EmbeddedResource, ResourceContents
from transom.web.stage import DisplayMode, FailedView, Stage

SaveFile = Callable[[str, bytes], Awaitable[None]]
"""Saves a file of a View, given its name and content; Refused says why it cannot be saved."""

_MARK = "~"  # never part of a Host's own id of a View
_MAX_LABEL = 60
_MAX_TOOL_NAME = 128
_MAX_DESCRIPTION = 1000  # characters that a user can be expected to read


class Seats:
    """The seats before one Stage or several: forwards what happens to a View to its Host.

    `stage_of` is the Stage that a View is on, by what the Stage calls it, and `show_page` the one
    to open it on. `confirm`: somebody is there who can be asked. `save` takes the files of Views if
    nobody is.
    """

    def __init__(
        self,
        stage_of: Callable[[str], Stage | None],
        show_page: Callable[[str], Awaitable[Stage]],
        url: Callable[[], str],
        *,
        confirm: bool,
    ) -> None:
        self.stages: list[Stage] = []
        self.stage_of = stage_of
        self.show_page = show_page
        self.url = url
        self.confirm = confirm
        self.save: SaveFile | None = None
        self._taken: dict[str, Seat] = {}
        self._made = 0

    def add_stage(self, stage: Stage) -> None:
        """Views may be shown on this Stage from now on."""
        self.stages.append(stage)
        stage.on_surroundings = self._on_surroundings
        stage.on_mode = self._on_mode
        stage.on_lost = self._on_lost
        stage.on_close = self._on_close
        stage.on_retry = self._on_retry
        stage.on_loaded = self._on_loaded

    def new_mark(self) -> str:
        """The mark of the next seat."""
        self._made += 1
        return f"{_MARK}{self._made}"

    def take(self, seat: Seat) -> None:
        """A Host uses this seat from now on."""
        self._taken[seat.mark] = seat

    def leave(self, seat: Seat) -> None:
        """No Host uses this seat any more: remove its Views."""
        self._taken.pop(seat.mark, None)
        for stage in self.stages:
            for key in [key for key in stage.views if _mark_of(key) == seat.mark]:
                stage.remove(key, "its host was closed")
            for key in [key for key in stage.failures if _mark_of(key) == seat.mark]:
                stage.remove_failure(key)

    async def close(self) -> None:
        """Have every Host leave its seat."""
        for seat in list(self._taken.values()):
            await seat.leave()

    def _on_surroundings(self, changes: dict[str, Any]) -> None:
        for seat in list(self._taken.values()):
            seat.set_context(changes)

    def _on_mode(self, key: str, changes: dict[str, Any]) -> None:
        if (seat := self._taken.get(_mark_of(key))) is not None:
            seat.set_view_context(key, changes)

    def _on_lost(self, keys: list[str]) -> None:
        for key in keys:
            self._on_retry(key)

    def _on_retry(self, key: str) -> None:
        if (seat := self._taken.get(_mark_of(key))) is not None:
            seat.reopen_view(key)

    def _on_loaded(self, key: str, gone: bool) -> None:
        if (seat := self._taken.get(_mark_of(key))) is not None:
            seat.check_view(key, gone=gone)

    def _on_close(self, key: str) -> None:
        seat = self._taken.get(_mark_of(key))
        if (seat is None or not seat.close_view(key)) and (stage := self.stage_of(key)) is not None:
            stage.remove(key, "the user closed it")


class Seat:
    """The renderer of one Host among others that use the same page.

    Get one with `renderer.seat()` and give it to a Host. The Host leaves it when it is closed; the
    page and the other Hosts' Views stay. Whoever made the renderer enters and leaves that.
    """

    def __init__(self, seats: Seats, mark: str, label: str = "") -> None:
        self.mark = mark
        self.label = "".join(c if c.isprintable() else " " for c in label)[:_MAX_LABEL]
        self._seats = seats
        self._host: Host | None = None
        self._background = Background(_ignore)

    @property
    def url(self) -> str:
        """The address of the page. Keep it secret: anyone who has it can act as the user."""
        return self._seats.url()

    def key_of(self, view_id: str) -> str:
        """What the Stage calls a View of this Host."""
        return view_id + self.mark

    async def open(self, page: Page) -> Channel:
        """Show a View, on a page that is opened if there is none."""
        if _MARK in page.view_id:
            raise UsageError(f"{page.view_id} is not the id of a View: it has a {_MARK}")
        key = self.key_of(page.view_id)
        stage = await self._seats.show_page(key)
        await stage.wait_for_room(key)
        return stage.mount(page, key=key, client=self.label)

    # --- the Host ----------------------------------------------------------------------------

    def attach_host(self, host: Host) -> None:
        """Handle what the Host's Views ask for and a page can do: links, files, display modes."""
        if self._host is not None and self._host is not host:
            raise UsageError("Several Hosts on one page: give each a renderer.seat() of its own")
        self._host = host
        self._background = Background(_ignore)
        self._seats.take(self)
        modes = ["inline", "fullscreen", "pip"]
        host.set_context(displayMode="inline", availableDisplayModes=modes)
        for stage in self._seats.stages:
            host.set_context(**stage.surroundings)
        if not host.on_open_link:
            host.on_open_link = self._open_link
        if not host.on_download_file:
            host.on_download_file = self._download
        if not host.on_request_pin:
            host.on_request_pin = self._pin
        if not host.on_request_display_mode:
            host.on_request_display_mode = self._set_mode
        host.on_view_opened(self._show_name)
        host.on_view_failed(self._show_failure)
        host.on_view_unresponsive(self._show_trouble)
        host.on_view_responsive(self._show_trouble)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    async def leave(self) -> None:
        """Remove this Host's Views from the page, and forget the Host."""
        self._host = None
        self._background.cancel()
        await asyncio.sleep(0)  # the cancelled tasks end before their Views are removed
        self._seats.leave(self)

    def set_context(self, changes: dict[str, Any]) -> None:
        """Tell all Views what the page knows of its user."""
        if self._host is not None:
            self._host.set_context(**changes)

    def set_view_context(self, key: str, changes: dict[str, Any]) -> None:
        """Tell a View how it is shown now."""
        view = self._view(key)
        if view is not None and view.bridge is not None:
            self._background.start(view.bridge.set_context(**changes))

    def reopen_view(self, key: str) -> None:
        """Open a View again that failed, or whose page was reloaded."""
        stage = self._seats.stage_of(key)
        if self._host is not None and stage is not None and stage.has_page:
            self._background.start(self._reopen(self._host, key))

    def check_view(self, key: str, *, gone: bool) -> None:
        """A View's frame loaded again: the View does so itself, or is no longer there."""
        if (view := self._view(key)) is not None:
            view.check("its page shows something else now" if gone else "")

    def close_view(self, key: str) -> bool:
        """Close a View as the user wants; False: this Host has none of that id."""
        view = self._view(key)
        if view is not None:
            self._background.start(view.close("the user closed it"))
        return view is not None

    def _view(self, key: str) -> View | None:
        return None if self._host is None else self._host.views.get(key.removesuffix(self.mark))

    async def _reopen(self, host: Host, key: str) -> None:
        view = self._view(key)
        if view is not None and view.opening is not None:
            await asyncio.wait([view.opening])  # it is about to fail, and can be opened then
        elif view is not None and view.state == "unresponsive":
            await view.close("the user reloaded it")
        stage = self._seats.stage_of(key)
        failure = None if stage is None else stage.failures.get(key)
        try:
            await host.reopen(key.removesuffix(self.mark))
        except TransomError as error:
            if stage is not None and failure is not None and stage.failures.get(key) is failure:
                # It did not get as far as to be opened: the page still shows what was before.
                stage.fail(msgspec.structs.replace(failure, reason=str(error)))

    # --- what Views ask for ------------------------------------------------------------------

    def _stage_of(self, view: View) -> tuple[Stage | None, str]:
        key = self.key_of(view.id)
        return self._seats.stage_of(key), key

    def _show_name(self, view: View) -> None:
        stage, key = self._stage_of(view)
        if stage is not None and view.app is not None:
            stage.set_name(key, view.app.name, view.app.version)

    def _show_failure(self, view: View, error: BaseException) -> None:
        stage, key = self._stage_of(view)
        cancelled = isinstance(error.__cause__, asyncio.CancelledError)  # somebody closed it
        if stage is not None and not cancelled:
            stage.fail(FailedView(key, view.id, view.server, self.label, view.reason))

    def _show_trouble(self, view: View) -> None:
        stage, key = self._stage_of(view)
        if stage is not None:
            stage.set_trouble(key, view.reason)

    async def _set_mode(self, view: View, mode: DisplayMode) -> str:
        stage, key = self._stage_of(view)
        if stage is not None:
            await stage.wait_for_room(key)
            stage.set_mode(key, mode)
        return mode

    async def _open_link(self, view: View, url: str) -> None:
        if not self._seats.confirm:
            raise Refused("There is no user to open links for")
        if await self._ask("link", view.id, view.server, url=url) is not True:
            raise Refused("The user did not open the link")

    async def _pin(self, view: View, reason: str) -> bool:
        if not self._seats.confirm:
            raise Refused("There is no user to ask")
        return await self._ask("pin", view.id, view.server, reason=reason) is True

    async def _download(self, view: View, files: Sequence[Download]) -> None:
        ready: list[tuple[str, str, str]] = []
        for file in files:
            if not isinstance(file.content, EmbeddedResource):
                raise Refused("Only files that are in the message can be saved")
            ready.append((file.name, *file_of(file.content.resource)))
        save = self._seats.save
        if save is not None:
            for name, _, data in ready:
                await save(name, base64.b64decode(data))
            return
        if not self._seats.confirm:
            raise Refused("There is no user to save files for")
        listed = [{"name": name, "bytes": _decoded_size(data)} for name, _, data in ready]
        if ready and await self._ask("download", view.id, view.server, files=listed) is not True:
            raise Refused("The user did not save the file")
        stage, key = self._stage_of(view)
        for name, mime, data in ready:
            if stage is not None:
                # All Views share the link to the page: what one sends must not fill it.
                await stage.wait_for_room(key)
                stage.save_file(name, mime, data)

    async def approve(self, request: ApprovalRequest) -> Decision:
        """Ask the user on the page; give it to `Policy(approve=...)`."""
        if not self._seats.confirm:
            return Deny("There is no user to ask")
        try:
            answer = await self._ask(
                "approve",
                request.view_id,
                request.server,
                tool=clean(request.tool.name, _MAX_TOOL_NAME),
                description=clean(request.tool.description or "", _MAX_DESCRIPTION),
                arguments=request.arguments,
                changed=request.changed,
                granted=[clean(name, _MAX_TOOL_NAME) for name in request.granted],
                by=request.by,
                opens=request.opens,
            )
        except Refused as error:
            return Deny(str(error))
        if answer == "always":
            return AllowAlways()
        return Allow() if answer == "allow" else Deny("The user refused on the Stage")

    async def _ask(self, kind: str, view_id: str, server: str, **details: Any) -> bool | str:
        details |= {"shown": view_id or "A new View", "client": self.label, "server": server}
        key = self.key_of(view_id)
        try:
            stage = self._seats.stage_of(key) if view_id else await self._seats.show_page(key)
            if stage is None:
                raise Refused("There is no page to ask on")
            return await stage.ask(kind, key, **details)
        except Refused:
            raise
        except TransomError as error:
            raise Refused(str(error)) from None


def _ignore(_: BaseException) -> None:
    """The Host reports what fails in opening and closing Views."""


def _mark_of(key: str) -> str:
    _, mark, number = key.partition(_MARK)
    return mark + number


# --- files that Views give to the user -------------------------------------------------------


def file_of(resource: ResourceContents) -> tuple[str, str]:
    """The type of a file, and its bytes in base64."""
    if resource.blob is not None:
        try:
            base64.b64decode(resource.blob, validate=True)
        except (binascii.Error, ValueError):
            raise Refused("The file is not base64") from None
        return resource.mime_type or "application/octet-stream", resource.blob
    if resource.text is not None:
        encoded = base64.b64encode(resource.text.encode("utf-8", "replace")).decode()
        return resource.mime_type or "text/plain", encoded
    raise Refused("The file has no content")


def _decoded_size(data: str) -> int:
    return len(data) * 3 // 4 - data.count("=")
