import asyncio
import inspect
import json
import os
import queue
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from transom.host.audit import AuditEvent, AuditLog, read_audit


def bytes_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def test_an_event_can_be_read_back_with_all_it_said(tmp_path: Path):
    log = AuditLog(tmp_path / "audit.sqlite")
    log.record(
        "call",
        "ok",
        server="orders",
        view="orders-1",
        tool="save",
        arguments={"name": "Zoë", "n": [1, None]},
        ms=1.5,
        by="orders-1",
        detail="fine",
    )
    [event] = await log.read()
    assert event.arguments == {"name": "Zoë", "n": [1, None]}
    assert (event.event, event.outcome, event.ms) == ("call", "ok", 1.5)
    assert (event.server, event.view, event.tool) == ("orders", "orders-1", "save")
    assert (event.by, event.detail) == ("orders-1", "fine")
    assert event.time.year >= 2024
    await log.aclose()


async def test_the_file_is_one_table_of_json_lines_that_any_tool_can_read(tmp_path: Path):
    path = tmp_path / "audit.sqlite"
    log = AuditLog(path)
    log.record("call", "ok", view="a-1", tool="x", arguments={"q": 'quote " and \\ slash'})
    await log.aclose()
    with sqlite3.connect(path) as connection:
        [(view, tool, line)] = connection.execute("SELECT view, tool, line FROM events").fetchall()
        [[mode]] = connection.execute("PRAGMA journal_mode").fetchall()
    connection.close()
    assert (view, tool, mode) == ("a-1", "x", "wal")
    assert json.loads(line)["arguments"] == {"q": 'quote " and \\ slash'}
    assert "\n" not in line


async def test_events_are_found_by_what_they_are_about(tmp_path: Path):
    path = tmp_path / "audit.sqlite"
    log = AuditLog(path)
    for n in range(10):
        log.record("call", "ok", server="s", view=f"s-{n % 2}", tool=f"t{n}")
    log.record("refusal", "refused", server="s", view="s-1", tool="t1")
    assert [event.tool for event in await log.read(view="s-1", event="call")] == [
        *("t1", "t3", "t5", "t7", "t9")
    ]
    assert [event.event for event in await log.read(tool="t1")] == ["call", "refusal"]
    assert [event.tool for event in await log.read(event="call", limit=2)] == ["t8", "t9"]
    everything = await log.read(server="s")
    assert await log.read(since=everything[-1].when + 1) == []
    assert read_audit(path, event="refusal") == everything[-1:]
    await log.aclose()


def test_reading_a_file_that_is_not_there_says_so(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="There is no audit at"):
        read_audit(tmp_path / "none.sqlite")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ends_with_it", [True, False])
def test_a_log_may_be_used_on_one_event_loop_after_the_other(ends_with_it: bool):
    lines = queue.Queue[int]()
    log = AuditLog(interval=0.0)
    log._db.write = lambda batch: lines.put(len(batch))  # type: ignore[union-attr,method-assign]

    async def use() -> None:
        log.record("view", "opened")
        if not ends_with_it:  # before the log has written it
            assert await asyncio.to_thread(lines.get) > 0

    for _ in range(3):
        asyncio.run(use())

    async def use_again() -> None:
        log.record("view", "opened")
        assert await asyncio.to_thread(lines.get) == (4 if ends_with_it else 1)

    asyncio.run(use_again())
    asyncio.run(log.aclose())


async def test_arguments_are_kept_as_they_were_when_the_call_began():
    log = AuditLog()
    arguments = {"list": [1]}
    log.record("call", "ok", arguments=arguments)
    arguments["list"].append(2)
    [event] = await log.read()
    assert event.arguments == {"list": [1]}
    await log.aclose()


async def test_arguments_that_are_too_long_or_not_json_are_left_out_with_a_word_about_it():
    assert inspect.signature(AuditLog).parameters["max_arguments"].default == 4096
    log = AuditLog(max_arguments=20)
    log.record("call", "ok", arguments={"text": "x" * 100})
    log.record("call", "ok", arguments={"thing": object()})
    first, second = await log.read()
    assert first.arguments == {"omitted": "111 bytes"}
    assert second.arguments == {"omitted": "not JSON"}
    await log.aclose()


async def test_an_event_that_is_not_unicode_keeps_no_other_from_the_file(tmp_path: Path):
    problems: list[BaseException] = []
    lines: list[str] = []
    for log in (
        AuditLog(tmp_path / "audit.sqlite", on_error=problems.append),
        AuditLog(lines.append, on_error=problems.append),
        AuditLog(redact=lambda event: event, on_error=problems.append),
    ):
        log.record("refusal", "refused", tool="cut \ud83d", detail="cut \ud83d not found")
        log.record_call("ok", "s", None, "cut \ud83d", {"a": 1}, 1.0)
        log.record("call", "ok", tool="after")
        events = await log.read() or [msgspec.json.decode(x, type=AuditEvent) for x in lines]
        assert [event.tool for event in events] == ["cut ?", "cut ?", "after"]
        assert events[0].detail == "cut ? not found"
        assert events[1].arguments == {"a": 1}
        await log.aclose()
    assert problems == []


