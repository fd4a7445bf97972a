import msgspec
import pytest

from tests.ids import plain
from tests.protocol.hostile import as_json
from transom.errors import (
    INVALID_REQUEST,
    SERVER_ERROR,
    NotConnected,
    ProtocolError,
    TooManyRequests,
)
from transom.protocol import wire
from transom.protocol.peer import Cancelled, Peer, Progress, ProtocolViolation, Unreadable


def ask(id: int | str, method: str = "m") -> bytes:
    return wire.encode_request(id, method, None)


def answer(id: int | str) -> bytes:
    return wire.encode_response(id, b"{}")


def refuse(id: int | str | None) -> bytes:
    return as_json({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "no"}})


def tell(method: str, **params: object) -> bytes:
    return wire.encode_notification(method, msgspec.json.encode(params))


# --- rule 1: one event for each message ------------------------------------------------------


def test_each_kind_of_message_is_its_own_event():
    peer = Peer()
    asked, _ = peer.request("m")
    refused, _ = peer.request("m")
    assert isinstance(peer.feed(ask(1)), wire.Request)
    assert isinstance(peer.feed(tell("m")), wire.Notification)
    assert isinstance(peer.feed(answer(asked)), wire.Response)
    assert isinstance(peer.feed(refuse(refused)), wire.ErrorResponse)
    assert isinstance(peer.feed(b"nonsense"), ProtocolViolation)


def test_a_refused_request_is_answered_with_the_reason_under_its_id():
    event = Peer().feed(b'{"jsonrpc":"2.0","id":"x","method":"m","params":[1]}')
    assert isinstance(event, ProtocolViolation)
    reply = wire.decode(event.reply)
    assert (reply.id, reply.error.code) == ("x", INVALID_REQUEST)
    assert reply.error.message == event.message


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense",
        b'{"jsonrpc":"2.0","method":"m","params":[]}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"m","params":[]}',
        b'{"jsonrpc":"2.0","id":null,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1,"result":[]}',
        b'{"jsonrpc":"2.0","id":1,"error":{}}',
    ],
    ids=plain,
)
def test_what_is_no_request_is_refused_without_an_answer(data: bytes):
    event = Peer().feed(data)
    assert isinstance(event, ProtocolViolation)
    assert event.reply is None


# --- rule 2: a request of ours ends exactly once ---------------------------------------------


def test_requests_are_numbered_from_zero_upwards():
    peer = Peer()
    ids = [peer.request("m")[0] for _ in range(3)]
    assert ids == [0, 1, 2]
    assert Peer(first_id=7).request("m")[0] == 7


def test_the_first_answer_counts_and_every_later_one_is_a_violation():
    peer = Peer()
    id, _ = peer.request("m")
    assert isinstance(peer.feed(answer(id)), wire.Response)
    assert peer.outgoing == 0
    assert isinstance(peer.feed(answer(id)), ProtocolViolation)
    assert isinstance(peer.feed(refuse(id)), ProtocolViolation)


def test_an_error_is_an_answer_too():
    peer = Peer()
    id, _ = peer.request("m")
    assert isinstance(peer.feed(refuse(id)), wire.ErrorResponse)
    assert isinstance(peer.feed(answer(id)), ProtocolViolation)


def test_an_answer_to_something_never_asked_is_reported_and_not_replied_to():
    for data in (answer(0), answer("0"), refuse(0), refuse(None)):
        event = Peer().feed(data)
        assert isinstance(event, ProtocolViolation)
        assert event.reply is None


def test_an_answer_under_the_id_as_a_string_does_not_end_the_request():
    peer = Peer()
    id, _ = peer.request("m")
    assert isinstance(peer.feed(answer(str(id))), ProtocolViolation)
    assert peer.outgoing == 1
    assert isinstance(peer.feed(answer(id)), wire.Response)


def test_an_error_without_an_id_ends_no_request():
    peer = Peer()
    peer.request("m")
    assert isinstance(peer.feed(refuse(None)), ProtocolViolation)
    assert peer.outgoing == 1


def test_an_answer_after_cancel_is_a_violation():
    peer = Peer()
    id, _ = peer.request("m")
    notice = wire.decode(peer.cancel(id, "enough"))
    assert notice.method == "notifications/cancelled"
    assert msgspec.json.decode(notice.params) == {"requestId": id, "reason": "enough"}
    assert isinstance(peer.feed(answer(id)), ProtocolViolation)


def test_cancelling_what_has_ended_says_nothing():
    peer = Peer()
    id, _ = peer.request("m")
    peer.feed(answer(id))
    assert peer.cancel(id) is None
    again, _ = peer.request("m")
    assert peer.cancel(again) is not None
    assert peer.cancel(again) is None
    assert peer.cancel("never asked") is None


