"""Each step of a conversation, allowed and forbidden, from every state."""

import pytest

from transom.errors import NotConnected, OutOfOrder, PeerError, TransomError
from transom.protocol.lifecycle import Lifecycle, LifecycleState
from transom.protocol.methods import METHODS, Sender

CREATED, INITIALIZING, READY, TEARING_DOWN, CLOSED = LifecycleState
PARTIAL = "ui/notifications/tool-input-partial"
INPUT = "ui/notifications/tool-input"
RESULT = "ui/notifications/tool-result"
INITIALIZED = "ui/notifications/initialized"
TEARDOWN = "ui/resource-teardown"

# What the host may send while the View is not (or no longer) there to hear anything else.
HOST_ANY_TIME = {
    "notifications/progress",
    "notifications/cancelled",
    "ui/notifications/sandbox-resource-ready",
}


def conversation(state: LifecycleState) -> Lifecycle:
    lifecycle = Lifecycle()
    lifecycle.state = state
    return lifecycle


def allowed(lifecycle: Lifecycle, sender: Sender, method: str) -> bool:
    before = lifecycle.state
    try:
        lifecycle.check(sender, method)
    except (OutOfOrder, NotConnected, PeerError) as error:
        assert method in str(error)
        with pytest.raises(type(error)):
            lifecycle.record(sender, method)
        assert lifecycle.state is before, "a refused step changes nothing"
        return False
    assert lifecycle.state is before, "looking changes nothing"
    return True


# --- states ----------------------------------------------------------------------------------

MOVES: list[tuple[LifecycleState, Sender, str, LifecycleState]] = [
    (CREATED, "view", "ui/initialize", INITIALIZING),
    (INITIALIZING, "view", "ui/initialize", INITIALIZING),
    (INITIALIZING, "view", INITIALIZED, READY),
    (READY, "view", "ui/initialize", INITIALIZING),
    (READY, "host", TEARDOWN, TEARING_DOWN),
]


@pytest.mark.parametrize(("state", "sender", "method", "expected"), MOVES)
def test_these_steps_move_the_conversation_on(
    state: LifecycleState, sender: Sender, method: str, expected: LifecycleState
):
    lifecycle = conversation(state)
    lifecycle.record(sender, method)
    assert lifecycle.state is expected


@pytest.mark.parametrize("state", LifecycleState)
@pytest.mark.parametrize(("sender", "method"), METHODS, ids=lambda part: part)
def test_no_other_step_moves_it(state: LifecycleState, sender: Sender, method: str):
    if any((state, sender, method) == move[:3] for move in MOVES):
        return
    lifecycle = conversation(state)
    if allowed(lifecycle, sender, method):
        lifecycle.record(sender, method)
    assert lifecycle.state is state


@pytest.mark.parametrize("method", [name for sender, name in METHODS if sender == "host"])
@pytest.mark.parametrize("state", LifecycleState)
def test_the_host_speaks_only_to_a_view_that_is_ready(state: LifecycleState, method: str):
    expected = state is READY or (method in HOST_ANY_TIME and state is not CLOSED)
    assert allowed(conversation(state), "host", method) == expected


@pytest.mark.parametrize("method", [name for sender, name in METHODS if sender == "view"])
@pytest.mark.parametrize("state", LifecycleState)
def test_the_view_may_speak_until_the_end(state: LifecycleState, method: str):
    expected = state is INITIALIZING if method == INITIALIZED else state is not CLOSED
    assert allowed(conversation(state), "view", method) == expected


@pytest.mark.parametrize(
    ("state", "sender", "method", "error"),
    [
        (CREATED, "host", INPUT, OutOfOrder),
        (INITIALIZING, "host", INPUT, OutOfOrder),
        (TEARING_DOWN, "host", INPUT, NotConnected),
        (CLOSED, "host", INPUT, NotConnected),
        (CLOSED, "view", "tools/call", NotConnected),
        (CREATED, "view", INITIALIZED, PeerError),
        (READY, "view", INITIALIZED, PeerError),
    ],
)
def test_an_error_says_whose_mistake_it_is_if_it_is_one(
    state: LifecycleState, sender: Sender, method: str, error: type[TransomError]
):
    with pytest.raises(error, match=method):
        conversation(state).check(sender, method)


@pytest.mark.parametrize("state", LifecycleState)
def test_a_method_nobody_has_heard_of_is_treated_like_any_other(state: LifecycleState):
    assert allowed(conversation(state), "host", "x/y") == (state is READY)
    assert allowed(conversation(state), "view", "x/y") == (state is not CLOSED)


@pytest.mark.parametrize("state", LifecycleState)
def test_closed_is_closed_from_any_state(state: LifecycleState):
    lifecycle = conversation(state)
    lifecycle.close()
    assert lifecycle.state is CLOSED
    assert not lifecycle.ready
    lifecycle.close()
    for sender, method in METHODS:
        assert not allowed(lifecycle, sender, method)


def test_it_is_ready_only_between_initialized_and_teardown():
    assert [state for state in LifecycleState if conversation(state).ready] == [READY]


def test_a_whole_conversation_from_the_first_word_to_the_last():
    lifecycle = Lifecycle()
    for sender, method in [
        ("view", "ui/initialize"),
        ("view", INITIALIZED),
        ("host", PARTIAL),
        ("host", PARTIAL),
        ("host", INPUT),
        ("view", "tools/call"),
        ("host", RESULT),
        ("host", "tools/call"),
        ("host", TEARDOWN),
        ("view", "ui/notifications/size-changed"),
        ("host", "notifications/cancelled"),
    ]:
        lifecycle.record(sender, method)
    assert lifecycle.state is TEARING_DOWN
