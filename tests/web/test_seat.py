"""Several Hosts before one Stage."""

import asyncio
import base64
import gc
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.web.browser import PythonBrowser, music, play
from transom import Deny, Host, Policy, Tool
from transom.background import Background
from transom.connections.targets import connect
from transom.errors import Refused, UsageError, ViewClosed
from transom.host import open_views
from transom.host.asking.policy import ApprovalRequest
from transom.host.views.ui_resource import UIResource
from transom.host.views.view import View
from transom.types import ResourceContents
from transom.web.local.renderers import BrowserRenderer
from transom.web.mounted_views import Violation
from transom.web.seat import file_of


class Theatre:
    """A renderer, a browser, and Hosts that come and go."""

    def __init__(self, **options: Any) -> None:
        self.browser = PythonBrowser(lambda: self.renderer._stage)
        self.renderer = BrowserRenderer(open_page=self.browser.open_page, **options)

    @asynccontextmanager
    async def host(self, client: str = "", **options: Any) -> AsyncIterator[Host]:
        options.setdefault("policy", Policy.trusting())
        async with Host(renderer=self.renderer.seat(client), audit=None, **options) as host:
            await host.add_server("music", music())
            yield host


@pytest.fixture
async def theatre() -> AsyncIterator[Theatre]:
    made = Theatre()
    async with made.renderer, made.browser:
        yield made


async def key_of(view: View) -> str:
    """What the Stage calls a View, as the View was told."""
    return (await view.call_tool("key")).text


async def closed(host: Host) -> View:
    """Wait until a View of that Host is closed."""
    told: asyncio.Queue[View] = asyncio.Queue()
    host.on_view_closed(told.put_nowait)
    return await told.get()


async def opened(host: Host) -> View:
    """Wait until a View of that Host is open."""
    told: asyncio.Queue[View] = asyncio.Queue()
    host.on_view_opened(told.put_nowait)
    return await told.get()


def kept(folder: Path) -> Counter[str]:
    """How many objects of Transom's there are, and files of Views."""
    gc.collect()
    types = (type(each) for each in gc.get_objects())
    found = Counter(kind.__name__ for kind in types if str(kind.__module__).startswith("transom."))
    found["files"] = len(list(folder.rglob("recent/*/*")))
    return found


async def test_the_user_is_told_that_nothing_lasts_when_the_state_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    theatre = Theatre()
    async with theatre.renderer, theatre.browser, Host(renderer=theatre.renderer.seat()) as host:
        state = tmp_path / "transom" / "views" / "state.json"
        state.parent.mkdir(parents=True, exist_ok=True)
        state.write_text("damaged")
        connection = await connect(music())
        connection.identity = "a command"  # so that its Views are kept on disk
        await host.add_server("music", connection)
        await play(host)
        notice = await theatre.browser.page.heard("notice")
        assert notice["text"].startswith("What Views store does not last: ")
        assert "state.json cannot be read" in notice["text"]
        assert state.read_text() == "damaged"
        await connection.aclose()


@pytest.mark.load
async def test_nothing_grows_with_the_number_of_views_that_were_opened_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(open_views, "_MAX_CLOSED", 5)
    theatre, counts = Theatre(), list[Counter[str]]()
    seat = theatre.renderer.seat()
    async with theatre.renderer, theatre.browser, Host(renderer=seat) as host:
        assert seat._earlier is not None
        connection = await connect(music())
        connection.identity = "a command"  # so that its Views are kept on disk
        await host.add_server("music", connection)
        for number in range(1, 51):
            await (await play(host)).close()
            theatre.browser.apps.clear()
            if number in (25, 50):
                await seat._earlier.aclose()
                seat._earlier._writing = Background(counts.append)
                counts.append(kept(tmp_path))
        await connection.aclose()
    before, after = counts
    assert 0 < before["files"] <= 21
    grown = after - before  # the last View may be about to end, and has a dozen events
    assert {name: number for name, number in grown.items() if number > 20} == {}


# --- which View is whose ---------------------------------------------------------------------


