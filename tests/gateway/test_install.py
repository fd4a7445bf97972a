"""The gateway in the configuration files of MCP clients."""

import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.errors import TransomError, UsageError
from transom.gateway.configuration import install
from transom.gateway.configuration.agent_configs import CLIENTS, Machine, Scope
from transom.gateway.configuration.config_text import FORMATS, TomlValue, toml_table
from transom.gateway.configuration.install import (
    Plan,
    find_clients,
    make_plan,
    remove,
    settled_command,
    transom_command,
)
from transom.gateway.configuration.jsonc import remove_member

RUN = ["/opt/transom/bin/transom"]
DOCS = Path(__file__).parents[2] / "docs" / "gateway-install.md"
ARGS = ["gateway", "--", "acme", "--stdio"]
JSON_CLIENTS = [name for name, client in CLIENTS.items() if client.written == "json"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "home").mkdir()
    (tmp_path / "shop").mkdir()
    return Machine(tmp_path / "home", tmp_path / "shop", {}, "linux")


def plan(machine: Machine, client: str = "cursor", **more: Any) -> Plan:
    more.setdefault("command", ["acme", "--stdio"])
    return make_plan(client, machine=machine, transom=RUN, **more)


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


# --- which file, and what --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "user", "project"),
    [
        ("claude-code", ".claude.json", ".mcp.json"),
        ("codex", ".codex/config.toml", ".codex/config.toml"),
        ("cursor", ".cursor/mcp.json", ".cursor/mcp.json"),
        ("gemini", ".gemini/settings.json", ".gemini/settings.json"),
        ("vscode", ".config/Code/User/mcp.json", ".vscode/mcp.json"),
        ("zed", ".config/zed/settings.json", ".zed/settings.json"),
        ("claude-desktop", ".config/Claude/claude_desktop_config.json", None),
        ("cline", ".cline/data/settings/cline_mcp_settings.json", None),
        ("goose", ".config/goose/config.yaml", None),
        ("lm-studio", ".lmstudio/mcp.json", None),
        ("windsurf", ".codeium/windsurf/mcp_config.json", None),
    ],
)
def test_each_client_has_a_file_for_the_user_and_some_have_one_for_the_project(
    machine: Machine, client: str, user: str, project: str | None
):
    assert plan(machine, client).path == machine.home / user
    if project is not None:
        assert plan(machine, client, scope=Scope.PROJECT).path == machine.folder / project
    else:
        with pytest.raises(UsageError, match="has no configuration of its own for a project"):
            plan(machine, client, scope=Scope.PROJECT)


