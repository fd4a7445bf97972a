"""The Stage: which Views are shown, on which page, and the messages between page and host.

1. One page shows the Views. A page that reconnects after its socket dropped continues where it was.
   A new page, reloaded or opened beside the first, takes over: the Views of the old one are lost,
   and `on_lost` is called, so that the host can reopen them. The old page does not take over in
   turn.
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
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from transom.background import ignore
from transom.errors import PeerError, Refused, TransomError, UsageError
from transom.host.grants import Grant
from transom.host.page import Page
from transom.json_values import clean
from transom.types import ContainerDimensions, DeviceCapabilities
from transom.web.csp import CspMode, allow_attribute, build_csp, dropped_entries
from transom.web.page_link import CONTROL, Link, ViewChannel
from transom.web.view_storage import readable_label

__all__ = ["DisplayMode", "Hello", "MountedView", "Questions", "Stage", "Violation"]


DisplayMode = Literal["inline", "fullscreen", "pip"]


class _Surroundings(msgspec.Struct, rename="camel", omit_defaults=True):
    theme: Literal["light", "dark"] | None = None
    locale: str | None = None
    time_zone: str | None = None
    user_agent: str | None = None
    platform: Literal["web", "desktop", "mobile"] | None = None
    device_capabilities: DeviceCapabilities | None = None
    container_dimensions: ContainerDimensions | None = None


class _PageMessage(msgspec.Struct):
    """A message of the page itself, as opposed to one of a View.

    The user closes a View, reopens one that is gone or does not respond (`closed`, `retry`,
    `reload`), answers a question (`answer`), or withdraws a grant (`withdraw`). A View is shown in
    another `mode`, has failed (`broken`; if the `value` is true, the browser did not load it), or a
    message of it was not forwarded (`refused`). Its frame has `loaded` again, and has navigated
    away if the `value` is true. The `surroundings` of the user changed, or the `place` of a View.
    """

    do: str
    view: str = ""
    reason: str = ""
    mode: DisplayMode = "inline"
    size: ContainerDimensions | None = None
    id: int = 0
    tool: str = ""
    by: Literal["model", "view"] = "model"
    value: bool | str | _Surroundings = False


class GoneView(msgspec.Struct, frozen=True, tag_field="do", tag="gone"):
    """A closed or failed View: its key, its id, its owner, and the reason."""

    view: str
    shown: str
    server: str
    client: str
    reason: str
    failed: bool = True
    """Whether it failed, rather than being closed."""
    about: str = ""
    """The call that it was opened for."""


_MAX_QUESTIONS = 20  # cards that a user can be expected to read


class _Question(msgspec.Struct, eq=False):
    view: str
    kind: str
    answer: asyncio.Future[bool | str]


class Questions:
    """The open questions. `send` sends a message to the page."""

    def __init__(self, send: Callable[[dict[str, Any]], object]) -> None:
        self._send = send
        self._open: dict[int, _Question] = {}
        self._next = 1

    async def ask(self, kind: str, view_id: str, **details: Any) -> bool | str:
        """Ask, and wait for the answer, as `Stage.ask` does."""
        repeated = any(q.view == view_id and q.kind == kind for q in self._open.values())
        if (repeated and kind != "approve") or len(self._open) >= _MAX_QUESTIONS:
            raise Refused("The user has not answered what was asked before")
        number = self._next
        self._next += 1
        answer = asyncio.get_running_loop().create_future()
        self._open[number] = _Question(view_id, kind, answer)
        self._send({"do": "ask", "id": number, "kind": kind, "view": view_id, **details})
        try:
            return await answer
        except (asyncio.CancelledError, TransomError):
            self._send({"do": "unask", "id": number})
            raise
        finally:
            del self._open[number]

    def answer(self, number: int, value: bool | str) -> None:
        """The user has answered; the first answer counts."""
        question = self._open.get(number)
        if question is not None and not question.answer.done():
            question.answer.set_result(value)

    def give_up(self, reason: str, view_id: str | None = None) -> None:
        """End the questions about one View, or all of them, without an answer."""
        for question in self._open.values():
            if view_id in (None, question.view) and not question.answer.done():
                question.answer.set_exception(TransomError(reason))


_MAX_VIOLATIONS = 100  # reports taken of one View
_MAX_GONE = 20
_MAX_CLOSED = 8  # shown at a time
_MAX_ABOUT = 120
_MAX_REASON = 200
_MAX_NAME = 60  # characters of a View's own name that are shown
_MAX_VERSION = 20
_MAX_TOOL_NAME = 128
_MAX_KEY = 100
_MAX_SURROUNDINGS = 1000  # characters of each


_decode_page_message = msgspec.json.Decoder(_PageMessage).decode


class Violation(msgspec.Struct, frozen=True):
    """Something that a View's policy blocked."""

    view: str
    directive: str
    blocked: str
    source: str = ""
    client: str = ""
    """The client of its Host, if known: the label of `renderer.seat(label)`."""


