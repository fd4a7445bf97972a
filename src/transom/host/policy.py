"""What a host allows, and whom it asks.

1. A tool with `readOnlyHint: true` runs. So does one that the user always allows, as long as its
   definition stays the same (`fingerprint`). For any other tool the approver is asked.
2. Without an approver the call is refused, with a text that says how to allow it.
3. A model sees and calls only tools whose visibility has `model`, a View only those with `app`.
   An explicit list is taken as it is: an empty one means nobody.
4. Only http, https and mailto links are opened.
5. A file gets the name a View asked for, without anything that could lead out of a folder, hide its
   type, or name a device.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast, get_args
from urllib.parse import unquote, urlsplit

import msgspec

from transom.errors import Refused, UsageError
from transom.json_values import as_object, clean
from transom.protocol.messages import REUSE, is_ours
from transom.types import Implementation, Tool

if TYPE_CHECKING:  # not needed to decide, and slow to load
    from transom.host.audit import AuditKind, AuditLog


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a View may cost. Times are in seconds."""

    max_tools: int = 50
    """Tools of one View; the rest are left out."""
    max_pages: int = 100
    """Pages of one listing."""
    max_definition_bytes: int = 64 * 1024
    """One tool's definition with its schemas; a larger one is left out."""
    max_schema_depth: int = 32
    """Nesting of one tool's definition; a deeper one is left out."""
    max_description: int = 4096
    """Characters of a description; the rest is cut off."""
    max_result_bytes: int = 10 * 1024 * 1024
    """One result of a View's tool."""
    max_message_bytes: int = 16 * 1024 * 1024
    """Any one message."""
    max_message_depth: int = 100
    """Nesting of any one message."""
    max_message_containers: int = 250_000
    """Arrays and objects of any one message."""
    call_timeout: float = 30.0
    """A call of a View's tool, or the time between two of its progress notices."""
    max_call_time: float = 600.0
    """A call of a View's tool, whatever progress it claims to make."""
    list_timeout: float = 10.0
    """Listing a View's tools, all pages together."""
    fresh_timeout: float = 0.5
    """How long a host waits for a View's list before it shows the last one."""
    fresh: bool = False
    """Whether each listing for a model lists every View again, not only those that announced a
    change or have a lazy schema.
    """
    relist_interval: float = 1.0
    """The least time between two listings of one View, on average: five may come at once."""
    initialize_timeout: float = 30.0
    """How long a View may take to initialise."""
    unresponsive_after: float = 5.0
    """How long a View may leave calls and pings unanswered before its tools leave the list."""
    teardown_timeout: float = 2.0
    """How long a View may take to clean up before it is closed."""
    max_requests: int = 256
    """Requests of one View that are being worked on."""
    max_queued: int = 256
    """Messages queued for a View until it is initialised."""
    max_files: int = 100
    """Files that a View may offer to save with one request."""
    max_live_views: int = 32
    """Live Views of one host; the least recently used one is closed to make room."""


# --- opening Views ---------------------------------------------------------------------------

Opening = Literal["always", "ask", "never"]
"""Whether a call of a tool that links a View opens it, or the user is asked first."""

Reuse = Literal["never", "arguments", "always"]
"""Whether a call uses the tool's View that is open: never, for the same arguments, or always."""


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


# --- approval --------------------------------------------------------------------------------


class Allow(msgspec.Struct, frozen=True):
    """Yes, this once."""


class AllowAlways(msgspec.Struct, frozen=True):
    """Yes, and do not ask again while this View is open and the tool's definition is the same."""


class Deny(msgspec.Struct, frozen=True):
    """No. The model gets the reason."""

    reason: str = "The user said no"


Decision = Allow | AllowAlways | Deny


_MAX_SHOWN_NAME = 128
_MAX_SHOWN_TEXT = 1000  # characters that a user can be expected to read
_MAX_SHOWN_ARGUMENTS = 2000
_MAX_HELD = 1000  # calls of one host that wait for a user's decision

_CALLS_SERVER = " to its server"
_OPENS = " opens Views"

ViewCalls = Literal["spec", "declared"]
"""Which tools of its server a View may call: see `Policy`."""


_IN_LABEL = re.compile(r'["·]')
_MAX_LABEL_PART = 60


