import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from tests.gateway.raw_client import alive
from transom.connections.process import ServerProcess
from transom.connections.spawn import spawn
from transom.errors import ChannelClosed, NotConnected

pytestmark = pytest.mark.processes


async def started(script: str, *arguments: str, **options: object) -> ServerProcess:
    command = [sys.executable, "-c", script, *arguments]
    return await ServerProcess.start(command, **options)  # type: ignore[arg-type]


async def test_messages_pass_both_ways_and_closing_its_input_ends_it():
    script = "import sys\nfor line in sys.stdin: print('got', line.strip(), flush=True)"
    process = await started(script)
    await process.send(b'{"a":\n1}')
    assert await process.receive() == b'got {"a": 1}'
    assert process.send_nowait(b"x")
    assert await process.receive() == b"got x"
    await process.aclose()
    await process.aclose()
    assert not alive(process.pid)
    with pytest.raises(ChannelClosed):
        await process.receive()


async def test_what_it_still_answers_when_its_input_ends_finds_a_reader(tmp_path: Path):
    # As a server does that has a subscription open: its last words are the subscription's result.
    wrote = tmp_path / "wrote"
    script = (
        "import sys\nprint('up', flush=True)\nsys.stdin.read()\nprint('bye', flush=True)\n"
        "open(sys.argv[1], 'w').close()"
    )
    process = await started(script, str(wrote))
    assert await process.receive() == b"up"
    reading = asyncio.ensure_future(process.receive())
    await process.aclose()
    assert await reading == b"bye"
    assert wrote.exists()


@pytest.mark.parametrize("command", [["no-such-command-anywhere"], ["/"]])
async def test_what_cannot_be_started_is_not_connected(command: list[str]):
    with pytest.raises(NotConnected, match=command[0]):
        await ServerProcess.start(command)


async def test_a_server_that_dies_says_how_and_with_which_last_words():
    process = await started(
        "import sys; sys.stderr.write('one\\ntwo\\n\\nthree\\nfour\\n'); sys.exit(3)"
    )
    how = "it exited with code 3; its last output: two / three / four"
    with pytest.raises(ChannelClosed, match=how):
        await process.receive()
    assert process.send_nowait(b"x") is False
    with pytest.raises(ChannelClosed, match=how):
        await process.send(b"x")
    await process.aclose()
    process = await started("import time; time.sleep(600)")
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(ChannelClosed, match="it was ended by SIGKILL"):
        await process.receive()
    await process.aclose()


async def test_one_that_crashes_is_gone_although_a_child_holds_its_pipes(tmp_path: Path):
    script = (
        "import os, subprocess, sys\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "print('last', flush=True)\n"
        "os._exit(1)\n"
    )
    process = await started(script)
    assert await process.receive() == b"last"
    with pytest.raises(ChannelClosed, match="it exited with code 1"):
        await process.receive()
    await process.aclose()
    async with asyncio.timeout(20):
        # Killed, but there is no event for the end of a stranger's process.
        while alive(int((tmp_path / "pid").read_text())):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("new_event_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_end_of_its_output_is_noticed_while_it_lives(
    new_event_loop: Callable[[], asyncio.AbstractEventLoop],
):
    async def receive_all() -> None:
        script = "import os, time; os.write(1, b'last\\n'); os.close(1); time.sleep(600)"
        process = await started(script)
        try:
            assert await process.receive() == b"last"
            with pytest.raises(ChannelClosed, match="The other side closed the channel"):
                async with asyncio.timeout(20):
                    await process.receive()
            assert alive(process.pid)
        finally:
            await process.aclose()
        assert not alive(process.pid)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(receive_all())


@pytest.mark.parametrize("new_event_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_one_whose_start_is_cancelled_is_ended_and_its_pipes_are_closed(
    new_event_loop: Callable[[], asyncio.AbstractEventLoop],
):
    async def cancel(turns: int) -> None:
        process = spawn([sys.executable, "-c", "import time; time.sleep(600)"])
        adopting = asyncio.create_task(ServerProcess.adopt(process))
        for _ in range(turns):
            await asyncio.sleep(0)
        adopting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adopting
        assert process.wait() < 0
        await asyncio.sleep(0)  # asyncio closes a file in the turn after its transport
        pipes = (process.stdin, process.stdout, process.stderr)
        assert [pipe.closed for pipe in pipes if pipe is not None] == [True] * 3

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        for turns in (1, 2, 3):
            runner.run(cancel(turns))


