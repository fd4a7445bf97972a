"""Command lines: what is read from them, what is wrong with them, and help."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import transom
from transom import Limits
from transom.cli import run_async
from transom.cli.gateway import gateway_limits
from transom.cli.main import run
from transom.cli.options import COMMANDS, GatewayOptions, find_command, gateway_words
from transom.cli.target import read_call
from transom.errors import UsageError
from transom.version import __version__


def gateway(line: str) -> GatewayOptions:
    command, rest = find_command(["gateway", *line.split()])
    return command.read(rest)


@pytest.mark.parametrize(
    ("line", "command", "rest"),
    [
        ("-- python orders.py", "python orders.py", {}),
        (
            "--no-open -- npx -y server --headless --config x",
            "npx -y server --headless --config x",
            {"no_open": True, "headless": False, "config": None},
        ),
        ("--headless -v -- uvx orders", "uvx orders", {"headless": True, "verbose": True}),
        (
            "--verbose --surface indirect --approve elicit --csp=strict -- run",
            "run",
            {"surface": "indirect", "approve": "elicit", "csp": "strict"},
        ),
        ("--surface flat --surface both -- run --", "run --", {"surface": "both"}),
        ("-- run -- --help", "run -- --help", {}),
        ("python orders.py", "python orders.py", {}),
        ("python --headless -- orders.py", "python orders.py", {"headless": True}),
        ("--headless --config a/b.json", "", {"config": Path("a/b.json"), "headless": True}),
        ("--url http://127.0.0.1:1/mcp", "", {"url": "http://127.0.0.1:1/mcp"}),
        (
            "--http 8000 --token secret --max-clients 7 --idle 0.5 -- run",
            "run",
            {"http": "8000", "token": "secret", "max_clients": 7, "idle": 0.5},
        ),
    ],
)
def test_a_gateways_line_is_read(line: str, command: str, rest: dict[str, object]):
    options = gateway(line)
    assert options.command == command.split()
    assert {name: getattr(options, name) for name in rest} == rest


def test_what_is_not_on_the_line_has_its_default():
    assert vars(gateway("-- run")) == {
        "command": ["run"],
        "url": None,
        "header": [],
        "config": None,
        "headless": False,
        "no_open": False,
        "surface": "both",
        "approve": "client",
        "drive": "when_no_tools",
        "csp": "compat",
        "ephemeral": False,
        "http": None,
        "token": None,
        "max_clients": 100,
        "port": 0,
        "idle": 30,
        "bus": None,
        "hung_after": 300,
        "fresh": False,
        "view_calls": "linked",
        "approve_view_calls": False,
        "open": [],
        "reuse": [],
        "call_timeout": [],
        "limit": [],
        "verbose": False,
        "record": None,
    }


def test_limits_of_a_gateway_are_set_by_name_and_its_timeout_by_tool():
    line = "gateway --call-timeout 30 --call-timeout save=5.5 --limit max_tools=100 -- x"
    command, rest = find_command(line.split())
    options = command.read(rest)
    limits = gateway_limits(options)
    assert (limits.call_timeout_of("save"), limits.call_timeout_of("other")) == (5.5, 30)
    assert limits.max_tools == 100
    assert gateway_words(options) == line.split()[1:-2]
    defaults = command.read(["--", "x"])
    assert gateway_limits(defaults) == Limits()
    for wrong, says in (
        ("--limit max_tool=1", "there is no limit 'max_tool'; did you mean max_tools?"),
        ("--limit max_tools=0", "'0' is not a whole number of at least 1"),
        ("--limit call_timeout=1", "there is no limit 'call_timeout'"),
        ("--call-timeout save=soon", "'soon' is not a number of at least 0.001"),
    ):
        with pytest.raises(UsageError, match=re.escape(says)):
            command.read(wrong.split())


def test_an_installed_gateway_keeps_what_is_said_about_its_tools():
    line = "--open never --open show=ask --reuse always --client zed -- x"
    command, rest = find_command(["gateway", "install", *line.split()])
    assert gateway_words(command.read(rest)) == line.split()[:6]


def test_lists_of_one_line_are_not_those_of_the_next():
    command, rest = find_command(["open", "x.py", "show", "--call", "a", "--call", "b"])
    assert command.read(rest).steps == [("call", "a"), ("call", "b")]
    assert command.read(["x.py", "show"]).steps == []
    mixed = ["x.py", "show", "--look", "--act", "b1 click", "--call", "a", "--look-for", "x"]
    assert [name for name, _ in command.read(mixed).steps] == ["look", "act", "call", "look-for"]


def test_arguments_may_stand_before_and_after_options():
    command, rest = find_command(["open", "x.py", "--csp", "strict", "show", "--json", '{"a": 1}'])
    options = command.read(rest)
    assert (options.target, options.tool, options.arguments) == ("x.py", "show", '{"a": 1}')
    assert options.json


@pytest.mark.parametrize("name", ["open", "doctor", "conform view"])
def test_arguments_may_be_given_without_the_tool(name: str):
    given = {"status": "open"}
    command = COMMANDS[name]()
    for line in (["x.py", json.dumps(given)], ["x.py", "show", json.dumps(given)]):
        tool = "show" if "show" in line else None
        assert read_call(command.read(line)) == (tool, given)


def test_a_command_of_two_words_leaves_the_shorter_one_all_its_words():
    assert find_command(["gateway", "install", "x"])[0].name == "gateway install"
    command, rest = find_command(["gateway", "--", "install", "x"])
    assert command.name == "gateway"
    assert command.read(rest).command == ["install", "x"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--surface all -- run", "argument --surface: invalid choice: 'all'"),
        ("--config --headless", "argument --config: expected one argument"),
        ("--config", "argument --config: expected one argument"),
        ("--nonsense -- run", "there is no option --nonsense"),
        ("--headles -- run", "there is no option --headles; did you mean --headless?"),
        ("--head -- run", "there is no option --head"),
        ("--max-clients 0 -- run", "'0' is not a whole number of at least 1"),
        ("--max-clients 1.5 -- run", "'1.5' is not a whole number"),
        ("--hung-after -1 -- run", "argument --hung-after: '-1' is not a number of at least 0"),
        ("--idle 0 -- run", "argument --idle: '0' is not a number of at least 0.01"),
        ("--idle soon -- run", "'soon' is not a number"),
        ("--idle inf -- run", "'inf' is not a number"),
    ],
)
def test_a_mistake_is_exit_2_with_a_text_that_says_which(line: str, says: str):
    with pytest.raises(UsageError) as raised:
        gateway(line)
    assert says in str(raised.value)
    ran = transom("gateway", *line.split())
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr == f"transom gateway: {raised.value}\nTry: transom gateway --help\n"


def test_too_few_and_too_many_arguments_are_mistakes():
    assert "required: TARGET" in transom("open", "--headless").stderr
    assert "one argument too many: more" in transom("open", "x.py", "show", "{}", "more").stderr


def test_a_command_that_is_not_there_is_a_mistake():
    ran = transom("gatewy", "--", "run")
    assert ran.returncode == 2
    assert ran.stderr.startswith("transom: there is no command 'gatewy'; did you mean gateway?\n")


def test_a_word_that_several_commands_begin_with_names_them():
    for line, code in (("conform", 2), ("conform --help", 0)):
        ran = transom(*line.split())
        assert (ran.returncode, ran.stderr) == (code, "")
        assert "conform host" in ran.stdout
        assert "conform view" in ran.stdout
        assert "gateway" not in ran.stdout


@pytest.mark.parametrize(
    "line", ["", "--headless", "--config x.json -- run", "--url http://x -- run"]
)
def test_a_gateway_stands_in_front_of_one_thing(line: str):
    ran = transom("gateway", *line.split())
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "transom gateway: Give one of: a command after --, --url or --config\n"
        "Try: transom gateway --help\n"
    )


# --- help ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_every_option_and_what_it_means(name: str):
    command = COMMANDS[name]()
    shown = " ".join(transom(*name.split(), "--help").stdout.replace("│", " ").split())
    assert f"Usage: transom {name} " in shown
    assert command.summary in shown
    assert [option for option in command.option_names if option not in shown] == []
    assert "`" not in shown


@pytest.mark.parametrize("words", [["-h"], ["--help"], ["open", "-h"], ["gateway", "x", "--help"]])
def test_help_is_exit_0(words: list[str]):
    ran = transom(*words)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Usage: transom" in ran.stdout


@pytest.mark.parametrize("words", [[], ["open"], ["check"], ["gateway", "install"]])
def test_without_words_there_is_help_and_exit_2(words: list[str]):
    ran = transom(*words)
    assert (ran.returncode, ran.stderr) == (2, "")
    assert "Usage: transom" in ran.stdout


def test_a_command_that_needs_nothing_runs_without_words(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("transom.cli.conform.run", lambda options: options.timeout)
    assert run(["conform", "host"]) == 5


def test_the_overview_has_every_command():
    shown = transom("--help").stdout
    assert [name for name in COMMANDS if f"│ {name} " not in shown] == []


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"transom {__version__}\n"


# --- the process -----------------------------------------------------------------------------


@pytest.mark.processes
def test_a_gateway_starts_its_server_before_anything_slow_is_loaded():
    code = (
        "import sys; from transom.cli.main import main; import transom.cli.gateway;"
        "print([name for name in ('msgspec', 'pydantic', 'rich', 'mcp') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.processes
def test_a_server_that_cannot_be_started_is_reported_and_exit_2(tmp_path: Path):
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


@pytest.mark.processes
def test_a_reader_that_has_read_enough_is_no_trouble():
    command = [sys.executable, "-m", "transom", "--version"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        ran.stdout.close()
        assert ran.stderr.read() == b""
    assert ran.returncode == 1


# --- the event loop --------------------------------------------------------------------------


def test_a_command_runs_on_uvloop_where_it_is_installed() -> None:
    async def loop_module() -> str:
        return type(asyncio.get_running_loop()).__module__

    assert run_async(loop_module()).startswith("uvloop")


def test_a_command_runs_without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def loop_module() -> str:
        return type(asyncio.get_running_loop()).__module__

    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert run_async(loop_module()).startswith("asyncio")


@pytest.mark.parametrize("line", [["demo"], ["gateway", "--headless", "--", "python", "orders.py"]])
def test_what_needs_a_browser_says_in_one_line_how_to_get_it(
    line: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("files", "gateway"):
        monkeypatch.setattr(f"transom.cli.{module}.find_spec", lambda _: None)
    ran = transom(*line)
    assert ran.returncode != 0
    assert ran.stderr.count("\n") == 1
    assert "pip install 'transom[headless]'" in ran.stderr


@pytest.mark.parametrize(
    "words",
    [
        *(["open", "{}", "show"], ["check", "{}"], ["doctor", "{}"], ["dev", "{}", "--no-open"]),
        *(["replay", "{}", "x.py"], ["eval", "{}"], ["login", "{}"], ["logout", "{}"]),
        *(["storage", "--clear", "{}"], ["new", "{}"], ["new", "--{}"], ["conform", "view", "{}"]),
        *(["gateway", "--config", "{}"], ["gateway", "install", "--client", "{}", "--", "x"]),
    ],
    ids=" ".join,
)
def test_nothing_that_a_terminal_obeys_is_in_what_a_command_says_of_a_failure(words: list[str]):
    ran = transom(*[word.format("\x1b[2J\u202enothing.py") for word in words])
    assert ran.returncode != 0
    assert ran.stderr.startswith("transom")
    assert not set("\x1b\u202e") & set(ran.stderr)
