"""What the command line of a gateway says."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from transom.gateway.approval import Approval
    from transom.host.surface import Style
    from transom.web.csp import CspMode

__all__ = ["GatewayOptions"]


class GatewayOptions(NamedTuple):
    """`transom gateway --help` explains each."""

    command: tuple[str, ...] = ()
    url: str | None = None
    config: Path | None = None
    headless: bool = False
    no_open: bool = False
    surface: Style = "both"
    approve: Approval = "client"
    csp: CspMode = "compat"
    http: str | None = None
    token: str | None = None
    max_clients: int = 100
    idle: float = 30
    verbose: bool = False
