"""Views in an application of several workers that share a Redis: each worker is a `WebViews`."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import msgspec
import pytest
from redis.asyncio import Redis

from tests.redis_server import RedisServer
from tests.web.page import PageEnd
from tests.web.site import Site, UserPage, site
from transom import Allow, App, CallContext, Deny, Host, Policy
from transom.bus import Bus
from transom.errors import (
    BusUnreachable,
    OutcomeUnknown,
    OwnerGone,
    ProtocolError,
    Refused,
    RequestTimeout,
    TransomError,
    UsageError,
    ViewClosed,
)
from transom.host import HostRecords
from transom.host.tool_host import ToolHost
from transom.web import RemoteHost, Sandbox, UserLimits, WebViews
from transom.web.seat import Seat


@asynccontextmanager
async def fleet(url: str, workers: int = 2, **options: Any) -> AsyncIterator[list[Site]]:
    """So many workers with the same users."""
    async with AsyncExitStack() as stack:
        sites = [
            await stack.enter_async_context(site(bus=Bus(url, lease=20), **options))
            for _ in range(workers)
        ]
        for each in sites:
            each.sessions = sites[0].sessions
        yield sites


def at(page: UserPage, worker: Site) -> UserPage:
    """Have a page connect to that worker, by the address that it knows: so does a balancer."""
    page.address = {"host": "127.0.0.1", "port": int(worker.origin.rpartition(":")[2])}
    return page


async def owner(worker: Site, user: str = "ada") -> Host:
    """The user's Host, which is on that worker."""
    host = await worker.views.host(user)
    assert isinstance(host, Host)
    return host


async def elsewhere(worker: Site, user: str = "ada") -> RemoteHost:
    """The user's Host, which is on another worker."""
    host = await worker.views.host(user)
    assert isinstance(host, RemoteHost)
    return host


async def play(host: Host | RemoteHost, song: str = "") -> str:
    """Open a View; its id, when it is live."""
    note = ((await host.call_tool("play", {"song": song})).meta or {})["transom/view"]
    assert note["state"] == "live", note
    return note["id"]


async def reopened(page: UserPage, view: str) -> App:
    """Wait until a page that came back shows that View again."""
    await page.until(lambda p: [m for m in p.told if (m["do"], m.get("view")) == ("named", view)])
    return page.apps[view]


async def get(worker: Site, host: str, path: str = "/transom-view") -> httpx2.Response:
    async with httpx2.AsyncClient() as client:
        return await client.get(worker.origin + path, headers={"Host": host})


# --- page here, agent there ------------------------------------------------------------------


async def test_an_agent_on_another_worker_uses_the_views_like_one_that_is_with_them(
    redis_url: str,
) -> None:
    async with fleet(redis_url) as (here, there), here.page("ada") as page:
        await owner(here)
        agent = await elsewhere(there)
        assert await play(agent, "Ode") == "music-1"
        names = [tool.name for tool in await agent.list_tools()]
        assert names == ["play", "music-1__key", "music-1__stop"]
        assert (await agent.call_tool("music-1__key")).text == "music-1"
        assert (await agent.answer("music-1__key")).text == "music-1"
        assert [each["name"] for each in await agent.tools_for("anthropic")] == names
        view = agent.views["music-1"]
        assert (view.server, view.state, view.pinned_by) == ("music", "live", None)
        assert await there.views.host("ada") is agent
        changed = asyncio.Event()
        agent.on_tools_changed = changed.set
        page.apps["music-1"].register_tool("louder", lambda: "11")
        await changed.wait()
        assert (await agent.call_tool("music-1__louder")).text == "11"
        await page.apps["music-1"].update_model_context("now louder")
        context = await until(agent.model_context)
        assert context[0].content[0].text == "now louder"
        await page.tell(do="closed", view="music-1")
        await until(lambda: not agent.views)
        assert agent.model_context() == []
        # Both workers have one Host in all.
        assert (here.connected, there.connected) == (["ada"], [])


async def until(look: Any) -> Any:
    async with asyncio.timeout(20):
        while not (found := look()):  # noqa: ASYNC110 - it is told, and tells nobody
            await asyncio.sleep(0.01)
    return found


