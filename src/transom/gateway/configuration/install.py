"""Put the gateway into the configuration of an MCP client, take it out, and list where it is.

1. A plan says which file, under which name, and what the entry is. Making one changes nothing.
2. `write` changes the one entry and nothing else: a copy of the old file is stored beside it, and
   the new one replaces it atomically, with the same mode.
3. If the same entry exists already, nothing is written. A different entry is replaced only with
   `force`.
4. A change that would lose something is refused, and the file stays as it was.
"""

from __future__ import annotations

import codecs
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib.metadata import Distribution, PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from transom.errors import TransomError, UsageError
from transom.gateway.configuration import jsonc
from transom.gateway.configuration.agent_configs import (
    CLIENTS,
    AgentConfig,
    Launch,
    Machine,
    Scope,
    client_named,
)
from transom.gateway.configuration.config import (
    bytes_of,
    fitted_name,
    is_gateway,
    read_config,
    server_from_command,
    server_from_url,
    text_of,
    variables_of,
)
from transom.gateway.configuration.config_text import FORMATS, TextFormat
from transom.json_values import as_list, as_object

_SCRIPT = re.compile(
    r"(?P<path>[^:]+\.(?:py|js|mjs|cjs|ts|mts|rb|sh|json|toml|ya?ml))(?P<rest>:[A-Za-z_][\w.]*)?"
)
_FOLDER_OPTIONS = {"--directory", "--project", "--prefix", "--cwd", "-C"}


class Written(msgspec.Struct, frozen=True):
    """What was done to a file: `changed` is false if there was nothing to do."""

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
    gateway: Sequence[str]
    """The command that runs the gateway, by the client or, where it serves HTTP, by the user."""
    notes: tuple[str, ...] = ()

    def snippet(self) -> str:
        """What to put into the file, as text that ends with a newline."""
        return FORMATS[self.client.written].entry(self.client.section, self.name, self.entry)

    def write(self, *, force: bool = False) -> Written:
        """Put the entry into the file."""
        section, where = self.client.section, str(self.path)

        def edit(form: TextFormat, text: str) -> str | None:
            there = form.entries(text, section, where).get(self.name)
            if there == self.entry:
                return None
            if there is not None and not force:
                raise UsageError(
                    f"{where} already has another entry called {self.name!r}: "
                    f"{jsonc.rendered(there, None)}; --force replaces it, --name takes another name"
                )
            return form.put(text, section, self.name, self.entry, where)

        return _edit(self.client, self.path, edit)


def remove(
    client: str,
    name: str | None,
    *,
    scope: Scope = Scope.USER,
    force: bool = False,
    machine: Machine | None = None,
) -> tuple[str, Written]:
    """Remove the gateway's entry of that name from a client's file; its name, and what was done.

    Without a name, the only entry that runs the gateway is removed. One that does not run it is
    removed only with `force`.
    """
    chosen = client_named(client)
    path = chosen.file(scope, machine or Machine.here())
    where = str(path)
    removed = name or ""

    def edit(form: TextFormat, text: str) -> str:
        nonlocal removed
        entries = form.entries(text, chosen.section, where)
        ours = [each for each, entry in entries.items() if is_gateway(_words(entry))]
        if name is None and len(ours) != 1:
            which = f"several entries run the gateway, name one: {', '.join(ours)}"
            raise UsageError(f"{where}: {which if ours else 'no entry runs the gateway'}")
        removed = name or ours[0]
        if removed not in entries:
            known = ", ".join(entries) or "none"
            raise UsageError(f"{where} has no entry {removed!r}; it has: {known}")
        if removed not in ours and not force:
            raise UsageError(
                f"{where}: {removed!r} does not run the gateway: "
                f"{jsonc.rendered(entries[removed], None)}; --force removes it anyway"
            )
        return form.remove(text, chosen.section, removed, where)

    written = _edit(chosen, path, edit)
    return removed, written


class Found(msgspec.Struct, frozen=True):
    """A client on this machine: its file, and which of its servers run behind the gateway."""

    client: AgentConfig
    path: Path
    behind: Mapping[str, str]
    """By name: the command, URL or file behind the gateway."""
    others: Sequence[str] = ()
    error: str = ""


