"""What can be said after a few runs: an interval for a rate, and whether two rates differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

_Z = 1.959964  # of the normal distribution, for 95 %


def wilson(passed: int, runs: int) -> tuple[float, float]:
    """Wilson's interval, which has the true rate with a probability of 95 %."""
    if runs == 0:
        return 0.0, 1.0
    rate, z2 = passed / runs, _Z * _Z
    middle = rate + z2 / (2 * runs)
    half = _Z * math.sqrt(rate * (1 - rate) / runs + z2 / (4 * runs * runs))
    low, high = (middle - half) / (1 + z2 / runs), (middle + half) / (1 + z2 / runs)
    return (0.0 if passed == 0 else low), (1.0 if passed == runs else high)


Counts = tuple[int, int]
"""Of the runs of a case: how many passed, how many there were."""


def chance(before: Sequence[Counts], after: Sequence[Counts]) -> float:
    """How likely a difference at least this large is, if there is none: an exact test.

    Within each case, which runs passed is independent of the group they are in; the cases may be
    differently hard. For one case this is Fisher's test.

    Args:
        before: of each case, in one group.
        after: of the same cases, in the other.
    """
    ways = [1]  # how many ways there are to so many passes after, of those that there were
    expected = 0.0
    for (passed_before, runs_before), (passed_after, runs_after) in zip(before, after, strict=True):
        passed, runs = passed_before + passed_after, runs_before + runs_after
        expected += passed * runs_after / runs if runs else 0.0
        of_case = [
            math.comb(runs_after, k) * math.comb(runs_before, passed - k) if k <= passed else 0
            for k in range(runs_after + 1)
        ]
        ways = _convolved(ways, of_case)
    observed = abs(sum(passed for passed, _ in after) - expected)
    as_large = sum(n for k, n in enumerate(ways) if abs(k - expected) >= observed - 1e-9)
    return as_large / sum(ways)


def _convolved(one: list[int], other: list[int]) -> list[int]:
    result = [0] * (len(one) + len(other) - 1)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            result[i + j] += a * b
    return result


def best_chance(before: Sequence[Counts], after: Sequence[Counts]) -> float:
    """The least that `chance` can be with so many runs: above 0.05, no difference can be shown."""
    return chance([(0, runs) for _, runs in before], [(runs, runs) for _, runs in after])
