"""Seats: the renderer of one Host among others that may show Views on the same page.

1. The Stage's key of a View is the Host's id with the mark of the Host's seat. Marks are never
   reused, so no View of one Host is ever taken for another's.
2. The user sees the Host's own id of the View, and the client of the seat.
3. When a Host leaves its seat, its Views are removed from the Stage.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from typing import Any, Protocol, Self

import msgspec

from transom.background import Background, ignore
from transom.channel import Channel
from transom.errors import Refused, RequestTimeout, TransomError, UsageError, ViewClosed
from transom.host.asking.elicit_form import form_answer
from transom.host.asking.elicitation import ElicitRequest
from transom.host.asking.grants import Grant
from transom.host.asking.policy import Allow, AllowAlways, ApprovalRequest, Decision, Deny
from transom.host.host import Host
from transom.host.tools.tool_visibility import model_may_call
from transom.host.views.bridge import set_context_while_open
from transom.host.views.downloads import Download
from transom.host.views.liveness import BUSY, GONE, ViewState
from transom.host.views.opening_failures import for_author
from transom.host.views.renderers import Turn
from transom.host.views.ui_resource import UIResource
from transom.host.views.view import View
from transom.json_values import clean
from transom.types import DisplayMode, EmbeddedResource, ResourceContents, ToolResult
from transom.web.cards import BY_USER, MAX_TITLE, GoneView
from transom.web.earlier_views import EarlierViews, describe_call
from transom.web.stage import Stage
from transom.web.view_storage import ViewStorage

MARK = "~"
"""What the mark of a seat begins with: never part of a Host's own id of a View."""
SaveFile = Callable[[str, bytes], Awaitable[None]]
"""Saves a file of a View, given its name and content; Refused says why it cannot be saved."""

_ANSWERS_WITHIN = 1.0  # seconds that the page of a View has which is in no endless loop
_MAX_ARGUMENTS = 20_000  # characters that a card shows; its user has to scroll to their end


class SeatOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the user of a page can do."""

    confirm: bool
    """There is a user who can be asked; otherwise what needs one is refused."""
    keeps_closed: bool = False
    """A closed View can be reopened on the page."""
    earlier: ViewStorage | None = None
    """Has the Views of earlier runs, which the user can reopen."""
    save: SaveFile | None = None
    """Saves the files of Views, without asking a user."""


class SeatPages(Protocol):
    """Where a seat shows the Views of its Host: one page, or those of one user."""

    @property
    def options(self) -> SeatOptions:
        """What their user can do."""
        ...

    @property
    def url(self) -> str:
        """The address of the page, if there is only one."""
        ...

    @property
    def stages(self) -> Sequence[Stage]:
        """The Stage of each page."""
        ...

    def stage_of(self, key: str) -> Stage | None:
        """The Stage that a View is on, or was."""
        ...

    async def show_page(self, key: str) -> Stage:
        """The Stage to show a View on, once it has a page; a TransomError says why it has none.

        If the key is only the seat's mark: to ask something that is about no View.
        """
        ...

    async def label(self, resource: UIResource, stage: Stage) -> str | None:
        """The label of a View's persistent origin, if it has one."""
        ...

    def take(self, seat: Seat) -> None:
        """A Host has taken a seat: tell it about the pages."""
        ...

    def leave(self, seat: Seat) -> None:
        """It has left it."""
        ...