@pytest.mark.parametrize(
    ("client", "platform", "environ", "file"),
    [
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        ("codex", "linux", {"CODEX_HOME": "/c"}, "/c/config.toml"),
        ("gemini", "linux", {"GEMINI_CLI_HOME": "/c"}, "/c/.gemini/settings.json"),
        ("vscode", "linux", {"XDG_CONFIG_HOME": "/c"}, "/c/Code/User/mcp.json"),
        ("vscode", "darwin", {}, "HOME/Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", {"APPDATA": "/r"}, "/r/Code/User/mcp.json"),
        ("zed", "linux", {"XDG_CONFIG_HOME": "/c"}, "/c/zed/settings.json"),
        ("zed", "darwin", {"XDG_CONFIG_HOME": "/c"}, "HOME/.config/zed/settings.json"),
        ("zed", "win32", {"APPDATA": "/r"}, "/r/Zed/settings.json"),
        ("claude-desktop", "win32", {"APPDATA": "/r"}, "/r/Claude/claude_desktop_config.json"),
        (
            "claude-desktop",
            "darwin",
            {},
            "HOME/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        ("cline", "linux", {"CLINE_DIR": "/c"}, "/c/data/settings/cline_mcp_settings.json"),
        ("cline", "linux", {"CLINE_DATA_DIR": "/d"}, "/d/settings/cline_mcp_settings.json"),
        ("cline", "linux", {"CLINE_MCP_SETTINGS_PATH": "/s.json"}, "/s.json"),
        ("goose", "win32", {"APPDATA": "/r"}, "/r/Block/goose/config/config.yaml"),
        ("goose", "darwin", {}, "HOME/.config/goose/config.yaml"),
    ],
)
def test_a_file_is_where_this_system_and_its_environment_put_it(
    tmp_path: Path, client: str, platform: str, environ: dict[str, str], file: str
):
    machine = Machine(tmp_path, tmp_path, environ, platform)
    assert str(plan(machine, client).path) == file.replace("HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("client", "snippet"),
    [
        ("claude-code", {"mcpServers": {"acme": {"type": "stdio"}}}),
        ("cursor", {"mcpServers": {"acme": {"type": "stdio"}}}),
        ("gemini", {"mcpServers": {"acme": {}}}),
        ("vscode", {"servers": {"acme": {"type": "stdio"}}}),
        ("zed", {"context_servers": {"acme": {"env": {}}}}),
        ("claude-desktop", {"mcpServers": {"acme": {}}}),
        ("cline", {"mcpServers": {"acme": {"type": "stdio", "disabled": False}}}),
        ("lm-studio", {"mcpServers": {"acme": {}}}),
        ("windsurf", {"mcpServers": {"acme": {}}}),
    ],
)
def test_each_client_gets_its_own_shape(machine: Machine, client: str, snippet: dict[str, Any]):
    ((entry,),) = (section.values() for section in snippet.values())
    entry |= {"command": RUN[0], "args": ARGS}
    assert json.loads(plan(machine, client).snippet()) == snippet


def test_codex_gets_a_table_with_what_a_browser_needs_to_open(machine: Machine):
    table = tomllib.loads(plan(machine, "codex").snippet())["mcp_servers"]["acme"]
    assert (table["command"], table["args"]) == (RUN[0], ARGS)
    assert {"DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR"} < set(table["env_vars"])


def test_a_url_and_a_file_are_passed_on(machine: Machine):
    url = plan(machine, command=(), url="https://example.com/mcp")
    assert url.name == "example-com"
    assert url.entry["args"] == ["gateway", "--url", "https://example.com/mcp"]

    (machine.folder / "mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    file = plan(machine, command=(), config=Path("mcp.json"))
    assert file.name == "transom"
    assert file.entry["args"] == ["gateway", "--config", str(machine.folder / "mcp.json")]


def test_variables_that_a_file_asks_for_reach_the_gateway(machine: Machine):
    entry = {"command": "x", "env": {"A": "${KEY}", "B": "${LEVEL:-1}"}}
    (machine.folder / "mcp.json").write_text(json.dumps({"mcpServers": {"a": entry}}))

    codex = plan(machine, "codex", command=(), config=Path("mcp.json"))
    assert codex.entry["env_vars"][-2:] == ["KEY", "LEVEL"]
    gemini = plan(machine, "gemini", command=(), config=Path("mcp.json"))
    assert gemini.entry["env"] == {"KEY": "${KEY:-}", "LEVEL": "${LEVEL:-}"}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"client": "emacs"}, "no client is called 'emacs': it takes claude-code, claude-desktop"),
        ({"command": ()}, "name one server"),
        ({"url": "https://example.com"}, "name one server"),
        ({"command": (), "url": "x"}, "x is not a URL"),
        ({"command": (), "config": Path("gone.json")}, "gone.json cannot be read"),
        ({"name": "my shop"}, "--name my shop is not a valid name: try my-shop"),
    ],
)
def test_what_cannot_be_planned_says_why(machine: Machine, more: dict[str, Any], says: str):
    with pytest.raises(UsageError) as refused:
        plan(machine, **more)
    assert says in str(refused.value)


def test_a_file_that_the_gateway_would_refuse_is_refused_now(machine: Machine):
    (machine.folder / "mcp.json").write_text(
        '{"mcpServers": {"a": {"type": "sse", "url": "http://x"}}}'
    )
    with pytest.raises(UsageError, match="speaks SSE"):
        plan(machine, command=(), config=Path("mcp.json"))


def test_the_ways_of_the_client_itself_are_told(machine: Machine):
    (claude, *_) = plan(machine, "claude-code").notes
    assert claude.startswith("Or run: claude mcp add-json --scope user acme '{")
    (code, *_) = plan(machine, "vscode").notes
    assert code.startswith("Or run: code --add-mcp '{")


def test_a_variable_that_the_client_would_fill_in_is_told(machine: Machine):
    notes = plan(machine, "claude-code", command=["acme", "${KEY}"]).notes
    assert any("Claude Code fills in variables" in note for note in notes)
    assert not any("fills in" in note for note in plan(machine, "claude-code").notes)


@pytest.mark.processes
def test_a_module_that_only_this_folder_has_is_told(machine: Machine):
    (machine.folder / "orders.py").touch()
    notes = plan(machine, command=["python", "-m", "orders"]).notes
    assert any("-m orders is looked for in the folder" in note for note in notes)
    assert not any("-m" in note for note in plan(machine, command=["python", "-m", "json"]).notes)