async def test_a_server_that_will_not_leave_is_made_to():
    stubborn = (
        "import signal, time\n"
        "for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):\n"
        "    signal.signal(number, signal.SIG_IGN)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    process = await started(stubborn)
    assert await process.receive() == b"ready"
    await process.aclose()
    assert not alive(process.pid)


@pytest.mark.parametrize("where", ["head", "tail"])
async def test_a_line_that_is_too_long_is_dropped_and_its_request_gets_an_error(where: str):
    script = (
        "import sys\n"
        "result = '\"result\": {\"text\": \"' + 'x' * 1_000_000 + '\"}'\n"
        "parts = ['\"id\": 7', result] if sys.argv[1] == 'head' else [result, '\"id\": 7']\n"
        "print('{\"jsonrpc\": \"2.0\", ' + ', '.join(parts) + '}')\n"
        "print('{\"method\": \"' + 'x' * 1_000_000 + '\"}')\n"
        "print('x' * 1000)\n"
        "print('x' * 1001)\n"
        "print('last', flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = await started(script, where, max_line=1000)
    error = {"code": -32000, "message": "The answer is longer than 0.000953674 MB"}
    assert json.loads(await process.receive()) == {"jsonrpc": "2.0", "id": 7, "error": error}
    assert await process.receive() == b"x" * 1000
    assert await process.receive() == b"last"
    await process.aclose()


async def test_a_line_that_is_not_utf_8_is_handed_on_and_so_are_those_after_it():
    script = "import os, sys\nos.write(1, b'\\xff\\xfe\\n\\n{}\\n')\nsys.stdin.read()"
    process = await started(script)
    assert await process.receive() == b"\xff\xfe"
    assert await process.receive() == b"{}"
    await process.aclose()


async def test_what_it_writes_to_standard_error_goes_to_ours(capfd: pytest.CaptureFixture[str]):
    process = await started("import sys; print('{}', flush=True); sys.stderr.write('a word\\n')")
    assert await process.receive() == b"{}"
    await process.aclose()
    seen = ""
    while "a word" not in seen:
        seen += capfd.readouterr().err
        await asyncio.sleep(0.01)


async def test_a_standard_error_that_nobody_reads_blocks_nothing():
    """A process with a full pipe for its standard error goes on talking to a chatty server."""
    chatty = (
        "import sys\nfor _ in range(3000): sys.stderr.write('x' * 1000)\nprint('done', flush=True)"
    )
    ours = (
        "import asyncio, sys\n"
        "from transom.connections.process import ServerProcess\n"
        "async def main():\n"
        "    process = await ServerProcess.start([sys.executable, '-c', sys.argv[1]])\n"
        "    print((await process.receive()).decode(), flush=True)\n"
        "    await process.aclose()\n"
        "asyncio.run(main())\n"
    )
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ours, chatty),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert running.stdout is not None
    assert (await running.stdout.readline()).strip() == b"done"
    assert await asyncio.wait_for(running.stdout.read(), 30) == b""
    await asyncio.wait_for(running.communicate(), 30)  # what it wrote to its standard error
    assert running.returncode == 0


async def test_the_environment_can_be_kept_from_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OUR_SECRET", "s")
    script = (
        "from os import environ\n"
        "given = environ.get('OUR_SECRET'), environ.get('GIVEN'), 'PATH' in environ\n"
        "print(*given, flush=True)\n"
    )
    for inherit, expected in ((True, b"s g True"), (False, b"None g True")):
        process = await started(script, env={"GIVEN": "g"}, inherit_env=inherit)
        assert await process.receive() == expected
        await process.aclose()


async def test_without_process_groups_the_process_itself_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "killpg")
    monkeypatch.setattr("transom.connections.process._LEAVES_WITHIN", 0.1)
    process = await started("import time; print('ready', flush=True); time.sleep(600)")
    await process.receive()
    await process.aclose()
    assert not alive(process.pid)


CRASH = """\
import logging, sys, time
logging.basicConfig(level=logging.INFO)
logging.info("starting\\n  with more")
from json import loads
def read():
    return loads("{")
read()
"""


async def test_one_that_dies_of_an_exception_says_which_and_where_the_users_own_line_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    script = tmp_path / "crash.py"
    script.write_text(CRASH)
    process = await ServerProcess.start([sys.executable, str(script)])
    with pytest.raises(ChannelClosed) as caught:
        await process.receive()
    await process.aclose()
    assert str(caught.value) == (
        "it exited with code 1: JSONDecodeError: Expecting property name enclosed in "
        f'double quotes: line 1 column 2 (char 1) ({script}, line 6: return loads("{{"))'
    )
    assert capfd.readouterr().err == ""  # the error says it: it is not printed as well


LOGGING = """\
import sys
sys.stderr.write('''\\
[11/16/26 01:35:03] INFO     Starting server 'fast' with        transport.py:241
                             transport 'stdio'
                    WARNING  Careful                              server.py:1501
                             now
INFO:     Uvicorn running
2026-11-16 01:35:03,123 - root - INFO - no level where it should be
2026-11-16 01:35:03,123 DEBUG details
Information for everyone
''')
sys.stderr.flush()
print("{}", flush=True)
sys.stdin.read()
"""


async def test_what_a_server_logs_as_routine_is_not_printed(capfd: pytest.CaptureFixture[str]):
    process = await started(LOGGING)
    assert await process.receive() == b"{}"
    await process.aclose()
    async with asyncio.timeout(20):
        err = ""
        while "everyone" not in err:  # a thread writes it
            await asyncio.sleep(0.01)
            err += capfd.readouterr().err
    assert err == (
        "                    WARNING  Careful                              server.py:1501\n"
        "                             now\n"
        "2026-11-16 01:35:03,123 - root - INFO - no level where it should be\n"
        "Information for everyone\n"
    )
