"""Facts about one server, collected once; every rule is a pure function of them.

1. Values are kept as the server sent them (`raw`): a rule is there to judge their shape.
2. What could not be learned is `None` or carries a `problem`; nothing is guessed.
3. A server is visited three times, as three clients: one that shows Views (`apps`), one that has
   never heard of them (`text`), and one that names the extension but takes no type (`no_mime`).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from transom.check.facts import ListedTool, Page
from transom.json_values import JsonObject

__all__ = [
    "Call",
    "CallKind",
    "GeneratedPolicy",
    "HostObservation",
    "Listing",
    "RpcFault",
    "Snapshot",
    "ViewCall",
    "ViewObservation",
    "ViewToolFault",
    "Violation",
    "VisibilityDecision",
    "Visit",
]

CallKind = Literal["example", "again", "invalid"]


class Listing(msgspec.Struct, frozen=True):
    """What a list method answered, all pages; `problem` says why it is missing or cut short."""

    items: tuple[JsonObject, ...] = ()
    problem: str | None = None


class Visit(msgspec.Struct, frozen=True):
    """One connection to the server, as one kind of client."""

    advertised: JsonObject
    handshake: JsonObject | None = None
    tools: tuple[ListedTool, ...] = ()
    tools_problem: str | None = None
    resources: Listing = Listing()
    templates: Listing = Listing()

    def tool(self, name: str) -> ListedTool | None:
        """The listed tool of that name."""
        return next((tool for tool in self.tools if tool.name == name), None)


class RpcFault(msgspec.Struct, frozen=True):
    """A JSON-RPC error the server answered with."""

    code: int
    message: str


class Call(msgspec.Struct, frozen=True):
    """One `tools/call` and what came of it: a `result`, a `fault`, or neither and a `problem`."""

    tool: str
    arguments: JsonObject
    client: Literal["apps", "text"] = "apps"
    kind: CallKind = "example"
    result: JsonObject | None = None
    fault: RpcFault | None = None
    problem: str | None = None


class Violation(msgspec.Struct, frozen=True):
    """Something the browser blocked: the CSP directive and the origin it was for."""

    directive: str
    origin: str


class ViewCall(msgspec.Struct, frozen=True):
    """A server tool a View asked for, and why the host refused it (`None`: it did not)."""

    tool: str
    refusal: str | None = None


class ViewToolFault(msgspec.Struct, frozen=True):
    """What a View's own tool answered to arguments that do not fit: a JSON-RPC code or `None`."""

    tool: str
    code: int | None = None


class ViewObservation(msgspec.Struct, frozen=True):
    """One rendering of one View in a browser: one cell of the host and theme matrix."""

    uri: str
    waited: float
    host: str = "transom"
    theme: str = "light"
    initialized: bool = True
    missed_result: bool = False
    """A tool-result sent right after `initialized` had no effect, or the SDK warned of it."""
    uncaught: tuple[str, ...] = ()
    violations: tuple[Violation, ...] = ()
    requests: tuple[str, ...] = ()
    """Origins the View loaded from or connected to."""
    calls: tuple[ViewCall, ...] = ()
    declared_tools: bool = False
    tools: tuple[str, ...] | None = None
    """What the View's `tools/list` answered; `None` when it did not answer with a list."""
    list_fault: int | None = None
    tool_faults: tuple[ViewToolFault, ...] = ()
    denied_failures: tuple[tuple[str, str], ...] = ()
    """Permissions that were denied, each with the uncaught error that followed."""
    cors_refusals: tuple[str, ...] = ()
    """Declared connect origins whose server refused the View's origin."""
    closed_calls: tuple[tuple[str, bool], ...] = ()
    """Tools called after the View was closed, and whether the call failed as it must."""


class VisibilityDecision(msgspec.Struct, frozen=True):
    """What a host decided about one tool: shown to the model, or called by a View."""

    tool: str
    visibility: tuple[str, ...]
    by: Literal["model", "view", "other server's view"]
    allowed: bool


class GeneratedPolicy(msgspec.Struct, frozen=True):
    """The CSP a host made from what a resource declared."""

    uri: str
    declared: JsonObject
    policy: str


class HostObservation(msgspec.Struct, frozen=True):
    """What our own host did: the subject of the host rules B17, P17 and V8."""

    decisions: tuple[VisibilityDecision, ...] | None = None
    policies: tuple[GeneratedPolicy, ...] | None = None
    closed_view_calls: tuple[tuple[str, bool], ...] | None = None
    """Tools called after their View was closed, and whether the call failed as it must."""


class Snapshot(msgspec.Struct, frozen=True):
    """Everything the rules may look at."""

    apps: Visit
    text: Visit | None = None
    text_problem: str | None = None
    no_mime: Visit | None = None
    no_mime_problem: str | None = None
    pages: tuple[Page, ...] = ()
    calls: tuple[Call, ...] | None = None
    """`None` when calling was not allowed."""
    uncalled: tuple[tuple[str, str], ...] = ()
    """Tools that were not called, each with the reason."""
    views: tuple[ViewObservation, ...] | None = None
    """`None` when nothing was rendered."""
    views_problem: str | None = None
    """Why nothing could be rendered, when it was asked for."""
    host: HostObservation = HostObservation()
    server_host: str | None = None
    """The host name of the server, when it was reached by URL."""
    dev: bool = False

    @property
    def tools(self) -> tuple[ListedTool, ...]:
        """The tools as a client with MCP Apps sees them."""
        return self.apps.tools

    def calls_of(self, tool: ListedTool, client: str = "apps", kind: str = "example") -> list[Call]:
        """The calls of `tool` made by that client for that purpose."""
        return [
            call
            for call in self.calls or ()
            if call.tool == tool.name and call.client == client and call.kind == kind
        ]
