"""`transom gateway install` as a user runs it."""

import json
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.running import Ran, transom
from transom.connections.target_names import check_script
from transom.gateway.configuration.agent_configs import CLIENTS
from transom.gateway.configuration.install import transom_command


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in (
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "GEMINI_CLI_HOME",
        "XDG_CONFIG_HOME",
        "APPDATA",
    ):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "home").mkdir()
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "orders.py").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "home"


def installing(*words: str) -> Ran:
    """Without starting the server, which is not there in most of these tests."""
    return transom("gateway", "install", "--no-try", *words)


def test_the_command_knows_every_client():
    ran = installing("--client", "nobody", "--", "acme")
    assert re.findall(r"'([\w-]+)'", ran.stderr)[1:] == list(CLIENTS)


def test_the_snippet_is_printed_and_which_file_it_is_for(home: Path):
    ran = installing("--client", "cursor", "--", sys.executable, "orders.py", "--port", "1")

    script = str(Path.cwd() / "orders.py")
    assert ran.returncode == 0
    assert json.loads(ran.stdout) == {
        "mcpServers": {
            "orders": {
                "type": "stdio",
                "command": transom_command()[0],
                "args": ["gateway", "--", sys.executable, script, "--port", "1"],
            }
        }
    }
    assert ran.stderr.startswith(f"For Cursor, in {home}/.cursor/mcp.json:\n")
    assert not (home / ".cursor").exists()


@pytest.mark.parametrize("client", list(CLIENTS))
def test_what_is_printed_is_what_is_written(home: Path, client: str):
    asked = ["--client", client, "--", "acme"]
    printed = installing(*asked).stdout
    ran = installing("--write", *asked)

    assert ran.returncode == 0
    assert ran.stdout == ""
    (file,) = [path for path in home.rglob("*") if path.is_file()]
    assert ran.stderr.startswith(f"Put 'acme' into {file}.\n")
    assert file.read_text() == printed


def test_a_second_time_there_is_nothing_to_do(home: Path):
    asked = ["--client", "codex", "--write", "--", "acme"]
    installing(*asked)
    ran = installing(*asked)
    assert ran.returncode == 0
    assert ran.stderr == f"{home}/.codex/config.toml already has 'acme': nothing to do.\n"
    assert os.listdir(home / ".codex") == ["config.toml"]  # noqa: PTH208 - names alone


def test_the_project_has_a_file_of_its_own():
    ran = installing("--client", "claude-code", "--project", "--write", "--", "acme")
    assert ran.returncode == 0
    assert "acme" in json.loads(Path(".mcp.json").read_text())["mcpServers"]


def test_the_copy_is_told(home: Path):
    (home / ".claude.json").write_text('{"numStartups": 1}')
    ran = installing("--client", "claude-code", "--write", "--", "acme")
    (backup,) = home.glob(".claude.json.*.bak")
    assert f"The file as it was is {backup}." in ran.stderr
    assert "Or run:" not in ran.stderr


def test_another_entry_is_shown_and_replaced_only_by_force():
    installing("--client", "codex", "--write", "--name", "shop", "--", "old")
    asked = ["--client", "codex", "--write", "--name", "shop", "--url", "http://localhost:1/mcp"]

    ran = installing(*asked)
    assert ran.returncode == 1
    assert "already has another entry called 'shop'" in ran.stderr
    assert '"old"' in ran.stderr
    assert "Nothing was changed" in ran.stderr
    assert "http://localhost:1/mcp" in tomllib.loads(ran.stdout)["mcp_servers"]["shop"]["args"]

    assert installing("--force", *asked).returncode == 0


