"""The users of a web application on this worker, each with a Host and pages of their own.

1. A Host is created on first use, and closed when its user has had no page open and nothing has
   used it for a while. The next one takes over its Views, so that no id is used twice.
2. With a bus, a user is on one worker, under a lease.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any

import msgspec

from transom.background import Background, ignore, logs_errors, shared_task, stop
from transom.bus import Lease
from transom.errors import BusError, Refused, UsageError
from transom.fair_share import FairShares
from transom.host.host import Host
from transom.host.open_views import HostRecords
from transom.host.views.ui_resource import UIResource
from transom.web.application.remote_host import SharedHost
from transom.web.application.sandbox import Sandbox
from transom.web.application.user_pages import UserPages
from transom.web.application.user_records import KeptRecords, SharedRecords, read_records
from transom.web.application.workers import Workers
from transom.web.mounted_views import Sandboxes
from transom.web.page_link import Backlog
from transom.web.seat import Seat
from transom.web.stage import Stage

ConnectServers = Callable[[str, Host], Awaitable[object]]
"""Connects the Host of a user to its servers."""
MakeHost = Callable[[str, Seat], Host]
"""Makes the Host of a user, with the seat as its renderer."""

_log = logging.getLogger("transom.web")
_report = logs_errors(_log)

_MAX_USER = 200
_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character, which no UTF-8 has
_MAX_ORIGINS = 100  # of one user's Views that are no longer shown


class UserLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many users a worker has, and how long it waits for them."""

    max_users: int = 1000
    """How many may have a Host or a page at once.

    To make room, the least recently used Host without an open page is closed.
    """
    idle: float = 900.0
    """Seconds until the Host of a user without a page is closed."""
    show_within: float = 1.0
    """Seconds a call waits for a page to show its View.

    Then the call returns, and the View opens when a page has a place for it.
    """
    max_share: float = 0.25
    """Share of a worker's time that the messages of one user's pages may take, beyond a burst.

    While another user is active, what they start in this process counts too, and calls of servers
    here run one after the other. A user who sends more waits; nothing is lost, and the log has a
    warning.
    """
    max_unread: int = 128 * 1024 * 1024
    """Bytes that may wait for all pages of one user together; one that needs more is closed."""


class UserSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What all users of an application have in common."""

    make_host: MakeHost
    servers: ConnectServers | None
    sandbox: Sandbox
    workers: Workers
    limits: UserLimits
    sandboxes: Sandboxes
    shares: FairShares
    kept: KeptRecords = msgspec.field(default_factory=KeptRecords)
    """The records of users without a Host, if there is no bus."""


class User:
    """One user: their Host, pages and lease.

    `close` closes it, at the request of another worker. `before` is the task that closes the user's
    former Host, `stored` what the bus has of that one.
    """

    def __init__(
        self,
        name: str,
        setup: UserSetup,
        close: Callable[[], Coroutine[Any, Any, None]],
        *,
        lease: Lease | None,
        stored: Mapping[str, bytes],
        before: asyncio.Task[None] | None,
    ) -> None:
        self.name = name
        self.lease = lease
        self.used = time.monotonic()
        self.moving = False  # to another worker
        self.host: Host | None = None
        self.shared: SharedHost | None = None
        self._setup = setup
        self._close = close
        self._stored = read_records(stored)
        self._known = list(stored)
        self._before = before
        self._starting: asyncio.Task[Host] | None = None
        self._records: SharedRecords | None = None
        self._origins: dict[str, Lease] = {}  # leases for the origins of its Views, by `Host`
        self._releasing = Background(_report)
        self.share = setup.shares.of(name)
        self.pages = UserPages(self, self.share.call, setup.limits.show_within)
        self.backlog = Backlog(setup.limits.max_unread)

    def mark_used(self) -> None:
        """It is in use now: it is not closed for a while."""
        self.used = time.monotonic()

    @property
    def is_idle(self) -> bool:
        """Whether no page is open, and no Host is starting."""
        starting = self._starting is not None and not self._starting.done()
        return not starting and not self.pages.stages

    # --- the Host ----------------------------------------------------------------------------

    async def started_host(self) -> Host:
        """The Host, created and connected to its servers if there is none.

        Raises:
            Refused: the user was closed meanwhile.
        """
        if self._starting is None:
            self._starting = shared_task(self._start())
        starting = self._starting
        await asyncio.wait([starting])
        if starting.cancelled():
            raise Refused("The user's Host and Views were closed meanwhile")
        return starting.result()

    def wake(self) -> Awaitable[object] | None:
        """Create the Host of a user who had Views; None if that is not needed."""
        if self._starting is not None:
            known = not self._starting.done()
        else:
            closing = self._before is not None and not self._before.done()
            known = closing or self._stored is not None or self.name in self._setup.kept
        return self.started_host() if known else None

    async def _start(self) -> Host:
        setup = self._setup
        try:
            if self._before is not None:
                await asyncio.wait([self._before])
            host = self.host = setup.make_host(self.name, self.pages.seat)
            await host.__aenter__()
            self.pages.attach_host(host)
            if setup.servers is not None:
                await setup.servers(self.name, host)
            records = setup.kept.take(self.name) if self.lease is None else self._stored
            if records is not None:
                self.pages.restore(host, records)
            if self.lease is not None:
                self._share(host, self.lease)
            self._stored = None
            self.mark_used()
        except BaseException:
            host, self.host, self._starting = self.host, None, None
            if host is not None:
                await host.aclose()
            raise
        return host

    def _share(self, host: Host, lease: Lease) -> None:
        """Store the Host's records on the bus, and let other workers use it."""
        self._records = SharedRecords(lease, self._current_records, self._known)
        self._records.watch(host)
        self.shared = SharedHost(host, self.mark_used, self._close)

    def _current_records(self) -> HostRecords | None:
        """What the next Host needs; None if there is no Host."""
        return None if self.host is None else self.pages.records(self.host)

    def rewrite_records(self) -> None:
        """Write the records again, because the bus has lost them."""
        if self._records is not None:
            self._records.rewrite()

    # --- its end -----------------------------------------------------------------------------

    async def close(self) -> None:
        """Close the Host and the pages; if it is `moving`, another worker has the user then."""
        if self.moving and self._records is not None:
            await self._records.finish()
        if self.shared is not None:
            self.shared.close()
        await self.pages.close()
        if self.moving:
            await self._release()
        await stop(self._starting)
        if self.host is not None:
            await self.host.aclose()
        if not self.moving:
            await self._keep_records()
            await self._release()

    async def _keep_records(self) -> None:
        """Store what the next Host needs. The user's grants end with this one."""
        records = self._stored if self.host is None else self._current_records()
        if records is None:
            return
        if self.lease is None:
            self._setup.kept.keep(self.name, msgspec.structs.replace(records, grants=[]))
        else:
            stored = SharedRecords(self.lease, lambda: records, self._known)
            await (self._records or stored).finish(grants=False)

    async def _release(self) -> None:
        """Let another worker have the user."""
        await self._releasing.aclose()
        origins, self._origins = self._origins, {}
        await asyncio.gather(*(lease.release() for lease in origins.values()))
        if self.lease is not None:
            await self.lease.release()

    # --- the origins of Views ----------------------------------------------------------------

    async def label(self, resource: UIResource, stage: Stage) -> str | None:
        """The label of a View's origin, claimed so that other workers find it here."""
        label = self._setup.sandbox.label(self.name, resource)
        if self.lease is None:
            return label
        for wanted in (label, None):
            label = stage.free_label(resource, wanted)
            host = stage.host_of(label)
            try:
                bus = await self._setup.workers.bus()
                lease = await bus.claim(f"origin:{host}", ignore)
            except BusError as error:  # pages on this worker still see it
                _log.warning("Other workers do not know where a View is: %s", error)
                return label
            if lease is not None:
                self._origins[host] = lease
                break
        unused = [each for each in self._origins if each not in self._setup.sandboxes]
        for each in unused[:-_MAX_ORIGINS]:  # except the newest, which is about to be used
            self._releasing.start(self._origins.pop(each).release())
        return label