async def test_what_a_hook_makes_no_json_of_keeps_no_other_from_the_file():
    problems: list[BaseException] = []

    def redact(event: AuditEvent) -> AuditEvent:
        return msgspec.structs.replace(event, arguments=object()) if event.arguments else event

    log = AuditLog(redact=redact, on_error=problems.append)
    log.record("call", "ok", tool="t", arguments={"a": 1})
    log.record("call", "ok", tool="after")
    first, second = await log.read()
    assert (first.tool, first.detail, second.tool) == (None, "redaction failed", "after")
    assert len(problems) == 1
    await log.aclose()


@pytest.mark.parametrize("arguments", [{"a": [1, "é"]}, {}, {"x": "y" * 100}, {"o": object()}])
@pytest.mark.parametrize("hook", [None, lambda event: event])
async def test_the_short_way_to_record_a_call_is_the_same_as_the_long_one(
    arguments: Any, hook: Any
):
    log = AuditLog(max_arguments=50, redact=hook)
    log.record_call("error", "s", "s-1", "t", arguments, 1.5, detail="why")
    given = {"server": "s", "view": "s-1", "tool": "t", "arguments": arguments}
    log.record("call", "error", **given, ms=1.5, detail="why")
    short, long = await log.read()
    assert msgspec.structs.replace(short, when=0) == msgspec.structs.replace(long, when=0)
    assert short.when <= long.when
    await log.aclose()
    log.record_call("ok", "s", None, "late", {}, 1.0)


async def test_the_short_way_reaches_a_callable_too():
    lines: list[str] = []
    AuditLog(lines.append).record_call("ok", "s", None, "t", {"a": 1}, 2.0)
    assert json.loads(lines[0])["arguments"] == {"a": 1}


async def test_what_the_hook_redacts_never_reaches_the_file(tmp_path: Path):
    def redact(event: AuditEvent) -> AuditEvent | None:
        if event.tool == "secret":
            return None
        if isinstance(event.arguments, dict) and "password" in event.arguments:
            arguments = {**event.arguments, "password": "***"}
            return msgspec.structs.replace(event, arguments=arguments)
        return event

    path = tmp_path / "audit.sqlite"
    log = AuditLog(path, redact=redact)
    log.record("call", "ok", tool="secret", arguments={"x": "hush"})
    log.record("call", "ok", tool="login", arguments={"user": "ann", "password": "hunter2"})
    [event] = await log.read()
    assert event.arguments == {"user": "ann", "password": "***"}
    await log.aclose()
    written = bytes_in(tmp_path)
    assert b"ann" in written
    assert b"hunter2" not in written
    assert b"hush" not in written


async def test_a_hook_that_fails_keeps_the_fact_and_hides_the_rest():
    problems: list[BaseException] = []
    log = AuditLog(redact=lambda event: event.arguments["missing"], on_error=problems.append)
    log.record("call", "ok", view="v-1", tool="t", arguments={"password": "hunter2"})
    [event] = await log.read()
    assert event == AuditEvent(event.when, "call", "ok", detail="redaction failed")
    assert isinstance(problems[0], KeyError)
    await log.aclose()


async def test_a_callable_gets_one_json_line_for_each_event():
    lines: list[str] = []
    log = AuditLog(lines.append)
    log.record("call", "ok", tool="t", arguments={"a": 1}, ms=2.0)
    log.record("refusal", "refused", tool="u")
    assert [json.loads(line)["event"] for line in lines] == ["call", "refusal"]
    assert json.loads(lines[0])["arguments"] == {"a": 1}
    assert set(json.loads(lines[0])) == {"when", "event", "outcome", "tool", "arguments", "ms"}
    assert await log.read() == []
    await log.aclose()


async def test_a_callable_that_fails_is_reported_once_until_it_works_again():
    problems: list[BaseException] = []
    broken = True

    def sink(line: str) -> None:
        if broken:
            raise OSError("disk full")

    log = AuditLog(sink, on_error=problems.append)
    for _ in range(3):
        log.record("call", "ok")
    assert [str(problem) for problem in problems] == ["disk full"]
    broken = False
    log.record("call", "ok")
    broken = True
    log.record("call", "ok")
    assert len(problems) == 2
    await log.aclose()


async def test_a_file_that_cannot_be_written_is_reported_once_and_breaks_nothing(tmp_path: Path):
    (tmp_path / "file").write_text("")
    problems: list[BaseException] = []
    log = AuditLog(tmp_path / "file" / "audit.sqlite", on_error=problems.append, interval=0)
    for _ in range(3):
        log.record("call", "ok")
        await log.flush()
    assert len(problems) == 1
    await log.aclose()