async def test_views_of_one_id_and_two_hosts_are_kept_apart(theatre: Theatre) -> None:
    async with theatre.host("cursor") as one, theatre.host("codex") as two:
        first, second = await play(one), await play(two)
        assert first.id == second.id == "music-1"
        keys = await key_of(first), await key_of(second)
        assert len(set(keys)) == 2
        assert list(theatre.browser.page.views) == list(keys)
        assert len(theatre.browser.pages) == 1
        mounts = [m for m in theatre.browser.page.told if m["do"] == "mount"]
        assert [(m["view"], m["shown"], m["client"]) for m in mounts] == [
            (keys[0], "music-1", "cursor"),
            (keys[1], "music-1", "codex"),
        ]
        named = [m["view"] for m in theatre.browser.page.told if m["do"] == "named"]
        assert named == list(keys)


async def test_a_view_that_the_user_closes_is_closed_at_its_own_host(theatre: Theatre) -> None:
    async with theatre.host() as one, theatre.host() as two:
        first, second = await play(one), await play(two)
        gone = asyncio.create_task(closed(two))
        await theatre.browser.page.tell(do="closed", view=await key_of(second))
        assert await gone is second
        assert await key_of(first)
        assert list(one.views) == ["music-1"]
        assert list(two.views) == []


async def test_a_mode_is_told_to_the_view_that_is_in_it(theatre: Theatre) -> None:
    async with theatre.host() as one, theatre.host() as two:
        first, second = await play(one), await play(two)
        apps = theatre.browser.apps
        page = theatre.browser.page
        changed: asyncio.Queue[str | None] = asyncio.Queue()
        app = apps[await key_of(second)]
        app.on_host_context_changed(lambda context: changed.put_nowait(context.display_mode))
        await page.tell(do="mode", view=await key_of(second), mode="pip")
        assert await changed.get() == "pip"
        context = apps[await key_of(first)].host_context
        assert context is not None
        assert context.display_mode == "inline"


async def test_a_mode_that_a_view_asks_for_is_asked_of_the_page_for_that_view(
    theatre: Theatre,
) -> None:
    async with theatre.host() as one, theatre.host() as two:
        await play(one)
        key = await key_of(await play(two))
        page = theatre.browser.page
        app = theatre.browser.apps[key]
        for number, answer, mode in ((0, False, "inline"), (1, True, "fullscreen")):
            asking = asyncio.create_task(app.request_display_mode("fullscreen"))
            all_asked = await page.until(
                lambda p, n=number: (found := [m for m in p.told if m["do"] == "ask"])[n:] and found
            )
            asked = all_asked[number]
            assert (asked["kind"], asked["view"], asked["mode"]) == ("mode", key, "fullscreen")
            await page.tell(do="answer", id=asked["id"], value=answer)
            assert await asking == mode
        assert await page.heard("mode") == {"do": "mode", "view": key, "mode": "fullscreen"}


async def test_arguments_that_no_card_can_show_are_refused_unasked(theatre: Theatre) -> None:
    seat = theatre.renderer.seat()
    tool = Tool("wipe")
    about = {"view_id": "music-1", "server": "music", "app": None, "tool": tool}
    request = ApprovalRequest(**about, arguments={"all": "x" * 20_000})
    decision = await seat.approve(request)
    assert isinstance(decision, Deny)
    assert "the arguments have 20010 characters, and at most 20000 can be shown" in decision.reason


async def test_surroundings_are_told_to_every_host(theatre: Theatre) -> None:
    async with theatre.host() as one, theatre.host() as two:
        keys = [await key_of(await play(host)) for host in (one, two)]
        apps = [theatre.browser.apps[key] for key in keys]
        changed: asyncio.Queue[str | None] = asyncio.Queue()
        for app in apps:
            app.on_host_context_changed(lambda context: changed.put_nowait(context.theme))
        await theatre.browser.page.tell(do="surroundings", value={"theme": "dark"})
        assert [await changed.get(), await changed.get()] == ["dark", "dark"]


