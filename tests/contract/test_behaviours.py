from tests.contract.behaviours import FACTS
from tests.contract.facts import Fact, problems


def test_every_fact_about_the_view_has_a_test_of_ours() -> None:
    assert problems(FACTS, {"A": 134, "F": 7}) == []


def test_a_list_that_lacks_something_is_found_out() -> None:
    here = "tests/contract/test_behaviours.py::test_a_list_that_lacks_something_is_found_out"
    facts = [
        Fact("X-001", "match", here),
        Fact("X-001", "exceed", here),
        Fact("X-009", "match", here),
        Fact("X-002", "match", "tests/contract/test_behaviours.py::test_that_is_not_there"),
        Fact("X-003", "match", "tests/nowhere.py::test_x"),
    ]
    assert len(problems(facts, {"X": 4})) == 6
