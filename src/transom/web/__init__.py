"""Views in a browser: the Stage, the sandbox around each View, and the renderers that use them."""

from typing import TYPE_CHECKING

from transom.lazy import load_on_use

if TYPE_CHECKING:
    from transom.web.asgi import sandbox_app, stage_app
    from transom.web.chromium import ChromiumProcess
    from transom.web.csp import CspMode
    from transom.web.headless import HeadlessRenderer, HeadlessSeat
    from transom.web.local_stage import OpenPage
    from transom.web.mounted_views import Sandboxes, Violation
    from transom.web.page_link import Backlog
    from transom.web.remote_host import RemoteHost, RemoteView
    from transom.web.renderers import BrowserRenderer
    from transom.web.sandbox import Sandbox
    from transom.web.seat import Seat
    from transom.web.stage import Stage, StageListener, Wish
    from transom.web.users import ConnectServers, MakeHost, UserLimits
    from transom.web.web_views import Authenticate, WebViews

__all__ = [
    "Authenticate",
    "Backlog",
    "BrowserRenderer",
    "ChromiumProcess",
    "ConnectServers",
    "CspMode",
    "HeadlessRenderer",
    "HeadlessSeat",
    "MakeHost",
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
    "Wish",
    "sandbox_app",
    "stage_app",
]

__getattr__, __dir__ = load_on_use(
    __name__,
    {
        ".asgi": "sandbox_app stage_app",
        ".chromium": "ChromiumProcess",
        ".csp": "CspMode",
        ".headless": "HeadlessRenderer HeadlessSeat",
        ".local_stage": "OpenPage",
        ".mounted_views": "Sandboxes Violation",
        ".page_link": "Backlog",
        ".remote_host": "RemoteHost RemoteView",
        ".renderers": "BrowserRenderer",
        ".sandbox": "Sandbox",
        ".seat": "Seat",
        ".stage": "Stage StageListener Wish",
        ".users": "ConnectServers MakeHost UserLimits",
        ".web_views": "Authenticate WebViews",
    },
)