class Label(msgspec.Struct, frozen=True):
    """Which View, server and app tools belong to."""

    view: str
    server: str
    app: Implementation | None

    def text(self) -> str:
        """The beginning of every description."""
        who = ""
        if self.app is not None:
            name, version = _label_part(self.app.name), _label_part(self.app.version)
            who = f' · app "{name} {version}"'
        return f"⟦View {self.view} · server {self.server}{who}⟧"


def _label_part(text: str) -> str:
    return clean(_IN_LABEL.sub(" ", text[: 4 * _MAX_LABEL_PART]), _MAX_LABEL_PART)


class ApprovalRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a user is asked to allow: this tool of this View, with these arguments.

    With `by="view"` the View calls a tool of its server. With `opens` a tool of the server wants to
    open a View.
    """

    view_id: str
    """Empty with `opens`: there is no View yet."""
    server: str
    """The server whose resource the View is."""
    app: Implementation | None
    """How the View names itself. It can claim any name."""
    tool: Tool
    arguments: Mapping[str, Any]
    changed: bool = False
    """Whether the tool was always allowed before, and its definition has changed since."""
    granted: tuple[str, ...] = ()
    """The names of the View's tools that the user always allows."""
    by: Literal["model", "view"] = "model"
    """Who calls."""
    opens: bool = False
    """Whether it is about opening a View. The tool is called in any case."""
    repeated: bool = False
    """Whether `Host.approval_needed` has returned it before, for the same call."""

    @property
    def grantee(self) -> str:
        """The key of a grant: a View's tool and a tool of its server may have the same name."""
        if self.opens:
            return f"{self.server}{_OPENS}"
        return self.view_id if self.by == "model" else f"{self.view_id}{_CALLS_SERVER}"

    def shown(self) -> dict[str, Any]:
        """What to show the user, as JSON. Texts of a View or a server are cut and cleaned."""
        return {
            "tool": clean(self.tool.name, _MAX_SHOWN_NAME),
            "description": clean(self.tool.description or "", _MAX_SHOWN_TEXT),
            "arguments": self.arguments,
            "changed": self.changed,
            "granted": [clean(name, _MAX_SHOWN_NAME) for name in self.granted],
            "by": self.by,
            "opens": self.opens,
        }

    def question(self) -> str:
        """The same as one text, for user interfaces that can show only text."""
        arguments = msgspec.json.encode(self.arguments).decode()
        if len(arguments) > _MAX_SHOWN_ARGUMENTS:
            arguments = f"{arguments[:_MAX_SHOWN_ARGUMENTS]}…"
        app = "" if self.app is None else f' ("{clean(self.app.name, 60)}")'
        changed = " It has changed since you allowed it for good." if self.changed else ""
        tool, view = clean(self.tool.name, _MAX_SHOWN_NAME), f"View {self.view_id}{app}"
        whose = "The server" if self.opens else "The View"
        if self.opens:
            question = (
                f"May {tool} of server {self.server} open a View? It is called in any case, with "
                "these arguments:"
            )
        elif self.by == "model":
            question = f"May {tool} of {view}, from server {self.server}, run with these arguments?"
        else:
            question = f"May {view} call {tool} of its server {self.server} with these arguments?"
        lines = [f"{question}{changed}", arguments]
        if self.tool.description:
            description = clean(self.tool.description, _MAX_SHOWN_TEXT // 2)
            lines.append(f"{whose} describes it so: {description}")
        hints: dict[str, object] = msgspec.to_builtins(self.tool.annotations) or {}
        claims = [
            f"{hint}: {str(it).lower()}" for hint, it in hints.items() if isinstance(it, bool)
        ]
        if claims:
            lines.append(f"{whose} claims: {', '.join(claims)}")
        return "\n".join(lines)


Approve = Callable[[ApprovalRequest], Decision | Awaitable[Decision]]
"""Asks the user. May be async."""


class Grant(msgspec.Struct, frozen=True):
    """A tool that the user always allows."""

    tool: str
    by: Literal["model", "view"] = "model"
    """Who may call it: the model (a tool of the View), or the View (a tool of its server)."""


class GivenGrant(msgspec.Struct, frozen=True):
    """A grant with the definition that the user saw."""

    grantee: str
    tool: str
    registration: int | None
    fingerprint: str


class Grants:
    """What the user always allows, by View and tool, bound to the definition they saw.

    A tool that is disabled and enabled again keeps its grant. One that was removed and registered
    again is another tool: Views made with Transom number their registrations. In any other View, a
    tool that left the list and came back is another tool, unless the View reported it as disabled.
    """

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], tuple[int | None, str]] = {}
        self.on_changed: Callable[[str], object] = lambda _: None
        """Called with a View whose grants changed."""

    def give(self, grantee: str, tool: Tool) -> None:
        """Always allow `tool`, while its definition stays the same."""
        self._given[grantee, tool.name] = (tool.registration, fingerprint(tool))
        self.on_changed(grantee.removesuffix(_CALLS_SERVER))

    def covers(self, view_id: str, tool: Tool) -> bool:
        """Whether the user always allows `tool` as it is now."""
        given = self._given.get((view_id, tool.name))
        return given is not None and given == (tool.registration, fingerprint(tool))

    def outdated(self, view_id: str, tool: Tool) -> bool:
        """Whether a tool of that name was always allowed, but with another definition."""
        given = self._given.get((view_id, tool.name))
        return given is not None and given[1] != fingerprint(tool)

    def keep_only(self, view_id: str, names: Container[str]) -> None:
        """Drop the grants of tools without a registration number that left the View's list."""
        for key, (registration, _) in list(self._given.items()):
            if key[0] == view_id and registration is None and key[1] not in names:
                self._remove(view_id, key)

    def granted(self, view_id: str) -> tuple[str, ...]:
        """The names of a View's tools that the user always allows."""
        return tuple(name for view, name in self._given if view == view_id)

    def forget(self, view_id: str) -> None:
        """Drop all grants of a View that has closed."""
        for grant in self.of(view_id):
            self.withdraw(view_id, grant)

    def forget_server(self, server: str) -> None:
        """Drop the grants to open Views of a server that is gone."""
        for key in [key for key in self._given if key[0] == f"{server}{_OPENS}"]:
            del self._given[key]

    def of(self, view_id: str) -> list[Grant]:
        """All grants of a View."""
        grantees: dict[str, Literal["model", "view"]]
        grantees = {view_id: "model", f"{view_id}{_CALLS_SERVER}": "view"}
        return [Grant(name, grantees[owner]) for owner, name in self._given if owner in grantees]

    def withdraw(self, view_id: str, grant: Grant) -> bool:
        """Ask again before that tool runs; False if it had no grant."""
        grantee = view_id if grant.by == "model" else f"{view_id}{_CALLS_SERVER}"
        return self._remove(view_id, (grantee, grant.tool))

    def records(self) -> list[GivenGrant]:
        """All grants, for `restore`."""
        return [GivenGrant(*key, *given) for key, given in self._given.items()]

    def restore(self, grants: Iterable[GivenGrant]) -> None:
        """Take over grants that the user gave before."""
        for each in grants:
            self._given[each.grantee, each.tool] = each.registration, each.fingerprint

    def _remove(self, view_id: str, key: tuple[str, str]) -> bool:
        given = self._given.pop(key, None)
        if given is not None:
            self.on_changed(view_id)
        return given is not None


