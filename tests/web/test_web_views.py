"""Views in an application of many users, without a browser: who gets what, and who does not."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest
from starlette.requests import HTTPConnection
from websockets.exceptions import InvalidStatus

from tests.web.browser import music, play
from tests.web.page import PageEnd
from tests.web.site import Site, UserPage, site
from transom import Host, Limits
from transom.errors import ProtocolError, Refused, TransomError, UsageError, ViewClosed
from transom.host import ElicitRequest
from transom.web import Sandbox, UserLimits
from transom.web.page_link import CONTROL

SECRET = "a secret of thirty-two characters or more"


@pytest.fixture
async def shop() -> AsyncIterator[Site]:
    async with site() as made:
        yield made


async def get(url: str, host: str | None = None, path: str = "") -> httpx2.Response:
    async with httpx2.AsyncClient(verify=False) as client:
        return await client.get(url + path, headers={} if host is None else {"Host": host})


# --- one user --------------------------------------------------------------------------------


async def test_a_view_is_shown_on_the_page_that_has_a_place_for_it(shop: Site) -> None:
    async with shop.page("ada") as page:
        host = await shop.views.host("ada")
        view = await play(host, "Ode")
        offer = await page.heard("offer")
        assert (offer["view"], offer["server"], offer["tool"]) == ("music-1", "music", "play")
        assert (await host.call_tool("music-1__key")).text == "music-1"
        assert page.views.keys() == {view.id}
        assert await shop.views.host("ada") is host
        assert shop.connected == ["ada"]


def results_at(page: UserPage) -> asyncio.Queue[tuple[str, str]]:
    """Which View of a page got which result."""
    got: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def run(key: str, end: PageEnd) -> None:
        page._run(key, end)
        page.apps[key].on_tool_result(lambda result: got.put_nowait((key, result.text)))

    page.on_mount = run
    return got


async def test_a_call_whose_view_has_no_place_returns_and_the_view_opens_at_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    soon = UserLimits(show_within=0.05)
    async with site(users=soon) as shop, shop.page("ada", wish="") as page:
        host = await shop.views.host("ada")
        got = results_at(page)
        result = await host.call_tool("play", {"song": "Ode"})
        assert result.text == "playing Ode"
        assert (result.meta or {})["transom/view"] == {"id": "music-1", "state": "waiting"}
        assert "no page has a place for View music-1" in caplog.text
        with pytest.raises(ViewClosed, match="music-1 is not open: no page has a place for it"):
            await host.call_tool("music-1__key")
        opened: asyncio.Queue[Any] = asyncio.Queue()
        host.on_view_opened(opened.put_nowait)
        await page.place("music-1", "take")
        assert (await opened.get()).state == "live"
        assert await got.get() == ("music-1", "playing Ode")
        assert (await host.call_tool("music-1__key")).text == "music-1"


async def test_a_view_that_finds_its_place_while_its_call_runs_gets_the_result() -> None:
    soon = UserLimits(show_within=0.05)
    async with site(users=soon) as shop, shop.page("ada", wish="") as page:
        host = await shop.views.host("ada")
        got = results_at(page)
        view = await host.open_view("music", "play", {"song": "Ode"})
        with pytest.raises(ViewClosed, match="no page has a place"):
            await view.opened()
        assert view.state == "waiting"
        opened: asyncio.Queue[Any] = asyncio.Queue()
        host.on_view_opened(opened.put_nowait)
        await page.place(view.id, "take")
        assert await opened.get() is view
        await view.deliver("played to the end")
        assert await got.get() == (view.id, "played to the end")


async def test_a_page_that_comes_later_is_offered_the_view_that_waits() -> None:
    async with site(users=UserLimits(show_within=0.05)) as shop:
        host = await shop.views.host("ada")
        opened: asyncio.Queue[Any] = asyncio.Queue()
        host.on_view_opened(opened.put_nowait)
        waiting = await host.call_tool("play", {"song": "Ode"})
        again = await host.call_tool("play", {"song": "Ode"})
        for result, number in ((waiting, 1), (again, 2)):
            note = (result.meta or {})["transom/view"]
            assert note == {"id": f"music-{number}", "state": "waiting"}
        async with shop.page("ada"):
            assert {(await opened.get()).id, (await opened.get()).id} == {"music-1", "music-2"}


async def test_views_that_wait_make_room_first_and_find_their_place_all_the_same() -> None:
    soon = UserLimits(show_within=0.05)
    async with (
        site(users=soon, limits=Limits(max_live_views=2)) as shop,
        shop.page("ada", wish="") as page,
    ):
        host = await shop.views.host("ada")
        got = results_at(page)
        opened: asyncio.Queue[Any] = asyncio.Queue()
        host.on_view_opened(opened.put_nowait)
        await host.call_tool("play", {"song": "one"})
        await page.place("music-1", "take")
        assert await got.get() == ("music-1", "playing one")
        shown = await opened.get()
        await host.call_tool("play", {"song": "two"})
        await host.call_tool("play", {"song": "three"})
        assert {view.id: view.state for view in host.views.values()} == {
            "music-1": "live",
            "music-3": "waiting",
        }
        shown.pin()
        await page.place("music-2", "take")
        assert await got.get() == ("music-2", "playing two")


async def test_a_view_that_waits_outlives_the_host_of_its_user() -> None:
    async with site(users=UserLimits(show_within=0.05)) as shop:
        await (await shop.views.host("ada")).call_tool("play", {"song": "Ode"})
        await shop.views.close("ada")
        async with shop.page("ada", wish="") as page:
            got = results_at(page)
            await page.place("music-1", "take")
            assert await got.get() == ("music-1", "playing Ode")


async def test_a_question_before_a_view_opens_is_asked_on_the_users_page() -> None:
    async def connect(_: str, host: Host) -> None:
        await host.add_server("music", music(), open_views="ask")

    async with site(servers=connect, trusting=False) as shop:
        host = await shop.views.host("ada")
        result = await host.call_tool("play", {"song": "Ode"})
        assert "no page to ask on" in (result.meta or {})["transom/view"]["error"]
        async with shop.page("ada") as page:
            asking = asyncio.create_task(host.call_tool("play", {"song": "Ode"}))
            question = await page.heard("ask")
            await page.tell(do="answer", id=question["id"], value="allow")
            assert ((await asking).meta or {})["transom/view"]["state"] == "live"


async def test_a_view_without_a_place_is_closed_and_comes_back_with_one(shop: Site) -> None:
    async with shop.page("ada") as page:
        host = await shop.views.host("ada")
        view = await play(host, "Ode")
        opened: asyncio.Queue[Any] = asyncio.Queue()
        host.on_view_closed(opened.put_nowait)
        await page.place(view.id, "gone")
        assert (await opened.get()).reason.endswith("no page shows it any more")
        assert "music-1__key" not in [tool.name for tool in await host.list_tools()]
        host.on_view_opened(opened.put_nowait)
        got: asyncio.Queue[str] = asyncio.Queue()
        page.on_mount = lambda key, end: (
            page._run(key, end),
            page.apps[key].on_tool_result(lambda result: got.put_nowait(result.text)),
        )
        await page.place(view.id)
        again = await opened.get()
        assert (again.id, again.state) == (view.id, "live")
        assert await got.get() == "playing Ode"


async def test_a_view_that_the_user_closed_comes_back_only_when_the_user_wants_it(
    shop: Site,
) -> None:
    async with shop.page("ada") as page:
        host = await shop.views.host("ada")
        view = await play(host)
        await page.tell(do="closed", view=view.id)
        assert (await page.heard("absent"))["reason"] == "the user closed it"
        page.told.clear()
        await page.place(view.id, "take")
        assert (await page.heard("absent"))["again"] is True
        opened: asyncio.Queue[Any] = asyncio.Queue()
        host.on_view_opened(opened.put_nowait)
        await page.place(view.id, "again")
        assert (await opened.get()).id == view.id


async def test_what_a_page_says_while_its_view_closes_is_no_error(
    shop: Site, caplog: pytest.LogCaptureFixture
) -> None:
    async with shop.page("ada"):
        host = await shop.views.host("ada")
        view = await play(host)
        [stage] = shop.views._users._users["ada"].pages.stages
        for said in (
            {"do": "surroundings", "value": {"theme": "dark"}},
            {"do": "mode", "view": view.id, "mode": "inline"},
            {"do": "place", "view": view.id, "value": "gone"},
        ):  # one after the other, and nothing else between
            stage._receive(CONTROL, json.dumps(said).encode())
        async with asyncio.timeout(20):
            while view.id in host.views:  # noqa: ASYNC110 - its end is told to its handlers alone
                await asyncio.sleep(0.01)
    assert caplog.records == []


async def test_the_newest_page_takes_a_view_over_and_the_other_is_told(shop: Site) -> None:
    async with shop.page("ada") as first, shop.page("ada", wish="") as second:
        host = await shop.views.host("ada")
        view = await play(host, "Ode")
        await second.place(view.id, "free")
        assert await second.heard("elsewhere")
        assert view.state == "live"
        opened: asyncio.Queue[Any] = asyncio.Queue()
        host.on_view_opened(opened.put_nowait)
        await second.place(view.id, "take")
        assert (await first.heard("elsewhere"))["view"] == view.id
        assert (await opened.get()).id == view.id
        assert (await host.call_tool("music-1__key")).text == "music-1"
        assert view.id in second.views
        assert view.id not in first.views
        # What the first page still says about it counts for nothing.
        await first.place(view.id, "gone")
        await first.tell(do="closed", view=view.id)
        assert (await host.call_tool("music-1__key")).text == "music-1"


async def test_a_view_of_a_page_that_is_gone_is_offered_to_the_others(shop: Site) -> None:
    async with shop.page("ada", wish="") as other:
        host = await shop.views.host("ada")
        async with shop.page("ada") as page:
            view = await play(host)
            await other.place(view.id, "free")
            await other.heard("elsewhere")
            await page.leave()
            await other.until(lambda p: [m for m in p.told if m["do"] == "offer"][1:])
        opened: asyncio.Queue[Any] = asyncio.Queue()
        host.on_view_opened(opened.put_nowait)
        await other.place(view.id, "free")
        assert (await opened.get()).id == view.id


async def test_a_page_that_lost_its_socket_goes_on_where_it_was(shop: Site) -> None:
    async with shop.page("ada") as page:
        host = await shop.views.host("ada")
        view = await play(host)
        await page.drop()
        await page.resume()
        assert page.welcome["resumed"] is True
        assert (await view.call_tool("key")).text == "music-1"


async def test_a_user_has_so_many_pages_and_no_more(shop: Site) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(20):
            await stack.enter_async_context(shop.page("ada"))
        late = shop.page("ada")
        await late.connect()
        code, reason = await late.closed_with()
        assert (code, "20 pages" in reason) == (4410, True)
        async with shop.page("bob") as other:
            assert other.welcome["resumed"] is False


# --- several users ---------------------------------------------------------------------------


async def test_nobody_who_is_not_signed_in_gets_a_page(shop: Site) -> None:
    for session in ("", "guess", "ada"):
        page = UserPage(shop.origin, session)
        await page.connect()
        assert await page.closed_with() == (4401, "Nobody is signed in")
    assert shop.views.users == []


async def test_a_cookie_that_is_worth_nothing_any_more_gets_no_page(shop: Site) -> None:
    page = shop.page("ada")
    async with page:
        shop.sessions.clear()
        await page.drop()
        page.hello.update(page=page.welcome["page"])
        await page.connect()
        assert (await page.closed_with())[0] == 4401
        await page.__aexit__(None, None, None)


async def test_a_socket_ends_with_the_session_that_it_was_opened_in(shop: Site) -> None:
    shop.views._recheck = 0.02
    async with shop.page("ada") as page:
        shop.sessions.clear()
        assert await page.over() == (4401, "Nobody is signed in any more")


async def test_a_socket_whose_user_cannot_be_found_out_any_more_ends_and_may_come_back(
    shop: Site, caplog: pytest.LogCaptureFixture
) -> None:
    shop.views._recheck = 0.02
    who = shop.views._authenticate

    def fail(_: HTTPConnection) -> str | None:
        raise OSError("The database is away")

    async with shop.page("ada") as page:
        shop.views._authenticate = fail
        assert (await page.over())[0] == 1011
        assert "The database is away" in caplog.text
        shop.views._authenticate = who
        await page.__aexit__(None, None, None)
        await page.resume()
        assert page.welcome["resumed"] is True


async def test_signing_out_ends_everything_of_a_user_and_nothing_of_others(shop: Site) -> None:
    async with shop.page("ada") as ada, shop.page("bob") as bob:
        hosts = [await shop.views.host(user) for user in ("ada", "bob")]
        views = [await play(host) for host in hosts]
        await shop.views.close("ada")
        assert (await ada.over())[0] == 4410
        assert views[0].state == "closed"
        assert shop.views.users == ["bob"]
        assert (await views[1].call_tool("key")).text == "music-1"
        assert bob.closed is None


async def test_a_user_finds_no_view_of_another_whatever_the_page_sends(shop: Site) -> None:
    async with shop.page("ada") as ada, shop.page("bob", wish="") as bob:
        host = await shop.views.host("ada")
        await shop.views.host("bob")
        view = await play(host, "secret")
        await ada.heard("named")
        before = list(ada.told)
        for wish in ("free", "take", "again", "gone"):
            await bob.place(view.id, wish)
        for do in ("closed", "broken", "reload", "loaded", "mode", "retry", "refused"):
            await bob.tell(do=do, view=view.id, value=True)
        await bob.send(view.id, '{"jsonrpc":"2.0","id":1,"method":"ui/initialize","params":{}}')
        absent = await bob.until(lambda p: [m for m in p.told if m["do"] == "absent"][2:])
        assert absent[0]["again"] is False
        assert "secret" not in str(bob.told)
        assert [m for m in bob.told if m["do"] in ("mount", "offer", "elsewhere")] == []
        assert (await view.call_tool("key")).text == "music-1"
        assert ada.told == before
        with pytest.raises(ProtocolError, match="not found"):
            await (await shop.views.host("bob")).call_tool("music-1__key")


async def test_a_user_cannot_go_on_with_the_page_of_another(shop: Site) -> None:
    async with shop.page("ada") as ada:
        view = await play(await shop.views.host("ada"))
        thief = shop.page("bob", page=ada.welcome["page"], received=ada.received)
        async with thief:
            assert thief.welcome["resumed"] is False
            assert thief.welcome["page"] != ada.welcome["page"]
            await thief.place(view.id, "again")
            await thief.heard("absent")
            assert (await view.call_tool("key")).text == "music-1"


async def test_a_user_answers_no_question_of_another() -> None:
    async with site(trusting=False) as shop, shop.page("ada") as ada, shop.page("bob") as bob:
        views = [await play(await shop.views.host(user)) for user in ("ada", "bob")]
        asking = asyncio.create_task(views[0].call_tool("stop"))
        question = await ada.heard("ask")
        for number in range(10):
            await bob.tell(do="answer", id=number, value="always")
        await bob.place("music-1", "free")
        assert (await views[1].call_tool("key")).text == "music-1"  # what bob said has arrived
        assert not asking.done()
        assert [m for m in bob.told if m["do"] == "ask"] == []
        await ada.tell(do="answer", id=question["id"], value="deny")
        with pytest.raises(Refused):
            await asking


async def test_what_a_server_asks_comes_to_the_newest_page_of_its_user() -> None:
    request = ElicitRequest("Who?", requested_schema={"properties": {"a": {"type": "string"}}})
    async with site() as shop, shop.page("bob") as bob:
        host = await shop.views.host("ada")
        assert await host.on_elicit.ask("music", request) is None  # there is no page
        async with shop.page("ada"), shop.page("ada") as ada:
            asking = asyncio.create_task(host.on_elicit.ask("music", request))
            question = await ada.heard("ask")
            assert (question["kind"], question["server"]) == ("elicit", "music")
            await ada.tell(do="answer", id=question["id"], value=True, fields={"a": "b"})
            assert await asking == {"a": "b"}
        assert [m for m in bob.told if m["do"] == "ask"] == []


async def test_views_of_two_users_have_origins_that_differ_and_cannot_be_guessed(
    shop: Site, caplog: pytest.LogCaptureFixture
) -> None:
    async with shop.page("ada") as ada, shop.page("bob") as bob:
        for user in ("ada", "bob"):
            await play(await shop.views.host(user))
        origins = [(await page.heard("mount"))["origin"] for page in (ada, bob)]
        assert len(set(origins)) == 2
        port = shop.origin.rpartition(":")[2]
        for origin in origins:
            name = origin.removeprefix("http://")
            assert name.endswith(f".localhost:{port}")
            shown = await get(shop.origin, name, "/transom-view")
            assert f"frame-ancestors {shop.origin}" in shown.headers["content-security-policy"]
        assert "several processes" not in caplog.text
        for guess in ("music-1", "music", "ada", "www"):
            answer = await get(shop.origin, f"{guess}.localhost:{port}", "/transom-view")
            assert answer.status_code == 404
        # It may be one of another process: what to configure then is said once.
        assert caplog.text.count("several processes, each needs WebViews(bus='redis://...')") == 1


async def test_with_a_secret_a_users_view_has_the_origin_it_had_and_nobody_elses() -> None:
    seen: dict[str, list[str]] = {"ada": [], "bob": []}
    for secret in (SECRET, SECRET, SECRET[::-1]):
        async with site(sandbox=Sandbox(secret=secret)) as shop:
            for user, origins in seen.items():
                async with shop.page(user) as page:
                    await play(await shop.views.host(user))
                    origins.append((await page.heard("mount"))["origin"].partition(".")[0])
    assert seen["ada"][0] == seen["ada"][1]
    assert len({*seen["ada"], *seen["bob"]}) == 4


# --- where pages may be ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "origin",
    ["null", "http://evil.example", "http://x.localhost:1", "https://127.0.0.1", "file://"],
)
async def test_pages_of_other_origins_are_refused_though_they_have_the_cookie(
    shop: Site, origin: str
) -> None:
    page = shop.page("ada")
    page.origin = origin
    with pytest.raises(InvalidStatus) as refused:
        await page.connect()
    assert refused.value.response.status_code == 403
    assert shop.views.users == []


async def test_a_view_cannot_be_a_page(shop: Site) -> None:
    async with shop.page("ada") as ada:
        await play(await shop.views.host("ada"))
        view = shop.page("ada")
        view.origin = (await ada.heard("mount"))["origin"]
        with pytest.raises(InvalidStatus):
            await view.connect()
        view.go_to(view.origin)
        with pytest.raises(InvalidStatus):
            await view.connect()


async def test_what_is_not_set_up_for_production_says_what_to_set(
    shop: Site, caplog: pytest.LogCaptureFixture
) -> None:
    page = shop.page("ada")
    page.origin = "https://chat.example.com"
    page.go_to("http://chat.example.com")
    with pytest.raises(InvalidStatus):
        await page.connect()
    assert "set WebViews(sandbox=Sandbox(url, origins=..., secret=...))" in caplog.text


async def test_the_origins_that_are_named_may_connect_and_no_others() -> None:
    production = Sandbox(
        "https://{view}.views.example.com", origins=["https://chat.example.com"], secret=SECRET
    )
    async with site(sandbox=production) as shop:
        page = shop.page("ada")
        page.go_to("http://chat.example.com")
        with pytest.raises(InvalidStatus):
            await page.connect()
        page.origin = "https://chat.example.com"
        async with page:
            await play(await shop.views.host("ada"))
            origin = (await page.heard("mount"))["origin"]
            assert origin.endswith(".views.example.com")
            shown = await get(shop.origin, origin.removeprefix("https://"), "/transom-view")
            policy = shown.headers["content-security-policy"]
            assert "frame-ancestors https://chat.example.com" in policy
        assert (await get(shop.origin, "x.views.example.com", "/anything")).status_code == 404
        assert (await get(shop.origin, "x.localhost", "/anything")).text == "ours /anything"


@pytest.mark.parametrize(
    "host",
    ["X.Views.Example.com", "x.views.example.com.", "x.views.example.com:8443",
     "x.views.example.com.:443", "x.views.example.com:", "x_y.views.example.com",
     "a.b.views.example.com", "-.views.example.com", "views.example.com", "views.example.com."],
)  # fmt: skip
async def test_the_application_is_not_served_in_the_domain_of_views(host: str) -> None:
    production = Sandbox(
        "https://{view}.views.example.com", origins=["https://chat.example.com"], secret=SECRET
    )
    async with site(sandbox=production) as shop:
        answer = await get(shop.origin, host, "/orders")
        assert (answer.status_code, "ours" in answer.text) == (404, False)
        assert (await get(shop.origin, "xviews.example.com", "/orders")).text == "ours /orders"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "https://views.example.com"}, "has {view} in place"),
        ({"url": "http://{view}.views.example.com"}, "it is https"),
        ({"url": "https://{view}.views.example.com/path"}, "cannot be used"),
        ({"url": "https://{view}.views.example.com"}, "needs the origins of your pages"),
        (
            {"url": "https://{view}.v.example", "origins": ["https://chat.example"]},
            "Sandbox(secret=...) has to be set",
        ),
        ({"secret": "short"}, "at least 32 characters"),
        ({"origins": ["https://chat.example.com"]}, "needs a URL, too"),
        (
            {"url": "https://{view}.v.example.com", "origins": ["http://chat.example.com"]},
            "an origin is https:// and a name",
        ),
        (
            {"url": "https://{view}.v.example.com", "origins": ["https://chat.example.com/"]},
            "without a path",
        ),
        (
            {"url": "https://{view}.v.example.com", "origins": ["https://chat.example.com."]},
            "an origin is https:// and a name",
        ),
        (
            {"url": "https://{view}.example.com", "origins": ["https://chat.example.com"]},
            "give them one of their own",
        ),
    ],
)
def test_settings_that_cannot_be_used_say_what_to_set(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as wrong:
        Sandbox(**given)
    assert said in str(wrong.value)


# --- the application around ------------------------------------------------------------------


async def test_everything_else_is_left_to_the_application(shop: Site) -> None:
    for path in ("/", "/transomething", "/socket", "/orders/transom/elements.js"):
        assert (await get(shop.origin, path=path)).text == f"ours {path}"
    script = await get(shop.origin, path="/transom/elements.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert (await get(shop.origin, path="/transom/stage.html")).status_code == 404
    port = shop.origin.rpartition(":")[2]
    answer = await get(shop.origin, f"x.localhost:{port}", "/orders")
    assert (answer.status_code, "ours" in answer.text) == (404, False)
    assert (await get(shop.origin, f"localhost:{port}", "/orders")).text == "ours /orders"


async def test_all_hosts_are_closed_when_the_application_ends() -> None:
    async with site() as shop:
        host = await shop.views.host("ada")
        said: list[str] = []

        async def inner(_: Any, receive: Any, send: Any) -> None:
            await receive()
            await send({"type": "lifespan.shutdown.complete"})

        async def receive() -> dict[str, str]:
            return {"type": "lifespan.shutdown"}

        async def send(message: Any) -> None:
            said.append(message["type"])

        await shop.views.middleware(inner)({"type": "lifespan"}, receive, send)
        assert said == ["lifespan.shutdown.complete"]
        assert shop.views.users == []
        with pytest.raises(TransomError, match="closed"):
            await host.list_tools()


# --- hosts -----------------------------------------------------------------------------------


async def closed(host: Host) -> None:
    async with asyncio.timeout(20):
        with pytest.raises(TransomError, match="closed"):  # noqa: PT012
            while True:  # it is closed in the background
                await host.list_tools()
                await asyncio.sleep(0.01)


async def idle(shop: Site, user: str) -> None:
    """Wait until that user has no Host any more."""
    async with asyncio.timeout(20):
        while user in shop.views.users:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.02)


async def test_a_page_that_wants_a_view_again_and_again_has_it_opened_once_more(shop: Site) -> None:
    async with shop.page("ada") as page:
        page.on_mount = lambda key, end: None  # so that it stays about to be opened
        opening = asyncio.create_task((await shop.views.host("ada")).call_tool("play"))
        await page.heard("mount")
        before = len(asyncio.all_tasks())
        for _ in range(1000):
            await page.tell(do="reload", view="music-1")
        await page.until(lambda p: p.acknowledged == p.sent)
        assert len(asyncio.all_tasks()) < before + 20
        opening.cancel()


@pytest.mark.load
async def test_places_for_views_that_never_were_are_no_work_while_a_host_is_made() -> None:
    goes_on = asyncio.Event()
    goes_on.set()

    async def connect(_: str, host: Host) -> None:
        await goes_on.wait()
        await host.add_server("music", music())

    async with site(servers=connect) as shop:
        async with shop.page("ada"):
            view = await play(await shop.views.host("ada"))
        await shop.views.close("ada")
        goes_on.clear()
        async with shop.page("ada") as page:
            before = len(asyncio.all_tasks())
            for _ in range(500):
                await page.place(view.id, "gone")
                await page.place(view.id, "take")
            for number in range(3000):
                await page.place(f"other-{number}", "take")
            await page.until(lambda p: p.acknowledged == p.sent)
            assert len(asyncio.all_tasks()) < before + 1100
            goes_on.set()
            await page.view(view.id)


async def test_the_host_of_a_user_without_a_page_is_closed_after_a_while() -> None:
    async with site(users=UserLimits(idle=0.08)) as shop, shop.page("bob"):
        host = await shop.views.host("ada")
        await shop.views.host("bob")
        await idle(shop, "ada")
        assert shop.views.users == ["bob"]
        await closed(host)
        assert await shop.views.host("ada") is not host


async def test_the_next_host_of_a_user_goes_on_with_the_views_and_gives_no_id_twice() -> None:
    async with site(users=UserLimits(idle=0.08, show_within=30)) as shop:
        async with shop.page("ada") as page:
            host = await shop.views.host("ada")
            await play(host, "Ode")
            closed_by_user = await play(host, "Requiem")
            await page.tell(do="closed", view=closed_by_user.id)
            await page.heard("absent")
            await page.leave()
        await idle(shop, "ada")
        async with shop.page("ada", wish="") as page:
            got = results_at(page)
            await page.place("music-1", "free")  # as an old conversation does that is opened again
            assert await got.get() == ("music-1", "playing Ode")
            await page.place("music-2", "free")
            absent = await page.heard("absent")
            assert (absent["view"], absent["reason"]) == ("music-2", "the user closed it")
            await page.place("music-2", "again")
            assert await got.get() == ("music-2", "playing Requiem")
            await page.place("music-3", "take")
            absent = await page.until(lambda p: [m for m in p.told if m["do"] == "absent"][1:])
            assert absent[0]["again"] is False
            page.wish = "take"
            third = await play(await shop.views.host("ada"))
            assert third.id == "music-3"


async def test_ids_go_on_after_a_user_signed_out_while_a_view_was_open(shop: Site) -> None:
    for number in (1, 2, 3):
        async with shop.page("ada"):
            assert (await play(await shop.views.host("ada"))).id == f"music-{number}"
            await asyncio.gather(shop.views.close("ada"), shop.views.close("ada"))
        async with shop.page("bob"):
            assert (await play(await shop.views.host("bob"))).id == f"music-{number}"
            await shop.views.close("bob")


async def test_a_user_who_comes_back_while_the_host_is_closing_finds_the_views(shop: Site) -> None:
    async with shop.page("ada"):
        await play(await shop.views.host("ada"))
        closing = asyncio.create_task(shop.views.close("ada"))
        await asyncio.sleep(0)
        async with shop.page("ada") as page:
            await page.place("music-1")
            await page.view("music-1")
        await closing


async def test_a_place_that_is_gone_before_there_is_a_host_gets_no_view(shop: Site) -> None:
    async with shop.page("ada"):
        await play(await shop.views.host("ada"))
    await shop.views.close("ada")
    async with shop.page("ada") as page:
        await page.place("music-1", "take")
        await page.place("music-1", "gone")
        assert (await play(await shop.views.host("ada"))).id == "music-2"
        assert page.views.keys() == {"music-2"}


async def test_of_users_who_were_long_away_the_ids_are_kept_and_not_the_views(
    shop: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transom.web.application.user_records._MAX_BYTES", 6000)
    monkeypatch.setattr("transom.web.application.user_records._MAX_USERS", 2)
    users = ("ada", "bob", "cleo")
    for user in users:
        async with shop.page(user):
            await play(await shop.views.host(user), "x" * 2000)
            await shop.views.close(user)
    seen: list[str] = []
    for user in users:
        async with shop.page(user) as page:
            await page.place("music-1", "again")
            told = await page.until(lambda p: [m for m in p.told if m["do"] in ("mount", "absent")])
            seen.append(told[0]["do"])
            assert (await play(await shop.views.host(user))).id == (
                "music-1" if user == "ada" else "music-2"
            )
    assert seen == ["absent", "absent", "mount"]


async def test_there_are_so_many_users_and_no_more_and_the_least_used_makes_room() -> None:
    async with site(users=UserLimits(max_users=2)) as shop, shop.page("ada"):
        await shop.views.host("ada")
        first = await shop.views.host("bob")
        async with shop.page("cleo"):
            assert shop.views.users == ["ada", "cleo"]
            with pytest.raises(Refused, match="2 users have Views open"):
                await shop.views.host("dan")
            late = shop.page("dan")
            await late.connect()
            assert (await late.closed_with())[0] == 4410
        await closed(first)


async def test_closing_a_user_again_while_the_last_close_runs_fails_nobody(shop: Site) -> None:
    first = await shop.views.host("ada")
    may_close, close = asyncio.Event(), first.aclose

    async def slowly() -> None:
        await may_close.wait()
        await close()

    first.aclose = slowly  # type: ignore[method-assign]
    closing = asyncio.create_task(shop.views.close("ada"))
    await asyncio.sleep(0)
    coming = asyncio.create_task(shop.views.host("ada"))
    await asyncio.sleep(0)
    again = asyncio.create_task(shop.views.close("ada"))
    await asyncio.sleep(0)
    may_close.set()
    await asyncio.gather(closing, again)
    with pytest.raises(Refused, match="closed meanwhile"):
        await coming
    assert isinstance(await shop.views.host("ada"), Host)


async def test_an_application_that_does_not_say_who_it_is_any_more_ends_the_socket(
    shop: Site,
) -> None:
    async def hang(_: object) -> str:
        await asyncio.Event().wait()
        return "ada"

    shop.views._identify_within, shop.views._recheck = 0.05, 0.5
    async with shop.page("ada") as page:
        shop.views._authenticate = hang
        assert await page.over() == (1011, "The user could not be identified")
        late = shop.page("ada")
        await late.connect()
        assert await late.closed_with() == (1011, "The user could not be identified")


async def test_a_host_whose_servers_cannot_be_connected_is_tried_again() -> None:
    failing = ["ada"]

    async def connect(user: str, host: Host) -> None:
        if failing:
            raise TransomError(f"{failing.pop()} has no servers")
        await host.add_server("music", music())

    async with site(servers=connect) as shop:
        with pytest.raises(TransomError, match="ada has no servers"):
            await shop.views.host("ada")
        assert (await shop.views.host("ada")).servers == ["music"]


@pytest.mark.parametrize("user", ["", 7, None, "x" * 201, "ada\ud800"])
async def test_a_users_id_is_a_short_text(shop: Site, user: Any) -> None:
    with pytest.raises(UsageError, match="A user's id is a str"):
        await shop.views.host(user)


@pytest.mark.load
async def test_many_users_have_views_at_once_and_each_calls_its_own() -> None:
    async with site(limits=Limits(relist_interval=0)) as shop, AsyncExitStack() as stack:
        users = [f"user-{n}" for n in range(20)]
        for user in users:
            await stack.enter_async_context(shop.page(user))
        hosts = await asyncio.gather(*(shop.views.host(user) for user in users))
        await asyncio.gather(*(play(host) for host in hosts for _ in range(2)))
        answers = await asyncio.gather(
            *(host.call_tool(f"music-{n}__key") for host in hosts for n in (1, 2))
        )
        assert [answer.text for answer in answers] == ["music-1", "music-2"] * 20