# --- rule 3: a request of theirs is answered at most once ------------------------------------


def test_a_request_is_answered_once():
    peer = Peer()
    peer.feed(ask("a"))
    assert wire.decode(peer.respond("a", b'{"x":1}')).id == "a"
    assert peer.respond("a", b"{}") is None
    assert peer.fail("a", -1, "no") is None


def test_a_failure_carries_code_text_and_data():
    peer = Peer()
    peer.feed(ask(1))
    error = wire.decode(peer.fail(1, -5, "no", {"why": [1]})).error
    assert (error.code, error.message, error.data) == (-5, "no", {"why": [1]})
    peer.feed(ask(2))
    assert wire.decode(peer.fail(2, -5, "no")).error.data is msgspec.UNSET


def test_an_answer_that_cannot_be_written_leaves_the_request_to_be_answered():
    peer = Peer()
    peer.feed(ask(1))
    with pytest.raises(TypeError):
        peer.fail(1, -5, "no", object())
    assert peer.fail(1, -5, "no") is not None


def test_a_cancelled_request_is_not_answered():
    peer = Peer()
    peer.feed(ask(1))
    assert peer.feed(tell("notifications/cancelled", requestId=1, reason="r")) == Cancelled(1, "r")
    assert peer.respond(1, b"{}") is None
    assert peer.incoming == 0


def test_nothing_is_answered_that_was_never_asked():
    assert Peer().respond(1, b"{}") is None
    assert Peer().fail(1, -1, "no") is None


# --- rule 4: ids in use ----------------------------------------------------------------------


def test_an_id_in_use_is_refused_without_an_answer_and_free_again_afterwards():
    peer = Peer()
    peer.feed(ask(1))
    event = peer.feed(ask(1, "other"))
    assert isinstance(event, ProtocolViolation)
    assert event.reply is None
    assert isinstance(peer.feed(ask("1")), wire.Request)
    peer.respond(1, b"{}")
    assert isinstance(peer.feed(ask(1)), wire.Request)


def test_a_bad_request_with_an_id_in_use_is_not_answered_either():
    peer = Peer()
    peer.feed(ask(1))
    event = peer.feed(b'{"jsonrpc":"2.0","id":1,"method":"m","params":[]}')
    assert isinstance(event, ProtocolViolation)
    assert event.reply is None


def test_ids_of_the_two_directions_are_independent():
    peer = Peer()
    id, _ = peer.request("m")
    assert isinstance(peer.feed(ask(id)), wire.Request)
    assert isinstance(peer.feed(answer(id)), wire.Response)
    assert peer.respond(id, b"{}") is not None


# --- rules 5 and 6: caps ---------------------------------------------------------------------


def test_one_request_too_many_is_refused_until_there_is_room():
    peer = Peer(max_incoming=2)
    peer.feed(ask(1))
    peer.feed(ask(2))
    event = peer.feed(ask(3))
    assert isinstance(event, ProtocolViolation)
    reply = wire.decode(event.reply)
    assert (reply.id, reply.error.code) == (3, SERVER_ERROR)
    assert "2" in reply.error.message
    assert peer.respond(3, b"{}") is None
    peer.respond(1, b"{}")
    assert isinstance(peer.feed(ask(3)), wire.Request)


def test_cancelling_makes_no_room_before_the_handler_has_ended():
    peer = Peer(max_incoming=1)
    peer.feed(ask(1))
    peer.feed(tell("notifications/cancelled", requestId=1))
    assert isinstance(peer.feed(ask(2)), ProtocolViolation)
    peer.respond(1, b"{}")
    assert isinstance(peer.feed(ask(2)), wire.Request)


def test_a_request_counts_with_what_came_of_it_another_way_until_it_ends():
    peer = Peer(max_bytes=100)  # 400 bytes of requests
    for id in (1, 2):
        assert isinstance(peer.feed(ask(id)), wire.Request)
        peer.count(id, 200)
    peer.count(1, 10)  # it is no smaller than its message
    assert isinstance(peer.feed(ask(3)), ProtocolViolation)
    peer.respond(1, b"{}")
    assert isinstance(peer.feed(ask(3)), wire.Request)
    with pytest.raises(ProtocolError, match=r"in flight \(limit 400 bytes\)"):
        peer.count(3, 300)
    peer.fail(3, SERVER_ERROR, "refused")
    assert isinstance(peer.feed(ask(4)), wire.Request)


def test_one_request_of_ours_too_many_raises_until_one_has_ended():
    peer = Peer(max_outgoing=1)
    id, _ = peer.request("m")
    with pytest.raises(TooManyRequests, match="1 requests"):
        peer.request("m")
    peer.feed(answer(id))
    assert peer.request("m")[0] == id + 1


