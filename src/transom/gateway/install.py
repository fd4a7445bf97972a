"""Put the gateway into the configuration of an MCP client.

The files of the clients, and what an entry looks like there, were checked against the clients' own
documentation in November 2026.

1. A plan says which file, under which name, and what the entry is. Making one changes nothing.
2. `write` changes the one entry and nothing else: a copy of the file as it was is kept beside it,
   and the new one takes its place at once, with the same mode.
3. An entry that is there already and is the same is left alone: no change, no copy. One that
   differs is replaced only by force.
4. What cannot be changed without loss is refused, and the file stays as it was.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

import msgspec
import tomlkit
import tomlkit.exceptions
import tomlkit.items

from transom.errors import UsageError
from transom.gateway import jsonc
from transom.gateway.config import (
    read_config,
    server_from_command,
    server_from_url,
    variables_of,
)
from transom.gateway.jsonc import rendered
from transom.naming import fitted_name

Entry = dict[str, Any]


class Scope(StrEnum):
    """Whose configuration it is."""

    USER = "user"
    PROJECT = "project"


class Machine(msgspec.Struct, frozen=True):
    """What decides where a client keeps its files."""

    home: Path
    folder: Path
    environ: Mapping[str, str]
    platform: str  # as `sys.platform` has it

    def _set(self, variable: str) -> Path | None:
        value = self.environ.get(variable)
        return Path(value).expanduser() if value else None

    def under(self, variable: str, *otherwise: str) -> Path:
        """The folder that a variable names, else one in the user's home."""
        return self._set(variable) or self.home.joinpath(*otherwise)

    def settings(self) -> Path:
        """Where desktop applications of this system keep their settings."""
        if self.platform == "win32":
            return self.under("APPDATA", "AppData", "Roaming")
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.under("XDG_CONFIG_HOME", ".config")


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Where one MCP client keeps its servers, and how it writes them down."""

    name: str
    title: str
    section: str
    user_file: Callable[[Machine], Path]
    project_file: str
    shape: Callable[[str, Sequence[str], Sequence[str]], Entry]
    written: str = "json"
    expands: str = ""  # how its variables look, which it fills in before it starts a server
    afterwards: Mapping[Scope, str] = msgspec.field(default_factory=dict[Scope, str])
    by_command: Callable[[str, Entry, Scope], str] | None = None

    def file(self, scope: Scope, machine: Machine) -> Path:
        """The configuration file."""
        if scope is Scope.USER:
            return self.user_file(machine)
        return machine.folder / self.project_file


def _typed(command: str, args: Sequence[str], _: Sequence[str]) -> Entry:
    return {"type": "stdio", "command": command, "args": list(args)}


# Codex starts servers with a handful of variables only. Without these no browser can be opened.
_FOR_A_BROWSER = (
    "BROWSER",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_CURRENT_DESKTOP",
    "XDG_RUNTIME_DIR",
)


def _codex(command: str, args: Sequence[str], wanted: Sequence[str]) -> Entry:
    names = [*_FOR_A_BROWSER, *(name for name in wanted if name not in _FOR_A_BROWSER)]
    return {"command": command, "args": list(args), "env_vars": names}


def _gemini(command: str, args: Sequence[str], wanted: Sequence[str]) -> Entry:
    # Gemini CLI keeps variables that look like secrets to itself unless they are asked for. One
    # that is not set would arrive as the text that asks for it, but for the `:-`.
    env = {name: f"${{{name}:-}}" for name in wanted}
    return {"command": command, "args": list(args), **({"env": env} if env else {})}


def _zed(command: str, args: Sequence[str], _: Sequence[str]) -> Entry:
    return {"command": command, "args": list(args), "env": {}}


def _zed_file(machine: Machine) -> Path:
    if machine.platform == "win32":
        return machine.settings() / "Zed" / "settings.json"
    if machine.platform == "darwin":
        return machine.home / ".config" / "zed" / "settings.json"
    return machine.settings() / "zed" / "settings.json"


def _claude_command(name: str, entry: Entry, scope: Scope) -> str:
    words = ["claude", "mcp", "add-json", "--scope", scope.value, name, rendered(entry, None)]
    return shlex.join(words)


def _vscode_command(name: str, entry: Entry, scope: Scope) -> str:
    if scope is Scope.PROJECT:
        return ""
    return shlex.join(["code", "--add-mcp", rendered({"name": name, **entry}, None)])


def _known(*clients: AgentConfig) -> dict[str, AgentConfig]:
    return {client.name: client for client in clients}


CLIENTS: Mapping[str, AgentConfig] = _known(
    AgentConfig(
        name="claude-code",
        title="Claude Code",
        section="mcpServers",
        user_file=lambda machine: machine.under("CLAUDE_CONFIG_DIR") / ".claude.json",
        project_file=".mcp.json",
        shape=_typed,
        expands="${",
        afterwards={
            Scope.USER: "Restart Claude Code; /mcp shows the server.",
            Scope.PROJECT: "Restart Claude Code in this folder and approve the server.",
        },
        by_command=_claude_command,
    ),
    AgentConfig(
        name="codex",
        title="Codex",
        section="mcp_servers",
        user_file=lambda machine: machine.under("CODEX_HOME", ".codex") / "config.toml",
        project_file=".codex/config.toml",
        shape=_codex,
        written="toml",
        afterwards={
            Scope.USER: "Restart Codex; /mcp shows the server.",
            Scope.PROJECT: "Codex reads it in projects that you have marked as trusted.",
        },
    ),
    AgentConfig(
        name="cursor",
        title="Cursor",
        section="mcpServers",
        user_file=lambda machine: machine.home / ".cursor" / "mcp.json",
        project_file=".cursor/mcp.json",
        shape=_typed,
        expands="${",
        afterwards=dict.fromkeys(Scope, "Turn the server on in Cursor's settings, under MCP."),
    ),
    AgentConfig(
        name="gemini",
        title="Gemini CLI",
        section="mcpServers",
        user_file=lambda machine: machine.under("GEMINI_CLI_HOME") / ".gemini" / "settings.json",
        project_file=".gemini/settings.json",
        shape=_gemini,
        expands="$",
        afterwards=dict.fromkeys(
            Scope, "Restart Gemini CLI in a folder that it trusts; /mcp shows the server."
        ),
    ),
    AgentConfig(
        name="vscode",
        title="VS Code",
        section="servers",
        user_file=lambda machine: machine.settings() / "Code" / "User" / "mcp.json",
        project_file=".vscode/mcp.json",
        shape=_typed,
        expands="${",
        afterwards=dict.fromkeys(Scope, "Run 'MCP: List Servers' in VS Code to start the server."),
        by_command=_vscode_command,
    ),
    AgentConfig(
        name="zed",
        title="Zed",
        section="context_servers",
        user_file=_zed_file,
        project_file=".zed/settings.json",
        shape=_zed,
        afterwards=dict.fromkeys(Scope, "Zed takes it up by itself; see its Agent settings."),
    ),
)


def client_named(name: str) -> AgentConfig:
    """The client of that name."""
    if name not in CLIENTS:
        raise UsageError(f"no client is called {name!r}: it takes {', '.join(CLIENTS)}")
    return CLIENTS[name]


_LARGEST = 64_000_000
_SCRIPT = re.compile(
    r"(?P<path>[^:]+\.(?:py|js|mjs|cjs|ts|mts|rb|sh|json|toml|ya?ml))(?P<rest>:[A-Za-z_][\w.]*)?"
)
_FOLDER_OPTIONS = {"--directory", "--project", "--prefix", "--cwd", "-C"}


class Written(msgspec.Struct, frozen=True):
    """What `Plan.write` did: `changed` is false where the entry was there already."""

    path: Path
    changed: bool
    backup: Path | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One entry for one client's configuration file."""

    client: AgentConfig
    scope: Scope
    path: Path
    name: str
    entry: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def snippet(self) -> str:
        """What to put into the file, as text that ends with a newline."""
        if self.client.written == "toml":
            return toml_table(self.client.section, self.name, self.entry)
        return jsonc.rendered({self.client.section: {self.name: self.entry}}) + "\n"

    def write(self, *, force: bool = False) -> Written:
        """Put the entry into the file."""
        where = str(self.path)
        try:
            path = self.path.resolve()  # a link to the file stays a link
        except (OSError, RuntimeError):
            raise UsageError(f"{where} cannot be read: its links lead in a circle") from None
        data = _bytes_of(path)
        try:
            text = (data or b"").decode("utf-8")
        except UnicodeDecodeError:
            raise UsageError(f"{where} is not UTF-8 text") from None
        there = self._there(text, where)
        if there == self.entry:
            return Written(self.path, changed=False)
        if there is not None and not force:
            raise UsageError(
                f"{where} has another entry called {self.name!r} already: "
                f"{jsonc.rendered(there, None)}; --force replaces it, --name takes another name"
            )
        put = put_table if self.client.written == "toml" else jsonc.put_member
        changed = put(text, self.client.section, self.name, self.entry, where)
        try:
            return Written(self.path, changed=True, backup=_replace(path, data, changed))
        except UnicodeEncodeError:
            raise UsageError("the command has bytes in it that are not UTF-8") from None
        except OSError as error:
            raise UsageError(f"{where} cannot be written: {error.strerror or error}") from None

    def _there(self, text: str, where: str) -> object:
        if not text.strip("\ufeff \t\r\n"):
            return None
        read = _read_toml if self.client.written == "toml" else jsonc.read_object
        section: object = read(text, where).get(self.client.section)
        return (
            cast("dict[str, object]", section).get(self.name) if isinstance(section, dict) else None
        )


