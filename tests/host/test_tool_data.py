"""The order of a call's data, and what of it a View that initialises gets."""

import pytest

from transom.errors import NotConnected, OutOfOrder
from transom.host.views.tool_data import CANCELLED, INPUT, PARTIAL_INPUT, RESULT, ToolData
from transom.protocol.lifecycle import Lifecycle

PARTS = [PARTIAL_INPUT, INPUT, RESULT, CANCELLED]
MAY_FOLLOW: dict[tuple[str, ...], set[str]] = {
    (): {PARTIAL_INPUT, INPUT, CANCELLED},
    (PARTIAL_INPUT,): {PARTIAL_INPUT, INPUT, CANCELLED},
    (PARTIAL_INPUT, PARTIAL_INPUT): {PARTIAL_INPUT, INPUT, CANCELLED},
    (INPUT,): {RESULT, CANCELLED},
    (PARTIAL_INPUT, INPUT): {RESULT, CANCELLED},
    (CANCELLED,): set(),
    (INPUT, CANCELLED): set(),
    (INPUT, RESULT): set(),
}


class Given:
    """A View's tool data, and what was sent to the View."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes]] = []
        self.lifecycle = Lifecycle()
        self.data = ToolData(
            self.lifecycle, lambda method, params: self.sent.append((method, params))
        )

    def initialize(self) -> None:
        self.lifecycle.record("view", "ui/initialize")

    def initialized(self) -> None:
        self.lifecycle.record("view", "ui/notifications/initialized")
        self.sent += self.data.take_due()

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.sent]


@pytest.mark.parametrize("ready", [False, True])
@pytest.mark.parametrize("given", MAY_FOLLOW, ids=lambda given: " ".join(given) or "nothing")
@pytest.mark.parametrize("method", PARTS)
def test_a_calls_data_is_given_in_one_order(ready: bool, given: tuple[str, ...], method: str):
    view = Given()
    if ready:
        view.initialize()
        view.initialized()
    for each in given:
        view.data.deliver(each, b"{}")
    if method in MAY_FOLLOW[given]:
        view.data.deliver(method, b"{}")
        return
    before = view.methods
    with pytest.raises(OutOfOrder, match=f"{method}: not after"):
        view.data.deliver(method, b"{}")
    assert view.methods == before


def test_of_the_partial_inputs_that_wait_a_view_gets_the_last_one():
    view = Given()
    view.data.deliver(PARTIAL_INPUT, b'{"n":1}')
    view.initialize()
    view.data.deliver(PARTIAL_INPUT, b'{"n":2}')
    view.data.deliver(INPUT, b'{"n":3}')
    assert view.sent == []
    view.initialized()
    assert view.sent == [(PARTIAL_INPUT, b'{"n":2}'), (INPUT, b'{"n":3}')]


def test_a_view_that_initialises_again_gets_the_input_and_the_outcome_again():
    view = Given()
    view.initialize()
    view.initialized()
    for method in (PARTIAL_INPUT, INPUT):
        view.data.deliver(method, b"{}")
    view.initialize()
    with pytest.raises(OutOfOrder):
        view.data.deliver(INPUT, b"{}")
    view.data.deliver(RESULT, b"{}")
    view.initialized()
    assert view.methods == [PARTIAL_INPUT, INPUT, INPUT, RESULT]
    view.initialize()
    view.initialized()
    assert view.methods[4:] == [INPUT, RESULT]


def test_nothing_is_given_to_a_view_that_is_torn_down():
    view = Given()
    view.initialize()
    view.initialized()
    view.lifecycle.record("host", "ui/resource-teardown")
    with pytest.raises(NotConnected, match="being torn down"):
        view.data.deliver(INPUT, b"{}")
    with pytest.raises(NotConnected, match="being torn down"):
        view.data.begin_call({})
    assert view.sent == []
