"""What a host can do for a View, read off what it has been given to do it with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transom.events import Slot
from transom.host.forward import Forward

__all__ = ["derived_capabilities"]

_BY_HANDLER = {
    "on_open_link": "openLinks",
    "on_download_file": "downloadFile",
    "on_log": "logging",
    "on_update_model_context": "updateModelContext",
    "on_message": "message",
    "on_create_message": "sampling",
}
_BY_SERVER = {
    "serverTools": ("on_call_tool", "tools/call", "notifications/tools/list_changed"),
    "serverResources": (
        "on_read_resource",
        "resources/read",
        "notifications/resources/list_changed",
    ),
}


def derived_capabilities(handlers: Mapping[str, Slot], forward: Forward | None) -> dict[str, Any]:
    """The host's capabilities from its handlers and its server.

    `tools` says that the View's tools will be used (ext-apps PR 656).
    """
    found: dict[str, Any] = {"tools": {"listChanged": True}}
    for handler, capability in _BY_HANDLER.items():
        if handlers.get(handler):
            found[capability] = {}
    for capability, (handler, method, notice) in _BY_SERVER.items():
        served = forward is not None and forward.serves(method)
        if served or handlers.get(handler):
            tells = forward is not None and forward.announces(notice)
            found[capability] = {"listChanged": True} if tells else {}
    return found