def test_a_request_that_cannot_be_written_takes_no_place():
    peer = Peer(max_outgoing=1)
    with pytest.raises(TypeError):
        peer.request("m", meta={"x": object()})
    with pytest.raises(UnicodeEncodeError):
        peer.request("\ud800")
    assert peer.outgoing == 0
    peer.request("m")


# --- cancellation and progress ---------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        *(None, b"{}", b'{"requestId":null}', b'{"requestId":1.5}', b'{"requestId":2}'),
        *(b'{"requestId":"1"}', b'{"requestId":1,"reason":5}'),
        b'{"requestId":' + b"9" * 5000 + b"}",
    ],
)
def test_a_cancellation_that_names_no_running_request_is_reported(params: bytes | None):
    peer = Peer()
    peer.feed(ask(1))
    event = peer.feed(wire.encode_notification("notifications/cancelled", params))
    assert isinstance(event, ProtocolViolation)
    assert event.reply is None
    assert peer.respond(1, b"{}") is not None


def test_a_request_is_cancelled_once():
    peer = Peer()
    peer.feed(ask(1))
    cancellation = tell("notifications/cancelled", requestId=1)
    assert peer.feed(cancellation) == Cancelled(1, None)
    assert isinstance(peer.feed(cancellation), ProtocolViolation)


def test_progress_is_reported_for_a_request_that_asked_for_it():
    peer = Peer()
    id, data = peer.request("m", b'{"a":1}', progress=True)
    params = msgspec.json.decode(wire.decode(data).params)
    assert params == {"a": 1, "_meta": {"progressToken": id}}
    event = peer.feed(tell("notifications/progress", progressToken=id, progress=1, total=2))
    assert isinstance(event, Progress)
    assert (event.id, event.progress, event.total, event.message) == (id, 1.0, 2.0, None)
    event = peer.feed(tell("notifications/progress", progressToken=id, progress=2, message="x"))
    assert isinstance(event, Progress)
    assert (event.id, event.progress, event.total, event.message) == (id, 2.0, None, "x")
    said = {"progressToken": id, "progress": 2, "message": "x"}
    assert msgspec.json.decode(event.params) == said


def test_progress_is_asked_for_beside_the_params_own_meta():
    peer = Peer()
    for own, kept in ((b'{"trace":1,"progressToken":"x"}', {"trace": 1}), (b"[1]", {})):
        id, data = peer.request("m", b'{"a":1,"_meta":%b}' % own, progress=True)
        params = msgspec.json.decode(wire.decode(data).params)
        assert params == {"a": 1, "_meta": {**kept, "progressToken": id}}


def test_a_request_of_ours_may_be_ended_by_cancelling_it_where_that_is_allowed():
    for allowed in (False, True):
        peer = Peer(may_cancel_ours=allowed)
        id, _ = peer.request("subscriptions/listen")
        event = peer.feed(tell("notifications/cancelled", requestId=id, reason="over"))
        assert isinstance(event, wire.ErrorResponse if allowed else ProtocolViolation)
        assert peer.outgoing == (0 if allowed else 1)


def test_progress_nobody_asked_for_is_a_violation():
    peer = Peer()
    id, _ = peer.request("m")
    late, _ = peer.request("m", progress=True)
    peer.feed(answer(late))
    for token in (id, late, str(late), 99):
        event = peer.feed(tell("notifications/progress", progressToken=token, progress=1))
        assert isinstance(event, ProtocolViolation)


@pytest.mark.parametrize(
    "params",
    [
        *(None, b"{}", b'{"progressToken":0}', b'{"progressToken":0,"progress":"1"}'),
        *(b'{"progressToken":[],"progress":1}', b'{"progressToken":0,"progress":1e999}'),
    ],
)
def test_progress_with_unusable_params_is_a_violation(params: bytes | None):
    peer = Peer()
    peer.request("m", progress=True)
    event = peer.feed(wire.encode_notification("notifications/progress", params))
    assert isinstance(event, ProtocolViolation)
    assert event.reply is None


@pytest.mark.parametrize("params", [None, b"{}", b"{ }", b" {} ", b'{"a":1}', b' { "a" : 1 } '])
def test_meta_is_put_into_params_of_any_form(params: bytes | None):
    _, data = Peer().request("m", params, meta={"k": [1]})
    sent = msgspec.json.decode(wire.decode(data).params)
    assert sent == {**msgspec.json.decode(params or b"{}"), "_meta": {"k": [1]}}


def test_meta_and_the_progress_token_go_together_and_the_given_meta_is_not_changed():
    meta = {"k": 1}
    id, data = Peer().request("m", meta=meta, progress=True)
    assert msgspec.json.decode(wire.decode(data).params)["_meta"] == {"k": 1, "progressToken": id}
    assert meta == {"k": 1}


