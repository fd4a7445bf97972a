"""Views that are busy or gone: what their host, its model and waiting callers notice."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.host.bare_view import BareView, tool
from tests.host.shop import BareRenderer, hosting, tool_names
from transom import Host, Limits
from transom.errors import ProtocolError, RequestCancelled, RequestTimeout, ViewClosed
from transom.host.views.view import View
from transom.protocol.peer import Progress


class Hung:
    """A View that hangs while `answers` is cleared; what its host reports of it."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.answers.set()
        self.renderer = BareRenderer({"ping": self._answer, "tools/call": self._call})
        self.changes: asyncio.Queue[str] = asyncio.Queue()

    @property
    def view(self) -> BareView:
        """The View's own end."""
        return self.renderer.views["orders-1"]

    async def _answer(self, _: Any) -> dict[str, Any]:
        await self.answers.wait()
        return {}

    async def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        await self.answers.wait()
        return {"content": [{"type": "text", "text": f"called {params['name']}"}]}

    @asynccontextmanager
    async def hosted(self, **limits: Any) -> AsyncIterator[tuple[Host, View]]:
        limited = Limits(**{"unresponsive_after": 0.1, **limits})
        async with hosting(renderer=self.renderer, limits=limited) as host:
            await host.call_tool("show_orders")
            for event in (host.on_view_unresponsive, host.on_view_responsive):
                event(lambda view: self.changes.put_nowait(view.state))
            yield host, host.view("orders-1")


async def test_a_busy_view_keeps_its_tools_and_its_calls_wait():
    hung = Hung()
    async with hung.hosted() as (host, view):
        hung.answers.clear()
        calls = [asyncio.create_task(view.call_tool("echo"))]
        assert await hung.changes.get() == "busy"
        assert view.reason == "busy for 0 s"
        assert "orders-1__echo" in await tool_names(host)
        calls.append(asyncio.create_task(host.call_tool("orders-1__echo")))
        await hung.view.asked("tools/call", times=2)
        assert not any(call.done() for call in calls)
        hung.answers.set()
        assert [(await call).text for call in calls] == ["called echo"] * 2
        assert await hung.changes.get() == "live"
        assert view.reason == ""
        outcomes = [event.outcome for event in await host.audit.read(event="view")]
        assert outcomes == ["opened", "busy", "responsive"]


async def test_a_view_that_is_busy_for_long_loses_its_tools_until_it_answers():
    hung = Hung()
    async with hung.hosted(gone_after=0.3) as (host, view):
        hung.answers.clear()
        running = asyncio.create_task(view.call_tool("echo"))
        assert [await hung.changes.get(), await hung.changes.get()] == ["busy", "gone"]
        assert "orders-1__echo" not in await tool_names(host)
        for call in (view.call_tool("echo"), host.call_tool("orders-1__echo")):
            with pytest.raises(
                ViewClosed, match="View orders-1 does not respond: it has not answered for"
            ):
                await call
        assert not running.done()
        hung.answers.set()
        assert await hung.changes.get() == "live"
        assert (await running).text == "called echo"
        assert (await host.call_tool("orders-1__echo")).text == "called echo"
        assert "orders-1__echo" in await tool_names(host)
        outcomes = [event.outcome for event in await host.audit.read(event="view")]
        assert outcomes == ["opened", "busy", "gone", "responsive"]


async def test_a_call_that_waits_for_a_busy_view_is_told_so_and_its_timeout_says_so():
    hung = Hung()
    progress: asyncio.Queue[Progress] = asyncio.Queue()
    async with hung.hosted(unresponsive_after=0.5) as (_, view):
        hung.answers.clear()
        running = asyncio.create_task(
            view.call_tool("echo", timeout=1.7, on_progress=progress.put_nowait)
        )
        first, second = await progress.get(), await progress.get()
        assert re.fullmatch(r"View orders-1 is busy for [01] s", first.message or "")
        assert second.progress > first.progress > 0
        with pytest.raises(RequestTimeout, match=r"within 1.7 s: View orders-1 is busy for [12] s"):
            await running


async def test_a_message_for_callers_keeps_to_the_progress_that_the_view_reported():
    hung = Hung()
    progress: asyncio.Queue[Progress] = asyncio.Queue()
    async with hung.hosted() as (_, view):
        hung.answers.clear()
        running = asyncio.create_task(view.call_tool("echo", on_progress=progress.put_nowait))
        params = await hung.view.asked("tools/call")
        token = params["_meta"]["progressToken"]
        sent = {"progressToken": token, "progress": 3, "total": 4, "message": "at work"}
        await hung.view.tell("notifications/progress", sent)
        assert (await progress.get()).message == "at work"
        busy = await progress.get()
        assert (round(busy.progress, 3), busy.total) == (3.0, 4)
        assert busy.progress > 3
        assert "is busy for" in (busy.message or "")
        hung.answers.set()
        await running


