"""The Stage: which Views are shown on a page, and the messages between page and host.

1. One page shows the Views. A page that reconnects after its socket dropped continues where it was.
   A new page, reloaded or opened beside the first, takes over: the Views of the old one are lost,
   and their owners reopen them. The old page does not take over in turn.
2. A View has the origin that it is given, which Views of the same server and resource share, or
   else a new one that is never used again.
3. Anyone with the token is the page. A message about a View affects that View only. The page of
   another Stage may show the Views as well once it was invited, with a token of its own, from its
   own origin.
4. Every question to the user ends: with an answer, or because the page, the View or the caller is
   gone.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from transom.background import ignore
from transom.errors import PeerError, Refused, TransomError, UsageError, ViewClosed
from transom.host.asking.grants import Grant
from transom.host.views.ui_resource import UIResource
from transom.json_values import clean, spelled_name
from transom.types import (
    ContainerDimensions,
    DeviceCapabilities,
    DisabledTool,
    DisplayMode,
    SafeAreaInsets,
    Tool,
)
from transom.web.cards import BY_USER, MAX_REASON, MAX_TITLE, Answer, GoneView, GoneViews, Questions
from transom.web.csp import CspMode, allow_attribute, build_csp, dropped_entries
from transom.web.driving import Driving
from transom.web.mounted_views import GUARD, MountedView, Sandboxes, ViewOwner, Violation
from transom.web.page_link import CONTROL, Backlog, Link, LinkLimits, ViewChannel
from transom.web.view_storage import readable_label

_MAX_VERSION = 20
_MAX_TOOL_NAME = 128
_MAX_LEFT_OUT = 2000
_MAX_ABOUT = 120  # characters about a tool that are shown
_MAX_KEY = 100
_MAX_SURROUNDINGS = 1000  # characters of each

_ACTS = ("target", "act")
_TAKEN = "The user has taken control of View {}: they have to give it back on the page first"
TAKEN_OVER = "another page took over"
ENDED = "the program has ended"
"""Why a link to a page ended, as `stage.ts` knows it."""


class Wish(StrEnum):
    """What a page of a web application wants with a View."""

    FREE = "free"
    """It has a place for it, if no other page shows it."""
    TAKE = "take"
    """It has a place for it, even if another page shows it."""
    AGAIN = "again"
    """It has a place for it, even if it was closed."""
    GONE = "gone"
    """It has no place for it any more."""


class _Surroundings(msgspec.Struct, rename="camel", omit_defaults=True):
    theme: Literal["light", "dark"] | None = None
    locale: str | None = None
    time_zone: str | None = None
    user_agent: str | None = None
    platform: Literal["web", "desktop", "mobile"] | None = None
    device_capabilities: DeviceCapabilities | None = None
    container_dimensions: ContainerDimensions | None = None
    safe_area_insets: SafeAreaInsets | None = None


class _PageMessage(msgspec.Struct):
    """A message of the page itself, as opposed to one of a View.

    The user closes a View, reopens one that is gone or does not respond (`closed`, `retry`,
    `reload`), answers a question (`answer`; a form has `fields`), or withdraws a grant
    (`withdraw`). A View is shown in another `mode`, has failed (`broken`; if the `value` is true,
    the browser did not load it), or a message of it was not forwarded (`refused`). Its page has
    `vanished` from its frame: it navigated away, or crashed. What was asked of its page is
    answered (`driven`), or the user takes control of it (`control`). The `surroundings` of the user
    changed, or the `place` of a View. A page with more than Views sends a `request` of its own.
    """

    do: str
    view: str = ""
    reason: str = ""
    mode: DisplayMode = "inline"
    size: ContainerDimensions | None = None
    id: int = 0
    tool: str = ""
    by: Literal["model", "view", "drive"] = "model"
    value: bool | str | _Surroundings = False
    fields: dict[str, Any] | None = None
    answer: str = ""
    request: dict[str, Any] | None = None


_decode_page_message = msgspec.json.Decoder(_PageMessage).decode
_WISHES = {each.value: each for each in Wish}


class Hello(msgspec.Struct):
    """The first message of a page on a socket."""

    token: str = ""
    page: str | None = None
    received: int = 0


class StageListener:
    """What a Stage reports about its page: see `Stage(listener=...)`.

    A class that inherits from this has the methods that it needs; the others do nothing.
    """

    def page_connected(self, stage: Stage) -> None:
        """A new page shows the Views from now on."""

    def surroundings_changed(self, stage: Stage) -> None:
        """The page has sent new `stage.surroundings`."""

    def place_changed(self, stage: Stage, key: str, wish: Wish) -> None:
        """The page has a place for a View, or has none any more."""

    def request_received(self, stage: Stage, request: dict[str, Any]) -> None:
        """The page has sent a request that is about neither a View nor a question."""

    def view_unloaded(self, stage: Stage) -> None:
        """The browser did not load the frame of a View."""

    def page_away(self, stage: Stage) -> None:
        """The page's socket is gone; it may reconnect."""

    def page_over(self, stage: Stage) -> None:
        """The page has closed."""


