"""The commands of `transom` and their options, each declared once.

From these declarations command lines are read, mistakes are reported and help is printed.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from transom.cli.command import (
    COMMAND,
    TARGET_HELP,
    Command,
    add_header,
    add_opening_tool,
    count,
    did_you_mean,
    number,
    port_number,
)
from transom.cli.testing_options import eval_command, replay_command
from transom.errors import UsageError

if TYPE_CHECKING:
    from transom.drive.tools import Drive
    from transom.gateway.client_host import Approval
    from transom.host.tools.surface import Naming
    from transom.host.tools.tool_visibility import ViewCalls
    from transom.web.csp import CspMode

_CSP = ("compat", "strict")
_EPHEMERAL_HELP = (
    "Store nothing for Views: what they store in the browser is gone the next time, and none can "
    "be reopened in the next run. `transom storage` shows what is kept without this option."
)
_CSP_HELP = (
    "What a View's page may run. `compat`: inline scripts, eval, WebAssembly, `blob:` and `data:` "
    "URLs, as most hosts allow. `strict`: inline scripts only, the specification's default. "
    "Neither lets it reach an origin that it did not declare."
)


def _add_port(command: Command, **settings: Any) -> None:
    command.option(
        "--port",
        "NUMBER",
        "The port of the page that shows Views; their sandbox takes the next one. By default any "
        "free port. For a browser on another machine: `--port 8500` here, and there "
        "`ssh -L 8500:127.0.0.1:8500 -L 8501:127.0.0.1:8501 HOST`.",
        type=port_number,
        default=0,
        **settings,
    )


def _add_record(command: Command, more: str = "") -> None:
    command.option(
        "--record",
        "FILE",
        "Write every message to and from servers and Views to this file, a line of JSON each."
        f"{more}",
        type=Path,
    )


class Setting(NamedTuple):
    """`NAME=VALUE`, or `VALUE` for all names (`"*"`)."""

    name: str
    value: Any

    def __str__(self) -> str:
        value = f"{self.value:g}" if isinstance(self.value, float) else str(self.value)
        return value if self.name == "*" else f"{self.name}={value}"


def _add_by_tool(
    command: Command, name: str, words: Sequence[str], text: str, **settings: Any
) -> None:
    def read(value: str) -> Setting:
        tool, equals, word = value.rpartition("=")
        if word not in words or (equals and not tool):
            raise argparse.ArgumentTypeError(f"{value!r} is none of {', '.join(words)}")
        return Setting(tool or "*", word)

    metavar = f"[TOOL=]{'|'.join(words)}"
    command.option(name, metavar, text, action="append", type=read, default=[], **settings)


def _add_limits(command: Command, **settings: Any) -> None:
    seconds = number(0.001)

    def read_timeout(value: str) -> Setting:
        tool, _, given = value.rpartition("=")
        return Setting(tool or "*", seconds(given))

    def read_limit(value: str) -> Setting:
        from transom.host.limits import Limits  # noqa: PLC0415 - few command lines have one

        name, _, given = value.partition("=")
        kinds = {key: kind for key, kind in get_type_hints(Limits).items() if kind in (int, float)}
        if name not in kinds:
            hint = did_you_mean(name, list(kinds))
            raise argparse.ArgumentTypeError(f"there is no limit {name!r}{hint}")
        return Setting(name, count(given) if kinds[name] is int else seconds(given))

    command.option(
        "--call-timeout",
        "[TOOL=]SECONDS",
        "How long a call of a View's tool may take, or may make no progress. By default ten "
        "minutes. For all tools, or for one; repeatable.",
        action="append",
        type=read_timeout,
        default=[],
        **settings,
    )
    command.option(
        "--limit",
        "NAME=NUMBER",
        "Change another limit for Views, such as `max_tools=100`; repeatable. docs/security.md "
        "lists them.",
        action="append",
        type=read_limit,
        default=[],
        **settings,
    )


class GatewayOptions(argparse.Namespace):
    """`transom gateway --help` explains each."""

    command: list[str]
    url: str | None
    header: list[str]
    config: Path | None
    headless: bool
    no_open: bool
    surface: Naming
    approve: Approval
    drive: Drive
    fresh: bool
    view_calls: ViewCalls
    approve_view_calls: bool
    open: list[Setting]
    reuse: list[Setting]
    call_timeout: list[Setting]
    limit: list[Setting]
    csp: CspMode
    ephemeral: bool
    hung_after: float
    http: str | None
    token: str | None
    max_clients: int
    idle: float
    bus: str | None
    record: Path | None
    port: int
    verbose: bool


def _gateway() -> Command:
    command = Command(
        "gateway",
        "transom.cli.gateway",
        f"[OPTIONS] {COMMAND}",
        """\