@pytest.mark.parametrize("client", CLIENTS)
def test_the_page_about_it_shows_what_is_printed(client: str):
    you = Machine(Path("/home/you"), Path("/home/you/shop"), {}, "linux")
    shown = make_plan(
        client, command=["uvx", "acme-orders"], machine=you, transom=["/home/you/.venv/bin/transom"]
    )
    language = shown.client.written
    page = DOCS.read_text(encoding="utf-8")
    assert f"```{language}\n{shown.snippet()}```" in page
    assert f"`{str(shown.path).replace('/home/you', '~')}`" in page
    assert shown.client.project_file is None or f"`{shown.client.project_file}`" in page


# --- the command -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "settled"),
    [
        ("node shop/server.js --stdio", "node HERE/shop/server.js --stdio"),
        ("node ./shop/../shop/server.js", "node HERE/shop/server.js"),
        ("./run.sh", "HERE/run.sh"),
        ("run.sh", "HERE/run.sh"),
        ("uv run orders.py:shop", "uv run HERE/orders.py:shop"),
        ("uv --directory shop run server.js", "uv --directory HERE/shop run server.js"),
        ("uv --directory=shop run x", "uv --directory=HERE/shop run x"),
        ("acme --config=./run.sh --root .", "acme --config=HERE/run.sh --root HERE"),
        ("npx -y @acme/maps shop gone.py", "npx -y @acme/maps shop gone.py"),
        ("acme /etc/hosts a=b -x", "acme /etc/hosts a=b -x"),
        ("~/bin/acme", "HOME/bin/acme"),
    ],
)
def test_paths_in_a_command_mean_the_same_everywhere(tmp_path: Path, words: str, settled: str):
    (tmp_path / "shop").mkdir()
    for name in ("shop/server.js", "run.sh", "orders.py"):
        (tmp_path / name).touch()
    wanted = settled.replace("HERE", str(tmp_path)).replace("HOME", str(Path.home()))
    assert settled_command(words.split(), tmp_path) == wanted.split()


def test_a_bare_python_is_the_one_that_runs_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert settled_command(["python", "-m", "x"], tmp_path) == [
        str(Path(sys.executable).parent / "python"),
        "-m",
        "x",
    ]


@pytest.mark.processes
def test_the_transom_that_runs_can_be_run_from_anywhere(tmp_path: Path):
    ran = subprocess.run(
        [*transom_command(), "--version"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.stdout[:8], ran.stderr) == ("transom ", "")
    assert Path(transom_command()[0]).is_absolute()


@pytest.mark.processes
def test_a_transom_without_a_script_is_run_by_its_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "python").symlink_to(sys.executable)
    python = sys.executable
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    command = transom_command()
    assert command == [str(tmp_path / "python"), "-m", "transom"]
    ran = subprocess.run(
        [python, *command[1:], "--version"], capture_output=True, text=True, check=False
    )
    assert (ran.stdout[:8], ran.stderr) == ("transom ", "")


# --- writing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
def test_a_file_that_is_not_there_is_made_and_nothing_else(machine: Machine, client: str):
    wanted = plan(machine, client)
    written = wanted.write()

    assert (written.changed, written.backup) == (True, None)
    assert wanted.path.read_text() == wanted.snippet()
    assert files_in(machine.home) == [str(wanted.path.relative_to(machine.home))]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_second_time_changes_nothing_and_keeps_no_copy(machine: Machine, client: str):
    plan(machine, client).write()
    path = plan(machine, client).path
    before = (path.stat().st_mtime_ns, path.stat().st_ino)

    again = plan(machine, client).write()

    assert (again.changed, again.backup) == (False, None)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before
    assert len(files_in(machine.home)) == 1


@pytest.mark.parametrize("client", JSON_CLIENTS)
def test_everything_else_in_the_file_stays_and_a_copy_is_kept(machine: Machine, client: str):
    wanted = plan(machine, client)
    section = wanted.client.section
    wanted.path.parent.mkdir(parents=True, exist_ok=True)
    before = (
        '{\n    "z": [1, 2],\n    "SECTION": {\n        "b": {"x": "é"}\n    },\n    "a": 1e3\n}\n'
    )
    before = before.replace("SECTION", section)
    wanted.path.write_text(before, encoding="utf-8")
    wanted.path.chmod(0o640)

    written = wanted.write()

    after = wanted.path.read_text(encoding="utf-8")
    assert list(json.loads(after)) == ["z", section, "a"]
    assert json.loads(after)[section] == {"b": {"x": "é"}, "acme": wanted.entry}
    new = after.splitlines()
    assert [line for line in before.splitlines() if line not in new] == ['        "b": {"x": "é"}']
    assert written.backup is not None
    assert written.backup.read_text(encoding="utf-8") == before
    assert written.backup.parent == wanted.path.parent
    assert {stat.S_IMODE(path.stat().st_mode) for path in (wanted.path, written.backup)} == {0o640}


