from tests.contract.behaviours_host import FACTS
from tests.contract.facts import problems


def test_every_fact_about_the_host_and_the_wire_has_a_test_of_ours() -> None:
    assert problems(FACTS, {"B": 72, "E": 25}) == []