Bring the MCP Apps of a server to a client that does not support them.

Put the gateway into your agent's configuration in place of the server:

    transom gateway -- python orders.py

Everything the server offers passes through unchanged. When the model calls a tool that has a View,
the View opens in your browser, and the tools inside it appear to the model as ordinary tools.
`transom gateway install --client …` writes the configuration for you.

Exit codes: 0 the client went away, 2 the server could not be started.""",
        GatewayOptions,
    )
    command.argument(
        "command", COMMAND, "The command of the MCP server, such as `python orders.py`.", nargs="*"
    )
    command.option("--url", "URL", "A server that speaks streamable HTTP.")
    command.option("--config", "FILE", "Several servers: a file with `mcpServers`.", type=Path)
    _add_record(command, " Not with --http.")
    _add_gateway_options(command)
    return command


_RUNNING = "How the gateway runs"


def _add_gateway_options(command: Command) -> None:
    """The options of `gateway` besides its servers; `gateway install` writes them into an entry."""
    panel: dict[str, Any] = {"panel": _RUNNING}
    add_header(command, **panel)
    command.flag(
        "--headless",
        "Show Views in a browser without a window, and offer the tool `screenshot_view`.",
        **panel,
    )
    command.flag(
        "--no-open",
        "Do not open a browser: print the address of the Views on standard error. Log in to "
        "servers that require it beforehand, with `transom login URL`.",
        **panel,
    )
    command.choice(
        "--surface",
        ("both", "flat", "indirect"),
        "How the model gets the tools of Views. `flat`: each as a tool of its own. `indirect`: "
        "through `list_view_tools` and `call_view_tool`. `both`: both ways; but only `indirect` "
        "for clients of MCP 2026-07-28, where a call must not change the list.",
        **panel,
    )
    command.choice(
        "--drive",
        ("when_no_tools", "always", "never"),
        "Which Views the model may use by their pages, with `look_at_view` and `act_on_view`. "
        "`when_no_tools`: those that have no tools of their own. `always`: all. `never`: none.",
        **panel,
    )
    command.choice(
        "--approve",
        ("client", "page", "elicit", "never"),
        "Who decides whether a View's tool that may change something runs. `client`: your agent, "
        "as for any tool. `page`: you, on the page. `elicit`: you, through the agent. `never`: "
        "nobody; only read-only tools run.",
        **panel,
    )
    command.choice(
        "--view-calls",
        ("linked", "spec", "declared"),
        "Which tools of its server a View may call. `linked`: those declared for Views, and those "
        "that open a View and declare nothing. `spec`: all that do not exclude Views, as in the "
        "specification. `declared`: only those declared for Views.",
        **panel,
    )
    command.flag(
        "--approve-view-calls",
        "Ask before a View calls a tool of its server that may change something: through the agent "
        "with `--approve elicit`, otherwise on the page.",
        **panel,
    )
    _add_by_tool(
        command,
        "--open",
        ("always", "ask", "never"),
        "Whether a call of a tool that has a View opens it. `always`: the default. `ask`: if the "
        "user agrees, asked through the agent with `--approve elicit`, otherwise on the page. "
        "`never`. For all tools, or for one; repeatable.",
        **panel,
    )
    _add_by_tool(
        command,
        "--reuse",
        ("never", "arguments", "always"),
        "Whether a call uses the tool's open View instead of opening another one. `never`. "
        "`arguments`: if that View has the same arguments. `always`. By default as the server "
        "declares. For all tools, or for one; repeatable.",
        **panel,
    )
    _add_limits(command, **panel)
    command.flag(
        "--fresh",
        "Ask every View for its tools each time the client lists tools, even if the View reported "
        "no change. Not needed for Views made with Transom.",
        **panel,
    )
    command.choice("--csp", _CSP, _CSP_HELP, **panel)
    command.flag("--ephemeral", _EPHEMERAL_HELP, **panel)
    command.option(
        "--hung-after",
        "SECONDS",
        "Restart a server that sends nothing for this long, not even the answer to a ping, after a "
        "call to it was cancelled. 0: never.",
        type=number(0),
        default=300,
        **panel,
    )
    command.option(
        "--http",
        "[HOST:]PORT",
        "Serve many clients over streamable HTTP at /mcp instead of one on standard input. Each "
        "has its own servers and Views. Without HOST, only this machine can connect; without a "
        "token, every program and user on it can use the servers.",
        **panel,
    )
    command.option(
        "--token",
        "TEXT",
        "The bearer token that HTTP clients must send; required if HOST is not a loopback address. "
        "Prefer the variable TRANSOM_TOKEN: other users can see a command line.",
        **panel,
    )
    command.option(
        "--max-clients",
        "NUMBER",
        "How many HTTP clients may connect at once.",
        type=count,
        default=100,
        **panel,
    )
    command.option(
        "--idle",
        "MINUTES",
        "Minutes before an idle HTTP session ends.",
        type=number(0.01),
        default=30,
        **panel,
    )
    command.option(
        "--bus",
        "URL",
        "With --http: the Redis through which replicas of this gateway share their clients, so "
        "that any of them answers any request. Prefer the variable TRANSOM_BUS if it has a "
        "password.",
        **panel,
    )
    _add_port(command, **panel)
    command.flag("--verbose -v", "Print more on standard error.", **panel)


def gateway_words(options: GatewayOptions) -> list[str]:
    """The options of a gateway as words of a command line, without those at their default."""
    return _install().words(options, _RUNNING)


class InstallOptions(GatewayOptions):
    """`transom gateway install --help` explains each."""

    client: str | None
    name: str | None
    project: bool
    list: bool = False
    no_try: bool
    write: bool
    force: bool


class UninstallOptions(argparse.Namespace):
    """`transom gateway uninstall --help` explains each."""

    client: str | None
    name: str | None
    project: bool
    force: bool


_CLIENTS = (
    *("claude-code", "claude-desktop", "cline", "codex", "cursor", "gemini", "goose"),
    *("lm-studio", "vscode", "windsurf", "zed"),
)


def _add_client(command: Command) -> None:
    text = f"The MCP client: {', '.join(_CLIENTS)}."
    command.option("--client", "CLIENT", text, choices=_CLIENTS)
    command.flag("--project", "The configuration of this folder instead of your own.")


def _install() -> Command:
    command = Command(
        "gateway install",
        "transom.cli.install",
        f"--client CLIENT [OPTIONS] {COMMAND}",
        """\
