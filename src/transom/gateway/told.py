"""What a client has told its servers, so that one which starts anew can be told again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from msgspec import Raw

from transom.errors import ProtocolError
from transom.gateway.adding import members, with_ui
from transom.gateway.leg import Leg
from transom.protocol import wire

__all__ = ["Told"]


class Told:
    """What a client said about itself and what it asked for to last."""

    def __init__(self) -> None:
        self.initialize: bytes | None = None
        """The params of its `initialize`, as the servers get them."""
        self.initialized = False
        self.envelope: Mapping[str, Raw] | None = None
        """What a 2026-07-28 client says about itself with each request."""
        self.log_level: bytes | None = None
        self.subscriptions: dict[str, bytes] = {}
        """By resource: the params it subscribed with."""
        self.listening: dict[wire.RequestId, bytes] = {}
        """By id: the messages that opened 2026-07-28 subscriptions."""

    @property
    def capabilities(self) -> Mapping[str, Raw]:
        """What the client can do."""
        if self.envelope is not None:
            return members(self.envelope.get("io.modelcontextprotocol/clientCapabilities"))
        return members(members(self.initialize).get("capabilities"))

    def greet(self, params: Raw | None) -> bytes:
        """Take note of an `initialize`; its params for the servers."""
        given = members(params)
        given["capabilities"] = with_ui(given.get("capabilities"))
        self.initialize = wire.encode(given)
        return self.initialize

    async def again(self, leg: Leg) -> None:
        """Tell a server that was started anew.

        Raises:
            ProtocolError: it does not let itself be initialised.
            ConnectionClosed: it is gone again.
        """
        if self.initialize is not None:
            await leg.ask("initialize", self.initialize)
            if self.initialized:
                leg.post(wire.encode_notification("notifications/initialized", None))
        # What it does not want any more is no reason to do without it.
        if self.log_level is not None:
            with suppress(ProtocolError):
                await leg.ask("logging/setLevel", self.log_level)
        for params in list(self.subscriptions.values()):
            with suppress(ProtocolError):
                await leg.ask("resources/subscribe", params)
        for message in list(self.listening.values()):
            leg.post(message)
