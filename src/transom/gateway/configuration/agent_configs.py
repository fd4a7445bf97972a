"""Where MCP clients store their list of servers, and the format of an entry in each.

The files, and what an entry looks like there, were checked against the clients' own documentation
in November 2026.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from transom.errors import UsageError
from transom.gateway.configuration.jsonc import rendered

Entry = dict[str, Any]


class Scope(StrEnum):
    """Whose configuration it is."""

    USER = "user"
    PROJECT = "project"


class Machine(msgspec.Struct, frozen=True):
    """What decides where a client stores its files."""

    home: Path
    folder: Path
    environ: Mapping[str, str]
    platform: str  # a value of `sys.platform`

    @classmethod
    def here(cls) -> Machine:
        """This machine, and the current folder."""
        return cls(Path.home(), Path.cwd(), os.environ, sys.platform)

    def named(self, variable: str) -> Path | None:
        """The path that a variable holds."""
        value = self.environ.get(variable)
        return Path(value).expanduser() if value else None

    def under(self, variable: str, *otherwise: str) -> Path:
        """The folder that a variable names, else one in the user's home."""
        return self.named(variable) or self.home.joinpath(*otherwise)

    def settings(self) -> Path:
        """Where desktop applications of this system store their settings."""
        if self.platform == "win32":
            return self.under("APPDATA", "AppData", "Roaming")
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.under("XDG_CONFIG_HOME", ".config")