Print the entry that runs the gateway in a client's configuration, or write it there.

    transom gateway install --client cursor --write -- python orders.py

First the server is started once, as the client will start it. The entry is printed on standard
output; the file it belongs in, and what to do next, on standard error. With --write it is merged
into that file, and nothing else in the file changes.

Exit codes: 0 printed or written, 1 the server does not start, or the file could not be changed
(then the entry is printed), 2 the command line is not valid.""",
        InstallOptions,
    )
    command.argument("command", COMMAND, "The server's command line.", nargs="*")
    command.option("--url", "URL", "A server that speaks streamable HTTP.")
    command.option("--config", "FILE", "Several servers: a file with `mcpServers`.", type=Path)
    _add_client(command)
    command.option("--name", "NAME", "The name of the entry; keep it to 17 characters.")
    command.flag("--list", "List the clients on this machine and their servers.")
    command.flag("--no-try", "Do not start the server.")
    command.flag("--write", "Write the entry to the file; a copy of the file is kept.")
    command.flag("--force", "Replace a different entry of the same name.")
    _add_gateway_options(command)
    return command


def _uninstall() -> Command:
    command = Command(
        "gateway uninstall",
        "transom.cli.install",
        "--client CLIENT [NAME]",
        """\
Remove the gateway from a client's configuration; a copy of the file is kept.

