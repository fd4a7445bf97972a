"""The channel to one View. What holds for every channel is in tests/contract."""

import asyncio

import pytest

from transom.errors import ChannelClosed
from transom.web.page_link import Link, LinkLimits, ViewChannel


class Wired:
    """A channel over a link whose page is a list."""

    def __init__(self, **limits: int) -> None:
        self.page: list[str] = []
        self.closed: list[ViewChannel] = []
        self.link: Link | None = Link(lambda *_: None, lambda _: None, limits=LinkLimits(**limits))
        self.link.attach(self.page.append, 0)
        self.channel = ViewChannel("v", lambda: self.link, self.closed.append)


async def test_a_message_passes_as_it_is_neither_read_nor_written_again() -> None:
    wired = Wired()
    odd = b'{ "a" : 1.0e2 ,"a":\t"\\u00e9" }'
    await wired.channel.send(odd)
    assert wired.page == [f"1 v\n{odd.decode()}"]
    wired.channel.feed(odd)
    assert await wired.channel.receive() is odd


async def test_closing_takes_the_view_off_once_and_what_comes_later_is_dropped() -> None:
    wired = Wired()
    wired.channel.feed(b"unread")
    await wired.channel.aclose()
    wired.channel.feed(b"late")
    with pytest.raises(ChannelClosed, match="This side closed"):
        await wired.channel.receive()
    assert wired.closed == [wired.channel]


async def test_a_view_that_is_gone_says_why_to_sender_and_reader() -> None:
    wired = Wired()
    wired.channel.feed(b"last words")
    wired.channel.end("The View is gone: the page was closed")
    assert await wired.channel.receive() == b"last words"
    with pytest.raises(ChannelClosed, match="the page was closed"):
        await wired.channel.receive()
    with pytest.raises(ChannelClosed, match="the page was closed"):
        await wired.channel.send(b"{}")
    assert wired.channel.reason == "The View is gone: the page was closed"


async def test_without_a_page_there_is_nothing_to_send_to() -> None:
    wired = Wired()
    wired.link = None
    with pytest.raises(ChannelClosed, match="no page"):
        await wired.channel.send(b"{}")
    with pytest.raises(ChannelClosed, match="no page"):
        wired.channel.send_nowait(b"{}")


async def test_a_view_that_sends_more_than_anyone_reads_is_cut_off() -> None:
    wired = Wired()
    for _ in range(5000):
        wired.channel.feed(b"{}")
    assert [await wired.channel.receive() for _ in range(4096)] == [b"{}"] * 4096
    with pytest.raises(ChannelClosed, match="more than anyone reads"):
        await wired.channel.receive()


async def test_a_view_that_ends_frees_those_who_wait_to_send_to_it_and_no_others() -> None:
    wired = Wired(high_water=10)
    link = wired.link
    other = ViewChannel("other", lambda: link, print)
    await wired.channel.send(b"x" * 50)
    waiting = asyncio.create_task(wired.channel.send(b"mine"))
    theirs = asyncio.create_task(other.send(b"theirs"))
    await asyncio.sleep(0)
    wired.channel.end("gone")
    with pytest.raises(ChannelClosed, match="gone"):
        await waiting
    assert not theirs.done()
    assert link is not None
    link.feed("1")
    await theirs
    assert wired.page[1:] == ["2 other\ntheirs"]


async def test_whoever_waited_goes_before_whoever_comes_as_there_is_room() -> None:
    wired = Wired(high_water=100)
    assert wired.link is not None
    await wired.channel.send(b"x" * 500)
    waiting = asyncio.create_task(wired.channel.send(b"first"))
    await asyncio.sleep(0)
    wired.link.feed("1")
    assert not wired.channel.send_nowait(b"second")
    await waiting
    await wired.channel.send(b"second")
    assert [text.partition("\n")[2] for text in wired.page[1:]] == ["first", "second"]


async def test_a_receiver_hears_what_was_there_and_then_the_end() -> None:
    wired = Wired()
    heard: list[bytes | None] = []
    wired.channel.feed(b"1")
    wired.channel.attach(heard.append)
    wired.channel.feed(b"2")
    await asyncio.sleep(0)
    assert heard == [b"1", b"2"]
    wired.channel.feed(b"3")
    wired.channel.end("over")
    assert heard == [b"1", b"2", b"3", None]