async def test_what_the_program_sets_goes_before_the_surroundings(theatre: Theatre) -> None:
    async with theatre.host() as host:
        host.set_context(theme="dark", locale="de")
        app = theatre.browser.apps[await key_of(await play(host))]
        changed: asyncio.Queue[Any] = asyncio.Queue()
        app.on_host_context_changed(changed.put_nowait)
        await theatre.browser.page.tell(
            do="surroundings", value={"theme": "light", "locale": "en", "timeZone": "UTC"}
        )
        assert (await changed.get()).time_zone == "UTC"
        assert app.host_context is not None
        assert (app.host_context.theme, app.host_context.locale) == ("dark", "de")
        host.set_context(theme=None)
        assert (await changed.get()).theme == "light"


async def test_a_host_that_comes_later_knows_the_surroundings(theatre: Theatre) -> None:
    async with theatre.host() as one:
        await play(one)
        async with theatre.host() as late:
            context = theatre.browser.apps[await key_of(await play(late))].host_context
            assert context is not None
            assert context.theme == "light"


async def test_a_reloaded_page_shows_every_hosts_views_again(theatre: Theatre) -> None:
    async with theatre.host() as one, theatre.host() as two:
        keys = [await key_of(await play(host)) for host in (one, two)]
        again: asyncio.Queue[View] = asyncio.Queue()
        one.on_view_opened(again.put_nowait)
        two.on_view_opened(again.put_nowait)
        await theatre.browser.open_page()
        opened = [await again.get(), await again.get()]
        assert {id(view) for view in opened} == {id(h.views["music-1"]) for h in (one, two)}
        assert sorted([await key_of(view) for view in opened]) == sorted(keys)
        assert sorted(theatre.browser.page.views) == sorted(keys)


async def test_a_violation_names_the_hosts_own_id_and_for_whom_it_works() -> None:
    seen: list[Violation] = []
    theatre = Theatre(on_violation=seen.append)
    async with theatre.renderer, theatre.browser, theatre.host("cursor") as host:
        view = await play(host)
        page, key = theatre.browser.page, await key_of(view)
        await page.tell(do="refused", view=key, reason="A message is not JSON")
        assert await key_of(view) == key
    assert seen == [Violation("music-1", "message", "A message is not JSON", client="cursor")]


# --- questions -------------------------------------------------------------------------------


async def test_a_question_names_the_hosts_own_id_and_for_whom_it_works(theatre: Theatre) -> None:
    seat = theatre.renderer.seat("cursor")
    policy = Policy(approve=seat.approve)
    async with theatre.host() as other, Host(renderer=seat, audit=None, policy=policy) as host:
        await host.add_server("music", music())
        await play(other)
        view = await play(host)
        call = asyncio.create_task(view.call_tool("stop"))
        asked = await theatre.browser.page.heard("ask")
        assert (asked["shown"], asked["client"], asked["tool"]) == ("music-1", "cursor", "stop")
        await theatre.browser.page.tell(do="answer", id=asked["id"], value="allow")
        assert (await call).text == f"stopped {asked['view']}"


async def test_a_question_ends_with_the_view_it_is_about_and_no_other(theatre: Theatre) -> None:
    async with theatre.host() as one, theatre.host() as two:
        first, second = await play(one), await play(two)
        keys = [await key_of(first), await key_of(second)]
        apps = [theatre.browser.apps[key] for key in keys]
        page = theatre.browser.page
        asking = [asyncio.create_task(app.open_link("https://x.example")) for app in apps]
        await page.until(lambda p: sum(m["do"] == "ask" for m in p.told) == 2)
        asked = {m["view"]: m["id"] for m in page.told if m["do"] == "ask"}
        await first.close()
        assert (await page.heard("unask"))["id"] == asked[keys[0]]
        await page.tell(do="answer", id=asked[keys[1]], value=True)
        await asking[1]
        await asyncio.wait(asking)


@pytest.mark.parametrize("answer", [True, False])
async def test_the_user_is_asked_whether_a_view_may_stay(theatre: Theatre, answer: bool) -> None:
    async with theatre.host("cursor") as host:
        view = await play(host)
        page, app = theatre.browser.page, theatre.browser.apps[await key_of(view)]
        asking = asyncio.create_task(app.request_pin("music plays"))
        asked = await page.heard("ask")
        assert (asked["kind"], asked["shown"], asked["reason"]) == ("pin", "music-1", "music plays")
        await page.tell(do="answer", id=asked["id"], value=answer)
        assert await asking is answer
        assert view.pinned_by == ("view" if answer else None)


