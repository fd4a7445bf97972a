"""Applies a policy to calls: asks the user, stores what they always allow, records decisions.

1. A tool with `readOnlyHint: true` runs. So does one that the user always allows, as long as its
   definition stays the same (`fingerprint` in `grants.py`). For any other tool the approver is
   asked.
2. Without an approver the call is refused, with a text that says how to allow it.
3. Anything but `Allow()`, `AllowAlways()` or `Deny(...)` as an answer is a refusal.
"""

from __future__ import annotations

import hashlib
import inspect
import secrets
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import msgspec

from transom.errors import Refused
from transom.host.asking.grants import Grantee, Grants, same_tool
from transom.host.asking.policy import (
    Allow,
    AllowAlways,
    ApprovalRequest,
    Decision,
    Deny,
    Policy,
)
from transom.host.audit import AuditKind, AuditLog
from transom.host.tools.tool_texts import Provenance
from transom.recent import Recent
from transom.types import Tool

_MAX_HELD = 1000  # calls of one host that wait for a user's decision


class _Held(msgspec.Struct):
    """A call that an agent asks its user about, and the user's decision."""

    request: ApprovalRequest
    decision: Allow | AllowAlways | None = None
    edited: bool = False
    ambiguous: bool = False
    """Whether another call has the same id: an answer may be for either."""


class _Asking(msgspec.Struct, eq=False):
    """A question that the user has not answered."""

    view_id: str
    outdated: bool = False
    """Whether the View has closed or restarted since."""


