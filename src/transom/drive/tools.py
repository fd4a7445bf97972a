"""`look_at_view` and `act_on_view`: how a model uses a View that has no tools of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import Meta

from transom.errors import INVALID_PARAMS, ProtocolError
from transom.protocol.messages import check_arguments
from transom.types import Tool, ToolAnnotations

Drive = Literal["when_no_tools", "always", "never"]
"""Which Views a model may use by their page: those without tools for it, all of them, or none."""

Action = Literal[
    "click",
    "double_click",
    "type",
    "clear",
    "select",
    "check",
    "uncheck",
    "press",
    "set",
    "scroll_into_view",
    "hover",
    "drag_to",
    "submit",
]
"""What can be done with an element of a View's page."""

LOOK_AT_VIEW: Final = "look_at_view"
ACT_ON_VIEW: Final = "act_on_view"
SCREENSHOT_VIEW: Final = "screenshot_view"
_ACT: Final = f"{ACT_ON_VIEW}/"

_NEEDS_VALUE: Final = {
    "type": "the text",
    "press": 'a key or chord, such as "Enter" or "Control+A"',
    "set": "the new value",
    "drag_to": "the reference of the target",
}
_MAX_VALUE: Final = 20_000  # characters
VIEW_ID_SCHEMA: Final = {
    "type": "string",
    "description": "The id of an open View, such as orders-1",
}
"""Of the tools by which a model names a View."""

LOOK: Final = Tool(
    name=LOOK_AT_VIEW,
    title="Look at an open View",
    description="See what an open View shows, as text: one line for each thing, with a reference "
    f"such as [b3] for what can be used with {ACT_ON_VIEW}. For Views without tools of their own.",
    input_schema={
        "type": "object",
        "properties": {
            "view_id": VIEW_ID_SCHEMA,
            "find": {"type": "string", "description": "Only what has this text, in all of it"},
            "under": {"type": "string", "description": "Only what is in this part, such as t2"},
        },
        "required": ["view_id"],
    },
    annotations=ToolAnnotations(read_only_hint=True),
)
ACT: Final = Tool(
    name=ACT_ON_VIEW,
    title="Use something in an open View",
    description=f"Press, type or choose something that {LOOK_AT_VIEW} has shown. Returns what "
    "changed (+ new, ~ different, - gone).",
    input_schema={
        "type": "object",
        "properties": {
            "view_id": VIEW_ID_SCHEMA,
            "ref": {"type": "string", "description": "Its reference, such as b3"},
            "action": {"type": "string", "enum": list(get_args(Action))},
            "value": {
                "type": "string",
                "description": "For type the text, select the option (unless ref is one), press a "
                "key such as Enter, set the new value, drag_to a reference",
            },
        },
        "required": ["view_id", "ref", "action"],
    },
)
DRIVE_TOOLS: Final = LOOK, ACT


class LookCall(msgspec.Struct, frozen=True):
    """The arguments of `look_at_view`."""

    view_id: str
    find: Annotated[str, Meta(max_length=1000)] | None = None
    under: str | None = None


class ActCall(msgspec.Struct, frozen=True):
    """The arguments of `act_on_view`."""

    view_id: str
    ref: str
    action: str
    value: str | int | float | bool | None = None


def read_call(tool: str, arguments: Mapping[str, Any] | None) -> LookCall | ActCall:
    """The arguments that a model sent; a `ProtocolError` that says what is wrong with them."""
    check_arguments(tool, arguments)
    given = dict(arguments or {})
    try:
        if tool == LOOK_AT_VIEW:
            call = msgspec.convert(given, LookCall)
            return msgspec.structs.replace(
                call, find=call.find or None, under=call.under and bare_ref(call.under)
            )
        return msgspec.convert(given, ActCall)
    except msgspec.ValidationError as error:
        raise _invalid(tool, str(error)) from None


def is_ref(text: str) -> bool:
    """Whether it has the form of a reference."""
    return re.fullmatch(r"[a-z]{1,2}[0-9]{1,9}", text) is not None


def bare_ref(text: str, tool: str = LOOK_AT_VIEW) -> str:
    """A reference as `b3`, also if it is given as a snapshot shows it, `[b3]`."""
    ref = text.strip().strip("[]")
    if not is_ref(ref):
        raise _invalid(tool, "a reference is like b3, as a look shows it")
    return ref


def act_request(ref: str, action: str, value: object = None) -> dict[str, Any]:
    """The request for a View's page; a `ProtocolError` that says what is wrong with an act."""
    if action == "upload":
        raise _invalid(ACT_ON_VIEW, "files cannot be uploaded: ask the user to choose the file")
    if action not in get_args(Action):
        raise _invalid(ACT_ON_VIEW, f"action is one of {', '.join(get_args(Action))}")
    text = None if value is None else _text(value)
    if action in _NEEDS_VALUE and text is None:
        raise _invalid(ACT_ON_VIEW, f"{action} needs a value: {_NEEDS_VALUE[action]}")
    if text is not None and len(text) > _MAX_VALUE:
        raise _invalid(ACT_ON_VIEW, f"the value has over {_MAX_VALUE} characters")
    ref = bare_ref(ref, ACT_ON_VIEW)
    request: dict[str, Any] = {"ref": ref, "action": action, "value": text, "to": None}
    if action == "drag_to" and text is not None:
        request["to"] = bare_ref(text, ACT_ON_VIEW)
    return request


def hidden(value: str) -> str:
    """What is shown of a value that nobody may read."""
    return f"•••• ({len(value)} characters)"


def act_tool(action: str) -> Tool:
    """What a user is asked about, and always allows, for one kind of action."""
    return Tool(name=f"{_ACT}{action}")


def action_of(tool: str) -> str:
    """The kind of action that `act_tool` made this name of."""
    return tool.removeprefix(_ACT)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else f"{value}"


def _invalid(tool: str, problem: str) -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, f"Invalid arguments for {tool}: {problem}")