@pytest.mark.parametrize("client", ["vscode", "zed"])
def test_comments_of_an_editor_stay(machine: Machine, client: str):
    wanted = plan(machine, client)
    wanted.path.parent.mkdir(parents=True)
    wanted.path.write_text('// Mine\n{\n  "theme": "One Dark", // nice\n}\n')
    wanted.write()
    text = wanted.path.read_text()
    assert text.startswith('// Mine\n{\n  "theme": "One Dark", // nice\n  "')
    assert wanted.write().changed is False


def test_the_toml_of_codex_stays_as_it_was(machine: Machine):
    wanted = plan(machine, "codex")
    wanted.path.parent.mkdir()
    before = "# Mine\nmodel   =   \"m\"\n\n[mcp_servers.b]   # other\ncommand = 'x'\n"
    wanted.path.write_text(before)
    wanted.write()
    assert wanted.path.read_text() == f"{before}\n{wanted.snippet()}"


@pytest.mark.parametrize("client", CLIENTS)
def test_another_entry_of_that_name_is_told_and_kept_unless_forced(machine: Machine, client: str):
    plan(machine, client, command=["old"], name="acme").write()
    path = plan(machine, client).path
    before = path.read_text()

    with pytest.raises(UsageError, match="already has another entry called 'acme': .*old.*--force"):
        plan(machine, client).write()
    assert path.read_text() == before
    assert len(files_in(machine.home)) == 1

    written = plan(machine, client).write(force=True)
    assert path.read_text() == plan(machine, client).snippet()
    assert written.backup is not None
    assert written.backup.read_text() == before


def test_each_copy_has_a_name_of_its_own(machine: Machine):
    backups = {
        plan(machine, command=[word], name="acme").write(force=True).backup for word in "abcd"
    }
    assert len(backups) == 4
    assert len(files_in(machine.home)) == 4


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("cursor", '{"mcpServers": {'),
        ("cursor", '{"mcpServers": []}'),
        ("zed", '{"context_servers": {"acme": { // why\n}}}'),
        ("codex", "mcp_servers = {}\n"),
        ("codex", "model ="),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_left_alone(
    machine: Machine, client: str, text: str
):
    wanted = plan(machine, client)
    wanted.path.parent.mkdir(parents=True)
    wanted.path.write_text(text)
    with pytest.raises(UsageError, match=wanted.path.name):
        wanted.write(force=True)
    assert wanted.path.read_text() == text
    assert len(files_in(machine.home)) == 1


def test_a_file_that_is_not_text_is_left_alone(machine: Machine):
    wanted = plan(machine)
    wanted.path.parent.mkdir()
    wanted.path.write_bytes(b"\xff\xfe{")
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        wanted.write()
    assert wanted.path.read_bytes() == b"\xff\xfe{"


@pytest.mark.parametrize("client", ["cursor", "codex", "goose"])
def test_a_byte_order_mark_stays(machine: Machine, client: str):
    wanted = plan(machine, client)
    wanted.path.parent.mkdir(parents=True)
    for text in ("", before_of(client)):
        wanted.path.write_text(text, encoding="utf-8-sig")
        wanted.write()
        assert wanted.path.read_bytes().startswith(b"\xef\xbb\xbf")
        assert not wanted.write().changed
        remove(client, "acme", machine=machine)
        assert wanted.path.read_bytes().startswith(b"\xef\xbb\xbf")


def test_a_folder_in_the_place_of_the_file_is_told(machine: Machine):
    wanted = plan(machine)
    wanted.path.mkdir(parents=True)
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        wanted.write()


def test_a_folder_that_cannot_be_made_is_told(machine: Machine):
    (machine.home / ".cursor").touch()
    with pytest.raises(UsageError, match="mcp.json cannot be read: Not a directory"):
        plan(machine).write()


def test_a_link_to_the_file_stays_a_link(machine: Machine):
    wanted = plan(machine)
    wanted.path.parent.mkdir()
    real = machine.home / "dotfiles.json"
    real.write_text("{}")
    wanted.path.symlink_to(real)
    wanted.write()
    assert wanted.path.is_symlink()
    assert "acme" in real.read_text()


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_links_that_lead_in_a_circle_are_refused(machine: Machine, client: str):
    wanted = plan(machine, client)
    wanted.path.parent.mkdir()
    wanted.path.symlink_to(wanted.path)
    with pytest.raises(UsageError, match="cannot be read: Too many levels of symbolic links"):
        wanted.write()


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_a_number_that_python_does_not_read_is_refused_and_the_file_stays(
    machine: Machine, client: str
):
    wanted = plan(machine, client)
    wanted.path.parent.mkdir()
    number = "9" * 5000
    text = f"huge = {number}\n" if client == "codex" else f'{{"huge": {number}}}'
    wanted.path.write_text(text)
    with pytest.raises(UsageError, match="too many digits"):
        wanted.write()
    assert wanted.path.read_text() == text


