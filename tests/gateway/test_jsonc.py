"""One member of a JSON file is changed and everything else stays."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.errors import UsageError
from transom.gateway.configuration.config_text import FORMATS
from transom.gateway.configuration.jsonc import read_object

NEW = {"command": "run", "args": ["a"]}


def put(text: str, name: str = "new", value: object = NEW) -> str:
    return FORMATS["json"].put(text, "servers", name, value, "FILE")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "servers": {\n    "new": 1\n  }\n}\n'),
        (" \n", '{\n  "servers": {\n    "new": 1\n  }\n}\n'),
        ("{}", '{\n  "servers": {\n    "new": 1\n  }\n}'),
        ('{"a": 1}', '{"a": 1, "servers": {"new": 1}}'),
        ('{ "a": 1 }\n', '{ "a": 1, "servers": {"new": 1} }\n'),
        ('{"servers": {"x": {}}}', '{"servers": {"x": {}, "new": 1}}'),
        ('{\n\t"a": 1\n}\n', '{\n\t"a": 1,\n\t"servers": {\n\t\t"new": 1\n\t}\n}\n'),
        ('{\n    "servers": {}\n}', '{\n    "servers": {\n        "new": 1\n    }\n}'),
        (
            '{\r\n  "servers": {\r\n    "x": 1\r\n  }\r\n}',
            '{\r\n  "servers": {\r\n    "x": 1,\r\n    "new": 1\r\n  }\r\n}',
        ),
        (
            '{\n  "servers": {\n    "x": 1, // the first\n  }, // all\n}',
            '{\n  "servers": {\n    "x": 1, // the first\n    "new": 1\n  }, // all\n}',
        ),
        (
            '{\n  "servers": {\n    "x": 1 // no comma\n  }\n}',
            '{\n  "servers": {\n    "x": 1, // no comma\n    "new": 1\n  }\n}',
        ),
        (
            '// top\n{\n  "servers": {\n    // none yet\n  } /* , */\n}',
            '// top\n{\n  "servers": {\n    // none yet\n    "new": 1\n  } /* , */\n}',
        ),
        ('{"servers": {"new": 2, "y": 3}}', '{"servers": {"new": 1, "y": 3}}'),
        ('{"servers": {"new": [2]}}', '{"servers": {"new": 1}}'),
    ],
)
def test_a_member_is_put_in_and_the_rest_is_as_it_was(before: str, after: str):
    assert put(before, value=1) == after


def test_an_entry_that_is_replaced_keeps_its_place_and_indentation():
    before = '{\n    "servers": {\n        "new": {"old": 1}, // mine\n        "y": 2\n    }\n}\n'
    assert put(before) == (
        '{\n    "servers": {\n        "new": {\n            "command": "run",\n'
        '            "args": [\n                "a"\n            ]\n        }, // mine\n'
        '        "y": 2\n    }\n}\n'
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"servers": {"new": { // why\n "x": 1}}}', "has comments in it that would be lost"),
        ('{"servers": {"new": 1, "new": 2}}', "'new' is there 2 times"),
        ('{"servers": {}, "servers": {}}', "'servers' is there 2 times"),
        ('{"servers": []}', "'servers' is not a JSON object there"),
        ('{"servers": null}', "'servers' is not a JSON object there"),
        ('{"a": 1, "a": 2, "servers": {', "FILE:1:30: this is not JSON"),
        ("[]", "must be a JSON object"),
    ],
)
def test_what_cannot_be_changed_without_loss_is_refused(text: str, says: str):
    with pytest.raises(UsageError) as refused:
        put(text)
    assert says in str(refused.value)


@pytest.mark.parametrize("text", ["{,}", "[,]", "[1,,]", '{"a": ,}', '{"a": 1,, }'])
def test_a_comma_that_trails_nothing_is_not_json(text: str):
    with pytest.raises(UsageError, match="is not JSON"):
        read_object('{"x": ' + text + "}", "FILE")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
SECTION = st.dictionaries(st.text(), JSON, max_size=3)


@given(
    st.dictionaries(st.text(), JSON, max_size=3),
    SECTION,
    st.text(),
    JSON,
    st.sampled_from([None, 1, 4, "\t"]),
)
def test_any_file_holds_what_it_held_and_the_new_entry(
    config: dict[str, object],
    section: dict[str, object],
    name: str,
    value: object,
    indent: int | str | None,
):
    config["servers"] = section
    text = json.dumps(config, indent=indent)
    changed = put(text, name, value)

    assert json.loads(changed) == {**config, "servers": {**section, name: value}}
    assert list(json.loads(changed)) == list(config)
    assert put(changed, name, value) == changed
