"""The pytest plugin with Views in Python: no browser, so these run in this process."""

import textwrap

import pytest
from mcp.server.mcpserver import MCPServer

# pytester runs tests in this process and then forgets what they imported: what cannot be imported
# twice is imported here.
import transom.agents.pydantic_ai
import transom.testing.contract
import transom.testing.fixture
import transom.testing.model
import transom.testing.page_server
import transom.testing.pictures
import transom.web.local.headless  # noqa: F401
from tests.test_package import modules_loaded_by

MCPServer("which loads more when it is made")

VIEW = """
import pytest
from mcp.server.mcpserver import MCPServer
from transom import App, ToolError
from transom.server import Views
from transom.testing import Call, assert_contract, contract_tests, make_model

pytestmark = pytest.mark.load  # each test runs pytest

ORDERS = "ui://orders/list.html"

def orders_view():
    app = App("orders", "1.0.0")
    chosen = []
    pay = app.register_tool("pay", lambda: "paid", description="Pay.", enabled=False)

    @app.tool(annotations={"readOnlyHint": True})
    def get_selection() -> str:
        "What is selected."
        return ", ".join(chosen) or "nothing"

    @app.tool
    def select(id: str) -> str:
        "Select one."
        if id == "A-0":
            raise ToolError("There is no order A-0")
        chosen.append(id)
        pay.enable()
        return "selected"

    @app.tool
    async def refresh() -> str:
        "Fetch again."
        return (await app.call_server_tool("fetch", {"status": "open"})).text

    @app.tool
    async def share() -> str:
        "Share it."
        await app.open_link("https://example.com/orders")
        return str(app.host_capabilities.open_links is not None)

    @app.tool
    def look() -> str:
        "The surroundings."
        return f"{app.host_context.theme} {app.host_context.locale}"

    return app

def make_server(kind=MCPServer):
    views = Views()
    page = views.add(ORDERS, html="<!doctype html><html><body>Orders</body></html>")

    @views.tool(opens=page, annotations={"readOnlyHint": True})
    def show_orders(status: str = "all") -> str:
        "Show orders."
        return f"orders: {status}"

    @views.helper
    def fetch(status: str) -> str:
        "Fetch orders."
        return f"fetched {status}"

    server = MCPServer("orders", extensions=[views])

    @server.tool(annotations={"readOnlyHint": True})
    def count() -> int:
        "How many there are."
        return 3

    return server
"""

