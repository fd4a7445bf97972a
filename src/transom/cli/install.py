"""`transom gateway install` and `uninstall`: print, write, try, list and remove configurations."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from transom.cli import print_failure, run_async
from transom.cli.options import InstallOptions, UninstallOptions, gateway_words
from transom.connections.connection import ServerConnection
from transom.connections.process import ServerProcess
from transom.connections.target_names import check_script
from transom.errors import TransomError, UsageError
from transom.gateway.configuration.install import (
    Plan,
    Scope,
    Written,
    find_clients,
    make_plan,
    remove,
)

_COMES_UP_WITHIN = 60.0  # seconds: a server may be downloaded first
_REFUSED = re.compile(  # what the gateway and the connection to it say around the server's reason
    r"it refused the connection: (?:Server \S+ is (?:not running|gone): )?"
    r"|transom gateway: | \(-\d+\)$"
)


def run(options: InstallOptions | UninstallOptions) -> int:
    """Do what the command line says; the exit code."""
    if isinstance(options, UninstallOptions):
        return _uninstall(options)
    if options.list:
        _print_clients()
        return 0
    try:
        plan = _plan(options)
        if not options.no_try:
            check_script(options.command)
    except TransomError as error:
        print_failure("gateway install", error)
        return 2
    if not options.no_try and not _comes_up(plan):
        return 1
    if not options.write:
        _print(f"For {plan.client.title}, in {plan.path}:")
        sys.stdout.write(plan.snippet())
        for note in plan.notes:
            _print(note)
        return 0
    return _write(plan, force=options.force)


def _plan(options: InstallOptions) -> Plan:
    if options.client is None:
        raise UsageError("name the client: --client CLIENT (--list shows those that are here)")
    address = None
    if options.http is not None:
        from transom.gateway.http import address_of  # noqa: PLC0415 - the web server takes long

        address = address_of(options.http)
    return make_plan(
        options.client,
        command=options.command,
        url=options.url,
        config=options.config,
        name=options.name,
        options=gateway_words(options),
        address=address,
        token=options.token,
        scope=Scope.PROJECT if options.project else Scope.USER,
    )


def _write(plan: Plan, *, force: bool) -> int:
    try:
        written = plan.write(force=force)
    except TransomError as error:
        print_failure("gateway install", error)
        _print(f"Nothing was changed. To put it into {plan.path} by hand:")
        sys.stdout.write(plan.snippet())
        return 1
    if not written.changed:
        _print(f"{plan.path} already has {plan.name!r}: nothing to do.")
        return 0
    _print(f"Put {plan.name!r} into {plan.path}.")
    _print_backup(written)
    for note in plan.notes:
        if not note.startswith("Or run:"):
            _print(note)
    return 0


def _uninstall(options: UninstallOptions) -> int:
    scope = Scope.PROJECT if options.project else Scope.USER
    try:
        if options.client is None:
            raise UsageError("name the client: --client CLIENT")
        name, written = remove(options.client, options.name, scope=scope, force=options.force)
    except TransomError as error:
        print_failure("gateway uninstall", error)
        return 1
    _print(f"Removed {name!r} from {written.path}.")
    _print_backup(written)
    return 0


def _print_backup(written: Written) -> None:
    if written.backup is not None:
        _print(f"The file as it was is {written.backup}.")


def _print_clients() -> None:
    found = list(find_clients())
    if not found:
        sys.stdout.write("No MCP client was found here.\n")
    for each in found:
        sys.stdout.write(f"{each.client.title} ({each.client.name}): {each.path}\n")
        for name, server in each.behind.items():
            sys.stdout.write(f"  through the gateway: {name} ({server})\n")
        if each.others:
            sys.stdout.write(f"  directly: {', '.join(each.others)}\n")
        if each.error or not (each.behind or each.others):
            sys.stdout.write(f"  {each.error or 'no servers'}\n")


# --- trying it -------------------------------------------------------------------------------


def _comes_up(plan: Plan) -> bool:
    """Start what the client will start, from another folder, and say how that went."""
    _print(f"Starting {plan.name} once, to see whether it comes up …")
    try:
        # Of several servers, the gateway reports those that do not come up, and goes on.
        run_async(_try(_for_stdio(plan.gateway), quiet="--config" not in plan.gateway))
    except TransomError as error:
        why = _REFUSED.sub("", str(error.__cause__ or error))
        _print(f"transom gateway install: {plan.name} does not come up: {why}")
        if hint := _hint(plan.gateway, str(error)):
            _print(hint)
        _print("Nothing was written. --no-try goes on without starting it.")
        return False
    _print("It came up.")
    return True


def _for_stdio(gateway: Sequence[str]) -> list[str]:
    """The command without what only serving HTTP needs, and without a browser."""
    at = gateway.index("gateway") + 1
    words = list(gateway[at:])
    for option in ("--http", "--token", "--max-clients", "--idle", "--bus"):
        if option in words and ("--" not in words or words.index(option) < words.index("--")):
            del words[(found := words.index(option)) : found + 2]
    return [*gateway[:at], "--no-open", *words]


async def _try(command: Sequence[str], *, quiet: bool) -> None:
    connection = ServerConnection(
        "gateway",
        lambda: ServerProcess.start(command, cwd=_elsewhere(), forward_stderr=not quiet),
    )
    try:
        async with asyncio.timeout(_COMES_UP_WITHIN):
            await connection.start()
            await connection.negotiate(timeout=_COMES_UP_WITHIN)
            await connection.request("tools/list", {})
    except TimeoutError:
        raise TransomError(f"it did not answer within {_COMES_UP_WITHIN:g} s") from None
    finally:
        await connection.aclose()


def _elsewhere() -> str:
    """A folder that is not this one: clients start their servers anywhere."""
    home = Path.home()
    return str(home if home.is_dir() and home != Path.cwd() else Path(home.anchor))


def _hint(gateway: Sequence[str], why: str) -> str:
    if "No module named" not in why or "--" not in gateway:
        return ""
    python = gateway[list(gateway).index("--") + 1]
    if python == sys.executable or shutil.which(python) == sys.executable:
        return ""
    return (
        f"The server runs with {python}, which lacks that module. Transom itself runs with "
        f"{sys.executable}: give that after -- if the module is installed there."
    )


def _print(text: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")
