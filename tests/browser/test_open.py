"""`transom open`, run as a command."""

import json
import os
import signal
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.orders import server as orders_server
from tests.browser.hosting import Chromium, processes, until_gone
from tests.browser.opening import ORDERS, events_of, ran, server_with, transom_open
from tests.browser.views import BUSY, html
from tests.dev.test_files import save
from tests.host.test_servers import over_http
from transom.traffic import RecordedMessage, read_record

pytestmark = pytest.mark.processes

# --- as JSON ---------------------------------------------------------------------------------


@pytest.mark.nightly
async def test_a_server_is_named_by_its_module_and_events_are_lines_of_json() -> None:
    code, events = await events_of(
        *("examples.orders:server", "show_orders", '{"status": "open"}'),
        *("--call", 'select_orders={"ids": ["A-1041"]}', "--call", "get_selection"),
    )
    assert code == 0
    opened, tools, select, selection, closed = events
    assert set(opened) == {"event", "view", "app", "result"}
    assert (opened["event"], opened["view"]) == ("opened", "examples-1")
    assert opened["app"] == {"name": "orders", "version": "1.0.0"}
    assert len(opened["result"]["structuredContent"]["orders"]) == 3
    assert (tools["event"], tools["view"]) == ("tools", "examples-1")
    assert {tool["name"] for tool in tools["tools"]} >= {"select_orders", "get_selection"}
    assert all("inputSchema" in tool for tool in tools["tools"])
    assert set(select) == {"event", "tool", "result"}
    assert (select["event"], select["tool"]) == ("call", "select_orders")
    assert "A-1041" in json.dumps(selection["result"])
    assert closed == {"event": "closed", "view": "examples-1", "reason": "all is done"}


@pytest.mark.nightly
async def test_a_page_that_failed_is_waited_for_as_long_as_the_user_says(tmp_path: Path) -> None:
    server = server_with(tmp_path, BUSY)
    code, events = await events_of(server, "show", "--call", "count", "--timeout", "60")
    assert code == 0
    assert [each["event"] for each in events] == ["problem", "opened", "tools", "call", "closed"]


GROW = """
tools.grow = () => {
  tools.grown = () => "here";
  say({ method: "notifications/tools/list_changed" });
  return "growing";
};
tools.babble = () => { say({ method: 7 }); return "said"; };
"""


@pytest.mark.nightly
async def test_tools_are_printed_again_when_they_change(tmp_path: Path) -> None:
    server = server_with(tmp_path, GROW)
    calls = ("--call", "grow", "--call", "grown", "--call", "babble")
    code, events = await events_of(server, "show", *calls)
    assert code == 0
    listed = [[tool["name"] for tool in e["tools"]] for e in events if e["event"] == "tools"]
    assert listed == [["grow", "babble"], ["grow", "babble", "grown"]]
    grow, grown, babble = [event for event in events if event["event"] == "call"]
    assert grow["result"]["content"][0]["text"] == "growing"
    assert events.index(grown) > [event["event"] for event in events].index("tools")
    assert grown["result"]["content"][0]["text"] == "here"
    assert babble["result"]["content"][0]["text"] == "said"
    [violation] = [event for event in events if event["event"] == "violation"]
    assert (violation["view"], violation["directive"]) == ("made-1", "protocol")


async def test_what_goes_wrong_inside_the_page_and_what_is_too_much_for_the_strict_policy_is_told(
    tmp_path: Path,
) -> None:
    script = """
    try { eval('1') } catch {}
    document.head.append(Object.assign(document.createElement("link"), STYLE));
    console.error("no such order");
    tools.fail = () => { setTimeout(() => { throw new TypeError("late"); }); return "ok"; };
    """
    style = 'const STYLE = { rel: "stylesheet", href: "style.css" };'
    server = server_with(tmp_path, style + script)
    code, events = await events_of(server, "show", "--csp", "strict", "--call", "fail")
    assert code == 0
    seen = [event for event in events if event["event"] == "violation"]
    assert set(seen[0]) == {"event", "view", "directive", "blocked", "source"}
    assert sorted((each["view"], each["directive"], each["blocked"]) for each in seen) == [
        ("made-1", "missing", "style.css"),
        ("made-1", "script-src", "eval"),
    ]
    told = [event for event in events if event["event"] == "problem"]
    assert [(each["kind"], each["message"]) for each in told] == [
        ("console", "no such order"),
        ("error", "TypeError: late"),
    ]
    assert told[0] == {
        "event": "problem", "view": "made-1", "kind": "console", "message": "no such order"
    }  # fmt: skip
    # The place is that in the file in which the page was written.
    assert told[1]["file"] == str(tmp_path / "view.html")
    written = html(style + script).splitlines()[told[1]["line"] - 1]
    assert written[told[1]["column"] - 1 :].startswith('new TypeError("late")'), told[1]
    assert told[1]["text"] == written.strip()


# --- for a person ----------------------------------------------------------------------------