# Whether or not this installation of Transom has its entry point.
PLUGINS = ("-p", "no:transom", "-p", "transom.testing.plugin", "-p", "no:langsmith_plugin")
INI = "[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n"


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Runs a file of tests with the plugin, and with no other that runs async tests unless told."""

    def run(tests: str, *options: str, ini: str = INI) -> pytest.RunResult:
        pytester.makeini(ini)
        pytester.makepyfile(shop=VIEW, test_it="from shop import *\n" + textwrap.dedent(tests))
        return pytester.runpytest_inprocess(*PLUGINS, *options)

    return run


def test_a_view_in_python_is_opened_used_and_closed(run):
    done = run("""
        async def test_a_selection(views):
            views.configure(apps={ORDERS: orders_view})
            view = await views.open(make_server(), "show_orders", status="open")
            assert view.result.text == "orders: open"
            await view.assert_tools(
                "get_selection", "select", "refresh", "share", "look", disabled=["pay"]
            )
            assert (await view.call("get_selection")).text == "nothing"
            assert (await view.call("select", id="A-1")).text == "selected"
            assert (await view.call("get_selection")).text == "A-1"
            await view.assert_tools("get_selection", "select", "refresh", "share", "look", "pay")
            assert await view.refusal("select", id="A-0") == "There is no order A-0"
            assert (await view.call("refresh")).text == "fetched open"
            assert view.sent_calls("fetch") == [{"status": "open"}]
            assert (await view.call("share")).text == "True"
            sent = await view.wait_for_sent("ui/open-link")
            assert sent.params == {"url": "https://example.com/orders"}
            with pytest.raises(Exception, match="written in Python: it has no page"):
                view.page

        async def test_another_has_a_host_of_its_own(views):
            view = await views.open(app=orders_view, tools={"fetch": "the same each time"})
            assert (await view.call("get_selection")).text == "nothing"
            assert (await view.call("refresh")).text == "the same each time"
            assert view.view.id == "page-1"
            await view.close()
    """)
    done.assert_outcomes(passed=2)


def test_an_app_may_have_tools_that_are_functions_and_get_input_and_result(run):
    done = run("""
        async def test_it(views):
            heard = []
            def make():
                app = orders_view()
                app.on_tool_input = lambda arguments: heard.append(arguments)
                app.on_tool_result = lambda result: heard.append(result.text)
                return app
            def fetch(status: str) -> str:
                return status.upper()
            view = await views.open(
                app=make, tools={"fetch": fetch}, arguments={"status": "paid"}, result="two orders"
            )
            assert heard == [{"status": "paid"}, "two orders"]
            assert (await view.call("refresh")).text == "OPEN"
    """)
    done.assert_outcomes(passed=1)


def test_mistakes_are_explained(run):
    done = run("""
        async def test_no_view_tool(views):
            view = await views.open(app=orders_view)
            await view.call("chose")

        async def test_no_refusal(views):
            view = await views.open(app=orders_view)
            await view.refusal("get_selection")

        async def test_no_server_tool(views):
            await views.open(make_server(), "show_order")

        async def test_tool_of_another_server(views):
            await views.open(app=orders_view)  # with a tool `show`
            await views.open(make_server(), "show")

        async def test_no_view(views):
            await views.open(make_server(), "count")

        async def test_no_app(views):
            await views.open(html="<p>", app=orders_view)

        async def test_other_tools(views):
            view = await views.open(app=orders_view)
            await view.assert_tools("look", "listen", timeout=0.1)

        async def test_late(views):
            await views.open(app=orders_view)
            views.configure(theme="dark")

        async def test_no_file(views):
            await views.open("nowhere.py")

        def test_not_async(views):
            pass
    """)
    done.assert_outcomes(failed=9, errors=1)
    done.stdout.fnmatch_lines_random(
        [
            "*View page-1 has no tool chose; it has: get_selection, *, look; disabled: pay",
            "*get_selection of View page-1 did not fail: nothing",
            "*The server has no tool show_order; it has: show_orders, count",
            "*The server has no tool show; it has: show_orders, count",
            "*count opened no View: the tool links none",
            "*Give views.open a server, or html=..., or app=...",
            "*View page-1 should have the tools look, listen",
            "*missing: listen",
            "*not expected: get_selection, refresh, select, share",
            "*Call views.configure before views.open",
            "*there is no file nowhere.py",
            "*test_not_async uses `views`, so it has to be `async def`",
        ]
    )


def test_a_host_can_be_otherwise(run):
    done = run("""
        async def test_surroundings(views):
            views.configure(theme="dark", locale="de")
            view = await views.open(app=orders_view)
            assert (await view.call("look")).text == "dark de"
            await view.set_context(theme="light")
            assert (await view.call("look")).text == "light de"

        async def test_a_capability_is_missing(views):
            views.configure(refuse=["openLinks"])
            view = await views.open(app=orders_view)
            with pytest.raises(Exception):
                await view.call("share")

        async def test_the_user_says_no(views):
            views.configure(approve=False)
            view = await views.open(app=orders_view)
            assert (await view.call("get_selection")).text == "nothing"
            with pytest.raises(Exception, match="The user said no"):
                await view.call("select", id="A-1")

        async def test_the_user_is_asked(views):
            from transom import Allow
            asked = []
            def approve(request):
                asked.append((request.tool.name, dict(request.arguments)))
                return Allow()
            views.configure(approve=approve)
            view = await views.open(app=orders_view)
            await view.call("select", id="A-1")
            assert asked == [("select", {"id": "A-1"})]

        async def test_a_server_fails_is_slow_or_says_something_else(views):
            views.configure(apps={ORDERS: orders_view})
            view = await views.open(make_server(), "show_orders")
            views.server_call("fetch", fails="out of order")
            with pytest.raises(Exception):
                await view.call("refresh")
            view.allow_problems("out of order")
            views.server_call("fetch", returns="scripted", delay=0.01)
            assert (await view.call("refresh")).text == "scripted"
            views.server_call("fetch", delay=0.01)
            assert (await view.call("refresh")).text == "fetched open"
    """)
    done.assert_outcomes(passed=5)


def test_a_view_gets_arguments_while_they_are_written(run):
    done = run("""
        async def test_it(views):
            heard = []
            def make():
                app = orders_view()
                app.on_tool_input_partial = lambda arguments: heard.append(("partial", arguments))
                app.on_tool_input = lambda arguments: heard.append(("input", arguments))
                app.on_tool_result = lambda result: heard.append(("result", result.text))
                return app
            view = await views.begin(app=make)
            await view.send_partial_input(status="op")
            await view.settle()
            await view.send_input(status="open")
            await view.deliver("two orders")
            await view.settle()
            assert heard == [
                ("partial", {"status": "op"}),
                ("input", {"status": "open"}),
                ("result", "two orders"),
            ]
    """)
    done.assert_outcomes(passed=1)


@pytest.mark.parametrize("owner", ["", 'parser.getgroup("mine").', "parser."])
def test_a_conftest_may_have_its_own_option_to_update(run, pytester: pytest.Pytester, owner: str):
    if owner:
        declared = f'{owner}addoption("--update-views", action="store_true")'
        pytester.makeconftest(f"def pytest_addoption(parser):\n    {declared}\n")
    for options in ([], ["--update-views"]):
        done = run(
            f"""
            async def test_it(views, request):
                await views.open(app=orders_view)
                assert request.config.getoption("--update-views") is {bool(options)}
                assert views._files.update is {bool(options)}
            """,
            *options,
        )
        done.assert_outcomes(passed=1)


def test_a_failed_test_leaves_what_is_known_of_its_views(run, pytester: pytest.Pytester):
    done = run(
        """
        async def test_it(views):
            view = await views.open(app=orders_view)
            await view.call("get_selection")
            views.server_call("fetsch", fails="which is no tool")
            assert False

        async def test_skipped(views):
            await views.open(app=orders_view)
            pytest.skip("not today")

        async def test_without_a_server(views):
            await views.open("nothing.py", "show")
        """,
        "--transom-output=out",
    )
    done.assert_outcomes(failed=2, skipped=1)
    done.stdout.fnmatch_lines(["views.server_call names fetsch, but nobody has called that tool *"])
    folder = pytester.path / "out" / "test_it" / "test_it"
    done.stdout.fnmatch_lines(
        [f"*What the Views showed, sent and reported is in {folder.relative_to(pytester.path)}"]
    )
    assert sorted(each.name for each in folder.iterdir()) == ["messages.jsonl", "page-1.tools.json"]
    assert "get_selection" in (folder / "messages.jsonl").read_text()
    assert [each.name for each in folder.parent.iterdir()] == ["test_it"]
    assert not (pytester.path / ".pytest_cache" / "d").exists()


def test_a_failure_names_the_views_that_are_closed(run):
    done = run("""
        async def test_it(views):
            view = await views.open(app=orders_view)
            await view.close()
            assert False
    """)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["View page-1 is closed: the test closed it. *"])


def test_a_failure_shows_the_test_and_nothing_of_the_plugin(run):
    done = run("""
        def ask(view):
            return view.call("chose")

        async def test_mistake(views):
            await views.open("nowhere.py")

        async def test_in_a_function(views):
            await ask(await views.open(app=orders_view))
    """)
    done.assert_outcomes(failed=2)
    assert "src/transom" not in done.stdout.str()
    done.stdout.fnmatch_lines_random(['>*await views.open("nowhere.py")', "*there is no file now*"])


@pytest.mark.parametrize(
    ("options", "mark"),
    [
        ([], "pytest.mark.asyncio"),
        (["-o", "asyncio_mode=auto"], ""),
        (["-p", "no:asyncio"], "pytest.mark.anyio"),
        (["-p", "no:asyncio"], ""),
    ],
    ids=["pytest-asyncio", "pytest-asyncio-auto", "anyio", "none"],
)
def test_all_tests_share_an_event_loop_unless_they_have_async_fixtures(
    run, options: list[str], mark: str
):
    ini = INI if "no:asyncio" not in options else "[pytest]\nfilterwarnings = error\n"
    marked = f"@{mark}" if mark else ""
    theirs = bool(marked or "auto" in str(options))
    done = run(
        f"""
        import asyncio
        import pytest_asyncio
        seen = []

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @{"pytest_asyncio.fixture" if "no:asyncio" not in options else "pytest.fixture"}
        async def opened(views):
            seen.append(asyncio.get_running_loop())
            return await views.open(app=orders_view)

        {marked}
        async def test_one(views):
            view = await views.open(app=orders_view)
            assert (await view.call("get_selection")).text == "nothing"
            seen.append(asyncio.get_running_loop())

        {marked}
        @pytest.mark.parametrize("id", ["A-1"])
        async def test_two(views, id):
            view = await views.open(app=orders_view)
            assert (await view.call("select", id=id)).text == "selected"
            seen.append(asyncio.get_running_loop())

        if {theirs}:
            {marked}
            async def test_with_an_async_fixture(views, opened):
                assert (await opened.call("get_selection")).text == "nothing"
                seen.append(asyncio.get_running_loop())

        def test_loops():
            own, also_own, *others = seen
            assert own is also_own
            if {theirs}:
                of_fixture, of_test = others
                assert of_test is of_fixture is not own
        """,
        *options,
        ini=ini,
    )
    done.assert_outcomes(passed=4 if theirs else 3)


def test_the_contract_is_a_test_for_each_rule(run):
    done = run(
        """
        from transom.check import RULES

        good = make_server()
        broken = MCPServer("broken")

        @broken.tool(meta={"ui": {"resourceUri": "ui://nowhere"}})
        def show() -> str:
            return "shown"

        test_good = contract_tests(good)
        test_broken = contract_tests(broken)

        async def test_together(views):
            await assert_contract(good)
            with pytest.raises(AssertionError) as caught:
                await assert_contract(broken)
            assert "breaks its contract" in str(caught.value)
    """,
        "-rf",
    )
    outcomes = done.parseoutcomes()
    assert outcomes["failed"] >= 1
    assert outcomes["passed"] > 40
    failed = [line for line in done.outlines if line.startswith("FAILED")]
    assert failed
    assert all("test_broken[" in line for line in failed)


def test_a_scripted_model_runs_an_agent(run):
    done = run("""
        from pydantic_ai import Agent
        from transom.agents.pydantic_ai import HostToolset

        async def ask(views, *turns):
            await views.open(app=orders_view)
            agent = Agent(make_model(turns), toolsets=[HostToolset(views.host)])
            return (await agent.run("Select A-1")).output

        async def test_it(views):
            select, read = Call("page-1__select", {"id": "A-1"}), Call("page-1__get_selection")
            assert await ask(views, select, [read, read], "Done.") == "Done."

        async def test_a_tool_that_is_not_offered(views):
            with pytest.raises(AssertionError, match="calls fly, which is not offered; there"):
                await ask(views, Call("fly"))

        async def test_a_script_that_is_over(views):
            with pytest.raises(AssertionError, match="its script is over"):
                await ask(views, Call("page-1__get_selection"))
    """)
    done.assert_outcomes(passed=3)


def test_a_test_records_its_messages(run, pytester: pytest.Pytester):
    done = run("""
        async def test_it(views):
            views.configure(apps={ORDERS: orders_view})
            views.record("orders.jsonl")
            view = await views.open(make_server(), "show_orders")
            await view.call("get_selection")

        async def test_the_view_does_the_same(views):
            views.configure(apps={ORDERS: orders_view})
            await views.replay("orders.jsonl", make_server())

        async def test_the_server_does_the_same(views):
            await views.replay("orders.jsonl", make_server(), leg="server")

        async def test_another_does_not(views):
            await views.replay("orders.jsonl", MCPServer("other"), leg="server")
    """)
    done.assert_outcomes(passed=3, failed=1)
    done.stdout.fnmatch_lines(["*The server does not do what it did in orders.jsonl"])
    assert '"get_selection"' in (pytester.path / "orders.jsonl").read_text()


@pytest.mark.processes
def test_the_plugin_loads_next_to_nothing():
    before = modules_loaded_by("import pytest")
    assert modules_loaded_by("import pytest, transom.testing.plugin") - before == {"transom"}