async def test_any_message_of_a_view_is_a_sign_of_life():
    hung = Hung()
    async with hung.hosted() as (_, view):
        hung.answers.clear()
        running = asyncio.create_task(view.call_tool("echo"))
        assert await hung.changes.get() == "busy"
        log = {"level": "info", "data": "still here"}
        await hung.view.tell("notifications/message", log)
        assert await hung.changes.get() == "live"
        assert not running.done()
        assert await hung.changes.get() == "busy"  # and silent again
        hung.answers.set()
        await running


async def test_silence_counts_from_the_call_that_waits_and_not_from_an_earlier_one():
    hung = Hung()
    async with hung.hosted(unresponsive_after=1) as (_, view):
        clock = asyncio.get_running_loop().time
        for _ in range(3):  # the timer of the first one is still running when the last one begins
            await view.call_tool("echo")
            earlier = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_later(0.12, earlier.set_result, None)
            await earlier
        hung.answers.clear()
        began = clock()
        running = asyncio.create_task(view.call_tool("echo"))
        assert await hung.changes.get() == "busy"
        assert clock() - began >= 0.99
        hung.answers.set()
        await running


async def test_time_in_which_the_host_did_not_run_is_no_silence_of_the_view():
    hung = Hung()
    async with hung.hosted(unresponsive_after=0.5, gone_after=1) as (_, view):
        hung.answers.clear()
        running = asyncio.create_task(view.call_tool("echo"))
        await hung.view.asked("tools/call")
        time.sleep(1.2)  # noqa: ASYNC251 - as a process that is stopped, or has no time
        assert await hung.changes.get() == "busy"
        assert view.silent_for < 1
        hung.answers.set()
        assert (await running).text == "called echo"
        assert await hung.changes.get() == "live"


async def test_a_slow_call_of_a_view_that_answers_pings_is_waited_for():
    hung = Hung()
    hung.renderer.answers["ping"] = ProtocolError(-32601, "no such method")  # an answer, too
    async with hung.hosted(unresponsive_after=0.5) as (_, view):
        hung.answers.clear()
        running = asyncio.create_task(view.call_tool("echo"))
        await hung.view.asked("ping", times=3)
        assert view.state == "live"
        hung.answers.set()
        assert (await running).text == "called echo"
        assert hung.changes.empty()


async def test_a_view_that_was_busy_when_it_had_to_list_its_tools_is_listed_again():
    hung = Hung()
    listed: list[dict[str, Any]] = [tool("echo")]

    async def list_tools(_: Any) -> dict[str, Any]:
        await hung.answers.wait()
        return {"tools": list(listed)}

    hung.renderer.answers["tools/list"] = list_tools
    async with hung.hosted(list_timeout=0.3) as (host, _):
        hung.answers.clear()
        listed.append(tool("more"))
        await hung.view.tell("notifications/tools/list_changed")
        assert await hung.changes.get() == "busy"
        failed = asyncio.Event()
        host.on_error(lambda _: failed.set())
        await failed.wait()
        changed = asyncio.Event()
        host.on_tools_changed(changed.set)
        hung.answers.set()
        assert await hung.changes.get() == "live"
        await changed.wait()
        assert "orders-1__more" in await tool_names(host)


async def test_a_view_whose_page_is_gone_ends_its_calls_and_can_be_closed_and_reopened():
    hung = Hung()
    async with hung.hosted(call_timeout=60, unresponsive_after=60) as (host, view):
        hung.answers.clear()
        running = asyncio.create_task(view.call_tool("echo"))
        await hung.view.asked("tools/call")
        view.lose("its page shows something else now")
        assert await hung.changes.get() == "gone"
        assert "orders-1__echo" not in await tool_names(host)
        with pytest.raises(RequestCancelled, match="its page shows something else now"):
            await running
        await view.close()  # without waiting for its teardown
        hung.answers.set()
        assert (await host.reopen("orders-1")).state == "live"
        assert (await host.call_tool("orders-1__echo")).text == "called echo"


async def test_a_view_that_loads_again_after_it_was_gone_is_back():
    hung = Hung()
    async with hung.hosted(unresponsive_after=60) as (host, view):
        view.lose("its page shows something else now")
        assert await hung.changes.get() == "gone"
        await hung.view.be_ready()
        assert await hung.changes.get() == "live"
        assert (await host.call_tool("orders-1__echo")).text == "called echo"


async def test_a_view_that_is_gone_makes_room_for_another():
    hung = Hung()
    async with hung.hosted(unresponsive_after=60, max_live_views=1) as (host, view):
        view.lose("its page shows something else now")
        await host.call_tool("show_orders")
        assert list(host.views) == ["orders-2"]
