"""Whatever arrives, in whatever order: the peer stays within its rules and its bounds."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.protocol.hostile import (
    anything,
    as_json,
    bad_requests,
    ids_of_any_type,
    requests,
    shaped_messages,
)
from transom.errors import TooManyRequests
from transom.protocol import wire
from transom.protocol.peer import Cancelled, Event, Peer, Progress, ProtocolViolation, Unreadable

pytestmark = pytest.mark.load

Key = tuple[type, int | str]
"""An id that tells 1 from "1" and from True."""


def key(id: int | str) -> Key:
    return type(id), id


def small_peer() -> Peer:
    return Peer(max_bytes=4096, max_depth=12, max_incoming=2, max_outgoing=3)


def check_bounds(peer: Peer) -> None:
    assert peer.incoming <= peer.max_incoming
    assert peer.outgoing <= peer.max_outgoing
    assert vars(peer).keys() == vars(Peer()).keys(), "nothing else is kept"


# --- one peer, anything fed ------------------------------------------------------------------


@given(st.lists(anything, max_size=10))
def test_feed_takes_anything_and_never_raises(messages: list[bytes]):
    peer = small_peer()
    for data in messages:
        assert isinstance(peer.feed(data), Event)
        check_bounds(peer)


@given(st.lists(shaped_messages.map(as_json), max_size=8), st.integers(1, 3))
def test_answers_end_only_what_was_asked_and_only_once(messages: list[bytes], asked: int):
    peer = small_peer()
    ids = {peer.request("m")[0] for _ in range(asked)}
    ended = Counter[int | str]()
    for data in messages:
        event = peer.feed(data)
        if isinstance(event, wire.Response | wire.ErrorResponse | Unreadable):
            ended[event.id] += 1
            assert event.id in ids
    assert all(times == 1 for times in ended.values())
    assert peer.outgoing == asked - len(ended)


@given(
    st.permutations(list(range(6))),
    st.lists(st.sampled_from(["answer", "twice", "error", "drop"]), min_size=6, max_size=6),
)
def test_reordered_doubled_and_dropped_answers_reach_their_own_request(
    order: list[int], fates: list[str]
):
    peer = Peer()
    ids = [peer.request("m")[0] for _ in range(6)]
    for index in order:
        id, fate = ids[index], fates[index]
        good = wire.encode_response(id, b'{"n":%d}' % index)
        if fate in {"answer", "twice"}:
            event = peer.feed(good)
            assert isinstance(event, wire.Response)
            assert msgspec.json.decode(event.result) == {"n": index}
        if fate == "twice":
            assert isinstance(peer.feed(good), ProtocolViolation)
        if fate == "error":
            assert isinstance(peer.feed(wire.encode_error(id, 1, "no")), wire.ErrorResponse)
            assert isinstance(peer.feed(good), ProtocolViolation)
    assert peer.outgoing == fates.count("drop")


few_ids = st.sampled_from([0, 1, 2, "0", "1", "", -1])


@given(
    st.lists(requests(few_ids) | bad_requests(few_ids) | anything, min_size=4, max_size=12),
    st.data(),
)
def test_no_request_is_answered_twice(messages: list[bytes], draw: st.DataObject):
    peer = small_peer()
    open_requests: dict[Key, int | str] = {}
    for data in messages:
        event = peer.feed(data)
        if isinstance(event, wire.Request):
            assert key(event.id) not in open_requests
            open_requests[key(event.id)] = event.id
        if isinstance(event, ProtocolViolation) and event.reply is not None:
            reply = wire.decode(event.reply)
            assert isinstance(reply, wire.ErrorResponse)
            assert key(reply.id) not in open_requests, "it would be taken for the first's answer"
        if open_requests and draw.draw(st.integers(0, 3)) == 3:
            chosen = draw.draw(st.sampled_from(list(open_requests.values())))
            answers = [peer.respond(chosen, b"{}"), peer.fail(chosen, 1, "no")]
            assert answers[1] is None
            assert answers[0] is None or key(wire.decode(answers[0]).id) == key(chosen)
            del open_requests[key(chosen)]
        assert peer.incoming == len(open_requests) <= peer.max_incoming


@given(ids_of_any_type)
def test_only_the_exact_id_ends_a_request(id: object):
    peer = Peer()
    ours, _ = peer.request("m")
    event = peer.feed(as_json({"jsonrpc": "2.0", "id": id, "result": {}}))
    assert isinstance(event, wire.Response) == (type(id) is int and id == ours)
    assert peer.outgoing == (0 if isinstance(event, wire.Response) else 1)


# --- two peers, a bad pipe -------------------------------------------------------------------

SIDES = ("left", "right")
OTHER = {"left": "right", "right": "left"}
sides = st.sampled_from(SIDES)


class TwoPeersOnABadPipe(RuleBasedStateMachine):
    """Everything one peer says may be lost, doubled, reordered, damaged or forged on its way."""

    @initialize()
    def connect(self) -> None:
        self.peers = {side: small_peer() for side in SIDES}
        self.on_the_way: dict[str, list[bytes]] = {side: [] for side in SIDES}  # to this side
        self.waiting: dict[str, set[int]] = {side: set() for side in SIDES}
        self.endings: Counter[tuple[str, int]] = Counter()
        self.asked: list[tuple[str, int]] = []
        self.serving: dict[str, dict[Key, int | str]] = {side: {} for side in SIDES}
        self.cancelled: dict[str, set[Key]] = {side: set() for side in SIDES}

    def send(self, side: str, data: bytes | None) -> None:
        if data is not None:
            self.on_the_way[OTHER[side]].append(data)

    def end(self, side: str, id: int) -> None:
        assert id in self.waiting[side]
        self.waiting[side].discard(id)
        self.endings[side, id] += 1

    def heard(self, side: str, event: Event) -> None:
        match event:
            case wire.Response() | wire.ErrorResponse() | Unreadable():
                self.end(side, event.id)
            case wire.Request():
                assert key(event.id) not in self.serving[side]
                self.serving[side][key(event.id)] = event.id
            case ProtocolViolation() if event.reply is not None:
                assert key(wire.decode(event.reply).id) not in self.serving[side]
                self.send(side, event.reply)
            case Progress():
                assert event.id in self.waiting[side]
            case Cancelled():
                assert key(event.id) in self.serving[side]
                assert key(event.id) not in self.cancelled[side]
                self.cancelled[side].add(key(event.id))

    # --- what the peers do ---

    @rule(side=sides, progress=st.booleans())
    def ask(self, side: str, progress: bool) -> None:
        peer = self.peers[side]
        if peer.outgoing == peer.max_outgoing:
            try:
                peer.request("m")
            except TooManyRequests:
                return
            raise AssertionError("one too many was let through")
        id, data = peer.request("m", b'{"a":1}', progress=progress)
        self.asked.append((side, id))
        self.waiting[side].add(id)
        self.send(side, data)

    @rule(side=sides)
    def tell(self, side: str) -> None:
        self.send(side, self.peers[side].notify("m"))

    @precondition(lambda self: any(self.serving.values()))
    @rule(draw=st.data(), well=st.booleans())
    def answer(self, draw: st.DataObject, well: bool) -> None:
        side = draw.draw(st.sampled_from([side for side in SIDES if self.serving[side]]))
        id = self.serving[side].pop(draw.draw(st.sampled_from(list(self.serving[side]))))
        peer = self.peers[side]
        reply = peer.respond(id, b"{}") if well else peer.fail(id, -1, "no")
        assert (reply is None) == (key(id) in self.cancelled[side])
        self.cancelled[side].discard(key(id))
        self.send(side, reply)
        assert peer.respond(id, b"{}") is None
        assert peer.fail(id, -1, "no") is None

    @precondition(lambda self: any(self.serving.values()))
    @rule(draw=st.data(), progress=st.integers(0, 9))
    def report_progress(self, draw: st.DataObject, progress: int) -> None:
        side = draw.draw(st.sampled_from([side for side in SIDES if self.serving[side]]))
        token = draw.draw(st.sampled_from(list(self.serving[side].values())))
        params = msgspec.json.encode({"progressToken": token, "progress": progress})
        self.send(side, self.peers[side].notify("notifications/progress", params))

    @precondition(lambda self: any(self.waiting.values()))
    @rule(draw=st.data())
    def cancel(self, draw: st.DataObject) -> None:
        side = draw.draw(st.sampled_from([side for side in SIDES if self.waiting[side]]))
        id = draw.draw(st.sampled_from(sorted(self.waiting[side])))
        notice = self.peers[side].cancel(id, "enough")
        assert notice is not None
        self.end(side, id)
        self.send(side, notice)
        assert self.peers[side].cancel(id) is None

    # --- what the pipe does ---

    def take(self, draw: st.DataObject, side: str) -> bytes | None:
        queue = self.on_the_way[side]
        return queue.pop(draw.draw(st.integers(0, len(queue) - 1))) if queue else None

    @rule(draw=st.data(), side=sides, times=st.integers(0, 2))
    def deliver_in_any_order_doubled_or_not_at_all(
        self, draw: st.DataObject, side: str, times: int
    ) -> None:
        data = self.take(draw, side)
        for _ in range(times if data is not None else 0):
            self.heard(side, self.peers[side].feed(data))

    @rule(draw=st.data(), side=sides, junk=st.binary(min_size=1, max_size=2))
    def deliver_damaged(self, draw: st.DataObject, side: str, junk: bytes) -> None:
        data = self.take(draw, side)
        if data is not None:
            place = draw.draw(st.integers(0, len(data) - 1))
            self.heard(side, self.peers[side].feed(data[:place] + junk + data[place + 1 :]))

    @rule(side=sides, data=anything | requests(few_ids) | bad_requests(few_ids))
    def deliver_forged(self, side: str, data: bytes) -> None:
        self.heard(side, self.peers[side].feed(data))

    @precondition(lambda self: any(self.serving.values()))
    @rule(draw=st.data(), times=st.integers(1, 2))
    def deliver_forged_cancellations(self, draw: st.DataObject, times: int) -> None:
        side = draw.draw(st.sampled_from([side for side in SIDES if self.serving[side]]))
        id = draw.draw(st.sampled_from(list(self.serving[side].values())))
        notice = wire.encode_notification(
            "notifications/cancelled", msgspec.json.encode({"requestId": id})
        )
        for _ in range(times):
            self.heard(side, self.peers[side].feed(notice))

    # --- what always holds ---

    @invariant()
    def both_are_within_their_bounds(self) -> None:
        for side in SIDES:
            check_bounds(self.peers[side])

    @invariant()
    def both_know_exactly_what_is_open(self) -> None:
        for side in SIDES:
            assert self.peers[side].outgoing == len(self.waiting[side])
            assert self.peers[side].incoming == len(self.serving[side])

    @invariant()
    def no_request_has_ended_twice(self) -> None:
        assert all(times == 1 for times in self.endings.values())

    def teardown(self) -> None:
        if not hasattr(self, "peers"):
            return
        for side in SIDES:
            self.peers[side].close()
            for id in list(self.waiting[side]):
                self.end(side, id)  # its end is the close
            assert (self.peers[side].outgoing, self.peers[side].incoming) == (0, 0)
            for data in self.on_the_way[side]:
                assert isinstance(self.peers[side].feed(data), ProtocolViolation)
            for id in self.serving[side].values():
                assert self.peers[side].respond(id, b"{}") is None
        assert self.endings == Counter(self.asked), "every request has ended exactly once"


TestTwoPeersOnABadPipe = TwoPeersOnABadPipe.TestCase
TestTwoPeersOnABadPipe.settings = settings(max_examples=30, stateful_step_count=50)
