"""Views in a browser: the Stage, the sandbox around each View, and the renderers that use them."""

from typing import TYPE_CHECKING

from transom.lazy import load_on_use

if TYPE_CHECKING:
    from transom.web.application.remote_host import RemoteHost, RemoteView
    from transom.web.application.sandbox import Sandbox
    from transom.web.application.users import ConnectServers, MakeHost, UserLimits
    from transom.web.application.web_views import Authenticate, WebViews
    from transom.web.csp import CspMode
    from transom.web.local.chromium import ChromiumProcess
    from transom.web.local.headless import HeadlessRenderer, HeadlessSeat
    from transom.web.local.local_stage import OpenPage
    from transom.web.local.renderers import BrowserRenderer
    from transom.web.mounted_views import Violation
    from transom.web.seat import Seat

__all__ = [
    "Authenticate",
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
    "Seat",
    "UserLimits",
    "Violation",
    "WebViews",
]

if not TYPE_CHECKING:  # or every name would be one to them
    __getattr__, __dir__ = load_on_use(
        __name__,
        {
            ".local.chromium": "ChromiumProcess",
            ".csp": "CspMode",
            ".local.headless": "HeadlessRenderer HeadlessSeat",
            ".local.local_stage": "OpenPage",
            ".mounted_views": "Violation",
            ".application.remote_host": "RemoteHost RemoteView",
            ".local.renderers": "BrowserRenderer",
            ".application.sandbox": "Sandbox",
            ".seat": "Seat",
            ".application.users": "ConnectServers MakeHost UserLimits",
            ".application.web_views": "Authenticate WebViews",
        },
    )
