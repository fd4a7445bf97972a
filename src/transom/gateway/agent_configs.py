"""The MCP clients that `transom gateway install` knows: their files, and what an entry looks like.

Checked against the clients' own documentation in November 2026.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from transom.errors import UsageError
from transom.gateway.jsonc import rendered

__all__ = ["CLIENTS", "AgentConfig", "Machine", "Scope", "client_named"]

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
            Scope.USER: "Start Claude Code anew; /mcp shows the server.",
            Scope.PROJECT: "Start Claude Code anew in this folder and approve the server.",
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
            Scope.USER: "Start Codex anew; /mcp shows the server.",
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
            Scope, "Start Gemini CLI anew in a folder that it trusts; /mcp shows the server."
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
    """The client of that name.

    Raises:
        UsageError: there is none; the text names those that there are.
    """
    if name not in CLIENTS:
        raise UsageError(f"no client is called {name!r}: it takes {', '.join(CLIENTS)}")
    return CLIENTS[name]
