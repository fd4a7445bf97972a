import json
import time

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.ids import plain
from tests.protocol.hostile import anything, as_json, json_values, request_ids
from transom.errors import INVALID_REQUEST, PARSE_ERROR, MessageRefused
from transom.protocol import wire
from transom.protocol.wire import Message, SizeLimits, refused_id


def decode(data: bytes, limits: SizeLimits | None = None) -> Message:
    """As `wire.decode`, which reads the same whether a response is expected or not."""
    limits = limits or SizeLimits()
    try:
        message = wire.decode(data, limits)
    except MessageRefused as refused:
        with pytest.raises(MessageRefused) as again:
            wire.decode(data, limits, answers=True)
        assert (again.value.code, again.value.message) == (refused.code, refused.message)
        raise
    assert wire.decode(data, limits, answers=True) == message
    return message


def refusal(data: bytes, **limits: int) -> MessageRefused:
    with pytest.raises(MessageRefused) as caught:
        decode(data, SizeLimits(**limits))
    return caught.value


def message(**members: object) -> bytes:
    return as_json({"jsonrpc": "2.0", **members})


# --- what is a message -----------------------------------------------------------------------


def test_a_request_has_an_id_and_a_method_and_its_params_stay_raw():
    request = decode(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params": {"name" : "x"} }')
    assert isinstance(request, wire.Request)
    assert (request.id, request.method) == (7, "tools/call")
    assert bytes(request.params) == b'{"name" : "x"}'


def test_a_notification_has_a_method_and_no_id():
    notice = decode(b'{"method":"ping","jsonrpc":"2.0"}')
    assert notice == wire.Notification("ping", None)


def test_a_response_has_an_id_and_a_result_that_stays_raw():
    response = decode(b'{"result":{"a":[1, 2]},"id":"x","jsonrpc":"2.0"}')
    assert isinstance(response, wire.Response)
    assert response.id == "x"
    assert bytes(response.result) == b'{"a":[1, 2]}'


def test_an_error_may_answer_null_and_keeps_its_data():
    response = decode(message(id=None, error={"code": -1, "message": "no", "data": [1]}))
    assert response == wire.ErrorResponse(None, wire.WireError(-1, "no", [1]))
    assert decode(message(id=3, error={"code": -1, "message": "no"})).error.data is msgspec.UNSET


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":[{}]}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":[{"a":{}}]}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":[]}}',
        b'{"jsonrpc":"2.0","id":1,"params":[{}],"method":"}}"}',
        b'{"jsonrpc":"2.0","params":{},"params":"}}","method":"m","id":"}}"}',
        b'{"jsonrpc":"2.0","id":1,"result":[{}]}\n',
        b'{"jsonrpc":"2.0","id":1,"result":"{}}"}',
        b'{"jsonrpc":"2.0","id":1,"result":"}","error":{"code":1,"message":"","data":{}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":[],"error":{"code":1,"message":""}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":[],"result":{}}',
    ],
)
def test_params_and_results_that_are_no_objects_are_refused_whatever_the_end_looks_like(data):
    assert refusal(data).code in (INVALID_REQUEST, PARSE_ERROR)


def test_the_order_of_the_members_does_not_matter():
    members = ['"jsonrpc":"2.0"', '"id":1', '"method":"m"', '"params":{}']
    forward = decode(("{" + ",".join(members) + "}").encode())
    backward = decode(("{" + ",".join(reversed(members)) + "}").encode())
    assert (forward.id, forward.method) == (backward.id, backward.method) == (1, "m")


def test_one_and_the_string_one_are_two_ids():
    assert decode(message(id=1, method="m")).id == 1
    assert decode(message(id="1", method="m")).id == "1"


@pytest.mark.parametrize(
    "id", [0, -1, 2**63 - 1, -(2**63), "", "a" * 256, "\0", "é☃", "__proto__"], ids=plain
)
def test_ids_of_every_allowed_kind_are_echoed_exactly(id: int | str):
    request = decode(message(id=id, method="m"))
    assert type(request.id) is type(id)
    assert decode(wire.encode_response(request.id, b"{}")).id == id