class Policy:
    """Who may call a View's tools. Give `approve` to ask the user; it may be async.

    Args:
        approve: takes an `ApprovalRequest`, returns `Allow()`, `AllowAlways()` or `Deny(reason)`.
        read_only_runs: whether a tool that is declared read-only runs without asking.
        view_calls: which tools of its server a View may call. `spec`: those whose visibility has
            `app` or is not declared; `declared`: only those whose visibility has `app`.
        approve_view_calls: called like `approve`, with `by="view"`, before a View calls a tool of
            its server that is not declared read-only. None: do not ask.
        approve_opening: called like `approve`, with `opens=True`, before a View of a server with
            `open_views="ask"` opens; `approve` unless given.
    """

    def __init__(
        self,
        approve: Approve | None = None,
        *,
        read_only_runs: bool = True,
        view_calls: ViewCalls = "spec",
        approve_view_calls: Approve | None = None,
        approve_opening: Approve | None = None,
    ) -> None:
        if view_calls not in ("spec", "declared"):
            raise UsageError(f"view_calls is spec or declared, not {view_calls!r}")
        self.approve = approve
        self.read_only_runs = read_only_runs
        self.view_calls: ViewCalls = view_calls
        self.approve_view_calls = approve_view_calls
        self.approve_opening = approve_opening
        self._trusting = False

    @classmethod
    def trusting(cls) -> Policy:
        """Allow everything, for tests and for Views you wrote yourself."""
        policy = cls()
        policy._trusting = True
        return policy

    @property
    def trusts_everything(self) -> bool:
        """Whether nothing is ever refused or asked about."""
        return self._trusting

    def allows(self, view_id: str, tool: Tool, grants: Grants) -> bool:
        """Whether a call may run without asking."""
        hints = tool.annotations
        reads = self.read_only_runs and hints is not None and hints.read_only_hint is True
        return self._trusting or reads or grants.covers(view_id, tool)

    def decide(self, request: ApprovalRequest, grants: Grants) -> Allow | Deny | None:
        """Decide about a call. None: ask `approve`, and hand its answer to `settle`."""
        if self.allows(request.view_id, request.tool, grants):
            return Allow()
        if self.approve is not None:
            return None
        return Deny(
            f"{request.tool.name} of View {request.view_id} may change something and nobody can "
            "be asked. Run the host with Policy(approve=...) to ask the user, or with "
            "Policy.trusting()"
        )

    def settle(
        self, request: ApprovalRequest, answer: object, grants: Grants
    ) -> Allow | AllowAlways | Deny:
        """Take an approver's answer; `AllowAlways` becomes a grant.

        Anything but `Allow()`, `AllowAlways()` or `Deny(...)` counts as a refusal.
        """
        if isinstance(answer, AllowAlways):
            grants.give(request.grantee, request.tool)
            return answer
        if isinstance(answer, Allow | Deny):
            return answer
        kind = type(answer).__name__
        return Deny(f"The approver answered {kind}; it has to be Allow, AllowAlways or Deny")