def find_clients(machine: Machine | None = None) -> Iterator[Found]:
    """The clients that have a configuration here: the user's, and that of this folder."""
    here = machine or Machine.here()
    for client in CLIENTS.values():
        scopes = [Scope.USER] if client.project_file is None else list(Scope)
        for scope in scopes:
            path = client.file(scope, here)
            # A client without any servers may have a folder and no file yet.
            home = path.parent not in {here.home, here.folder, here.settings()}
            if not path.exists() and not (scope is Scope.USER and home and path.parent.is_dir()):
                continue
            try:
                form = FORMATS[client.written]
                entries = form.entries(_resolved(path)[1], client.section, str(path))
            except UsageError as error:
                yield Found(client, path, {}, error=str(error))
                continue
            words = {name: _words(entry) for name, entry in entries.items()}
            behind = {name: _behind(each) for name, each in words.items() if is_gateway(each)}
            yield Found(client, path, behind, [name for name in entries if name not in behind])


def _words(entry: object) -> list[str]:
    """The command line of an entry."""
    values = as_object(entry)
    words = [values.get("command", values.get("cmd")), *as_list(values.get("args"))]
    return [word for word in words if isinstance(word, str)]


def _behind(words: Sequence[str]) -> str:
    if "--" in words:
        return shlex.join(words[words.index("--") + 1 :])
    for option in ("--url", "--config"):
        if option in words[:-1]:
            return words[words.index(option) + 1]
    return ""


def make_plan(
    client: str,
    *,
    command: Sequence[str] = (),
    url: str | None = None,
    config: Path | None = None,
    name: str | None = None,
    options: Sequence[str] = (),
    address: tuple[str, int] | None = None,
    token: str | None = None,
    scope: Scope = Scope.USER,
    machine: Machine | None = None,
    transom: Sequence[str] | None = None,
) -> Plan:
    """Plan the entry that makes a client run `transom gateway` in front of a server.

    Exactly one of `command`, `url` and `config` names the server; `options` are those of the
    gateway. With an `address`, the gateway serves HTTP there, started by the user, and the entry is
    its URL, with the `token` if there is one. `machine` and `transom` say where this is and how it
    is run; by default they are detected.
    """
    chosen = client_named(client)
    here = machine or Machine.here()
    if sum((bool(command), url is not None, config is not None)) != 1:
        raise UsageError("name one server: a command after --, --url URL or --config FILE")
    if name is not None and fitted_name(name) != name:
        raise UsageError(f"--name {name} is not a valid name: try {fitted_name(name)}")
    wanted: Sequence[str] = ()
    if config is not None:
        file = here.folder / config.expanduser()
        wanted = variables_of(file)
        # Read all of it: what the gateway would refuse later is refused now. A variable may be set
        # only where the client runs.
        read_config(file, environ=dict.fromkeys(wanted, "x"))
        server, called = ["--config", str(file)], "transom"
    elif url is not None:
        server, called = ["--url", url], server_from_url(url).name
    else:
        words = settled_command(command, here.folder)
        server, called = ["--", *words], server_from_command(words).name
    program, *before = transom or transom_command()
    args = [*before, "gateway", *options, *server]
    name = name or called
    notes: list[str] = []
    if address is None:
        entry = chosen.shape(Launch(name, program, args, wanted))
    elif chosen.by_url is None:
        raise UsageError(f"{chosen.title} takes no URL in its file: leave --http out")
    else:
        host, port = address
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104 - not bound here
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        entry = chosen.by_url(name, f"http://{shown}:{port}/mcp", headers)
        notes.append(f"Start the gateway yourself: {shlex.join([program, *args])}")
    return Plan(
        client=chosen,
        scope=scope,
        path=chosen.file(scope, here),
        name=name,
        entry=entry,
        gateway=[program, *args],
        notes=(*notes, *_notes(chosen, scope, name, entry, [*options, *server], here.folder)),
    )


