"""A gateway that is told to end before it serves anybody leaves nobody behind."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.running import TRANSOM, transom
from transom.gateway.stdio import on_signals

STUBBORN = "import pathlib, os, signal, sys; pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))"
STUBBORN += "; sys.stdin.read(); signal.pause()"


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_at_the_start_ends_the_server_that_was_started_first(
    number: signal.Signals, tmp_path: Path
):
    told = tmp_path / "pid"
    os.mkfifo(told)
    command = [sys.executable, "-c", STUBBORN, str(told)]
    gateway = await asyncio.create_subprocess_exec(
        *(*TRANSOM, "gateway", "--no-open", "--", *command),
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


async def test_a_signal_that_whoever_started_it_ignores_is_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    try:
        on_signals(lambda: None)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(number)


def test_a_record_is_of_one_client():
    ran = transom("gateway", "--record", "record.jsonl", "--http", "0", "--", "true")
    assert ran.returncode == 2
    assert "--record is for one client, on standard input: leave out --http" in ran.stderr
