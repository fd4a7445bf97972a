"""What a command line names: a server, the tool whose View is opened, and its arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transom.cli import parse_target
from transom.cli.login import remote_server
from transom.dev.starting import SERVE, DevTarget
from transom.errors import UsageError
from transom.gateway.configuration.config import name_of_command, name_of_url
from transom.json_values import clean

if TYPE_CHECKING:
    from transom.cli.author_options import DoctorOptions
    from transom.cli.conform_options import ConformViewOptions
    from transom.cli.options import DevOptions, OpenOptions

_MAX_SHOWN = 60  # characters of what was given


def read_target(options: OpenOptions | DevOptions | DoctorOptions, program: str) -> DevTarget:
    """The server; one that has a URL has no folder."""
    text = options.target
    found = parse_target(text)
    server = remote_server(found, options.header, program)
    if isinstance(found, str):
        return DevTarget(name_of_url(found), text, server)
    # A Python file or module is run by a module of ours, which is not what to call it.
    name = name_of_command([text] if SERVE in found else found)
    file = Path(text.rpartition(":")[0] if ".py:" in text else text)
    folder = file.absolute().parent if file.is_file() else Path.cwd()
    return DevTarget(name, text, server, folder)


def read_call(
    options: OpenOptions | DoctorOptions | ConformViewOptions,
) -> tuple[str | None, dict[str, Any] | None]:
    """The tool and its arguments, each None if it is not given; the tool may be left out."""
    tool, arguments = options.tool, options.arguments
    if tool is not None and tool.startswith("{"):
        tool, arguments = None, tool
    return tool, None if arguments is None else read_object("ARGS", arguments)


def read_object(what: str, text: str, before: str = "") -> dict[str, Any]:
    """A JSON object of the command line, which stands after `before` there.

    A UsageError says what `what` is instead, and how to write it.
    """
    form = f"""'{before}{{"status": "open"}}'"""
    given = clean(text, _MAX_SHOWN) or "nothing"
    try:
        value: object = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{what} is not JSON: {error}; got {given}. Write it as {form}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{what} must be a JSON object, not {given}. Write it as {form}")
    return value  # pyright: ignore[reportUnknownVariableType]