# --- what is not -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"{",
        b"nonsense",
        b'{"jsonrpc":"2.0","method":"m"} x',
        b'{"jsonrpc":"2.0","method":"m"}{"jsonrpc":"2.0","method":"m"}',
        b'{"jsonrpc":"2.0","method":"m",}',
        b"{'jsonrpc':'2.0','method':'m'}",
        b'{"jsonrpc":"2.0","method":"\xff"}',
        b'{"jsonrpc":"2.0","method":"m","params":{"a":"\xff"}}',
        b'{"jsonrpc":"2.0","method":"m","params":{"a":"\xed\xa0\x80"}}',
        b'{"jsonrpc":"2.0","method":"m","params":{"a":"\xc0\x80"}}',
        b'{"jsonrpc":"2.0","method":"m","params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","method":"m","params":{"a":01}}',
        b'{"jsonrpc":"2.0","method":"m","params":{"a":"\n"}}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"m"}',
        '{"jsonrpc":"2.0","method":"m"}'.encode("utf-16"),
    ],
    ids=plain,
)
def test_what_is_not_one_json_text_in_utf8_is_a_parse_error(data: bytes):
    assert refusal(data).code == PARSE_ERROR


@pytest.mark.parametrize(
    "value",
    [
        [],
        [{"jsonrpc": "2.0", "id": 1, "method": "m"}],
        1,
        None,
        "ping",
        {},
        {"id": 1, "method": "m"},
        {"jsonrpc": "1.0", "id": 1, "method": "m"},
        {"jsonrpc": 2.0, "id": 1, "method": "m"},
        {"jsonrpc": "2.0"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": None},
        {"jsonrpc": "2.0", "id": 1, "method": "m", "extra": 1},
        {"jsonrpc": "2.0", "id": 1, "method": "m", "Method": "m"},
        {"jsonrpc": "2.0", "id": 1, "method": "m", "params": []},
        {"jsonrpc": "2.0", "id": 1, "method": "m", "params": None},
        {"jsonrpc": "2.0", "id": 1, "method": "m", "params": "{}"},
        {"jsonrpc": "2.0", "id": 1, "method": "m", "result": {}},
        {"jsonrpc": "2.0", "id": 1, "method": "m", "error": {"code": 1, "message": ""}},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": ""}},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "params": {}},
        {"jsonrpc": "2.0", "id": 1, "result": []},
        {"jsonrpc": "2.0", "id": 1, "result": None},
        {"jsonrpc": "2.0", "id": None, "result": {}},
        {"jsonrpc": "2.0", "result": {}},
        {"jsonrpc": "2.0", "error": {"code": 1, "message": ""}},
        {"jsonrpc": "2.0", "id": 1, "error": None},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": "1", "message": ""}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1.5, "message": ""}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}},
        {"jsonrpc": "2.0", "id": 1, "params": {}},
    ],
    ids=as_json,
)
def test_json_that_is_no_json_rpc_message_is_an_invalid_request(value: object):
    assert refusal(as_json(value)).code == INVALID_REQUEST


@pytest.mark.parametrize(
    "id",
    [
        *(b"null", b"1.0", b"1.5", b"1e3", b"1e400", b"true", b"{}", b"[1]"),
        *(b"9223372036854775808", b"-9223372036854775809", b"9" * 5000),
        b'"' + b"a" * 257 + b'"',
    ],
    ids=lambda id: id[:24],
)
def test_an_id_of_another_kind_is_refused_and_not_answered(id: bytes):
    data = b'{"jsonrpc":"2.0","id":%b,"method":"m"}' % id
    assert refusal(data).code == INVALID_REQUEST
    assert refused_id(data) is None


def test_the_text_of_a_refusal_is_short_whatever_was_sent():
    assert len(refusal(message(**{"x" * 100_000: 1})).message) < 300


# --- size and depth --------------------------------------------------------------------------


def test_a_message_may_have_max_bytes_and_not_one_more():
    data = message(method="m", params={"a": "x" * 1000})
    assert isinstance(decode(data, SizeLimits(max_bytes=len(data))), wire.Notification)
    refused = refusal(data, max_bytes=len(data) - 1)
    assert refused.code == INVALID_REQUEST
    assert str(len(data)) in refused.message
    assert refused_id(message(id=1, method="m"), SizeLimits(max_bytes=10)) is None


def test_a_message_may_have_so_many_arrays_and_objects_and_not_one_more():
    data = message(id=1, method="m", params={"a": [{}, [], "[" * 100] * 100})
    assert isinstance(decode(data, SizeLimits(max_containers=203)), wire.Request)
    refused = refusal(data, max_containers=202)
    assert refused.message == "Message has more than 202 arrays and objects"


def test_halves_of_characters_without_end_are_refused_unread():
    few, many = (b'{"jsonrpc":"2.0","method":"%b"}' % (rb"\ud800" * n) for n in (1000, 60_000))
    assert decode(few).method == "\ufffd" * 1000
    assert refusal(many).code == PARSE_ERROR


def nested(depth: int, *, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    """A message that is `depth` deep, the envelope included."""
    inside = opening * (depth - 2) + closing * (depth - 2)
    return b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":' + (inside or b"1") + b"}}"


