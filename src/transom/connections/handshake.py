"""The handshake with a server: which request opens it, and which is tried if the server refuses.

1. A server before 2026-07-28 opens with `initialize`, a later one with `server/discover`. Which of
   them it supports is found by trying, in the order that the caller prefers.
2. Some servers do not answer a method that they do not know, so `server/discover` has a time limit.
   A server may also have been slow to start: if it then refuses the other request as well, the
   first is sent once more, without that limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from transom.connections.versions import DISCOVERY_VERSION, HANDSHAKE_VERSIONS
from transom.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    InvalidResult,
    NotConnected,
    ProtocolError,
    TransomError,
)
from transom.json_values import as_list, as_object, member

Introduction = tuple[str, bytes | None]
"""A request that opens the handshake: method and params."""

_UNSUPPORTED_VERSION: Final = -32022
_NO_INITIALIZE: Final = (
    *(METHOD_NOT_FOUND, INVALID_PARAMS, INVALID_REQUEST),
    *(-32020, _UNSUPPORTED_VERSION),
)
"""Error codes with which a server that speaks only 2026-07-28 may answer `initialize`."""


class IntroductionRefused(TransomError):
    """The server accepted none of the introductions; `refusals` has its answers, in their order."""

    def __init__(self, refusals: Sequence[TransomError]) -> None:
        super().__init__(str(refusals[-1]))
        self.refusals = refusals


def check_answer(method: str, answer: bytes) -> None:
    """Check that an answer accepts an introduction; InvalidResult if it does not."""
    if method == "initialize":
        if not isinstance(member(answer, "protocolVersion"), str):
            raise InvalidResult("it answered initialize without a protocolVersion")
    elif DISCOVERY_VERSION not in as_list(member(answer, "supportedVersions")):
        raise InvalidResult(f"it answered server/discover without {DISCOVERY_VERSION}")


def may_speak_other(method: str, error: TransomError) -> bool:
    """Whether a server that refused one introduction may accept the other."""
    if method == "server/discover":
        return not is_unsupported_version(error)
    return not isinstance(error, ProtocolError) or error.code in _NO_INITIALIZE


def is_unsupported_version(error: BaseException) -> bool:
    """Whether a server refused a request's version, and supports no version with `initialize`."""
    if not isinstance(error, ProtocolError) or error.code != _UNSUPPORTED_VERSION:
        return False
    named = [each for each in as_list(as_object(error.data).get("supported")) if type(each) is str]
    return bool(named) and not any(version in HANDSHAKE_VERSIONS for version in named)


async def introduce(
    send: Callable[[str, bytes | None], Awaitable[bytes]],
    introductions: Sequence[Introduction],
    *,
    discover_within: float | None,
    check: Callable[[str, bytes], object] = check_answer,
    try_next: Callable[[str, TransomError], bool] = may_speak_other,
) -> tuple[str, bytes]:
    """Introduce a client to a server with the first of these requests that it accepts.

    Args:
        send: sends a request; returns the result.
        introductions: the requests, the preferred one first.
        discover_within: seconds for the answer to `server/discover`; None: no limit.
        check: raises InvalidResult for an answer that accepts nothing.
        try_next: whether the next one is tried after this error of a method.

    Returns:
        The method and the server's answer.

    Raises:
        IntroductionRefused: it accepted none of them.
        ConnectionClosed: the server is gone.
    """
    refusals: list[TransomError] = []
    attempts = list(introductions)
    for number, (method, params) in enumerate(attempts):
        patient = method == "initialize" or number >= len(introductions)
        try:
            async with asyncio.timeout(None if patient else discover_within):
                answer = await send(method, params)
            check(method, answer)
        except TimeoutError:
            refusals.append(NotConnected(f"it does not answer {method}"))
            if number == 0:
                attempts.append((method, params))
        except (ProtocolError, InvalidResult) as error:
            refusals.append(error)
            if not try_next(method, error):
                break
        else:
            return method, answer
    raise IntroductionRefused(refusals)
