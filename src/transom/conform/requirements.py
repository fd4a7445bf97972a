"""Requirements, and what was measured of each.

1. Who measures may be a stranger's host or View, so what it reports is bounded: known ids only, and
   short texts.
2. A requirement that failed once has failed: a later pass does not change that.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from transom.errors import UsageError
from transom.json_values import as_list, clean

Subject = Literal["host", "view"]
"""Whose conformance is measured."""
Level = Literal["MUST", "SHOULD", "MAY"]
LEVELS: tuple[Level, ...] = ("MUST", "SHOULD", "MAY")
Outcome = Literal["pass", "fail", "skip"]
"""It holds; it does not; it was not measured."""
SPECIFICATION = (
    "https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx"
)
_MAX_DETAIL = 300
_RANK: dict[Outcome, int] = {"skip": 0, "pass": 1, "fail": 2}


class Requirement(msgspec.Struct, frozen=True):
    """Something that the specification requires of hosts, or of Views."""

    id: str
    level: Level
    clause: str
    """The heading in the specification."""
    text: str
    by: str
    """Who observes it: the first lines of `host.toml` and `view.toml` explain each."""

    @property
    def url(self) -> str:
        """The place in the specification."""
        words = re.sub(r"[^\w\- ]", "", self.clause.lower())
        return f"{SPECIFICATION}#{words.replace(' ', '-')}"


@cache
def requirements(subject: Subject) -> dict[str, Requirement]:
    """All requirements of hosts, or of Views, by id."""
    text = files("transom.conform").joinpath(f"{subject}.toml").read_text("utf-8")
    made = {id: {"id": id, **fields} for id, fields in tomllib.loads(text).items()}
    return msgspec.convert(made, dict[str, Requirement])


class Measurement(msgspec.Struct, frozen=True):
    """What was measured of one requirement."""

    id: str
    outcome: Outcome
    detail: str = ""
    """What was observed, or why nothing was."""


class Measurements:
    """What has been measured of a host or a View so far.

    Args:
        subject: what is measured.
        unmeasured: for each `by` of a requirement, why it has no verdict if it has none.
    """

    def __init__(self, subject: Subject, unmeasured: dict[str, str]) -> None:
        self.subject: Subject = subject
        self._unmeasured = unmeasured
        self._verdicts: dict[str, Measurement] = {}

    def add(self, id: str, outcome: Outcome, detail: str = "") -> None:
        """Add a verdict. An id that is no requirement is a mistake of the kit."""
        if id not in requirements(self.subject):
            raise UsageError(f"there is no requirement {id}")
        known = self._verdicts.get(id)
        if known is None or _RANK[known.outcome] < _RANK[outcome]:
            self._verdicts[id] = Measurement(id, outcome, clean(detail, _MAX_DETAIL))

    def check(self, id: str, holds: object, detail: str = "") -> None:
        """Add whether a requirement holds; `detail` says what was observed if it does not."""
        self.add(id, "pass" if holds else "fail", "" if holds else detail)

    def take(self, reported: object) -> None:
        """Add what an instrument reported; what is not a verdict is left out."""
        for each in as_list(reported)[: len(requirements(self.subject))]:
            try:
                verdict = msgspec.convert(each, Measurement)
                self.add(verdict.id, verdict.outcome, verdict.detail)
            except (msgspec.ValidationError, UsageError):
                continue

    def outcome(self, id: str) -> Outcome | None:
        """What is known of a requirement."""
        verdict = self._verdicts.get(id)
        return None if verdict is None else verdict.outcome

    def verdicts(self) -> list[Measurement]:
        """One verdict for each requirement, in their order."""
        return [
            self._verdicts.get(each.id) or Measurement(each.id, "skip", self._unmeasured[each.by])
            for each in requirements(self.subject).values()
        ]

    def failed(self) -> list[str]:
        """The ids of the requirements that do not hold."""
        return [verdict.id for verdict in self.verdicts() if verdict.outcome == "fail"]
