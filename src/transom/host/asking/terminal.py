"""Asking the user in the terminal of the program: `Policy(approve=ask_in_terminal)`.

1. One question at a time. Whatever was typed before a question is shown does not answer it.
2. A question ends with its call: what is typed later does not answer it.
3. Everything but a clear yes is a no, and so is a question that cannot be shown.
"""

from __future__ import annotations

import asyncio
import os
import sys
from weakref import WeakKeyDictionary

from transom.host.asking.policy import Allow, AllowAlways, ApprovalRequest, Decision, Deny

if sys.platform != "win32":
    import termios

_CHOICES = "[y]es, [a]lways, or [N]o? "
_MAX_ANSWER = 1000  # bytes

_asking: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


async def ask_in_terminal(request: ApprovalRequest) -> Decision:
    """Ask the user in the terminal that the program runs in; give it to `Policy(approve=...)`.

    `y` allows the call, `a` the tool for as long as `AllowAlways` does. Anything else is a no. So
    is a program without a terminal, or one on Windows, and a call whose arguments are too long to
    be read there.
    """
    if (refusal := request.unshowable()) is not None:
        return refusal
    if sys.platform == "win32" or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return Deny("The user cannot be asked: there is no terminal")
    async with _asking.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        answer = await _line_after(f"\n{request.question()}\n{_CHOICES}")
    match answer.strip().lower():
        case "y" | "yes":
            return Allow()
        case "a" | "always":
            return AllowAlways()
        case _:
            return Deny("The user refused in the terminal")


async def _line_after(prompt: str) -> str:
    """The line that the user types after a prompt; not in a thread, which could not be ended."""
    loop, terminal, typed = asyncio.get_running_loop(), sys.stdin.fileno(), asyncio.Event()
    termios.tcflush(terminal, termios.TCIFLUSH)
    sys.stderr.write(prompt)
    sys.stderr.flush()
    loop.add_reader(terminal, typed.set)
    try:
        await typed.wait()
    finally:
        loop.remove_reader(terminal)
    return os.read(terminal, _MAX_ANSWER).decode(errors="replace")