@pytest.mark.parametrize(
    ("policy", "stays"), [(Policy.trusting(), True), (Policy(), False)], ids=["trusting", "not"]
)
async def test_where_nobody_can_be_asked_the_policy_says_whether_a_view_may_stay(
    policy: Policy, stays: bool
) -> None:
    theatre = Theatre(confirm=False)
    async with theatre.renderer, theatre.browser, theatre.host(policy=policy) as host:
        view = await play(host)
        app = theatre.browser.apps[await key_of(view)]
        assert await app.request_pin("music plays") is stays
        assert view.pinned is stays


async def test_what_a_client_calls_itself_is_cut_and_has_nothing_that_nobody_sees(
    theatre: Theatre,
) -> None:
    seat = theatre.renderer.seat("a\nb\x1b[0m\u3164\u202e" + "x" * 1000)
    assert seat.client.startswith("a b[0mxxx")
    assert len(seat.client) == 60


async def test_nobody_is_asked_where_nobody_is() -> None:
    theatre = Theatre(confirm=False)
    async with theatre.renderer, theatre.browser:
        seat = theatre.renderer.seat()
        async with Host(renderer=seat, audit=None, policy=Policy(approve=seat.approve)) as host:
            await host.add_server("music", music())
            view = await play(host)
            with pytest.raises(Refused, match="There is no user to ask"):
                await view.call_tool("stop")


# --- coming and going ------------------------------------------------------------------------


async def test_a_host_that_is_closed_takes_its_own_views_along_and_is_forgotten(
    theatre: Theatre,
) -> None:
    async with theatre.host() as stays:
        kept = await play(stays)
        async with theatre.host() as goes:
            gone = await key_of(await play(goes))
        assert theatre.renderer._stage.views == [await key_of(kept)]
        assert len(theatre.renderer._local._seats) == 1
        await theatre.browser.page.until(lambda page: gone not in page.views)
        told: list[Any] = []
        goes.set_surroundings = lambda **changes: told.append(changes)  # type: ignore[method-assign]
        key = await key_of(kept)
        await theatre.browser.page.tell(do="surroundings", value={"theme": "dark"})
        assert await key_of(kept) == key  # in order: what came before has been dealt with
        assert told == []


async def test_what_failed_is_shown_for_its_own_host_and_leaves_with_it(theatre: Theatre) -> None:
    async with theatre.host("cursor") as one, theatre.host("codex") as two:
        first, second = await play(one), await play(two)
        for view in (first, second):
            await theatre.browser.page.tell(do="broken", view=await key_of(view), reason="it broke")
        failed = await theatre.browser.page.until(
            lambda page: [m for m in page.told if m["do"] == "gone"][1:]
        )
        assert failed[0]["shown"] == "music-1"
        assert (failed[0]["client"], failed[0]["reason"]) == ("codex", "it broke")
        again = asyncio.create_task(opened(two))
        await theatre.browser.page.tell(do="retry", view=failed[0]["view"])
        assert await again is two.views["music-1"]
        assert not one.views
        cards = [told["view"] for told in theatre.browser.page.told if told["do"] == "gone"]
        assert [key in theatre.renderer._stage.gone for key in cards] == [True, False]
    assert [key in theatre.renderer._stage.gone for key in cards] == [False, False]


async def test_a_view_that_cannot_be_tried_again_says_why_not(theatre: Theatre) -> None:
    async with theatre.host() as host:
        key = await key_of(await play(host))
        page = theatre.browser.page
        await page.tell(do="broken", view=key, reason="it broke")
        await page.heard("gone")
        await host.remove_server("music")
        await page.tell(do="retry", view=key)
        await page.until(lambda page: [m for m in page.told if m["do"] == "gone"][1:])
        assert "music" in (await page.heard("gone"))["reason"]


async def test_a_view_that_is_left_behind_is_taken_off_with_its_seat(theatre: Theatre) -> None:
    async with theatre.host():
        seat = theatre.renderer.seat()
        channel = await seat.open(UIResource(view_id="x", server="s", uri="ui://s/x", html="<p>"))
        await seat.leave()
        assert theatre.renderer._stage.views == []
        with pytest.raises(Exception, match="its host was closed"):
            await channel.receive()