# Folders of uv for a single run: a stored command must not contain a path into them.
_PASSING = re.compile(r"[/\\](?:archive|environments|builds)-v\d+[/\\]")


def transom_command() -> list[str]:
    """A command that runs this `transom` from any folder, and also later."""
    if _PASSING.search(sys.prefix + os.sep):
        uv = os.environ.get("UV")
        beside = uv and shutil.which("uvx", path=str(Path(uv).parent))
        package = transom_requirement("headless" if find_spec("playwright") else "")
        return [beside or _which("uvx") or "uvx", "--from", package, "transom"]
    beside = Path(sys.executable).parent / ("transom.exe" if os.name == "nt" else "transom")
    found = str(beside) if beside.is_file() else _which("transom")
    return [str(Path(found).absolute())] if found else [sys.executable, "-m", "transom"]


def transom_requirement(extra: str = "") -> str:
    """What `pip install` needs to install this Transom elsewhere, from where it came."""
    package, source = f"transom[{extra}]" if extra else "transom", _installed_from()
    return f"{package} @ {source}" if source else package


def _installed_from() -> str | None:
    """The folder, file or repository that this Transom was installed from, if it was not an index.

    Without it, an entry for `uvx` would run whatever an index has by this name.
    """
    try:
        recorded = Distribution.from_name("transom").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    if recorded is None:
        return None
    source: Any = msgspec.json.decode(recorded)  # as PEP 610 has it
    repository = source.get("vcs_info")
    if repository is None:
        return str(source["url"])
    return f"{repository['vcs']}+{source['url']}@{repository['commit_id']}"


def _which(program: str) -> str | None:
    """Where a program is, except in temporary folders."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    lasting = [each for each in folders if not _PASSING.search(each + os.sep)]
    return shutil.which(program, path=os.pathsep.join(lasting))


def settled_command(words: Sequence[str], folder: Path) -> list[str]:
    """The command with paths that mean the same in every folder.

    Existing scripts and files, and paths that begin with `.` or `~`, become absolute. So does a
    bare `python`, which decides what can be imported.
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
        settled[0] = _interpreter(settled[0], folder)
    return settled


def _interpreter(name: str, folder: Path) -> str:
    """The Python that a bare name means in this folder."""
    found = _which(name)
    if found is None:
        return name
    if Path(found).parent.name != "shims":
        return found
    # A shim of pyenv, asdf or mise: which Python it runs depends on the folder and the environment.
    asking = [found, "-c", "import sys; print(sys.executable)"]
    try:
        ran = subprocess.run(
            asking, cwd=folder, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return found
    return ran.stdout.strip() or found


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


# --- the file --------------------------------------------------------------------------------


def _edit(
    client: AgentConfig, path: Path, edit: Callable[[TextFormat, str], str | None]
) -> Written:
    """Change a client's file; `edit` returns its new text, or None if there is nothing to do."""
    real, text, data = _resolved(path)
    changed = edit(FORMATS[client.written], text)
    if changed is None:
        return Written(path, changed=False)
    marked = data is not None and data.startswith(codecs.BOM_UTF8)
    try:
        new = changed.encode("utf-8-sig" if marked else "utf-8")
        return Written(path, changed=True, backup=_replace(real, data, new))
    except UnicodeEncodeError:
        raise UsageError("the command has bytes in it that are not UTF-8") from None
    except OSError as error:
        raise TransomError(f"{path} cannot be written: {error.strerror or error}") from None


def _resolved(path: Path) -> tuple[Path, str, bytes | None]:
    """The file that a path leads to, and its content: a symbolic link stays one."""
    real = Path(os.path.realpath(path))  # `Path.resolve` raises for a loop, until Python 3.13
    data = bytes_of(real)
    return real, text_of(real, data or b""), data


def _replace(path: Path, before: bytes | None, data: bytes) -> Path | None:
    """Replace what is in the file; returns the copy of the old one, if there was one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    backup = None if before is None else _backup(path, before)
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        _create(new, data, path)
        if bytes_of(path) != before:
            raise TransomError(f"{path} was changed by another program in the meantime: try again")
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
    """A new file with the mode of an existing one; it is never more accessible than that."""
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
