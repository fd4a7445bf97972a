"""What known hosts offer: the packaged data, and the profile of our own Host."""

from typing import Any, get_args

import msgspec
import pytest
from mcp.server import MCPServer

from transom import App, Host, InProcessRenderer
from transom.check.host_profiles import PLAIN, HostProfile, host_profile, host_profiles
from transom.errors import UsageError
from transom.server import Views
from transom.types import DisplayMode, HostCapabilities
from transom.web import HeadlessRenderer
from transom.web.csp import allow_attribute

STATED = set(HostProfile.__struct_fields__) - {"name", "title", "sources"}
CAPABILITIES = set(HostCapabilities.__struct_encode_fields__)
PERMISSIONS = {"camera", "microphone", "geolocation", "clipboardWrite", "tools"}


@pytest.mark.parametrize("profile", host_profiles().values(), ids=lambda each: each.name)
def test_what_a_profile_states_has_a_source_and_the_words_of_the_spec(profile: HostProfile):
    stated = {name for name in STATED if getattr(profile, name) is not None}
    assert stated == set(profile.sources)
    assert profile.name == PLAIN or all(each.url for each in profile.sources.values())
    assert set(profile.capabilities or ()) <= CAPABILITIES
    assert set(profile.display_modes or ()) <= set(get_args(DisplayMode))
    assert set(profile.permissions or ()) <= PERMISSIONS
    assert set(profile.csp_ignored or ()) <= {"frameDomains", "baseUriDomains"}


async def test_the_plain_profile_is_what_our_host_offers():
    app = App("view", "1")
    page = HeadlessRenderer()

    class Renderer(InProcessRenderer):
        """A View without a browser, in the Host of one that has a browser."""

        def attach_host(self, host: Host) -> None:
            page.attach_host(host)

    views = Views()
    opened = views.add("ui://plain/view.html", html="<!doctype html>")

    @views.tool(opens=opened)
    def show() -> str:
        """Show it."""
        return "shown"

    server = MCPServer("plain", extensions=[views])
    plain = host_profile(PLAIN)
    async with Host(renderer=Renderer({"ui://plain/view.html": lambda: app})) as host:
        await host.add_server("plain", server)
        await host.call_tool("show")
        offered: dict[str, Any] = msgspec.to_builtins(app.host_capabilities)
        assert set(offered) - {"experimental"} == set(plain.capabilities or ())
        assert app.host_context is not None
        assert app.host_context.available_display_modes == list(plain.display_modes or ())
    asked: dict[str, Any] = {name: {} for name in PERMISSIONS}
    granted: dict[str, Any] = {name: {} for name in plain.permissions or ()}
    assert allow_attribute(granted) == allow_attribute(asked)


def test_a_profile_is_what_a_bridge_takes():
    claude = host_profile("claude")
    assert "message" in (claude.host_capabilities or {})
    assert claude.host_context == {
        "displayMode": "inline",
        "availableDisplayModes": ["inline", "fullscreen"],
        "containerDimensions": {"width": 720.0, "maxHeight": 5000.0},
    }
    assert host_profile("inspector").host_capabilities is None


def test_a_profile_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(UsageError, match="no host profile 'claud'; there are: plain, basic-host"):
        host_profile("claud")
