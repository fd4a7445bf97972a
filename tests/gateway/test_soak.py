"""The gateway's soak in its short form: `python -m benchmarks.soak_gateway` is the long one."""

import pytest

from benchmarks.soak_gateway import soak

pytestmark = pytest.mark.processes


@pytest.mark.nightly
@pytest.mark.timeout(240)  # browsers and servers restart all the time, which takes what it takes
async def test_every_call_is_answered_and_nothing_is_left_behind_whatever_is_killed():
    tally = await soak("headless", 3.0, within=45.0, fault_every=1.5, seed=7)
    assert tally.violations == [], tally.text()
    assert tally.faults.total() >= 1
    assert tally.results > 20
    assert tally.opened > 0
