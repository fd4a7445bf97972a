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
    HEADER,
    TARGET,
    TOOL,
    Command,
    CommandOptions,
    argument,
    choice,
    count,
    did_you_mean,
    flag,
    number,
    option,
    port_number,
    repeatable,
    several,
)
from transom.errors import UsageError

if TYPE_CHECKING:
    from transom.drive.tools import Drive
    from transom.gateway.client_host import Approval
    from transom.host.tools.surface import Naming
    from transom.host.tools.tool_visibility import ViewCalls
    from transom.web.csp import CspMode

_URL: Any = option("URL", "A server that speaks streamable HTTP.")
_CONFIG: Any = option("FILE", "Several servers: a file with `mcpServers`.", type=Path)
_CSP: Any = choice(
    ("compat", "strict"),
    "What a View's page may run. `compat`: inline scripts, eval, WebAssembly, `blob:` and `data:` "
    "URLs, as most hosts allow. `strict`: inline scripts only, the specification's default. "
    "Neither lets it reach an origin that it did not declare.",
)
_EPHEMERAL_HELP = (
    "Store nothing for Views: what they store in the browser is gone the next time, and none can "
    "be reopened in the next run. `transom storage` shows what is kept without this option."
)
_PORT: Any = option(
    "NUMBER",
    "The port of the page that shows Views; their sandbox takes the next one. By default any free "
    "port. For a browser on another machine: `--port 8500` here, and there "
    "`ssh -L 8500:127.0.0.1:8500 -L 8501:127.0.0.1:8501 HOST`.",
    type=port_number,
    default=0,
)
_RECORD_HELP = (
    "Write every message to and from servers and Views to this file, a line of JSON each."
)


class Setting(NamedTuple):
    """`NAME=VALUE`, or `VALUE` for all names (`"*"`)."""

    name: str
    value: Any

    def __str__(self) -> str:
        value = f"{self.value:g}" if isinstance(self.value, float) else str(self.value)
        return value if self.name == "*" else f"{self.name}={value}"


def _by_tool(words: Sequence[str], text: str) -> Any:
    def read(value: str) -> Setting:
        tool, equals, word = value.rpartition("=")
        if word not in words or (equals and not tool):
            raise argparse.ArgumentTypeError(f"{value!r} is none of {', '.join(words)}")
        return Setting(tool or "*", word)

    return repeatable(f"[TOOL=]{'|'.join(words)}", text, type=read)


_seconds = number(0.001)


def _read_timeout(value: str) -> Setting:
    tool, _, given = value.rpartition("=")
    return Setting(tool or "*", _seconds(given))


def _read_limit(value: str) -> Setting:
    from transom.host.limits import Limits  # noqa: PLC0415 - few command lines have one

    name, _, given = value.partition("=")
    kinds = {key: kind for key, kind in get_type_hints(Limits).items() if kind in (int, float)}
    if name not in kinds:
        hint = did_you_mean(name, list(kinds))
        raise argparse.ArgumentTypeError(f"there is no limit {name!r}{hint}")
    return Setting(name, count(given) if kinds[name] is int else _seconds(given))


