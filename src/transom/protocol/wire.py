"""Bytes to envelopes and back. The other side is untrusted.

1. A message is one JSON object in UTF-8. Batches are refused.
2. It is no longer than `max_bytes`, nested no deeper than `max_depth`, and has no more arrays and
   objects than `max_containers`; all are checked before anything is decoded.
3. It has `"jsonrpc": "2.0"` and no members but those JSON-RPC 2.0 names.
4. An id is a 64-bit integer or a string of at most 256 characters; `1` and `"1"` are two ids. An
   error may answer the id null.
5. `params` and `result` are objects. They are left raw, to be decoded by the handler of the method.
6. Half of a surrogate pair, which JavaScript writes where it cut a text, is read as U+FFFD.

`decode` raises `MessageRefused`, and nothing else, whatever it is given.
"""

from __future__ import annotations

import re
from itertools import accumulate
from operator import sub
from typing import TYPE_CHECKING, Annotated, Any, Literal, final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from transom.errors import INVALID_REQUEST, PARSE_ERROR, MessageRefused

RequestId = int | str

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 100


_Id = (
    Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    | Annotated[str, msgspec.Meta(max_length=256)]
)

if TYPE_CHECKING:
    _Params = Raw | None
else:
    _Params = Raw  # msgspec reads no union with Raw; the default may be None all the same


# What messages hold is JSON: the garbage collector (`gc`) need not look for circles in them.


@final
class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A message that needs an answer."""

    jsonrpc: Literal["2.0"]
    id: _Id
    method: str
    params: _Params = None


@final
class Response(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """An answer."""

    jsonrpc: Literal["2.0"]
    id: _Id
    result: Raw


class _Message(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="jsonrpc", tag="2.0", gc=False
):
    """Encoded, it is what is sent."""


class Notification(_Message, frozen=True):
    """A message that needs no answer."""

    method: str
    params: Raw | None = None


class WireError(msgspec.Struct, frozen=True):
    """The error member of an answer."""

    code: int
    message: str
    data: Any = UNSET


class ErrorResponse(_Message, frozen=True):
    """An error response. Its id is None if the other side could not read the request's id."""

    id: RequestId | None
    error: WireError


Message = Request | Notification | Response | ErrorResponse


