"""A gateway that is told to end before it serves anybody leaves nobody behind."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.running import TRANSOM, transom
from tests.gateway.raw_client import GATEWAY, ROOT, raw_client
from transom.gateway.stdio import on_signals

STUBBORN = "import pathlib, os, signal, sys; pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))"
STUBBORN += "; sys.stdin.read(); signal.pause()"

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "tests", "version": "1"},
}


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


@pytest.mark.processes
@pytest.mark.parametrize(
    "view", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["server", "view"]
)
async def test_what_a_gateway_recorded_is_replayed(view: bool, tmp_path: Path):
    record, orders = tmp_path / "record.jsonl", ROOT / "examples" / "orders.py"
    options = [*["--headless"] * view, "--record", str(record)]
    async with raw_client([*GATEWAY, *options, "--", sys.executable, str(orders)]) as client:
        await client.ask(1, "initialize", HELLO)
        client.tell("notifications/initialized")
        tool = "show_orders" if view else "count_orders"
        await client.ask(2, "tools/call", {"name": tool, "arguments": {"status": "open"}})
        if view:
            picked = {"ids": ["A-1041"]}
            call = {"view_id": "orders-1", "name": "select_orders", "arguments": picked}
            params = {"name": "call_view_tool", "arguments": call}
            called = await client.ask(3, "tools/call", params)
            assert "isError" not in called["result"], called
    words = ["--view"] * view
    ran = await asyncio.to_thread(transom, "replay", *words, str(record), str(orders))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Nothing differs in" in ran.stdout