`transom gateway install --list` shows the entries.

Exit codes: 0 removed, 1 there is no such entry, or the file could not be changed, 2 the command
line is not valid.""",
        UninstallOptions,
    )
    command.argument(
        "name", "NAME", "The entry; not needed if only one runs the gateway.", nargs="?"
    )
    _add_client(command)
    command.flag("--force", "Remove an entry that does not run the gateway.")
    return command


class OpenOptions(argparse.Namespace):
    """`transom open --help` explains each."""

    target: str
    tool: str | None
    arguments: str
    steps: list[tuple[str, str]]
    header: list[str]
    watch: bool
    record: Path | None
    headless: bool
    screenshot: Path | None
    wait: float | str | None
    port: int
    csp: CspMode
    ephemeral: bool
    timeout: float | None
    json: bool


def _add_step(command: Command, name: str, metavar: str | None, text: str) -> None:
    """An option that is one of the steps that are done with the View, in the order given."""

    def read(value: str) -> tuple[str, str]:
        return name, value

    how: dict[str, Any] = {"action": "append", "type": read}
    if metavar is None:
        how = {"action": "append_const", "const": (name, "")}
    command.option(f"--{name}", metavar, text, dest="steps", default=[], **how)


def _seconds_or_selector(text: str) -> float | str:
    return number(0)(text) if re.fullmatch(r"[\d.]+", text) else text


def _open() -> Command:
    command = Command(
        "open",
        "transom.cli.open",
        "[OPTIONS] TARGET [TOOL] [ARGS]",
        """\
Open the View of a server's tool, list the View's own tools, and call them.

The View opens in your browser and stays until you press Ctrl-C. With --headless it opens in a
browser without a window, and the command ends after the calls.

Exit codes: 0 no call failed, 1 a call failed, 2 the server, the browser or the View could not be
started.""",
        OpenOptions,
    )
    add_opening_tool(command)
    command.argument(
        "arguments", "ARGS", "Its arguments, as a JSON object.", nargs="?", default="{}"
    )
    _add_step(
        command,
        "call",
        "VIEW_TOOL=JSON",
        "Call a tool of the View. This and the next three are repeatable, and done in the order "
        "given.",
    )
    looks = "Print what is on the View's page, as a model would read it."
    _add_step(command, "look", None, looks)
    _add_step(command, "look-for", "TEXT", "The same for what has this text, anywhere on the page.")
    part = "The same for the part with this reference, such as t2."
    _add_step(command, "look-under", "REF", part)
    acts = (
        "Use what a look has shown, such as 'b3 click' or 'f2 type hello', and print the changes."
    )
    _add_step(command, "act", "'REF ACTION [VALUE]'", acts)
    add_header(command)
    command.flag(
        "--watch",
        "Restart the server and reopen the View whenever a file of the server or its pages "
        "changes, in the folder of the TARGET file or else in the current one.",
    )
    command.flag("--headless", "Use a browser without a window, and end after the calls.")
    picture = "Save a PNG of the View, once it has stopped changing (with --headless)."
    command.option("--screenshot", "FILE", picture, type=Path)
    command.option(
        "--wait",
        "SECONDS|SELECTOR",
        "Before that, wait for so long, or until the View shows what this CSS selector finds "
        "(with --headless).",
        type=_seconds_or_selector,
    )
    _add_record(command)
    _add_port(command)
    command.choice("--csp", _CSP, _CSP_HELP)
    command.flag("--ephemeral", f"{_EPHEMERAL_HELP} With --headless it is always so.")
    command.option(
        "--timeout",
        "SECONDS",
        "How long each step may take, and with steps how long the page may take to open; by "
        "default 30. Without a window, a page that failed is waited for only with this option.",
        type=number(0.1),
    )
    command.flag("--json", "Print each event as one line of JSON.")
    return command


class DevOptions(argparse.Namespace):
    """`transom dev --help` explains each."""

    target: str
    header: list[str]
    no_open: bool
    no_check: bool
    port: int
    csp: CspMode
    ephemeral: bool
    record: Path | None
    timeout: float


def _dev() -> Command:
    command = Command(
        "dev",
        "transom.cli.dev",
        "[OPTIONS] TARGET",
        """\
