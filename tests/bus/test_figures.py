import pytest

from benchmarks.fleet import measure

pytestmark = pytest.mark.processes


async def test_what_a_fleet_costs_is_measured_for_calls_frames_and_users():
    found = await measure(users=3, views=1, messages=30, idle=0.1)
    assert found["KB of Redis, for a user"] > 0
    for cost in found["costs"].values():
        assert cost["redis_in"] >= 0
    [call, *_] = found["costs"].values()
    assert call["redis_in"] > 2000
    assert call["commands"] >= 2
