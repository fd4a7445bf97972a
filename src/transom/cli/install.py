"""`transom gateway install`: print or write a client's configuration."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from transom.errors import UsageError
from transom.gateway.install import Scope, make_plan

if TYPE_CHECKING:
    from transom.cli.commands import InstallOptions


def run(options: InstallOptions) -> int:
    """Print or write what the client needs; the exit code."""
    try:
        plan = make_plan(
            options.client,
            command=options.command,
            url=options.url,
            config=options.config,
            name=options.name,
            scope=Scope.PROJECT if options.project else Scope.USER,
        )
    except UsageError as error:
        _print(f"transom gateway install: {error}")
        return 2
    if not options.write:
        _print(f"For {plan.client.title}, in {plan.path}:")
        sys.stdout.write(plan.snippet())
        for note in plan.notes:
            _print(note)
        return 0
    try:
        written = plan.write(force=options.force)
    except UsageError as error:
        _print(f"transom gateway install: {error}")
        _print(f"Nothing was changed. To put it into {plan.path} by hand:")
        sys.stdout.write(plan.snippet())
        return 1
    if not written.changed:
        _print(f"{plan.path} has {plan.name!r} already: nothing to do.")
        return 0
    _print(f"Put {plan.name!r} into {plan.path}.")
    if written.backup is not None:
        _print(f"The file as it was is {written.backup}.")
    for note in plan.notes:
        if not note.startswith("Or run:"):
            _print(note)
    return 0


def _print(text: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")
