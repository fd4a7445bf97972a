"""Halves of surrogate pairs, which JavaScript writes where it cut a text in two."""

import json
import re
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.errors import MessageRefused
from transom.protocol import wire


def read(params: str) -> object:
    message = wire.decode(b'{"jsonrpc":"2.0","id":7,"method":"m","params":%b}' % params.encode())
    assert isinstance(message, wire.Request)
    assert message.id == 7
    return msgspec.json.decode(message.params or b"")


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (r'{"a":"cut \ud83d"}', {"a": "cut \ufffd"}),
        (r'{"a":"\ude00 cut"}', {"a": "\ufffd cut"}),
        (r'{"a":"\ud83d\ude00"}', {"a": "\U0001f600"}),
        (r'{"a":"\uD83D\uDE00\uDE00"}', {"a": "\U0001f600\ufffd"}),
        (r'{"a":"\ud83d\ud83d\ude00"}', {"a": "\ufffd\U0001f600"}),
        (r'{"a":"\\ud83d\ud83d"}', {"a": "\\ud83d\ufffd"}),
        (r'{"a":"\\\ud83d"}', {"a": "\\\ufffd"}),
        (r'{"\udfff":1}', {"\ufffd": 1}),
    ],
)
def test_half_of_a_pair_is_read_as_the_replacement_character(params: str, expected: object):
    assert read(params) == expected


@given(st.lists(st.sampled_from(["\\\\", '\\"', "\\ud83d", "\\ude00", "\\u0041", "x", "\\n"])))
def test_texts_with_halves_are_read_as_other_readers_would_repair_them(parts: list[str]):
    text = '{"a":"' + "".join(parts) + '"}'
    repaired = re.sub("[\ud800-\udfff]", "\ufffd", json.loads(text)["a"])
    assert read(text) == {"a": repaired}


@pytest.mark.parametrize("params", [r'{"a":"\ud83d}', r'{"a":"\ud8"}', '{"a":"\\ud83d\0"}'])
def test_what_is_no_json_is_still_refused(params: str):
    with pytest.raises(MessageRefused):
        read(params)


@pytest.mark.load
@pytest.mark.parametrize("piece", [b"\\ud800", b"\\\\", b"\\ud83d\\ude00"])
def test_a_megabyte_of_them_is_read_or_refused_in_linear_time(piece: bytes):
    started = time.process_time()
    with pytest.raises(MessageRefused):
        wire.decode(b'"' + piece * (1024 * 1024 // len(piece)) + b"\\ud800")
    assert time.process_time() - started < 1.0
