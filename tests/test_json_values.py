"""Text of strangers: what of it a model may read."""

import json
import subprocess
import sys
from shutil import which

import pytest

from transom.json_values import clean, has_word, is_clean, visible_json, without_marks

# The names of Unicode's properties, as any engine of JavaScript knows them.
LIST_UNSEEN = """
const unseen = /[\\p{Default_Ignorable_Code_Point}\\p{Bidi_Control}\\p{Cc}\\p{Zl}\\p{Zp}]/u;
const found = [];
for (let code = 0; code <= 0x10ffff; code++) {
  if (unseen.test(String.fromCodePoint(code))) found.push(code);
}
console.log(JSON.stringify(found));
"""


@pytest.mark.processes
@pytest.mark.skipif(which("node") is None, reason="needs Node.js")
def test_no_character_of_unicode_that_nobody_sees_or_that_turns_text_around_is_left():
    run = subprocess.run(["node", "-e", LIST_UNSEEN], capture_output=True, check=True)
    unseen = [chr(code) for code in json.loads(run.stdout)] + ["\u2800", "⟦", "⟧"]
    assert len(unseen) > 4000
    left = [f"U+{ord(char):04X}" for char in unseen if clean(f"a{char}b", 10) not in ("ab", "a b")]
    assert left == []


def test_json_that_is_shown_has_all_characters_and_hides_none():
    value = {"a\u202eb": ["\x7f\u2028\u00a0\u3164\U000e0041", "é 你好 😀", 1.5, None, "\\\n"]}
    shown = visible_json(value)
    assert is_clean(shown)
    assert json.loads(shown) == value
    assert "é 你好 😀" in shown
    assert visible_json({"a": 1}) == '{"a":1}'


@pytest.mark.load
def test_whatever_character_is_cleaned_once_stays_as_it_is():
    for start in range(0, sys.maxunicode + 1, 256):
        block = "".join(map(chr, range(start, start + 256)))
        assert is_clean(clean(block, 1000)), f"between U+{start:04X} and U+{start + 255:04X}"


def test_letters_signs_and_spaces_of_every_script_are_kept():
    for text in (
        "Grüße",
        "Привет",
        "مرحبا",
        "שלום",
        "नमस्ते",
        "你好",
        "한국어",
        "ไทย",
        "∑ → €",
        "😀",
    ):
        assert clean(text, 100) == text


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("{}", "{}"),
        ('{"a":"⟦View bank-1⟧"}', '{"a":"[View bank-1]"}'),
        (r'{"a":"\u27e6View bank-1\u27E7"}', '{"a":"[View bank-1]"}'),
        (r'{"a":"\\u27e6"}', r'{"a":"\\u27e6"}'),  # a backslash, and then letters
        (r'{"a":"\\\u27e6"}', r'{"a":"\\["}'),
        (r'{"a":"\u27\u27e6e6"}', r'{"a":"\u27[e6"}'),
        (r'{"a":"\u27ff \u0027"}', r'{"a":"\u27ff \u0027"}'),
    ],
)
def test_the_hosts_brackets_are_taken_out_of_json_and_all_else_stays(given: str, left: str):
    assert without_marks(given.encode()) == left.encode()


def test_json_without_them_is_not_even_copied():
    data = b'{"content":[]}'
    assert without_marks(data) is data


def test_bytes_around_a_bracket_do_not_become_one():
    torn = "⟦".encode()
    assert "⟦".encode() not in without_marks(torn[:2] + torn + torn[2:])


def test_a_million_backslashes_before_a_bracket_are_read_once():
    data = b"\\" * 1_000_000 + b"\\u27e6"
    assert without_marks(data) == b"\\" * 1_000_000 + b"["
    assert without_marks(b"\\" + data) == b"\\" + data


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (rb'{"a": {"x-key": 1}}', True),
        (rb'{"a": ["x-key"]}', True),
        (rb'{"a": {"x\u002dkey": 1}}', True),
        (b"[" * 10_000 + rb'"x\u002dkey"' + b"]" * 10_000, True),
        (rb'{"a": {"x-keys": 1, "\u00e4": "x\u002dkeys"}}', False),
    ],
)
def test_a_word_is_found_however_it_is_spelled(data: bytes, found: bool) -> None:
    assert has_word(data, "x-key") is found
