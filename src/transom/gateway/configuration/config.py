"""The servers behind the gateway, from a configuration file, a command line or a URL.

The file is what MCP clients share: `{"mcpServers": {NAME: {"command", "args", "env", "cwd"}}}` or
`{"url", "headers"}`. VS Code's `servers` and Zed's `context_servers` are read as well, and so are
comments and trailing commas. Unknown keys are ignored. `"transom"` has settings of the gateway:
`{"open": ..., "reuse": ...}`, each one value for all tools of the server, or an object with a value
for each tool, `"*"` for the others.

`${VAR}`, `${VAR:-default}` and `${env:VAR}` are replaced from the environment, and VS Code's
`${workspaceFolder}` and `${userHome}`. A variable that is not set and has no default is an error.

A server that was not given a name gets one that a `Host` accepts: 1 to 32 of `A-Za-z0-9_-`,
beginning with a letter or digit, without a `_` at its end or two in a row.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args
from urllib.parse import urlsplit

import msgspec

from transom.connections.oauth_client import OAuthClient
from transom.errors import UsageError
from transom.gateway.configuration.jsonc import read_object
from transom.host.views.view_settings import Opening, Reuse

Entry = dict[str, Any]

_SECTIONS = ("mcpServers", "servers", "context_servers")
_LARGEST = 64_000_000
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
_STDIO = {"stdio", "local"}
_HTTP = {"http", "streamablehttp", "streamable", "remote"}
_FOLDERS_OF_EDITORS = {".vscode", ".cursor", ".gemini", ".zed"}


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One server behind the gateway: either a `command` or a `url`. All fields are keywords.

    `env` is added to the server's environment.
    """

    name: str
    """What the server is called, in what clients and users read."""
    command: tuple[str, ...] | None = None
    env: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    ask: Callable[[str], object] | None = None
    """Shows the user the server's login page; None if nobody can be asked."""
    client: OAuthClient | None = None
    """The client for logins at the server's issuer, as for a `RemoteServer`."""
    scope: str | None = None
    """The scopes that a login asks for; by default what the server needs."""
    open_views: Mapping[str, Opening] = msgspec.field(default_factory=dict[str, Opening])
    """Whether its tools open Views, by tool; `"*"` for the others."""
    reuse_views: Mapping[str, Reuse] = msgspec.field(default_factory=dict[str, Reuse])
    """When they reuse an open View, in the same way."""


def server_from_command(words: Sequence[str], *, name: str | None = None) -> ServerConfig:
    """The server that a command line starts, named after what it runs."""
    if not words or not words[0]:
        raise UsageError("no server is named: give a command after --, --url or --config")
    return ServerConfig(name=fitted_name(name or name_of_command(words)), command=tuple(words))


def server_from_url(
    url: str,
    *,
    name: str | None = None,
    headers: Mapping[str, str] | None = None,
    where: str = "--url",
) -> ServerConfig:
    """The server at a URL, named after its host; `where` the URL was given, for errors."""
    name = fitted_name(name or name_of_url(url))
    return ServerConfig(name=name, url=_checked_url(url, where), headers=headers or {})


def read_config(
    path: str | os.PathLike[str], *, environ: Mapping[str, str] | None = None
) -> list[ServerConfig]:
    """The servers of a file that are not disabled, in its order, with unique names."""
    file = Path(path)
    entries = dict(_enabled(_read(file), file))
    if not entries:
        raise UsageError(
            f"{file} names no server: it needs one in 'mcpServers' that is not disabled"
        )
    reader = _Reader(file, os.environ if environ is None else environ)
    names = unique_names(fitted_name(name) for name in entries)
    return [
        reader.server(name, told, entry)
        for name, (told, entry) in zip(names, entries.items(), strict=True)
    ]


def variables_of(path: str | os.PathLike[str]) -> list[str]:
    """The environment variables that a configuration file asks for."""
    file = Path(path)
    wanted: dict[str, None] = {}
    for _, entry in _enabled(_read(file), file):
        for text in _texts(entry):
            for found in _VARIABLE.finditer(text):
                name = _NAME.fullmatch(found[1])
                if name and found[1] not in _PLACES:
                    wanted[name["name"]] = None
    return list(wanted)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in cast("dict[str, object]", value).values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from _texts(inner)