def make_plan(
    client: str,
    *,
    command: Sequence[str] = (),
    url: str | None = None,
    config: Path | None = None,
    name: str | None = None,
    scope: Scope = Scope.USER,
    machine: Machine | None = None,
    transom: Sequence[str] | None = None,
) -> Plan:
    """Plan the entry that makes a client run `transom gateway` in front of a server.

    Exactly one of `command`, `url` and `config` names the server. `machine` and `transom` say
    where this is and how it is run; by default that is found out.
    """
    chosen = client_named(client)
    here = machine or Machine(Path.home(), Path.cwd(), os.environ, sys.platform)
    if sum((bool(command), url is not None, config is not None)) != 1:
        raise UsageError("name one server: a command after --, --url URL or --config FILE")
    if name is not None and fitted_name(name) != name:
        raise UsageError(f"--name {name} cannot name a server: try {fitted_name(name)}")
    wanted: Sequence[str] = ()
    if config is not None:
        file = here.folder / config.expanduser()
        wanted = variables_of(file)
        # Read it all: what the gateway would refuse later is refused now. A variable may well be
        # set where the client runs and not here.
        read_config(file, environ=dict.fromkeys(wanted, "x"))
        options, called = ["--config", str(file)], "transom"
    elif url is not None:
        server = server_from_url(url)
        options, called = ["--url", url], server.name
    else:
        words = settled_command(command, here.folder)
        server = server_from_command(words)
        options, called = ["--", *words], server.name
    program, *before = transom or transom_command()
    args = [*before, "gateway", *options]
    entry = chosen.shape(program, args, wanted)
    name = name or called
    return Plan(
        client=chosen,
        scope=scope,
        path=chosen.file(scope, here),
        name=name,
        entry=entry,
        notes=tuple(_notes(chosen, scope, name, entry, options, here.folder)),
    )


