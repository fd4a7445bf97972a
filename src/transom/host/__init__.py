"""The host's side: one `Bridge` per View, and the `Host` over many servers and Views.

Every documented name can be imported from here, wherever it is defined. Each is loaded when it is
first used.
"""

from transom.lazy import load_on_use

TYPE_CHECKING = False  # type checkers take it for True; importing it would cost more than all else
if TYPE_CHECKING:
    from transom.host.asking.elicit_form import ElicitField, FieldFormat, FieldKind, FieldOption
    from transom.host.asking.elicitation import ElicitRequest
    from transom.host.asking.grants import GivenGrant, Grant, Grantee
    from transom.host.asking.policy import (
        Allow,
        AllowAlways,
        ApprovalRequest,
        Approve,
        Decision,
        Deny,
        Looks,
        Policy,
    )
    from transom.host.asking.terminal import ask_in_terminal
    from transom.host.audit import (
        AuditDetails,
        AuditEvent,
        AuditFilter,
        AuditKind,
        AuditLog,
        Redact,
        Sink,
        read_audit,
    )
    from transom.host.host import AttachesToHost, Host
    from transom.host.limits import Limits
    from transom.host.open_views import HostRecords, ShownCall, ViewRecord
    from transom.host.tool_host import HostCallOptions, ToolHost
    from transom.host.tools.surface import Naming
    from transom.host.tools.tool_list import ModelApi, ToolList
    from transom.host.tools.tool_texts import Provenance
    from transom.host.tools.tool_visibility import ViewCalls
    from transom.host.views.bridge import Bridge, BridgeListener
    from transom.host.views.downloads import Download
    from transom.host.views.liveness import ViewState
    from transom.host.views.model_context import ModelContext
    from transom.host.views.renderers import (
        DrivesViews,
        InProcessRenderer,
        MakeApp,
        NoPlace,
        Renderer,
        TakesScreenshots,
    )
    from transom.host.views.shown_calls import ViewOrigin
    from transom.host.views.ui_resource import UIResource
    from transom.host.views.view import View
    from transom.host.views.view_server import ViewServer
    from transom.host.views.view_settings import Opening, Reuse
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
    "AuditDetails",
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
    "HostCallOptions",
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
    "Provenance",
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

if not TYPE_CHECKING:  # or every name would be one to them
    __getattr__, __dir__ = load_on_use(
        __name__,
        {
            ".audit": "AuditDetails AuditEvent AuditFilter AuditKind AuditLog Redact Sink read_audit",  # noqa: E501
            ".views.bridge": "Bridge BridgeListener",
            ".views.downloads": "Download",
            ".asking.grants": "GivenGrant Grant Grantee",
            ".asking.elicit_form": "ElicitField FieldFormat FieldKind FieldOption",
            ".asking.elicitation": "ElicitRequest",
            ".host": "AttachesToHost Host",
            ".limits": "Limits",
            ".views.liveness": "ViewState",
            ".open_views": "HostRecords ShownCall ViewRecord",
            ".asking.policy": "Allow AllowAlways ApprovalRequest Approve Decision Deny Looks Policy",  # noqa: E501
            ".views.renderers": "DrivesViews InProcessRenderer MakeApp NoPlace Renderer TakesScreenshots",  # noqa: E501
            ".tools.surface": "Naming",
            ".asking.terminal": "ask_in_terminal",
            ".tool_host": "HostCallOptions ToolHost",
            ".tools.tool_list": "ModelApi ToolList",
            ".tools.tool_texts": "Provenance",
            ".tools.tool_visibility": "ViewCalls",
            ".views.ui_resource": "UIResource",
            ".views.model_context": "ModelContext",
            ".views.view": "View",
            ".views.shown_calls": "ViewOrigin",
            ".views.view_server": "ViewServer",
            ".views.view_settings": "Opening Reuse",
            "transom.protocol.lifecycle": "LifecycleState",
            "transom.protocol.messages": "ListTasksResult ToolOutcome",
            "transom.protocol.peer": "Progress",
            "transom.queues": "OnProgress",
        },
    )
