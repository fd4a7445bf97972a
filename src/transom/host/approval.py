"""Approval: a call of a View's tool is checked against the policy, and the user is asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import msgspec

from transom.errors import Refused
from transom.host.audit import AuditKind, AuditLog
from transom.host.policy import AllowAlways, ApprovalRequest, Deny, Grants, Policy
from transom.types import Implementation, Tool


class Approvals:
    """Applies a policy, remembers what was allowed for good, and records every decision.

    Args:
        policy: who decides.
        audit: records every question and every refusal.
        on_problem: called when an approver raises.
    """

    def __init__(
        self, policy: Policy, audit: AuditLog, on_problem: Callable[[BaseException], object]
    ) -> None:
        self.grants = Grants()
        self._policy = policy
        self._audit = audit
        self._on_problem = on_problem

    @property
    def trusting(self) -> bool:
        """Whether every tool may run."""
        return self._policy.trusts_everything

    def check(
        self,
        view_id: str,
        server: str,
        app: Implementation | None,
        tool: Tool,
        arguments: Mapping[str, Any],
    ) -> ApprovalRequest | None:
        """None when the call may go on, or else what to `obtain` approval for.

        Raises:
            Refused: it may not.
        """
        request = ApprovalRequest(
            view_id=view_id, server=server, app=app, tool=tool, arguments=arguments
        )
        verdict = self._policy.decide(request, self.grants)
        if verdict is None:
            return msgspec.structs.replace(
                request,
                # The approver sees what will be sent, even if the caller changes its own object.
                arguments=msgspec.json.decode(msgspec.json.encode(arguments)),
                changed=self.grants.outdated(view_id, tool),
                granted=self.grants.granted(view_id),
            )
        if isinstance(verdict, Deny):
            self.refuse(request, verdict.reason)
        return None

    async def obtain(self, request: ApprovalRequest) -> None:
        """Ask the approver.

        Raises:
            Refused: the answer was no, or there was none.
        """
        approve = self._policy.approve
        try:
            answer = None if approve is None else approve(request)
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:  # noqa: BLE001 - an approver that fails has not said yes
            self._on_problem(error)
            self._record("approval", "failed", request)
            self.refuse(request, "The approver failed, so nobody said yes")
        verdict = self._policy.settle(request, answer, self.grants)
        if isinstance(verdict, Deny):
            self._record("approval", "denied", request, verdict.reason)
            self.refuse(request, verdict.reason)
        outcome = "always" if isinstance(verdict, AllowAlways) else "allowed"
        self._record("approval", outcome, request)

    def refuse(self, request: ApprovalRequest, reason: str) -> NoReturn:
        """Record a refusal and raise it.

        Raises:
            Refused: always.
        """
        self._record("refusal", "refused", request, reason)
        raise Refused(f"{request.tool.name} of View {request.view_id}: {reason}")

    def _record(
        self, event: AuditKind, outcome: str, request: ApprovalRequest, detail: str | None = None
    ) -> None:
        self._audit.record(
            event,
            outcome,
            server=request.server,
            view=request.view_id,
            tool=request.tool.name,
            arguments=request.arguments,
            detail=detail,
        )
