"""A command: how its line is read, how mistakes in it are reported, and its help.

A client waits for the gateway to start, so this is quick to load: the code that prints help is
loaded only for help.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

from transom.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

COMMAND = "[-- COMMAND…]"
"""The usage of a command that takes the command line of a server."""


class _Parser(argparse.ArgumentParser):
    """Reports mistakes as exceptions; argparse would print them and end the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


class Command:
    """One command: how its line is read, and its help.

    `module` has the function that runs it, `run(options) -> exit code`. The first paragraph of
    `text` is its summary. A command with an empty `usage` needs no words: it runs without any.
    """

    def __init__(
        self, name: str, module: str, usage: str, text: str, options: type[argparse.Namespace]
    ) -> None:
        self.needs_words = bool(usage)
        self.name = name
        self.module = module
        self._usage = usage
        self._text = text
        self._options = options
        self._parser = _Parser(add_help=False, allow_abbrev=False)
        self._panels: dict[str, list[argparse.Action]] = {}

    @property
    def summary(self) -> str:
        """What it does, in a sentence."""
        return self._text.partition("\n\n")[0]

    @property
    def option_names(self) -> list[str]:
        """Every option of it, as it is typed."""
        actions = [action for panel in self._panels.values() for action in panel]
        return [name for action in actions for name in action.option_strings]

    # --- declaring ---------------------------------------------------------------------------

    def argument(self, name: str, metavar: str, text: str, **settings: Any) -> None:
        """Declare an argument; `settings` are those of `argparse`."""
        action = self._parser.add_argument(name, metavar=metavar, help=text, **settings)
        self._panels.setdefault("Arguments", []).append(action)

    def option(
        self, names: str, metavar: str | None, text: str, *, panel: str = "Options", **settings: Any
    ) -> None:
        """Declare an option with a value; `panel` is the heading under which help shows it."""
        if metavar is not None:
            settings["metavar"] = metavar
        action = self._parser.add_argument(*names.split(), help=text, **settings)
        self._panels.setdefault(panel, []).append(action)

    def choice(
        self, name: str, choices: Sequence[str], text: str, *, panel: str = "Options"
    ) -> None:
        """Declare an option with one of these values, of which the first is the default."""
        metavar = "|".join(choices)
        self.option(name, metavar, text, panel=panel, choices=choices, default=choices[0])

    def flag(self, names: str, text: str, *, panel: str = "Options") -> None:
        """Declare an option without a value."""
        self.option(names, None, text, panel=panel, action="store_true")

    # --- reading -----------------------------------------------------------------------------

    def read(self, words: Sequence[str]) -> Any:
        """Read the words after the command's name; a UsageError says what is wrong with them.

        Where the command takes a COMMAND, every word after `--` belongs to that.
        """
        own, after = list(words), list[str]()
        if COMMAND in self._usage and "--" in own:
            cut = own.index("--")
            own, after = own[:cut], own[cut + 1 :]
        options = self._options()
        _, unknown = self._parser.parse_known_intermixed_args(own, options)
        for word in unknown:
            if word.startswith("-"):
                hint = did_you_mean(word.partition("=")[0], self.option_names)
                raise UsageError(f"there is no option {word}{hint}")
            raise UsageError(f"there is one argument too many: {word}")
        if after:
            options.command = [*options.command, *after]
        return options

    def words(self, options: argparse.Namespace, panel: str) -> list[str]:
        """The options of a panel as words of a command line, without those at their default."""
        found: list[str] = []
        for action in self._panels[panel]:
            value: object = getattr(options, action.dest)
            if value == action.default:
                continue
            name = action.option_strings[0]
            if value is True:
                found.append(name)
            elif isinstance(value, list):
                found += [
                    word for each in cast("list[object]", value) for word in (name, str(each))
                ]
            else:
                found += [name, f"{value:g}" if isinstance(value, float) else str(value)]
        return found

    # --- help --------------------------------------------------------------------------------

    def print_help(self) -> None:
        """Print what the command does and takes."""
        console = _console()
        _print_text(console, f"Usage: transom {self.name} {self._usage}\n\n{self._text}")
        for title, actions in self._panels.items():
            _print_panel(console, title, map(_help_row, actions))


