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
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, cast

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


class Declared(NamedTuple):
    """What a command line may have: see `CommandOptions`. `names` is None for an argument."""

    names: str | None
    settings: dict[str, Any]


class CommandOptions(argparse.Namespace):
    """What a command line says. Each command has a class, whose docstring is its help.

    An attribute is declared with `argument`, `option`, `repeatable`, `choice`, `flag` or `several`.
    Help shows them in this order, what is inherited last; options under their class's `panel`.
    """

    module: ClassVar[str]
    """The module that runs the command, with `run(options) -> exit code`. What it raises is 2."""
    usage: ClassVar[str] = ""
    """What follows its name. A command that takes nothing but options needs no words."""


def argument(metavar: str, text: str, **settings: Any) -> Any:
    """Declare an argument; `settings` are those of `argparse`."""
    return Declared(None, {"metavar": metavar, "help": text, **settings})


def option(metavar: str | None, text: str, *, names: str = "", **settings: Any) -> Any:
    """Declare an option; it is called like its attribute unless `names` are given."""
    return Declared(names, {"metavar": metavar, "help": text, **settings})


def repeatable(metavar: str, text: str, **settings: Any) -> Any:
    """Declare an option that may be given several times: its value is a list."""
    return option(metavar, text, action="append", default=[], **settings)


def choice(choices: Sequence[str], text: str) -> Any:
    """Declare an option with one of these values, of which the first is the default."""
    return option("|".join(choices), text, choices=choices, default=choices[0])


def flag(text: str, *, names: str = "") -> Any:
    """Declare an option without a value."""
    return Declared(names, {"help": text, "action": "store_true"})


def several(*options: Any) -> Any:
    """Declare several options for one attribute."""
    return options


class Command:
    """One command: how its line is read, and its help."""

    def __init__(self, name: str, options: type[CommandOptions]) -> None:
        self.name = name
        self.module = options.module
        self._options = options
        self._parser = _Parser(add_help=False, allow_abbrev=False)
        self._panels: dict[str, list[argparse.Action]] = {}
        for each in options.__mro__:
            panel = vars(each).get("panel", "Options")
            for attribute, value in vars(each).items():
                values = cast("tuple[object, ...]", value) if type(value) is tuple else (value,)
                for declared in values:
                    if isinstance(declared, Declared):
                        self._add(attribute, declared, panel)

    def _add(self, attribute: str, declared: Declared, panel: str) -> None:
        names, settings = declared
        if names is None:
            action, panel = self._parser.add_argument(attribute, **settings), "Arguments"
        else:
            names = names or f"--{attribute.replace('_', '-')}"
            action = self._parser.add_argument(*names.split(), dest=attribute, **settings)
        self._panels.setdefault(panel, []).append(action)

    @property
    def needs_words(self) -> bool:
        """Whether it shows its help without any; `gateway` says in a line what it lacks."""
        return self._options.usage not in ("", "[OPTIONS]", f"[OPTIONS] {COMMAND}")

    @property
    def text(self) -> str:
        """Its help: what it does."""
        from inspect import cleandoc

        return cleandoc(self._options.__doc__ or "")

    @property
    def summary(self) -> str:
        """The same in a sentence."""
        return self.text.partition("\n\n")[0]

    @property
    def option_names(self) -> list[str]:
        """Every option of it, as it is typed."""
        actions = [action for panel in self._panels.values() for action in panel]
        return [name for action in actions for name in action.option_strings]

    # --- reading -----------------------------------------------------------------------------

    def read(self, words: Sequence[str]) -> Any:
        """Read the words after the command's name; a UsageError says what is wrong with them.

        Where the command takes a COMMAND, every word after `--` belongs to that.
        """
        own, after = list(words), list[str]()
        if COMMAND in self._options.usage and "--" in own:
            cut = own.index("--")
            own, after = own[:cut], own[cut + 1 :]
        found, unknown = self._parser.parse_known_intermixed_args(own)
        for word in unknown:
            if word.startswith("-"):
                hint = did_you_mean(word.partition("=")[0], self.option_names)
                raise UsageError(f"there is no option {word}{hint}")
            raise UsageError(f"there is one argument too many: {word}")
        if after:
            found.command = [*found.command, *after]
        return self._options(**vars(found))

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
        _print_text(console, f"Usage: transom {self.name} {self._options.usage}\n\n{self.text}")
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
TARGET: Any = argument("TARGET", TARGET_HELP)
TOOL: Any = argument(
    "TOOL", "The tool whose View to open; not needed if only one tool opens a View.", nargs="?"
)
HEADER: Any = repeatable(
    "'NAME: VALUE'",
    "Send this header with every request to a server by URL; repeatable. `${VAR}` is replaced from "
    "the environment. `Authorization` takes the place of a login.",
)