class RunningOptions(CommandOptions):
    """How a gateway runs; `gateway install` writes these into an entry."""

    panel = "How the gateway runs"

    header: list[str] = HEADER
    headless: bool = flag(
        "Show Views in a browser without a window, and offer the tool `screenshot_view`."
    )
    no_open: bool = flag(
        "Do not open a browser: print the address of the Views on standard error. Log in to "
        "servers that require it beforehand, with `transom login URL`."
    )
    surface: Naming = choice(
        ("both", "flat", "indirect"),
        "How the model gets the tools of Views. `flat`: each as a tool of its own. `indirect`: "
        "through `list_view_tools` and `call_view_tool`. `both`: both ways; but only `indirect` "
        "for clients of MCP 2026-07-28, where a call must not change the list.",
    )
    drive: Drive = choice(
        ("when_no_tools", "always", "never"),
        "Which Views the model may use by their pages, with `look_at_view` and `act_on_view`. "
        "`when_no_tools`: those that have no tools of their own. `always`: all. `never`: none.",
    )
    approve: Approval = choice(
        ("client", "page", "elicit", "never"),
        "Who decides whether a View's tool that may change something runs. `client`: your agent, "
        "as for any tool. `page`: you, on the page. `elicit`: you, through the agent. `never`: "
        "nobody; only read-only tools run.",
    )
    view_calls: ViewCalls = choice(
        ("linked", "spec", "declared"),
        "Which tools of its server a View may call. `linked`: those declared for Views, and those "
        "that open a View and declare nothing. `spec`: all that do not exclude Views, as in the "
        "specification. `declared`: only those declared for Views.",
    )
    approve_view_calls: bool = flag(
        "Ask before a View calls a tool of its server that may change something: through the agent "
        "with `--approve elicit`, otherwise on the page."
    )
    open: list[Setting] = _by_tool(
        ("always", "ask", "never"),
        "Whether a call of a tool that has a View opens it. `always`: the default. `ask`: if the "
        "user agrees, asked through the agent with `--approve elicit`, otherwise on the page. "
        "`never`. For all tools, or for one; repeatable.",
    )
    reuse: list[Setting] = _by_tool(
        ("never", "arguments", "always"),
        "Whether a call uses the tool's open View instead of opening another one. `never`. "
        "`arguments`: if that View has the same arguments. `always`. By default as the server "
        "declares. For all tools, or for one; repeatable.",
    )
    call_timeout: list[Setting] = repeatable(
        "[TOOL=]SECONDS",
        "How long a call of a View's tool may take, or may make no progress. By default ten "
        "minutes. For all tools, or for one; repeatable.",
        type=_read_timeout,
    )
    limit: list[Setting] = repeatable(
        "NAME=NUMBER",
        "Change another limit for Views, such as `max_tools=100`; repeatable. docs/security.md "
        "lists them.",
        type=_read_limit,
    )
    fresh: bool = flag(
        "Ask every View for its tools each time the client lists tools, even if the View reported "
        "no change. Not needed for Views made with Transom."
    )
    csp: CspMode = _CSP
    ephemeral: bool = flag(_EPHEMERAL_HELP)
    hung_after: float = option(
        "SECONDS",
        "Restart a server that sends nothing for this long, not even the answer to a ping, after a "
        "call to it was cancelled. 0: never.",
        type=number(0),
        default=300,
    )
    http: str | None = option(
        "[HOST:]PORT",
        "Serve many clients over streamable HTTP at /mcp instead of one on standard input. Each "
        "has its own servers and Views. Without HOST, only this machine can connect; without a "
        "token, every program and user on it can use the servers.",
    )
    token: str | None = option(
        "TEXT",
        "The bearer token that HTTP clients must send; required if HOST is not a loopback address. "
        "Prefer the variable TRANSOM_TOKEN: other users can see a command line.",
    )
    max_clients: int = option(
        "NUMBER", "How many HTTP clients may connect at once.", type=count, default=100
    )
    idle: float = option(
        "MINUTES", "Minutes before an idle HTTP session ends.", type=number(0.01), default=30
    )
    bus: str | None = option(
        "URL",
        "With --http: the Redis through which replicas of this gateway share their clients, so "
        "that any of them answers any request. Prefer the variable TRANSOM_BUS if it has a "
        "password.",
    )
    port: int = _PORT
    verbose: bool = flag("Print more on standard error.", names="--verbose -v")


class GatewayOptions(RunningOptions):
    """Bring the MCP Apps of a server to a client that does not support them.

    Put the gateway into your agent's configuration in place of the server:

        transom gateway -- python orders.py

    Everything the server offers passes through unchanged. When the model calls a tool that has a
    View, the View opens in your browser, and the tools inside it appear to the model as ordinary
    tools. `transom gateway install --client …` writes the configuration for you.

    Exit codes: 0 the client went away, 2 the server could not be started.
    """

    module = "transom.cli.gateway"
    usage = f"[OPTIONS] {COMMAND}"

    command: list[str] = argument(
        COMMAND, "The command of the MCP server, such as `python orders.py`.", nargs="*"
    )
    url: str | None = _URL
    config: Path | None = _CONFIG
    record: Path | None = option("FILE", f"{_RECORD_HELP} Not with --http.", type=Path)


