"""A gateway that is told to end before it serves anybody leaves nobody behind."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

STUBBORN = "import pathlib, os, signal, sys; pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))"
STUBBORN += "; sys.stdin.read(); signal.pause()"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_at_the_start_ends_the_server_that_was_started_first(
    number: signal.Signals, tmp_path: Path
):
    told = tmp_path / "pid"
    os.mkfifo(told)
    command = [sys.executable, "-c", STUBBORN, str(told)]
    gateway = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "transom", "gateway", "--no-open", "--", *command),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    server = int(await asyncio.to_thread(told.read_text))
    gateway.send_signal(number)
    out, err = await gateway.communicate()
    assert gateway.returncode == 0, err
    assert (out, err) == (b"", b"")
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)
