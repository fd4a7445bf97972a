"""`transom check` as a user runs it."""

import contextlib
import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.running import transom
from transom.check import browser_checks
from transom.check.facts import Facts, ViewObservation
from transom.errors import TransomError

pytestmark = pytest.mark.processes

TRANSOM = [sys.executable, "-m", "transom"]

PLAIN = Path(__file__).parent / "plain_server.py"
GOOD = shlex.join([sys.executable, str(PLAIN), "good"])
BAD = shlex.join([sys.executable, str(PLAIN), "bad"])
FILE = '''
from mcp.server.mcpserver import MCPServer
mcp = MCPServer("orders", version="1.0")

@mcp.tool(meta={"ui": {"resourceUri": "ui://orders/lost.html"}})
def show_orders(status: str) -> str:
    """Show the orders."""
    return "Two orders."
'''


def test_a_server_with_errors_fails_and_is_told_why():
    ran = transom("check", BAD)

    assert ran.returncode == 1
    assert "orders 1.0 (MCP 2025-11-25) · 1 tool · 1 View" in ran.stdout
    assert "B3" in ran.stdout
    assert "1 error" in ran.stdout
    assert ran.stderr == ""


def test_a_server_without_errors_passes():
    ran = transom("check", GOOD)

    assert ran.returncode == 0, ran.stdout
    assert "No findings." in ran.stdout


@pytest.mark.parametrize(("level", "code"), [("error", 0), ("warn", 1), ("info", 1), ("never", 0)])
def test_the_exit_code_depends_on_what_matters(level, code):
    ran = transom("check", BAD, "--ignore", "B3", "--fail-on", level)

    assert ran.returncode == code


def test_a_python_file_is_checked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.py").write_text(FILE)
    ran = transom("check", "orders.py", "--format", "sarif", "--select", "B", "--timeout", "60")

    assert ran.returncode == 1
    result = json.loads(ran.stdout)["runs"][0]["results"][0]
    assert result["ruleId"] == "B3"
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "orders.py"}


def test_a_server_that_cannot_be_started_exits_with_2(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("raise SystemExit('no orders today')")
    ran = transom("check", "broken.py", "--timeout", "60")

    assert ran.returncode == 2
    assert "Not checked: the server is gone: it exited with code 1" in ran.stdout
    assert "no orders today" in ran.stdout


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["gone.py"], "there is no file gone.py"),
        (["no-such-command"], "is neither a Python file"),
        ([GOOD, "--select", "Z1"], "no rule is called 'Z1'"),
        ([GOOD, "--ignore", "B99"], "no rule is called 'B99'"),
        ([GOOD, "--args", "show"], "--args 'show' is not TOOL=JSON"),
        ([GOOD, "--args", "show=[1]"], "is not TOOL=JSON"),
        (["--explain", "Q1"], "no rule is called 'Q1'"),
        ([GOOD, "--format", "xml"], "invalid choice: 'xml'"),
        ([GOOD, "--timeout", "0"], "'0' is not a number of at least 0.1"),
        (["--call"], "no server is named"),
    ],
)
def test_a_wrong_command_line_exits_with_2_and_says_what_to_do(args, says):
    ran = transom("check", *args)

    assert ran.returncode == 2
    assert says in " ".join(ran.stderr.split())
    assert ran.stdout == ""


def test_the_json_goes_to_stdout_alone():
    ran = transom("check", BAD, "--format", "json", "--call")

    told = json.loads(ran.stdout)
    assert list(told) == ["target", "findings", "checked", "skipped", "summary"]
    assert told["summary"]["error"] == 1
    assert "not called: show_orders" in ran.stderr


def test_the_sarif_and_the_junit_can_be_read():
    sarif = json.loads(transom("check", BAD, "--format", "sarif").stdout)
    assert sarif["runs"][0]["tool"]["driver"]["name"] == "transom check"

    junit = transom("check", BAD, "--format", "junit").stdout
    assert ET.fromstring(junit).tag == "testsuites"  # noqa: S314 - our own output


def test_rules_are_selected_and_ignored():
    ran = transom("check", BAD, "--select", "B,N10", "--ignore", "b3", "--format", "json")

    told = json.loads(ran.stdout)
    known = {*told["checked"], *(skip["rule"] for skip in told["skipped"])}
    assert {rule[0] for rule in known} == {"B", "N"}
    assert "B3" not in known
    assert "N10" in known


def test_a_heuristic_runs_when_it_is_asked_for_by_name_or_with_all_of_them():
    def checked(*args: str) -> set[str]:
        ran = transom("check", GOOD, "--format", "json", *args)
        return set(json.loads(ran.stdout)["checked"])

    assert "N4" not in checked()
    assert "N4" in checked("--heuristics")
    assert "N4" in checked("--select", "N4")
    assert "N4" not in checked("--select", "N")


def test_tools_are_called_with_the_arguments_given():
    given = ("--args", 'show_orders={"status": "open"}')
    ran = transom("check", BAD, "--format", "json", *given)

    assert "D1" in json.loads(ran.stdout)["checked"]
    assert ran.stderr == ""


def test_asking_for_a_browser_that_is_not_there_exits_with_2(monkeypatch):
    async def no_browser(seen: Facts) -> list[ViewObservation]:
        raise TransomError("There is no Chromium")

    monkeypatch.setattr(browser_checks, "observe_views", no_browser)
    ran = transom("check", GOOD, "--browser")

    assert ran.returncode == 2
    assert "Not all was checked: Views cannot be rendered: There is no Chromium" in ran.stdout


def test_a_rule_is_explained_without_a_server():
    ran = transom("check", "--explain", "B3")

    assert ran.returncode == 0
    assert "B3  The linked resource can be read" in ran.stdout
    assert "resources/read" in ran.stdout
    assert "https://" in ran.stdout


def test_all_rules_are_listed():
    ran = transom("check", "--rules")

    assert ran.returncode == 0
    assert ran.stdout.count("(heuristic)") == 10
    assert ran.stdout.count("(not checked:") == 5
    assert "V8" in ran.stdout


def test_progress_is_shown_in_a_terminal_and_gone_at_the_end(tmp_path):
    main, terminal = pty.openpty()
    written = tmp_path / "out"
    with written.open("wb") as out:
        running = subprocess.Popen(
            [*TRANSOM, "check", GOOD],
            stdout=out,
            stderr=terminal,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal without a far end says that it is over
        while chunk := os.read(main, 65536):
            shown += chunk
    os.close(main)

    assert running.wait(timeout=30) == 0
    assert b"starting" in shown
    assert b"100%" in shown
    assert shown.rstrip().endswith((b"\x1b[2K", b"\x1b[?25h"))
    assert b"No findings." in written.read_bytes()
    assert b"100%" not in written.read_bytes()
