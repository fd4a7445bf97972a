"""What Views store: it lasts for those of the same server and resource, and reaches nobody else."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mcp.server.mcpserver import MCPServer
from playwright.async_api import expect

from tests.browser.hosting import Told, User, expect_shown, inside, lasting_browser, text_of
from tests.browser.views import html, page
from transom import Host, Limits, Policy
from transom.connections import ServerConnection, connect
from transom.errors import TransomError
from transom.host.views.view import View
from transom.server import Views
from transom.web.local.headless import HeadlessRenderer
from transom.web.view_storage import ViewStorage

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.processes]

STORING = """
tools.keep = ({ text }) => { localStorage.setItem("note", text); return "kept"; };
tools.note = () => localStorage.getItem("note") ?? "nothing";
tools.origin = () => location.ancestorOrigins[0];
tools.told = () => told.map(({ method, params }) => ({ method, params }));
"""

# Everything that a page can try to get at what another one stored, or at its windows.
SPYING = """
tools.spy = async ({ origin }) => {
  const found = [];
  const look = (window, depth) => {
    if (depth > 4) return;
    for (let i = 0; i < window.length; i += 1) {
      try { found.push(window[i].localStorage.getItem("note")); } catch { /* another origin's */ }
      look(window[i], depth + 1);
    }
  };
  look(top, 0);
  found.push(localStorage.getItem("note"), document.cookie);
  for (const name of (await indexedDB.databases()).map(({ name }) => name)) found.push(name);
  const frame = document.createElement("iframe");
  frame.src = `${origin}/transom-view`;
  document.body.append(frame);
  await new Promise((resolve) => setTimeout(resolve, 500));
  try { found.push(frame.contentWindow.localStorage.getItem("note")); } catch { /* stopped */ }
  return found.filter(Boolean);
};
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def user(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[User]:
    """A user with a browser that keeps what pages store, as private windows do not."""
    async with lasting_browser(tmp_path_factory.mktemp("browser") / "profile") as made:
        yield made


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state folder of a user who has never shown a View."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def server(script: str = "") -> MCPServer:
    """A server with two resources, which `show` and `other` open."""
    views = Views()
    made = MCPServer("tests", extensions=[views])
    for name in ("show", "other"):
        opened = views.add(f"ui://tests/{name}.html", html=html(STORING + script))

        @views.tool(opens=opened, name=name, annotations={"readOnlyHint": True})
        def show(label: str = "") -> str:
            """Open a View."""
            return f"shown {label}"

    return made


@asynccontextmanager
async def hosted(
    renderer: Any, script: str = "", identity: str = "tests", hostile: str = ""
) -> AsyncIterator[Host]:
    """A Host with that server, and maybe a hostile one that was started by the same command."""
    async with (
        connected(identity, script) as first,
        connected(identity, hostile) as second,
        Host(renderer=renderer, audit=None, policy=Policy.trusting(), open_timeout=40) as host,
    ):
        await host.add_server("tests", first)
        if hostile:
            await host.add_server("hostile", second)
        yield host


@asynccontextmanager
async def connected(identity: str, script: str) -> AsyncIterator[ServerConnection]:
    connection = await connect(server(script))
    connection.identity = identity
    try:
        yield connection
    finally:
        await connection.aclose()


async def show(host: Host, tool: str = "show", label: str = "") -> View:
    note = ((await host.call_tool(tool, {"label": label})).meta or {})["transom/view"]
    assert note["state"] == "live", note
    return host.views[note["id"]]


async def note(view: View) -> str:
    return await text_of(view.call_tool("note"))


async def origin(view: View) -> str:
    return await text_of(view.call_tool("origin"))


LOOP = "for (;;);"


@pytest.mark.nightly  # beside an endless loop, all takes long
@pytest.mark.parametrize(
    ("loop", "again"),
    [
        pytest.param(LOOP, "Try again", id="before it connects"),
        pytest.param(f"tools.loop = () => {{ {LOOP} }};", "Reload", id="in a tool"),
    ],
)
async def test_a_view_in_an_endless_loop_comes_back_mended_when_its_user_reloads_it(
    user: User, tmp_path: Path, loop: str, again: str
) -> None:
    views, file = Views(), tmp_path / "page.html"
    file.write_text(html(loop))
    opens = views.add("ui://tests/page.html", html=file)

    @views.tool(opens=opens)
    def show() -> str:
        """Open a View."""
        return "shown"

    connection = await connect(MCPServer("tests", extensions=[views]))
    connection.identity = "tests"  # so that its Views have an origin that stays
    limits = Limits(unresponsive_after=1, gone_after=2)
    options: Any = {"policy": Policy.trusting(), "limits": limits, "open_timeout": 10}
    async with Host(renderer=user.renderer(), audit=None, **options) as host:
        await host.add_server("tests", connection)
        await host.call_tool("show")
        if again == "Reload":
            with suppress(TransomError):
                await host.views["tests-1"].call_tool("loop", timeout=1)
        file.write_text(html(body="<h1>Mended</h1>"))
        await user.page.get_by_role("button", name=again).click()
        await expect_shown(user.in_view("tests-1").locator("h1")).to_have_text("Mended")
    await connection.aclose()


# --- it lasts --------------------------------------------------------------------------------


@pytest.mark.processes
async def test_what_a_view_stores_lasts_over_a_reload_a_closed_view_and_the_next_run(
    user: User,
) -> None:
    async with hosted(user.renderer()) as host:
        view = await show(host)
        await view.call_tool("keep", {"text": "page 7"})
        told = Told(host)
        await user.page.reload()
        assert await note(await told.opened.get()) == "page 7"
        await host.views[view.id].close()
        assert await note(await show(host)) == "page 7"
    await user.page.close()
    async with hosted(user.renderer()) as host:
        assert await note(await show(host)) == "page 7"


@pytest.mark.nightly
async def test_what_a_view_stores_lasts_when_the_browser_is_started_again(tmp_path: Path) -> None:
    seen: list[str] = []
    for _ in range(2):
        async with hosted(HeadlessRenderer(profile=tmp_path / "profile")) as host:
            view = await show(host)
            seen.append(await note(view))
            await view.call_tool("keep", {"text": "page 7"})
    assert seen == ["nothing", "page 7"]


@pytest.mark.nightly
async def test_nothing_lasts_where_that_is_wanted(user: User) -> None:
    origins: set[str] = set()
    for _ in range(2):
        async with hosted(user.renderer(ephemeral=True)) as host:
            for _ in range(2):
                view = await show(host)
                assert await note(view) == "nothing"
                await view.call_tool("keep", {"text": "page 7"})
                origins.add(await origin(view))
    assert len(origins) == 4
    assert ViewStorage().origins() == []


@pytest.mark.nightly
async def test_views_of_servers_that_cannot_be_told_apart_have_origins_of_their_own(
    user: User,
) -> None:
    async with hosted(user.renderer(), identity="") as host:
        assert await origin(await show(host)) != await origin(await show(host))


@pytest.mark.nightly
async def test_a_port_that_is_taken_is_said_and_views_are_shown_all_the_same(
    user: User, caplog: pytest.LogCaptureFixture
) -> None:
    port = ViewStorage().ports()[1]
    with socket.create_server(("127.0.0.1", port)):
        async with hosted(user.renderer()) as host:
            view = await show(host)
            assert await note(view) == "nothing"
            text = f"What Views store does not last: port {port}, where they had their storage, is"
            await expect(user.page.locator("#notice")).to_contain_text(text)
            assert text in caplog.text
            await user.page.reload()
            await expect(user.page.locator("#notice")).to_contain_text(text)
    async with hosted(user.renderer()) as host:
        assert f":{port}" in await origin_of(user, await show(host))
        assert await user.page.locator("#notice").is_hidden()


async def origin_of(user: User, view: View) -> str:
    return await user.run_in_view(view.id, "location.ancestorOrigins[0]")


# --- and reaches nobody else -----------------------------------------------------------------


async def test_storage_of_one_server_or_resource_never_reaches_another(user: User) -> None:
    async with hosted(user.renderer(), hostile=SPYING) as host:
        kept = await show(host)
        await kept.call_tool("keep", {"text": "secret"})
        target = await origin_of(user, kept)
        for tool in ("hostile__show", "other"):
            spy = await show(host, tool)
            assert await note(spy) == "nothing"
            assert await origin_of(user, spy) != target
        spy = next(view for view in host.views.values() if view.server == "hostile")
        assert await text_of(spy.call_tool("spy", {"origin": target})) == "[]"
    await user.page.close()
    # A server that is called the same, and has the same resource, but is started otherwise.
    async with hosted(user.renderer(), SPYING, "another command") as host:
        spy = await show(host)
        assert await note(spy) == "nothing"
        assert await text_of(spy.call_tool("spy", {"origin": target})) == "[]"


@pytest.mark.nightly
async def test_views_of_one_resource_share_an_origin_only_while_they_have_the_same_rights(
    user: User,
) -> None:
    async with user.renderer() as renderer:
        await renderer.show_page()
        more = {"csp": {"connectDomains": ["https://x.example"]}}
        rights = {
            "one-1": {},
            "two-1": {},
            "three-1": more,
            "four-1": {"permissions": {"camera": {}}},
        }
        for view_id, given in rights.items():
            renderer._stage.mount(page(view_id, **given), label="shared")
            await user.in_view(view_id).locator("h1").wait_for()
        found = [
            await user.run_in_view(view_id, "location.ancestorOrigins[0]") for view_id in rights
        ]
        assert found[0] == found[1]
        assert found[0].startswith("http://shared.localhost:")
        assert len(set(found)) == 3
        # What those that share an origin may load is what each of them may.
        mounted = [renderer._stage.mounted(view_id) for view_id in rights]
        policies = [each.csp.partition("; report-uri")[0] for each in mounted if each is not None]
        assert policies[0] == policies[1] == policies[3] != policies[2]


# --- clearing --------------------------------------------------------------------------------


@pytest.mark.nightly
async def test_what_was_cleared_is_gone_from_the_browser_too(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosted(user.renderer()) as host:
        view = await show(host)
        await view.call_tool("keep", {"text": "page 7"})
        before = await origin(view)
    await user.page.close()
    [gone] = ViewStorage().clear()
    assert gone.origin == before
    assert ViewStorage().origins() == []
    async with hosted(renderer := user.renderer()) as host:
        told, loop = asyncio.Queue[str](), asyncio.get_running_loop()
        confirm = ViewStorage.confirm_cleared

        def confirmed(storage: ViewStorage, where: str) -> None:
            confirm(storage, where)
            loop.call_soon_threadsafe(told.put_nowait, where)

        monkeypatch.setattr(ViewStorage, "confirm_cleared", confirmed)
        view = await show(host)
        assert await note(view) == "nothing"
        assert await origin(view) != before
        assert await told.get() == before
        await user.page.locator("body > iframe").wait_for(state="detached")
        # The origin of before, as it would be if it were used again.
        channel = renderer._stage.mount(
            (mounted := renderer._stage.mounted(view.id)).resource,
            key="again",
            label=before.split("//")[1].split(".")[0],
        )
        frame = inside(user.page, "#view-again")
        await frame.locator("h1").wait_for()
        assert mounted is not None
        read = "() => [location.ancestorOrigins[0], localStorage.getItem('note')]"
        assert await frame.locator("h1").evaluate(read) == [before, None]
        await channel.aclose()
    assert ViewStorage().cleared(int(before.rpartition(":")[2])) == []


# --- opened again ----------------------------------------------------------------------------


def card(user: User, text: str) -> Any:
    return user.page.locator("transom-view[data-state=closed]").filter(has_text=text)


async def test_a_closed_view_can_be_opened_again_with_its_input_and_result(
    user: User,
) -> None:
    async with hosted(user.renderer()) as host:
        view = await show(host, label="first")
        told = Told(host)
        await user.page.get_by_role("button", name=f"Close: {view.id}").click()
        await told.closed.get()
        closed = card(user, "“test-view” from tests")
        await expect(closed).to_contain_text('show {"label":"first"}')
        await expect(closed).to_contain_text("You closed it.")
        await user.page.reload()
        await user.page.get_by_role("button", name="Reopen: tests-1").click()
        again = await told.opened.get()
        assert (again.id, await closed.count()) == ("tests-1", 0)
        said = await text_of(again.call_tool("told"))
        assert '"label":"first"' in said
        assert "shown first" in said
        await user.page.get_by_role("button", name="Close: tests-1").click()
        await user.page.get_by_role("button", name="Dismiss: tests-1").click()
        await user.page.get_by_text("Nothing is open").wait_for()


@pytest.mark.nightly
async def test_views_of_an_earlier_run_can_be_opened_again_where_they_were(
    user: User,
) -> None:
    async with hosted(user.renderer()) as host:
        for label in ("first", "second"):
            await show(host, label=label)
        await host.views["tests-1"].call_tool("keep", {"text": "page 7"})
    await user.page.close()
    async with hosted(user.renderer()) as host:
        await show(host, label="third")
        first, second = card(user, '"first"'), card(user, '"second"')
        await expect(first).to_contain_text("“show” from tests")
        await expect(first).to_contain_text("You had it open today at ")
        await second.get_by_role("button", name="Dismiss").click()
        told = Told(host)
        await first.get_by_role("button", name="Reopen").click()
        again = await told.opened.get()
        assert again.id == "tests-2"
        assert "shown first" in await text_of(again.call_tool("told"))
        assert await note(again) == "page 7"
        assert await user.page.locator("transom-view[data-state=closed]").count() == 0
    await user.page.close()
    async with hosted(user.renderer()) as host:
        await show(host, label="fourth")
        await expect(card(user, "“show” from tests")).to_have_count(2)
        await expect(card(user, '"second"')).to_have_count(0)


@pytest.mark.nightly
async def test_views_of_another_server_are_not_offered(user: User) -> None:
    async with hosted(user.renderer()) as host:
        await show(host, label="first")
    await user.page.close()
    async with hosted(user.renderer(), identity="another command") as host:
        await show(host)
        assert await user.page.locator("transom-view[data-state=closed]").count() == 0
