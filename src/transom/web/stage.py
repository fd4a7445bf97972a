"""The Stage: which Views are shown, on which page, and what page and host say to each other.

1. One page shows the Views. A page that comes back after a dropped socket goes on where it was. Any
   other page, a reloaded or a second one, takes over: the Views of the one before are lost, and
   `on_lost` is told, so that the host can open them again.
2. Each View has an origin of its own, never used before, so that nothing is left for the next.
3. A page is whoever has the token. What it says about a View counts for that View only.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable
from typing import Any, Literal, cast

import msgspec

from transom.errors import PeerError, TransomError, UsageError
from transom.host.pages import Page
from transom.web.csp import CspMode, allow_attribute, build_csp, dropped_entries
from transom.web.link import CONTROL, Link
from transom.web.relay import ViewChannel

__all__ = ["Hello", "Mounted", "Stage", "Violation"]

DisplayMode = Literal["inline", "fullscreen", "pip"]

_SURROUNDINGS = (
    "theme", "locale", "timeZone", "userAgent", "platform", "deviceCapabilities",
    "containerDimensions",
)  # fmt: skip
_MAX_VIOLATIONS = 100  # reports taken of one View


class Violation(msgspec.Struct, frozen=True):
    """Something a View tried and was not allowed."""

    view: str
    directive: str
    blocked: str
    source: str = ""


class Hello(msgspec.Struct):
    """The first thing a page says on a socket."""

    token: str
    page: str | None = None
    received: int = 0


class _FromPage(msgspec.Struct):
    """What a page says that is not from a View."""

    do: Literal["closed", "answer", "mode", "surroundings", "broken"]
    view: str | None = None
    id: int | None = None
    value: Any = None
    mode: DisplayMode | None = None
    reason: str | None = None


_read_control = msgspec.json.Decoder(_FromPage).decode


class Mounted(msgspec.Struct, eq=False):
    """A View on the Stage."""

    page: Page
    host: str
    channel: ViewChannel
    csp: str
    mode: DisplayMode = "inline"
    violations: int = 0


def _nothing(*_: object) -> None:
    pass


class Stage:
    """Shows Views on a page in a browser.

    Args:
        csp: how much a View's page may do with itself; see `transom.web.csp`.
        grace: seconds a page may be away.

    `on_lost(view_ids)`, `on_violation(violation)`, `on_surroundings(changes)` and
    `on_mode(view_id, mode)` are callables to be set by whoever shows Views here.
    """

    def __init__(self, *, csp: CspMode = "compat", grace: float = 30.0) -> None:
        self.token = secrets.token_urlsafe(24)
        self.csp_mode: CspMode = csp
        self.origin = ""
        """The origin of the Stage's page, once it is served."""
        self.sandbox_port = 0
        self.sandbox_domain = "localhost"
        self.surroundings: dict[str, Any] = {}
        """What the page knows of its user: theme, locale, time zone, ..."""
        self.on_lost: Callable[[list[str]], object] = _nothing
        self.on_violation: Callable[[Violation], object] = _nothing
        self.on_surroundings: Callable[[dict[str, Any]], object] = _nothing
        self.on_mode: Callable[[str, str], object] = _nothing
        self._grace = grace
        self._views: dict[str, Mounted] = {}
        self._hosts: dict[str, Mounted] = {}
        self._link: Link | None = None
        self._page_there = asyncio.Event()
        self._questions: dict[int, asyncio.Future[Any]] = {}
        self._next_question = 1

    # --- Views -------------------------------------------------------------------------------

    @property
    def views(self) -> list[str]:
        """The Views on the Stage."""
        return list(self._views)

    def mount(self, page: Page) -> ViewChannel:
        """Put a View on the Stage and return the pipe to it.

        Raises:
            UsageError: a View of that id is there already.
        """
        if page.view_id in self._views:
            raise UsageError(f"View {page.view_id} is on the Stage already")
        label = re.sub(r"[^a-z0-9-]+", "-", page.view_id.lower()).strip("-")[:32] or "view"
        host = f"{label}-{secrets.token_hex(6)}.{self.sandbox_domain}:{self.sandbox_port}"
        channel = ViewChannel(page.view_id, lambda: self._link, self.unmount)
        csp = build_csp(page.csp, self.csp_mode, ancestors=self.origin or "'none'")
        mounted = Mounted(page, host, channel, csp + "; report-uri /csp-report")
        self._views[page.view_id] = self._hosts[host] = mounted
        for entry in dropped_entries(page.csp):
            self.on_violation(Violation(page.view_id, "declared", entry))
        self._show(mounted)
        return channel

    def unmount(self, view_id: str) -> None:
        """Take a View off the Stage."""
        mounted = self._views.pop(view_id, None)
        if mounted is not None:
            del self._hosts[mounted.host]
            self._tell({"do": "unmount", "view": view_id})

    def find(self, host: str) -> Mounted | None:
        """The View whose origin has this `Host`."""
        return self._hosts.get(host)

    def _show(self, mounted: Mounted) -> None:
        page = mounted.page
        self._tell(
            {
                "do": "mount",
                "view": page.view_id,
                "origin": f"http://{mounted.host}",
                "server": page.server,
                "uri": page.uri,
                "html": page.html,
                "allow": allow_attribute(page.permissions),
                "border": page.prefers_border,
            }
        )

    def named(self, view_id: str, name: str, version: str) -> None:
        """A View has said what it is called."""
        self._tell({"do": "named", "view": view_id, "name": name[:200], "version": version[:100]})

    def save(self, name: str, mime: str, data: str) -> None:
        """Have the page save a file; `data` is base64."""
        self._tell({"do": "download", "name": name, "mime": mime, "data": data})

    def set_mode(self, view_id: str, mode: DisplayMode) -> None:
        """Show a View inline, over the whole page, or as a picture in the corner."""
        mounted = self._views.get(view_id)
        if mounted is not None:
            mounted.mode = mode
            self._tell({"do": "mode", "view": view_id, "mode": mode})

    # --- the page ----------------------------------------------------------------------------

    @property
    def has_page(self) -> bool:
        """Whether there is a page, or one that may still come back."""
        return self._link is not None and not self._link.over

    async def page_there(self) -> None:
        """Wait until a page shows the Stage."""
        await self._page_there.wait()

    def welcome(self, hello: Hello) -> tuple[Link, bool]:
        """A page says hello: the link it is to use, and whether that goes on where it was.

        Raises:
            PeerError: the token is wrong.
        """
        if not secrets.compare_digest(hello.token.encode(), self.token.encode()):
            raise PeerError("The token is wrong")
        link = self._link
        if link is not None and not link.over and hello.page == link.id:
            return link, True
        self._link = fresh = Link(self._arrived, self._gone, grace=self._grace)
        if link is not None:
            link.end("another page took over")
        self._lose("the page was reloaded, or another one took over")
        for mounted in self._views.values():
            self._show(mounted)
        self._page_there.set()
        return fresh, False

    def page_lost(self, reason: str) -> None:
        """The page is known to be gone for good: do not wait for it."""
        if self._link is not None:
            self._link.end(reason)

    def _gone(self, reason: str) -> None:
        if self._link is not None and self._link.over:
            self._link = None
            self._page_there.clear()
            self._lose(reason)

    def _lose(self, reason: str) -> None:
        """Views that ran on a page that is gone are gone; those that never ran stay to be shown."""
        for question in self._questions.values():
            if not question.done():
                question.cancel()
        lost = [id for id, mounted in self._views.items() if mounted.channel.spoken]
        for view_id in lost:
            mounted = self._views.pop(view_id)
            del self._hosts[mounted.host]
            mounted.channel.end(f"The View is gone: {reason}")
        if lost:
            self.on_lost(lost)

    def _tell(self, message: dict[str, Any]) -> None:
        if self._link is not None:
            self._link.post(CONTROL, msgspec.json.encode(message))

    async def ask(self, kind: str, view_id: str, **details: Any) -> Any:
        """Ask the user on the page, and wait for the answer.

        Args:
            kind: `approve`, `link` or `download`.
            view_id: the View it is about.
            **details: what the question shows.

        Raises:
            TransomError: the page went away before there was an answer.
        """
        if self._link is None:
            raise TransomError("There is no page to ask on")
        number = self._next_question
        self._next_question += 1
        question = self._questions[number] = asyncio.get_running_loop().create_future()
        self._tell({"do": "ask", "id": number, "kind": kind, "view": view_id, **details})
        try:
            return await question
        except asyncio.CancelledError:
            if question.cancelled():
                raise TransomError("The page went away before there was an answer") from None
            self._tell({"do": "unask", "id": number})
            raise
        finally:
            del self._questions[number]

    def _arrived(self, view_id: str, message: bytes) -> None:
        if view_id != CONTROL:
            mounted = self._views.get(view_id)
            if mounted is not None:
                mounted.channel.feed(message)
            return
        try:
            said = _read_control(message)
        except msgspec.DecodeError:
            return
        mounted = self._views.get(said.view or "")
        if said.do == "answer":
            question = self._questions.get(said.id or 0)
            if question is not None and not question.done():
                question.set_result(said.value)
        elif said.do == "surroundings":
            self._look_around(said.value)
        elif mounted is None:
            return
        elif said.do in ("closed", "broken"):
            why = "the user closed it" if said.do == "closed" else (said.reason or "it broke")
            self.unmount(mounted.page.view_id)
            mounted.channel.end(f"The View is gone: {why[:200]}")
        elif said.do == "mode" and said.mode is not None:
            mounted.mode = said.mode
            self.on_mode(mounted.page.view_id, said.mode)

    def _look_around(self, value: object) -> None:
        if isinstance(value, dict):
            known = {k: v for k, v in cast("dict[str, Any]", value).items() if k in _SURROUNDINGS}
            self.surroundings = known
            self.on_surroundings(known)

    def violated(self, mounted: Mounted, directive: str, blocked: str, source: str) -> None:
        """The browser stopped a View from something its policy does not allow."""
        if mounted.violations < _MAX_VIOLATIONS:
            mounted.violations += 1
            violation = Violation(
                mounted.page.view_id, directive[:100], blocked[:500], source[:200]
            )
            self.on_violation(violation)

    def close(self) -> None:
        """Take everything down."""
        for view_id, mounted in list(self._views.items()):
            mounted.channel.end("The Stage was closed")
            self.unmount(view_id)
        if self._link is not None:
            self._link.end("the Stage was closed")
