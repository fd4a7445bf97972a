"""What a fact of the official SDK is to us, and how to see that each has a test of ours."""

import ast
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
def tests_in(path: str) -> frozenset[str]:
    """The names of the tests in a file."""
    tree = ast.parse((ROOT / path).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def problems(facts: list[Fact], sections: dict[str, int]) -> list[str]:
    """What is wrong with a list of facts: missing, doubled, without reason, without a test."""
    found: list[str] = []
    wanted = [f"{letter}-{n:03}" for letter, count in sections.items() for n in range(1, count + 1)]
    ids = [fact.id for fact in facts]
    found += [f"{id} is missing" for id in wanted if id not in ids]
    found += [f"{id} is not a fact we know" for id in ids if id not in wanted]
    found += [f"{id} is there twice" for id in sorted({id for id in ids if ids.count(id) > 1})]
    for fact in facts:
        path, _, name = fact.test.partition("::")
        if not (ROOT / path).is_file() or name not in tests_in(path):
            found.append(f"{fact.id}: there is no test {fact.test}")
        if fact.ours != "match" and not fact.why:
            found.append(f"{fact.id}: {fact.ours}, but why?")
    return found
