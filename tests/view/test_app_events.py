import asyncio
from typing import Any

import pytest

from tests.view.fake_host import hosted
from transom.errors import PeerError, UsageError
from transom.types import ToolResult
from transom.view.app import App


async def test_the_tools_data_reaches_its_handlers_in_order() -> None:
    app = App("a", "1")
    seen: list[Any] = []
    app.on_tool_input_partial = lambda arguments: seen.append(("partial", arguments))
    app.on_tool_input = lambda arguments: seen.append(("input", arguments))
    app.on_tool_result = lambda result: seen.append(("result", result))
    app.on_tool_cancelled = lambda reason: seen.append(("cancelled", reason))
    async with hosted(app) as host:
        prefix = "ui/notifications/tool-"
        await host.tell(prefix + "input-partial", {"arguments": {"a": 1}})
        await host.tell(prefix + "input", {"arguments": {"a": 2}, "unknown": 1})
        await host.tell(
            prefix + "result", {"structuredContent": {"n": 1}, "x": 2, "_meta": {"m": 1}}
        )
        await host.tell(prefix + "cancelled", {"reason": "user"})
        await host.tell(prefix + "cancelled")
        await host.tell(prefix + "input")
        await host.settled()
    assert seen == [
        ("partial", {"a": 1}),
        ("input", {"a": 2}),
        ("result", ToolResult(structured_content={"n": 1}, meta={"m": 1}, extra={"x": 2})),
        ("cancelled", "user"),
        ("cancelled", None),
        ("input", {}),
    ]


async def test_the_assigned_handler_runs_first_then_listeners_in_the_order_they_came() -> None:
    app = App("a", "1")
    seen: list[str] = []
    app.on_tool_input(lambda: seen.append("first"))
    app.on_tool_input(lambda: seen.append("second"))
    app.on_tool_input = lambda _: seen.append("assigned, replaced")
    app.on_tool_input = lambda _: seen.append("assigned")
    async with hosted(app) as host:
        await host.tell("ui/notifications/tool-input", {})
        await host.settled()
    assert seen == ["assigned", "first", "second"]


async def test_a_listener_added_twice_runs_twice_and_is_removed_once() -> None:
    app = App("a", "1")
    seen: list[int] = []

    def listener() -> None:
        seen.append(1)

    app.on_tool_input(listener)
    app.on_tool_input(listener)
    app.on_tool_input.remove(listener)
    app.on_tool_input.remove(print)
    async with hosted(app) as host:
        await host.tell("ui/notifications/tool-input", {})
        await host.settled()
    assert seen == [1]


