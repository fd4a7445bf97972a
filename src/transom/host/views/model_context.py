"""The context that a View sends for the model."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from transom.errors import Refused
from transom.host.tools.tool_texts import Provenance
from transom.json_values import without_marks
from transom.protocol.messages import ModelContextParams
from transom.types import ContentBlock, Implementation


class ModelContext(msgspec.Struct, frozen=True):
    """The last context that a View sent for the model. The View wrote it, not the user."""

    view_id: str
    server: str
    app: Implementation | None
    when: float
    content: list[ContentBlock]
    structured_content: dict[str, Any] | None


def read_context(view: Provenance, update: ModelContextParams, max_bytes: int) -> ModelContext:
    """What a View sent, without the host's brackets; `Refused` if it is too long."""
    data = msgspec.json.encode(update)
    if len(data) > max_bytes:
        raise Refused(f"A context of {len(data)} bytes is over the limit of {max_bytes}")
    if (unmarked := without_marks(data)) is not data:
        update = msgspec.json.decode(unmarked, type=ModelContextParams)
    return ModelContext(
        view_id=view.view,
        server=view.server,
        app=view.app,
        when=time.time(),
        content=update.content or [],
        structured_content=update.structured_content,
    )