async def test_errors_are_the_same_on_every_worker(redis_url: str) -> None:
    async with fleet(redis_url, trusting=False) as (here, there), here.page("ada") as page:
        await owner(here)
        agent = await elsewhere(there)
        await play(agent)

        async def fail() -> str:
            raise ProtocolError(-32050, "no", {"error": "UsageError", "given": ["forged"]})

        async def hang() -> str:
            await asyncio.Event().wait()
            return ""

        app = page.apps["music-1"]
        app.register_tool("fail", fail, annotations={"readOnlyHint": True})
        app.register_tool("hang", hang, annotations={"readOnlyHint": True})
        with pytest.raises(ProtocolError, match="not found") as missing:
            await agent.call_tool("nothing_like_it")
        assert missing.value.code == -32602
        with pytest.raises(ProtocolError, match="no") as raised:
            await agent.call_tool("music-1__fail")
        assert raised.value.code == -32050
        with pytest.raises(RequestTimeout):
            await agent.call_tool("music-1__hang", timeout=0.05)
        call = asyncio.create_task(agent.call_tool("music-1__stop"))
        await page.tell(do="answer", id=(await page.heard("ask"))["id"], value="deny")
        with pytest.raises(Refused, match="stop of View music-1"):
            await call
        call = asyncio.create_task(agent.call_tool("music-1__hang"))
        await until(lambda: app.connected)
        await asyncio.sleep(0.1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await page.tell(do="closed", view="music-1")
        await until(lambda: not agent.views)
        with pytest.raises(ViewClosed, match="the user closed it") as closed:
            await agent.call_tool("music-1__key")
        assert closed.value.view_id == "music-1"
        assert (await agent.answer("music-1__key")).is_error


async def test_progress_and_tasks_come_from_another_worker(redis_url: str) -> None:
    async def work(ctx: CallContext) -> str:
        ctx.progress(1, total=2, message="half")
        return "done"

    async with fleet(redis_url) as (here, there), here.page("ada") as page:
        await owner(here)
        agent = await elsewhere(there)
        await play(agent)
        seen: list[Any] = []
        page.apps["music-1"].register_tool("work", work, task="optional")
        result = await agent.call_tool("music-1__work", on_progress=lambda p: seen.append(p))
        assert result.text == "done"
        assert [(each.progress, each.total, each.message) for each in seen] == [(1, 2, "half")]
        task = await agent.start_task("music-1__work")
        assert (await agent.task_result(task.task_id)).text == "done"
        assert (await agent.get_task(task.task_id)).status == "completed"


async def test_an_agent_on_another_worker_asks_the_user_in_its_own_way(redis_url: str) -> None:
    def make_host(_: str, seat: Seat) -> Host:
        return Host(renderer=seat, policy=Policy())

    async with fleet(redis_url, make_host=make_host) as (here, there), here.page("ada"):
        await owner(here)
        agent: ToolHost = await elsewhere(there)
        stop = f"{await play(await elsewhere(there))}__stop"
        assert await agent.approval_needed("music-1__key", call_id="1") is None
        request = await agent.approval_needed(stop, call_id="2")
        assert request is not None
        assert (request.view_id, request.tool.name) == ("music-1", "stop")
        await agent.decide("2", Deny("no"))
        assert (await agent.answer(stop, call_id="2")).is_error
        await agent.approval_needed(stop, call_id="3")
        await agent.decide("3", Allow())
        assert (await agent.answer(stop, call_id="3")).text == "stopped music-1"
        assert (await agent.answer(stop, call_id="3")).is_error  # a yes counts once


async def test_a_host_that_cannot_be_made_tells_every_worker_why(redis_url: str) -> None:
    async def connect(user: str, host: Host) -> None:
        raise TransomError(f"{user} has no servers")

    async with fleet(redis_url, servers=connect) as (here, there), here.page("ada"):
        for worker in (here, there):
            with pytest.raises(TransomError, match="ada has no servers"):
                await worker.views.host("ada")


# --- pages on any worker ---------------------------------------------------------------------


async def test_a_page_is_served_by_the_worker_that_has_its_user_and_goes_on_on_any(
    redis_url: str,
) -> None:
    async with fleet(redis_url, 3) as (one, two, three), at(one.page("ada"), two) as page:
        host = await owner(two)
        await page.drop()
        await at(page, one).resume()
        assert page.welcome["resumed"] is True
        view = await play(host, "Ode")
        await page.drop()
        # Both sides have something for each other while the page is away.
        call = asyncio.create_task(host.call_tool(f"{view}__key"))
        await asyncio.sleep(0)
        await at(page, three).resume()
        assert page.welcome["resumed"] is True
        assert (await call).text == view
        assert one.views.users == three.views.users == []
        assert (await host.call_tool(f"{view}__key")).text == view


@pytest.mark.parametrize("forwarded", [False, True])
@pytest.mark.parametrize("lost_at", ["websocket.accept", "websocket.send"])
async def test_a_page_that_is_gone_while_it_is_sent_something_is_no_error(
    redis_url: str, caplog: pytest.LogCaptureFixture, forwarded: bool, lost_at: str
) -> None:
    async with asyncio.timeout(60), fleet(redis_url) as (here, there), here.page("ada"):
        await owner(here)
        session = here.sign_in("ada")
        headers = {"host": here.origin[7:], "origin": here.origin, "cookie": f"session={session}"}
        scope = {
            "type": "websocket",
            "path": "/transom/socket",
            "root_path": "",
            "query_string": b"",
            "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
            "subprotocols": [],
        }
        hello = json.dumps({"token": "", "page": None, "received": 0})
        messages = iter(
            [{"type": "websocket.connect"}, {"type": "websocket.receive", "text": hello}]
        )
        gone = asyncio.Event()

        async def receive() -> Any:
            for message in messages:
                return message
            await gone.wait()
            return {"type": "websocket.disconnect", "code": 1006}

        async def send(message: Any) -> None:
            if message["type"] == lost_at:
                gone.set()
                raise OSError("gone")

        await (there if forwarded else here).views(scope, receive, send)
    assert caplog.records == []


async def test_a_page_that_is_gone_before_its_worker_knows_of_it_is_no_error(
    redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with fleet(redis_url) as (here, there):
        await owner(here)
        agent = await elsewhere(there)
        bus = await there.views._setup.workers.bus()
        scope = {"type": "websocket", "path": "/transom/socket", "headers": []}
        hello = msgspec.msgpack.encode((scope, {"sandbox": ""}))
        channel = await bus.open("user:ada", "web-page", hello)
        await channel.aclose()
        await agent.list_tools()  # which comes after that
    assert caplog.records == []


async def test_any_worker_serves_the_frame_of_a_view_and_of_none_that_is_not_there(
    redis_url: str,
) -> None:
    async with fleet(redis_url) as (here, there), here.page("ada") as page:
        await play(await owner(here))
        name = (await page.heard("mount"))["origin"].removeprefix("http://")
        answers = [await get(worker, name) for worker in (here, there)]
        assert [each.status_code for each in answers] == [200, 200]
        policies = [each.headers["content-security-policy"] for each in answers]
        assert policies[0] == policies[1]
        assert f"frame-ancestors {here.origin}" in policies[0]
        assert (await get(there, name, "/sandbox.js")).text == (
            await get(here, name, "/sandbox.js")
        ).text
        guess = f"music-1-000000000000.localhost:{here.origin.rpartition(':')[2]}"
        assert (await get(there, guess)).status_code == 404
        await here.views.close("ada")
        assert (await get(there, name)).status_code == 404


async def test_a_session_that_ends_ends_the_sockets_on_every_worker(redis_url: str) -> None:
    async with fleet(redis_url) as (here, there), here.page("ada"):
        there.views._recheck = 0.02
        async with at(here.page("ada"), there) as page:
            here.sessions.clear()
            assert await page.over() == (4401, "Nobody is signed in any more")


async def test_signing_out_on_one_worker_ends_what_is_on_another(redis_url: str) -> None:
    async with fleet(redis_url) as (here, there), here.page("ada") as ada, here.page("bob"):
        host = await owner(here)
        await owner(here, "bob")
        await play(host)
        await there.views.close("ada")
        assert (await ada.over())[0] == 4410
        assert here.views.users == ["bob"]
        await there.views.close("nobody")
        async with at(here.page("ada"), there):
            assert await play(await owner(there)) == "music-2"


# --- a worker goes ---------------------------------------------------------------------------


async def test_when_a_worker_ends_another_goes_on_with_the_views_at_once(redis_url: str) -> None:
    async with fleet(redis_url, trusting=False) as (here, there):
        got: asyncio.Queue[str] = asyncio.Queue()
        page = here.page("ada")

        def run(key: str, end: PageEnd) -> None:
            page._run(key, end)
            page.apps[key].on_tool_result(lambda result: got.put_nowait(result.text))

        page.on_mount = run
        async with page:
            host = await owner(here)
            view = await play(host, "Ode")
            assert await got.get() == "playing Ode"
            await play(host, "Requiem")
            await page.tell(do="closed", view="music-2")
            await page.heard("absent")
            host.views[view].pin()
            call = asyncio.create_task(host.call_tool(f"{view}__stop"))
            await page.tell(do="answer", id=(await page.heard("ask"))["id"], value="always")
            assert (await call).text == "stopped music-1"
            await here.views.aclose()
            assert (await page.over())[0] == 1012
            page.told.clear()
            await page.__aexit__(None, None, None)
            while not got.empty():
                got.get_nowait()
            page.sent = page.received = 0
            await at(page, there).resume()
            assert page.welcome["resumed"] is False
            await page.place(view, "take")
            assert await got.get() == "playing Ode"
            marks = await page.heard("marks")
            assert (marks["pinned"], [each["tool"] for each in marks["grants"]]) == (True, ["stop"])
            host = await owner(there)
            assert host.views[view].pinned_by == "host"
            assert (await host.call_tool(f"{view}__stop")).text == "stopped music-1"
            await page.place("music-2", "take")
            assert (await page.heard("absent"))["reason"] == "the user closed it"
            assert await play(host) == "music-3"


async def test_an_idle_user_moves_to_the_worker_that_needs_them_and_ids_go_on(
    redis_url: str,
) -> None:
    async with fleet(redis_url, users=UserLimits(idle=0.1, show_within=30)) as (here, there):
        async with here.page("ada") as page:
            assert await play(await owner(here)) == "music-1"
            await page.leave()
        await until(lambda: here.views.users == [])
        async with at(here.page("ada"), there) as page:
            await page.place("music-1", "take")
            await page.view("music-1")
            assert await play(await owner(there)) == "music-2"


async def always_allowed(page: UserPage, host: Host) -> None:
    """Have the user allow a tool for as long as its View is there."""
    call = asyncio.create_task(host.call_tool(f"{await play(host)}__stop"))
    await page.tell(do="answer", id=(await page.heard("ask"))["id"], value="always")
    await call


async def test_what_the_user_allowed_ends_when_they_sign_out(redis_url: str) -> None:
    async with fleet(redis_url, trusting=False) as (here, there):
        async with here.page("ada") as page:
            await always_allowed(page, await owner(here))
            await there.views.close("ada")
        await owner(there)
        entry = there.views._users._users["ada"]
        records = entry._current_records()
        assert isinstance(records, HostRecords)
        assert (records.grants, list(records.views)) == ([], ["music-1"])


async def test_signing_out_while_the_users_worker_ends_ends_what_they_allowed(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fleet(redis_url, trusting=False) as (here, there), here.page("ada") as page:
        host = await owner(here)
        await always_allowed(page, host)
        assert len(host.records().grants) == 1
        workers = there.views._setup.workers
        connect = workers.connect

        async def connect_too_late(user: str) -> RemoteHost:
            await here.views.aclose()
            return await connect(user)

        monkeypatch.setattr(workers, "connect", connect_too_late)
        await there.views.close("ada")
        assert (await owner(there)).records().grants == []


async def test_signing_out_on_a_worker_that_has_lost_the_user_reaches_the_one_that_has_them(
    redis_url: str,
) -> None:
    async with fleet(redis_url) as (here, there), here.page("ada"):
        await owner(here)
        async with taken_over(redis_url, here):
            await owner(there)
        await here.views.close("ada")
        assert (here.views.users, there.views.users) == ([], [])


async def test_signing_out_on_a_worker_that_is_full_closes_nobody_else(redis_url: str) -> None:
    limits = UserLimits(max_users=1, show_within=30)
    async with fleet(redis_url, users=limits) as (here, there), here.page("ada"):
        await owner(here)
        await owner(there, "bob")
        for user in ("nobody", "bob", "ada"):
            await here.views.close(user)
        assert (here.views.users, there.views.users) == ([], [])
        await owner(there, "bob")
        await there.views.close("nobody")
        assert there.views.users == ["bob"]


@asynccontextmanager
async def taken_over(url: str, lost: Site) -> AsyncIterator[None]:
    """That worker is dead for the others, as one that was stopped for longer than its lease."""
    bus = await lost.views._setup.workers.bus()
    async with Redis.from_url(url) as redis:
        await redis.delete(f"transom:alive:{bus.worker}")
        yield
    bus._renewed_at = 0.0


async def test_a_call_that_may_have_run_has_an_outcome_that_is_not_known(redis_url: str) -> None:
    began = asyncio.Event()

    async def hang() -> str:
        began.set()
        await asyncio.Event().wait()
        return ""

    async with fleet(redis_url) as (here, there), here.page("ada") as page:
        await owner(here)
        agent = await elsewhere(there)
        await play(agent)
        page.apps["music-1"].register_tool("hang", hang)
        call = asyncio.create_task(agent.call_tool("music-1__hang"))
        await began.wait()
        async with taken_over(redis_url, here):
            (await there.views._setup.workers.bus()).check_redis()
            with pytest.raises(OutcomeUnknown, match="may have done it"):
                await call
        with pytest.raises(OwnerGone):
            await agent.call_tool("music-1__hang")  # which was not sent


async def test_a_worker_that_was_stopped_does_not_use_the_host_that_it_has_lost(
    redis_url: str,
) -> None:
    async with fleet(redis_url) as (here, there), here.page("ada"):
        await owner(here)
        async with taken_over(redis_url, here):
            await owner(there)
        await elsewhere(here)
        assert here.views.users == []


# --- Redis goes ------------------------------------------------------------------------------


@pytest.mark.processes
async def test_without_redis_what_is_local_goes_on_and_all_else_says_so_and_recovers() -> None:
    with RedisServer() as redis:
        async with fleet(redis.url) as (here, there), here.page("ada") as page:
            host, agent = await owner(here), await elsewhere(there)
            view = await play(host)
            forwarded = at(here.page("ada", wish=""), there)
            async with forwarded:
                running = asyncio.create_task(agent.call_tool(f"{view}__key"))
                await asyncio.wait([running])
                redis.kill()
                with pytest.raises((BusUnreachable, OutcomeUnknown), match="127.0.0.1"):
                    await agent.call_tool(f"{view}__key")
                assert (await forwarded.over())[0] == 1012
                with pytest.raises(BusUnreachable):
                    await there.views.host("ada")
                with pytest.raises(BusUnreachable):
                    await there.views.host("somebody else")
                late = at(here.page("ada"), there)
                await late.connect()
                code, reason = await late.closed_with()
                assert (code, "Redis" in reason) == (1011, True)
                refused = await get(there, "x.localhost")
                assert refused.status_code == 503
                assert "127.0.0.1" not in refused.text  # strangers are not told where Redis is
                # Here, nothing has happened.
                assert (await host.call_tool(f"{view}__key")).text == view
                assert await play(host) == "music-2"
                await page.drop()
                await page.resume()
                assert page.welcome["resumed"] is True
                redis.start()
                agent = await recovered(there)
                assert (await agent.call_tool("music-2__key")).text == "music-2"
                # Redis is empty: what has to outlive this worker was written again.
                await here.views.aclose()
                await owner(there)
                assert (await owner(there)).was_view("music-2")


async def recovered(worker: Site) -> RemoteHost:
    async with asyncio.timeout(20):
        while True:
            try:
                return await elsewhere(worker)
            except BusUnreachable:
                await asyncio.sleep(0.02)


@pytest.mark.processes
async def test_a_worker_that_starts_without_redis_says_so_and_works_when_it_is_there() -> None:
    with RedisServer() as redis:
        redis.kill()
        async with site(bus=redis.url, sandbox=Sandbox(secret="x" * 32)) as worker:
            with pytest.raises(BusUnreachable):
                await worker.views.host("ada")
            redis.start()
            async with worker.page("ada"):
                assert await play(await owner(worker)) == "music-1"


async def test_a_url_that_is_none_of_redis_is_refused() -> None:
    with pytest.raises(UsageError, match="http"):
        WebViews(authenticate=lambda _: None, bus="http://localhost")


async def test_users_of_applications_on_one_redis_are_not_the_same(redis_url: str) -> None:
    shop, chat = (Sandbox(secret=each * 32) for each in "ab")
    async with (
        site(bus=redis_url, sandbox=shop) as one,
        site(bus=redis_url, sandbox=chat) as other,
        site(bus=redis_url, sandbox=shop) as again,
    ):
        await owner(one, "1")
        await owner(other, "1")
        await elsewhere(again, "1")
        assert (one.connected, other.connected, again.connected) == (["1"], ["1"], [])


@pytest.mark.parametrize(
    ("bus", "secret", "said"),
    [
        ("redis://localhost", None, "needs Sandbox(secret=...)"),
        (Bus("redis://localhost"), "x" * 32, "Bus(url, secret=...)"),
    ],
)
def test_a_bus_without_a_secret_is_refused(bus: str | Bus, secret: str | None, said: str) -> None:
    with pytest.raises(UsageError) as refusal:
        WebViews(authenticate=lambda _: None, sandbox=Sandbox(secret=secret), bus=bus)
    assert said in str(refusal.value)


# --- several users ---------------------------------------------------------------------------


async def test_on_another_worker_a_user_finds_nothing_of_another(redis_url: str) -> None:
    async with (
        fleet(redis_url, trusting=False) as (here, there),
        here.page("ada") as ada,
        at(here.page("bob", wish=""), there) as bob,
    ):
        host = await owner(here)
        await owner(there, "bob")
        view = await play(host, "secret")
        await ada.heard("named")
        # By the ids of Views, whatever the page sends.
        for wish in ("free", "take", "again", "gone"):
            await bob.place(view, wish)
        for do in ("closed", "broken", "reload", "vanished", "mode", "retry", "refused"):
            await bob.tell(do=do, view=view, value=True)
        await bob.send(view, '{"jsonrpc":"2.0","id":1,"method":"ui/initialize","params":{}}')
        asking = asyncio.create_task(host.call_tool(f"{view}__stop"))
        question = await ada.heard("ask")
        for number in range(10):
            await bob.tell(do="answer", id=number, value="always")
        await bob.until(lambda p: [m for m in p.told if m["do"] == "absent"][2:])
        assert [m for m in bob.told if m["do"] in ("mount", "offer", "elsewhere", "ask")] == []
        assert "secret" not in str(bob.told)
        agent = await elsewhere(here, "bob")
        with pytest.raises(ProtocolError, match="not found"):
            await agent.call_tool(f"{view}__key")
        assert not agent.views
        assert not asking.done()
        # By the page of another, on either worker: the cookie decides who it is.
        for worker in (here, there):
            thief = at(here.page("bob", page=ada.welcome["page"], received=ada.received), worker)
            async with thief:
                assert thief.welcome["resumed"] is False
                await thief.place(view, "again")
                await thief.heard("absent")
        # By names on the bus: a user called like the lease of another is somebody else.
        for name in ("user:ada", "ada\x00", "ada ", "origin:x"):
            async with at(here.page(name, wish=""), there) as other:
                await other.place(view, "again")
                assert (await other.heard("absent"))["again"] is False
                assert not (await there.views.host(name)).views
        await ada.tell(do="answer", id=question["id"], value="allow")
        assert (await asking).text == "stopped music-1"


async def test_a_cookie_that_is_worth_nothing_gets_nowhere_on_any_worker(redis_url: str) -> None:
    async with fleet(redis_url) as (here, there), here.page("ada") as ada:
        await play(await owner(here))
        for session in ("", "guess", "ada", "user:ada"):
            page = at(UserPage(here.origin, session, page=ada.welcome["page"]), there)
            await page.connect()
            assert await page.closed_with() == (4401, "Nobody is signed in")
        stale = at(here.page("ada", page=ada.welcome["page"]), there)
        here.sessions.clear()
        await stale.connect()
        assert (await stale.closed_with())[0] == 4401
        assert there.views.users == []


async def test_many_users_on_three_workers_each_call_their_own(redis_url: str) -> None:
    async with fleet(redis_url, 3) as sites, AsyncExitStack() as stack:
        users = [f"user-{n}" for n in range(12)]
        for n, user in enumerate(users):
            await stack.enter_async_context(at(sites[0].page(user), sites[n % 3]))
        agents = [await sites[(n + 1) % 3].views.host(user) for n, user in enumerate(users)]
        assert all(isinstance(each, RemoteHost) for each in agents)
        ids = await asyncio.gather(
            *(play(agent, user) for agent, user in zip(agents, users, strict=True))
        )
        assert ids == ["music-1"] * 12
        results = await asyncio.gather(
            *(
                agent.call_tool("play", {"song": user})
                for agent, user in zip(agents, users, strict=True)
            )
        )
        assert [each.text for each in results] == [f"playing {user}" for user in users]