class Hello(msgspec.Struct):
    """The first message of a page on a socket."""

    token: str = ""
    page: str | None = None
    received: int = 0


class MountedView(msgspec.Struct, eq=False):
    """A View on the Stage."""

    stage: Stage
    key: str
    page: Page
    client: str
    host: str
    number: int
    channel: ViewChannel
    csp: str = ""
    violations: int = 0


class Stage:
    """Shows Views on a page in a browser.

    Args:
        csp: what a View's page may run; see `transom.web.csp`.
        grace: seconds a page may be disconnected.
        patience: seconds a page may read nothing of what is sent to it.
        origin: the origin of the Stage's page, such as `https://stage.example.com`. A
            `StageServer` sets it.
        sandbox: the origins of Views, with `*` where the name of each goes, such as
            `https://*.views.example.com`. It must not be the Stage's own. A `StageServer` sets it.
        shared: whether the page may show the Views of other Stages on this machine as well.
        hosts: the Views by the `Host` of their origin, for Stages that share their sandboxes.

    Callbacks: `on_lost(view_ids)`, `on_violation(violation)`,
    `on_surroundings(changes)`, `on_mode(view_id, changes)` with the changes to the View's host
    context, `on_away()` when the page's socket is gone, `on_over()` when the page has closed,
    `on_unloaded()` when the browser did not load the frame of a View,
    `on_retry(view_id)` when the user wants a View opened again that is gone or does not respond,
    `on_dismissed(view_id)` when it will not be, `on_withdraw(view_id, tool, by)` when the user
    takes back that a tool always runs, `on_cleared(origin)` when the browser was told to delete
    what is stored there, `on_loaded(view_id, gone)` when the frame of a View loaded again, and
    maybe shows something else, `on_place(view_id, wish)` when the page has a place for a View
    (`free`: unless another page has it, `take`: even then, `again`: even if it was closed) or has
    none any more (`gone`), and `on_close(view_id)` when the user wants a View closed; without one
    the View is removed at once.
    """

    def __init__(
        self,
        *,
        csp: CspMode = "compat",
        grace: float = 30.0,
        patience: float = 30.0,
        origin: str = "",
        sandbox: str = "",
        shared: bool = False,
        hosts: dict[str, MountedView] | None = None,
    ) -> None:
        self.token = secrets.token_urlsafe(24)
        self.csp_mode: CspMode = csp
        self.origin = origin
        self.sandbox = sandbox
        self.shared = shared
        self.surroundings: dict[str, Any] = {}
        """What the page knows about its user: theme, locale, time zone, ..."""
        self.on_lost: Callable[[list[str]], object] = ignore
        self.on_violation: Callable[[Violation], object] = ignore
        self.on_surroundings: Callable[[dict[str, Any]], object] = ignore
        self.on_mode: Callable[[str, dict[str, Any]], object] = ignore
        self.on_close: Callable[[str], object] | None = None
        self.on_retry: Callable[[str], object] = ignore
        self.on_dismissed: Callable[[str], object] = ignore
        self.on_withdraw: Callable[[str, str, Literal["model", "view"]], object] = ignore
        self.on_cleared: Callable[[str], object] = ignore
        self.on_loaded: Callable[[str, bool], object] = ignore
        self.on_unloaded: Callable[[], object] = ignore
        self.on_away: Callable[[], object] = ignore
        self.on_over: Callable[[], object] = ignore
        self.on_place: Callable[[str, str], object] = ignore
        self.grace = grace
        self.patience = patience
        self._views: dict[str, MountedView] = {}
        self._hosts: dict[str, MountedView] = {} if hosts is None else hosts
        self._clearing: set[str] = set()  # origins whose storage the browser should delete
        self._notice = ""
        self.gone: dict[str, GoneView] = {}
        """The cards of closed and failed Views, the oldest first."""
        self._link: Link | None = None
        self._page_origin: str | None = None
        self._invited: tuple[str, str] | None = None  # a page's origin, and its token
        self.mounts = 0
        """How many Views have been on the Stage so far."""
        self._page_ready = asyncio.Event()
        self._questions = Questions(self.send)

    # --- Views -------------------------------------------------------------------------------

    @property
    def views(self) -> list[str]:
        """The Views on the Stage."""
        return list(self._views)

    def mount(
        self, page: Page, *, key: str | None = None, client: str = "", label: str | None = None
    ) -> ViewChannel:
        """Put a View on the Stage and return the channel to it.

        `key` is the Stage's key of it, its id unless given; the user sees the id. `client` is the
        client of the View's Host. `label` is the first part of its origin's host name, as
        `free_label` returned it.
        """
        key = page.view_id if key is None else key
        if key in self._views:
            raise UsageError(f"View {page.view_id} is already on the Stage")
        host = self.host_of(self.free_label(page, label))
        channel = ViewChannel(key, lambda: self._link, self.unmount)
        self.mounts += 1
        mounted = MountedView(self, key, page, client, host, self.mounts, channel)
        self._views[key] = self._hosts[host] = mounted
        self.gone.pop(key, None)
        for entry in dropped_entries(page.csp, self.page_origin):
            self.report_violation(mounted, "declared", entry)
        self._show(mounted)
        return channel

    def host_of(self, label: str) -> str:
        """The `Host` of an origin with this label."""
        return urlsplit(self.sandbox).netloc.replace("*", label)

    def free_label(self, page: Page, label: str | None) -> str:
        """The label of a View's origin: the given one, or a new one that is used once.

        A new one for None, and if a View with other rights has that origin now: Views that share an
        origin share their rights.
        """
        if label is not None:
            there = self._hosts.get(self.host_of(label))
            rights = page.csp, page.permissions
            if there is None or (there.page.csp, there.page.permissions) == rights:
                return label
        return f"{readable_label(page.view_id)}-{secrets.token_hex(6)}"

    def unmount(self, view_id: str) -> None:
        """Take a View off the Stage."""
        if self._drop(view_id, "it was closed") is not None:
            self._take_off(view_id)

    def remove(self, view_id: str, reason: str) -> None:
        """Take a View off the Stage and close its channel with this reason."""
        mounted = self._drop(view_id, reason)
        if mounted is not None:
            self._take_off(view_id)
            mounted.channel.end(f"The View is gone: {reason}")

    def _take_off(self, view_id: str) -> None:
        if view_id not in self.gone:  # its card has taken its place
            self.send({"do": "unmount", "view": view_id})

    def _drop(self, view_id: str, reason: str) -> MountedView | None:
        mounted = self._views.pop(view_id, None)
        if mounted is not None:
            others = [each for each in self._views.values() if each.host == mounted.host]
            if others:
                self._hosts[mounted.host] = others[-1]
            elif self._hosts.get(mounted.host) is mounted:
                del self._hosts[mounted.host]
            self._questions.give_up(f"The View is gone: {reason}", view_id)
        return mounted

    def show_gone(self, gone: GoneView) -> None:
        """Show a card for a View that is gone, until it is reopened or the user closes the card.

        It is shown on the next page as well. If there are too many, the oldest are removed.
        """
        gone = msgspec.structs.replace(
            gone, reason=clean(gone.reason, _MAX_REASON), about=clean(gone.about, _MAX_ABOUT)
        )
        self.gone.pop(gone.view, None)
        self.gone[gone.view] = gone
        self.send(gone)
        closed = [each.view for each in self.gone.values() if not each.failed]
        for view_id in [*closed[:-_MAX_CLOSED], *list(self.gone)[:-_MAX_GONE]]:
            self.remove_gone(view_id)

    def remove_gone(self, view_id: str) -> None:
        """Remove a card of `show_gone`."""
        if self.gone.pop(view_id, None) is not None:
            self.send({"do": "unmount", "view": view_id})

    def mounted(self, view_id: str) -> MountedView | None:
        """A View on the Stage."""
        return self._views.get(view_id)

    def find(self, host: str) -> MountedView | None:
        """The View whose origin has this `Host`; the last one, if several have it."""
        return self._hosts.get(host)

    def numbered(self, host: str, number: str) -> MountedView | None:
        """One of several Views with this `Host`, by its number."""
        found = (each for each in self._views.values() if each.host == host)
        return next((each for each in found if str(each.number) == number), None)

    def clear_storage(self, origins: Iterable[str]) -> None:
        """Make the browser delete its storage for these origins, which are no longer used."""
        self._clearing.update(origins)
        if self._clearing:
            self.send({"do": "clear", "origins": sorted(self._clearing)})

    def take_cleared(self, host: str) -> bool:
        """Whether this is the browser's request for an origin that `clear_storage` was given."""
        origin = f"{urlsplit(self.sandbox).scheme}://{host}"
        if origin not in self._clearing:
            return False
        self._clearing.discard(origin)
        self.on_cleared(origin)
        return True

    def set_notice(self, text: str) -> None:
        """Show the user a line about all Views, on the next page as well."""
        self._notice = text
        self.send({"do": "notice", "text": text})

    def _show(self, mounted: MountedView) -> None:
        page = mounted.page
        csp = build_csp(page.csp, self.csp_mode, ancestors=self.page_origin or "'none'")
        mounted.csp = f"{csp}; report-uri /csp-report?{mounted.number}"
        self.send(
            {
                "do": "mount",
                "view": mounted.key,
                "shown": page.view_id,
                "client": mounted.client,
                "origin": f"{urlsplit(self.sandbox).scheme}://{mounted.host}",
                "number": mounted.number,
                "server": page.server,
                "uri": page.uri,
                "html": page.html,
                "allow": allow_attribute(page.permissions),
                "border": page.prefers_border is not False,
            }
        )

    def set_name(self, view_id: str, name: str, version: str) -> None:
        """Show a View's own name, which is untrusted."""
        shown = {"name": clean(name, _MAX_NAME), "version": clean(version, _MAX_VERSION)}
        self.send({"do": "named", "view": view_id, **shown})

    def set_mode(self, view_id: str, mode: DisplayMode) -> None:
        """Show a View inline, over the whole page, or as a picture in the corner."""
        if view_id in self._views:
            self.send({"do": "mode", "view": view_id, "mode": mode})

    def set_trouble(self, view_id: str, reason: str) -> None:
        """Show that a View does not respond, and why; "" removes that."""
        self.send({"do": "trouble", "view": view_id, "reason": clean(reason, _MAX_REASON)})

    def set_marks(self, view_id: str, *, pinned: bool, grants: Sequence[Grant]) -> None:
        """Show whether a View is pinned, and which tools the user always allows."""
        shown = [
            {"tool": grant.tool, "by": grant.by, "shown": clean(grant.tool, _MAX_TOOL_NAME)}
            for grant in grants
        ]
        self.send({"do": "marks", "view": view_id, "pinned": pinned, "grants": shown})

    def save_file(self, name: str, mime: str, data: str) -> None:
        """Have the page save a file; `data` is base64."""
        self.send({"do": "download", "name": name, "mime": mime, "data": data})

    def report_violation(
        self, mounted: MountedView, directive: str, blocked: str, source: str = ""
    ) -> None:
        """A View tried something that its policy does not allow."""
        if mounted.violations < _MAX_VIOLATIONS:
            mounted.violations += 1
            view, client = mounted.page.view_id, mounted.client
            found = Violation(view, directive[:100], blocked[:500], source[:200], client)
            self.on_violation(found)

    async def ask(self, kind: str, view_id: str, **details: Any) -> bool | str:
        """Ask the user on the page (`approve`, `link`, `download`), and wait for the answer.

        Raises:
            Refused: the same question about that View is open already, or too many are.
            TransomError: the page or the View was closed before there was an answer.
        """
        if self._link is None:
            raise TransomError("There is no page to ask on")
        return await self._questions.ask(kind, view_id, **details)

    # --- the page ----------------------------------------------------------------------------

    @property
    def page_origin(self) -> str:
        """The origin of the page that shows the Views: this Stage's own, or that of a guest."""
        return self._page_origin or self.origin

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

    def invite(self, origin: str) -> str:
        """Let the page of another Stage show the Views; returns the token that it needs.

        The invitation ends when another page is invited, or this Stage's own page connects.
        """
        self._invited = origin, secrets.token_urlsafe(24)
        return self._invited[1]

    def join(self, origin: str, token: str) -> None:
        """Make this Stage's page also show the Views of another Stage that has invited it."""
        self.send({"do": "join", "origin": origin, "token": token})

    def allows_origin(self, origin: str) -> bool:
        """Whether a page of that origin may connect."""
        return origin == self.origin or (self._invited is not None and origin == self._invited[0])

    def connect_page(self, hello: Hello, origin: str | None = None) -> tuple[Link, bool]:
        """A page connects: returns its link, and whether it resumes an earlier one.

        Raises:
            PeerError: the token is wrong.
            Refused: another page shows the Views now.
        """
        origin = self.origin if origin is None else origin
        own = origin == self.origin and _same(hello.token, self.token)
        if not own:
            guest, token = self._invited or ("", "")
            if not guest or origin != guest or not _same(hello.token, token):
                raise PeerError("The token is wrong")
        link, resumed = self.open_link(hello, origin)
        if own and not resumed:
            self._invited = None
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
            grace=self.grace,
            patience=self.patience,
            on_away=lambda: self.on_away(),
        )
        self._page_origin = origin
        if link is not None:
            link.end("another page took over")
        self._lose_views("the page was reloaded, or another one took over")
        for mounted in self._views.values():
            self._show(mounted)
        for gone in self.gone.values():
            self.send(gone)
        if self._notice:
            self.set_notice(self._notice)
        self.clear_storage(())
        self._page_ready.clear()
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
            self.on_over()

    def _lose_views(self, reason: str) -> None:
        """Close the Views that ran on a lost page; those that were not shown yet stay."""
        self._questions.give_up("The page went away before there was an answer")
        lost = [key for key, mounted in self._views.items() if mounted.channel.spoken]
        for key in lost:
            mounted = self._drop(key, reason)
            if mounted is not None:
                mounted.channel.end(f"The View is gone: {reason}")
        if lost:
            self.on_lost(lost)

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
        except msgspec.DecodeError:
            return  # a page of another version may send unknown messages
        match message:
            case _PageMessage(do="answer", value=bool() | str() as value):
                self._questions.answer(message.id, value)
            case _PageMessage(do="surroundings", value=_Surroundings() as value):
                self.surroundings = {
                    key: known[:_MAX_SURROUNDINGS] if isinstance(known, str) else known
                    for key, known in msgspec.to_builtins(value).items()
                }
                self._page_ready.set()
                self.on_surroundings(self.surroundings)
            case _PageMessage(do="place", view=view, value=str() as wish):
                self.on_place(view[:_MAX_KEY], wish)
            case _PageMessage(view=view) if view in self._views:
                self._handle_view_message(self._views[view], message)
            case _PageMessage(do="retry", view=view) if view in self.gone:
                self.on_retry(view)
            case _PageMessage(do="closed", view=view) if view in self.gone:
                self.remove_gone(view)
                self.on_dismissed(view)
            case _:
                pass

    def _handle_view_message(self, mounted: MountedView, message: _PageMessage) -> None:
        key, page = mounted.key, mounted.page
        match message.do:
            case "closed" if self.on_close is not None:
                self.on_close(key)
            case "closed":
                self.remove(key, "the user closed it")
            case "broken":
                reason = message.reason[:_MAX_REASON]
                self._drop(key, reason)
                self.show_gone(GoneView(key, page.view_id, page.server, mounted.client, reason))
                mounted.channel.end(f"The View is gone: {reason}")
                if message.value is True:
                    self.on_unloaded()
            case "reload":
                self.on_retry(key)
            case "withdraw":
                self.on_withdraw(key, message.tool, message.by)
            case "loaded":
                self.on_loaded(key, message.value is True)
            case "refused":
                self.report_violation(mounted, "message", message.reason)
            case "mode":
                changes: dict[str, Any] = {"displayMode": message.mode}
                if message.size is not None:
                    changes["containerDimensions"] = msgspec.to_builtins(message.size)
                self.on_mode(key, changes)
            case _:
                pass

    def close(self) -> None:
        """Remove every View, and end the page."""
        for view_id, mounted in list(self._views.items()):
            mounted.channel.end("The Stage was closed")
            self.unmount(view_id)
        if self._link is not None:
            self._link.end("the agent has ended")


def _same(given: str, known: str) -> bool:
    return secrets.compare_digest(given.encode(), known.encode())