_Row = tuple[str, str, str]


def _help_row(action: argparse.Action) -> _Row:
    metavar, text = str(action.metavar or ""), action.help or ""
    if action.required and action.option_strings:
        text += "\n[required]"
    elif action.default not in (None, False, 0, [], ""):
        text += f"\n[default: {action.default}]"
    names = " ".join(action.option_strings)
    return (names, metavar, text) if names else (metavar, "", text)


def print_overview(commands: Iterable[Command]) -> None:
    """Print which commands there are."""
    console = _console()
    _print_text(
        console,
        "Usage: transom [OPTIONS] COMMAND …\n\n"
        "MCP Apps for Python: brings Views, and the tools inside them, to every MCP client.",
    )
    version, usage = "Show the version.", "Show this, or what a command does and takes."
    _print_panel(console, "Options", [("--version", "", version), ("--help -h", "", usage)])
    _print_panel(console, "Commands", [(each.name, "", each.summary) for each in commands])
    _print_text(
        console,
        "Start with `transom gateway --help` to use MCP Apps, or `transom open --help` to see one.",
    )


def print_family(word: str, commands: Sequence[Command]) -> None:
    """Print which commands begin with a word that is not a command alone."""
    console = _console()
    rest = "|".join(each.name.removeprefix(f"{word} ") for each in commands)
    _print_text(console, f"Usage: transom {word} {rest} …")
    _print_panel(console, "Commands", [(each.name, "", each.summary) for each in commands])
    _print_text(console, f"`transom {commands[0].name} --help` says what a command takes.")


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """The end of a sentence about a word that is not known."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def _print_text(console: Console, text: str) -> None:
    """Print paragraphs; one that is indented keeps its lines."""
    from rich.padding import Padding

    for paragraph in text.split("\n\n"):
        lines = paragraph if paragraph.startswith(" ") else " ".join(paragraph.split())
        console.print(Padding(_marked(lines), (0, 1)))
        console.print()


def _print_panel(console: Console, title: str, rows: Iterable[_Row]) -> None:
    from rich.panel import Panel
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for style in ("bold cyan", "yellow", ""):
        table.add_column(style=style)
    for name, metavar, text in rows:
        table.add_row(name, metavar, _marked(text))
    console.print(Panel(table, title=title, title_align="left", border_style="dim"))


def _marked(text: str) -> Text:
    """Text with the parts between backticks in bold."""
    from rich.text import Text

    pieces = re.split(r"`([^`]+)`", text)
    return Text.assemble(*((each, "bold" if n % 2 else "") for n, each in enumerate(pieces)))


# --- values ----------------------------------------------------------------------------------


def number(least: float) -> Callable[[str], float]:
    """The type of an option that is a number of at least `least`."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least {least:g}")
        return number

    return read


def count(text: str) -> int:
    """The type of an option that is a whole number of at least 1."""
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def port_number(text: str) -> int:
    """The type of an option that is a port, which has another one after it."""
    port = count(text)
    if port > 65534:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: give one from 1 to 65534")
    return port


# --- what several commands have

TARGET_HELP = "A Python file, `module:server`, a URL, or one quoted command line."


def add_opening_tool(command: Command) -> None:
    """Declare `TARGET [TOOL]`: a server, and which of its tools opens the View."""
    command.argument("target", "TARGET", TARGET_HELP)
    command.argument(
        "tool",
        "TOOL",
        "The tool whose View to open; not needed if only one tool opens a View.",
        nargs="?",
    )


def add_header(command: Command, **settings: Any) -> None:
    """Declare `--header`."""
    command.option(
        "--header",
        "'NAME: VALUE'",
        "Send this header with every request to a server by URL; repeatable. `${VAR}` is replaced "
        "from the environment. `Authorization` takes the place of a login.",
        action="append",
        default=[],
        **settings,
    )