def test_a_file_that_its_client_writes_at_the_same_time_is_not_overwritten(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    wanted = plan(machine, "claude-code")
    wanted.path.write_text("{}")
    synced = os.fsync

    def client_writes(fd: int) -> None:
        synced(fd)
        wanted.path.write_text('{"numStartups": 2}')

    monkeypatch.setattr(install.os, "fsync", client_writes)
    with pytest.raises(TransomError, match="by another program in the meantime") as caught:
        wanted.write()
    assert not isinstance(caught.value, UsageError)
    assert wanted.path.read_text() == '{"numStartups": 2}'
    assert files_in(machine.home) == [".claude.json"]


def test_a_write_that_fails_leaves_the_file_and_nothing_beside_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    wanted = plan(machine)
    wanted.path.parent.mkdir()
    wanted.path.write_text("{}")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(install.os, "fsync", full)
    with pytest.raises(TransomError, match="cannot be written: No space left on device"):
        wanted.write()
    assert files_in(machine.home) == [".cursor/mcp.json"]
    assert wanted.path.read_text() == "{}"


def test_a_command_that_is_not_text_is_refused(machine: Machine):
    with pytest.raises(UsageError, match="not UTF-8"):
        plan(machine, command=["acme", "\udcff"]).write()
    assert files_in(machine.home) == []


# --- TOML ------------------------------------------------------------------------------------

VALUES: dict[str, TomlValue] = {"command": "run", "args": ["a"]}
NEW = '[mcp_servers.new]\ncommand = "run"\nargs = ["a"]\n'


def put(text: str, name: str = "new", values: dict[str, TomlValue] = VALUES) -> str:
    return FORMATS["toml"].put(text, "mcp_servers", name, values, "FILE")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", NEW),
        ('model = "m"  # mine', f'model = "m"  # mine\n\n{NEW}'),
        ("[mcp_servers.x]\ncommand = 'x'\n", f"[mcp_servers.x]\ncommand = 'x'\n\n{NEW}"),
        ("[mcp_servers]\n", f"[mcp_servers]\n\n{NEW}"),
        (
            '[mcp_servers.new]\ncommand = "old"\n\n# the next\n[z]\na = 1\n',
            f"{NEW}\n# the next\n[z]\na = 1\n",
        ),
        (
            '[a]\n[mcp_servers."new"]\ncommand = "old"\n[mcp_servers.new.env]\nK = "v"\n\n[z]\n',
            '[a]\n[mcp_servers."new"]\ncommand = "run"\nargs = ["a"]\n\n[z]\n',
        ),
        (
            'a = """\n[mcp_servers.new]\n"""\nb = [\n[1],\n]\n[mcp_servers.new]\nenv = {}\n',
            f'a = """\n[mcp_servers.new]\n"""\nb = [\n[1],\n]\n{NEW}',
        ),
        ("[mcp_servers.new]\na = 1\n\nb = 2\n\n[z]\n", f"{NEW}\n[z]\n"),
        ("a = 1\r\n[mcp_servers.new]", "a = 1\r\n" + NEW.replace("\n", "\r\n")),
        ("[mcp_servers.new]\na = 1\n[z]\nb = 2", f"{NEW}[z]\nb = 2"),
        ("[mcp_servers.new]\r\na = 1\r\n[z]\r\n", NEW.replace("\n", "\r\n") + "[z]\r\n"),
        (
            "[ 'mcp_servers' . new ]\na = [\n  'x',\n]\nb = '''\n[z] # y\n'''\n",
            NEW.replace("[mcp_servers.new]", "[ 'mcp_servers' . new ]"),
        ),
        (
            "# one\n[mcp_servers.a]\nx=1 # two\n[z]\nq = 1\n[mcp_servers.new]\ny=1\n# three\n",
            f"# one\n[mcp_servers.a]\nx=1 # two\n[z]\nq = 1\n{NEW}# three\n",
        ),
    ],
)
def test_a_table_is_put_in_and_the_rest_is_as_it_was(before: str, after: str):
    assert put(before) == after


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = ", "FILE is not TOML: Invalid value (at end of document)"),
        ("[mcp_servers.new]\na = '#' # why\n", "has comments in it that would be lost"),
        ("[mcp_servers.new]\n# why\na = 1\n", "has comments in it that would be lost"),
        ("[mcp_servers.new] # why\na = 1\n", "has comments in it that would be lost"),
        ("[mcp_servers.new]\na = [\n 1, # why\n]\n", "has comments in it that would be lost"),
        (
            "[mcp_servers.new]\na = 1\n[mcp_servers.new.env] # why\nb = 1\n",
            "has comments in it that would be lost",
        ),
        ("[[mcp_servers.new]]\na = 1\n", "but not as a [mcp_servers.new] table"),
        ("mcp_servers = {}\n", "cannot be changed there without changing more"),
        ("mcp_servers = 1\n", "cannot be changed there without changing more"),
        ("mcp_servers.new.command = 'x'\n", "but not as a [mcp_servers.new] table"),
        ("[mcp_servers]\nnew = {command = 'x'}\n", "but not as a [mcp_servers.new] table"),
        ("[mcp_servers.new.env]\na = 'x'\n", "cannot be changed there without changing more"),
    ],
)
def test_what_cannot_be_changed_without_loss_is_refused(text: str, says: str):
    with pytest.raises(UsageError) as refused:
        put(text)
    assert says in str(refused.value)


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, st.dictionaries(TEXT, TEXT | st.lists(TEXT) | st.dictionaries(TEXT, TEXT)))
def test_any_table_is_read_as_it_was_written(name: str, values: dict[str, TomlValue]):
    assert tomllib.loads(toml_table("s", name, values)) == {"s": {name: values}}
    assert put(put("a = 1\n", name, values), name) == put("a = 1\n", name)