async def test_what_could_not_be_written_is_written_when_the_disk_is_back(tmp_path: Path):
    folder = tmp_path / "later"
    folder.write_text("in the way")
    problems: list[BaseException] = []
    log = AuditLog(folder / "audit.sqlite", on_error=problems.append)
    log.record("call", "ok", tool="first")
    await log.flush()
    assert len(problems) == 1
    folder.unlink()
    log.record("call", "ok", tool="second")
    assert [event.tool for event in await log.read()] == ["first", "second"]
    await log.aclose()


async def test_events_come_in_batches_and_none_is_lost_or_doubled(tmp_path: Path):
    log = AuditLog(tmp_path / "audit.sqlite", batch=7)
    for n in range(5000):
        log.record("call", "ok", tool=str(n))
        if n % 100 == 0:
            await asyncio.sleep(0)
    events = await log.read(limit=10_000)
    assert [event.tool for event in events] == [str(n) for n in range(5000)]
    await log.aclose()


async def test_the_oldest_events_go_when_there_are_too_many(tmp_path: Path):
    log = AuditLog(tmp_path / "audit.sqlite", max_rows=100)
    for n in range(1000):
        log.record("call", "ok", tool=str(n))
    events = await log.read(limit=10_000)
    assert [event.tool for event in events] == [str(n) for n in range(900, 1000)]
    await log.aclose()


async def test_the_file_stops_growing_at_its_cap(tmp_path: Path):
    log = AuditLog(tmp_path / "audit.sqlite", max_bytes=300_000)
    for n in range(3000):
        log.record("call", "ok", tool=str(n), arguments={"text": "x" * 1000})
        if n % 250 == 249:
            await log.flush()
    events = await log.read(limit=10_000)
    assert events[-1].tool == "2999"
    assert 50 < len(events) < 400
    await log.aclose()
    assert len(bytes_in(tmp_path)) < 1_000_000


async def test_when_the_disk_is_too_slow_the_oldest_waiting_events_are_given_up_and_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr("transom.host.audit._MAX_WAITING", 10)
    log = AuditLog(tmp_path / "audit.sqlite", batch=5)
    for n in range(25):
        log.record("call", "ok", tool=str(n))
    lost, *kept = await log.read()
    assert (lost.event, lost.detail) == ("lost", "15 events: the disk was too slow")
    assert [event.tool for event in kept] == [str(n) for n in range(15, 25)]
    await log.aclose()


async def test_recording_after_close_does_nothing(tmp_path: Path):
    log = AuditLog(tmp_path / "audit.sqlite")
    log.record("call", "ok", tool="kept")
    await log.aclose()
    log.record("call", "ok", tool="late")
    assert [event.tool for event in read_audit(tmp_path / "audit.sqlite")] == ["kept"]
    await log.aclose()


async def test_closing_ends_the_thread():
    before = set(threading.enumerate())  # other tests' logs may be about to end
    log = AuditLog()
    log.record("call", "ok")
    await log.flush()
    [thread] = [each for each in threading.enumerate() if each not in before]
    assert thread.name.startswith("transom-audit")
    await log.aclose()
    thread.join(5)
    assert not thread.is_alive()


@pytest.mark.processes
def test_a_crash_loses_at_most_the_last_batch(tmp_path: Path):
    path = tmp_path / "audit.sqlite"
    script = f"""
        import asyncio, sys
        from transom.host.audit import AuditLog

        async def main():
            log = AuditLog({str(path)!r})
            for n in range(100):
                log.record("call", "ok", tool=str(n))
            await log.flush()
            log.record("call", "ok", tool="never written")
            print("ready", flush=True)
            sys.stdin.read()

        asyncio.run(main())
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert [event.tool for event in read_audit(path)] == [str(n) for n in range(100)]


async def test_hosts_that_make_the_file_at_the_same_time_lose_nothing(tmp_path: Path):
    for number in range(60):
        path = tmp_path / f"{number}.sqlite"
        logs = [AuditLog(path) for _ in range(2)]
        for log in logs:
            log.record("call", "ok", server="kanban")
        await asyncio.gather(*(log.aclose() for log in logs))
        assert len(list(read_audit(path))) == 2


async def test_two_hosts_can_write_to_one_file(tmp_path: Path):
    path = tmp_path / "audit.sqlite"
    logs = [AuditLog(path, batch=10) for _ in range(2)]
    for n in range(200):
        for k, log in enumerate(logs):
            log.record("call", "ok", server=str(k), tool=str(n))
    for log in logs:
        await log.aclose()
    for k in range(2):
        tools = [event.tool for event in read_audit(path, server=str(k))]
        assert tools == [str(n) for n in range(200)]