def transom_command() -> list[str]:
    """How to run the `transom` that runs now, from anywhere."""
    beside = Path(sys.executable).parent / ("transom.exe" if os.name == "nt" else "transom")
    if beside.is_file():
        return [str(beside)]
    found = shutil.which("transom")
    if found:
        return [str(Path(found).absolute())]
    return [sys.executable, "-m", "transom"]


def settled_command(words: Sequence[str], folder: Path) -> list[str]:
    """The command with paths that mean the same in every folder.

    Scripts and other files that are there, and paths that begin with `.` or `~`, become absolute.
    So does a bare `python`: which one it is decides what it can import.
    """
    settled: list[str] = []
    for number, word in enumerate(words):
        option, equals, value = word.partition("=")
        if number and word.startswith("-"):
            kept = equals and _settled(value, folder, folders=option in _FOLDER_OPTIONS)
            settled.append(f"{option}={kept}" if kept else word)
        elif number and words[number - 1] in _FOLDER_OPTIONS:
            settled.append(_settled(word, folder, folders=True))
        else:
            settled.append(_settled(word, folder))
    if settled and re.fullmatch(r"python[\d.]*", settled[0]):
        settled[0] = shutil.which(settled[0]) or settled[0]
    return settled


def _settled(word: str, folder: Path, *, folders: bool = False) -> str:
    if word.startswith("~"):
        return str(Path(word).expanduser())
    found = _SCRIPT.fullmatch(word)
    path, rest = (found["path"], found["rest"] or "") if found else (word, "")
    is_path = bool(found) or folders or re.match(r"\.{1,2}([/\\]|$)", word) is not None
    is_path = is_path or ("/" in word and not word.startswith("@"))
    if not is_path or Path(path).is_absolute() or not (folder / path).exists():
        return word
    return os.path.normpath(folder / path) + rest


