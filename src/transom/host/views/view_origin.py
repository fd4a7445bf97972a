"""The call that a View shows."""

from __future__ import annotations

from typing import Any

import msgspec

from transom.types import Tool


class ViewOrigin(msgspec.Struct, eq=False):
    """The call that a View shows: all that is needed to reopen it."""

    server: str
    uri: str
    tool: Tool
    arguments: dict[str, Any]
    complete: bool = True
    """False: the arguments are still being written, and these are those so far."""
    result: bytes | None = None
    """The call's result as JSON, once there is one."""
    cancelled: str | None = None
    """Why there will be no result."""
    reused: bool = False
    """Whether the View was open before."""

    @property
    def ended(self) -> bool:
        """Whether the call has a result, or will have none."""
        return self.result is not None or self.cancelled is not None