class _Held(msgspec.Struct):
    """A call that an agent asks its user about, and the user's decision."""

    request: ApprovalRequest
    decision: Allow | AllowAlways | None = None
    edited: bool = False


class Approvals:
    """Applies a policy, stores grants, and records every decision."""

    def __init__(
        self, policy: Policy, audit: AuditLog, on_problem: Callable[[BaseException], object]
    ) -> None:
        self.grants = Grants()
        self._policy = policy
        self._audit = audit
        self._on_problem = on_problem
        self._asked_by: set[str] = set()  # Views whose call of a server's tool waits for an answer
        self._held: dict[str, _Held] = {}

    @property
    def trusting(self) -> bool:
        """Whether every tool may run."""
        return self._policy.trusts_everything

    def check(
        self, view: Label, tool: Tool, arguments: Mapping[str, Any], call_id: str | None = None
    ) -> ApprovalRequest | None:
        """None if the call may run, or else what to `obtain` approval for."""
        if self._policy.allows(view.view, tool, self.grants):
            return None
        request = ApprovalRequest(
            view_id=view.view,
            server=view.server,
            app=view.app,
            tool=tool,
            arguments=arguments,
            changed=self.grants.outdated(view.view, tool),
            granted=self.grants.granted(view.view),
        )
        verdict = self._policy.decide(request, self.grants)
        if isinstance(verdict, Deny) and call_id is None:
            self.refuse(request, verdict.reason)
        # The approver sees what will be sent, even if the caller changes its own object.
        copied = msgspec.json.decode(msgspec.json.encode(arguments))
        return msgspec.structs.replace(request, arguments=copied)

    # --- calls that an agent asks its user about -------------------------------------------------

    def hold(
        self, call_id: str, view: Label, tool: Tool, arguments: Mapping[str, Any]
    ) -> ApprovalRequest | None:
        """What an agent has to ask before this call, if the policy has no approver that asks."""
        if self._policy.approve is not None:
            return None
        request = self.check(view, tool, arguments, call_id)
        if request is None:
            return None
        held = self._held.get(call_id)
        if held is not None:
            # A graph that is resumed asks again, but gets the answer to its first question, which
            # was about the tool as it was then.
            asked = held.request
            call = asked.view_id, asked.tool.name, asked.arguments
            if call == (view.view, tool.name, request.arguments):
                return msgspec.structs.replace(asked, repeated=True)
        self._held.pop(call_id, None)
        self._held[call_id] = _Held(request)
        if len(self._held) > _MAX_HELD:
            del self._held[next(iter(self._held))]
        return request

    def decide(self, call_id: str, decision: Decision, *, edited: bool) -> None:
        """Store the user's decision about a call that is held."""
        held = self._held.get(call_id)
        if held is None:
            return
        if isinstance(decision, Deny):
            del self._held[call_id]
            self._record("approval", "denied", held.request, decision.reason)
            self._record("refusal", "refused", held.request, decision.reason)
        else:
            held.decision, held.edited = decision, edited

    def _answer_for(self, call_id: str, request: ApprovalRequest) -> Decision:
        """The user's decision about this call. It is used once."""
        held = self._held.pop(call_id, None)
        if held is None or held.decision is None:
            return Deny("The user was not asked about this call; call it again to ask them")
        asked = held.request
        same_arguments = held.edited or asked.arguments == request.arguments
        if (
            asked.view_id == request.view_id
            and same_arguments
            and same_tool(asked.tool, request.tool)
        ):
            return held.decision
        return Deny("It changed while the user was asked; call it again, and they are asked again")

    def forget(self, view_id: str) -> None:
        """Drop all decisions about a View that has closed or restarted."""
        self.grants.forget(view_id)
        for call_id, held in list(self._held.items()):
            if held.request.view_id == view_id:
                del self._held[call_id]

    @property
    def view_calls(self) -> ViewCalls:
        """Which tools of its server a View may call."""
        return self._policy.view_calls

    async def check_view_call(self, view: Label, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Check a View's call of its server's tool, and ask if needed; `Refused` if not allowed."""
        hints = tool.annotations
        harmless = hints is not None and hints.read_only_hint is True and not hints.destructive_hint
        if self._policy.approve_view_calls is None or harmless:
            return
        request = ApprovalRequest(
            view_id=view.view,
            server=view.server,
            app=view.app,
            tool=tool,
            arguments=arguments,
            by="view",
        )
        if self.grants.covers(request.grantee, tool):
            return
        if view.view in self._asked_by:  # or a View could ask without limit
            self.refuse(request, "The user has not answered what this View asked before")
        self._asked_by.add(view.view)
        try:
            changed = self.grants.outdated(request.grantee, tool)
            await self.obtain(msgspec.structs.replace(request, changed=changed))
        finally:
            self._asked_by.discard(view.view)

    async def check_opening(self, server: str, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Ask whether a server's tool may open a View; `Refused` if not."""
        policy = self._policy
        request = ApprovalRequest(
            view_id="", server=server, app=None, tool=tool, arguments=arguments, opens=True
        )
        if self.grants.covers(request.grantee, tool):
            return
        if policy.approve_opening is None and policy.approve is None:
            if policy.trusts_everything:
                return
            self.refuse(request, "Nobody can be asked: run the host with Policy(approve=...)")
        changed = self.grants.outdated(request.grantee, tool)
        await self.obtain(msgspec.structs.replace(request, changed=changed))

    async def obtain(self, request: ApprovalRequest, call_id: str | None = None) -> None:
        """Ask the approver; `Refused` unless it allows the call.

        Without an approver, the stored decision about `call_id` is used.
        """
        policy = self._policy
        approve = policy.approve if request.by == "model" else policy.approve_view_calls
        if request.opens:
            approve = policy.approve_opening or policy.approve
        try:
            answer = None if approve is None else approve(request)
            if approve is None and call_id is not None:
                answer = self._answer_for(call_id, request)
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:  # noqa: BLE001 - an approver that fails has not said yes
            self._on_problem(error)
            self._record("approval", "failed", request)
            self.refuse(request, "The approver failed, so the call was not approved")
        verdict = self._policy.settle(request, answer, self.grants)
        if isinstance(verdict, Deny):
            self._record("approval", "denied", request, verdict.reason)
            self.refuse(request, verdict.reason)
        outcome = "always" if isinstance(verdict, AllowAlways) else "allowed"
        self._record("approval", outcome, request)

    def refuse(self, request: ApprovalRequest, reason: str) -> NoReturn:
        """Record a refusal and raise it."""
        self._record("refusal", "refused", request, reason)
        if request.opens:
            raise Refused(f"{request.tool.name} opened no View: {reason}")
        raise Refused(f"{request.tool.name} of View {request.view_id}: {reason}")

    def _record(
        self, event: AuditKind, outcome: str, request: ApprovalRequest, detail: str | None = None
    ) -> None:
        self._audit.record(
            event,
            outcome,
            server=request.server,
            view=request.view_id or None,
            tool=request.tool.name,
            arguments=request.arguments,
            by=None if request.by == "model" else request.view_id,
            detail=detail,
        )


def same_tool(tool: Tool, other: Tool) -> bool:
    """Whether two definitions are of the same registration, and equal in meaning."""
    if tool == other:
        return True
    same_registration = tool.name == other.name and tool.registration == other.registration
    return same_registration and fingerprint(tool) == fingerprint(other)


_DATA_KEYWORDS = frozenset({"default", "enum", "examples"})


def fingerprint(tool: Tool) -> str:
    """A digest of the parts of a definition that a user relies on when they allow the tool.

    The values of `enum`, `default` and `examples` in its schemas are left out: they follow the
    View's data (a list of open files, of tracks) while the tool stays the same. So are Transom's
    own keys of `_meta`.
    """
    meta = {key: value for key, value in (tool.meta or {}).items() if not is_ours(key)}
    meaning = msgspec.structs.replace(
        tool,
        meta=meta or None,
        input_schema=_without_data(tool.input_schema),
        output_schema=_without_data(tool.output_schema),
    )
    return hashlib.sha256(msgspec.json.encode(meaning, order="deterministic")).hexdigest()


def _without_data(schema: Any, *, names: bool = False) -> Any:
    """The schema without its data. Below `properties`, keys are names of properties."""
    if isinstance(schema, list):
        return [_without_data(entry) for entry in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("dict[str, Any]", schema)
    return {
        key: None
        if key in _DATA_KEYWORDS and not names
        else _without_data(value, names=not names and key in _NAME_KEYWORDS)
        for key, value in members.items()
    }


_NAME_KEYWORDS = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)


# --- visibility ------------------------------------------------------------------------------


def model_may_call(tool: Tool) -> bool:
    """Whether the model may see and call it."""
    return "model" in tool.visibility


def view_may_call(tool: Tool, view_calls: ViewCalls = "spec") -> bool:
    """Whether a View of the same server may call it."""
    declared = as_object((tool.meta or {}).get("ui")).get("visibility")
    return "app" in tool.visibility and (view_calls == "spec" or isinstance(declared, list))


# --- links and files -------------------------------------------------------------------------

_SCHEMES = frozenset({"http", "https", "mailto"})
_MAX_URL = 8192


def link_problem(url: str) -> str | None:
    """Why a link must not be opened; None when it may be.

    Only absolute http, https and mailto links may. Characters that browsers drop or rewrite before
    they look at the scheme are refused with the rest of the link.
    """
    if len(url) > _MAX_URL:
        return f"the link is longer than {_MAX_URL} characters"
    if any(ord(char) <= 0x20 or ord(char) == 0x7F or char == "\\" for char in url):
        return "the link has spaces, control characters or backslashes in it"
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return "the link is not a URL"
    if parts.scheme.lower() not in _SCHEMES:
        return "only http, https and mailto links can be opened"
    if parts.scheme.lower() != "mailto" and not host:
        return "the link has no host"
    if parts.scheme.lower() == "mailto" and "@" not in parts.path:
        return "the link has no address"
    return None


_MAX_NAME = 128
# Control characters, characters special to file systems, and bidirectional marks.
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f/\\:*?"<>|\u200e\u200f\u202a-\u202e\u2066-\u2069]')
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)}
)