async def test_listeners_added_while_one_runs_hear_the_next_event() -> None:
    app = App("a", "1")
    seen: list[str] = []

    @app.on_tool_input
    def grow() -> None:
        app.on_tool_input(lambda: seen.append("late"))

    async with hosted(app) as host:
        await host.tell("ui/notifications/tool-input", {})
        await host.settled()
        assert seen == []
        await host.tell("ui/notifications/tool-input", {})
        await host.settled()
    assert seen == ["late"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_handler_that_raises_does_not_stop_the_others(is_async: bool) -> None:
    app = App("a", "1")
    errors: list[BaseException] = []
    seen: list[str] = []
    done = asyncio.Event()
    app.on_error = errors.append

    def broken() -> None:
        raise ValueError("broken")

    async def broken_later() -> None:
        raise ValueError("broken")

    app.on_tool_input(broken_later if is_async else broken)
    app.on_tool_input(lambda: seen.append("sync"))

    @app.on_tool_input
    async def _(arguments: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        seen.append("async")
        done.set()

    async with hosted(app) as host:
        await host.tell("ui/notifications/tool-input", {})
        await done.wait()
        assert app.connected
    assert [str(error) for error in errors] == ["broken"]
    assert seen == ["sync", "async"]


async def test_an_error_handler_that_raises_is_survived(caplog: pytest.LogCaptureFixture) -> None:
    app = App("a", "1")

    @app.on_error
    def _(error: BaseException) -> None:
        raise RuntimeError("worse")

    app.on_tool_input(lambda: 1 / 0)
    async with hosted(app) as host:
        await host.tell("ui/notifications/tool-input", {})
        await host.settled()
        assert app.connected
    assert "on_error itself failed" in caplog.text


async def test_without_an_error_handler_problems_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = App("a", "1")
    app.on_tool_input(lambda: 1 / 0)
    async with hosted(app) as host:
        await host.tell("ui/notifications/tool-input", {})
        await host.settled()
    assert "ZeroDivisionError" in caplog.text


async def test_an_async_error_handler_is_awaited() -> None:
    app = App("a", "1")
    told = asyncio.Event()

    @app.on_error
    async def _(error: BaseException) -> None:
        told.set()

    app.on_tool_input(lambda: 1 / 0)
    async with hosted(app) as host:
        await host.tell("ui/notifications/tool-input", {})
        await told.wait()


async def test_an_event_nobody_listens_to_is_not_kept_for_latecomers() -> None:
    app = App("a", "1")
    errors: list[BaseException] = []
    app.on_error = errors.append
    seen: list[Any] = []
    async with hosted(app) as host:
        await host.tell("ui/notifications/tool-input", {"arguments": {}})
        await host.settled()
        with pytest.warns(RuntimeWarning, match="on_tool_input was set after the handshake"):
            app.on_tool_input = seen.append
        await host.settled()
    assert seen == []
    assert errors == []


@pytest.mark.parametrize(
    "name", ["on_tool_input", "on_tool_input_partial", "on_tool_result", "on_tool_cancelled"]
)
async def test_a_late_first_handler_of_a_one_shot_event_raises_in_strict_mode_every_time(
    name: str,
) -> None:
    app = App("a", "1", strict=True)
    async with hosted(app):
        for _ in range(2):
            with pytest.raises(UsageError, match=name):
                setattr(app, name, print)
            with pytest.raises(UsageError, match=name):
                getattr(app, name)(print)
        assert not getattr(app, name)
        setattr(app, name, None)


async def test_an_event_that_had_a_handler_before_the_handshake_may_get_others_later() -> None:
    app = App("a", "1", strict=True)
    app.on_tool_input = print
    app.on_tool_input = None
    async with hosted(app):
        app.on_tool_input = print
        app.on_tool_input(print)
        app.on_host_context_changed = print
        with pytest.raises(UsageError, match="on_tool_result"):
            app.on_tool_result = print


async def test_a_handler_that_is_no_function_is_refused() -> None:
    app = App("a", "1")
    with pytest.raises(TypeError, match="on_tool_input"):
        app.on_tool_input = 3  # type: ignore[assignment]


def test_an_event_that_does_not_exist_is_refused_with_the_names_that_do() -> None:
    app = App("a", "1")
    with pytest.raises(AttributeError, match="Unknown event: on_toolinput.*on_tool_input"):
        app.on_toolinput = print  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        app.on_toolinput(print)  # type: ignore[attr-defined]


async def test_context_changes_are_merged_before_any_handler_runs() -> None:
    app = App("a", "1")
    seen: list[Any] = []

    @app.on_host_context_changed
    def _(changes: Any) -> None:
        assert app.host_context is not None
        seen.append((changes.theme, app.host_context.theme, app.host_context.locale))

    async with hosted(app) as host:
        await host.tell("ui/notifications/host-context-changed", {"locale": "nl"})
        await host.tell("ui/notifications/host-context-changed", {"theme": "dark", "new": 1})
        await host.settled()
        assert app.host_context is not None
        assert app.host_context.extra == {"new": 1}
        assert app.host_context.available_display_modes == ["inline", "fullscreen"]
    assert seen == [(None, "light", "nl"), ("dark", "dark", "nl")]


async def test_nested_objects_of_the_context_are_replaced_and_null_removes_a_key() -> None:
    app = App("a", "1")
    async with hosted(app) as host:
        tell = "ui/notifications/host-context-changed"
        await host.tell(tell, {"styles": {"variables": {"--a": "1"}, "css": {"fonts": "f"}}})
        await host.tell(tell, {"styles": {"variables": {"--b": "2"}}, "theme": None})
        await host.settled()
        assert app.host_context is not None
        assert app.host_context.styles is not None
        assert app.host_context.styles.variables == {"--b": "2"}
        assert app.host_context.styles.css is None
        assert app.host_context.theme is None


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("ui/notifications/host-context-changed", {"theme": 3}),
        ("ui/notifications/tool-input", {"arguments": []}),
        ("ui/notifications/tool-result", {"content": [{"type": "bogus"}]}),
        ("ui/notifications/tool-cancelled", {"reason": 4}),
    ],
)
async def test_a_notification_that_makes_no_sense_is_reported_and_changes_nothing(
    method: str, params: dict[str, Any]
) -> None:
    app = App("a", "1")
    errors: list[BaseException] = []
    app.on_error = errors.append
    for name in ("on_tool_input", "on_tool_result", "on_tool_cancelled", "on_host_context_changed"):
        setattr(app, name, lambda _: pytest.fail("delivered"))
    async with hosted(app) as host:
        await host.tell(method, params)
        await host.settled()
        assert app.host_context is not None
        assert app.host_context.theme == "light"
    assert len(errors) == 1
    assert isinstance(errors[0], PeerError)
    assert method in str(errors[0])