# --- taking it out, and listing it ---------------------------------------------------------------

BEFORE = {
    "json": (
        '{\n  // mine\n  "SECTION": {\n    "other": {"command": "x"} // keep\n  },\n  "a": 1\n}\n'
    ),
    "toml": '# mine\nmodel = "m"\n\n[SECTION.other]\ncommand = "x" # keep\n',
    "yaml": (
        "# mine\nGOOSE_MODEL: m\nSECTION:\n  other: # keep\n    enabled: false\n    bundled: null\n"
        "    args: [a, 'b']\n\n# about the rest\nrest: |\n  one\n  two\n"
    ),
}


def before_of(client: str) -> str:
    config = CLIENTS[client]
    return BEFORE[config.written].replace("SECTION", config.section)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_was_put_into_a_file_can_be_taken_out_and_nothing_is_left(
    machine: Machine, client: str, newline: str
):
    wanted = plan(machine, client)
    wanted.path.parent.mkdir(parents=True, exist_ok=True)
    before = before_of(client).replace("\n", newline).encode()
    wanted.path.write_bytes(before)

    assert wanted.write().changed
    after = wanted.path.read_bytes()
    assert b"acme" in after
    kept = [line for line in before.splitlines() if line.strip() and b'"other"' not in line]
    assert [line for line in after.splitlines() if line in kept] == kept
    assert not wanted.write().changed

    name, written = remove(client, None, machine=machine)
    assert (name, written.changed) == ("acme", True)
    assert b"acme" not in wanted.path.read_bytes()
    assert written.backup is not None
    assert written.backup.read_bytes() == after
    form = FORMATS[wanted.client.written]
    text, again = before.decode(), wanted.path.read_bytes().decode()
    assert form.read(again, "") == form.read(text, "")
    assert [line for line in again.splitlines() if line.strip()] == [
        line for line in text.splitlines() if line.strip()
    ]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_last_entry_can_be_taken_out(machine: Machine, client: str):
    wanted = plan(machine, client)
    wanted.write()
    remove(client, "acme", machine=machine)
    form, text = FORMATS[wanted.client.written], wanted.path.read_text()
    assert not (form.read(text, "") if text else {}).get(wanted.client.section)
    wanted.write()
    assert form.read(wanted.path.read_text(), "")[wanted.client.section] == {"acme": wanted.entry}


@pytest.mark.parametrize("client", [*JSON_CLIENTS[:1], "codex"])
def test_an_argument_that_looks_like_a_comment_or_a_table_is_none(machine: Machine, client: str):
    wanted = plan(machine, client, command=["acme", "#1", "//2", "\n[a]\n"], name="acme")
    wanted.write()
    plan(machine, client, command=["acme", "#3"], name="acme").write(force=True)
    wanted.write(force=True)
    remove(client, "acme", machine=machine)
    assert "acme" not in wanted.path.read_text()


