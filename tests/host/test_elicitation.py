"""A host that asks its user what a server wants to know, in both versions of MCP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.host.asking_server import PAGE, QUESTION, SCHEMA, Asking, reach_in_memory
from tests.web.browser import PythonBrowser
from transom import Host, Policy
from transom.errors import TransomError
from transom.host import ElicitRequest
from transom.host.tools.call_limits import CallLimits
from transom.web.local.renderers import BrowserRenderer


@pytest.fixture(params=[True, False], ids=["2026-07-28", "2025-11-25"])
def modern(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    reach_in_memory(monkeypatch)
    return request.param


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        (
            QUESTION,
            {"name": "Bo", "mail": "b@x"},
            {"action": "accept", "content": {"name": "Bo", "age": 30, "mail": "b@x"}},
        ),
        (QUESTION, True, {"action": "accept", "content": {"name": "Ada", "age": 30}}),
        (QUESTION, {"name": None}, {"action": "accept", "content": {"age": 30}}),
        (QUESTION, False, {"action": "decline"}),
        (QUESTION, None, {"action": "cancel"}),
        (PAGE, True, {"action": "accept"}),
        (PAGE, False, {"action": "decline"}),
    ],
)
async def test_what_a_server_asks_is_answered_by_the_hosts_handler(
    modern: bool, question: dict[str, Any], answer: object, expected: dict[str, Any]
) -> None:
    server = Asking(question, modern=modern)
    asked: list[tuple[str, ElicitRequest]] = []
    async with Host(policy=Policy.trusting()) as host:

        @host.on_elicit
        async def _(name: str, request: ElicitRequest) -> object:
            asked.append((name, request))
            return answer

        await host.add_server("shop", server)
        assert (await host.call_tool("register", {})).text == "done"
        assert server.declared == {"form": {}, "url": {}}
    assert server.answered == [{"result": expected}]
    [(name, request)] = asked
    assert (name, request.mode, request.url) == (
        "shop",
        question.get("mode", "form"),
        question.get("url"),
    )
    assert request.message == question["message"].replace("\u200b", "")
    assert request.requested_schema == question.get("requestedSchema", {})


async def test_without_a_handler_nobody_can_be_asked_and_servers_know(modern: bool) -> None:
    server = Asking(QUESTION, modern=modern)
    async with Host(policy=Policy.trusting()) as host:
        await host.add_server("shop", server)
        assert server.declared is None
        if modern:
            with pytest.raises(TransomError, match="wants input from the user"):
                await host.call_tool("register", {})
        else:
            await host.call_tool("register", {})
            assert server.answered[0]["error"]["code"] == -32601


@pytest.mark.parametrize(
    "question",
    [
        {"message": 5},
        {"message": "x" * 300_000},
        {"mode": "telepathy"},
        {"requestedSchema": {"properties": {"a": {"type": "object"}}}},
        {**PAGE, "url": "javascript:alert(1)"},
        {**PAGE, "url": "mailto:a@b.example"},
        {"mode": "url"},
    ],
)
async def test_a_question_that_cannot_be_asked_is_an_error(modern: bool, question: Any) -> None:
    server = Asking(question, modern=modern)
    async with Host(policy=Policy.trusting()) as host:
        host.on_elicit = dict
        await host.add_server("shop", server)
        if modern:
            with pytest.raises(TransomError):
                await host.call_tool("register", {})
        else:
            await host.call_tool("register", {})
            assert server.answered[0]["error"]["code"] == -32602


async def test_what_goes_wrong_in_the_handler_is_the_hosts_to_know(modern: bool) -> None:
    server = Asking(QUESTION, modern=modern)
    errors: asyncio.Queue[BaseException] = asyncio.Queue()
    async with Host(policy=Policy.trusting()) as host:
        host.on_error = errors.put_nowait

        @host.on_elicit
        def _() -> None:
            raise RuntimeError("a secret")

        await host.add_server("shop", server)
        try:
            await host.call_tool("register", {})
        except TransomError as error:
            text = str(error)
        else:
            text = str(server.answered)
        assert "could not be asked" in text
        assert "a secret" not in text
        assert str(await errors.get()) == "a secret"


async def test_the_time_of_a_call_does_not_run_while_the_user_is_asked(modern: bool) -> None:
    server = Asking(QUESTION, modern=modern)
    async with Host(policy=Policy.trusting(), call_timeout=1000) as host:
        seen: list[float | None] = []

        @host.on_elicit
        def _() -> bool:
            seen.extend(limit.when() for limit in limits._running)
            return True

        await host.add_server("shop", server)
        limits = host._servers._servers["shop"].limits
        await host.call_tool("register", {})
        assert seen == [None]


async def test_time_limits_begin_anew_when_the_last_question_was_answered() -> None:
    limits, loop = CallLimits(), asyncio.get_running_loop()
    async with limits.limit(1000) as first, limits.limit(None) as endless:
        before = first.when()
        assert before is not None
        with limits.paused():
            with limits.paused():
                pass
            assert first.when() is None
            async with limits.limit(2000) as second:
                assert second.when() is None
                limits.restart(second)  # progress, meanwhile
                assert second.when() is None
        began = loop.time()
        after = first.when()
        assert after is not None
        assert before <= after <= began + 1000
        assert endless.when() is None
    with pytest.raises(TimeoutError):
        async with limits.limit(0):
            await loop.create_future()
    assert not limits._running


# --- on the Stage ----------------------------------------------------------------------------


@asynccontextmanager
async def on_stage(server: Asking, **options: Any) -> AsyncIterator[tuple[Host, PythonBrowser]]:
    """A host whose user is asked on a page."""
    browser = PythonBrowser(lambda: renderer._stage)
    renderer = BrowserRenderer(open_page=browser.open_page, **options)
    async with renderer, browser:
        seat = renderer.seat("agent")
        async with Host(renderer=seat, policy=Policy.trusting()) as host:
            await host.add_server("shop", server)
            await renderer.show_page()
            yield host, browser


async def test_the_user_is_asked_on_the_stage(modern: bool) -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
        (
            QUESTION,
            {"value": True, "fields": {"name": None, "age": 31, "mail": "b@x"}},
            {"action": "accept", "content": {"age": 31, "mail": "b@x"}},
        ),
        (QUESTION, {"value": True, "fields": {"age": "many"}}, {"action": "cancel"}),
        (QUESTION, {"value": True}, {"action": "cancel"}),
        (QUESTION, {"value": False}, {"action": "decline"}),
        (QUESTION, {"value": "cancel"}, {"action": "cancel"}),
        (PAGE, {"value": True}, {"action": "accept"}),
        (PAGE, {"value": False}, {"action": "decline"}),
    ]
    server = Asking(QUESTION, modern=modern)
    async with on_stage(server) as (host, browser):
        whose = {"kind": "elicit", "server": "shop", "client": "agent", "shown": ""}
        for question, answer, expected in cases:
            server.question = question
            browser.page.told.clear()
            call = asyncio.ensure_future(host.call_tool("register", {}))
            asked = await browser.page.heard("ask")
            assert {key: asked[key] for key in whose} == whose
            assert asked["url"] == question.get("url")
            fields = {field["name"]: field.get("default") for field in asked["fields"]}
            assert fields == ({} if "url" in question else {"name": "Ada", "age": 30, "mail": None})
            await browser.page.tell(do="answer", id=asked["id"], **answer)
            await call
            assert server.answered[-1] == {"result": expected}
        events = await host.audit.read(event="elicitation")
        assert {event.server for event in events} == {"shop"}
        actions = [expected["action"] for _, _, expected in cases]
        assert [event.outcome for event in events] == actions


async def test_a_page_that_closes_answers_nothing(modern: bool) -> None:
    server = Asking(QUESTION, modern=modern)
    async with on_stage(server) as (host, browser):
        call = asyncio.ensure_future(host.call_tool("register", {}))
        await browser.page.heard("ask")
        browser._stage().page_lost("the user closed it")
        await call
        assert server.answered == [{"result": {"action": "cancel"}}]


async def test_a_call_that_is_given_up_withdraws_its_question(modern: bool) -> None:
    server = Asking(QUESTION, modern=modern)
    async with on_stage(server) as (host, browser):
        call = asyncio.ensure_future(host.call_tool("register", {}))
        asked = await browser.page.heard("ask")
        call.cancel()
        if not modern:  # the server is told, and has to withdraw it itself
            await server.has("notifications/cancelled")
            await server.say({"method": "notifications/cancelled", "params": {"requestId": "q0"}})
        assert (await browser.page.heard("unask"))["id"] == asked["id"]


async def test_a_server_asks_only_so_much_at_a_time(modern: bool) -> None:
    server = Asking(QUESTION, modern=modern)
    async with on_stage(server) as (host, browser):
        request = ElicitRequest("Who?", requested_schema=SCHEMA)
        asking = [asyncio.ensure_future(host.on_elicit.ask("shop", request)) for _ in range(5)]
        page = browser.page
        await page.until(lambda p: sum(m["do"] == "ask" for m in p.told) == 5)
        assert await host.on_elicit.ask("shop", request) is None
        other = asyncio.ensure_future(host.on_elicit.ask("office", request))
        await page.until(lambda p: sum(m["do"] == "ask" for m in p.told) == 6)
        for each in (*asking, other):
            each.cancel()
        await asyncio.wait([*asking, other])


async def test_a_handler_of_the_hosts_own_goes_before_the_page(modern: bool) -> None:
    server = Asking(QUESTION, modern=modern)
    async with on_stage(server) as (host, browser):
        host.on_elicit(lambda: False)
        await host.call_tool("register", {})
        assert server.answered == [{"result": {"action": "decline"}}]
        assert all(each["do"] != "ask" for each in browser.page.told)


async def test_a_page_without_a_user_is_not_asked_on(modern: bool) -> None:
    server = Asking(QUESTION, modern=modern)
    async with on_stage(server, confirm=False):
        assert server.declared is None
