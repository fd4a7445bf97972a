"""The function that runs a command line of `transom`.

A client waits for the gateway to start, so this is quick to load: each command is run by a module
of its own, which is loaded for that command alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from transom.cli import print_failure
from transom.cli.command import print_family, print_overview
from transom.cli.options import COMMANDS, find_command
from transom.errors import TransomError, UsageError
from transom.version import __version__

_HELP = ("--help", "-h")
_INTERRUPTED = 130


def main() -> None:
    """Run the command line of this process."""
    try:
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as `head`, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


def run(words: Sequence[str]) -> int:
    """Run a command line; its exit code."""
    if not words or words[0] in _HELP:
        print_overview(make() for make in COMMANDS.values())
        return 0 if words else 2
    if words[0] == "--version":
        sys.stdout.write(f"transom {__version__}\n")
        return 0
    family = [make() for name, make in COMMANDS.items() if name.startswith(f"{words[0]} ")]
    if family and words[0] not in COMMANDS and set(words[1:]) <= set(_HELP):
        print_family(words[0], family)
        return 0 if words[1:] else 2
    program = ""
    try:
        command, rest = find_command(words)
        program = command.name
        before_dashes = rest[: rest.index("--")] if "--" in rest else rest
        lost = not rest and command.needs_words
        if lost or not set(before_dashes).isdisjoint(_HELP):
            command.print_help()
            return 2 if lost else 0
        options = command.read(rest)
    except UsageError as error:
        print_failure(program, error)
        sys.stderr.write(f"Try: {' '.join(['transom', program]).rstrip()} --help\n")
        return 2
    try:
        return import_module(command.module).run(options)
    except BrokenPipeError:
        raise
    except (TransomError, OSError) as error:
        print_failure(command.name.partition(" ")[0], error)
        return 2