def test_a_configuration_file_is_passed_by_its_whole_path():
    Path("mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    ran = installing("--client", "zed", "--config", "mcp.json")
    entry = json.loads(ran.stdout)["context_servers"]["transom"]
    assert entry["args"] == ["gateway", "--config", str(Path.cwd() / "mcp.json")]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--client", "codex"], "name one server"),
        (["--client", "codex", "--url", "http://x", "--", "y"], "name one server"),
        (["--client", "codex", "--config", "gone.json"], "gone.json cannot be read"),
        (["--client", "codex", "--name", "a b", "--", "y"], "is not a valid name: try a-b"),
        (["--client", "emacs", "--", "y"], "invalid choice: 'emacs'"),
        (["--", "y"], "name the client: --client"),
    ],
)
def test_a_command_line_that_cannot_be_used_says_why(args: list[str], says: str):
    ran = installing(*args)
    assert ran.returncode == 2
    assert says in ran.stderr
    assert ran.stdout == ""


# --- starting it once ------------------------------------------------------------------------

SERVER = """\
from mcp.server.mcpserver import MCPServer
server = MCPServer("shop")
server.run()
"""


@pytest.mark.processes
def test_the_server_is_started_once_as_the_client_will_start_it(home: Path):
    Path("orders.py").write_text(SERVER)
    asked = [
        "--client",
        "cursor",
        "--write",
        "--surface",
        "flat",
        "--",
        sys.executable,
        "orders.py",
    ]
    ran = transom("gateway", "install", *asked)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.startswith(
        "Starting orders once, to see whether it comes up …\nIt came up.\n"
    )
    entry = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["orders"]
    assert entry["args"][:4] == ["gateway", "--surface", "flat", "--"]

    removed = transom("gateway", "uninstall", "--client", "cursor")
    assert removed.returncode == 0
    assert removed.stderr.startswith(f"Removed 'orders' from {home}/.cursor/mcp.json.\n")
    listed = transom("gateway", "install", "--list")
    assert listed.stdout == f"Cursor (cursor): {home}/.cursor/mcp.json\n  no servers\n"


@pytest.mark.processes
def test_a_server_that_does_not_come_up_is_told_and_nothing_is_written(home: Path):
    Path("orders.py").write_text("import no_such_module\n")
    script = Path.cwd() / "orders.py"
    python = home / "python"
    python.symlink_to(sys.executable)
    asked = ["--client", "cursor", "--write", "--", str(python), "orders.py"]
    ran = transom("gateway", "install", *asked)
    assert ran.returncode == 1
    assert ran.stdout == ""
    why, hint, then = ran.stderr.splitlines()[1:]
    assert why == (
        "transom gateway install: orders does not come up: it exited with code 1: "
        "ModuleNotFoundError: No module named 'no_such_module' "
        f"({script}, line 1: import no_such_module)"
    )
    assert hint == (
        f"The server runs with {python}, which lacks that module. Transom itself runs with "
        f"{sys.executable}: give that after -- if the module is installed there."
    )
    assert then == "Nothing was written. --no-try goes on without starting it."
    assert not (home / ".cursor").exists()


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ([sys.executable, "gone.py"], "gone.py"),
        (["node", "dist/gone.js"], "dist/gone.js"),
    ],
)
def test_a_script_that_does_not_exist_is_a_mistake_before_anything_is_started(
    home: Path, command: list[str], script: str
):
    ran = transom("gateway", "install", "--client", "cursor", "--write", "--", *command)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"transom gateway install: there is no file {script}\n"
    assert not (home / ".cursor").exists()


@pytest.mark.parametrize("words", ["python orders.py", "python -m gone.py", "acme gone.py", "acme"])
def test_what_need_not_be_a_file_here_is_left_to_the_program(words: str):
    check_script(words.split())


def test_a_gateway_that_serves_http_is_told_how_to_be_started():
    ran = installing("--client", "claude-code", "--http", "8080", "--token", "t", "--", "acme")
    entry = json.loads(ran.stdout)["mcpServers"]["acme"]
    assert entry == {
        "type": "http",
        "url": "http://127.0.0.1:8080/mcp",
        "headers": {"Authorization": "Bearer t"},
    }
    assert "Start the gateway yourself: " in ran.stderr
    assert "gateway --http 8080 --token t -- acme" in ran.stderr