class Seat:
    """The renderer of one Host among others that use the same page.

    Get one with `renderer.seat()` and give it to a Host. The Host leaves it when it is closed; the
    page and the other Hosts' Views stay. Enter and leave the renderer yourself.
    """

    def __init__(
        self, pages: SeatPages, mark: str = "", client: str = "", turn: Turn = nullcontext
    ) -> None:
        self.mark = mark
        self.client = clean(client, MAX_TITLE)
        self._turn = turn
        self._pages = pages
        self._host: Host | None = None
        # The Host reports what fails in opening and closing Views.
        self._background = Background(ignore)
        self._reopening: Counter[str] = Counter()
        self._earlier: EarlierViews | None = None

    @property
    def url(self) -> str:
        """The address of the page. Keep it secret: anyone who has it can act as the user."""
        return self._pages.url

    def key_of(self, view_id: str) -> str:
        """The Stage's key of a View of this Host."""
        return view_id + self.mark

    async def open(self, resource: UIResource) -> Channel:
        """Show a View, on a page that is opened if there is none.

        Raises:
            TransomError: no page could be opened.
        """
        if MARK in resource.view_id:
            raise UsageError(f"{resource.view_id} is not the id of a View: it has a {MARK}")
        key = self.key_of(resource.view_id)
        stage = await self._pages.show_page(key)
        label = await self._pages.label(resource, stage)
        await stage.wait_for_room(key)
        view = self._view(key)
        title = "" if view is None else _title(view)
        channel = stage.mount(
            resource, owner=self, key=key, client=self.client, label=label, title=title
        )
        if self._earlier is not None:
            for card in await self._earlier.offer(resource, self.mark):
                stage.gone.show(card, self)
        return channel

    async def prepare_next(self, view_id: str) -> None:
        """Have the page load the sandbox of the next View, which may be like this one."""
        key = self.key_of(view_id)
        stage = self._pages.stage_of(key)
        if stage is not None and (mounted := stage.mounted(key)) is not None:
            stage.prepare(key, await self._pages.label(mounted.resource, stage))

    async def avoid_stuck(self) -> None:
        """Have the next Views avoid the origins of those whose pages are in an endless loop."""
        views = () if self._host is None else self._host.views
        await asyncio.gather(*(self._avoid_if_stuck(view_id) for view_id in views))

    async def _avoid_if_stuck(self, view_id: str) -> None:
        key = self.key_of(view_id)
        stage = self._pages.stage_of(key)
        if stage is not None:
            try:
                async with asyncio.timeout(_ANSWERS_WITHIN):
                    await stage.drive(key, {"op": "alive"})
            except TimeoutError:
                stage.avoid_origin(key)
            except TransomError:
                pass  # it is on no page

    async def drive(self, view_id: str, request: dict[str, Any]) -> dict[str, Any]:
        """Read or use a View of this Host in its page: see `DrivesViews`.

        Raises:
            Refused: the user has taken control of the View.
            ViewClosed: it is not on a page, or was closed before there was an answer.
            TransomError: its page did not answer in time, or with nothing that can be read.
        """
        key = self.key_of(view_id)
        stage = self._pages.stage_of(key)
        if stage is None:
            raise ViewClosed(view_id, f"View {view_id} is not on a page")
        return await stage.drive(key, request)

    # --- the Host ----------------------------------------------------------------------------

    def attach_host(self, host: Host) -> None:
        """Handle requests of the Host's Views that a page can fulfil: links, files, display modes.

        And of its servers: forms, and pages that they want opened.

        Raises:
            UsageError: another Host is attached; `renderer.seat()` is for several.
        """
        if self._host is not None and self._host is not host:
            raise UsageError("Several Hosts on one page: give each a renderer.seat() of its own")
        self._host = host
        self._background = Background(ignore)
        storage = self._pages.options.earlier
        if storage is not None and not self.client:  # there is one user, who may come back
            self._earlier = EarlierViews(storage)
        self._pages.take(self)
        modes = ["inline", "fullscreen", "pip"]
        host.set_surroundings(displayMode="inline", availableDisplayModes=modes)
        for stage in self._pages.stages:
            host.set_surroundings(**stage.surroundings)
        if not host.on_open_link:
            host.on_open_link = self._open_link
        if not host.on_download_file:
            host.on_download_file = self._download
        if not host.on_request_pin and self._pages.options.confirm:
            host.on_request_pin = self._pin  # without a user, the host's policy decides
        if self._pages.options.confirm:
            host.on_elicit(self._elicit)  # a handler that is set later goes before it
        if not host.on_request_display_mode:
            host.on_request_display_mode = self._set_mode
        host.on_view_opened(self._show_name)
        host.on_view_changed(self._show_marks)
        host.on_tools_changed(self._show_all_tools)
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
        self._pages.leave(self)
        for stage in self._pages.stages:
            stage.remove_all_of(self, "its host was closed")
        earlier, self._earlier = self._earlier, None
        if earlier is not None:
            await earlier.aclose()

    def set_surroundings(self, changes: dict[str, Any]) -> None:
        """Send all Views what the page knows about its user."""
        if self._host is not None:
            self._host.set_surroundings(**changes)

    def set_view_context(self, key: str, changes: dict[str, Any]) -> None:
        """Send a View how it is shown now."""
        view = self._view(key)
        if view is not None and view.bridge is not None:
            self._background.start(set_context_while_open(view.bridge, changes))

    def reopen_view(self, key: str) -> None:
        """Reopen a View that is gone, or whose page was reloaded."""
        stage = self._pages.stage_of(key)
        if self._reopening[key] > 1:
            return  # once more, after the one that is under way, is as good
        if self._host is not None and stage is not None and stage.has_page:
            self._reopening[key] += 1
            self._background.start(self._reopen(self._host, key))

    def withdraw(self, key: str, grant: Grant) -> None:
        """Ask again before a tool runs that the user had always allowed."""
        if (view := self._view(key)) is not None:
            view.withdraw(grant)

    def lose_view(self, key: str, reason: str) -> None:
        """A View's page is gone, but not its place: it navigated away, or it crashed."""
        if (view := self._view(key)) is not None:
            view.lose(reason)

    def close_view(self, key: str) -> bool:
        """Close a View for the user; False if this Host has none of that id."""
        view = self._view(key)
        if view is not None:
            self._background.start(view.close(BY_USER))
        return view is not None

    def _view(self, key: str) -> View | None:
        return None if self._host is None else self._host.views.get(key.removesuffix(self.mark))

    async def _reopen(self, host: Host, key: str) -> None:
        stage, earlier = self._pages.stage_of(key), self._earlier
        recent = None if earlier is None else earlier.offered.get(key)
        gone = None if stage is None else stage.gone.get(key)
        try:
            if earlier is None or recent is None:
                await self._reopen_own(host, key)
            else:
                view = await host.open_view(recent.server, recent.tool, recent.arguments)
                earlier.reopened(key, recent, view.id)
                if stage is not None:
                    stage.gone.remove(key)
                await view.deliver(ToolResult.from_wire(recent.result))
        except TransomError as error:
            if stage is not None and gone is not None and stage.gone.get(key) is gone:
                # It failed before it was opened: the page still shows the card from before.
                again = msgspec.structs.replace(gone, reason=str(error), failed=True)
                stage.gone.show(again, self)
        finally:
            self._reopening -= Counter([key])

    async def _reopen_own(self, host: Host, key: str) -> None:
        view = self._view(key)
        if view is not None and view.state in (BUSY, GONE, ViewState.WAITING):
            await self._avoid_if_stuck(view.id)
            await view.close("the user reloaded it")
        elif view is not None and view.opening is not None:
            await asyncio.wait([view.opening])  # it is about to fail, and can be reopened then
        await host.reopen(key.removesuffix(self.mark))

    def _remember(self, view: View) -> None:
        """Store what is needed to reopen a View in the next run."""
        stage, key = self._stage_of(view)
        mounted = None if stage is None else stage.mounted(key)
        if self._earlier is not None and mounted is not None:
            self._earlier.remember(view, mounted.resource)

    def forget_view(self, key: str) -> None:
        """The user dismissed the card of a closed View."""
        if self._earlier is not None:
            self._earlier.forget(key, key.removesuffix(self.mark))

    # --- what Views ask for ------------------------------------------------------------------

    def _stage_of(self, view: View) -> tuple[Stage | None, str]:
        key = self.key_of(view.id)
        return self._pages.stage_of(key), key

    def _show_name(self, view: View) -> None:
        stage, key = self._stage_of(view)
        if stage is not None and view.app is not None:
            stage.set_name(key, view.app.name, view.app.version, _title(view))
            self._show_tools(view)
        if view.pinned or view.grants:  # it was reopened, in this host or in another one
            self._show_marks(view)
        else:
            self._remember(view)

    def _show_marks(self, view: View) -> None:
        stage, key = self._stage_of(view)
        if stage is not None:
            stage.set_marks(key, view.grants, pinned=view.pinned, left_out=view.left_out)
        self._remember(view)

    def _show_tools(self, view: View) -> None:
        stage, key = self._stage_of(view)
        if stage is not None:
            tools = [tool for tool in view.tools if model_may_call(tool)]
            stage.set_tools(key, tools, view.disabled_tools)

    def _show_all_tools(self) -> None:
        for view in () if self._host is None else self._host.views.values():
            self._show_tools(view)

    def _show_closed(self, view: View) -> None:
        stage, key = self._stage_of(view)
        keeps = self._pages.options.keeps_closed and self._host is not None
        if stage is None or not keeps or key in self._reopening or key in stage.gone:
            return
        about = describe_call(view.origin.tool.name, view.origin.arguments)
        by_user = view.reason == BY_USER
        reason = "You closed it" if by_user else f"Closed: {view.reason}"
        given = key, view.id, view.server, self.client, reason
        card = GoneView(*given, failed=False, about=about, title=_title(view))
        stage.gone.show(card, self)

    def _show_failure(self, view: View, error: BaseException) -> None:
        stage, key = self._stage_of(view)
        cancelled = isinstance(error.__cause__, asyncio.CancelledError)  # it was closed meanwhile
        if stage is not None and not cancelled:
            why = for_author(view.reason, view.failure)
            given = key, view.id, view.server, self.client, why
            stage.gone.show(GoneView(*given, title=_title(view)), self)
            late = isinstance(error.__cause__ or error, TimeoutError | RequestTimeout)
            if late and view.app is None:  # a browser that hangs does not tell its page
                stage.report_unloaded()

    def _show_trouble(self, view: View) -> None:
        stage, key = self._stage_of(view)
        if stage is not None:
            busy, failed = view.state is BUSY, view.state is ViewState.WAITING
            why = for_author(view.reason, view.failure if failed else None)
            since = view.silent_for if busy else None
            stage.set_trouble(key, "" if busy else why, since, failed=failed)

    async def _set_mode(self, view: View, mode: DisplayMode) -> str:
        stage, key = self._stage_of(view)
        asks = mode != "inline" and self._pages.options.confirm
        # The page itself answers if the user has just pressed something in the View.
        if asks and await self._ask("mode", view.id, view.server, mode=mode) is not True:
            raise Refused("The user did not want it shown like that")
        if stage is not None:
            await stage.wait_for_room(key)
            stage.set_mode(key, mode)
        return mode

    async def _open_link(self, view: View, url: str) -> None:
        if not self._pages.options.confirm:
            raise Refused("There is no user to open links for")
        if await self._ask("link", view.id, view.server, url=url) is not True:
            raise Refused("The user did not open the link")

    async def _pin(self, view: View, reason: str) -> bool:
        return await self._ask("pin", view.id, view.server, reason=reason) is True

    async def _download(self, view: View, files: Sequence[Download]) -> None:
        ready: list[tuple[str, str, bytes]] = []
        for file in files:
            if not isinstance(file.content, EmbeddedResource):
                raise Refused("Only files that are in the message can be saved")
            ready.append((file.name, *file_of(file.content.resource)))
        save = self._pages.options.save
        if save is not None:
            for name, _, content in ready:
                await save(name, content)
            return
        if not self._pages.options.confirm:
            raise Refused("There is no user to save files for")
        listed = [{"name": name, "bytes": len(content)} for name, _, content in ready]
        if ready and await self._ask("download", view.id, view.server, files=listed) is not True:
            raise Refused("The user did not save the file")
        stage, key = self._stage_of(view)
        for name, mime, content in ready:
            if stage is not None:
                # All Views share the link to the page: one View must not fill it.
                await stage.wait_for_room(key)
                stage.save_file(name, mime, content)

    async def approve(self, request: ApprovalRequest) -> Decision:
        """Ask the user on the page; give it to `Policy(approve=...)`."""
        if not self._pages.options.confirm:
            return Deny("There is no user to ask")
        if (refusal := request.unshowable(_MAX_ARGUMENTS)) is not None:
            return refusal
        try:
            view_id, server = request.view_id, request.server
            answer = await self._ask("approve", view_id, server, **request.shown())
        except Refused as error:
            return Deny(str(error))
        if answer == "always":
            return AllowAlways()
        return Allow() if answer == "allow" else Deny("The user refused on the Stage")

    async def _elicit(self, server: str, request: ElicitRequest) -> dict[str, Any] | bool | None:
        """Ask the user what a server wants to know; give it to `host.on_elicit`."""
        url, fields = request.url if request.mode == "url" else None, request.fields
        about = {"message": request.message, "url": url, "fields": fields, "shown": ""}
        try:
            answer = await self._ask("elicit", "", server, **about)
        except Refused:
            return None  # nobody answered
        if isinstance(answer, dict):
            return form_answer(fields, answer)
        return answer if isinstance(answer, bool) and (url or not answer) else None

    async def _ask(
        self, kind: str, view_id: str, server: str, **details: Any
    ) -> bool | str | dict[str, Any]:
        key = self.key_of(view_id)
        view = self._view(key)
        title = "" if view is None else clean(_title(view), MAX_TITLE)
        shown = {"shown": view_id or "A new View", "title": title, "client": self.client}
        details = {**shown, "server": server, **details}
        try:
            stage = self._pages.stage_of(key) if view_id else await self._pages.show_page(key)
            if stage is None:
                raise Refused("There is no page to ask on")
            return await stage.ask(kind, key, **details)
        except Refused:
            raise
        except TransomError as error:
            raise Refused(str(error)) from None


def _title(view: View) -> str:
    """What a View calls itself for its user, or else what its server calls the tool."""
    app, tool = view.app, view.origin.tool
    annotated = None if tool.annotations is None else tool.annotations.title
    title = (app and app.title) or tool.title or annotated or (app and app.name)
    return title or tool.name


# --- files that Views give to the user -------------------------------------------------------


def file_of(resource: ResourceContents) -> tuple[str, bytes]:
    """The type of a file, and its bytes."""
    if resource.blob is not None:
        try:
            content = base64.b64decode(resource.blob, validate=True)
        except (binascii.Error, ValueError):
            raise Refused("The file is not base64") from None
        return resource.mime_type or "application/octet-stream", content
    if resource.text is not None:
        return resource.mime_type or "text/plain", resource.text.encode("utf-8", "replace")
    raise Refused("The file has no content")
