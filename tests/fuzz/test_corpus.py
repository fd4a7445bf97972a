"""What coverage-guided fuzzing has found worth keeping (`make fuzz`) escapes nowhere."""

from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

pytestmark = pytest.mark.load

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.timeout(240)  # many of them, one after the other
@pytest.mark.parametrize("target", TARGETS)
def test_nothing_that_was_found_escapes(target: str) -> None:
    inputs = sorted((CORPUS / target).iterdir())
    assert len(inputs) >= 3
    for each in inputs:
        TARGETS[target](each.read_bytes())