class Approvals:
    """Applies a policy, stores grants, and records every decision."""

    def __init__(
        self,
        policy: Policy,
        audit: AuditLog,
        *,
        on_error: Callable[[BaseException], object],
        on_grants_changed: Callable[[str], object],
    ) -> None:
        self.grants = Grants(on_grants_changed)
        self.policy = policy
        self._audit = audit
        self._on_error = on_error
        self._asked_by: set[str] = set()  # Views whose call of a server's tool waits for an answer
        self._held: Recent[str, _Held] = Recent(_MAX_HELD)
        self._asking: set[_Asking] = set()
        self._key = secrets.token_bytes(32)  # of digests, which nobody else can compute

    def check(
        self, view: Provenance, tool: Tool, arguments: Mapping[str, Any], call_id: str | None = None
    ) -> ApprovalRequest | None:
        """None if the call may run, or else what to `obtain` approval for."""
        if self.policy.trusts_everything or (self.policy.read_only_runs and _only_reads(tool)):
            return None
        grantee = Grantee("model", view.view)
        if self.grants.covers(grantee, tool):
            return None
        changed = self.grants.outdated(grantee, tool)
        return self._to_ask(_request(view, tool, arguments, changed=changed), call_id)

    def may_drive(self, view_id: str, tool: Tool) -> bool:
        """Whether a look at a View's page, or an act on it, needs no question."""
        policy = self.policy
        if policy.trusts_everything or (policy.look == "allow" and _only_reads(tool)):
            return True
        return self.grants.covers(Grantee("drive", view_id), tool)

    def check_driving(
        self,
        view: Provenance,
        tool: Tool,
        arguments: Mapping[str, Any],
        call_id: str | None = None,
        *,
        secret: str | None = None,
    ) -> ApprovalRequest | None:
        """The same for a look at a View's page, or an act on it. `secret` is shown to nobody."""
        if self.may_drive(view.view, tool):
            return None
        digest = ""
        if secret is not None:
            digest = hashlib.blake2b(
                secret.encode(errors="surrogatepass"), key=self._key
            ).hexdigest()
        request = _request(view, tool, arguments, drives=True, digest=digest)
        return self._to_ask(request, call_id)

    def _to_ask(self, request: ApprovalRequest, call_id: str | None) -> ApprovalRequest:
        granted = self.grants.granted(request.view_id)
        request = msgspec.structs.replace(request, granted=granted)
        if self.policy.approve is None and call_id is None:
            reads = request.drives and request.tool.annotations is not None
            what = "has to be asked about" if reads else "may change something"
            how = "Policy(approve=...) to ask the user, or with Policy.trusting()"
            self.refuse(request, f"it {what} and nobody can be asked. Run the host with {how}")
        # The approver sees what will be sent, even if the caller changes its own object.
        copied = msgspec.json.decode(msgspec.json.encode(request.arguments))
        return msgspec.structs.replace(request, arguments=copied)

    # --- calls that an agent asks its user about -------------------------------------------------

    def hold(self, call_id: str, request: ApprovalRequest | None) -> ApprovalRequest | None:
        """What an agent has to ask before this call, given what `check` returned for its id."""
        if request is None:
            return None
        held = self._held.get(call_id)
        if held is not None:
            # A graph that is resumed asks again, but gets the answer to its first question, which
            # was about the tool as it was then.
            asked = held.request
            call = asked.view_id, asked.tool.name, asked.arguments, asked.digest
            if call == (request.view_id, request.tool.name, request.arguments, request.digest):
                return msgspec.structs.replace(asked, repeated=True)
        self._held[call_id] = _Held(request, ambiguous=held is not None)
        return request

    def decide(self, call_id: str, decision: Decision, *, edited: bool) -> ApprovalRequest | None:
        """Store the user's decision about a call that is held; what they were asked about it."""
        held = self._held.get(call_id)
        if held is None:
            return None
        if isinstance(decision, Deny):
            del self._held[call_id]
            self._record("approval", "denied", held.request, decision.reason)
            self._record("refusal", "refused", held.request, decision.reason)
        elif not held.ambiguous:
            held.decision, held.edited = decision, edited
        return held.request

    def _answer_for(self, call_id: str, request: ApprovalRequest) -> Decision:
        """The user's decision about this call. It is used once."""
        held = self._held.pop(call_id, None)
        if held is not None and held.ambiguous:
            return Deny("Two calls have the same id, and the answer may be for the other one")
        if held is None or held.decision is None:
            return Deny("The user was not asked about this call; call it again to ask them")
        asked = held.request
        same_arguments = held.edited or (
            asked.arguments == request.arguments and asked.digest == request.digest
        )
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
        for asking in self._asking:
            asking.outdated = asking.outdated or asking.view_id == view_id
        for call_id, held in list(self._held.items()):
            if held.request.view_id == view_id:
                del self._held[call_id]

    async def check_view_call(
        self, view: Provenance, tool: Tool, arguments: Mapping[str, Any]
    ) -> None:
        """Check a View's call of its server's tool, and ask if needed; `Refused` if not allowed."""
        hints = tool.annotations
        harmless = _only_reads(tool) and hints is not None and not hints.destructive_hint
        if self.policy.approve_view_calls is None or harmless:
            return
        request = _request(view, tool, arguments, by="view")
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
        policy = self.policy
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

    async def obtain(self, request: ApprovalRequest, call_id: str | None = None) -> bool:
        """Ask the approver; `Refused` unless it allows the call.

        Without an approver, the stored decision about `call_id` is used. Returns whether a grant
        may follow: not for a View that has closed or restarted since.
        """
        policy = self.policy
        approve = policy.approve if request.by == "model" else policy.approve_view_calls
        if request.opens:
            approve = policy.approve_opening or policy.approve
        asking = _Asking(request.view_id)
        self._asking.add(asking)
        try:
            answer = None if approve is None else approve(request)
            if approve is None and call_id is not None:
                answer = self._answer_for(call_id, request)
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:  # noqa: BLE001 - an approver that fails has not said yes
            self._on_error(error)
            self._record("approval", "failed", request)
            self.refuse(request, "The approver failed, so the call was not approved")
        finally:
            self._asking.discard(asking)
        if not isinstance(answer, Allow | AllowAlways):
            known, kind = "Allow, AllowAlways or Deny", type(answer).__name__
            nonsense = f"The approver answered {kind}; it has to be {known}"
            reason = answer.reason if isinstance(answer, Deny) else nonsense
            self._record("approval", "denied", request, reason)
            self.refuse(request, reason)
        always = isinstance(answer, AllowAlways) and not asking.outdated
        if always:
            self.grants.give(request.grantee, request.tool)
        self._record("approval", "always" if always else "allowed", request)
        return not asking.outdated

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


def _only_reads(tool: Tool) -> bool:
    return tool.annotations is not None and tool.annotations.read_only_hint is True


def _request(
    view: Provenance, tool: Tool, arguments: Mapping[str, Any], **more: Any
) -> ApprovalRequest:
    """What to ask about a call that a View has to do with."""
    about = {"view_id": view.view, "server": view.server, "app": view.app}
    return ApprovalRequest(**about, tool=tool, arguments=arguments, **more)
