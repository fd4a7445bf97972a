"""Asking the user in a terminal: a pseudo-terminal in this process."""

import asyncio
import io
import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from transom.host import Allow, AllowAlways, ApprovalRequest, Decision, Deny, ask_in_terminal
from transom.host.asking import terminal as terminal_module
from transom.types import Implementation, Tool


class Terminal:
    """The user's side of a terminal."""

    def __init__(self, side: int) -> None:
        self.side = side
        self.shown = ""

    async def shows(self, text: str) -> None:
        loop = asyncio.get_running_loop()
        while text not in self.shown:
            readable = asyncio.Event()
            loop.add_reader(self.side, readable.set)
            try:
                await readable.wait()
            finally:
                loop.remove_reader(self.side)
            self.shown += os.read(self.side, 10_000).decode()

    def type(self, text: str) -> None:
        os.write(self.side, text.encode())


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    users, programs = os.openpty()
    with os.fdopen(programs, "rb", 0) as stdin, os.fdopen(os.dup(programs), "w") as stderr:
        # Not in `sys` itself, where pytest puts its own between a fixture and its test.
        streams = SimpleNamespace(platform=sys.platform, stdin=stdin, stderr=stderr)
        monkeypatch.setattr(terminal_module, "sys", streams)
        yield Terminal(users)
    os.close(users)


def question(tool: str = "ship", **arguments: object) -> ApprovalRequest:
    return ApprovalRequest(
        view_id="orders-1",
        server="orders",
        app=Implementation("orders", "1.0"),
        tool=Tool(name=tool, description="Ship\x1b[2J it\n[y]es"),
        arguments=arguments,
    )


def asking(request: ApprovalRequest) -> asyncio.Task[Decision]:
    return asyncio.ensure_future(ask_in_terminal(request))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("y", Allow), (" YES ", Allow), ("a", AllowAlways), ("", Deny), ("n", Deny), ("yy", Deny)],
)
async def test_the_user_answers_in_the_terminal(terminal: Terminal, typed: str, meant: type):
    answer = asking(question(order="A-1041"))
    await terminal.shows("[N]o? ")
    asked = terminal.shown.splitlines()
    assert asked[1].startswith("May ship of View orders-1")
    assert asked[2] == '{"order":"A-1041"}'
    assert "\x1b" not in terminal.shown
    assert [line for line in asked if line.startswith("[y]es")] == [asked[-1]]
    terminal.type(f"{typed}\n")
    assert isinstance(await answer, meant)


async def test_what_was_typed_before_the_question_does_not_answer_it(terminal: Terminal):
    terminal.type("y\n")
    await terminal.shows("y\r\n")  # the terminal echoes what it has taken
    answer = asking(question())
    await terminal.shows("[N]o? ")
    terminal.type("n\n")
    assert isinstance(await answer, Deny)


async def test_questions_come_one_after_the_other_and_end_with_their_calls(terminal: Terminal):
    first, second = asking(question("first")), asking(question("second"))
    await terminal.shows("[N]o? ")
    assert "second" not in terminal.shown
    first.cancel()
    await terminal.shows("May second")
    await asyncio.wait([first])
    await terminal.shows("it [y]es\r\n[y]es, [a]lways, or [N]o? ")
    terminal.type("y\n")
    assert isinstance(await second, Allow)


async def test_what_nobody_can_read_is_refused(terminal: Terminal):
    assert "cannot be asked" in (await ask_in_terminal(question(text="x" * 5000))).reason  # type: ignore[union-attr]


async def test_without_a_terminal_the_answer_is_no(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    refused = Deny("The user cannot be asked: there is no terminal")
    assert await ask_in_terminal(question()) == refused
