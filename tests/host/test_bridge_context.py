"""The host's context: what changes, what a View is told of it, and display modes."""

from typing import Any

import pytest

from tests.host.bare_view import joined, ready
from transom.errors import CapabilityMissing, ProtocolError, Refused

CHANGED = "host-context-changed"
MODES = {"displayMode": "inline", "availableDisplayModes": ["inline", "fullscreen", "pip"]}


def changes(view: Any) -> list[dict[str, Any]]:
    return [params for method, params in view.notices if method.endswith(CHANGED)]


async def test_only_what_changed_is_told():
    async with ready(context={"theme": "light", "locale": "en"}) as (bridge, view, _):
        await bridge.set_context(theme="dark", locale="en")
        assert changes(view) == [{"theme": "dark"}]
        assert bridge.context == {"theme": "dark", "locale": "en"}


async def test_a_change_to_what_it_is_already_is_none():
    context = {"theme": "light", "styles": {"variables": {"--a": "1", "--b": "2"}}}
    async with ready(context=context) as (bridge, view, _):
        await bridge.set_context(theme="light")
        await bridge.set_context(styles={"variables": {"--b": "2", "--a": "1"}})
        await bridge.set_context()
        await bridge.set_context(locale=None)
        assert changes(view) == []


async def test_keys_go_by_their_python_or_their_wire_name_and_unknown_ones_as_given():
    async with ready() as (bridge, view, _):
        await bridge.set_context(time_zone="UTC", userAgent="t", house_mood="good")
        assert changes(view) == [{"timeZone": "UTC", "userAgent": "t", "house_mood": "good"}]


async def test_true_and_one_are_two_values():
    async with ready(context={"flag": 1}) as (bridge, view, _):
        await bridge.set_context(flag=True)
        assert changes(view) == [{"flag": True}]


async def test_a_key_taken_away_is_told_as_null_apart_from_the_other_changes():
    async with ready(context={"theme": "light", "locale": "en"}) as (bridge, view, _):
        await bridge.set_context(theme=None, locale="de")
        assert changes(view) == [{"locale": "de"}, {"theme": None}]
        assert bridge.context == {"locale": "de"}
        await bridge.set_context(theme="light")
        assert changes(view)[-1] == {"theme": "light"}


async def test_before_initialize_a_change_is_in_the_answer_and_nowhere_else():
    async with joined(context={"theme": "light"}) as (bridge, view, _):
        await bridge.set_context(theme="dark", locale="en")
        assert (await view.initialize())["hostContext"] == {"theme": "dark", "locale": "en"}
        await view.tell("ui/notifications/initialized")
        await bridge.initialized()
        assert changes(view) == []


async def test_between_initialize_and_initialized_changes_wait_and_become_one():
    async with joined(context={"theme": "light"}) as (bridge, view, _):
        await view.initialize()
        await bridge.set_context(theme="dark")
        await bridge.set_context(locale="en")
        await bridge.set_context(theme="light")
        assert view.notices == []
        await view.tell("ui/notifications/initialized")
        await bridge.initialized()
        assert changes(view) == [{"locale": "en"}]


async def test_the_context_given_is_not_the_context_kept():
    given = {"styles": {"variables": {"--a": "1"}}}
    async with ready(context=given) as (bridge, view, _):
        given["styles"]["variables"]["--a"] = "2"
        assert bridge.context == {"styles": {"variables": {"--a": "1"}}}
        await bridge.set_context(**given)
        assert changes(view) == [given]


# --- display modes ---------------------------------------------------------------------------


async def test_without_a_handler_the_mode_stays_what_it_is():
    async with ready(context={**MODES, "displayMode": "pip"}) as (_, view, _):
        assert await view.ask("ui/request-display-mode", {"mode": "fullscreen"}) == {"mode": "pip"}


async def test_without_a_context_the_mode_is_inline():
    async with ready() as (_, view, _):
        assert await view.ask("ui/request-display-mode", {"mode": "pip"}) == {"mode": "inline"}


async def test_an_unknown_mode_is_refused():
    async with ready(context=MODES) as (_, view, _):
        with pytest.raises(ProtocolError, match="Invalid params for ui/request-display-mode: mode"):
            await view.ask("ui/request-display-mode", {"mode": "cinema"})


@pytest.mark.parametrize("returned", [None, True, "fullscreen"])
async def test_a_handler_that_agrees_changes_the_mode_and_the_context(returned: Any):
    asked: list[str] = []
    async with ready(context=MODES) as (bridge, view, _):

        @bridge.on_request_display_mode
        async def _(mode: str) -> Any:
            asked.append(mode)
            return returned

        answer = await view.ask("ui/request-display-mode", {"mode": "fullscreen"})
        assert answer == {"mode": "fullscreen"}
        assert asked == ["fullscreen"]
        assert bridge.context["displayMode"] == "fullscreen"
        assert changes(view) == [{"displayMode": "fullscreen"}]


async def test_a_handler_may_choose_another_mode():
    async with ready(context=MODES) as (bridge, view, _):
        bridge.on_request_display_mode = lambda mode: "pip"
        assert await view.ask("ui/request-display-mode", {"mode": "fullscreen"}) == {"mode": "pip"}


@pytest.mark.parametrize("returned", [False, "cinema", 7, {"mode": "pip"}])
async def test_a_handler_that_refuses_or_talks_nonsense_leaves_the_mode(returned: Any):
    async with ready(context=MODES) as (bridge, view, _):
        bridge.on_request_display_mode = lambda mode: returned
        answer = await view.ask("ui/request-display-mode", {"mode": "fullscreen"})
        assert answer == {"mode": "inline"}
        assert changes(view) == []


async def test_a_handler_may_raise_a_refusal():
    async with ready(context=MODES) as (bridge, view, _):

        @bridge.on_request_display_mode
        def _(mode: str) -> None:
            raise Refused("not now")

        assert await view.ask("ui/request-display-mode", {"mode": "pip"}) == {"mode": "inline"}


async def test_a_mode_that_the_view_did_not_declare_never_reaches_the_handler():
    asked: list[str] = []
    capabilities = {"availableDisplayModes": ["inline", "pip"]}
    async with ready(context=MODES, capabilities=capabilities) as (bridge, view, _):
        bridge.on_request_display_mode = asked.append
        answer = await view.ask("ui/request-display-mode", {"mode": "fullscreen"})
        assert answer == {"mode": "inline"}
        assert asked == []
        bridge.on_request_display_mode = lambda mode: "fullscreen"
        assert await view.ask("ui/request-display-mode", {"mode": "pip"}) == {"mode": "inline"}


async def test_a_mode_that_the_host_does_not_offer_never_reaches_the_handler():
    asked: list[str] = []
    async with ready(context={"availableDisplayModes": ["inline"]}) as (bridge, view, _):
        bridge.on_request_display_mode = asked.append
        assert await view.ask("ui/request-display-mode", {"mode": "pip"}) == {"mode": "inline"}
        assert asked == []


async def test_the_host_cannot_switch_a_view_to_a_mode_it_did_not_declare():
    capabilities = {"availableDisplayModes": ["inline"]}
    async with ready(context=MODES, capabilities=capabilities) as (bridge, view, _):
        with pytest.raises(CapabilityMissing, match="cannot be shown in 'fullscreen'"):
            await bridge.set_context(display_mode="fullscreen", theme="dark")
        assert bridge.context == MODES
        assert changes(view) == []
