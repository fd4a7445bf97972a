"""`transom storage`: what Views may have stored in the browser."""

from __future__ import annotations

import sys
import time

from transom.cli.options import StorageClearOptions, StorageOptions
from transom.errors import UsageError
from transom.web.view_storage import StoredOrigin, ViewStorage


def run(options: StorageOptions | StorageClearOptions) -> int:
    """Do what the command line says; the exit code."""
    if isinstance(options, StorageClearOptions):
        _clear(options)
    else:
        _show()
    return 0


def _show() -> None:
    found = ViewStorage().origins()
    for each in found:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.used))
        sys.stdout.write(f"{each.server}  {each.uri}\n    {each.origin}  last used {when}\n")
    if not found:
        sys.stdout.write("Nothing is stored for Views.\n")


def _clear(options: StorageClearOptions) -> None:
    what = options.what
    if (what is None) != options.all:
        raise UsageError("name a server or an origin, or everything with --all")

    def is_meant(each: StoredOrigin) -> bool:
        return what is not None and what.rstrip("/") in (each.server, each.origin)

    gone = ViewStorage().clear(None if options.all else is_meant)
    if not gone and what is not None:
        raise UsageError(f"Nothing is stored for {what}: see transom storage")
    for each in gone:
        sys.stdout.write(f"Cleared {each.server}  {each.uri}\n")
    if not gone:
        sys.stdout.write("Nothing is stored for Views.\n")
