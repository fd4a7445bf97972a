"""Who is asked before a tool of a View runs.

`client`: the MCP client asks in its own way, as before any tool call; the gateway does not. `page`:
the user is asked on the Stage. `elicit`: the user is asked through the client, or on the Stage if
the client cannot. `never`: nobody is asked, so only tools that are declared read-only run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from transom.errors import ProtocolError
from transom.host.policy import (
    Allow,
    AllowAlways,
    ApprovalRequest,
    Approve,
    Decision,
    Deny,
    Policy,
)
from transom.protocol import wire

Approval = Literal["client", "page", "elicit", "never"]


def policy_for(approval: Approval, page: Approve, elicit: Approve) -> Policy:
    """The policy of a host whose Views are called through the gateway."""
    match approval:
        case "client":
            return Policy.trusting()
        case "page":
            return Policy(approve=page)
        case "elicit":
            return Policy(approve=elicit)
        case "never":
            return Policy(approve=_never)


def _never(request: ApprovalRequest) -> Decision:
    if request.opens:
        return Deny("Nobody may be asked: this gateway runs with --approve never")
    return Deny(
        f"{request.tool.name[:128]} of View {request.view_id} may change something, and this "
        "gateway runs with --approve never"
    )


class _Answer(msgspec.Struct):
    action: str
    content: dict[str, Any] | None = None


class Elicitation:
    """Asks the user through the client."""

    def __init__(
        self,
        ask_client: Callable[[str, bytes], Awaitable[bytes]],
        possible: Callable[[ApprovalRequest], bool],
        otherwise: Approve,
    ) -> None:
        self._ask_client = ask_client
        self._possible = possible
        self._otherwise = otherwise

    async def approve(self, request: ApprovalRequest) -> Decision:
        """Ask; give it to `Policy(approve=...)`."""
        if not self._possible(request):
            answer = self._otherwise(request)
            return answer if isinstance(answer, Allow | AllowAlways | Deny) else await answer
        question = {
            "mode": "form",
            "message": request.question(),
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "always": {
                        "type": "boolean",
                        "title": "Do not ask again for this tool"
                        if request.opens
                        else "Do not ask again while this View is open",
                        "default": False,
                    }
                },
            },
        }
        try:
            raw = await self._ask_client("elicitation/create", wire.encode(question))
        except ProtocolError as error:
            return Deny(f"The user could not be asked: {error}")
        return _decision(raw)


def _decision(raw: bytes) -> Decision:
    try:
        answer = msgspec.json.decode(raw, type=_Answer)
    except msgspec.DecodeError:
        return Deny("The client's answer cannot be read")
    if answer.action != "accept":
        return Deny("The user said no")
    return AllowAlways() if (answer.content or {}).get("always") is True else Allow()