Develop a server: see its tools, its Views and what goes over the wire, while you edit it.

One page in your browser has everything: the server's tools with a form for each, the View as a
host shows it, the View's own tools, all messages, and what is wrong. Whenever you save a file of
the server or its pages, in the folder of the TARGET file or else in the current one, the server is
started again and the last View is opened again. It stays until you press Ctrl-C.

Exit codes: 0 you ended it, 2 the command line is not valid, or the page cannot be served.""",
        DevOptions,
    )
    command.argument("target", "TARGET", TARGET_HELP)
    add_header(command)
    command.flag("--no-open", "Do not open a browser: print the address of the page.")
    command.flag("--no-check", "Do not check the contract of MCP Apps after each start.")
    _add_port(command)
    command.choice("--csp", _CSP, _CSP_HELP)
    command.flag("--ephemeral", _EPHEMERAL_HELP)
    _add_record(command)
    command.option(
        "--timeout",
        "SECONDS",
        "For the server's start, the View's opening and each call.",
        type=number(0.1),
        default=30.0,
    )
    return command


class JsOptions(argparse.Namespace):
    """`transom js --help` explains each."""

    out: Path


def _js() -> Command:
    command = Command(
        "js",
        "transom.cli.files",
        "--out DIR",
        """\
Copy Transom's JavaScript files into a project that builds its View with a bundler, such as Vite.

These are `transom.js`, `webmcp.js`, `react.js`, their TypeScript declarations, and `zod.js`, which
`transom.js` imports when it is needed. Run it again after an update of Transom. A page without a
bundler needs no copies: the server puts `transom.js` into it.

Exit codes: 0 copied, 1 there is another file of one of these names, or the folder cannot be
written to.""",
        JsOptions,
    )
    command.option(
        "--out",
        "DIR",
        "The folder, such as `src/transom`. It is created if it does not exist.",
        type=Path,
        required=True,
    )
    return command


class DemoOptions(argparse.Namespace):
    """`transom demo --help` explains each."""

    browser: bool
    examples: bool


def _demo() -> Command:
    command = Command(
        "demo",
        "transom.cli.files",
        "",
        """\
Show Transom at work: an agent that does not support MCP Apps plays music in one.

The gateway runs in front of two example servers. The agent is a plain MCP client with a script in
place of a model, and the Views run in Chromium without a window (`pip install
"transom[headless]"`). Every step is checked. It takes about fifteen seconds and saves a picture in
the current folder.

Exit codes: 0 every step succeeded, 1 a step failed.""",
        DemoOptions,
    )
    command.flag(
        "--browser", "Show the Views in your own browser, slowly enough to follow; no picture."
    )
    command.flag("--examples", "Only print the folder of the examples.")
    return command


class LoginCommandOptions(argparse.Namespace):
    """`transom login --help` explains each."""

    url: str | None
    list: bool = False
    no_open: bool
    client_id: str | None
    port: int
    scope: str | None


class LogoutOptions(argparse.Namespace):
    """`transom logout --help` explains each."""

    url: str


def _login() -> Command:
    command = Command(
        "login",
        "transom.cli.login",
        "[OPTIONS] [URL]",
        """\
Log in to an MCP server that requires it, in your browser.

