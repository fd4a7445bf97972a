"""A server that hangs, dies, floods or lies gets a report; nothing it does raises."""

import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from transom.check import Calling, Options, Report, check
from transom.check.rules import RULES

pytestmark = pytest.mark.processes

HOSTILE = Path(__file__).parent / "hostile.py"


async def report_on(way: str, mark: str = "", **options) -> Report:
    options.setdefault("timeout", 60)
    command = [sys.executable, str(HOSTILE), way, mark]
    return await check(way, command, options=Options(**options))


async def test_a_server_that_never_says_hello_is_not_checked():
    report = await report_on("hang_at_hello", timeout=1)

    assert report.failure == "the server did not answer initialize within 1 s"
    assert report.checked == ()
    assert len(report.skipped) == len(RULES)
    assert sum(skip.reason == report.failure for skip in report.skipped) == len(RULES) - 5


async def test_a_server_that_never_lists_its_tools_is_not_checked():
    report = await report_on("hang_at_tools", timeout=8)  # enough for Python to start

    assert report.failure == "the server did not answer tools/list within 8 s"
    assert "B2" in {skip.rule for skip in report.skipped}
    assert "C1" in report.checked


async def test_a_server_that_dies_is_reported_with_its_last_words():
    report = await report_on("die_at_once")

    assert report.failure is not None
    assert "the server is gone: it exited with code 3" in report.failure
    assert "ImportError: no module named orders" in report.failure


async def test_a_command_that_cannot_be_started_is_reported():
    report = await check("gone", ["no-such-command-anywhere"])

    assert report.failure is not None
    assert "the server cannot be reached: There is no command" in report.failure


async def test_a_server_that_dies_in_a_call_ends_the_calls_but_not_the_report():
    report = await report_on("die_at_call", calling=Calling())

    assert report.failure is None
    assert any("it exited with code 1" in note for note in report.notes)
    assert any(note.startswith("no more tools were called") for note in report.notes)
    assert {"needs --browser", "no tool was called, or none answered"} <= {
        skip.reason for skip in report.skipped
    }


async def test_a_flood_on_stderr_does_not_stop_a_server():
    report = await report_on("flood_stderr")

    assert report.failure is None
    assert report.tools == 1


async def test_a_flood_of_notifications_does_not_hide_the_answer():
    report = await report_on("flood_stdout")

    assert report.tools == 1


async def test_what_is_no_message_is_counted_and_passed_over():
    report = await report_on("write_garbage")

    assert report.tools == 1
    # The line without end is JSON too deep to read; it would have answered the handshake.
    assert any("things that are no MCP message" in note for note in report.notes)
    assert any("Server is starting..." in note for note in report.notes)


async def test_lists_that_are_no_lists_are_reported():
    report = await report_on("answer_wrongly")

    assert report.failure == "the server answered tools/list with array, not an object"
    assert "resources/list answered without a list of resources" in report.notes


async def test_entries_that_are_no_tools_are_reported_without_their_tricks():
    report = await report_on("odd_entries")

    assert report.tools == 7
    nameless = [f for f in report.findings if f.rule == "B15" and "has no name" in f.message]
    assert len(nameless) == 6
    text = " ".join(finding.subject + finding.message for finding in report.findings)
    assert "\x1b" not in text
    assert "\u202e" not in text


async def test_ten_thousand_tools_are_all_checked():
    report = await report_on("many_tools")

    assert report.tools == 10_000
    assert report.failure is None
    assert report.summary.warn >= 10_000


@pytest.mark.parametrize(
    ("way", "problem"),
    [
        ("same_cursor", "tools/list repeats a cursor"),
        ("endless_cursors", "tools/list has more than 1000 pages"),
    ],
)
async def test_a_list_without_end_is_cut(way, problem):
    report = await report_on(way)

    assert any(note.startswith(problem) for note in report.notes)
    assert report.tools > 1


async def test_a_page_of_100_megabytes_is_refused_unread():
    report = await report_on("huge_page")

    failed = [finding for finding in report.findings if finding.rule == "B3"]
    assert "The answer is longer than 16 MB" in failed[0].message


async def test_a_server_that_asks_its_client_is_answered():
    report = await report_on("ask_back")

    assert any("`answered`" in finding.message for finding in report.findings)


async def test_a_server_that_stays_when_its_input_ends_is_ended():
    mark = secrets.token_hex()
    report = await report_on("ignore_the_end", mark)

    assert report.tools == 1
    assert not _running(mark)


async def test_no_process_is_left_behind():
    for way in ("hang_at_hello", "die_at_once"):
        mark = secrets.token_hex()
        await report_on(way, mark, timeout=0.5)
        assert not _running(mark)


def _running(mark: str) -> bool:
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return mark in listing.stdout
