"""Asking for leave before a View's tool runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import msgspec

from transom.errors import Refused
from transom.host.audit import AuditLog
from transom.host.policy import AllowAlways, ApprovalRequest, Deny, Grants, Policy
from transom.types import Implementation, Tool

__all__ = ["Approvals"]


class Approvals:
    """Applies a policy, keeps what was allowed for good, and tells the audit.

    Args:
        policy: who decides.
        audit: told of every question and every refusal.
        on_problem: told when an approver raises.
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
        """Whether everything may run, whatever it is."""
        return self._policy.trusts_everything

    def decide(
        self,
        view_id: str,
        server: str,
        app: Implementation | None,
        tool: Tool,
        arguments: Mapping[str, Any],
    ) -> ApprovalRequest | None:
        """None when the call may go on; what to `ask` when somebody has to be asked.

        Raises:
            Refused: it may not.
        """
        request = ApprovalRequest(
            view_id=view_id, server=server, app=app, tool=tool, arguments=arguments
        )
        verdict = self._policy.decide(request, self.grants)
        if verdict is None:
            changed = self.grants.outdated(view_id, tool)
            # The approver sees what will be sent, whatever becomes of the caller's own object.
            copied = msgspec.json.decode(msgspec.json.encode(arguments))
            return msgspec.structs.replace(request, arguments=copied, changed=changed)
        if isinstance(verdict, Deny):
            self.refuse(request, verdict.reason)
        return None

    async def ask(self, request: ApprovalRequest) -> None:
        """Ask the approver.

        Raises:
            Refused: the answer was no, or there was none.
        """
        approve = self._policy.approve
        try:
            answer = None if approve is None else approve(request)
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:  # noqa: BLE001 - a broken approver has not said yes
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
        """Note a refusal and raise it.

        Raises:
            Refused: always.
        """
        self._record("refusal", "refused", request, reason)
        raise Refused(f"{request.tool.name} of View {request.view_id}: {reason}")

    def _record(
        self, event: Any, outcome: str, request: ApprovalRequest, detail: str | None = None
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