class PageAccess:
    """Who may connect as the page of a Stage: a page with its token, and one that was invited."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)
        """The token of the Stage's own page."""
        self.guest = ""
        """The origin of the invited page, if there is one."""
        self._guest_token = ""

    def invite(self, origin: str) -> str:
        """Let the page of another Stage show the Views; returns the token that it needs.

        The invitation ends when another page is invited, or the Stage's own page connects.
        """
        self.guest, self._guest_token = origin, secrets.token_urlsafe(24)
        return self._guest_token

    def end_invitation(self) -> None:
        """Let nobody but the Stage's own page connect."""
        self.guest = self._guest_token = ""

    def is_own(self, token: str) -> bool:
        """Whether that is the Stage's own token."""
        return _same(token, self.token)

    def is_guest(self, origin: str, token: str) -> bool:
        """Whether that is the invited page."""
        return bool(self.guest) and origin == self.guest and _same(token, self._guest_token)


class Stage:
    """Shows Views on a page in a browser.

    Args:
        listener: gets what the page reports, other than about a View, which its owner gets.
        on_violation: called with everything that a View's policy blocked.
        csp: what a View's page may run; see `transom.web.csp`.
        grace: seconds a page may be disconnected.
        patience: seconds a page may read nothing of what is sent to it.
        origin: the origin of the Stage's page, such as `https://stage.example.com`. A
            `StageServer` sets it.
        sandbox: the origins of Views, with `*` where the name of each goes, such as
            `https://*.views.example.com`. It must not be the Stage's own. A `StageServer` sets it.
        sandboxes: the Views by their origin, for Stages that have them in common.
        origins: other origins that no View may reach, such as those of the application.
        backlog: what waits for its page is counted there, too, if the user has others.
    """

    def __init__(
        self,
        *,
        listener: StageListener | None = None,
        on_violation: Callable[[Violation], object] | None = None,
        csp: CspMode = "compat",
        grace: float = 30.0,
        patience: float = 30.0,
        origin: str = "",
        sandbox: str = "",
        sandboxes: Sandboxes | None = None,
        origins: Sequence[str] = (),
        backlog: Backlog | None = None,
    ) -> None:
        self.csp_mode: CspMode = csp
        self.grace = grace
        self.patience = patience
        self.origin = origin
        self.sandbox = sandbox
        self.sandboxes = Sandboxes() if sandboxes is None else sandboxes
        self.access = PageAccess()
        self.surroundings: dict[str, Any] = {}
        """What the page knows about its user: theme, locale, time zone, ..."""
        self.gone = GoneViews(self.send)
        self._origins = tuple(origins)
        self._backlog = backlog
        self._listener = StageListener() if listener is None else listener
        self._on_violation = on_violation or ignore
        self._views: dict[str, MountedView] = {}
        # The sandbox of the next View, and the label of its origin: see `prepare`.
        self._prepared: tuple[str | None, MountedView] | None = None
        self._questions = Questions(self.send)
        self._driving = Driving(self.send)
        self._link: Link | None = None
        self._page_origin: str | None = None
        self._page_ready = asyncio.Event()

    @property
    def token(self) -> str:
        """What the Stage's own page needs to connect: anyone who has it can act as the user."""
        return self.access.token

    # --- Views -------------------------------------------------------------------------------

    @property
    def views(self) -> list[str]:
        """The Views on the Stage."""
        return list(self._views)

    def mount(
        self,
        resource: UIResource,
        *,
        owner: ViewOwner | None = None,
        key: str | None = None,
        client: str = "",
        label: str | None = None,
        title: str = "",
    ) -> ViewChannel:
        """Put a View on the Stage and return the channel to it.

        `key` is the Stage's key of it, its id unless given; the user sees the id. `client` is the
        client of the View's Host. `label` is the first part of its origin's host name, as
        `free_label` returned it; `title` what it calls itself, which is untrusted. Without an
        `owner` the View is removed when the user closes it.
        """
        key = resource.view_id if key is None else key
        if key in self._views:
            raise UsageError(f"View {resource.view_id} is already on the Stage")
        host, number = self._take_prepared(resource, label) or self._new_sandbox(resource, label)
        mounted = MountedView(
            key=key,
            resource=resource,
            owner=owner,
            client=client,
            host=host,
            number=number,
            title=clean(title, MAX_TITLE),
            channel=ViewChannel(key, lambda: self._link, self._channel_closed),
            on_violation=self._on_violation,
        )
        self._views[key] = mounted
        self.sandboxes.add(mounted)
        self.gone.discard(key)
        for entry in dropped_entries(resource.csp, self._own_origins):
            mounted.report_violation("declared", entry)
        self._show(mounted)
        return mounted.channel

    def prepare(self, view_id: str, label: str | None) -> None:
        """Have the page load the sandbox of the next View, which may be like one that is there.

        `label` is as for `mount`. The next View gets that sandbox only if it has the same rights.
        """
        like = self._views.get(view_id)
        if like is None or (label and self.sandboxes.is_stuck(self.host_of(label))):
            return
        self._take_prepared(like.resource, label)
        host, number = self._new_sandbox(like.resource, label)
        sandbox = msgspec.structs.replace(like, key="", owner=None, host=host, number=number)
        self._prepared = label, sandbox
        self.sandboxes.add(sandbox)
        self.send({"do": "prepare", **self._set_policy(sandbox)})

    def avoid_origin(self, view_id: str) -> None:
        """Let no View have the origin of this one, until a while after it is gone.

        For one whose page is in an endless loop: a browser has one process for all pages of an
        origin, so that no other would ever load there.
        """
        mounted = self._views.get(view_id)
        if mounted is not None:
            mounted.is_stuck = True
            self._take_prepared(mounted.resource, None)

    def _take_prepared(self, resource: UIResource, label: str | None) -> tuple[str, int] | None:
        """The host and the number of the sandbox that is prepared, if it suits this View."""
        if self._prepared is None:
            return None
        (its_label, sandbox), self._prepared = self._prepared, None
        self.sandboxes.remove(sandbox)
        wanted = msgspec.structs.replace(sandbox, resource=resource)
        self._set_policy(wanted)
        is_suited = its_label == label and _rights(wanted) == _rights(sandbox)
        return (sandbox.host, sandbox.number) if is_suited else None

    def _new_sandbox(self, resource: UIResource, label: str | None) -> tuple[str, int]:
        return self.host_of(self.free_label(resource, label)), self.sandboxes.next_number()

    def host_of(self, label: str) -> str:
        """The `Host` of an origin with this label."""
        return urlsplit(self.sandbox).netloc.replace("*", label)

    def free_label(self, resource: UIResource, label: str | None) -> str:
        """The label of a View's origin: the given one, or a new one that is used once.

        A new one for None, and if a View with other rights has that origin now: Views that share an
        origin share their rights. And if it is to be avoided.
        """
        if label is not None and not self.sandboxes.is_stuck(self.host_of(label)):
            there = self.sandboxes.find(self.host_of(label))
            rights = resource.csp, resource.permissions
            if there is None or (there.resource.csp, there.resource.permissions) == rights:
                return label
        return f"{readable_label(resource.view_id)}-{secrets.token_hex(6)}"

    def _channel_closed(self, channel: ViewChannel) -> None:
        mounted = self._views.get(channel.view_id)
        if mounted is not None and mounted.channel is channel:  # no later View with that key
            self.remove(channel.view_id, "it was closed")

    def remove(self, view_id: str, reason: str) -> None:
        """Take a View off the Stage and close its channel with this reason."""
        mounted = self._drop(view_id, reason)
        if mounted is not None:
            if view_id not in self.gone:  # its card has taken its place
                self.send({"do": "unmount", "view": view_id})
            mounted.channel.end(f"The View is gone: {reason}")

    def remove_all_of(self, owner: ViewOwner, reason: str) -> None:
        """Remove the Views of an owner, and the cards of those that are gone."""
        for key in [key for key, each in self._views.items() if each.owner is owner]:
            self.remove(key, reason)
        for key in self.gone.owned_by(owner):
            self.gone.remove(key)

    def _drop(self, view_id: str, reason: str) -> MountedView | None:
        mounted = self._views.pop(view_id, None)
        if mounted is not None:
            self.sandboxes.remove(mounted)
            self._questions.give_up(f"The View is gone: {reason}", view_id)
            self._driving.give_up(f"The View is gone: {reason}", view_id)
        return mounted

    def mounted(self, view_id: str) -> MountedView | None:
        """A View on the Stage."""
        return self._views.get(view_id)

    def _show(self, mounted: MountedView) -> None:
        resource = mounted.resource
        self.send(
            {
                "do": "mount",
                "view": mounted.key,
                "shown": resource.view_id,
                "title": mounted.title,
                "client": mounted.client,
                **self._set_policy(mounted),
                "server": resource.server,
                "uri": resource.uri,
                "html": resource.html,
                "border": resource.prefers_border is not False,
            }
        )

    def _set_policy(self, mounted: MountedView) -> dict[str, Any]:
        """Give a sandbox its policy for the page there is now; returns how that page loads it."""
        resource = mounted.resource
        mounted.page_origin = self.page_origin
        scheme = urlsplit(self.sandbox).scheme
        guard = f"{scheme}://{self.host_of(GUARD)}"
        ancestors = f"{self.page_origin} {guard}" if self.page_origin else "'none'"
        csp = build_csp(resource.csp, self.csp_mode, ancestors=ancestors, ours=self._own_origins)
        mounted.csp = f"{csp}; report-uri /csp-report?{mounted.number}"
        return {
            "origin": f"{scheme}://{mounted.host}",
            "guard": guard,
            "number": mounted.number,
            "allow": allow_attribute(resource.permissions),
        }

    def set_name(self, view_id: str, name: str, version: str, title: str = "") -> None:
        """Show a View's own name, and what it calls itself. Both are untrusted."""
        shown = {"name": clean(name, MAX_TITLE), "version": clean(version, _MAX_VERSION)}
        shown["title"] = clean(title or name, MAX_TITLE)
        if (mounted := self._views.get(view_id)) is not None:
            mounted.title = shown["title"]
        self.send({"do": "named", "view": view_id, **shown})

    def set_tools(
        self, view_id: str, tools: Sequence[Tool], disabled: Sequence[DisabledTool]
    ) -> None:
        """Show which tools a View has, if they are others than before."""
        shown = [_shown_tool(tool.name, tool.title or tool.description) for tool in tools]
        shown += [{**_shown_tool(each.name, each.reason), "disabled": True} for each in disabled]
        mounted = self._views.get(view_id)
        if mounted is not None and mounted.tools != shown:
            mounted.tools = shown
            self.send({"do": "tools", "view": view_id, "tools": shown})

    def set_mode(self, view_id: str, mode: DisplayMode) -> None:
        """Show a View inline, over the whole page, or as a picture in the corner."""
        if view_id in self._views:
            self.send({"do": "mode", "view": view_id, "mode": mode})

    def set_trouble(
        self, view_id: str, reason: str, busy_for: float | None = None, *, failed: bool = False
    ) -> None:
        """Show that a View does not respond and why, or for how long it has been busy.

        "" and None remove that. `failed`: its page has, and may still connect.
        """
        shown = {"reason": clean(reason, MAX_REASON), "failed": failed, "busyFor": busy_for}
        self.send({"do": "trouble", "view": view_id, **shown})

    def set_marks(
        self, view_id: str, grants: Sequence[Grant], *, pinned: bool, left_out: str
    ) -> None:
        """Show whether a View is pinned, and which tools always run, or are left out and why."""
        shown = [
            {"tool": grant.tool, "by": grant.by, "shown": clean(grant.tool, _MAX_TOOL_NAME)}
            for grant in grants
        ]
        note = clean(left_out, _MAX_LEFT_OUT)
        marks = {"pinned": pinned, "grants": shown, "leftOut": note}
        self.send({"do": "marks", "view": view_id, **marks})

    def save_file(self, name: str, mime: str, content: bytes) -> None:
        """Have the page save a file, which it gets as base64."""
        self.send({"do": "download", "name": name, "mime": mime, "data": content})

    async def ask(self, kind: str, view_id: str, **details: Any) -> Answer:
        """Ask the user on the page (see `QuestionKinds` in messages.ts), and wait for the answer.

        Raises:
            Refused: the same question about that View is open already, or too many are.
            TransomError: the page or the View was closed before there was an answer.
        """
        if self._link is None:
            raise TransomError("There is no page to ask on")
        return await self._questions.ask(kind, view_id, **details)

    async def drive(self, key: str, request: dict[str, Any]) -> dict[str, Any]:
        """Read or use a View as its user would: see `transom.host.views.renderers.DrivesViews`.

        Raises:
            Refused: the user has taken control of the View.
            ViewClosed: it is not on a page, or was closed before there was an answer.
            TransomError: its page did not answer in time, or with nothing that can be read.
        """
        mounted = self._views.get(key)
        if mounted is None or self._link is None:
            raise ViewClosed(key, "The View is not on a page")
        view_id, acts = mounted.resource.view_id, request.get("op") in _ACTS
        if acts and mounted.taken:
            raise Refused(_TAKEN.format(view_id))
        answer = await self._driving.request(key, view_id, request)
        if acts and mounted.taken and "problem" in answer and not answer.get("begun"):
            # since the request was sent
            raise Refused(_TAKEN.format(view_id))
        return answer

    # --- the page ----------------------------------------------------------------------------

    @property
    def page_origin(self) -> str:
        """The origin of the page that shows the Views: this Stage's own, or that of a guest."""
        return self._page_origin or self.origin

    @property
    def _own_origins(self) -> tuple[str, ...]:
        return (self.page_origin, self.origin, self.sandbox, *self._origins)

    @property
    def has_page(self) -> bool:
        """Whether there is a page, or one that may still reconnect."""
        return self._link is not None and not self._link.over

    def has_link(self, link_id: str) -> bool:
        """Whether that is the link to the page."""
        return self._link is not None and not self._link.over and self._link.id == link_id

    async def wait_for_page(self) -> None:
        """Wait until a page shows the Stage and has sent its surroundings."""
        await self._page_ready.wait()

    async def wait_while_leaving(self) -> None:
        """Wait while a page is unloading: until it is reloaded, or known to be closed."""
        while self._link is not None and self._link.leaving:
            await self._link.decided()

    async def wait_for_room(self, view_id: str) -> None:
        """Wait while the page is slow."""
        if self._link is not None:
            await self._link.room(view_id)

    def join(self, origin: str, token: str) -> None:
        """Make this Stage's page also show the Views of another Stage that has invited it."""
        self.send({"do": "join", "origin": origin, "token": token})

    def allows_origin(self, origin: str) -> bool:
        """Whether a page of that origin may connect."""
        return bool(origin) and origin in (self.origin, self.access.guest)

    def connect_page(self, hello: Hello, origin: str) -> tuple[Link, bool]:
        """A page connects: returns its link, and whether it resumes an earlier one.

        Raises:
            PeerError: the token is wrong.
            Refused: another page shows the Views now.
        """
        own = origin == self.origin and self.access.is_own(hello.token)
        if not own and not self.access.is_guest(origin, hello.token):
            raise PeerError("The token is wrong")
        link, resumed = self.open_link(hello, origin)
        if own and not resumed:
            self.access.end_invitation()
        return link, resumed

    def open_link(self, hello: Hello, origin: str) -> tuple[Link, bool]:
        """As `connect_page`, for a page that is known to be the user's."""
        link = self._link
        if link is not None and not link.over and hello.page is not None:
            if hello.page == link.id:
                return link, True
            raise Refused("another page shows the Views now")
        self._link = fresh = Link(
            self._receive,
            self._link_over,
            limits=LinkLimits(grace=self.grace, patience=self.patience),
            backlog=self._backlog,
            on_away=lambda: self._listener.page_away(self),
        )
        self._page_origin = origin
        if link is not None:
            link.end(TAKEN_OVER)
        self._lose_views("the page was reloaded, or another one took over")
        for mounted in self._views.values():
            self._show(mounted)
        self.gone.show_again()
        self._page_ready.clear()
        self._listener.page_connected(self)
        return fresh, False

    def page_lost(self, reason: str) -> None:
        """The page has closed: do not wait for it to reconnect."""
        if self._link is not None:
            self._link.end(reason)

    def _link_over(self, reason: str) -> None:
        if self._link is not None and self._link.over:
            self._link = None
            self._page_ready.clear()
            self._lose_views(reason)
            self._listener.page_over(self)

    def _lose_views(self, reason: str) -> None:
        """Close the Views that ran on a lost page; those that were not shown yet stay."""
        self._questions.give_up("The page went away before there was an answer")
        self._driving.give_up("The page went away before there was an answer")
        lost = [mounted for mounted in self._views.values() if mounted.channel.spoken]
        for mounted in lost:
            self._drop(mounted.key, reason)
            mounted.channel.end(f"The View is gone: {reason}")
        for mounted in lost:
            if mounted.owner is not None:
                mounted.owner.reopen_view(mounted.key)

    # --- messages ----------------------------------------------------------------------------

    def send(self, message: dict[str, Any] | GoneView) -> None:
        """Send the page a message that is not for a View."""
        if self._link is not None:
            self._link.post(CONTROL, msgspec.json.encode(message))

    def _receive(self, view_id: str, data: bytes) -> None:
        if view_id != CONTROL:
            mounted = self._views.get(view_id)
            if mounted is not None:
                mounted.channel.feed(data)
            return
        try:
            message = _decode_page_message(data)
        except (msgspec.DecodeError, RecursionError):
            return  # a page of another version may send unknown messages
        match message:
            case _PageMessage(do="answer", value=bool() | str() as value):
                fields = message.fields
                self._questions.answer(message.id, value if fields is None else fields)
            case _PageMessage(do="surroundings", value=_Surroundings() as value):
                self._set_surroundings(value)
            case _PageMessage(do="place", view=view, value=str() as value) if value in _WISHES:
                self._listener.place_changed(self, view[:_MAX_KEY], _WISHES[value])
            case _PageMessage(do="request", request=dict() as request):
                self._listener.request_received(self, request)
            case _PageMessage(view=view) if view in self._views:
                self._handle_view_message(self._views[view], message)
            case _PageMessage(view=view) if view in self.gone:
                self._handle_card_message(view, message)
            case _:
                pass

    def _set_surroundings(self, known: _Surroundings) -> None:
        self.surroundings = {
            key: value[:_MAX_SURROUNDINGS] if isinstance(value, str) else value
            for key, value in msgspec.to_builtins(known).items()
        }
        self._page_ready.set()
        self._listener.surroundings_changed(self)

    def _handle_view_message(self, mounted: MountedView, message: _PageMessage) -> None:
        key, owner = mounted.key, mounted.owner
        match message.do:
            case "closed":
                if owner is None or not owner.close_view(key):
                    self.remove(key, BY_USER)
            case "broken":
                self._break(mounted, message.reason[:MAX_REASON])
                if message.value is True:
                    self.report_unloaded()
            case "refused":
                mounted.report_violation("message", message.reason)
            case "driven":
                self._driving.answer(key, message.id, message.answer)
            case "control":
                mounted.taken = message.value is True
            case "reload" if owner is not None:
                owner.reopen_view(key)
            case "withdraw" if owner is not None:
                owner.withdraw(key, Grant(message.tool, message.by))
            case "vanished" if owner is not None:
                self._driving.give_up("The View's page is gone", key)
                owner.lose_view(key, message.reason[:MAX_REASON])
            case "mode" if owner is not None:
                changes: dict[str, Any] = {"displayMode": message.mode}
                if message.size is not None:
                    changes["containerDimensions"] = msgspec.to_builtins(message.size)
                owner.set_view_context(key, changes)
            case _:
                pass

    def report_unloaded(self) -> None:
        """The browser did not load a View, as far as can be seen."""
        self._listener.view_unloaded(self)

    def _break(self, mounted: MountedView, reason: str) -> None:
        """A View has failed in the page: show a card in its place."""
        key, resource = mounted.key, mounted.resource
        self._drop(key, reason)
        given = key, resource.view_id, resource.server, mounted.client, reason
        self.gone.show(GoneView(*given, title=mounted.title), mounted.owner)
        mounted.channel.end(f"The View is gone: {reason}")

    def _handle_card_message(self, key: str, message: _PageMessage) -> None:
        owner = self.gone.owner(key)
        if message.do == "closed":
            self.gone.remove(key)
            if owner is not None:
                owner.forget_view(key)
        elif message.do == "retry" and owner is not None:
            owner.reopen_view(key)

    def close(self) -> Awaitable[object] | None:
        """Remove every View, and end the page; what is returned ends when the page knows it."""
        for view_id, mounted in list(self._views.items()):
            mounted.channel.end("The Stage was closed")
            self.remove(view_id, "it was closed")
        return None if self._link is None else self._link.end(ENDED)


def _shown_tool(name: str, about: str | None) -> dict[str, Any]:
    return {"name": spelled_name(name[:_MAX_TOOL_NAME]), "about": clean(about or "", _MAX_ABOUT)}


def _rights(sandbox: MountedView) -> tuple[str, ...]:
    """What a browser is told of a sandbox when it loads it."""
    return sandbox.csp, sandbox.page_origin, allow_attribute(sandbox.resource.permissions)


def _same(given: str, known: str) -> bool:
    return secrets.compare_digest(given.encode(), known.encode())
