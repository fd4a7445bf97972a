import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.errors import PeerError
from transom.web.page_link import Link, LinkLimits


class Page:
    """A page's end of a link, in Python: what link.ts does."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.socket: list[str] | None = None
        self.received = 0
        self.sent = 0
        self.kept: list[tuple[int, str]] = []
        self.frames: list[tuple[str, str]] = []

    def connect(self) -> None:
        self.socket = []
        self.link.attach(self.socket.append, self.received)
        self.kept = [entry for entry in self.kept if entry[0] > self.link.received]
        for _, frame in self.kept:
            self.link.feed(frame)

    def drop(self) -> None:
        assert self.socket is not None
        self.link.detach(self.socket.append)
        self.socket = None

    def send(self, view: str, text: str) -> None:
        self.sent += 1
        frame = f"{self.sent} {view}\n{text}"
        self.kept.append((self.sent, frame))
        if self.socket is not None:
            self.link.feed(frame)

    def read(self, count: int | None = None, *, acknowledge: bool = True) -> None:
        """Take what is on the socket; what is behind `count` is lost with it."""
        for text in (self.socket or [])[:count]:
            head, newline, message = text.partition("\n")
            number, _, view = head.partition(" ")
            if newline and int(number) == self.received + 1:
                self.received += 1
                self.frames.append((view, message))
        if self.socket is not None:
            self.socket.clear()
            if acknowledge:
                self.link.feed(str(self.received))


class Ends:
    def __init__(self) -> None:
        self.frames: list[tuple[str, bytes]] = []
        self.over: list[str] = []
        self.link = Link(
            lambda view, message: self.frames.append((view, message)),
            self.over.append,
            limits=LinkLimits(high_water=100, max_waiting=10_000),
        )
        self.page = Page(self.link)


@pytest.fixture
async def ends() -> Iterator[Ends]:
    return Ends()


async def test_frames_arrive_in_order_with_their_view(ends: Ends) -> None:
    ends.page.connect()
    ends.link.post("a", b'{"n":1}')
    ends.link.post("-", b"{}")
    ends.page.read()
    ends.page.send("b", '{"m":1}')
    assert ends.page.frames == [("a", '{"n":1}'), ("-", "{}")]
    assert ends.frames == [("b", b'{"m":1}')]


async def test_what_was_lost_with_a_socket_is_sent_again_and_comes_once(ends: Ends) -> None:
    ends.page.connect()
    for n in range(4):
        ends.link.post("a", b"%d" % n)
    ends.page.read(2, acknowledge=False)
    ends.page.drop()
    ends.link.post("a", b"4")
    ends.page.send("a", "kept")
    ends.page.connect()
    ends.page.read()
    assert [message for _, message in ends.page.frames] == ["0", "1", "2", "3", "4"]
    assert ends.frames == [("a", b"kept")]


async def test_what_waits_is_counted_in_bytes_as_it_is_sent_whatever_its_characters(
    ends: Ends,
) -> None:
    ends.page.connect()
    ends.link.post("a", b"x" * 4000 + "😀".encode())  # as a text, four bytes for every character
    ends.link.post("a", b"x" * 4000)
    assert ends.over == []
    ends.page.drop()
    ends.page.connect()
    ends.page.read()
    assert [message[-1] for _, message in ends.page.frames] == ["😀", "x"]
    for _ in range(3):
        ends.link.post("a", "😀".encode() * 1000)
    assert ends.over != []


async def test_a_frame_that_was_there_already_is_dropped(ends: Ends) -> None:
    ends.page.connect()
    ends.link.feed("1 a\nx")
    ends.link.feed("1 a\nx")
    assert ends.frames == [("a", b"x")]


async def test_a_page_that_has_no_news_is_answered_so_that_it_knows_somebody_is_there(
    ends: Ends,
) -> None:
    answers: asyncio.Queue[str] = asyncio.Queue()
    ends.link.attach(answers.put_nowait, 0)
    ends.link.post("a", b"x")
    ends.link.feed("1")
    assert await answers.get() == "1 a\nx"
    for _ in range(1000):
        ends.link.feed("1")
    assert await answers.get() == "0"
    assert answers.empty()  # one for all that came together


async def test_a_page_that_is_back_on_another_socket_has_that_one_alone(ends: Ends) -> None:
    first: list[str] = []
    ends.link.attach(lambda _: None, 0, first.append)
    ends.link.attach(lambda _: None, 0, first.append)
    assert first == ["the page is back on another socket"]
    assert ends.over == []


@pytest.mark.parametrize("text", ["", "x", "2 a\nskipped", "-1 a\nx", "7", "²", "1" * 20, "1 a"])
async def test_what_no_page_sends_is_refused(ends: Ends, text: str) -> None:
    ends.page.connect()
    with pytest.raises(PeerError):
        ends.link.feed(text)
    assert ends.frames == []


async def test_a_page_that_claims_what_was_never_sent_is_refused(ends: Ends) -> None:
    with pytest.raises(PeerError, match="never sent"):
        ends.link.attach(print, 3)


async def test_senders_wait_while_the_page_is_slow(ends: Ends) -> None:
    ends.page.connect()
    ends.link.post("a", b"x" * 200)
    assert ends.link.full
    waiting = asyncio.ensure_future(ends.link.room("a"))
    await asyncio.sleep(0)
    assert not waiting.done()
    ends.page.read()
    await waiting
    assert not ends.link.full


async def test_a_page_that_takes_nothing_is_given_up(ends: Ends) -> None:
    ends.page.connect()
    waiting = None
    for _ in range(200):
        ends.link.post("a", b"x" * 100)
        waiting = waiting or asyncio.ensure_future(ends.link.room("a"))
    assert waiting is not None
    await waiting
    assert ends.over == ["the page does not read what is sent to it"]
    ends.link.post("a", b"more")
    assert ends.over == ["the page does not read what is sent to it"]


async def test_a_page_that_stays_away_is_given_up() -> None:
    over = asyncio.Event()
    link = Link(lambda *_: None, lambda _: over.set(), limits=LinkLimits(grace=0.01))
    link.attach(print, 0)
    link.detach(print)
    await over.wait()
    assert link.over


async def test_a_page_that_comes_back_in_time_is_not() -> None:
    over: list[str] = []
    link = Link(lambda *_: None, over.append, limits=LinkLimits(grace=0.01))
    link.attach(print, 0)
    link.detach(print)
    link.attach(repr, 0)
    link.detach(print)  # the old socket's end is heard late
    link.post("a", b"x")
    loop = asyncio.get_running_loop()
    later = loop.create_future()
    loop.call_later(0.03, later.set_result, None)
    await later
    assert over == []
    link.end("done")


async def test_a_page_that_is_there_but_takes_nothing_is_given_up() -> None:
    over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    link = Link(lambda *_: None, over.set_result, limits=LinkLimits(patience=0.05))
    link.attach(repr, 0)
    link.post("a", b"x")
    assert await over == "the page read nothing for 0.05 s"


async def test_a_page_that_takes_a_little_now_and_then_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over: list[str] = []
    link = Link(lambda *_: None, over.append, limits=LinkLimits(patience=10))
    now = 1000.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    link.attach(repr, 0)
    for n in range(1, 9):
        link.post("a", b"x")
        link.post("a", b"x")
        now += 9
        link.feed(str(n))  # always behind, and never stuck
        now += 9
        link._check_progress()
        assert over == []
    now += 2
    link._check_progress()
    assert over == ["the page read nothing for 10 s"]


async def test_a_page_with_nothing_to_take_is_not_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    over: list[str] = []
    link = Link(lambda *_: None, over.append, limits=LinkLimits(patience=10))
    now = 1000.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    link.attach(repr, 0)
    link.post("a", b"x")
    link.feed("1")
    now += 100
    link._check_progress()
    assert over == []
    link.end("done")


async def test_a_link_that_is_over_hangs_up_and_says_why() -> None:
    said: list[str] = []
    link = Link(lambda *_: None, lambda reason: said.append(f"over: {reason}"))
    link.attach(repr, 0, said.append)
    link.end("enough")
    link.end("again")
    assert said == ["enough", "over: enough"]


async def test_a_page_that_is_leaving_is_waited_for_a_little_while_only() -> None:
    over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    link = Link(lambda *_: None, over.set_result, limits=LinkLimits(leaving_grace=0.01))
    link.attach(repr, 0)
    link.detach(repr, leaving=True)
    assert link.leaving
    await link.decided()
    assert await over == "the page was closed"
    assert not link.leaving


async def test_a_page_that_leaves_and_comes_back_is_there() -> None:
    over: list[str] = []
    link = Link(lambda *_: None, over.append, limits=LinkLimits(leaving_grace=0.01))
    link.attach(repr, 0)
    link.detach(repr, leaving=True)
    deciding = asyncio.ensure_future(link.decided())
    link.attach(print, 0)
    await deciding
    assert link._timer is None
    assert over == []
    link.end("done")


async def test_what_has_arrived_is_acknowledged() -> None:
    link = Link(lambda *_: None, lambda _: None)
    sent: list[str] = []
    link.attach(sent.append, 0)
    for n in range(1, 33):
        link.feed(f"{n} a\nx")
    assert sent == ["32"]
    link.end("done")


steps = st.lists(
    st.one_of(
        st.just("drop"),
        st.just("connect"),
        st.tuples(st.just("read"), st.integers(0, 5)),
        st.just("there"),
        st.just("back"),
    ),
    max_size=60,
)


@given(steps)
def test_whatever_happens_to_the_socket_nothing_is_lost_and_nothing_comes_twice(
    plan: list[object],
) -> None:
    async def run() -> None:
        ends = Ends()
        there: list[str] = []
        back: list[str] = []
        for step in [*plan, "connect", ("read", 1000)]:
            connected = ends.page.socket is not None
            if step == "connect" and not connected:
                ends.page.connect()
            elif step == "drop" and connected:
                ends.page.drop()
            elif step == "there":
                there.append(str(len(there)))
                ends.link.post("a", there[-1].encode())
            elif step == "back":
                back.append(str(len(back)))
                ends.page.send("a", back[-1])
            elif isinstance(step, tuple) and connected:
                whole = step[1] >= len(ends.page.socket or [])
                ends.page.read(step[1], acknowledge=whole)
                if not whole:
                    ends.page.drop()
        if ends.page.socket is None:
            ends.page.connect()
        ends.page.read()
        assert [message for _, message in ends.page.frames] == there
        assert [message.decode() for _, message in ends.frames] == back
        ends.link.end("done")

    asyncio.run(run())
