"""`transom doctor`: open a View in a browser without a window, and say why it is not seen."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from transom.check.causes import Cause
from transom.check.doctor import Diagnosis, diagnose
from transom.check.host_profiles import HostProfile, host_profile
from transom.check.positions import Position, find_position
from transom.cli import run_async
from transom.cli.author_options import DoctorOptions
from transom.cli.target import read_call, read_target
from transom.connections import ServerConnection, Target
from transom.connections.targets import way_to
from transom.dev.files import source_files
from transom.errors import NotConnected
from transom.json_values import clean


def run(options: DoctorOptions) -> int:
    """Do what the command line says; the exit code."""
    out = Console(highlight=False)
    target = read_target(options, "transom doctor")
    tool, arguments = read_call(options)
    profile = host_profile(options.host)
    with Console(stderr=True).status("Opening the View…"):
        work = _diagnose(target.server, tool, arguments, profile, options.timeout)
        diagnosis = run_async(work)
    places = _places(diagnosis, () if target.folder is None else list(source_files(target.folder)))
    if options.json:
        sys.stdout.write(f"{as_json(diagnosis, places)}\n")
    else:
        print_diagnosis(out, diagnosis, places, profile)
    return 1 if diagnosis.causes else 0


async def _diagnose(
    server: Target,
    tool: str | None,
    arguments: dict[str, Any] | None,
    profile: HostProfile,
    timeout: float,
) -> Diagnosis:
    # What the server writes to its standard error would hide the answer.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    reach = way_to(server, inherit_env=True, forward_stderr=False)
    connection = ServerConnection("server", reach)
    try:
        try:
            async with asyncio.timeout(timeout):
                await connection.start()
                await connection.negotiate(timeout=timeout)
        except TimeoutError:
            raise NotConnected(f"the server did not answer within {timeout:g} s") from None
        return await diagnose(connection, tool, arguments, profile=profile, wait=timeout)
    finally:
        await connection.aclose()


# --- the answer ------------------------------------------------------------------------------


def _places(diagnosis: Diagnosis, files: Sequence[Path]) -> dict[str, Position]:
    """Where each cause is, by its id, in the file that it was written in if that is known."""
    places: dict[str, Position] = {}
    for cause in diagnosis.causes:
        if cause.line is not None:
            place = find_position(diagnosis.page, cause.line, cause.column or 1, files)
            if place is not None:
                places[cause.id] = place
    return places


def as_json(diagnosis: Diagnosis, places: dict[str, Position]) -> str:
    """A diagnosis for machines."""
    found: dict[str, Any] = msgspec.to_builtins(diagnosis)
    del found["page"]
    for cause in found["causes"]:
        if (place := places.get(cause["id"])) is not None:
            cause["place"] = msgspec.to_builtins(place)
    return json.dumps(found)


def print_diagnosis(
    out: Console, diagnosis: Diagnosis, places: dict[str, Position], profile: HostProfile
) -> None:
    """Print a diagnosis: the most likely cause in the first line."""
    tool, uri = clean(diagnosis.tool or "", 80), clean(diagnosis.uri or "", 200)
    if not diagnosis.causes:
        out.print(Text("Nothing wrong found.", style="bold green"))
    for number, cause in enumerate(diagnosis.causes):
        if number == 1:
            out.print("\nWhat else was found, less likely:\n", style="bold")
        _print_cause(out, cause, places.get(cause.id), style="bold red" if number == 0 else "bold")
    out.print()
    for note in diagnosis.notes:
        out.print(Text(note, style="yellow"), soft_wrap=True)
    about = f"Tool {tool} opens {uri}" if tool and uri else f"Tool {tool}" if tool else "No tool"
    out.print(
        Text(f"{about}, in the host {profile.name} ({profile.title}).", "dim"), soft_wrap=True
    )


def _print_cause(out: Console, cause: Cause, place: Position | None, style: str) -> None:
    out.print(Text(cause.text, style=style), soft_wrap=True)
    if place is not None:
        at = f"{place.line}:{place.column}" if cause.column is not None else str(place.line)
        where = Text(f"  the page, line {at}")
        if place.file:
            file = Path(place.file)
            short = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
            where = Text(f"  {short}:{at}", style=f"link {file.absolute().as_uri()}")
        out.print(where, soft_wrap=True)
        out.print(Text(f"      {clean(place.text, 120)}", style="dim"), soft_wrap=True)
    for line in cause.evidence:
        out.print(Text(f"  {line}"), soft_wrap=True)
    out.print(Text.assemble(("  Fix: ", "bold green"), cause.fix), soft_wrap=True)
    if cause.source:
        out.print(Text(f"  Source: {cause.source}", style="dim"), soft_wrap=True)
