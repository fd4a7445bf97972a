import inspect
import pickle
import re

import pytest

from transom import errors
from transom.errors import Mismatch, ProtocolError, TransomError, ValidationError, ViewClosed

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, Exception)
}


def drawn() -> dict[str, str]:
    """Each class of the tree in the docstring, with the one it hangs from."""
    parents: dict[str, str] = {}
    branch: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^ {4}(?P<lines>[│├└─ ]*)(?P<name>[A-Z]\w+)", line)
        if found is None:
            continue
        depth = len(found["lines"]) // 4
        branch[depth:] = [found["name"]]
        parents[found["name"]] = branch[depth - 1] if depth else "Exception"
    return parents


def test_the_tree_in_the_docstring_is_the_tree():
    assert drawn() == {name: kind.__bases__[0].__name__ for name, kind in CLASSES.items()}


def test_every_exception_has_one_root():
    assert all(issubclass(kind, TransomError) for kind in CLASSES.values())


def test_local_and_remote_mistakes_are_never_the_same():
    for kind in CLASSES.values():
        assert not (issubclass(kind, errors.UsageError) and issubclass(kind, errors.PeerError))


def test_a_protocol_error_says_its_message_and_code():
    error = ProtocolError(-32602, "Tool x not found", {"name": "x"})
    assert str(error) == "Tool x not found (-32602)"
    assert (error.code, error.message, error.data) == (-32602, "Tool x not found", {"name": "x"})
    assert ProtocolError(1, "m").data is None


def test_a_problem_says_where_and_what():
    assert str(Mismatch("items[2].id", "is missing")) == "items[2].id: is missing"
    assert str(Mismatch("", "is not an object")) == "is not an object"


def test_a_validation_error_lists_its_problems():
    error = ValidationError([Mismatch("a", "too long"), Mismatch("b", "too short")])
    assert str(error) == "a: too long; b: too short"
    assert error.mismatches == (Mismatch("a", "too long"), Mismatch("b", "too short"))


def test_a_closed_view_is_named():
    error = ViewClosed("orders-1", "The View orders-1 is closed")
    assert error.view_id == "orders-1"
    assert str(error) == "The View orders-1 is closed"


@pytest.mark.parametrize(
    "error",
    [
        ProtocolError(-1, "m", {"a": 1}),
        ValidationError([Mismatch("a", "b")]),
        errors.MessageRefused(-32600, "no"),
        ViewClosed("v", "gone"),
        errors.RequestTimeout("late"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_can_cross_to_another_process(error: TransomError):
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - we have just written it
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
