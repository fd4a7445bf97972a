"""How much a View may cost its host."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

_CALL_TIMEOUT = 600.0


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a View may cost. Times are in seconds."""

    max_tools: int = 50
    """Tools of one View; the rest are left out."""
    max_pages: int = 100
    """Pages of one listing."""
    max_definition_bytes: int = 64 * 1024
    """One tool's definition with its schemas; a larger one is left out."""
    max_schema_depth: int = 32
    """Nesting of one tool's definition; a deeper one is left out."""
    max_description: int = 4096
    """Characters of a description; the rest is cut off."""
    max_result_bytes: int = 10 * 1024 * 1024
    """One result of a View's tool."""
    max_message_bytes: int = 16 * 1024 * 1024
    """Any one message."""
    max_message_depth: int = 100
    """Nesting of any one message. A call's arguments may have two levels less."""
    max_message_containers: int = 250_000
    """Arrays and objects of any one message."""
    call_timeout: float | Mapping[str, float] = _CALL_TIMEOUT
    """A call of a View's tool, or the time between two of its progress notices: for all tools, or
    by tool (`"*"` for the others). It is long because a user may have to decide something. A View
    that is gone ends its calls at once."""
    max_call_time: float = 3600.0
    """A call of a View's tool, whatever progress it claims to make."""
    list_timeout: float = 10.0
    """Listing a View's tools, all pages together."""
    fresh_timeout: float = 0.5
    """How long a host waits for a View's list before it shows the last one."""
    relist_interval: float = 1.0
    """The least time between two listings of one View, on average: five may come at once."""
    initialize_timeout: float = 30.0
    """How long a View may take to initialise; with a `Host`, as long as its `open_timeout` says."""
    unresponsive_after: float = 5.0
    """How long a View may leave calls and pings unanswered before it counts as busy."""
    gone_after: float = 60.0
    """How long a View may be busy before its tools leave the list, until it answers."""
    teardown_timeout: float = 2.0
    """How long a View may take to clean up before it is closed."""
    max_requests: int = 256
    """Requests of one View that are being worked on."""
    max_queued: int = 256
    """Notifications of one View that wait for the host's handlers."""
    max_snapshot_bytes: int = 8192
    """What a look at a View's page returns; the rest is counted."""
    drive_timeout: float = 15.0
    """One answer of a View's page to a look or an act."""
    drive_interval: float = 0.1
    """The least time between two looks at, or acts on, one View, on average: twenty may come at
    once."""
    max_waiting_acts: int = 16
    """Acts on one View that wait for each other or for its user; more are refused."""
    max_files: int = 100
    """Files that a View may offer to save with one request."""
    max_live_views: int = 32
    """Live Views of one host; the least recently used one is closed to make room."""

    def call_timeout_of(self, tool: str) -> float:
        """The `call_timeout` of one tool of a View."""
        given = self.call_timeout
        if isinstance(given, Mapping):
            return given.get(tool, given.get("*", _CALL_TIMEOUT))
        return given
