"""The files of a test: names that come from tests and their parameters are never paths."""

from pathlib import Path

import pytest

from transom.testing.view_files import ViewFiles


def files(tmp_path: Path, id: str) -> ViewFiles:
    return ViewFiles(tmp_path / id.partition("::")[0], id, lambda: tmp_path / "out")


@pytest.mark.parametrize(
    ("id", "name", "snapshot"),
    [
        ("test_a.py::test_it", None, "test_it.txt"),
        ("test_a.py::test_it", "second", "test_it.second.txt"),
        ("test_a.py::test_it[a-1]", None, "test_it-a-1.txt"),
        ("test_a.py::TestA::test_it", None, "TestA-test_it.txt"),
    ],
)
def test_the_name_of_a_snapshot_is_that_of_the_test(
    tmp_path: Path, id: str, name: str | None, snapshot: str
):
    file = files(tmp_path, id).snapshot("txt", name)
    assert file == tmp_path / "__views__" / "test_a" / snapshot


@pytest.mark.parametrize(
    "id",
    [
        *("test_a.py::test_it[../../etc]", "test_a.py::test_it[/etc]", "../x/test_a.py::test_it"),
        *("test_a.py::test_it[a\x1b[31mb]", f"test_a.py::test_it[{'long' * 100}]"),
    ],
)
@pytest.mark.parametrize("name", [None, "../../x", "/etc/x", "..", "x" * 1000])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, id: str, name: str | None):
    made = files(tmp_path, id)
    snapshot = made.snapshot("txt", name)
    assert snapshot.parent.name == "test_a"
    assert snapshot.parent.parent.name == "__views__"
    assert snapshot.name.isprintable()
    assert len(snapshot.name) < 255
    failure = made.failure()
    assert failure.parent.parent == tmp_path / "out"
    assert ".." not in failure.parts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("test_a.py::test_it[a b]", "test_a.py::test_it[a-b]"),
        ("test_a.py::A::test_it", "test_a.py::B::test_it"),
        (f"test_a.py::test_it[{'x' * 200}1]", f"test_a.py::test_it[{'x' * 200}2]"),
        ("one/test_a.py::test_it", "other/test_a.py::test_it"),
    ],
)
def test_two_tests_have_two_folders_for_their_failures(tmp_path: Path, one: str, other: str):
    assert files(tmp_path, one).failure() != files(tmp_path, other).failure()
