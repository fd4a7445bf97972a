"""The host's side: one `Bridge` per View, and the `Host` over many servers and Views.

Every documented name can be imported from here, wherever it is defined. Each is loaded when it is
first used.
"""

from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for True; importing it would cost more than all else
if TYPE_CHECKING:
    from transom.host.audit import AuditEvent, AuditFilter, AuditLog, Redact, Sink, read_audit
    from transom.host.bridge import Bridge
    from transom.host.host import AttachesToHost, Host, ToolHost
    from transom.host.open_views import HostRecords, ShownCall
    from transom.host.page import Page
    from transom.host.policy import (
        Allow,
        AllowAlways,
        ApprovalRequest,
        Approve,
        Deny,
        Limits,
        Policy,
    )
    from transom.host.renderers import InProcessRenderer, MakeApp, Renderer, TakesScreenshots
    from transom.host.surface import ToolList
    from transom.host.view import ModelContext, View
    from transom.host.view_requests import Download

__all__ = [
    "Allow",
    "AllowAlways",
    "ApprovalRequest",
    "Approve",
    "AttachesToHost",
    "AuditEvent",
    "AuditFilter",
    "AuditLog",
    "Bridge",
    "Deny",
    "Download",
    "Host",
    "HostRecords",
    "InProcessRenderer",
    "Limits",
    "MakeApp",
    "ModelContext",
    "Page",
    "Policy",
    "Redact",
    "Renderer",
    "ShownCall",
    "Sink",
    "TakesScreenshots",
    "ToolHost",
    "ToolList",
    "View",
    "read_audit",
]

_HOMES = {
    "audit": ("AuditEvent", "AuditFilter", "AuditLog", "Redact", "Sink", "read_audit"),
    "bridge": ("Bridge",),
    "host": ("AttachesToHost", "Host", "ToolHost"),
    "open_views": ("HostRecords", "ShownCall"),
    "page": ("Page",),
    "policy": ("Allow", "AllowAlways", "ApprovalRequest", "Approve", "Deny", "Limits", "Policy"),
    "renderers": ("InProcessRenderer", "MakeApp", "Renderer", "TakesScreenshots"),
    "surface": ("ToolList",),
    "view": ("ModelContext", "View"),
    "view_requests": ("Download",),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            value: object = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