async def test_a_person_names_an_address_reads_what_happened_and_gets_a_picture(
    tmp_path: Path,
) -> None:
    picture = tmp_path / "view.png"
    async with over_http(orders_server) as (url, _):
        code, out, err = await ran(
            *(url, "show_orders", "--headless", "--screenshot", str(picture), "--wait", "tbody tr"),
            *("--call", 'select_orders={"ids": ["A-1041"]}', "--call", "nothing={}"),
            *("--record", str(tmp_path / "record.jsonl")),
        )
    assert code == 1
    recorded = read_record(tmp_path / "record.jsonl")
    assert {(each.leg, each.name) for each in recorded if isinstance(each, RecordedMessage)} == {
        ("server", "127-0-0-1"),
        ("view", "orders-1"),
    }
    assert err == ""
    shown = out.splitlines()
    assert shown[0] == "Opened   orders 1.0.0  orders-1"
    assert shown[1] == "         7 orders, €2423.50 in all."
    assert shown[2].startswith("Tools    get_selection()")
    assert "Called   select_orders" in shown
    assert "         1 selected." in shown
    assert "Failed   nothing" in shown
    assert shown[-2] == "Closed   orders-1: all is done"
    assert shown[-1] == f"Saved a picture of the View as {picture}"
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    assert width > 600
    assert height > 200


# --- interrupted -----------------------------------------------------------------------------


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose name leaves room for that of a socket, of which Chromium makes one."""
    with tempfile.TemporaryDirectory(prefix="open-") as folder:
        yield Path(folder)


@pytest.mark.usefixtures("whole_chromium")
@pytest.mark.parametrize(
    "whole_group",
    [
        pytest.param(False, id="the command", marks=pytest.mark.nightly),
        pytest.param(True, id="its whole group"),  # as a terminal does it
    ],
)
async def test_ctrl_c_leaves_no_process_behind(short_path: Path, whole_group: bool) -> None:
    tmp_path = short_path
    server = server_with(tmp_path, "tools.forever = () => new Promise(() => {});")
    arguments = (server, "show", "--headless", "--json", "--call", "forever", "--timeout", "60")
    async with transom_open(*arguments, TMPDIR=str(tmp_path)) as run:
        await run.event("tools")
        assert len(processes(str(tmp_path))) > 3  # the command, the server, the browser
        if whole_group:  # as a terminal does
            os.killpg(run.process.pid, signal.SIGINT)
        else:
            run.process.send_signal(signal.SIGINT)
        code = await run.process.wait()
        assert code == 130
        assert "Traceback" not in await run.stderr()
    await until_gone(str(tmp_path))
    assert [path.name for path in tmp_path.glob("transom-*")] == []


# --- in the user's browser -------------------------------------------------------------------


@pytest.mark.nightly
async def test_it_prints_where_the_view_is_waits_for_the_page_and_stays_until_ctrl_c(
    browser: Chromium,
) -> None:
    async with (
        browser.user() as user,
        transom_open(
            *(str(ORDERS), "show_orders", "--json", "--call", "get_selection={}"),
            BROWSER="/bin/false",
        ) as run,
    ):
        url = (await run.error_line("The View opens at")).split()[-1]
        await run.error_line("open that address yourself")
        await user.open_page(url)
        assert (await run.event("opened"))["view"] == "orders-1"
        assert (await run.event("call"))["tool"] == "get_selection"
        await user.in_view("orders-1").get_by_text("A-1041").wait_for()
        # A page that is reloaded has its View again, and the command goes on.
        await user.page.reload()
        assert "reloaded" in (await run.event("closed"))["reason"]
        assert (await run.event("opened"))["view"] == "orders-1"
        await run.event("tools")
        await user.in_view("orders-1").get_by_text("A-1041").wait_for()
        assert run.process.returncode is None
        run.process.send_signal(signal.SIGINT)
        assert (await run.event("closed"))["view"] == "orders-1"
        assert await run.process.wait() == 0
        await user.page.get_by_text("Your agent or program has ended").wait_for()


LOOP = 'console.log("loops"); for (;;);'


@pytest.mark.nightly  # beside an endless loop, all takes long
async def test_watched_a_view_in_an_endless_loop_comes_back_when_the_author_saves_the_fix(
    tmp_path: Path, browser: Chromium
) -> None:
    server, page = server_with(tmp_path, ""), tmp_path / "view.html"
    arguments = (server, "show", "--watch", "--json", "--timeout", "120")
    async with browser.user() as user, transom_open(*arguments, BROWSER="/bin/false") as run:
        await user.open_page((await run.error_line("The View opens at")).split()[-1])
        await run.event("opened")
        for number, loop in enumerate((LOOP, f"setTimeout(() => {{ {LOOP} }}, 1000);")):
            async with user.page.expect_console_message(lambda message: message.text == "loops"):
                save(page, html(loop))
            save(page, html(body=f"<h1>Mended {number}</h1>"))
            for _ in ("the loop", "its end"):
                await run.event("changed")
            shown = await run.event("opened")
            await user.in_view(shown["view"]).get_by_text(f"Mended {number}").wait_for()
