"""A model that does what a test says, for agents: it calls the tools of a script, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models.function import AgentInfo, FunctionModel


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that the model makes: `Call("show_orders", {"status": "open"})`.

    A View's tool may be named without the View's id, if only one View has such a tool.
    """

    tool: str
    arguments: dict[str, Any] = {}


def make_model(turns: Sequence[Call | Sequence[Call] | str]) -> FunctionModel:
    """A model of Pydantic AI that follows a script: `Agent(make_model([...]), toolsets=[...])`.

    Args:
        turns: what it does, turn by turn: a call, several calls at once, or a text. A text as the
            last turn ends the run.

    Raises:
        AssertionError: in the run: a tool of the script is not offered, or the script is over.
    """
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart  # noqa: PLC0415
    from pydantic_ai.models.function import FunctionModel  # noqa: PLC0415

    left = list(turns)

    async def respond(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if not left:
            raise AssertionError("The model is asked for another turn, but its script is over")
        turn = left.pop(0)
        if isinstance(turn, str):
            return ModelResponse(parts=[TextPart(turn)])
        calls = [turn] if isinstance(turn, Call) else list(turn)
        offered = [tool.name for tool in info.function_tools]
        parts = [ToolCallPart(_find(call.tool, offered), call.arguments) for call in calls]
        return ModelResponse(parts=parts)

    return FunctionModel(respond)


def _find(tool: str, offered: Sequence[str]) -> str:
    found = [name for name in offered if name == tool]
    found = found or [name for name in offered if name.endswith(f"__{tool}")]
    if len(found) != 1:
        several = f"which is one of {', '.join(found)}" if found else "which is not offered"
        raise AssertionError(
            f"The script calls {tool}, {several}; there are: {', '.join(offered) or 'none'}"
        )
    return found[0]
