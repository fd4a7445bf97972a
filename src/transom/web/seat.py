"""Seats: several Hosts show their Views on one Stage, and each handles only its own Views.

1. The Stage's key of a View is the Host's id with the mark of the Host's seat. Marks are never
   reused, so no View of one Host is ever taken for another's.
2. The user sees the Host's own id of the View, and the label of the seat.
3. When a Host leaves its seat, its Views are removed from the Stage.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import msgspec

from transom.background import Background, ignore
from transom.channel import Channel
from transom.errors import Refused, TransomError, UsageError
from transom.host.downloads import Download
from transom.host.grants import Grant
from transom.host.host import Host
from transom.host.page import Page
from transom.host.policy import Allow, AllowAlways, ApprovalRequest, Decision, Deny
from transom.host.view import View
from transom.types import EmbeddedResource, ResourceContents, ToolResult
from transom.web.stage import DisplayMode, GoneView, Stage
from transom.web.view_storage import MAX_RECENT, RecentView, ViewStorage

SaveFile = Callable[[str, bytes], Awaitable[None]]
"""Saves a file of a View, given its name and content; Refused says why it cannot be saved."""

_log = logging.getLogger("transom.web")

_WRITTEN_WITHIN = 2.0
_MARK = "~"  # never part of a Host's own id of a View
_MAX_LABEL = 60


class Seats:
    """The seats of one or more Stages: forwards events of a View to its Host.

    `stage_of` returns the Stage of a View by its key, and `show_page` the one to open it on.
    `confirm`: there is a user who can be asked. `save` stores the files of Views if there is none.
    `storage` has the persistent origins of Views. `keeps_closed`: a closed View can be reopened on
    the page.
    """

    def __init__(
        self,
        stage_of: Callable[[str], Stage | None],
        show_page: Callable[[str], Awaitable[Stage]],
        url: Callable[[], str],
        *,
        confirm: bool,
        storage: ViewStorage | None = None,
        keeps_closed: bool = False,
    ) -> None:
        self.stages: list[Stage] = []
        self.stage_of = stage_of
        self.show_page = show_page
        self.url = url
        self.confirm = confirm
        self.storage = storage
        self.keeps_closed = keeps_closed
        # The Host reports what fails in opening and closing Views.
        self.background = Background(ignore)
        self.save: SaveFile | None = None
        self.label_of: Callable[[Page, Stage], Awaitable[str | None]] | None = None
        """Makes labels of persistent origins from a secret, if they are not stored anywhere."""
        self._warned = False
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
        stage.on_dismissed = self._on_dismissed
        stage.on_withdraw = self._on_withdraw
        stage.on_cleared = self._on_cleared

    def new_mark(self) -> str:
        """The mark of the next seat."""
        self._made += 1
        return f"{_MARK}{self._made}"

    def take(self, seat: Seat) -> None:
        """Register a seat."""
        self._taken[seat.mark] = seat

    def leave(self, seat: Seat) -> None:
        """Remove a seat and its Views."""
        self._taken.pop(seat.mark, None)
        for stage in self.stages:
            for key in [key for key in stage.views if _mark_of(key) == seat.mark]:
                stage.remove(key, "its host was closed")
            for key in [key for key in stage.gone if _mark_of(key) == seat.mark]:
                stage.remove_gone(key)

    async def label(self, page: Page, stage: Stage) -> str | None:
        """The label of a View's persistent origin, if it has one."""
        if self.label_of is not None:
            return await self.label_of(page, stage)
        storage, port = self.storage, urlsplit(stage.sandbox).port
        if storage is None or port is None or not page.identity:
            return None
        label = await asyncio.to_thread(storage.origin, page, port)
        if label is not None:
            stage.clear_storage(await asyncio.to_thread(storage.cleared, port))
        elif not self._warned:
            self._warned = True
            text = f"What Views store does not last: {storage.problem}"
            _log.warning("%s", text)
            stage.set_notice(f"{text}.")
        return label

    async def close(self) -> None:
        """Remove every seat."""
        for seat in list(self._taken.values()):
            await seat.leave()
        await self.background.aclose(grace=_WRITTEN_WITHIN)
        self.background = Background(ignore)

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

    def _on_dismissed(self, key: str) -> None:
        if (seat := self._taken.get(_mark_of(key))) is not None:
            seat.forget_view(key)

    def _on_withdraw(self, key: str, tool: str, by: Literal["model", "view"]) -> None:
        if (seat := self._taken.get(_mark_of(key))) is not None:
            seat.withdraw(key, Grant(tool, by))

    def _on_cleared(self, origin: str) -> None:
        if self.storage is not None:
            self.background.start(asyncio.to_thread(self.storage.confirm_cleared, origin))

    def _on_close(self, key: str) -> None:
        seat = self._taken.get(_mark_of(key))
        if (seat is None or not seat.close_view(key)) and (stage := self.stage_of(key)) is not None:
            stage.remove(key, "the user closed it")