def _notes(
    client: AgentConfig,
    scope: Scope,
    name: str,
    entry: Mapping[str, Any],
    words: list[str],
    folder: Path,
) -> Iterable[str]:
    if client.by_command and (command := client.by_command(name, dict(entry), scope)):
        yield f"Or run: {command}"
    if client.afterwards.get(scope):
        yield client.afterwards[scope]
    if client.expands and any(client.expands in word for word in words):
        yield (
            f"{client.title} fills in variables: it will replace what follows {client.expands} in "
            "the command."
        )
    if "-m" in words[:-1]:
        module = words[words.index("-m") + 1].partition(".")[0]
        if (folder / module).is_dir() or (folder / f"{module}.py").is_file():
            yield (
                f"-m {module} is looked for in the folder that {client.title} starts it in: give "
                "the path of the file instead, or install the package."
            )


# --- TOML ------------------------------------------------------------------------------------

TomlValue = str | Sequence[str] | Mapping[str, str]

_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'{3}.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL
)


def _read_toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where} is not TOML: {error}") from None
    except RecursionError:
        raise UsageError(f"{where}: this TOML is nested too deep") from None
    except ValueError:  # Python's limit of 4,300
        raise UsageError(f"{where}: this TOML has a number with too many digits") from None


def toml_table(section: str, name: str, values: Mapping[str, TomlValue]) -> str:
    """The table `[section.name]` as text."""
    document = tomlkit.document()
    document.add(tomlkit.key(section), outer := tomlkit.table(is_super_table=True))
    outer.add(tomlkit.key(name), _new_table(values, "\n"))
    return tomlkit.dumps(document)


def put_table(
    text: str, section: str, name: str, values: Mapping[str, TomlValue], where: str
) -> str:
    """The text with the table `[section.name]` in it, and everything else as it was.

    A new table is appended, one that is there is replaced. A file that says the same in another way
    (inline tables, dotted keys) is left to its owner.
    """
    before = _read_toml(text, where)
    found: object = before.get(section, {})
    others = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    newline = "\r\n" if "\r\n" in text else "\n"
    if name in others:
        changed = _with_replaced(text, section, name, _new_table(values, newline), where)
    else:
        gap = "" if not text.strip("\ufeff \t\r\n") else newline
        if text and not text.endswith("\n"):
            gap += newline
        changed = text + gap + toml_table(section, name, values).replace("\n", newline)
    try:
        right = _read_toml(changed, where) == {**before, section: {**others, name: dict(values)}}
    except UsageError:
        right = False
    if not right:
        raise UsageError(
            f"{where}: [{section}.{name}] cannot be put there without changing more than that"
        )
    return changed