def safe_filenames(uris: Iterable[str]) -> list[str]:
    """Safe, distinct file names, from the last part of each file's URI.

    Names that differ only in case count as equal, as they are on some file systems. The work is
    linear in the number of files, whatever their names.
    """
    taken: set[str] = set()
    numbers: dict[str, int] = {}  # the number to try next for a name that is taken
    names: list[str] = []
    for uri in uris:
        stem, ending = _harmless(uri)
        name = first = f"{stem}{ending}"
        while name.lower() in taken:
            number = numbers.get(first.lower(), 2)
            numbers[first.lower()] = number + 1
            name = f"{stem} ({number}){ending}"
        taken.add(name.lower())
        names.append(name)
    return names


def _harmless(uri: str) -> tuple[str, str]:
    """The last part of a URI as a file name, and its extension, such as `.txt`."""
    path = re.split(r"[?#]", uri, maxsplit=1)[0]
    last = unquote(path.rstrip("/").rpartition("/")[2])
    name = _UNSAFE.sub("_", last).strip(". ") or "download"
    stem, dot, suffix = name.rpartition(".")
    if not dot or len(suffix) > 16:
        stem, dot, suffix = name, "", ""
    if stem.partition(".")[0].strip().lower() in _DEVICES:
        stem = f"_{stem}"
    return stem[: _MAX_NAME - len(dot + suffix)].rstrip(". "), f"{dot}{suffix}"
