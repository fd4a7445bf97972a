"""Bytes to envelopes and back. The other side is untrusted.

1. A message is one JSON object in UTF-8. Batches are refused.
2. It is no longer than `max_bytes` and nested no deeper than `max_depth`; both are checked before
   anything is decoded.
3. It has `"jsonrpc": "2.0"` and no members but those JSON-RPC 2.0 names.
4. An id is a 64-bit integer or a string of at most 256 characters; `1` and `"1"` are two ids. An
   error may answer the id null.
5. `params` and `result` are objects. They are left raw: whoever knows the method decodes them.
6. Half of a surrogate pair, which JavaScript writes where it cut a text, is read as U+FFFD.

`decode` raises `MessageRefused`, and nothing else, whatever it is given.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from transom.errors import INVALID_REQUEST, PARSE_ERROR, MessageRefused

RequestId = int | str

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 100


class _Message(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="jsonrpc", tag="2.0"):
    """Encoded, it is what is sent. What arrives is decoded as an `_Envelope` first."""


class Request(_Message, frozen=True):
    """A message that needs an answer."""

    id: RequestId
    method: str
    params: Raw | None = None


class Notification(_Message, frozen=True):
    """A message that needs no answer."""

    method: str
    params: Raw | None = None


class Response(_Message, frozen=True):
    """An answer."""

    id: RequestId
    result: Raw


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


_Id = (
    Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    | Annotated[str, msgspec.Meta(max_length=256)]
)


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    """All members a message may have; which of them it has says what it is."""

    jsonrpc: Literal["2.0"]
    id: _Id | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: WireError | UnsetType = UNSET


_decode_envelope = msgspec.json.Decoder(_Envelope).decode

# Nesting is all that matters for depth: brackets become one kind, the rest is deleted.
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NOT_SHAPE = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_STEPS = bytes.maketrans(b"[]", b"\x01\xff")  # up and down, as signed bytes
_BLOCK = 65536


def _too_deep(data: bytes, limit: int) -> bool:
    """Whether `data`, if it is JSON, nests deeper than `limit`. Linear, whatever it is."""
    if b"\\" in data:  # escaped backslashes first, so that what is left before a quote escapes it
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A bracket inside a string has an odd number of quotes before it. Neighbours cancel out.
    shape = data.translate(_ONE_KIND, _NOT_SHAPE).replace(b'""', b"")
    if b'"' in shape:
        shape = _outside_strings(shape)
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
    depth = 0
    for start in range(0, len(shape), _BLOCK):
        steps = memoryview(shape[start : start + _BLOCK].translate(_STEPS)).cast("b")
        depths = list(accumulate(steps, initial=depth))
        if max(depths) > limit:
            return True
        depth = depths[-1]
    return False


def decode(data: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Message:
    """Read one message."""
    if len(data) > max_bytes:
        raise MessageRefused(
            INVALID_REQUEST, f"Message of {len(data)} bytes is over the limit of {max_bytes}"
        )
    if len(data) > 2 * max_depth and _too_deep(data, max_depth):  # short ones cannot be
        raise MessageRefused(INVALID_REQUEST, f"Message is nested deeper than {max_depth}")
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
        return decode(whole, max_bytes=max_bytes, max_depth=max_depth)

    id, method = envelope.id, envelope.method
    params, result, error = envelope.params, envelope.result, envelope.error
    if method is not UNSET:
        if result is UNSET and error is UNSET and (params is UNSET or _is_object(params)):
            raw = None if params is UNSET else params
            if id is UNSET:
                return Notification(method, raw)
            if id is not None:
                return Request(id, method, raw)
    elif params is UNSET and id is not UNSET:
        if error is not UNSET and result is UNSET:
            return ErrorResponse(id, error)
        if result is not UNSET and error is UNSET and id is not None and _is_object(result):
            return Response(id, result)
    raise MessageRefused(INVALID_REQUEST, "Neither a request, a notification nor a response")


_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = re.compile(rb"%b(?!%b)|(?<!%b)%b" % (_HIGH, _LOW, _HIGH, _LOW))


def _with_whole_characters(data: bytes) -> bytes:
    """The same with U+FFFD for each lone surrogate."""
    if b"\\u" not in data or b"\0" in data:  # a NUL is no JSON, and marks escaped backslashes here
        return data
    return _HALF.sub(rb"\\ufffd", data.replace(rb"\\", b"\0\0")).replace(b"\0\0", rb"\\")


def _is_object(raw: Raw) -> bool:
    return memoryview(raw)[0] == 0x7B


class _Head(msgspec.Struct):
    id: _Id
    method: str | UnsetType = UNSET


def refused_id(
    data: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH
) -> RequestId | None:
    """The id to answer a refused message with: that of a request whose envelope can be read."""
    head = _head(data, max_bytes, max_depth)
    return None if head is None or head.method is UNSET else head.id


def refused_answer(
    data: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH
) -> RequestId | None:
    """The id of the request that a refused message answers, if that can be read."""
    answered = answered_by_ends(data[:128], data[-128:])
    if answered is not None:
        return answered
    head = _head(data, max_bytes, max_depth)
    return None if head is None or head.method is not UNSET else head.id


_ID = re.compile(rb'"id"\s*:\s*(\d{1,15})(?=\s*[,}])')


def answered_by_ends(head: bytes, tail: bytes) -> int | None:
    """The id of the request that a message answers, if its first or last bytes show it."""
    if b'"method"' in head or b'"method"' in tail:
        return None
    for found in _ID.finditer(head):
        if _levels(head[: found.start()]) == 1:
            return int(found[1])
    for found in _ID.finditer(tail):
        if _levels(tail[found.end() :]) == -1:
            return int(found[1])
    return None


def _levels(text: bytes) -> int:
    """How many levels it opens or closes, assuming that no string in it has brackets."""
    return text.count(b"{") + text.count(b"[") - text.count(b"}") - text.count(b"]")


def _head(data: bytes, max_bytes: int, max_depth: int) -> _Head | None:
    if len(data) > max_bytes or _too_deep(data, max_depth):
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
    return encode(Request(id, method, None if params is None else Raw(params)))


def encode_notification(method: str, params: bytes | None) -> bytes:
    """A notification; `params` is JSON already."""
    return encode(Notification(method, None if params is None else Raw(params)))


def encode_response(id: RequestId, result: bytes) -> bytes:
    """An answer; `result` is JSON already."""
    return encode(Response(id, Raw(result)))


def encode_error(id: RequestId, code: int, message: str, data: object = UNSET) -> bytes:
    """An error response."""
    return encode(ErrorResponse(id, WireError(code, message, data)))
