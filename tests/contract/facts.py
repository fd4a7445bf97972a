"""What a fact of the official SDK is to us, and how to see that each has a test of ours."""

import re
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).parents[2]


class Fact(NamedTuple):
    """One numbered fact: do we match it, do better, or differ, and which test of ours shows it."""

    id: str
    ours: Literal["match", "exceed", "differ"]
    test: str
    why: str = ""


@cache
def functions_in(path: Path) -> frozenset[str]:
    """The names of the functions in a Python file, such as tests."""
    return frozenset(re.findall(r"^ *(?:async )?def (\w+)", path.read_text(), re.MULTILINE))


def without_test(test: str) -> bool:
    """Whether a test that is named is not there."""
    path, _, name = test.partition("::")
    return not (ROOT / path).is_file() or name not in functions_in(ROOT / path)


def numbering(ids: list[str], wanted: list[str]) -> list[str]:
    """What is missing in a list of ids, unknown, or there twice."""
    found = [f"{id} is missing" for id in wanted if id not in ids]
    found += [f"{id} is not known" for id in ids if id not in wanted]
    return found + [f"{id} is there twice" for id in sorted({i for i in ids if ids.count(i) > 1})]


def problems(facts: list[Fact], sections: dict[str, int]) -> list[str]:
    """What is wrong with a list of facts: missing, doubled, without reason, without a test."""
    wanted = [f"{letter}-{n:03}" for letter, count in sections.items() for n in range(1, count + 1)]
    found = numbering([fact.id for fact in facts], wanted)
    for fact in facts:
        if without_test(fact.test):
            found.append(f"{fact.id}: there is no test {fact.test}")
        if fact.ours != "match" and not fact.why:
            found.append(f"{fact.id}: {fact.ours}, but why?")
    return found
