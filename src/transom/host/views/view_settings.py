"""How a server's tools open Views, and what a host gives to each View."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import msgspec

from transom.errors import UsageError
from transom.host.asking.approvals import Approvals
from transom.host.audit import AuditLog
from transom.host.limits import Limits
from transom.host.tools.refresh import Refresh
from transom.host.views.tasks import TaskServers
from transom.host.views.view_context import SharedContext
from transom.protocol.messages import REUSE
from transom.traffic import TrafficListener
from transom.types import Implementation, Tool

Opening = Literal["always", "ask", "never"]
"""Whether a call of a tool that links a View opens it, or the user is asked first."""

Reuse = Literal["never", "arguments", "always"]
"""Whether a call uses the tool's View that is open: never, for the same arguments, or always."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewEnvironment:
    """What a host gives to each of its Views."""

    limits: Limits
    audit: AuditLog
    approvals: Approvals
    tasks: TaskServers
    stale: set[Refresh]
    pulled: set[Refresh]
    """Lists with lazy schemas, which are fetched again at each listing."""
    host_info: Implementation
    context: SharedContext
    fresh: bool
    """Whether each listing for a model lists every View again."""
    open_timeout: float
    max_page_bytes: int
    max_context_bytes: int
    traffic: TrafficListener | None


class ViewSettings(msgspec.Struct, frozen=True):
    """How a server's tools open Views: for all of them, or by tool (`"*"` for all others)."""

    open: Opening | Mapping[str, Opening] = "always"
    reuse: Reuse | Mapping[str, Reuse] | None = None

    def check(self) -> None:
        """Raise a UsageError that names an invalid value."""
        for word, given, known in (("open", self.open, Opening), ("reuse", self.reuse, Reuse)):
            values = given.values() if isinstance(given, Mapping) else [given or "never"]
            for value in values:
                if value not in get_args(known):
                    allowed = ", ".join(get_args(known))
                    raise UsageError(f"{word}_views is one of {allowed}, not {value!r}")

    @property
    def may_open(self) -> bool:
        """Whether any tool may open a View."""
        if isinstance(self.open, Mapping):
            return "*" not in self.open or set(self.open.values()) != {"never"}
        return self.open != "never"

    def opening(self, tool: Tool) -> Opening:
        """Whether a call of this tool opens its View."""
        return _for_tool(self.open, tool.name) or "always"

    def reuse_of(self, tool: Tool) -> Reuse:
        """When a call of this tool reuses an open View: as set here, or as the tool declares."""
        declared: Any = (tool.meta or {}).get(REUSE)
        given = _for_tool(self.reuse, tool.name)
        return given or (declared if declared in ("arguments", "always") else "never")


def _for_tool(setting: str | Mapping[str, Any] | None, tool: str) -> Any:
    return setting.get(tool, setting.get("*")) if isinstance(setting, Mapping) else setting
