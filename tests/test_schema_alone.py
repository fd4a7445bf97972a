"""Schemas and results where only the standard library and msgspec are to be had."""

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.processes

PROGRAM = """
    import sys

    class Nothing:
        def find_spec(self, name, path=None, target=None):
            top = name.partition(".")[0]
            if top not in sys.stdlib_module_names and top not in {"transom", "msgspec"}:
                raise ImportError(f"{name} is not here")

    sys.meta_path.insert(0, Nothing())

    from dataclasses import dataclass
    from typing import Annotated
    from transom.errors import SchemaError, ValidationError
    from transom.schema import from_return, from_signature, input_schema
    from transom.results import to_result

    @dataclass
    class Track:
        title: str
        seconds: int = 0

    def play(track: Track, volume: Annotated[int, "How loud"] = 5) -> list[Track]: ...

    schema = from_signature(play)
    print(schema.parse(b'{"track":{"title":"Kashmir"}}'))
    try:
        schema.parse(b'{"track":{"title":3}}')
    except ValidationError as error:
        print(error)
    print(to_result([Track("Kashmir")], from_return(play)).text)
    try:
        input_schema({"type": "object"})
    except SchemaError as error:
        print(error)
"""


MISSING = (
    "checking values against JSON Schema needs the package jsonschema-rs or jsonschema; "
    "install one of them, or describe the tool with type hints"
)


def test_hints_and_results_need_nothing_else() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, check=True
    )
    assert answer.stdout.splitlines() == [
        "{'track': Track(title='Kashmir', seconds=0), 'volume': 5}",
        "track.title: expected string, got integer",
        '[{"title":"Kashmir","seconds":0}]',
        MISSING,
    ]