class _Envelope(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """All members a message may have; which of them it has says what it is.

    Most messages are requests or responses and are read as such at once.
    """

    jsonrpc: Literal["2.0"]
    id: _Id | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: WireError | UnsetType = UNSET


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_request = msgspec.json.Decoder(Request).decode
_decode_response = msgspec.json.Decoder(Response).decode

# Nesting is all that matters for depth: brackets become one kind, the rest is deleted.
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NOT_SHAPE = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_UPS, _DOWNS = bytes.maketrans(b"]", b" "), bytes.maketrans(b"[", b" ")
_BLOCK = 65536
_OPENING = ord("{")


class SizeLimits:
    """How large a message may be, which is checked before anything of it is decoded.

    Args:
        max_bytes: its length.
        max_depth: how deep it may nest.
        max_containers: how many arrays and objects it may have.
    """

    __slots__ = ("harmless", "max_bytes", "max_containers", "max_depth")

    def __init__(
        self,
        *,
        max_bytes: int = MAX_BYTES,
        max_depth: int = MAX_DEPTH,
        max_containers: int = MAX_BYTES,
    ) -> None:
        self.max_bytes = max_bytes
        self.max_depth = max_depth
        self.max_containers = max_containers
        self.harmless = min(max_bytes, 2 * max_depth, 2 * max_containers)
        """A message of so many bytes cannot exceed any of them."""

    def check(self, data: bytes) -> None:
        """Raise `MessageRefused` if `data`, should it be JSON, exceeds a limit."""
        if len(data) > self.max_bytes:
            text = f"Message of {len(data)} bytes is over the limit of {self.max_bytes}"
            raise MessageRefused(INVALID_REQUEST, text)
        shape = _shape(data)
        if _is_deep(shape, self.max_depth):
            text = f"Message is nested deeper than {self.max_depth}"
            raise MessageRefused(INVALID_REQUEST, text)
        if len(shape) > 2 * self.max_containers:
            text = f"Message has more than {self.max_containers} arrays and objects"
            raise MessageRefused(INVALID_REQUEST, text)


_DEFAULT_LIMITS = SizeLimits()


def is_deeper(data: bytes, limit: int) -> bool:
    """Whether JSON nests deeper than `limit`, found without decoding it."""
    return len(data) > 2 * limit and _is_deep(_shape(data), limit)


def _shape(data: bytes) -> bytes:
    """The brackets of `data`, if it is JSON, outside of strings. Linear, whatever it is."""
    if b"\\" in data:  # escaped backslashes first, so that what is left before a quote escapes it
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A bracket inside a string has an odd number of quotes before it. Neighbours cancel out.
    shape = data.translate(_ONE_KIND, _NOT_SHAPE).replace(b'""', b"")
    return _outside_strings(shape) if b'"' in shape else shape


def _is_deep(shape: bytes, limit: int) -> bool:
    # Most messages are wide and not deep: removing the innermost level a few times is quickest.
    while limit:
        if len(shape) <= 2 * limit:  # too short to nest any deeper
            return False
        rest = shape.replace(b"[]", b"")
        if len(shape) - len(rest) < len(shape) >> 3:
            break
        shape = rest
        limit -= 1
    return _climbs_over(shape, limit)


def _outside_strings(shape: bytes) -> bytes:
    outside: list[bytes] = []
    inside = False
    for start in range(0, len(shape), _BLOCK):
        parts = shape[start : start + _BLOCK].split(b'"')
        outside.append(b"".join(parts[inside::2]))
        inside ^= len(parts) % 2 == 0
    return b"".join(outside)


def _climbs_over(shape: bytes, limit: int) -> bool:
    """Whether so many brackets are ever open: counted by runs, which are long by now."""
    depth = 0
    for start in range(0, len(shape), _BLOCK):
        block = shape[start : start + _BLOCK]
        rest = block.lstrip(b"]")
        ups = accumulate(map(len, rest.translate(_UPS).split()))
        downs = accumulate(map(len, rest.translate(_DOWNS).split()), initial=0)
        lowest = depth - (len(block) - len(rest))
        if lowest + max(map(sub, ups, downs), default=0) > limit:
            return True
        depth += block.count(b"[") - block.count(b"]")
    return False


def decode(
    data: bytes, limits: SizeLimits = _DEFAULT_LIMITS, *, answers: object = False
) -> Message:
    """Read one message, which is quicker if it is a response where `answers` are expected."""
    if len(data) > limits.harmless:
        limits.check(data)
    try:
        if answers:
            message = _decode_response(data)
            body = message.result
        else:
            message = _decode_request(data)
            body = message.params
        if not data.isascii():
            data.decode()
        if body is None or memoryview(body)[0] == _OPENING:
            return message
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        pass  # a message of another kind, or none: `_decode_any` says which
    return _decode_any(data, limits)


def _decode_any(data: bytes, limits: SizeLimits) -> Message:
    try:
        envelope = _decode_envelope(data)
        if not data.isascii():
            data.decode()
    except msgspec.ValidationError as error:
        raise MessageRefused(
            INVALID_REQUEST, f"Not a JSON-RPC 2.0 message: {str(error)[:200]}"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        whole = _with_whole_characters(data)
        if whole == data:
            raise MessageRefused(PARSE_ERROR, "Message is not JSON in UTF-8") from None
        return decode(whole, limits)

    id, method, params, result = envelope.id, envelope.method, envelope.params, envelope.result
    if method is not UNSET:
        if (
            result is UNSET
            and envelope.error is UNSET
            and (params is UNSET or memoryview(params)[0] == _OPENING)
        ):
            given = None if params is UNSET else params
            if id is UNSET:
                return Notification(method, given)
            if id is not None:
                return Request("2.0", id, method, given)
    elif params is UNSET and id is not UNSET:
        error = envelope.error
        if result is UNSET:
            if error is not UNSET:
                return ErrorResponse(id, error)
        elif error is UNSET and id is not None and memoryview(result)[0] == _OPENING:
            return Response("2.0", id, result)
    raise MessageRefused(INVALID_REQUEST, "Neither a request, a notification nor a response")


_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_MAX_HALVES = 50_000  # of one message: nobody cuts so many texts in the middle of a character
_HALF = rb"%b(?!%b)|(?<!%b)%b" % (_HIGH, _LOW, _HIGH, _LOW)


def _with_whole_characters(data: bytes) -> bytes:
    """The same with U+FFFD for each lone surrogate."""
    if b"\\u" not in data or b"\0" in data:  # a NUL is no JSON, and marks escaped backslashes here
        return data
    marked = data.replace(rb"\\", b"\0\0")
    whole, halves = re.subn(_HALF, rb"\\ufffd", marked, count=_MAX_HALVES)
    return data if halves == _MAX_HALVES else whole.replace(b"\0\0", rb"\\")


class _Head(msgspec.Struct):
    id: _Id
    method: str | UnsetType = UNSET


def refused_id(data: bytes, limits: SizeLimits = _DEFAULT_LIMITS) -> RequestId | None:
    """The id to answer a refused message with: that of a request whose envelope can be read.

    Of one too deep or too large to be read, or broken, the beginning shows it, if it is as ours.
    """
    head = _head(data, limits)
    if head is None:
        return id_of_request(data)
    return None if head.method is UNSET else head.id


def refused_answer(data: bytes, limits: SizeLimits = _DEFAULT_LIMITS) -> RequestId | None:
    """The id of the request that a refused message answers, if that can be read."""
    answered = answered_by_ends(data[:128], data[-128:])
    if answered is not None:
        return answered
    head = _head(data, limits)
    return None if head is None or head.method is not UNSET else head.id


_ID = rb'"id"\s*:\s*(\d{1,15})(?=\s*[,}])'  # compiled when it is first used


def answered_by_ends(head: bytes, tail: bytes) -> int | None:
    """The id of the request that a message answers, if its first or last bytes show it."""
    if b'"method"' in head or b'"method"' in tail:
        return None
    for found in re.finditer(_ID, head):
        if _levels(head[: found.start()]) == 1:
            return int(found[1])
    for found in re.finditer(_ID, tail):
        if _levels(tail[found.end() :]) == -1:
            return int(found[1])
    return None


def _levels(text: bytes) -> int:
    """How many levels it opens or closes, assuming that no string in it has brackets."""
    return text.count(b"{") + text.count(b"[") - text.count(b"}") - text.count(b"]")


def _head(data: bytes, limits: SizeLimits) -> _Head | None:
    if len(data) > limits.max_bytes or _is_deep(_shape(data), limits.max_depth):
        return None
    try:
        return msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None


# --- out -------------------------------------------------------------------------------------

_encoder = msgspec.json.Encoder()
encode = _encoder.encode
"""Any JSON-able value, struct or Raw to bytes."""


def raw(value: object) -> Raw:
    """The same as `Raw`, to be part of a value that is encoded later."""
    return Raw(encode(value))


def encode_request(id: RequestId, method: str, params: bytes | None) -> bytes:
    """A request; `params` is JSON already."""
    opening, name = b'{"jsonrpc":"2.0","id":', encode(method)
    if params is None:
        return b"".join((opening, encode(id), b',"method":', name, b"}"))
    return b"".join((opening, encode(id), b',"method":', name, b',"params":', params, b"}"))


def id_of_request(data: bytes) -> int | None:
    """The id of a request that `encode_request` made with a number, however deep it nests."""
    found = re.match(rb'{"jsonrpc":"2.0","id":(\d{1,15}),"method"', data)
    return None if found is None else int(found[1])


def encode_notification(method: str, params: bytes | None) -> bytes:
    """A notification; `params` is JSON already."""
    return encode(Notification(method, None if params is None else Raw(params)))


def encode_response(id: RequestId, result: bytes) -> bytes:
    """An answer; `result` is JSON already."""
    return b"".join((b'{"jsonrpc":"2.0","id":', encode(id), b',"result":', result, b"}"))


def encode_error(id: RequestId, code: int, message: str, data: object = UNSET) -> bytes:
    """An error response."""
    return encode(ErrorResponse(id, WireError(code, message, data)))