async def test_other_notifications_keep_their_place_among_the_views_own() -> None:
    app = App("a", "1")
    seen: list[str] = []
    app.on_tool_input = lambda: seen.append("input")
    app.on_tool_result = lambda: seen.append("result")
    app.on_notification = lambda method, params: seen.append(method)
    async with hosted(app) as host:
        await host.tell("ui/notifications/tool-input", {})
        await host.tell("notifications/tools/list_changed", {})
        await host.tell("ui/notifications/tool-result", {})
        await host.tell("notifications/brand-new", {"x": 1})
        await host.settled()
    assert seen == [
        "input",
        "notifications/tools/list_changed",
        "result",
        "notifications/brand-new",
    ]


async def test_teardown_passes_the_reason_and_answers_an_object() -> None:
    app = App("a", "1")
    reasons: list[str | None] = []
    async with hosted(app) as host:
        assert await host.ask("ui/resource-teardown", {"reason": "early"}) == {}

        @app.on_teardown
        async def _(reason: str | None) -> None:
            await asyncio.sleep(0)
            reasons.append(reason)

        assert await host.ask("ui/resource-teardown", {"reason": "the user closed it"}) == {}
        assert await host.ask("ui/resource-teardown") == {}
        assert app.connected
    assert reasons == ["the user closed it", None]


async def test_teardown_answers_the_object_a_handler_returned() -> None:
    app = App("a", "1")
    app.on_teardown(lambda: None)
    app.on_teardown(lambda: {"saved": True})
    async with hosted(app) as host:
        assert await host.ask("ui/resource-teardown", {}) == {"saved": True}
        app.on_teardown = None
        app.on_teardown(lambda: 1 / 0)
        assert await host.ask("ui/resource-teardown", {}) == {"saved": True}


async def test_a_tool_change_reaches_everyone_who_listens() -> None:
    app = App("a", "1")
    seen: list[tuple[str, str, bool]] = []
    later: list[str] = []
    app.on_tool_change = lambda tool: seen.append(("one", tool.name, tool.enabled))
    app.on_tool_change(lambda tool: seen.append(("two", tool.name, tool.enabled)))
    save = app.register_tool("save", lambda: "x", enabled=False)

    async with hosted(app) as host:

        @app.on_tool_change
        async def _(tool: Any) -> None:
            later.append(tool.name)

        save.enable()
        save.enable()
        assert await host.list_changes() == 1
    assert seen == [
        ("one", "save", False),
        ("two", "save", False),
        ("one", "save", True),
        ("two", "save", True),
    ]
    assert later == ["save"]