async def test_the_next_host_never_gets_what_the_stage_called_the_last_ones_view(
    theatre: Theatre,
) -> None:
    keys: set[str] = set()
    for _ in range(3):
        async with theatre.host() as host:
            keys.add(await key_of(await play(host)))
    assert len(keys) == 3
    assert len(theatre.browser.pages) == 1


async def test_hosts_hear_of_their_views_end_when_the_renderer_is_left() -> None:
    theatre = Theatre()
    async with theatre.browser:
        await theatre.renderer.__aenter__()
        async with theatre.host() as host:
            view = await play(host)
            gone = asyncio.create_task(closed(host))
            await asyncio.sleep(0)
            await theatre.renderer.__aexit__(None, None, None)
            assert await gone is view
            with pytest.raises(ViewClosed):
                await view.call_tool("key")


async def test_a_renderer_of_one_host_is_used_as_before() -> None:
    theatre = Theatre()
    async with (
        theatre.browser,
        Host(renderer=theatre.renderer, audit=None, policy=Policy.trusting()) as host,
    ):
        await host.add_server("music", music())
        assert await key_of(await play(host)) == "music-1"
        assert theatre.renderer.seat().url == theatre.renderer.url


# --- mistakes --------------------------------------------------------------------------------


async def test_two_hosts_with_one_renderer_are_a_mistake_that_says_what_to_do() -> None:
    theatre = Theatre()
    async with Host(renderer=theatre.renderer, audit=None):
        with pytest.raises(UsageError, match=r"renderer\.seat\(\)"):
            async with Host(renderer=theatre.renderer, audit=None):
                pass


async def test_two_hosts_in_one_seat_are_a_mistake(theatre: Theatre) -> None:
    seat = theatre.renderer.seat()
    async with Host(renderer=seat, audit=None):
        with pytest.raises(UsageError, match=r"renderer\.seat\(\) of its own"):
            async with Host(renderer=seat, audit=None):
                pass


async def test_a_seat_of_a_renderer_that_does_not_run_shows_nothing() -> None:
    seat = Theatre().renderer.seat()
    with pytest.raises(UsageError, match="not running"):
        await seat.open(UIResource(view_id="x", server="s", uri="ui://s/x", html="<p>"))


async def test_an_id_that_could_be_taken_for_another_seats_is_refused(theatre: Theatre) -> None:
    with pytest.raises(UsageError, match="not the id of a View"):
        await theatre.renderer.open(
            UIResource(view_id="music-1~1", server="s", uri="ui://s/x", html="<p>")
        )


# --- files that Views give to the user ----------------------------------------------------


def test_text_is_saved_as_utf_8() -> None:
    mime, data = file_of(ResourceContents(uri="file:///notes.md", text="Grüße\n"))
    assert mime == "text/plain"
    assert data.decode() == "Grüße\n"


def test_bytes_are_saved_as_they_are_under_their_type() -> None:
    blob = base64.b64encode(b"\x89PNG\0").decode()
    resource = ResourceContents(uri="file:///x.png", blob=blob, mime_type="image/png")
    assert file_of(resource) == ("image/png", b"\x89PNG\0")
    assert file_of(ResourceContents(uri="x", blob=blob))[0] == "application/octet-stream"


def test_an_empty_file_is_a_file() -> None:
    assert file_of(ResourceContents(uri="x", text="")) == ("text/plain", b"")


def test_half_a_character_does_not_stop_the_rest() -> None:
    _, data = file_of(ResourceContents(uri="x", text="a\ud800b"))
    assert data == b"a?b"


@pytest.mark.parametrize("blob", ["not base64!", "YQ", "YQ==YQ==", "Y\nQ=="])
def test_what_is_not_base64_is_refused(blob: str) -> None:
    with pytest.raises(Refused, match="not base64"):
        file_of(ResourceContents(uri="x", blob=blob))


def test_a_file_without_content_is_refused() -> None:
    with pytest.raises(Refused, match="no content"):
        file_of(ResourceContents(uri="x"))
