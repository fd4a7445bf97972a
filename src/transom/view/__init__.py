"""The View's side of MCP Apps: an App, its tools, and its connection to a host.

`App` itself is `transom.App`; here are the types of its arguments and results.
"""

from transom.lazy import load_on_use

TYPE_CHECKING = False  # type checkers take it for True; importing it would cost more than all else
if TYPE_CHECKING:
    from transom.protocol.messages import ListResourcesResult, Verdict
    from transom.protocol.peer import Progress
    from transom.view.app import Content
    from transom.view.connection import Params, RequestOptions
    from transom.view.tools import SchemaSource, TaskSupport, ToolChanges, ToolOptions

__all__ = [
    "Content",
    "ListResourcesResult",
    "Params",
    "Progress",
    "RequestOptions",
    "SchemaSource",
    "TaskSupport",
    "ToolChanges",
    "ToolOptions",
    "Verdict",
]

if not TYPE_CHECKING:  # or every name would be one to them
    __getattr__, __dir__ = load_on_use(
        __name__,
        {
            "transom.protocol.messages": "ListResourcesResult Verdict",
            "transom.protocol.peer": "Progress",
            ".app": "Content",
            ".connection": "Params RequestOptions",
            ".tools": "SchemaSource TaskSupport ToolChanges ToolOptions",
        },
    )
