"""The file of cases: what it may have, and what is said about mistakes in it."""

from pathlib import Path

import pytest

from transom.errors import UsageError
from transom.evals.cases import After, Expected, read_cases
from transom.testing.model import Call

GOOD = """\
server: orders.py
model: [openai:gpt-5, script]
variants:
  plain: {}
  longer:
    descriptions: {select: Select an order.}
cases:
  - name: one
    open: {tool: show}
    ask: |
      Select A-1.
    script:
      - {tool: select, arguments: {id: A-1}}
      - [{tool: look}, {tool: look}]
      - Done.
    expect:
      calls: [{tool: select, arguments: {id: A-1}}]
      answer: [Done]
      after: [{tool: get, contains: A-1}]
  - name: two
    ask: Look.
    expect: {page: Orders}
"""
# Each line stands for ten times the one before: ten thousand million values.
LAUGHS = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 11)
)


def test_a_file_of_cases_is_read(tmp_path: Path):
    file = tmp_path / "cases.yaml"
    file.write_text(GOOD)
    found = read_cases(file)
    assert (found.server, found.runs, found.timeout) == ("orders.py", 5, 120)
    one, two = found.cases
    assert one.ask == "Select A-1.\n"
    assert one.script == [Call("select", {"id": "A-1"}), [Call("look"), Call("look")], "Done."]
    assert one.expect.after == [After(tool="get", contains="A-1")]
    assert two.expect == Expected(page="Orders")
    assert found.variants["longer"].descriptions == {"select": "Select an order."}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("server: orders.py\n", "", "line 1: Object missing required field `server`"),
        ("    ask: Look.", "    asks: Look.", "line 21: cases[1]: there is no field asks here"),
        ("{page: Orders}", "{page: 3}", "line 22: cases[1].expect.page: Expected `str | array`"),
        ("{page: Orders}", "{}", "line 20: case 'two' expects nothing"),
        ("{page: Orders}", "{snapshot: ../x.txt}", "line 20: case 'two': the snapshot ../x.txt"),
        ("{page: Orders}", "{snapshot: /x.txt}", "line 20: case 'two': the snapshot /x.txt"),
        ("name: two", "name: one", "line 20: case 'one' is there twice"),
        ("name: two", "name: ''", "line 20: cases[1].name: Expected `str` of length >= 1"),
        ("{tool: show}", "{tol: show}", "line 9: cases[0].open: there is no field tol here"),
        ("- Done.", "- 3", "line 15: cases[0].script[2]: Expected"),
        ("  plain: {}", "  longer: {}", "line 5: this is not YAML: found duplicate key"),
        ("  plain: {}", "  plain: {", "line 6: this is not YAML"),
        ("server:", "runs: 0\nserver:", "line 1: runs: Expected `int` >= 1"),
        (GOOD, "- a list", "line 1: Expected `object`, got `array`"),
        (GOOD, "", "line 1: Expected `object`, got `null`"),
        (GOOD, "\0", "cannot be used: "),
        (GOOD, LAUGHS, "cannot be used: it has more than 100000 values"),
        (GOOD, "{a: " * 1000 + "}" * 1000, "is nested too deeply"),
        (GOOD, "a: !!python/object:os.system {}", "line 1: "),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, old: str, new: str, says: str):
    assert old in GOOD
    file = tmp_path / "cases.yaml"
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(UsageError) as caught:
        read_cases(file)
    assert str(caught.value).startswith(str(file))
    assert says in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match="none.yaml cannot be read: No such file"):
        read_cases(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"name: \xe9")
    with pytest.raises(UsageError, match="latin.yaml is not UTF-8 text"):
        read_cases(tmp_path / "latin.yaml")
    (tmp_path / "large.yaml").write_bytes(b"#" * 2_000_000)
    with pytest.raises(UsageError, match="large.yaml is larger than"):
        read_cases(tmp_path / "large.yaml")
