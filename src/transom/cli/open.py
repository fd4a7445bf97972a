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
from rich.console import Console
from rich.markup import escape

from transom.cli.target import Command, Target, parse_target
from transom.errors import TransomError, UsageError

if TYPE_CHECKING:
    from transom.web.showing import Event, Showing

__all__ = ["open_view"]

Arguments = dict[str, Any]


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
        typer.Option("--csp", metavar="compat|strict", help="What Views may do; see the docs."),
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
    say = _print_json if as_json else _Teller()
    try:
        found = parse_target(target)
        given = _object("ARGS", arguments)
        calls = [_call(text) for text in call or []]
        if screenshot is not None and not headless:
            raise UsageError("--screenshot needs --headless")
        showing = _showing(say, csp, timeout, headless=headless)
        asyncio.run(_run(showing, found, tool, given, calls, screenshot, stay=not headless))
    except (TransomError, TimeoutError, OSError) as error:
        text = str(error) or f"nothing happened within {timeout:g} s"
        typer.echo(f"transom open: {text}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
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
    else:
        renderer = import_module("transom.web.renderers").BrowserRenderer(
            csp=csp.value, page_timeout=timeout
        )
    showing: type[Showing] = import_module("transom.web.showing").Showing
    return showing(renderer, renderer.stage, say, timeout=timeout)


async def _run(
    showing: Showing,
    target: Target,
    tool: str,
    arguments: Arguments,
    calls: list[tuple[str, Arguments]],
    screenshot: Path | None,
    *,
    stay: bool,
) -> None:
    server = list(target.argv) if isinstance(target, Command) else target.url
    save = screenshot.write_bytes if screenshot is not None else None
    await showing.run(server, tool, arguments, calls, screenshot=save, stay=stay)


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


def _print_json(event: Event) -> None:
    sys.stdout.write(json.dumps(event, ensure_ascii=False) + "\n")
    sys.stdout.flush()


class _Teller:
    """Tells the events to a person."""

    def __init__(self) -> None:
        self._out = Console(highlight=False)

    def __call__(self, event: Event) -> None:
        getattr(self, f"_{event['event']}")(event)

    def _opened(self, event: Event) -> None:
        app = f"{event['app']['name']} {event['app']['version']}".strip()
        self._out.print(f"[bold green]Opened[/] {escape(app)}  [dim]{event['view']}[/]")

    def _tools(self, event: Event) -> None:
        tools = event["tools"]
        self._out.print(f"[bold]The View's tools[/] ({len(tools)})")
        for tool in tools:
            wants = ", ".join(tool["inputSchema"].get("properties", {}))
            self._out.print(f"  [cyan]{escape(tool['name'])}[/]({escape(wants)})", end="")
            said = str(tool.get("description", "")).partition("\n")[0][:100]
            self._out.print(f"  [dim]{escape(said)}[/]" if said else "")

    def _call(self, event: Event) -> None:
        if "error" in event:
            text = f"{event['error']['message']} ({event['error']['code']})"
            self._out.print(f"[bold red]Failed[/] {escape(event['tool'])}: {escape(text)}")
            return
        result = event["result"]
        word = "[bold red]Error[/]" if result.get("isError") else "[bold green]Called[/]"
        blocks = [block.get("text", f"<{block['type']}>") for block in result["content"]]
        text = "\n".join(blocks)
        shown = text if len(text) <= 1000 else f"{text[:1000]}… ({len(text)} characters)"
        self._out.print(f"{word} {escape(event['tool'])}: {escape(shown)}")

    def _violation(self, event: Event) -> None:
        what = f"{event['directive']}: {event['blocked']}"
        self._out.print(f"[yellow]Blocked[/] {escape(what)}")

    def _closed(self, event: Event) -> None:
        self._out.print(f"[dim]Closed {event['view']}: {escape(event['reason'])}[/]")