def test_only_what_runs_the_gateway_is_taken_out_unasked(machine: Machine):
    plan(machine).write()
    plan(machine, name="second").write()
    text = plan(machine).path.read_text()
    with pytest.raises(UsageError, match="several entries run the gateway, name one: acme, second"):
        remove("cursor", None, machine=machine)
    with pytest.raises(UsageError, match="no entry 'third'; it has: acme, second"):
        remove("cursor", "third", machine=machine)
    with pytest.raises(UsageError, match="no entry runs the gateway"):
        remove("zed", None, machine=machine)
    assert plan(machine).path.read_text() == text

    plan(machine).path.write_text('{"mcpServers": {"mine": {"command": "mine"}}}')
    with pytest.raises(UsageError, match="'mine' does not run the gateway: .*--force"):
        remove("cursor", "mine", machine=machine)
    remove("cursor", "mine", force=True, machine=machine)
    assert json.loads(plan(machine).path.read_text()) == {"mcpServers": {}}


@pytest.mark.parametrize(
    ("client", "text", "says"),
    [
        ("cursor", '{"mcpServers": {"acme": E}}', "has comments in it"),
        (
            "codex",
            '[mcp_servers.acme]\ncommand = "transom" # why\nargs = ["gateway"]\n',
            "comments",
        ),
        (
            "goose",
            "extensions:\n  acme:\n    cmd: transom\n    # why\n    args: [gateway]\n",
            "comm",
        ),
        (
            "goose",
            "extensions: {acme: {cmd: transom, args: [gateway]}}\n",
            "is written in one line",
        ),
        (
            "goose",
            "x: &x\n  acme: {cmd: transom, args: [gateway]}\nextensions:\n  <<: *x\n",
            "has entries of another mapping",
        ),
        ("goose", "- a\n", "is not a YAML mapping"),
        ("goose", "a: [\n", "is not YAML"),
    ],
)
def test_what_cannot_be_taken_out_without_loss_stays(
    machine: Machine, client: str, text: str, says: str
):
    text = text.replace("E", '{"command": "transom", /* why */ "args": ["gateway", "--", "x"]}')
    file = plan(machine, client).path
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(UsageError, match=says):
        remove(client, None, machine=machine)
    assert files_in(machine.home) == [str(file.relative_to(machine.home))]
    assert file.read_text() == text


@pytest.mark.parametrize(
    "text",
    ["", "extensions:\n", "extensions: {}\n", "a: 1\n", "a: 1", "extensions:\n# none\nb: 2\n"],
)
def test_goose_gets_its_first_extension(machine: Machine, text: str):
    wanted = plan(machine, "goose")
    wanted.path.parent.mkdir(parents=True)
    wanted.path.write_text(text)
    wanted.write()
    after = FORMATS["yaml"].read(wanted.path.read_text(), "")
    assert after["extensions"] == {"acme": wanted.entry}
    assert "# none" not in text or "# none" in wanted.path.read_text()


def test_an_entry_of_goose_is_replaced_by_force(machine: Machine):
    plan(machine, "goose", name="shop").write()
    file = plan(machine, "goose").path
    file.write_text(file.read_text() + "  later:\n    enabled: false\n# end\n")
    changed = plan(machine, "goose", name="shop", command=["b", "#c"])
    with pytest.raises(UsageError, match="already has another entry called 'shop'"):
        changed.write()
    changed.write(force=True)
    assert FORMATS["yaml"].read(file.read_text(), "")["extensions"] == {
        "shop": changed.entry,
        "later": {"enabled": False},
    }
    assert file.read_text().endswith("# end\n")


def test_clients_that_are_here_are_listed_with_what_runs_behind_the_gateway(machine: Machine):
    plan(machine, "codex").write()
    plan(machine, "zed", command=(), url="https://example.com/mcp", scope=Scope.PROJECT).write()
    (machine.home / ".cursor").mkdir()
    (machine.home / ".claude.json").write_text('{"mcpServers": {"mine": {"command": "m"}}}')
    (machine.home / ".gemini").mkdir()
    (machine.home / ".gemini" / "settings.json").write_text("{")

    found = {each.client.name: each for each in find_clients(machine)}
    assert list(found) == ["claude-code", "codex", "cursor", "gemini", "zed"]
    assert found["codex"].behind == {"acme": "acme --stdio"}
    assert found["zed"].behind == {"example-com": "https://example.com/mcp"}
    assert (found["claude-code"].behind, found["claude-code"].others) == ({}, ["mine"])
    assert (found["cursor"].behind, found["cursor"].others) == ({}, [])
    assert "this is not JSON" in found["gemini"].error


