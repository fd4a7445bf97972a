"""`transom open`: parse, run, print."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transom.cli.open_output import Teller
from transom.cli.target import Command, Target, parse_target
from transom.errors import TransomError, UsageError
from transom.naming import name_of_command, name_of_url

if TYPE_CHECKING:
    from transom.cli.showing import Event, Showing

__all__ = ["open_view"]

Arguments = dict[str, Any]

_INTERRUPTED = 130


class Csp(StrEnum):
    """How much a View's page may do with itself."""

    COMPAT = "compat"
    STRICT = "strict"


def open_view(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A Python file, `module:server`, a URL, or one quoted command line.",
        ),
    ],
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool whose View to open.")],
    arguments: Annotated[
        str, typer.Argument(metavar="[ARGS]", help="Its arguments, as a JSON object.")
    ] = "{}",
    call: Annotated[
        list[str] | None,
        typer.Option(
            "--call",
            metavar="VIEW_TOOL=JSON",
            help="Call a tool of the View; repeatable, made in order.",
        ),
    ] = None,
    headless: Annotated[
        bool, typer.Option("--headless", help="Use a browser without a window, then end.")
    ] = False,
    screenshot: Annotated[
        Path | None,
        typer.Option("--screenshot", metavar="FILE", help="Save a PNG of the View (headless)."),
    ] = None,
    csp: Annotated[
        Csp,
        typer.Option(
            "--csp",
            metavar="compat|strict",
            help="What a View's page may do with itself: what other hosts allow, or what the "
            "specification does.",
        ),
    ] = Csp.COMPAT,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="For each step.", min=0.1)
    ] = 30,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line for each event.")
    ] = False,
) -> None:
    """Open the View of a server's tool, list the View's own tools, and call them.

    The View opens in your browser and stays until you press Ctrl-C. With --headless it opens in a
    browser without a window, and the command ends after the calls.

    Exit codes: 0 every call gave a result that is not an error, 1 one did not, 2 the server, the
    browser or the View could not be started.
    """
    say: Callable[[Event], object] = _print_json if as_json else Teller()
    showing: Showing | None = None
    try:
        found = parse_target(target)
        given = _object("ARGS", arguments)
        calls = [_call(text) for text in call or []]
        _check_screenshot(screenshot, headless=headless)
        showing = _showing(say, csp, timeout, headless=headless)
        asyncio.run(
            showing.run(
                list(found.argv) if isinstance(found, Command) else found.url,
                tool,
                given,
                calls,
                name=_name_of(target, found),
                screenshot=None if screenshot is None else screenshot.write_bytes,
                stay=not headless,
            )
        )
    except (TransomError, OSError) as error:
        _trouble(str(error))
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        # A View that was to stay until now has stayed: how its calls went is what counts.
        if showing is None or headless or not showing.opened:
            raise typer.Exit(_INTERRUPTED) from None
    if screenshot is not None and not as_json:
        typer.echo(f"Saved a picture of the View as {screenshot}")
    raise typer.Exit(1 if showing.failed else 0)


def _showing(
    say: Callable[[Event], object], csp: Csp, timeout: float, *, headless: bool
) -> Showing:
    # The web server and the SDK take a second to load, which --help should not wait for.
    if headless:
        renderer = import_module("transom.web.headless").HeadlessRenderer(
            csp=csp.value, timeout=timeout
        )
        before = None
    else:
        renderers = import_module("transom.web.renderers")

        async def open_page(url: str) -> None:
            _note(f"The View opens at {url}\nPress Ctrl-C to close it and end.")
            try:
                await renderers.open_in_browser(url)
            except TransomError:
                _note("No browser could be opened: open that address yourself.")

        renderer = renderers.BrowserRenderer(csp=csp.value, open_page=open_page)
        before = renderer.show_page
    showing: type[Showing] = import_module("transom.cli.showing").Showing
    return showing(
        renderer, renderer.stage, say, on_trouble=_trouble, before=before, timeout=timeout
    )


def _trouble(text: str) -> None:
    _note(f"transom open: {text}")


def _note(text: str) -> None:
    """Events are for standard output; everything else goes where it cannot be taken for one."""
    typer.echo(text, err=True)


# --- what was given --------------------------------------------------------------------------


def _object(what: str, text: str) -> dict[str, Any]:
    try:
        value: object = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{what} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f'{what} must be a JSON object such as {{"status": "open"}}, not {text}')
    return value  # pyright: ignore[reportUnknownVariableType]


def _call(text: str) -> tuple[str, Arguments]:
    name, equals, arguments = text.partition("=")
    if not name:
        raise UsageError(f"--call {text}: name a tool of the View, as in --call 'pick={{}}'")
    return name, _object(f"--call {name}", arguments) if equals else {}


def _check_screenshot(path: Path | None, *, headless: bool) -> None:
    if path is None:
        return
    if not headless:
        raise UsageError("--screenshot needs --headless")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"--screenshot {path}: a picture cannot be saved there")


def _name_of(text: str, target: Target) -> str:
    """What to call the server: Views are named after it."""
    if not isinstance(target, Command):
        return name_of_url(target.url)
    # A Python file or module is run by `transom.cli.serve`, which is not what to call it.
    served = "transom.cli.serve" in target.argv
    return name_of_command([text] if served else target.argv)


def _print_json(event: Event) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()