class Seat:
    """The renderer of one Host among others that use the same page.

    Get one with `renderer.seat()` and give it to a Host. The Host leaves it when it is closed; the
    page and the other Hosts' Views stay. Enter and leave the renderer yourself.
    """

    def __init__(self, seats: Seats, mark: str, label: str = "") -> None:
        self.mark = mark
        self.label = "".join(c if c.isprintable() else " " for c in label)[:_MAX_LABEL]
        self._seats = seats
        self._host: Host | None = None
        self._background = Background(ignore)
        self._reopening: Counter[str] = Counter()
        self._recent: dict[str, RecentView] = {}  # Views of earlier runs, which can be reopened
        self._recent_ids: dict[str, str] = {}  # ids under which Views of this run are stored
        self._offered: set[str] = set()  # servers whose Views of earlier runs were offered

    @property
    def url(self) -> str:
        """The address of the page. Keep it secret: anyone who has it can act as the user."""
        return self._seats.url()

    def key_of(self, view_id: str) -> str:
        """The Stage's key of a View of this Host."""
        return view_id + self.mark

    async def open(self, page: Page) -> Channel:
        """Show a View, on a page that is opened if there is none."""
        if _MARK in page.view_id:
            raise UsageError(f"{page.view_id} is not the id of a View: it has a {_MARK}")
        key = self.key_of(page.view_id)
        stage = await self._seats.show_page(key)
        label = await self._seats.label(page, stage)
        await stage.wait_for_room(key)
        channel = stage.mount(page, key=key, client=self.label, label=label)
        await self._offer_recent(page, stage)
        return channel

    # --- the Host ----------------------------------------------------------------------------

    def attach_host(self, host: Host) -> None:
        """Handle requests of the Host's Views that a page can fulfil, such as links and files."""
        if self._host is not None and self._host is not host:
            raise UsageError("Several Hosts on one page: give each a renderer.seat() of its own")
        self._host = host
        self._background = Background(ignore)
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
        host.on_view_changed(self._show_marks)
        host.on_view_closed(self._show_closed)
        host.on_view_failed(self._show_failure)
        host.on_view_unresponsive(self._show_trouble)
        host.on_view_responsive(self._show_trouble)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    async def leave(self) -> None:
        """Remove this Host's Views from the page, and detach the Host."""
        self._host = None
        self._background.cancel()
        await asyncio.sleep(0)  # the cancelled tasks end before their Views are removed
        self._seats.leave(self)

    def set_context(self, changes: dict[str, Any]) -> None:
        """Send all Views what the page knows about its user."""
        if self._host is not None:
            self._host.set_context(**changes)

    def set_view_context(self, key: str, changes: dict[str, Any]) -> None:
        """Send a View how it is shown now."""
        view = self._view(key)
        if view is not None and view.bridge is not None:
            self._background.start(view.bridge.set_context(**changes))

    def reopen_view(self, key: str) -> None:
        """Reopen a View that is gone, or whose page was reloaded."""
        stage = self._seats.stage_of(key)
        if self._reopening[key] > 1:
            return  # once more, after the one that is under way, is as good
        if self._host is not None and stage is not None and stage.has_page:
            self._reopening[key] += 1
            self._background.start(self._reopen(self._host, key))

    def withdraw(self, key: str, grant: Grant) -> None:
        """Ask again before a tool runs that the user had always allowed."""
        if (view := self._view(key)) is not None:
            view.withdraw(grant)

    def check_view(self, key: str, *, gone: bool) -> None:
        """A View's frame was loaded again: it reloaded itself, or it navigated away."""
        if (view := self._view(key)) is not None:
            view.check("its page shows something else now" if gone else "")

    def close_view(self, key: str) -> bool:
        """Close a View for the user; False if this Host has none of that id."""
        view = self._view(key)
        if view is not None:
            self._background.start(view.close("the user closed it"))
        return view is not None

    def _view(self, key: str) -> View | None:
        return None if self._host is None else self._host.views.get(key.removesuffix(self.mark))

    async def _reopen(self, host: Host, key: str) -> None:
        stage, recent = self._seats.stage_of(key), self._recent.get(key)
        gone = None if stage is None else stage.gone.get(key)
        try:
            if recent is None:
                await self._reopen_own(host, key)
            else:
                view = await host.open_view(recent.server, recent.tool, recent.arguments)
                self._recent_ids[view.id] = recent.id
                del self._recent[key]
                if stage is not None:
                    stage.remove_gone(key)
                await view.deliver(ToolResult.from_wire(recent.result))
        except TransomError as error:
            if stage is not None and gone is not None and stage.gone.get(key) is gone:
                # It failed before it was opened: the page still shows the card from before.
                again = msgspec.structs.replace(gone, reason=str(error), failed=True)
                stage.show_gone(again)
        finally:
            self._reopening -= Counter([key])

    async def _reopen_own(self, host: Host, key: str) -> None:
        view = self._view(key)
        if view is not None and view.opening is not None:
            await asyncio.wait([view.opening])  # it is about to fail, and can be reopened then
        elif view is not None and view.state == "unresponsive":
            await view.close("the user reloaded it")
        await host.reopen(key.removesuffix(self.mark))

    # --- Views of earlier runs ---------------------------------------------------------------

    @property
    def _keeps_recent(self) -> bool:
        """Whether Views are stored for the next run: there is one user, who may come back."""
        return self._seats.keeps_closed and self._seats.confirm and not self.label

    def _remember(self, view: View) -> None:
        """Store what is needed to reopen a View in the next run, once it has a result."""
        stage, key = self._stage_of(view)
        mounted = None if stage is None else stage.mounted(key)
        storage, result = self._seats.storage, view.origin.result
        if storage is None or not self._keeps_recent or mounted is None or result is None:
            return
        ids = self._recent_ids
        ids[view.id] = recent_id = ids.pop(view.id, None) or secrets.token_hex(8)
        while len(ids) > MAX_RECENT:  # the next run would not offer more
            self._forget_recent(ids.pop(next(iter(ids))))
        tool, arguments = view.origin.tool.name, view.origin.arguments
        self._seats.background.start(
            asyncio.to_thread(storage.remember, recent_id, mounted.page, tool, arguments, result)
        )

    async def _offer_recent(self, page: Page, stage: Stage) -> None:
        """Offer the Views of a server from earlier runs, when it shows its first View."""
        storage = self._seats.storage
        wanted = page.identity and page.server not in self._offered
        if storage is None or not self._keeps_recent or not wanted:
            return
        self._offered.add(page.server)
        for view in reversed(await asyncio.to_thread(storage.recent, page)):
            if view.id in self._recent_ids.values():
                continue
            key = self.key_of(f"earlier-{view.id}")
            self._recent[key] = view
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(view.when))
            about = _about(view.tool, view.arguments)
            reason = f"Opened {when}, in an earlier run"
            shown = GoneView(key, "A View", view.server, "", reason, failed=False, about=about)
            stage.show_gone(shown)

    def forget_view(self, key: str) -> None:
        """The user dismissed the card of a closed View."""
        recent = self._recent.pop(key, None)
        view_id = key.removesuffix(self.mark)
        recent_id = self._recent_ids.pop(view_id, None) if recent is None else recent.id
        if recent_id is not None:
            self._forget_recent(recent_id)

    def _forget_recent(self, recent_id: str) -> None:
        if self._seats.storage is not None:
            forget = self._seats.storage.forget
            self._seats.background.start(asyncio.to_thread(forget, recent_id))

    # --- what Views ask for ------------------------------------------------------------------

    def _stage_of(self, view: View) -> tuple[Stage | None, str]:
        key = self.key_of(view.id)
        return self._seats.stage_of(key), key

    def _show_name(self, view: View) -> None:
        stage, key = self._stage_of(view)
        if stage is not None and view.app is not None:
            stage.set_name(key, view.app.name, view.app.version)
        if view.pinned or view.grants:  # it was reopened, in this host or in another one
            self._show_marks(view)
        else:
            self._remember(view)

    def _show_marks(self, view: View) -> None:
        stage, key = self._stage_of(view)
        if stage is not None:
            stage.set_marks(key, pinned=view.pinned, grants=view.grants)
        self._remember(view)

    def _show_closed(self, view: View) -> None:
        stage, key = self._stage_of(view)
        again = key in self._reopening or self._host is None or not self._seats.keeps_closed
        if stage is None or again or key in stage.gone:
            return
        about = _about(view.origin.tool.name, view.origin.arguments)
        reason = f"Closed: {view.reason}"
        stage.show_gone(
            GoneView(key, view.id, view.server, self.label, reason, failed=False, about=about)
        )

    def _show_failure(self, view: View, error: BaseException) -> None:
        stage, key = self._stage_of(view)
        cancelled = isinstance(error.__cause__, asyncio.CancelledError)  # it was closed meanwhile
        if stage is not None and not cancelled:
            stage.show_gone(GoneView(key, view.id, view.server, self.label, view.reason))

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
                # All Views share the link to the page: one View must not fill it.
                await stage.wait_for_room(key)
                stage.save_file(name, mime, data)

    async def approve(self, request: ApprovalRequest) -> Decision:
        """Ask the user on the page; give it to `Policy(approve=...)`."""
        if not self._seats.confirm:
            return Deny("There is no user to ask")
        try:
            view_id, server = request.view_id, request.server
            answer = await self._ask("approve", view_id, server, **request.shown())
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


def _about(tool: str, arguments: dict[str, Any]) -> str:
    """The call that a View was opened for."""
    return f"{tool} {msgspec.json.encode(arguments).decode()}" if arguments else tool


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
