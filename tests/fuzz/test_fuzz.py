import gc
import resource
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz import fuzz_peer
from tests.fuzz.mutation import Mutator
from tests.joined import bare
from transom.protocol.peer import Peer
from transom.protocol.wire import Request

pytestmark = pytest.mark.load

MEGABYTE = 1024 * 1024


def test_a_short_fuzz_run_breaks_no_rule():
    assert fuzz_peer.fuzz(seed=20260126, count=10_000) >= 10_000


def test_a_seed_gives_the_same_messages_every_time():
    first, second = Mutator(7), Mutator(7)
    assert [first.message() for _ in range(200)] == [second.message() for _ in range(200)]


def test_the_messages_reach_every_kind_of_event():
    mutator = Mutator(1)
    kinds = Counter[str]()
    for _ in range(100):
        peer = Peer(max_incoming=4)
        for _ in range(4):
            peer.request("m", progress=True)
        kinds.update(type(peer.feed(mutator.message())).__name__ for _ in range(60))
    assert kinds.keys() == {
        *("Request", "Notification", "Response", "ErrorResponse"),
        *("Cancelled", "Progress", "Unreadable", "ProtocolViolation"),
    }
    assert min(kinds.values()) >= 10


def test_the_fuzzer_prints_its_seed_and_speed(capsys: pytest.CaptureFixture[str]):
    assert fuzz_peer.main(["--seconds", "0.2", "--seed", "5"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("seed 5, 0.2 s\n")
    assert out.endswith("/s, no rule broken\n")


def test_the_fuzzer_finds_a_peer_that_breaks_a_rule_and_shows_the_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    feed = Peer.feed

    def forgetful(self: Peer, data: bytes) -> object:
        event = feed(self, data)
        if b"ping" in data:
            self._incoming.clear()
        return event

    monkeypatch.setattr(Peer, "feed", forgetful)
    assert fuzz_peer.main(["--seconds", "20", "--seed", "5"]) == 1
    out = capsys.readouterr().out
    assert "BROKEN: lost count" in out
    assert "message = b" in out
    assert "--seed 5" in out


# --- many messages ---------------------------------------------------------------------------


def resident() -> int:
    """Bytes of memory this process holds now (its peak, where the system tells no more)."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


MARK = b"424242"


def hostile_messages(count: int) -> list[bytes]:
    """Messages with a mark where an id goes, so that each use of one can have another id."""
    mutator = Mutator(seed=2, ids=1)
    messages: list[bytes] = []
    while len(messages) < count:
        message = mutator.message()
        if len(message) < 1000 or len(messages) % 500 == 0:  # bombs, but few: they take time
            messages.append(message)
    for name in (b'"id"', b'"requestId"', b'"progressToken"'):
        messages = [m.replace(name + b": 0", name + b": " + MARK) for m in messages]
    return messages


@pytest.mark.nightly
@pytest.mark.timeout(240)  # some 3 s of one core, and many times that where others use it too
def test_four_hundred_thousand_hostile_messages_raise_nothing_and_leave_nothing_behind():
    messages = hostile_messages(4000)
    assert sum(MARK in message for message in messages) > 1000
    peer = Peer(max_incoming=256, max_outgoing=64)
    feed, fed, answered = peer.feed, 0, 0
    gc.collect()
    before = most = resident()
    while fed < 400_000:
        while peer.outgoing < peer.max_outgoing:
            peer.request("m", progress=True)
        # Half of the ids are new; others are in use, or those of our own requests.
        ids = (b'"%d"' % fed, b"7", b"%d" % (peer.next_id - 1))
        alive: list[int | str] = []
        for number, message in enumerate(messages):
            id = ids[number % 3] if number & 1 else b"%d" % (fed + number)
            event = feed(message.replace(MARK, id))
            if event.__class__ is Request:
                alive.append(event.id)
        fed += len(messages)
        assert peer.incoming == len(alive) <= peer.max_incoming
        answered += sum(peer.respond(id, b"{}") is not None for id in alive)
        assert peer.outgoing <= peer.max_outgoing
        if fed % 100_000 == 0:
            most = max(most, resident())
    assert answered > 20_000
    assert most - before < 20 * MEGABYTE


async def test_a_session_survives_what_a_peer_survives_and_still_answers():
    mutator = Mutator(seed=3)
    async with bare() as b:
        for number in range(5000):
            await b.wire.channel.send(mutator.message())
            if number % 100 == 0:
                b.wire.said()
        b.wire.said()
        await b.wire.say(id="are you there", method="ping")
        assert await b.wire.hear() == {"jsonrpc": "2.0", "id": "are you there", "result": {}}
        assert b.log.closed == []
        assert len(b.log.problems) > 1000
