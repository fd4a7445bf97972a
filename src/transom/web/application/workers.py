"""The other workers of a web application, through the bus: see `WebViews(bus=...)`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from transom.background import shared_task
from transom.bus import Bus
from transom.bus.channels import OnOpen
from transom.errors import BusError, ConnectionClosed, OwnerGone, UsageError
from transom.web.application.remote_host import RemoteHost

HOST_CHANNEL = "web-host"
"""The kind of channels to a user's Host on another worker."""

_KEEP_RECORDS = 30 * 86400.0  # seconds that records are stored after a user's last visit


class Workers:
    """The bus, which is entered on first use, and the Hosts on other workers.

    `bus` is a bus or its URL, None: this worker is alone. `secret` is the application's: another
    application on the same Redis has other users. `on_open` handles the channels that other workers
    open, by kind.

    Raises:
        UsageError: the bus cannot be used, or not without a secret.
    """

    def __init__(
        self, bus: str | Bus | None, secret: str | None, on_open: Mapping[str, OnOpen]
    ) -> None:
        if isinstance(bus, str):
            _made(bus, secret)  # so that a URL that cannot be used is refused at once
            if secret is None:
                raise UsageError(
                    "WebViews(bus=...) with a URL needs Sandbox(secret=...), which keeps the users "
                    "of applications on one Redis apart"
                )
        elif bus is not None and secret is not None and not bus.has_secret:
            raise UsageError("The bus needs a secret, too: Bus(url, secret=...)")
        self._given = bus
        self._secret = secret
        self._on_open = on_open
        self._entering: asyncio.Task[Bus] | None = None
        self._ended = False
        self._remote: dict[str, RemoteHost] = {}

    @property
    def alone(self) -> bool:
        """Whether there are no others."""
        return self._given is None

    async def bus(self) -> Bus:
        """The bus.

        Raises:
            BusUnreachable: Redis cannot be reached.
        """
        if self._ended or self._given is None:
            raise BusError("This worker is being shut down")
        if self._entering is None:
            # Not made in the constructor: processes that are forked after that would be one worker.
            self._entering = shared_task(self._enter(_made(self._given, self._secret)))
        return await asyncio.shield(self._entering)

    async def confirm(self) -> None:
        """See `Bus.confirm`."""
        with suppress(BusError):
            await (await self.bus()).confirm()

    async def _enter(self, bus: Bus) -> Bus:
        for kind, handler in self._on_open.items():
            bus.on_open(kind, handler)
        try:
            return await bus.__aenter__()
        except BaseException:
            self._entering = None  # so that it is retried
            raise

    def remote_host(self, user: str) -> RemoteHost | None:
        """The Host of a user on another worker, if there is a connection to it."""
        remote = self._remote.get(user)
        return None if remote is None or remote.closed else remote

    async def connect(self, user: str) -> RemoteHost:
        """Connect to the Host of a user on another worker.

        Raises:
            BusError: that worker cannot be reached.
        """
        bus = await self.bus()
        remote = RemoteHost(await bus.open(f"user:{user}", HOST_CHANNEL))
        try:
            await remote.connect()
        except ConnectionClosed as error:
            raise OwnerGone(str(error)) from error
        self._remote = {name: each for name, each in self._remote.items() if not each.closed}
        self._remote[user] = remote
        return remote

    async def close_remote_hosts(self) -> None:
        """Close the connections to other workers' Hosts."""
        remote, self._remote = self._remote, {}
        await asyncio.gather(*(each.aclose() for each in remote.values()))

    async def aclose(self) -> None:
        """Leave the bus."""
        self._ended = True
        if self._entering is not None:
            entering, self._entering = self._entering, None
            with suppress(BusError):
                await (await entering).__aexit__()


def _made(bus: str | Bus, secret: str | None) -> Bus:
    if isinstance(bus, Bus):
        return bus
    return Bus(bus, secret=secret, keep_records=_KEEP_RECORDS)
