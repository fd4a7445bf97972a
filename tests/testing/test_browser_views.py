"""The pytest plugin with Views in Chromium: one browser for all tests of a session."""

import os
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir

import playwright.async_api  # noqa: F401 - it cannot be imported twice
import pytest

from examples.orders import server as orders_server
from tests.browser.hosting import processes
from tests.testing import pages
from tests.testing.test_plugin import INI, PLUGINS
from transom.testing import plugin
from transom.testing.browser import SharedBrowser
from transom.web.local.headless import HeadlessRenderer

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
EXAMPLES, DOCS = ROOT / "examples", ROOT / "docs" / "testing"

COUNTER = """
from playwright.async_api import expect
from tests.testing.pages import BROKEN, PAGE, SLOW_FRAMES, SOON
import playwright.async_api  # noqa: F401 - it cannot be imported twice
import pytest

async def use(views, html, wait=60):
    if "nothing" not in html:  # else it fails at once
        views.configure(open_timeout=60 if "connect()" in html else 5)
    view = await views.open(html=html, tools={"next": lambda count: str(count + 1)}, result="3")
    expect.set_options(timeout=wait * 1000)
    await expect(view.page.get_by_text("3 so far")).to_be_visible()
    await view.assert_tools("add", timeout=wait)
    assert (await view.call("add", n=4)).text == "7"
    await view.page.get_by_role("button", name="Next").click(timeout=wait * 1000)
    await expect(view.page.get_by_text("8 so far")).to_be_visible()
    assert view.sent_calls("next") == [{"count": 7}]
    return view
"""


def browsers() -> list[int]:
    """The Chromiums of Views that this process has started: their first processes."""
    found = processes("--user-data-dir=" + str(Path(gettempdir()) / "transom-profile-"))
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in found}
    return [
        pid
        for pid, command in commands.items()
        if b"--type=" not in command
        and not command.startswith(b"/bin/sh")  # which ends it
        and os.getpid() in ancestors(pid)
    ]


def ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        yield pid


class KeptBrowser(SharedBrowser):
    """The browser of all sessions inside these tests: it goes on when one of them ends."""

    started = 0

    def close(self) -> None:
        pass

    def _make(self) -> HeadlessRenderer:
        self.started += 1
        return super()._make()

    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[plugin.browser_key] = self


@pytest.fixture(scope="module")
def browser() -> Iterator[KeptBrowser]:
    kept = KeptBrowser()
    yield kept
    SharedBrowser.close(kept)


@pytest.fixture
def run(pytester: pytest.Pytester, browser: KeptBrowser):
    def run(tests: str, *options: str) -> pytest.RunResult:
        pytester.makeini(INI)
        if tests:
            pytester.makepyfile(COUNTER + textwrap.dedent(tests))
        return pytester.runpytest_inprocess(*PLUGINS, *options, plugins=[browser])

    return run


@pytest.mark.nightly
@pytest.mark.parametrize("in_process", [True, False], ids=["here", "as they are"])
def test_the_tests_in_the_documentation_pass(
    run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, in_process: bool
):
    if in_process:  # a process of its own for each test would take most of the time
        monkeypatch.setattr("transom.testing.fixture.parse_target", lambda _: orders_server)
    files = [DOCS / "test_orders.py", EXAMPLES / "orders.py", EXAMPLES / "orders.html"]
    for file in files:
        shutil.copy(file, pytester.path)
    done = run("", "--update-views", "-k", "not contract")
    done.assert_outcomes(passed=12, deselected=89)
    [snapshot] = pytester.path.glob("__views__/*/*")
    assert snapshot.read_text().startswith('heading 1 "Orders"\nsearchbox "Search" = ""\n')


def test_a_page_is_used_as_its_user_and_its_model_do_in_one_browser(run, browser: KeptBrowser):
    before = browser.started
    done = run("""
        import asyncio
        from transom.connections.targets import ServerOpener, way_to
        from transom.testing.page_server import page_server

        async def test_a_page(views):
            await use(views, PAGE)

        async def test_the_browser_is_started_before_the_server_has(views):
            async def start_late():
                while views._renderer.stage_page is None:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                return await way_to(page_server("ui://late/page.html", PAGE, {}, "3"))()

            await views.open(ServerOpener(start_late), "show")

        async def test_surroundings(views):
            views.configure(theme="dark", locale="de")
            view = await views.open(html=PAGE, result="3")
            context = view.view.bridge.context
            assert (context["theme"], context["locale"]) == ("dark", "de")

        async def test_what_is_expected_does_not_fail(views):
            page = PAGE.replace("await app.connect();", "await app.connect(); throw Error('late');")
            view = await views.open(html=page, result="3")
            view.allow_problems("Error: late")

        async def test_what_is_only_logged_does_not_fail(views):
            page = PAGE.replace("await app.connect();", "await app.connect(); console.error('no');")
            view = await views.open(html=page, result="3")
            await view.settle()
            assert [problem.kind for problem in view.problems] == ["console"]

        @pytest.mark.asyncio
        async def test_what_the_host_lacks(views):
            views.configure(refuse=["updateModelContext", "openLinks"])
            view = await views.open(html=PAGE, result="3")
            told = await view.page.evaluate("Object.keys(app.getHostCapabilities())")
            assert {"message", "serverTools"} <= {*told}
            assert {"updateModelContext", "openLinks"}.isdisjoint(told)
    """)
    done.assert_outcomes(passed=6)
    assert browser.started <= before + 1