_CLIENTS = (
    *("claude-code", "claude-desktop", "cline", "codex", "cursor", "gemini", "goose"),
    *("lm-studio", "vscode", "windsurf", "zed"),
)
_CLIENT: Any = option("CLIENT", f"The MCP client: {', '.join(_CLIENTS)}.", choices=_CLIENTS)
_PROJECT: Any = flag("The configuration of this folder instead of your own.")


class InstallOptions(RunningOptions):
    """Print the entry that runs the gateway in a client's configuration, or write it there.

        transom gateway install --client cursor --write -- python orders.py

    First the server is started once, as the client will start it. The entry is printed on standard
    output; the file it belongs in, and what to do next, on standard error. With --write it is
    merged into that file, and nothing else in the file changes.

    Exit codes: 0 printed or written, 1 the server does not start, or the file could not be changed
    (then the entry is printed), 2 the command line is not valid.
    """

    module = "transom.cli.install"
    usage = f"--client CLIENT [OPTIONS] {COMMAND}"

    command: list[str] = argument(COMMAND, "The server's command line.", nargs="*")
    url: str | None = _URL
    config: Path | None = _CONFIG
    client: str | None = _CLIENT
    project: bool = _PROJECT
    name: str | None = option("NAME", "The name of the entry; keep it to 17 characters.")
    list: bool = flag("List the clients on this machine and their servers.")
    no_try: bool = flag("Do not start the server.")
    write: bool = flag("Write the entry to the file; a copy of the file is kept.")
    force: bool = flag("Replace a different entry of the same name.")


class UninstallOptions(CommandOptions):
    """Remove the gateway from a client's configuration; a copy of the file is kept.

    `transom gateway install --list` shows the entries.

    Exit codes: 0 removed, 1 there is no such entry, or the file could not be changed, 2 the command
    line is not valid.
    """

    module = "transom.cli.install"
    usage = "--client CLIENT [NAME]"

    name: str | None = argument(
        "NAME", "The entry; not needed if only one runs the gateway.", nargs="?"
    )
    client: str | None = _CLIENT
    project: bool = _PROJECT
    force: bool = flag("Remove an entry that does not run the gateway.")


def gateway_words(options: RunningOptions) -> list[str]:
    """The options of a gateway as words of a command line, without those at their default."""
    return COMMANDS["gateway"]().words(options, RunningOptions.panel)


def _step(name: str, metavar: str | None, text: str) -> Any:
    """An option that is one of the steps that are done with the View, in the order given."""

    def read(value: str) -> tuple[str, str]:
        return name, value

    how: dict[str, Any] = {"action": "append", "type": read}
    if metavar is None:
        how = {"action": "append_const", "const": (name, "")}
    return option(metavar, text, names=f"--{name}", default=[], **how)


def _seconds_or_selector(text: str) -> float | str:
    return number(0)(text) if re.fullmatch(r"[\d.]+", text) else text