# --- rule 7: closed --------------------------------------------------------------------------


def test_after_close_nothing_is_said_and_nothing_is_heard():
    peer = Peer()
    id, _ = peer.request("m", progress=True)
    peer.feed(ask(1))
    peer.close()
    assert (peer.outgoing, peer.incoming) == (0, 0)
    assert peer.respond(1, b"{}") is None
    assert peer.fail(1, -1, "no") is None
    assert peer.cancel(id) is None
    with pytest.raises(NotConnected):
        peer.request("m")
    with pytest.raises(NotConnected):
        peer.notify("m")
    for data in (ask(2), answer(id), tell("m"), b"nonsense"):
        assert peer.feed(data) == ProtocolViolation(
            "A message arrived after the conversation was closed"
        )
    peer.close()
    assert peer.incoming == 0


def test_the_limits_of_the_peer_reach_the_wire():
    peer = Peer(max_bytes=100, max_depth=3)
    assert isinstance(peer.feed(tell("m", a="x" * 100)), ProtocolViolation)
    assert isinstance(peer.feed(tell("m", a=[])), wire.Notification)
    assert isinstance(peer.feed(tell("m", a=[[]])), ProtocolViolation)


def test_a_request_that_is_too_deep_is_answered_with_an_error() -> None:
    ours, theirs = Peer(), Peer()
    id, data = ours.request("tools/call", b'{"a":%b1%b}' % (b"[" * 100, b"]" * 100))
    event = theirs.feed(data)
    assert isinstance(event, ProtocolViolation)
    assert event.reply is not None
    answer = ours.feed(event.reply)
    assert isinstance(answer, wire.ErrorResponse)
    assert (answer.id, answer.error.message) == (id, "Message is nested deeper than 100")
    assert (ours.outgoing, theirs.incoming) == (0, 0)


@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","id":%d,"result":{"a":"%b"}}',
        b'{"jsonrpc":"2.0","result":{"a":"%2$b"},"id":%1$d}',
    ],
    ids=["id first", "id last"],
)
def test_an_answer_that_is_too_large_ends_its_request_with_an_error(answer: bytes) -> None:
    peer = Peer(max_bytes=1000)
    id, _ = peer.request("tools/call")
    big = b"x" * 2000
    text = answer.replace(b"%2$b", big).replace(b"%1$d", b"%d" % id)
    event = peer.feed(text if b"%" not in text else text % (id, big))
    assert isinstance(event, Unreadable)
    assert event.id == id
    assert "over the limit" in event.message
    assert peer.outgoing == 0


@pytest.mark.parametrize(
    "answer",
    [
        b'{"result":{"id":0,"rows":["%b"]},"jsonrpc":"2.0","id":1}',
        b'{"result":{"rows":[{"id":0},"%b"]},"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1,"result":{"rows":["%b",{"id":0}]}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"rows":["%b"],"id":0}}',
    ],
)
def test_an_id_inside_a_refused_answer_is_not_the_id_of_the_answer(answer: bytes) -> None:
    peer = Peer(max_bytes=1000)
    other, asked = peer.request("m")[0], peer.request("m")[0]
    assert (other, asked) == (0, 1)
    event = peer.feed(answer % (b"x" * 2000))
    assert isinstance(event, Unreadable)
    assert event.id == asked


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","result":{"id":0,"rows":["%b"]}}',
        b'{"jsonrpc":"2.0","result":{"rows":["%b"],"id":0}}',
        b'{"jsonrpc":"2.0","id":"0","result":{"a":"%b"}}',
        b'{"jsonrpc":"2.0","id":0.5,"result":{"a":"%b"}}',
        b'[{"jsonrpc":"2.0","id":0,"result":{"a":"%b"}}]',
    ],
)
def test_a_refused_answer_that_does_not_say_what_it_answers_ends_nothing(data: bytes) -> None:
    peer = Peer(max_bytes=1000)
    peer.request("m")
    assert isinstance(peer.feed(data % (b"x" * 2000)), ProtocolViolation)
    assert peer.outgoing == 1


def test_a_refused_message_that_is_no_answer_ends_nothing() -> None:
    peer = Peer(max_bytes=1000)
    id, _ = peer.request("tools/call")
    big = b"x" * 2000
    request = b'{"jsonrpc":"2.0","id":%d,"method":"x","params":{"a":"%b"}}' % (id, big)
    assert isinstance(peer.feed(request), ProtocolViolation)
    assert isinstance(peer.feed(b'{"id":99,"a":"%b"}' % big), ProtocolViolation)
    assert peer.outgoing == 1