@pytest.mark.nightly
def test_tests_on_other_event_loops_use_the_same_browser(run, browser: KeptBrowser):
    done = run("""
        import asyncio
        import pytest_asyncio
        from tests.testing.test_browser_views import browsers
        seen = []

        async def see(view):
            assert (await view.call("add", n=1)).text == "4"
            assert await view.page.evaluate("innerWidth > 500") is True
            seen.append((asyncio.get_running_loop(), *browsers()))

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @pytest_asyncio.fixture
        async def opened(views):
            return await views.open(html=PAGE, result="3")

        @pytest.fixture
        async def opened_by_anyio(views, anyio_backend):
            return await views.open(html=PAGE, result="3")

        async def test_own(views):
            await see(await views.open(html=PAGE, result="3"))

        @pytest.mark.asyncio
        @pytest.mark.parametrize("again", [1, 2])
        async def test_asyncio(views, opened, again):
            await see(opened)

        @pytest.mark.anyio
        async def test_anyio(views, opened_by_anyio):
            await see(opened_by_anyio)

        async def test_own_again(views):
            await see(await views.open(html=PAGE, result="3"))

        def test_what_was_seen():
            loops, *started = zip(*seen, strict=True)  # other tests may have started some before
            assert len({*loops}) == 4
            assert started
            assert all(len({*each}) == 1 for each in started)
    """)
    done.assert_outcomes(passed=6)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "which", ["SOON", pytest.param("BROKEN", marks=[pytest.mark.nightly, pytest.mark.timeout(600)])]
)
def test_a_broken_page_fails_its_test_with_the_right_words(
    run, pytester: pytest.Pytester, which: str
):
    broken_pages = getattr(pages, which)
    done = run(f"""
        @pytest.mark.parametrize("broken", {which}, ids=lambda broken: broken.name)
        async def test_broken(views, broken):
            html = PAGE.replace(broken.old, broken.new)
            assert html != PAGE
            await use(views, html, {60 if which == "SOON" else 20})
    """, "--tb=short")  # fmt: skip
    done.assert_outcomes(failed=len(broken_pages))
    sections = done.stdout.str().split("________ test_broken[")[1:]
    assert [section.partition("]")[0] for section in sections] == [
        each.name for each in broken_pages
    ]
    pairs = zip(broken_pages, sections, strict=True)
    assert [section for broken, section in pairs if broken.says not in section] == []
    left = pytester.path / ".pytest_cache" / "d" / "views"
    folder = next(left.glob("*/test_broken-throws_later*"))
    names = {each.name for each in folder.iterdir()}
    assert names >= {"page-1.png", "page-1.tools.json", "page-1.problems.txt", "messages.jsonl"}
    assert (folder / "page-1.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.nightly
def test_a_page_that_failed_is_waited_for_as_long_as_the_test_says(run):
    done = run("""
        from tests.browser.views import BUSY, html

        async def test_patient(views):
            views.configure(open_timeout=60)
            view = await views.open(html=html(BUSY))
            view.allow_problems("not what it needs")
            assert (await view.call("count")).text == "1"
    """)
    done.assert_outcomes(passed=1)


@pytest.mark.nightly
def test_snapshots_are_written_when_told_and_compared_otherwise(run, pytester: pytest.Pytester):
    tests = """
        async def test_same(views, request):
            view = await views.open(html=PAGE, result="3")
            await expect(view.page.get_by_text("3 so far")).to_be_visible()
            await view.assert_snapshot()
            await view.assert_picture()
            if not request.config.getoption("--update-views"):
                await view.page.evaluate("document.querySelector('h1').style.color = '#010000'")
                await view.assert_picture()  # which nobody can see

        async def test_looks_different(views, request):
            view = await views.open(html=PAGE, result="3")
            if not request.config.getoption("--update-views"):
                await view.page.evaluate("document.querySelector('h1').style.color = 'red'")
            await expect(view.page.get_by_text("3 so far")).to_be_visible()
            await view.assert_picture()

        async def test_drawn_late(views, request):
            updating = request.config.getoption("--update-views")
            view = await views.open(html=PAGE if updating else PAGE.replace("<head>", SLOW_FRAMES))
            await view.assert_picture()

        async def test_changed(views, request):
            updating = request.config.getoption("--update-views")
            result = "3" if updating else "4"
            view = await views.open(html=PAGE, result=result)
            await expect(view.page.get_by_text(f"{result} so far")).to_be_visible()
            await view.assert_snapshot()

        async def test_new(views, request):
            view = await views.open(html=PAGE, result="3")
            if not request.config.getoption("--update-views"):
                await view.assert_snapshot("other")
    """
    run(tests, "--update-views").assert_outcomes(passed=5)
    written = sorted(each.name for each in pytester.path.glob("__views__/*/*"))
    assert written == [
        *("test_changed.txt", "test_drawn_late.png", "test_looks_different.png"),
        *("test_same.png", "test_same.txt"),
    ]
    done = run(tests)
    done.assert_outcomes(passed=2, failed=3)
    left = pytester.path.glob(".pytest_cache/d/views/*/test_looks_different/*different.*.png")
    assert {each.name.partition(".")[2] for each in left} == {"new.png", "difference.png"}
    done.stdout.fnmatch_lines_random(
        [
            "*differs from *test_looks_different.png in *% of its dots",
            '*-"3 so far"',
            '*+"4 so far"',
            "*There is no snapshot *test_new.other.txt: run pytest *",
        ]
    )
