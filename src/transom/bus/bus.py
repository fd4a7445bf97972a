"""`Bus`: what the workers of a fleet share through Redis. See `channels.py` and `commands.py`.

1. One heartbeat renews the worker and all its leases. It also checks whether the workers at the
   other ends of its channels are alive.
2. While Redis cannot be reached, a worker keeps its leases, all channels end, and everything that
   needs Redis fails at once. The heartbeat keeps retrying.
3. If Redis is back and does not know this worker any more (it was restarted empty, or this worker
   was cut off for too long), each lease is claimed again, and lost if another worker has it by now.
   For a while, new names are not claimed, so that other workers can claim theirs again.
4. A worker that has not renewed its leases for as long as they last, because it was stopped, finds
   out which ones it still has before it does anything that only their holder may do.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self

from transom.background import Background, logs_errors, shared_task, stop
from transom.bus.channels import Channels, OnOpen
from transom.bus.commands import BEAT, CLAIM, RELEASE, WRITE, Argument, Commands
from transom.bus.seal import Seal
from transom.channel import Channel
from transom.errors import BusError, BusUnreachable, LeaseLost
from transom.events import is_awaitable

_log = logging.getLogger("transom.bus")
_report = logs_errors(_log)

_LEASE_EXPIRY = 900.0  # seconds until a lease expires in Redis unless it is claimed again
_REFRESH = 3  # a lease is claimed again after this fraction of that
_ANSWERS_WITHIN = 2.0  # the least timeout of Redis in seconds, also for a large message
_MAX_RECORDS = 512
_MAX_RECORD_BYTES = 4 * 1024 * 1024
_RETRY = (0.05, 2.0)  # seconds between attempts to reach Redis: at first, at most
_LOOK_AGAIN = 0.1  # seconds
_PATIENCE = 2  # leases that another worker may leave pings unanswered
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

OnLease = Callable[["Lease"], object]
"""Called with a lease; may be async."""


class Lease:
    """This worker's claim on a name: nobody else has it while this worker is alive."""

    def __init__(
        self, bus: Bus, name: str, epoch: int, on_lost: OnLease, on_renewed: OnLease | None
    ) -> None:
        self.name = name
        self.epoch = epoch
        """Grows with every claim (a fencing token), to tell the holder from earlier ones."""
        self.held = True
        self.on_lost = on_lost
        self.on_renewed = on_renewed
        self.refresh_at = 0.0
        self._bus = bus

    def release(self) -> asyncio.Future[None]:
        """Release it. The channels that were opened to it are closed.

        Another worker can claim it when the future is done; there is no need to wait for that.
        """
        return self._bus.release(self)

    async def write(self, records: Mapping[str, bytes | None]) -> None:
        """Store values for the next worker that has the name; None deletes one.

        Raises:
            LeaseLost: another worker has the name, or had it meanwhile.
            BusError: that would be too much, or Redis cannot be reached.
        """
        await self._bus.write(self, records)


