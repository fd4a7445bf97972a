"""Views in a browser: the Stage, the sandbox around each View, and the renderers that use them."""

from typing import TYPE_CHECKING

from transom.lazy import load_on_use

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

__getattr__, __dir__ = load_on_use(
    __name__,
    {
        "transom.web.asgi": "sandbox_app stage_app",
        "transom.web.headless": "HeadlessRenderer HeadlessSeat",
        "transom.web.local_stage": "OpenPage",
        "transom.web.mounted_views": "Sandboxes Violation",
        "transom.web.remote_host": "RemoteHost RemoteView",
        "transom.web.renderers": "BrowserRenderer",
        "transom.web.sandbox": "Sandbox",
        "transom.web.seat": "Seat",
        "transom.web.stage": "Stage StageListener",
        "transom.web.users": "UserLimits",
        "transom.web.web_views": "WebViews",
    },
)
