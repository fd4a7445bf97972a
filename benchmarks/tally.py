"""What every soak run counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class CallTally:
    """The calls of a run, the faults it made, and what went wrong."""

    asked: int = 0
    results: int = 0
    errors: Counter[str] = field(default_factory=Counter[str])
    faults: Counter[str] = field(default_factory=Counter[str])
    times: list[float] = field(default_factory=list[float])
    violations: list[str] = field(default_factory=list[str])

    @property
    def ok(self) -> bool:
        """Whether nothing went wrong."""
        return not self.violations

    def percentile(self, part: float) -> float:
        """How many milliseconds so large a part of the calls took at most."""
        ordered = sorted(self.times)
        return ordered[min(int(len(ordered) * part), len(ordered) - 1)] * 1000 if ordered else 0.0
