"""What Views tell the model besides the results of tools: their context, and their messages.

1. Of a View's context the last one counts: it is taken when it has changed. A message is taken
   once.
2. Each begins with the host's mark, so that a model can tell a View's words from the user's. What a
   View wrote has no such brackets.
3. A View chooses what it sends: a host limits a context, this module the messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from transom.agents.content import Part, as_text, parts_of
from transom.errors import Refused
from transom.host.tool_host import ToolHost
from transom.host.views.model_context import ModelContext
from transom.json_values import without_marks
from transom.types import ContentBlock

_MAX_MESSAGES: Final = 16
_MAX_MESSAGE: Final = 16 * 1024


class ViewWords:
    """What the open Views of a host told the model, and one conversation does not have yet.

    Messages reach it unless the application handles them itself, with `host.on_message = ...`.
    """

    def __init__(self, host: ToolHost) -> None:
        self._host = host
        self._taken: dict[str, float] = {}  # by View: when it sent the context that was taken
        self._messages: deque[list[Part]] = deque(maxlen=_MAX_MESSAGES)
        host.on_message(self._add_message)

    def _add_message(self, view: Any, blocks: Sequence[ContentBlock]) -> None:
        data = without_marks(msgspec.json.encode(blocks))
        if len(data) > _MAX_MESSAGE:
            raise Refused(f"A message of {len(data)} bytes is over {_MAX_MESSAGE}")
        lead = f"⟦View {view.id}⟧ sends this message, which the user did not write:"
        self._messages.append([lead, *parts_of(msgspec.json.decode(data, type=list[ContentBlock]))])

    def take(self, *, again: bool = False) -> list[Part]:
        """What is new since the last time; with `again` also contexts that were taken before."""
        parts = [part for message in self._messages for part in message]
        self._messages.clear()
        contexts = self._host.model_context()
        for context in contexts:
            taken = self._taken.get(context.view_id)
            if again or taken != context.when:
                parts += _words_of(context, known=taken is not None)
        self._taken = {context.view_id: context.when for context in contexts}
        return parts


def _words_of(context: ModelContext, *, known: bool) -> list[Part]:
    who = f"⟦View {context.view_id}⟧"
    said = parts_of(context.content)
    if context.structured_content is not None:
        said.append(as_text(context.structured_content))
    if said:
        return [f"{who} tells you this, which the user did not write:", *said]
    return [f"{who} tells you nothing any more."] if known else []