class Launch(msgspec.Struct, frozen=True):
    """A server that a client starts: its name, its command, and the variables it needs."""

    name: str
    command: str
    args: list[str]
    wanted: Sequence[str] = ()


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Where one MCP client stores its list of servers, and the format of an entry."""

    name: str
    title: str
    section: str
    user_file: Callable[[Machine], Path]
    project_file: str | None = None
    shape: Callable[[Launch], Entry]
    by_url: Callable[[str, str, Mapping[str, str]], Entry] | None
    """Makes the entry of a server by URL, from name, URL and headers; None if not supported."""
    written: str = "json"
    expands: str = ""  # the syntax of variables that it expands before it starts a server
    afterwards: Mapping[Scope, str] = msgspec.field(default_factory=dict[Scope, str])
    by_command: Callable[[str, Entry, Scope], str] | None = None

    def file(self, scope: Scope, machine: Machine) -> Path:
        """The configuration file."""
        if scope is Scope.USER:
            return self.user_file(machine)
        if self.project_file is None:
            raise UsageError(f"{self.title} has no configuration of its own for a project")
        return machine.folder / self.project_file


def _plain(launch: Launch) -> Entry:
    return {"command": launch.command, "args": launch.args}


def _typed(launch: Launch) -> Entry:
    return {"type": "stdio", **_plain(launch)}


# Codex passes servers only a few variables. Without these no browser can be opened.
_FOR_A_BROWSER = (
    "BROWSER",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_CURRENT_DESKTOP",
    "XDG_RUNTIME_DIR",
)


def _codex(launch: Launch) -> Entry:
    names = [*_FOR_A_BROWSER, *(name for name in launch.wanted if name not in _FOR_A_BROWSER)]
    return {**_plain(launch), "env_vars": names}


def _gemini(launch: Launch) -> Entry:
    # Gemini CLI does not pass variables that look like secrets unless the entry names them. Without
    # the `:-`, an unset one would be passed as the literal text.
    env = {name: f"${{{name}:-}}" for name in launch.wanted}
    return {**_plain(launch), **({"env": env} if env else {})}


def _zed(launch: Launch) -> Entry:
    return {**_plain(launch), "env": {}}


def _cline(launch: Launch) -> Entry:
    return {**_typed(launch), "disabled": False}


def _goose(name: str, **more: Any) -> Entry:
    about = "Through transom gateway"
    return {"enabled": True, "name": name, "description": about, **more, "timeout": 300}


def _goose_launch(launch: Launch) -> Entry:
    return _goose(launch.name, type="stdio", cmd=launch.command, args=launch.args, envs={})


def _goose_url(name: str, url: str, headers: Mapping[str, str]) -> Entry:
    return _goose(name, type="streamable_http", uri=url, headers=dict(headers))


def _url(
    key: str = "url", headers_key: str = "headers", **more: str
) -> Callable[[str, str, Mapping[str, str]], Entry]:
    def entry(_: str, url: str, headers: Mapping[str, str]) -> Entry:
        return {**more, key: url, **({headers_key: dict(headers)} if headers else {})}

    return entry


def _zed_file(machine: Machine) -> Path:
    if machine.platform == "win32":
        return machine.settings() / "Zed" / "settings.json"
    if machine.platform == "darwin":
        return machine.home / ".config" / "zed" / "settings.json"
    return machine.settings() / "zed" / "settings.json"


def _goose_file(machine: Machine) -> Path:
    if machine.platform == "win32":
        return machine.settings() / "Block" / "goose" / "config" / "config.yaml"
    return machine.under("XDG_CONFIG_HOME", ".config") / "goose" / "config.yaml"


def _cline_file(machine: Machine) -> Path:
    # The command line and the editors share it.
    folder = machine.named("CLINE_DATA_DIR") or machine.under("CLINE_DIR", ".cline") / "data"
    file = folder / "settings" / "cline_mcp_settings.json"
    return machine.named("CLINE_MCP_SETTINGS_PATH") or file


def _lm_studio_file(machine: Machine) -> Path:
    try:  # where LM Studio says that its folder is
        text = (machine.home / ".lmstudio-home-pointer").read_text("utf-8")[:4096].strip()
    except (OSError, ValueError):
        text = ""
    told = Path(text)
    folder = told if told.is_absolute() and told.is_dir() else machine.home / ".lmstudio"
    return folder / "mcp.json"


def _claude_command(name: str, entry: Entry, scope: Scope) -> str:
    words = ["claude", "mcp", "add-json", "--scope", scope.value, name, rendered(entry, None)]
    return shlex.join(words)


def _vscode_command(name: str, entry: Entry, scope: Scope) -> str:
    if scope is Scope.PROJECT:
        return ""
    return shlex.join(["code", "--add-mcp", rendered({"name": name, **entry}, None)])


_CLIENTS = (
    AgentConfig(
        name="claude-code",
        title="Claude Code",
        section="mcpServers",
        user_file=lambda machine: machine.under("CLAUDE_CONFIG_DIR") / ".claude.json",
        project_file=".mcp.json",
        shape=_typed,
        by_url=_url(type="http"),
        expands="${",
        afterwards={
            Scope.USER: "Restart Claude Code; /mcp shows the server.",
            Scope.PROJECT: "Restart Claude Code in this folder and approve the server.",
        },
        by_command=_claude_command,
    ),
    AgentConfig(
        name="claude-desktop",
        title="Claude Desktop",
        section="mcpServers",
        user_file=lambda machine: machine.settings() / "Claude" / "claude_desktop_config.json",
        shape=_plain,
        by_url=None,
        afterwards={Scope.USER: "Quit Claude Desktop, also from its tray or menu, and start it."},
    ),
    AgentConfig(
        name="cline",
        title="Cline",
        section="mcpServers",
        user_file=_cline_file,
        shape=_cline,
        by_url=_url(type="streamableHttp"),
        afterwards={Scope.USER: "Cline takes it up by itself; see its MCP servers."},
    ),
    AgentConfig(
        name="codex",
        title="Codex",
        section="mcp_servers",
        user_file=lambda machine: machine.under("CODEX_HOME", ".codex") / "config.toml",
        project_file=".codex/config.toml",
        shape=_codex,
        by_url=_url(headers_key="http_headers"),
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
        by_url=_url(),
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
        by_url=_url("httpUrl"),
        expands="$",
        afterwards=dict.fromkeys(
            Scope, "Restart Gemini CLI in a folder that it trusts; /mcp shows the server."
        ),
    ),
    AgentConfig(
        name="goose",
        title="goose",
        section="extensions",
        user_file=_goose_file,
        shape=_goose_launch,
        by_url=_goose_url,
        written="yaml",
        afterwards={Scope.USER: "Start a new goose session."},
    ),
    AgentConfig(
        name="lm-studio",
        title="LM Studio",
        section="mcpServers",
        user_file=_lm_studio_file,
        shape=_plain,
        by_url=_url(),
        afterwards={Scope.USER: "Turn the server on in LM Studio, in the Program tab."},
    ),
    AgentConfig(
        name="vscode",
        title="VS Code",
        section="servers",
        user_file=lambda machine: machine.settings() / "Code" / "User" / "mcp.json",
        project_file=".vscode/mcp.json",
        shape=_typed,
        by_url=_url(type="http"),
        expands="${",
        afterwards=dict.fromkeys(Scope, "Run 'MCP: List Servers' in VS Code to start the server."),
        by_command=_vscode_command,
    ),
    AgentConfig(
        name="windsurf",
        title="Windsurf",
        section="mcpServers",
        user_file=lambda machine: machine.home / ".codeium" / "windsurf" / "mcp_config.json",
        shape=_plain,
        by_url=_url("serverUrl"),
        expands="${env:",
        afterwards={Scope.USER: "Press refresh among the MCP servers in Windsurf's Cascade panel."},
    ),
    AgentConfig(
        name="zed",
        title="Zed",
        section="context_servers",
        user_file=_zed_file,
        project_file=".zed/settings.json",
        shape=_zed,
        by_url=_url(),
        afterwards=dict.fromkeys(Scope, "Zed takes it up by itself; see its Agent settings."),
    ),
)
CLIENTS: Mapping[str, AgentConfig] = {client.name: client for client in _CLIENTS}


def client_named(name: str) -> AgentConfig:
    """The client of that name."""
    if name not in CLIENTS:
        raise UsageError(f"no client is called {name!r}: it takes {', '.join(CLIENTS)}")
    return CLIENTS[name]
