"""The host's side: one `Bridge` per View, and the `Host` over many servers and Views.

Every documented name can be imported from here, wherever it is defined. Each is loaded when it is
first used.
"""

from transom.lazy import load_on_use

TYPE_CHECKING = False  # type checkers take it for True; importing it would cost more than all else
if TYPE_CHECKING:
    from transom.host.audit import (
        AuditEvent,
        AuditFilter,
        AuditKind,
        AuditLog,
        Redact,
        Sink,
        read_audit,
    )
    from transom.host.bridge import Bridge, BridgeListener
    from transom.host.downloads import Download
    from transom.host.elicit_form import ElicitField, FieldFormat, FieldKind, FieldOption
    from transom.host.elicitation import ElicitRequest
    from transom.host.grants import GivenGrant, Grant, Grantee
    from transom.host.host import AttachesToHost, Host
    from transom.host.limits import Limits
    from transom.host.liveness import ViewState
    from transom.host.model_context import ModelContext
    from transom.host.open_views import HostRecords, ShownCall, ViewRecord
    from transom.host.policy import (
        Allow,
        AllowAlways,
        ApprovalRequest,
        Approve,
        Decision,
        Deny,
        Looks,
        Policy,
    )
    from transom.host.renderers import (
        DrivesViews,
        InProcessRenderer,
        MakeApp,
        NoPlace,
        Renderer,
        TakesScreenshots,
    )
    from transom.host.surface import Naming
    from transom.host.terminal import ask_in_terminal
    from transom.host.tool_host import ToolHost
    from transom.host.tool_list import ModelApi, ToolList
    from transom.host.tool_visibility import ViewCalls
    from transom.host.ui_resource import UIResource
    from transom.host.view import View
    from transom.host.view_origin import ViewOrigin
    from transom.host.view_server import ViewServer
    from transom.host.view_settings import Opening, Reuse
    from transom.protocol.lifecycle import LifecycleState
    from transom.protocol.messages import ListTasksResult, ToolOutcome
    from transom.protocol.peer import Progress
    from transom.queues import OnProgress

__all__ = [
    "Allow",
    "AllowAlways",
    "ApprovalRequest",
    "Approve",
    "AttachesToHost",
    "AuditEvent",
    "AuditFilter",
    "AuditKind",
    "AuditLog",
    "Bridge",
    "BridgeListener",
    "Decision",
    "Deny",
    "Download",
    "DrivesViews",
    "ElicitField",
    "ElicitRequest",
    "FieldFormat",
    "FieldKind",
    "FieldOption",
    "GivenGrant",
    "Grant",
    "Grantee",
    "Host",
    "HostRecords",
    "InProcessRenderer",
    "LifecycleState",
    "Limits",
    "ListTasksResult",
    "Looks",
    "MakeApp",
    "ModelApi",
    "ModelContext",
    "Naming",
    "NoPlace",
    "OnProgress",
    "Opening",
    "Policy",
    "Progress",
    "Redact",
    "Renderer",
    "Reuse",
    "ShownCall",
    "Sink",
    "TakesScreenshots",
    "ToolHost",
    "ToolList",
    "ToolOutcome",
    "UIResource",
    "View",
    "ViewCalls",
    "ViewOrigin",
    "ViewRecord",
    "ViewServer",
    "ViewState",
    "ask_in_terminal",
    "read_audit",
]

__getattr__, __dir__ = load_on_use(
    __name__,
    {
        ".audit": "AuditEvent AuditFilter AuditKind AuditLog Redact Sink read_audit",
        ".bridge": "Bridge BridgeListener",
        ".downloads": "Download",
        ".grants": "GivenGrant Grant Grantee",
        ".elicit_form": "ElicitField FieldFormat FieldKind FieldOption",
        ".elicitation": "ElicitRequest",
        ".host": "AttachesToHost Host",
        ".limits": "Limits",
        ".liveness": "ViewState",
        ".open_views": "HostRecords ShownCall ViewRecord",
        ".policy": "Allow AllowAlways ApprovalRequest Approve Decision Deny Looks Policy",
        ".renderers": "DrivesViews InProcessRenderer MakeApp NoPlace Renderer TakesScreenshots",
        ".surface": "Naming",
        ".terminal": "ask_in_terminal",
        ".tool_host": "ToolHost",
        ".tool_list": "ModelApi ToolList",
        ".tool_visibility": "ViewCalls",
        ".ui_resource": "UIResource",
        ".model_context": "ModelContext",
        ".view": "View",
        ".view_origin": "ViewOrigin",
        ".view_server": "ViewServer",
        ".view_settings": "Opening Reuse",
        "transom.protocol.lifecycle": "LifecycleState",
        "transom.protocol.messages": "ListTasksResult ToolOutcome",
        "transom.protocol.peer": "Progress",
        "transom.queues": "OnProgress",
    },
)