The login is stored in a file that only you can read, or in the system's keyring if the Python
package `keyring` is installed. From then on, `transom gateway`, `open`, `check` and programs with a
`Host` use it and refresh it. It is sent to that server only.

Exit codes: 0 logged in, or no login is needed, 2 the login failed.""",
        LoginCommandOptions,
    )
    command.argument("url", "URL", "The server, as you give it to the other commands.", nargs="?")
    command.flag("--list", "List the stored logins.")
    command.flag("--no-open", "Do not open a browser: print the address of the login page.")
    command.option(
        "--client-id",
        "ID",
        "The client id, if the issuer has no automatic registration: an id that you got from the "
        "issuer, or the https URL of a client-id metadata document. Put a secret that belongs to "
        "the id into TRANSOM_CLIENT_SECRET.",
    )
    command.option(
        "--port",
        "NUMBER",
        "The port for the redirect back to this machine (`/callback`), if the issuer must know it "
        "in advance; by default any free port.",
        type=count,
        default=0,
    )
    command.option("--scope", "TEXT", "The scopes to request; by default what the server needs.")
    return command


def _logout() -> Command:
    command = Command(
        "logout",
        "transom.cli.login",
        "URL",
        """\
Delete the login at an MCP server, and revoke it at its issuer.

Exit codes: 0 deleted, 2 there was none.""",
        LogoutOptions,
    )
    command.argument("url", "URL", "The server, as `transom login --list` shows it.")
    return command


class StorageOptions(argparse.Namespace):
    """`transom storage --help` explains each."""


class StorageClearOptions(argparse.Namespace):
    """`transom storage clear --help` explains each."""

    what: str | None
    all: bool


def _storage() -> Command:
    return Command(
        "storage",
        "transom.cli.storage",
        "",
        """\
Show what Views may have stored: for which server and resource, where, and when it was last used.

A View finds what earlier Views of the same server and resource stored in your browser. Views of
other servers do not. `transom storage clear` deletes it; `--ephemeral` keeps nothing.

Exit codes: 0 shown, 2 it cannot be read.""",
        StorageOptions,
    )


def _storage_clear() -> Command:
    command = Command(
        "storage clear",
        "transom.cli.storage",
        "[WHAT] [--all]",
        """\
Delete what Views have stored, and forget which ones were open.

Views get new origins from now on and cannot reach what is stored under the old ones. The browser
deletes that the next time it shows Views of the same program. Views that are open now keep what
they have until they are closed.

Exit codes: 0 cleared, 2 there is no such storage.""",
        StorageClearOptions,
    )
    command.argument("what", "WHAT", "A server's name, or an origin, as listed.", nargs="?")
    command.flag("--all", "Clear everything.")
    return command


def _of_author(name: str) -> Command:
    """A command that is declared in a module of its own: nobody waits for those."""
    return import_module("transom.cli.author_options").COMMANDS[name]()


def _of_conformance(name: str) -> Command:
    return import_module("transom.cli.conform_options").COMMANDS[name]()


COMMANDS: Mapping[str, Callable[[], Command]] = {
    "gateway": _gateway,
    "gateway install": _install,
    "gateway uninstall": _uninstall,
    "open": _open,
    "dev": _dev,
    "check": partial(_of_author, "check"),
    "doctor": partial(_of_author, "doctor"),
    "new": partial(_of_author, "new"),
    "replay": replay_command,
    "eval": eval_command,
    "conform host": partial(_of_conformance, "conform host"),
    "conform view": partial(_of_conformance, "conform view"),
    "login": _login,
    "logout": _logout,
    "storage": _storage,
    "storage clear": _storage_clear,
    "js": _js,
    "demo": _demo,
}


def find_command(words: Sequence[str]) -> tuple[Command, list[str]]:
    """The command that these words begin with, and the rest of them."""
    for length in (2, 1):
        if make := COMMANDS.get(" ".join(words[:length])):
            return make(), list(words[length:])
    hint = did_you_mean(words[0], list(COMMANDS))
    raise UsageError(f"there is no command {words[0]!r}{hint}")