@pytest.mark.parametrize("limit", [3, 10, 64, 100])
def test_a_message_may_be_max_depth_deep_and_not_one_more(limit: int):
    assert isinstance(decode(nested(limit), SizeLimits(max_depth=limit)), wire.Request)
    assert refusal(nested(limit + 1), max_depth=limit).code == INVALID_REQUEST


@pytest.mark.parametrize(
    ("data", "id"),
    [
        (nested(11), 1),
        (nested(11).replace(b'"method"', b'"result"'), None),
        (nested(11).replace(b'"id":1', b'"id":"1"'), None),
        (nested(11).replace(b'"id":1', b'"id":%b' % (b"1" * 5000)), None),
        (nested(11).replace(b'{"jsonrpc"', b'{"a":{"jsonrpc"') + b"}", None),
    ],
    ids=["request", "response", "text", "number without end", "not at the top"],
)
def test_the_id_of_a_request_that_is_too_deep_is_that_before_its_method(
    data: bytes, id: int | None
):
    assert refusal(data, max_depth=10).code == INVALID_REQUEST
    assert refused_id(data, SizeLimits(max_depth=10)) == id


def test_brackets_in_strings_do_not_count_as_depth():
    text = '[{"\\' * 1000
    assert isinstance(decode(message(method=text, params={text: [text]})), wire.Notification)


def reference_depth(data: bytes) -> int:
    """How deep a JSON text is nested, one byte at a time."""
    depth = deepest = 0
    inside = escaped = False
    for byte in data:
        if inside:
            if escaped:
                escaped = False
            elif byte == ord("\\"):
                escaped = True
            elif byte == ord('"'):
                inside = False
        elif byte == ord('"'):
            inside = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


tricky_text = st.text(alphabet='[]{}"\\a', max_size=30)
tricky_values = st.recursive(
    tricky_text | st.integers(0, 9) | json_values,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(tricky_text, inner, max_size=6),
    max_leaves=40,
)


