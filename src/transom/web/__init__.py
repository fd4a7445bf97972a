"""Views in a browser: the Stage, the sandbox around each View, and the renderers that use them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transom.web.asgi import sandbox_app, stage_app
    from transom.web.headless import HeadlessRenderer, HeadlessSeat
    from transom.web.local_stage import OpenPage
    from transom.web.mounted_views import Sandboxes, Violation
    from transom.web.remote_host import RemoteHost, RemoteView
    from transom.web.renderers import BrowserRenderer
    from transom.web.sandbox import Sandbox
    from transom.web.seat import Seat
    from transom.web.stage import Stage, StageListener
    from transom.web.users import UserLimits
    from transom.web.web_views import WebViews

__all__ = [
    "BrowserRenderer",
    "HeadlessRenderer",
    "HeadlessSeat",
    "OpenPage",
    "RemoteHost",
    "RemoteView",
    "Sandbox",
    "Sandboxes",
    "Seat",
    "Stage",
    "StageListener",
    "UserLimits",
    "Violation",
    "WebViews",
    "sandbox_app",
    "stage_app",
]

_HOMES = {
    "BrowserRenderer": "transom.web.renderers",
    "HeadlessRenderer": "transom.web.headless",
    "HeadlessSeat": "transom.web.headless",
    "OpenPage": "transom.web.local_stage",
    "RemoteHost": "transom.web.remote_host",
    "RemoteView": "transom.web.remote_host",
    "Sandbox": "transom.web.sandbox",
    "Sandboxes": "transom.web.mounted_views",
    "Seat": "transom.web.seat",
    "Stage": "transom.web.stage",
    "StageListener": "transom.web.stage",
    "UserLimits": "transom.web.users",
    "Violation": "transom.web.mounted_views",
    "WebViews": "transom.web.web_views",
    "sandbox_app": "transom.web.asgi",
    "stage_app": "transom.web.asgi",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: the web server takes a while."""
    if name not in _HOMES:
        raise AttributeError(f"module 'transom.web' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