class OpenOptions(CommandOptions):
    """Open the View of a server's tool, list the View's own tools, and call them.

    The View opens in your browser and stays until you press Ctrl-C. With --headless it opens in a
    browser without a window, and the command ends after the calls.

    Exit codes: 0 no call failed, 1 a call failed, 2 the server, the browser or the View could not
    be started.
    """

    module = "transom.cli.open"
    usage = "[OPTIONS] TARGET [TOOL] [ARGS]"

    target: str = TARGET
    tool: str | None = TOOL
    arguments: str = argument("ARGS", "Its arguments, as a JSON object.", nargs="?", default="{}")
    steps: list[tuple[str, str]] = several(
        _step(
            "call",
            "VIEW_TOOL=JSON",
            "Call a tool of the View. This and the next three are repeatable, and done in the "
            "order given.",
        ),
        _step("look", None, "Print what is on the View's page, as a model would read it."),
        _step("look-for", "TEXT", "The same for what has this text, anywhere on the page."),
        _step("look-under", "REF", "The same for the part with this reference, such as t2."),
        _step(
            "act",
            "'REF ACTION [VALUE]'",
            "Use what a look has shown, such as 'b3 click' or 'f2 type hello', and print the "
            "changes.",
        ),
    )
    header: list[str] = HEADER
    watch: bool = flag(
        "Restart the server and reopen the View whenever a file of the server or its pages "
        "changes, in the folder of the TARGET file or else in the current one."
    )
    headless: bool = flag("Use a browser without a window, and end after the calls.")
    screenshot: Path | None = option(
        "FILE",
        "Save a PNG of the View, once it has stopped changing (with --headless).",
        type=Path,
    )
    wait: float | str | None = option(
        "SECONDS|SELECTOR",
        "Before that, wait for so long, or until the View shows what this CSS selector finds "
        "(with --headless).",
        type=_seconds_or_selector,
    )
    record: Path | None = option("FILE", _RECORD_HELP, type=Path)
    port: int = _PORT
    csp: CspMode = _CSP
    ephemeral: bool = flag(f"{_EPHEMERAL_HELP} With --headless it is always so.")
    timeout: float | None = option(
        "SECONDS",
        "How long each step may take, and with steps how long the page may take to open; by "
        "default 30. Without a window, a page that failed is waited for only with this option.",
        type=number(0.1),
    )
    json: bool = flag("Print each event as one line of JSON.")


class DevOptions(CommandOptions):
    """Develop a server: see its tools, its Views and what goes over the wire, while you edit it.

    One page in your browser has everything: the server's tools with a form for each, the View as a
    host shows it, the View's own tools, all messages, and what is wrong. Whenever you save a file
    of the server or its pages, in the folder of the TARGET file or else in the current one, the
    server is started again and the last View is opened again. It stays until you press Ctrl-C.

    Exit codes: 0 you ended it, 2 the command line is not valid, or the page cannot be served.
    """

    module = "transom.cli.dev"
    usage = "[OPTIONS] TARGET"

    target: str = TARGET
    header: list[str] = HEADER
    no_open: bool = flag("Do not open a browser: print the address of the page.")
    no_check: bool = flag("Do not check the contract of MCP Apps after each start.")
    port: int = _PORT
    csp: CspMode = _CSP
    ephemeral: bool = flag(_EPHEMERAL_HELP)
    record: Path | None = option("FILE", _RECORD_HELP, type=Path)
    timeout: float = option(
        "SECONDS",
        "For the server's start, the View's opening and each call.",
        type=number(0.1),
        default=30.0,
    )


class JsOptions(CommandOptions):
    """Copy Transom's JavaScript files into a project that builds its View with a bundler, such as Vite.

    These are `transom.js`, `webmcp.js`, `react.js`, their TypeScript declarations, and `zod.js`,
    which `transom.js` imports when it is needed. Run it again after an update of Transom. A page
    without a bundler needs no copies: the server puts `transom.js` into it.

    Exit codes: 0 copied, 1 there is another file of one of these names, or the folder cannot be
    written to.
    """  # noqa: E501

    module = "transom.cli.files"
    usage = "--out DIR"

    out: Path = option(
        "DIR",
        "The folder, such as `src/transom`. It is created if it does not exist.",
        type=Path,
        required=True,
    )


class DemoOptions(CommandOptions):
    """Show Transom at work: an agent that does not support MCP Apps plays music in one.

    The gateway runs in front of two example servers. The agent is a plain MCP client with a script
    in place of a model, and the Views run in Chromium without a window (`pip install
    "transom[headless]"`). Every step is checked. It takes about fifteen seconds and saves a picture
    in the current folder.

    Exit codes: 0 every step succeeded, 1 a step failed.
    """

    module = "transom.cli.files"

    browser: bool = flag("Show the Views in your own browser, slowly enough to follow; no picture.")
    examples: bool = flag("Only print the folder of the examples.")


