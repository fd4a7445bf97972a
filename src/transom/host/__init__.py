"""The host's side: one `Bridge` per View, and the `Host` over many servers and Views.

Every documented name can be imported from here, wherever it is defined. Each is loaded when it is
first used.
"""

from transom.lazy import load_on_use

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

__getattr__, __dir__ = load_on_use(
    __name__,
    {
        "transom.host.audit": "AuditEvent AuditFilter AuditLog Redact Sink read_audit",
        "transom.host.bridge": "Bridge",
        "transom.host.downloads": "Download",
        "transom.host.host": "AttachesToHost Host",
        "transom.host.limits": "Limits",
        "transom.host.liveness": "ViewState",
        "transom.host.open_views": "HostRecords ShownCall",
        "transom.host.policy": "Allow AllowAlways ApprovalRequest Approve Deny Policy",
        "transom.host.renderers": "InProcessRenderer MakeApp Renderer TakesScreenshots",
        "transom.host.tool_host": "ToolHost",
        "transom.host.tool_list": "ToolList",
        "transom.host.ui_resource": "UIResource",
        "transom.host.view": "ModelContext View",
    },
)