class Users:
    """The users who have a Host or a page on this worker."""

    def __init__(self, setup: UserSetup) -> None:
        self._setup = setup
        self._users: dict[str, User] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._background = Background(_report)
        self._sweeping = False

    @property
    def names(self) -> list[str]:
        """Their ids, the least recently used first."""
        return sorted(self._users, key=lambda name: self._users[name].used)

    async def claim(self, name: str, *, even_if_full: bool = False) -> User | None:
        """A user who is on this worker from now on; None if another worker has them.

        `even_if_full`: it is about to be closed.

        Raises:
            Refused: too many users are here.
            UsageError: it is not a valid id.
            BusUnreachable: the user is not here, and Redis cannot be reached.
        """
        workers = self._setup.workers
        if workers.alone:
            return self._user(name)
        if name in self._users:
            await workers.confirm()  # it may have been taken over while this process was stopped
            if name in self._users:
                return self._user(name)
        bus = await workers.bus()
        if (closing := self._closing.get(_check_name(name))) is not None:
            await asyncio.wait([closing])
        lease = await bus.claim(f"user:{name}", self._lease_lost, self._lease_renewed)
        if lease is None:
            return None
        try:
            stored = await bus.records(lease.name)
            return self._user(name, lease, stored, even_if_full=even_if_full)
        except BaseException:
            if name not in self._users:
                await lease.release()
            raise

    def _user(
        self,
        name: str,
        lease: Lease | None = None,
        stored: Mapping[str, bytes] | None = None,
        *,
        even_if_full: bool = False,
    ) -> User:
        """A user who is here, or comes here now."""
        user = self._users.get(_check_name(name))
        if user is None:
            if len(self._users) >= self._setup.limits.max_users and not even_if_full:
                self._make_room()
            before = self._closing.get(name)
            given = self._setup, partial(self.close, name)
            user = User(name, *given, lease=lease, stored=stored or {}, before=before)
            self._users[name] = user
            if not self._sweeping:
                self._sweeping = True
                self._background.start(self._sweep())
        user.mark_used()
        return user

    async def find(self, lease: str) -> User | None:
        """A user whom another worker believes to be here, by the name of their lease."""
        name = lease.removeprefix("user:")
        if (closing := self._closing.get(name)) is not None:
            await asyncio.wait([closing])  # the other worker can claim the user then
        return self._users.get(name)

    async def close(self, name: str) -> None:
        """Close a user's Host, Views and pages, if they are here."""
        if (closing := self._begin_closing(name)) is not None:
            await asyncio.shield(closing)

    async def aclose(self) -> None:
        """Close all users. With a bus, other workers take over."""
        self._background.cancel()
        self._background, self._sweeping = Background(_report), False
        for name in list(self._users):
            self._begin_closing(name, moving=not self._setup.workers.alone)
        await asyncio.gather(*self._closing.values())

    def _begin_closing(self, name: str, *, moving: bool = False) -> asyncio.Task[None] | None:
        if (user := self._users.pop(name, None)) is not None:
            user.moving = moving
            closing = self._closing[name] = asyncio.create_task(user.close())
            closing.add_done_callback(lambda ended: self._closed(name, ended))
        return self._closing.get(name)

    def _closed(self, name: str, closing: asyncio.Task[None]) -> None:
        if self._closing.get(name) is closing:  # else the user came back, and is closed again
            del self._closing[name]
        if not closing.cancelled() and (error := closing.exception()) is not None:
            _report(error)

    def _make_room(self) -> None:
        idle = [name for name in self.names if self._users[name].is_idle]
        if not idle:
            most = self._setup.limits.max_users
            raise Refused(f"{most} users have Views open, which is the most allowed")
        self._begin_closing(idle[0])

    async def _sweep(self) -> None:
        """Close what is not used any more."""
        idle = self._setup.limits.idle
        while self._users:
            await asyncio.sleep(idle / 4)
            late = time.monotonic() - idle
            for name, user in list(self._users.items()):
                if user.used < late and user.is_idle:
                    closing = self._begin_closing(name)
                    if closing is not None:
                        await asyncio.wait([closing])
        self._sweeping = False

    def _lease_lost(self, lease: Lease) -> None:
        """Another worker has taken over a user while this one was cut off from Redis."""
        name = lease.name.removeprefix("user:")
        if (user := self._users.get(name)) is not None and user.lease is lease:
            self._begin_closing(name, moving=True)

    def _lease_renewed(self, lease: Lease) -> None:
        user = self._users.get(lease.name.removeprefix("user:"))
        if user is not None and user.lease is lease:
            user.rewrite_records()


def _check_name(user: object) -> str:
    if not isinstance(user, str) or not 0 < len(user) <= _MAX_USER or _SURROGATE.search(user):
        raise UsageError(
            f"A user's id is a str of 1 to {_MAX_USER} characters, not {ascii(user)[:80]}"
        )
    return user
