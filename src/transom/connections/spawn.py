"""Starting the process of a server, and signals to it.

A gateway does this first of all, and loads what else it needs while the server does the same. So
this loads as little as possible, and no asyncio.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence

from transom.errors import NotConnected

if sys.platform == "win32":
    from asyncio.windows_utils import Popen  # its pipes are of the kind that asyncio reads
    from subprocess import PIPE
else:
    from subprocess import PIPE, Popen

Process = Popen[bytes]

# The variables that a server needs to run. Any other may be a secret.
_BASIC_ENVIRONMENT = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "TMPDIR"),
    *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT"),
    *("PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
)


def spawn(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    inherit_env: bool = True,
) -> Process:
    """Start a command as the leader of a new process group, with pipes.

    `env` is added to its environment: all of ours with `inherit_env`, else only what a program
    needs to run, such as `PATH` and `HOME`.
    """
    inherited = {
        key: value
        for key, value in os.environ.items()
        if inherit_env or key.upper() in _BASIC_ENVIRONMENT or key.startswith("LC_")
    }
    try:
        return Popen(
            command,
            bufsize=0,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={**inherited, **(env or {})},
            cwd=cwd,
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError) as error:
        if error.filename == cwd:
            raise NotConnected(f"{command[0]!r} cannot be started: {error}") from error
        raise NotConnected(f"There is no command {command[0]!r}") from error
    except (OSError, ValueError) as error:
        raise NotConnected(f"{command[0]!r} cannot be started: {error}") from error


def signal_group(process: Process, *, force: bool) -> bool:
    """Terminate or kill a process and what it started; returns whether there was any of it."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL if force else signal.SIGTERM)
        elif process.returncode is not None:
            return False
        elif force:
            process.kill()
        else:
            process.terminate()
    except (ProcessLookupError, PermissionError):
        return False
    return True