# --- options and lasting commands ------------------------------------------------------------


def test_options_of_the_gateway_come_before_the_server(machine: Machine):
    made = plan(machine, options=["--headless", "--approve", "page"])
    assert made.entry["args"] == ["gateway", "--headless", "--approve", "page", *ARGS[1:]]


@pytest.mark.parametrize(
    ("client", "entry"),
    [
        ("claude-code", {"type": "http", "url": "URL", "headers": "HEADERS"}),
        ("cline", {"type": "streamableHttp", "url": "URL", "headers": "HEADERS"}),
        ("codex", {"url": "URL", "http_headers": "HEADERS"}),
        ("gemini", {"httpUrl": "URL", "headers": "HEADERS"}),
        ("windsurf", {"serverUrl": "URL", "headers": "HEADERS"}),
        ("zed", {"url": "URL", "headers": "HEADERS"}),
    ],
)
def test_a_gateway_that_serves_http_is_an_entry_by_url(
    machine: Machine, client: str, entry: dict[str, Any]
):
    known = {"URL": "http://[::1]:80/mcp", "HEADERS": {"Authorization": "Bearer t"}}
    made = plan(machine, client, options=["--http", "[::]:80"], address=("::", 80), token="t")
    assert made.entry == {key: known.get(value, value) for key, value in entry.items()}
    run = "/opt/transom/bin/transom gateway --http '[::]:80' -- acme --stdio"
    assert f"Start the gateway yourself: {run}" in made.notes


def test_claude_desktop_takes_no_url(machine: Machine):
    with pytest.raises(UsageError, match="Claude Desktop takes no URL in its file"):
        plan(machine, "claude-desktop", address=("127.0.0.1", 80))


def test_a_transom_that_uvx_runs_is_run_by_uvx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    passing = tmp_path / "cache" / "uv" / "archive-v0" / "x1" / "bin"
    lasting = tmp_path / "bin"
    for folder in (passing, lasting):
        folder.mkdir(parents=True)
        for program in ("uvx", "transom", "python"):
            (folder / program).write_text("#!/bin/sh\n")
            (folder / program).chmod(0o755)
    monkeypatch.setattr(sys, "prefix", str(passing.parent))
    monkeypatch.setattr(sys, "executable", str(passing / "python"))
    monkeypatch.setenv("PATH", f"{passing}{os.pathsep}{lasting}")
    monkeypatch.delenv("UV", raising=False)
    recorded: str | None = None
    installed = SimpleNamespace(read_text=lambda _: recorded)
    monkeypatch.setattr(install.Distribution, "from_name", lambda _: installed)
    assert transom_command() == [str(lasting / "uvx"), "--from", "transom[headless]", "transom"]
    recorded = '{"url": "file:///my/transom", "dir_info": {}}'
    assert transom_command()[2] == "transom[headless] @ file:///my/transom"
    monkeypatch.setattr(install, "find_spec", lambda _: None)
    recorded = '{"url": "https://a/b.git", "vcs_info": {"vcs": "git", "commit_id": "1f"}}'
    assert transom_command()[2] == "transom @ git+https://a/b.git@1f"
    recorded = None
    assert transom_command() == [str(lasting / "uvx"), "--from", "transom", "transom"]
    # Its own Python would be gone tomorrow, too.
    assert settled_command(["python", "x.py"], tmp_path)[0] == str(lasting / "python")


@pytest.mark.processes
def test_a_python_that_a_shim_chooses_is_the_one_it_chooses_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "shims").mkdir()
    shim = tmp_path / "shims" / "python"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'shims'}{os.pathsep}{os.environ['PATH']}")
    assert settled_command(["python", "x.py"], tmp_path)[0] == sys.executable


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1, // c\n "x": 2, // mine\n "b": 3}', '{"a": 1, // c\n // mine\n "b": 3}'),
        ('{"a": 1, // c\n "x": 2, "b": 3}', '{"a": 1, // c\n "b": 3}'),
        ('{\n "a": 1, // c\n "x": 2\n}', '{\n "a": 1 // c\n}'),
        ('{"a": 1 /* y */, // z\n "x": 2,}', '{"a": 1 /* y */, // z\n}'),
        ('{ // c\n "x": 2, "b": 3}', '{ // c\n "b": 3}'),
        ('{"a": 1, /* c */ "x": 2}', '{"a": 1 /* c */}'),
    ],
)
def test_an_entry_leaves_and_the_comments_around_it_stay(before: str, after: str):
    inside = '{"mcpServers": %s}'
    assert remove_member(inside % before, "mcpServers", "x", "file") == inside % after