class Bus:
    """Connects the workers of a fleet. Use it as `async with Bus(...)`.

    Args:
        url: the Redis that all workers use: `redis://`, `rediss://` (TLS) or `unix://`.
        prefix: what its keys begin with; the same for all workers of a fleet.
        secret: at least 32 secret characters, the same for all workers of a fleet and for no other
            application on that Redis. Keys are derived from it, and values that were written
            without it are refused.
        lease: seconds without a heartbeat after which other workers consider a worker dead.
        keep_records: seconds that the records of a name without a lease are stored.

    Raises:
        UsageError: it is not the URL of a Redis, the secret is too short, or `transom[bus]` is not
            installed.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "transom",
        secret: str | None = None,
        lease: float = 6.0,
        keep_records: float = 86400.0,
    ) -> None:
        self.worker = secrets.token_hex(16)
        """The id of this worker. It cannot be guessed."""
        self._lease = lease
        self._every = lease / 3
        self._keep_records = int(keep_records * 1000)
        self._seal = seal = Seal(secret)
        prefix += seal.fleet
        self._commands = Commands(url, prefix, max(_ANSWERS_WITHIN, lease / 2), self.check_redis)
        self._channels = Channels(
            self._commands, seal, self.worker, self.epoch_of, self.ensure_renewed
        )
        self._leases: dict[str, Lease] = {}
        self._claims: dict[str, asyncio.Task[Lease | None]] = {}
        self._background = Background(_report)
        self._beating: asyncio.Task[None] | None = None
        self._soon = asyncio.Event()
        self._begun = False
        self._settled_at = 0.0  # when all workers have claimed again what Redis has lost
        self._renewing = asyncio.Lock()
        self._renewed_at = 0.0  # when the last complete heartbeat began
        self._forgotten = False  # by Redis; no lease is certain until all were claimed again

    # --- life --------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Begin.

        Raises:
            BusUnreachable: Redis cannot be reached.
            BusError: it may evict keys, so that a lease could vanish.
        """
        try:
            await self._beat()
            await self._refuse_eviction()
        except BaseException:
            await self._commands.aclose()
            raise
        self._begun = True
        self._channels.start()
        self._beating = asyncio.create_task(self._beat_on(), name="transom-bus-heartbeat")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Release every lease and close every channel."""
        await stop(self._beating)
        await self._background.aclose(grace=1.0)
        await self._channels.aclose()
        for lease in list(self._leases.values()):
            self._give_up(lease)
        keys = [self._commands.key(kind, self.worker) for kind in ("alive", "inbox", "size")]
        self._commands.command("DEL", *keys)
        await self._commands.aclose()

    async def _refuse_eviction(self) -> None:
        """Refuse a Redis that deletes keys when it is full: leases would have two holders.

        Raises:
            BusError: it does.
        """
        try:
            told: bytes = await self._commands.command("INFO", "memory")
        except BusUnreachable:
            raise
        except BusError:
            return  # this account may not ask
        info = dict(line.split(b":", 1) for line in told.split() if b":" in line)
        policy = info.get(b"maxmemory_policy", b"noeviction").decode(errors="replace")
        if policy != "noeviction" and info.get(b"maxmemory", b"0") != b"0":
            raise BusError(
                f"Redis at {self._commands.where} deletes keys when it is full (maxmemory-policy "
                f"{policy}): set it to noeviction, or use another Redis for the bus"
            )

    @property
    def has_secret(self) -> bool:
        """Whether it was given a secret."""
        return bool(self._seal.fleet)

    @property
    def unreachable(self) -> BusUnreachable | None:
        """Why Redis cannot be reached; None while it can."""
        return self._commands.unreachable

    # --- leases ------------------------------------------------------------------------------

    async def claim(
        self, name: str, on_lost: OnLease, on_renewed: OnLease | None = None
    ) -> Lease | None:
        """Claim a name. A worker that has it already gets the lease it has.

        Args:
            name: any text; Redis only gets its digest.
            on_lost: called when another worker has taken it, which happens only after this one
                could not reach Redis, or did not run, for a while.
            on_renewed: called when Redis had lost it, with all records, and it was claimed again:
                write the records again.

        Returns:
            None when another worker has it.

        Raises:
            BusUnreachable: Redis cannot be reached.
        """
        await self.confirm()
        if name in self._leases:
            return self._leases[name]
        claim = self._claims.get(name)
        if claim is None:
            # A task of its own: a cancelled caller must not leave a lease in Redis that we do not
            # know of.
            claim = shared_task(self._claim(name, on_lost, on_renewed))
            self._claims[name] = claim
            claim.add_done_callback(lambda _: self._claims.pop(name))
        return await asyncio.shield(claim)

    async def _claim(self, name: str, on_lost: OnLease, on_renewed: OnLease | None) -> Lease | None:
        loop, key = asyncio.get_running_loop(), self._commands.key("lease", _digest(name))
        while self._settled_at > loop.time():
            if await self._commands.command("EXISTS", key):
                break
            await asyncio.sleep(_LOOK_AGAIN)
        epoch = await self._claim_in_redis(name)
        if not epoch:
            return None
        lease = Lease(self, name, epoch, on_lost, on_renewed)
        self._leases[name] = lease
        self._plan_refresh(lease)
        return lease

    def _claim_in_redis(self, name: str) -> asyncio.Future[int]:
        expiry = int(_LEASE_EXPIRY * 1000)
        return self._commands.run(CLAIM, _digest(name), self.worker, expiry, self._keep_records)

    def _plan_refresh(self, lease: Lease) -> None:
        part = _LEASE_EXPIRY / _REFRESH
        lease.refresh_at = asyncio.get_running_loop().time() + part * random.uniform(0.5, 1)  # noqa: S311

    async def _refresh(self, leases: list[Lease]) -> None:
        """Claim this worker's leases again, and find out which ones it has lost."""
        epochs = [self._claim_in_redis(lease.name) for lease in leases]
        for lease, pending in zip(leases, epochs, strict=True):
            epoch = await pending
            if not lease.held:
                continue
            if not epoch:
                lease.held = False
                del self._leases[lease.name]
                _log.warning("another worker has taken over what this one had")
                await self._channels.end_served(lease.name, "Another worker has it now")
                self._call(lease.on_lost, lease)
                continue
            self._plan_refresh(lease)
            if epoch != lease.epoch:
                lease.epoch = epoch
                if lease.on_renewed is not None:
                    self._call(lease.on_renewed, lease)

    def _call(self, handler: OnLease, lease: Lease) -> None:
        try:
            waiting = handler(lease)
        except Exception as error:  # noqa: BLE001 - one holder must not stop the heartbeat
            _report(error)
            return
        if is_awaitable(waiting):
            self._background.start(waiting)

    def epoch_of(self, name: str) -> int | None:
        """The epoch of this worker's lease on a name; None if it has none."""
        lease = self._leases.get(name)
        return None if lease is None else lease.epoch

    async def confirm(self) -> None:
        """Find out which leases this worker still has, if it did not run for a while.

        Wait for this before doing what only the holder of a lease may do. It costs nothing unless
        this process was stopped. While Redis cannot be reached, a worker keeps what it has.
        """
        with suppress(BusError):
            await self.ensure_renewed()

    async def ensure_renewed(self) -> None:
        """As `confirm`.

        Raises:
            BusError: that cannot be found out now.
        """
        if self._may_have_lost:
            if self._commands.unreachable is not None:
                raise BusUnreachable(str(self._commands.unreachable))
            async with self._renewing:
                if self._may_have_lost:
                    await self._renew()

    @property
    def _may_have_lost(self) -> bool:
        return self._begun and time.clock_gettime(_CLOCK) - self._renewed_at >= self._lease

    def release(self, lease: Lease) -> asyncio.Future[None]:
        """See `Lease.release`."""
        given_up = self._give_up(lease) if lease.held else None
        releasing = asyncio.ensure_future(self._released(lease, given_up))
        self._background.start(releasing)
        return releasing

    async def _released(self, lease: Lease, given_up: asyncio.Future[Any] | None) -> None:
        if given_up is not None:
            await self._channels.end_served(lease.name, "The worker that had it has given it up")
            try:
                await given_up
            except BusError as error:  # it expires with this worker, or is claimed again
                _log.info("a lease could not be released: %s", error)

    def _give_up(self, lease: Lease) -> asyncio.Future[Any]:
        lease.held = False
        del self._leases[lease.name]
        return self._commands.run(RELEASE, _digest(lease.name), self._holder(lease))

    def _holder(self, lease: Lease) -> str:
        return f"{self.worker}:{lease.epoch}"

    # --- records -----------------------------------------------------------------------------

    async def write(self, lease: Lease, records: Mapping[str, bytes | None]) -> None:
        """See `Lease.write`."""
        deleted = [field for field, value in records.items() if value is None]
        arguments: list[Argument] = [_MAX_RECORDS, _MAX_RECORD_BYTES, len(deleted), *deleted]
        for field, value in records.items():
            if value is not None:
                arguments += (field, self._seal.write(_record(lease.name, field), value))
        outcome = await self._write(lease, arguments)
        if outcome == b"lost" and lease.held:  # or it has vanished, and nobody has it
            await self._refresh([lease])
            outcome = await self._write(lease, arguments)
        if outcome == b"lost":
            raise LeaseLost("Another worker has it now")
        if outcome != b"ok":
            raise BusError(
                f"At most {_MAX_RECORDS} records with {_MAX_RECORD_BYTES} bytes are stored"
            )

    def _write(self, lease: Lease, arguments: list[Argument]) -> asyncio.Future[bytes]:
        holder = self._holder(lease) if lease.held else ""
        expiry = self._keep_records
        return self._commands.run(WRITE, _digest(lease.name), holder, expiry, *arguments)

    async def records(self, name: str) -> dict[str, bytes]:
        """The records of a name, written by this worker or one that had it before.

        Raises:
            BusUnreachable: Redis cannot be reached.
        """
        key = self._commands.key("records", _digest(name))
        found: list[bytes] = await self._commands.command("HGETALL", key)
        records: dict[str, bytes] = {}
        for field, value in zip(found[::2], found[1::2], strict=True):
            shown = field.decode(errors="replace")
            try:
                records[shown] = self._seal.read(_record(name, shown), value)
            except ValueError as error:
                _log.warning("the record %r of %r is refused: %s", shown[:80], name[:80], error)
        return records

    # --- channels ----------------------------------------------------------------------------

    def on_open(self, kind: str, handler: OnOpen) -> None:
        """Serve channels of one kind that are opened to a name of this worker.

        Args:
            kind: what they are for.
            handler: called with the name, the hello and the channel, which is closed when the
                handler returns.
        """
        self._channels.on_open(kind, handler)

    async def open(self, name: str, kind: str, hello: bytes = b"") -> Channel:
        """Open a channel to the worker that has a name, which may be this one.

        It ends when one side closes it, when the other worker dies or releases the name, and when
        Redis cannot be reached.

        Raises:
            NoOwner: no worker has it.
            OwnerGone: the worker that had it is dead; it can be claimed.
            BusUnreachable: Redis cannot be reached.
            BusError: the worker does not keep up.
        """
        await self.confirm()
        return await self._channels.open(name, _digest(name), kind, hello)

    # --- heartbeat ---------------------------------------------------------------------------

    def check_redis(self) -> None:
        """A command failed: find out at once whether Redis can be reached."""
        self._soon.set()

    async def _beat_on(self) -> None:
        retry = _RETRY[0]
        wait = self._every
        while True:
            try:
                async with asyncio.timeout(wait):
                    await self._soon.wait()
            except TimeoutError:
                pass
            else:
                self._soon.clear()
            try:
                await self._beat()
            except BusUnreachable as error:
                if self._commands.unreachable is None:
                    _log.warning("%s; other workers cannot be reached", error)
                    self._channels.end_all(error)
                self._commands.unreachable = error
                await asyncio.sleep(retry)
                wait, retry = 0, min(retry * 2, _RETRY[1])
            except BusError as error:
                _log.warning("the heartbeat failed: %s", error)
                wait = self._every
            else:
                wait, retry = self._every, _RETRY[0]

    async def _beat(self) -> None:
        """Renew this worker, and check which others are alive.

        Raises:
            BusUnreachable: Redis cannot be reached.
        """
        async with self._renewing:
            await self._renew()

    async def _renew(self) -> None:
        loop = asyncio.get_running_loop()
        began = time.clock_gettime(_CLOCK)  # before Redis counts, so it never has less time left
        peers = list(self._channels.peers)
        expiry = int(self._lease * 1000)
        alive = self._commands.run(BEAT, self.worker, expiry, anyway=True)
        others = [
            self._commands.command("EXISTS", self._commands.key("alive", peer), anyway=True)
            for peer in peers
        ]
        if not await alive and self._begun:
            self._forgotten = True
            self._settled_at = loop.time() + self._lease + _RETRY[1]
            self._channels.end_all(BusError("Redis had lost what was on its way"))
        for peer, exists in zip(peers, others, strict=True):
            if not await exists:
                self._channels.end_peer(peer)
        if self._commands.unreachable is not None:
            self._commands.unreachable = None
            _log.warning("Redis at %s can be reached again", self._commands.where)
        self._channels.ping_peers(_PATIENCE * self._lease)
        self._channels.reset_peers()
        leases = list(self._leases.values())
        due = [each for each in leases if self._forgotten or each.refresh_at <= loop.time()]
        await self._refresh(due)
        self._forgotten, self._renewed_at = False, began


def _record(name: str, field: str) -> str:
    return f"{_digest(name)} {field}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
