"""The host's side: one `Bridge` per View, and the `Host` over many servers and Views.

Every documented name can be imported from here, wherever it is defined. Each is loaded when it is
first used.
"""

from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for True; importing it would cost more than all else
if TYPE_CHECKING:
    from transom.host.audit import AuditEvent, AuditFilter, AuditLog, Redact, Sink, read_audit
    from transom.host.bridge import Bridge
    from transom.host.downloads import Download
    from transom.host.host import AttachesToHost, Host
    from transom.host.limits import Limits
    from transom.host.liveness import ViewState
    from transom.host.open_views import HostRecords, ShownCall
    from transom.host.policy import Allow, AllowAlways, ApprovalRequest, Approve, Deny, Policy
    from transom.host.renderers import InProcessRenderer, MakeApp, Renderer, TakesScreenshots
    from transom.host.tool_host import ToolHost
    from transom.host.tool_list import ToolList
    from transom.host.ui_resource import UIResource
    from transom.host.view import ModelContext, View

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
    "Policy",
    "Redact",
    "Renderer",
    "ShownCall",
    "Sink",
    "TakesScreenshots",
    "ToolHost",
    "ToolList",
    "UIResource",
    "View",
    "ViewState",
    "read_audit",
]

_HOMES = {
    "audit": ("AuditEvent", "AuditFilter", "AuditLog", "Redact", "Sink", "read_audit"),
    "bridge": ("Bridge",),
    "downloads": ("Download",),
    "host": ("AttachesToHost", "Host"),
    "limits": ("Limits",),
    "liveness": ("ViewState",),
    "open_views": ("HostRecords", "ShownCall"),
    "ui_resource": ("UIResource",),
    "policy": ("Allow", "AllowAlways", "ApprovalRequest", "Approve", "Deny", "Policy"),
    "renderers": ("InProcessRenderer", "MakeApp", "Renderer", "TakesScreenshots"),
    "tool_host": ("ToolHost",),
    "tool_list": ("ToolList",),
    "view": ("ModelContext", "View"),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            value: object = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