# --- the file --------------------------------------------------------------------------------


def bytes_of(file: Path) -> bytes | None:
    """The content of a configuration file; None if there is no such file."""
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from None
    if len(data) > _LARGEST:
        raise UsageError(f"{file} is larger than {_LARGEST // 1_000_000} MB")
    return data


def text_of(file: Path, data: bytes) -> str:
    """The text of a configuration file."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text: byte {error.start}") from None


def _read(file: Path) -> Entry:
    data = bytes_of(file)
    if data is None:
        raise UsageError(f"{file} cannot be read: {os.strerror(errno.ENOENT)}")
    return read_object(text_of(file, data), str(file))


def _enabled(config: Entry, file: Path) -> Iterator[tuple[str, Entry]]:
    sections = [section for section in _SECTIONS if section in config]
    if not sections:
        raise UsageError(f"{file} has no 'mcpServers': it names no server")
    seen: set[str] = set()
    for section in sections:
        entries: object = config[section]
        if not isinstance(entries, dict):
            raise UsageError(f"{file}: {section!r} must be an object, in {{}}")
        for name, entry in cast("dict[str, object]", entries).items():
            if not isinstance(entry, dict):
                raise UsageError(f"{file}: server {name!r} must be an object, in {{}}")
            server = cast("Entry", entry)
            if server.get("disabled") is True or server.get("enabled") is False:
                continue
            if name in seen:
                raise UsageError(f"{file}: server {name!r} is in more than one section")
            seen.add(name)
            yield name, server


# --- one entry -------------------------------------------------------------------------------


class _Reader:
    """Reads the entries of one file."""

    def __init__(self, file: Path, environ: Mapping[str, str]) -> None:
        self._file = file
        self._environ = environ
        self._at = ""

    def server(self, name: str, written: str, entry: Entry) -> ServerConfig:
        self._at = f"{self._file}: server {written!r}"
        command = self._command(entry)
        url = self._url(entry)
        kind = self._kind(entry)
        views: Any = self._views(entry)
        if (command is None) == (url is None):
            both = "both a command and a URL" if command else "neither a command nor a URL"
            raise UsageError(f"{self._at} has {both}")
        if url is not None:
            if kind in _STDIO:
                raise UsageError(f"{self._at} has a URL, but its type is {kind!r}")
            return ServerConfig(
                name=name,
                url=self._http(url, kind),
                headers=self._mapping(entry, "headers"),
                **views,
            )
        assert command is not None  # noqa: S101 - told to the type checker; it is so by the above
        if kind and kind not in _STDIO:
            raise UsageError(f"{self._at} has a command, but its type is {kind!r}")
        cwd = self._cwd(entry)
        self._refuse_loop(command, cwd)
        env = self._mapping(entry, "env")
        return ServerConfig(name=name, command=command, env=env, cwd=cwd, **views)

    def _views(self, entry: Entry) -> dict[str, dict[str, str]]:
        given = self._object(entry, "transom")
        for key in given:
            if key not in ("open", "reuse"):
                raise UsageError(f"{self._at}: 'transom' has no {key!r}: it takes open and reuse")
        found: dict[str, dict[str, str]] = {}
        for key, words in (("open", get_args(Opening)), ("reuse", get_args(Reuse))):
            value: object = given.get(key, {})
            by_tool = cast("Entry", value if isinstance(value, dict) else {"*": value})
            for tool, word in by_tool.items():
                if word not in words:
                    at = f"{self._at}: {key!r}" + ("" if tool == "*" else f" of {tool!r}")
                    raise UsageError(f"{at} is one of {', '.join(words)}, not {_shown(word)}")
            found[f"{key}_views"] = by_tool
        return found

    def _command(self, entry: Entry) -> tuple[str, ...] | None:
        command: object = entry.get("command")
        if command is None:
            return None
        first = cast("list[object]", command) if isinstance(command, list) else [command]
        given: object = entry.get("args")
        if given is not None and not isinstance(given, list):
            raise UsageError(f"{self._at}: 'args' must be a list")
        words = [
            *self._words("command", first),
            *self._words("args", cast("list[object]", given or [])),
        ]
        if not words or not words[0].strip():
            raise UsageError(f"{self._at}: 'command' is empty")
        if "/" in words[0] or os.sep in words[0]:  # a path, not a name to look up in PATH
            words[0] = str(Path(self._cwd(entry)) / Path(words[0]).expanduser())
        return tuple(words)

    def _words(self, key: str, values: list[object]) -> list[str]:
        return [self._text(f"{key}[{n}]", value) for n, value in enumerate(values)]

    def _url(self, entry: Entry) -> str | None:
        for key in ("url", "httpUrl", "serverUrl"):
            if entry.get(key) is not None:
                return self._text(key, entry[key])
        return None

    def _kind(self, entry: Entry) -> str:
        kind: object = entry.get("type") or entry.get("transport") or ""
        if not isinstance(kind, str):
            raise UsageError(f"{self._at}: 'type' must be text, not {_shown(kind)}")
        return kind.lower().replace("-", "").replace("_", "")

    def _http(self, url: str, kind: str) -> str:
        where = f"{self._at}: 'url'"
        checked = _checked_url(url, where)
        old = kind == "sse" or (not kind and urlsplit(checked).path.rstrip("/").endswith("/sse"))
        if old:
            raise UsageError(
                f"{self._at} speaks SSE, the transport that streamable HTTP replaced, and that is "
                "not supported: give its streamable HTTP address"
                + ("" if kind else ', or say "type": "http" if this is one')
            )
        if kind and kind not in _HTTP:
            raise UsageError(
                f"{self._at}: type {kind!r} is not supported: it takes 'http' or 'stdio'"
            )
        return checked

    def _cwd(self, entry: Entry) -> str:
        # Relative to the file, not to where the gateway was started, which can be anywhere.
        if entry.get("cwd") is None:
            return _workspace(self._file)
        folder = Path(self._text("cwd", entry["cwd"])).expanduser()
        return str(self._file.absolute().parent / folder)

    def _mapping(self, entry: Entry, key: str) -> dict[str, str]:
        return {
            name: self._text(f"{key}.{name}", value)
            for name, value in self._object(entry, key).items()
            if value is not None
        }

    def _object(self, entry: Entry, key: str) -> Entry:
        values: object = entry.get(key, {})
        if values is not None and not isinstance(values, dict):
            raise UsageError(f"{self._at}: {key!r} must be an object, in {{}}")
        return cast("Entry", values or {})

    def _text(self, key: str, value: object) -> str:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str):
            raise UsageError(f"{self._at}: {key!r} must be text, not {_shown(value)}")
        text = _VARIABLE.sub(lambda found: self._value(key, found[1]), value)
        if "\0" in text:
            raise UsageError(f"{self._at}: {key!r} has a NUL in it")
        return text

    def _value(self, key: str, variable: str) -> str:
        if variable in _PLACES:
            return _PLACES[variable](self._file)
        found = _NAME.fullmatch(variable)
        if found is None:
            raise UsageError(
                f"{self._at}: {key!r} has ${{{variable}}} in it: only environment variables, as "
                "${VAR}, ${VAR:-default} or ${env:VAR}, can be filled in here"
            )
        value = self._environ.get(found["name"])
        if found["default"] is not None:
            return value or found["default"]
        if value is None:
            raise UsageError(
                f"{self._at}: {key!r} needs the environment variable {found['name']}, which is "
                f"not set; set it, or give a default as ${{{found['name']}:-…}}"
            )
        return value

    def _refuse_loop(self, command: tuple[str, ...], cwd: str) -> None:
        if not is_gateway(command):
            return
        words = iter(command)
        for word in words:
            if word == "--":
                return
            option, equals, value = word.partition("=")
            if option != "--config":
                continue
            file = value if equals else next(words, "")
            if _same(Path(cwd) / file, self._file):
                raise UsageError(
                    f"{self._at} is the gateway itself with this same file: it would start itself "
                    "forever; give the gateway a file of its own, or disable that entry"
                )


def _workspace(file: Path) -> str:
    folder = file.absolute().parent
    return str(folder.parent if folder.name in _FOLDERS_OF_EDITORS else folder)


_PLACES: Mapping[str, Callable[[Path], str]] = {
    "workspaceFolder": _workspace,
    "userHome": lambda _: str(Path.home()),
    "pathSeparator": lambda _: os.sep,
    "/": lambda _: os.sep,
}


def _checked_url(url: str, where: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"{where}: {url} is not a URL: {error}") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise UsageError(f"{where}: {url} is not a URL that begins with http:// or https://")
    return url


def is_gateway(command: Sequence[str]) -> bool:
    """Whether a command runs `transom gateway`."""
    words = iter(command)
    return any(_is_transom(word) for word in words) and "gateway" in words


def _is_transom(word: str) -> bool:
    name = re.split(r"[/\\]", word)[-1].lower()
    return re.fullmatch(r"transom(\.exe)?([@=<>~!].*)?", name) is not None


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return {True: "true", False: "false", None: "null"}.get(cast("Any", value), repr(value))


# --- names of servers ------------------------------------------------------------------------

_LONGEST = 32
_LONGEST_MADE = 24  # of a name made here, because View ids and tool names begin with it
_DEFAULT = "server"

# Commands that run a server, rather than being one.
_RUNNER = re.compile(
    r"(python|pypy)[\d.]*w?|node|nodejs|npx|npm|pnpm|yarn|dlx|exec|bunx?|x|deno|tsx|ts-node|uvx?"
    r"|pipx|poetry|hatch|run|tool|docker|podman|sh|bash|zsh|cmd|env|sudo",
    re.IGNORECASE,
)
_SCRIPT = re.compile(r"(?P<path>.+)\.(py|js|mjs|cjs|ts|mts|rb|sh)(:[A-Za-z_][\w.]*)?", re.DOTALL)
_OPTION = re.compile(r"-|\w+=(?!=)")  # an option, or a variable that is set
_GENERIC = re.compile(r"index|main|__main__|server|app|cli|mcp|run|start", re.IGNORECASE)
_BUILT = re.compile(r"dist|build|out|src|lib|bin|\.+|~?", re.IGNORECASE)
_VERSION = re.compile(r"(?<=.)(@|[=~!<>]=).*", re.DOTALL)


def name_of_command(words: Sequence[str]) -> str:
    """A name from the script, module or package that a command runs.

    `python shop/orders.py` is `orders`, `npx -y @acme/maps@2 --stdio` is `maps`, and a script with
    a generic name takes that of its folder: `node maps/dist/index.js` is `maps`.
    """
    for word in words:
        if found := _SCRIPT.fullmatch(word):
            return _short_name(_of_script(found["path"]))
    if "-m" in words[:-1]:
        return _short_name(words[words.index("-m") + 1])
    parts = [_last_part(word) for word in words if not _OPTION.match(word)]
    specific = [part for part in parts if part and not _RUNNER.fullmatch(part)]
    word = (specific or parts or [""])[0]
    return _short_name(_VERSION.sub("", word.partition(":")[0]))


def name_of_url(url: str) -> str:
    """A name from the host of a URL."""
    try:
        return _short_name(urlsplit(url).hostname or "")
    except ValueError:
        return _DEFAULT


def fitted_name(text: str) -> str:
    """The text itself if it is a valid name, else a valid name made of it."""
    kept = re.sub(r"[^A-Za-z0-9_-]+", "-", text)
    kept = re.sub(r"_{2,}", "_", kept).lstrip("-_")
    return kept[:_LONGEST].rstrip("-_" if kept != text else "_") or _DEFAULT


def unique_names(names: Iterable[str]) -> list[str]:
    """The names, with a number added to each that was used before."""
    given = list(names)
    taken = set(given)
    seen: set[str] = set()
    unique: list[str] = []
    for name in given:
        chosen, number = name, 1
        while chosen in seen or (chosen != name and chosen in taken):
            number += 1
            chosen = f"{name[: _LONGEST - len(str(number)) - 1].rstrip('-_')}-{number}"
        seen.add(chosen)
        unique.append(chosen)
    return unique


def _of_script(path: str) -> str:
    *folders, stem = re.split(r"[/\\]", path)
    if not _GENERIC.fullmatch(stem):
        return stem
    return next((folder for folder in reversed(folders) if not _BUILT.fullmatch(folder)), stem)


def _last_part(word: str) -> str:
    return re.split(r"[/\\]", word.rstrip("/\\"))[-1]


def _short_name(word: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-")[:_LONGEST_MADE].strip("-") or _DEFAULT