@given(tricky_values, st.integers(1, 12), st.booleans())
def test_the_fast_depth_check_agrees_with_a_slow_one(value: object, limit: int, escaped: bool):
    data = json.dumps(value, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    assert wire._is_deep(wire._shape(data), limit) == (reference_depth(data) > limit)


@given(st.integers(0, 60), st.integers(1, 60), st.integers(1, 2000), tricky_text)
def test_the_fast_depth_check_agrees_for_wide_and_deep_values(
    depth: int, limit: int, width: int, text: str
):
    inner = b"[" * depth + as_json(text) + b"]" * depth
    data = b"[" + b",".join([b"[]", inner] * width) + b"]"
    expected = max(depth + 1, 2) > limit
    assert wire._is_deep(wire._shape(data), limit) == expected


MEGABYTE = 1024 * 1024


@pytest.mark.load
@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(b"[" * MEGABYTE, id="opened and never closed"),
        pytest.param(b'{"a":' * (MEGABYTE // 5), id="objects never closed"),
        pytest.param(b"[]" * (MEGABYTE // 2), id="a wide row of nothing"),
        pytest.param((b"[" * 98 + b"]" * 98) * (MEGABYTE // 196), id="as deep as allowed, wide"),
        pytest.param(b'"["' * (MEGABYTE // 3), id="brackets in strings"),
        pytest.param(b'"\\[' * (MEGABYTE // 3), id="bad escapes"),
        pytest.param(b"[" * 201 + b'"' + b'\\"' * (MEGABYTE // 2), id="a string that never ends"),
        pytest.param(b"[" * 201 + b'"' + b"\\\\" * (MEGABYTE // 2) + b'"', id="backslashes"),
        pytest.param(b"[" * 201 + b'"' * MEGABYTE, id="quotes"),
        pytest.param(b"[" * 201 + b"\\" * MEGABYTE, id="backslashes outside of strings"),
        pytest.param(b'{"jsonrpc":"2.0","id":' + b"9" * MEGABYTE + b"}", id="a long number"),
    ],
)
def test_a_bomb_of_a_megabyte_is_refused_in_linear_time(bomb: bytes):
    started = time.process_time()
    refusal(bomb)
    refused_id(bomb)
    # Linear takes some 0.1 s; what is quadratic, or passes over it for each level, takes many.
    assert time.process_time() - started < 1.0


# --- properties ------------------------------------------------------------------------------


@given(anything)
@example(b"\x80")
@example(b'{"jsonrpc":"2.0","id":"\\ud800","method":"m"}')
def test_decode_returns_a_message_or_refuses_and_never_does_anything_else(data: bytes):
    try:
        outcome: object = decode(data)
    except MessageRefused as refused:
        outcome = refused.code
    assert isinstance(outcome, wire.Message) or outcome in {PARSE_ERROR, INVALID_REQUEST}
    assert isinstance(refused_id(data), int | str | None)


@given(anything, st.data())
def test_whatever_is_accepted_is_json_for_every_other_reader(data: bytes, draw: st.DataObject):
    place = draw.draw(st.integers(0, max(len(data) - 1, 0)))
    mutated = data[:place] + draw.draw(st.binary(max_size=3)) + data[place + 1 :]
    for candidate in (data, mutated):
        try:
            decode(candidate)
        except MessageRefused:
            continue
        assert json.loads(candidate.decode("utf-8"))["jsonrpc"] == "2.0"


json_objects = st.dictionaries(st.text(max_size=6), st.integers(-9, 9) | st.text(max_size=6))


@given(request_ids, st.text(), st.none() | json_objects)
def test_what_encode_writes_decode_reads(id: int | str, method: str, params: dict | None):
    raw = None if params is None else msgspec.json.encode(params)
    request = decode(wire.encode_request(id, method, raw))
    assert (request.id, request.method) == (id, method)
    assert (None if request.params is None else bytes(request.params)) == raw
    notice = decode(wire.encode_notification(method, raw))
    assert (notice.method, notice.params is None) == (method, raw is None)
    result = raw or b"{}"
    response = decode(wire.encode_response(id, result))
    assert (response.id, bytes(response.result)) == (id, result)


@given(request_ids, st.integers(-(2**31), 2**31), st.text(), st.none() | json_objects)
def test_an_encoded_error_is_read_back_with_its_data(
    id: int | str, code: int, text: str, data: dict | None
):
    answer = decode(wire.encode_error(id, code, text, msgspec.UNSET if data is None else data))
    assert (answer.id, answer.error.code, answer.error.message) == (id, code, text)
    assert answer.error.data == (msgspec.UNSET if data is None else data)


@given(request_ids, json_values)
def test_a_refused_request_is_answered_under_its_own_id(id: int | str, other: object):
    data = message(id=id, method="m", unknown=other)
    refusal(data)
    answered = refused_id(data)
    assert (type(answered), answered) == (type(id), id)