def _new_table(values: Mapping[str, TomlValue], newline: str) -> tomlkit.items.Table:
    table = tomlkit.table()
    for key, value in values.items():
        item: tomlkit.items.Item
        if isinstance(value, Mapping):
            item = inline = tomlkit.inline_table()
            for name, text in value.items():
                inline.add(tomlkit.key(name), tomlkit.item(text))
        else:
            item = tomlkit.item(value if isinstance(value, str) else list(value))
        item.trivia.trail = newline
        table.add(tomlkit.key(key), item)
    return table


def _with_replaced(
    text: str, section: str, name: str, table: tomlkit.items.Table, where: str
) -> str:
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    try:
        document = tomlkit.parse(text.removeprefix(mark))
    except tomlkit.exceptions.TOMLKitError as error:
        raise UsageError(f"{where} cannot be changed: {error}") from None
    outer: Any = document[section]
    old: object = outer[name]
    if not isinstance(old, tomlkit.items.Table) or old.is_super_table():
        raise UsageError(
            f"{where}: {section}.{name} is there, but not as a [{section}.{name}] table"
        )
    own, following = _split(old)
    if any(_has_comment(item) for item in own):
        raise UsageError(f"{where}: [{section}.{name}] has comments in it that would be lost")
    table.trivia.indent, table.trivia.trail = old.trivia.indent, old.trivia.trail
    for item in following:
        table.add(item)
    outer[name] = table
    return mark + tomlkit.dumps(document)


def _has_comment(item: tomlkit.items.Item) -> bool:
    if isinstance(item, tomlkit.items.Comment) or item.trivia.comment:
        return True
    return isinstance(item, tomlkit.items.Array) and "#" in _STRING.sub("", item.as_string())


def _split(
    table: tomlkit.items.Table,
) -> tuple[list[tomlkit.items.Item], list[Any]]:
    """All items of a table and its sub-tables; and the empty lines and comments after the last.

    These come before the next table, so they are about that.
    """
    own: list[tomlkit.items.Item] = [table]
    following: list[Any] = []
    for _, item in table.value.body:
        if isinstance(item, tomlkit.items.Whitespace | tomlkit.items.Comment):
            following.append(item)
            continue
        own += [*following, item]
        following = []
        if isinstance(item, tomlkit.items.Table):
            inner, following = _split(item)
            own += inner
    return own, following


# --- the file --------------------------------------------------------------------------------


def _bytes_of(path: Path) -> bytes | None:
    try:
        with path.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(data) > _LARGEST:
        raise UsageError(f"{path} is larger than {_LARGEST // 1_000_000} MB")
    return data


def _replace(path: Path, before: bytes | None, text: str) -> Path | None:
    """Put the text in the place of the file; the copy of what was there, if something was."""
    data = text.encode("utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    backup = None if before is None else _backup(path, before)
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        _create(new, data, path)
        if _bytes_of(path) != before:
            raise UsageError(f"{path} was changed by something else just now: try again")
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        if backup is not None:
            backup.unlink(missing_ok=True)
        raise
    return backup


def _backup(path: Path, data: bytes) -> Path:
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    number = 0
    while True:
        backup = path.with_name(f"{path.name}.{stamp}{f'-{number}' if number else ''}.bak")
        try:
            _create(backup, data, path)
        except FileExistsError:
            number += 1
        else:
            return backup


def _create(new: Path, data: bytes, like: Path) -> None:
    """A new file with the mode of one that is there; it is never more open than that."""
    try:
        mode = stat.S_IMODE(like.stat().st_mode)
    except FileNotFoundError:
        mode = None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    opened = os.fdopen(os.open(new, flags, 0o666 if mode is None else 0o600), "wb")
    try:
        with opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        if mode is not None:
            new.chmod(mode)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
