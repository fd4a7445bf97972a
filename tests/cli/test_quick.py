"""Command lines of gateways that are read without Typer mean what Typer makes of them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from transom.cli import gateway as command_line
from transom.cli.main import make_app
from transom.cli.options import GatewayOptions
from transom.cli.quick import CHOICES, FLAGS, quick_options

PLAIN = [
    "-- python orders.py",
    "--no-open -- npx -y server --headless --config x",
    "--headless -v -- uvx orders",
    "--verbose --surface indirect --approve elicit --csp strict -- run",
    "--surface flat --surface both -- run --",
    "--config servers.json",
    "--headless --config a/b.json",
]
NOT_PLAIN = [
    "",
    "--help",
    "--",
    "--headless",
    "install --client zed -- run",
    "--help -- run",
    "run",
    "python orders.py",
    "--url http://127.0.0.1:1/mcp",
    "--http 8000 -- run",
    "--surface all -- run",
    "--surface=flat -- run",
    "--config --headless",
    "--config",
    "--config x.json -- run",
    "--nonsense -- run",
]


def by_typer(words: list[str], monkeypatch: pytest.MonkeyPatch) -> GatewayOptions:
    ran: list[GatewayOptions] = []

    def run(options: GatewayOptions) -> int:
        ran.append(options)
        return 0

    monkeypatch.setattr(command_line, "run_gateway", run)
    outcome = CliRunner().invoke(make_app(words), words)
    assert outcome.exit_code == 0, outcome.output
    return ran[0]


@pytest.mark.parametrize("line", PLAIN)
def test_a_plain_line_means_the_same_with_and_without_typer(
    line: str, monkeypatch: pytest.MonkeyPatch
):
    words = ["gateway", *line.split()]
    assert quick_options(words) == by_typer(words, monkeypatch)


@pytest.mark.parametrize("line", NOT_PLAIN)
def test_what_is_wrong_rare_or_in_need_of_help_is_for_typer(line: str):
    assert quick_options(["gateway", *line.split()]) is None


def test_other_commands_are_for_typer():
    assert quick_options(["open", "--", "run"]) is None
    assert quick_options([]) is None


def test_the_choices_and_flags_are_those_that_typer_has():
    group: Any = get_command(make_app(["gateway"]))
    params = {opt: each for each in group.commands["gateway"].params for opt in each.opts}
    for flag, name in FLAGS.items():
        assert params[flag].name == name
        assert params[flag].is_flag
    for option, (name, allowed) in CHOICES.items():
        assert params[option].name == name
        assert params[option].metavar == "|".join(allowed)


def test_a_gateway_is_there_without_typer_and_what_it_loads():
    code = (
        "import sys; from transom.cli.main import main; import transom.cli.run_gateway;"
        "print([name for name in ('typer', 'pydantic', 'rich', 'mcp') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_server_that_cannot_be_started_is_said_and_ends_with_2(tmp_path: Path):
    ran = subprocess.run(
        [sys.executable, "-m", "transom", "gateway", "--", "no-such-command-here"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert "no-such-command-here" in ran.stderr
    assert "Traceback" not in ran.stderr