class LoginCommandOptions(CommandOptions):
    """Log in to an MCP server that requires it, in your browser.

    The login is stored in a file that only you can read, or in the system's keyring if the Python
    package `keyring` is installed. From then on, `transom gateway`, `open`, `check` and programs
    with a `Host` use it and refresh it. It is sent to that server only.

    Exit codes: 0 logged in, or no login is needed, 2 the login failed.
    """

    module = "transom.cli.login"
    usage = "[OPTIONS] [URL]"

    url: str | None = argument(
        "URL", "The server, as you give it to the other commands.", nargs="?"
    )
    list: bool = flag("List the stored logins.")
    no_open: bool = flag("Do not open a browser: print the address of the login page.")
    client_id: str | None = option(
        "ID",
        "The client id, if the issuer has no automatic registration: an id that you got from the "
        "issuer, or the https URL of a client-id metadata document. Put a secret that belongs to "
        "the id into TRANSOM_CLIENT_SECRET.",
    )
    port: int = option(
        "NUMBER",
        "The port for the redirect back to this machine (`/callback`), if the issuer must know it "
        "in advance; by default any free port.",
        type=count,
        default=0,
    )
    scope: str | None = option("TEXT", "The scopes to request; by default what the server needs.")


class LogoutOptions(CommandOptions):
    """Delete the login at an MCP server, and revoke it at its issuer.

    Exit codes: 0 deleted, 2 there was none.
    """

    module = "transom.cli.login"
    usage = "URL"

    url: str = argument("URL", "The server, as `transom login --list` shows it.")


class StorageOptions(CommandOptions):
    """Show what Views may have stored: for which server and resource, where, and when it was last used.

    A View finds what earlier Views of the same server and resource stored in your browser. Views of
    other servers do not. `transom storage clear` deletes it; `--ephemeral` keeps nothing.

    Exit codes: 0 shown, 2 it cannot be read.
    """  # noqa: E501

    module = "transom.cli.storage"


class StorageClearOptions(CommandOptions):
    """Delete what Views have stored, and forget which ones were open.

    Views get new origins from now on and cannot reach what is stored under the old ones. The
    browser deletes that the next time it shows Views of the same program. Views that are open now
    keep what they have until they are closed.

    Exit codes: 0 cleared, 2 there is no such storage.
    """

    module = "transom.cli.storage"
    usage = "[WHAT] [--all]"

    what: str | None = argument("WHAT", "A server's name, or an origin, as listed.", nargs="?")
    all: bool = flag("Clear everything.")


def _command(name: str, options: type[CommandOptions] | str) -> Command:
    if not isinstance(options, str):
        return Command(name, options)
    module, _, found = options.partition(":")
    return Command(name, getattr(import_module(f"transom.cli.{module}"), found))


_OPTIONS: Mapping[str, type[CommandOptions] | str] = {
    "gateway": GatewayOptions,
    "gateway install": InstallOptions,
    "gateway uninstall": UninstallOptions,
    "open": OpenOptions,
    "dev": DevOptions,
    # Those in modules of their own are loaded for their commands: nobody else waits for them.
    "check": "author_options:CheckOptions",
    "doctor": "author_options:DoctorOptions",
    "new": "author_options:NewOptions",
    "replay": "testing_options:ReplayOptions",
    "eval": "testing_options:EvalCommandOptions",
    "conform host": "conform_options:ConformHostOptions",
    "conform view": "conform_options:ConformViewOptions",
    "login": LoginCommandOptions,
    "logout": LogoutOptions,
    "storage": StorageOptions,
    "storage clear": StorageClearOptions,
    "js": JsOptions,
    "demo": DemoOptions,
}
COMMANDS: Mapping[str, Callable[[], Command]] = {
    name: partial(_command, name, options) for name, options in _OPTIONS.items()
}


def find_command(words: Sequence[str]) -> tuple[Command, list[str]]:
    """The command that these words begin with, and the rest of them."""
    for length in (2, 1):
        if make := COMMANDS.get(" ".join(words[:length])):
            return make(), list(words[length:])
    hint = did_you_mean(words[0], list(COMMANDS))
    raise UsageError(f"there is no command {words[0]!r}{hint}")
