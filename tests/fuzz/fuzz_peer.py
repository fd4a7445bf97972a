"""Feed a peer hostile messages for as long as you like, and check its rules after each.

    python -m tests.fuzz.fuzz_peer --seconds 120 [--seed N]

On failure it prints the message that did it as Python bytes, and the seed to repeat the run.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence

from tests.fuzz.mutation import Mutator
from transom.errors import MessageRefused
from transom.protocol import wire
from transom.protocol.peer import Cancelled, Event, Peer, Progress, ProtocolViolation, Unreadable

Key = tuple[type, int | str]


class Broken(AssertionError):
    """The peer broke a rule. `message` is what it was fed last."""

    def __init__(self, message: bytes, reason: str) -> None:
        super().__init__(f"{reason}\nmessage = {message!r}")
        self.message = message


class WatchedPeer:
    """A small peer, and what it must know if it keeps its rules."""

    def __init__(self, rng: random.Random) -> None:
        self.random = rng
        self.peer = Peer(max_bytes=20_000, max_depth=50, max_incoming=4, max_outgoing=4)
        self.asked: set[int | str] = set()
        self.serving: dict[Key, int | str] = {}

    def feed(self, data: bytes) -> None:
        try:
            event = self.peer.feed(data)
        except BaseException as error:
            raise Broken(data, f"feed raised {error!r}") from error
        try:
            self.check(event)
            self.check_reading(data)
        except AssertionError as error:
            raise Broken(data, f"{error or 'a rule'}, after {event!r}") from error

    def check(self, event: Event) -> None:
        match event:
            case wire.Response() | wire.ErrorResponse() | Unreadable():
                assert event.id in self.asked, "an answer to nothing"
                self.asked.discard(event.id)
            case wire.Request():
                key = (type(event.id), event.id)
                assert key not in self.serving, "an id in use was accepted"
                self.serving[key] = event.id
            case Cancelled():
                assert (type(event.id), event.id) in self.serving, "a cancellation of nothing"
            case Progress():
                assert event.id in self.asked, "progress of nothing"
            case ProtocolViolation():
                if event.reply is not None:
                    reply = wire.decode(event.reply)
                    assert isinstance(reply, wire.ErrorResponse), "a reply that is no error"
                    assert (type(reply.id), reply.id) not in self.serving, "a second answer"
            case wire.Notification():
                pass
            case _:
                raise AssertionError("no event at all")
        assert self.peer.outgoing == len(self.asked) <= self.peer.max_outgoing, "lost count"
        assert self.peer.incoming == len(self.serving) <= self.peer.max_incoming, "lost count"

    def check_reading(self, data: bytes) -> None:
        """What we accept is JSON for everyone, and what we write is accepted."""
        try:
            message = wire.decode(data)
        except MessageRefused:
            return
        value = json.loads(data.decode("utf-8"), parse_int=str)
        assert value["jsonrpc"] == "2.0", "another reader sees something else"
        if isinstance(message, wire.Request):
            again = wire.encode_request(message.id, message.method, message.params)  # type: ignore[arg-type]
            assert isinstance(wire.decode(again), wire.Request), "we refuse what we write"

    def act(self) -> None:
        """Do one of the things this side may do."""
        rng = self.random
        if len(self.asked) < self.peer.max_outgoing and rng.random() < 0.5:
            id, _ = self.peer.request("m", b"{}", progress=rng.random() < 0.5)
            self.asked.add(id)
        elif self.asked and rng.random() < 0.1:
            id = rng.choice(sorted(self.asked, key=str))
            assert self.peer.cancel(id) is not None, "a request of ours was forgotten"
            self.asked.discard(id)
        if self.serving and rng.random() < 0.3:
            id = self.serving.pop(rng.choice(list(self.serving)))
            if rng.random() < 0.5:
                self.peer.respond(id, b"{}")
            else:
                self.peer.fail(id, -1, "no")
            assert self.peer.respond(id, b"{}") is None, "answered twice"


def fuzz(seed: int, *, count: int | None = None, seconds: float | None = None) -> int:
    """Feed `count` messages, or as many as there is time for; how many it was.

    Raises:
        Broken: the peer broke a rule.
    """
    mutator = Mutator(seed)
    deadline = None if seconds is None else time.monotonic() + seconds
    fed = 0
    while (count is None or fed < count) and (deadline is None or time.monotonic() < deadline):
        watched = WatchedPeer(mutator.random)
        # Ids begin at 0 again with each peer, so that forged answers often hit.
        for _ in range(50):
            watched.act()
            watched.feed(mutator.message())
            fed += 1
    return fed


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options = parser.parse_args(arguments)
    say = sys.stdout.write
    say(f"seed {options.seed}, {options.seconds:g} s\n")
    started = time.monotonic()
    try:
        fed = fuzz(options.seed, seconds=options.seconds)
    except Broken as broken:
        say(f"BROKEN: {broken}\n")
        say(f"again: python -m tests.fuzz.fuzz_peer --seed {options.seed}\n")
        return 1
    say(f"{fed} messages, {fed / (time.monotonic() - started):.0f}/s, no rule broken\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
