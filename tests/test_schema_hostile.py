"""Whatever arrives, the answer is a value that fits or a ValidationError."""

import dataclasses
import string
import time
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ids import plain
from transom.errors import ValidationError
from transom.schema import Schema, from_signature, input_schema, output_schema


@dataclasses.dataclass
class Branch:
    name: str = ""
    branches: "list[Branch]" = dataclasses.field(default_factory=list)


class Model(pydantic.BaseModel):
    a: int
    kids: "list[Model]" = []


class Custom:
    def json_schema(self) -> dict[str, Any]:
        return {"type": "object"}

    def validate(self, value: Any) -> Any:
        return {"a": int(value["a"])}


def named(
    a: int, b: str = "", kind: Literal["x", "y"] = "x", tree: Branch | None = None
) -> None: ...


def opened(a: int, **others: str) -> None: ...


TREE = {"type": "object", "properties": {"branches": {"items": {"$ref": "#"}}}}
SCHEMAS = {
    "signature": from_signature(named),
    "open signature": from_signature(opened),
    "dataclass": input_schema(Branch),
    "pydantic": input_schema(Model),
    "pydantic output": output_schema(Model),
    "document": input_schema({"properties": {"a": {"type": "integer"}}, "required": ["a"]}),
    "recursive document": input_schema(TREE),
    "custom": input_schema(Custom()),
    "output": output_schema(list[int]),
}
MEGABYTES = 10_000_000
HOSTILE = {
    "nothing": b"",
    "null": b"null",
    "an array": b"[]",
    "a string": b'"{}"',
    "a number": b"1",
    "half an object": b'{"a":',
    "two objects": b"{}{}",
    "not utf-8": b'{"a":"\xff"}',
    "a key that is not utf-8": b'{"\xff":1}',
    "NaN": b'{"a":NaN}',
    "infinity": b'{"a":1e999}',
    "a lone surrogate": b'{"a":"\\ud800"}',
    "a raw control character": b'{"a":"\x00"}',
    "a million brackets": b"[" * 1_000_000,
    "deep arrays": b'{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "deep objects": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "10 MB of text": b'{"a":"' + b"x" * MEGABYTES + b'"}',
    "10 MB of digits": b'{"a":' + b"1" * 100_000 + b".5}",
    "10 MB of a key": b'{"' + b"k" * MEGABYTES + b'":1}',
    "10 MB of wrong items": b'{"a":[' + b'"x",' * (MEGABYTES // 4) + b'"x"]}',
    "duplicate keys": b'{"a":"x","a":[]}',
    "prototype": b'{"__proto__":{"a":1},"constructor":[],"a":null}',
}


@pytest.mark.load
@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_hostile_input_is_refused_soon_and_in_few_words(schema: Schema, data: bytes) -> None:
    started = time.process_time()
    try:
        schema.parse(data)
    except ValidationError as error:
        assert 1 <= len(error.mismatches) <= 11
        assert len(str(error)) < 3_000
    assert time.process_time() - started < 5


def test_most_hostile_input_is_refused_indeed() -> None:
    refused = 0
    for data in HOSTILE.values():
        with pytest.raises(ValidationError):
            SCHEMAS["signature"].parse(data)
        refused += 1
    assert refused == len(HOSTILE)


def test_the_last_of_duplicate_keys_counts_for_check_and_value_alike() -> None:
    for name in ("signature", "document", "pydantic", "custom"):
        value = SCHEMAS[name].parse(b'{"a":2,"a":1}')
        assert (value["a"] if SCHEMAS[name].spread else value.a) == 1
        with pytest.raises(ValidationError):
            SCHEMAS[name].parse(b'{"a":1,"a":"x"}')


def test_integers_have_any_size() -> None:
    number = 10**300
    data = b'{"a":%d}' % number
    for name in ("signature", "document", "custom"):
        assert SCHEMAS[name].parse(data)["a"] == number


def test_more_problems_than_anyone_can_list_are_counted() -> None:
    with pytest.raises(ValidationError, match="does not fit in 2000 places"):
        SCHEMAS["pydantic"].parse(b'{"a":1,"kids":[' + b'"x",' * 1_999 + b'"x"]}')


def test_many_problems_in_a_small_message_are_listed_soon() -> None:
    wrong = b'{"branches":[' + b'{"name":1},' * 2_000 + b'{"name":1}]}'
    started = time.process_time()
    with pytest.raises(ValidationError, match=r"branches\[0\]\.name: expected string"):
        SCHEMAS["dataclass"].parse(wrong)
    assert time.process_time() - started < 5


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize(
    "value",
    [object(), print, {"a": object()}, {"a": "\ud800"}, {1j: 2}, 1j, ...],
    ids=plain,
)
def test_python_values_that_are_no_json_are_refused(schema: Schema, value: Any) -> None:
    with pytest.raises(ValidationError):
        schema.validate(value)


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_python_value_that_contains_itself_is_refused(schema: Schema) -> None:
    loop: dict[str, Any] = {}
    loop["a"] = loop
    loop["branches"] = [loop]
    loop["kids"] = [loop]
    with pytest.raises(ValidationError):
        schema.validate(loop)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "b", "kind", "tree", "branches", "name", "kids", "__proto__"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@given(value=json_values)
def test_any_json_fits_or_is_refused(schema: Schema, value: Any) -> None:
    try:
        schema.parse(msgspec.json.encode(value))
    except ValidationError as error:
        assert error.mismatches
        assert all(len(mismatch.message) <= 200 for mismatch in error.mismatches)


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@given(
    data=st.binary(max_size=40) | st.text(string.punctuation + "ab1", max_size=40).map(str.encode)
)
def test_any_bytes_fit_or_are_refused(schema: Schema, data: bytes) -> None:
    try:
        schema.parse(data)
    except ValidationError as error:
        assert error.mismatches


def test_a_length_cap_is_enforced_on_text_of_any_size() -> None:
    def tool(word: Annotated[str, msgspec.Meta(pattern="^[a-z]+$", max_length=10)]) -> None: ...

    schema = from_signature(tool)
    assert schema.parse(b'{"word":"abc"}') == {"word": "abc"}
    with pytest.raises(ValidationError, match="word: expected string of length <= 10"):
        schema.parse(b'{"word":"' + b"a" * 1_000_000 + b'"}')
