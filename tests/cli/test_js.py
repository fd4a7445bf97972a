"""`transom js`: copies that are what they were made from, and nobody's file lost."""

from pathlib import Path

import pytest

from tests.cli.running import transom
from transom.cli.files import FILES
from transom.version import __version__

STATIC = Path(__file__).parents[2] / "src" / "transom" / "web" / "static"


def test_the_files_are_copied_into_a_folder_that_is_made(tmp_path: Path):
    out = tmp_path / "src" / "transom"
    ran = transom("js", "--out", str(out))
    assert ran.returncode == 0
    assert ran.stdout.splitlines() == [str(out / name) for name in FILES]
    assert sorted(file.name for file in out.iterdir()) == sorted(FILES)
    for name in FILES:
        note, _, text = (out / name).read_text().partition("\n")
        assert __version__ in note
        assert text == (STATIC / name).read_text()


def test_every_module_of_a_view_is_among_them_with_all_declarations():
    for_applications = {"elements.d.ts", "messages.d.ts"}
    declared = {file.name for file in STATIC.glob("*.d.ts")} - for_applications
    assert set(FILES) == declared | {"transom.js", "webmcp.js", "react.js", "zod.js"}


def test_earlier_copies_are_replaced(tmp_path: Path):
    assert transom("js", "--out", str(tmp_path)).returncode == 0
    copy = tmp_path / "transom.js"
    expected = copy.read_text()
    copy.write_text(expected.partition("\n")[0] + "\n// of long ago\n")
    assert transom("js", "--out", str(tmp_path)).returncode == 0
    assert copy.read_text() == expected


@pytest.mark.parametrize("content", [b"export const mine = 1;", b"\xff\xfe", b""])
def test_a_file_of_the_users_is_not_touched_and_nothing_is_copied(tmp_path: Path, content: bytes):
    mine = tmp_path / "react.js"
    mine.write_bytes(content)
    ran = transom("js", "--out", str(tmp_path))
    assert ran.returncode == 1
    assert "was not written by transom js" in ran.stderr
    assert mine.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["react.js"]


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path):
    (tmp_path / "file").write_text("")
    ran = transom("js", "--out", str(tmp_path / "file" / "below"))
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("transom js: ")


def test_without_a_folder_it_says_how_to_use_it():
    ran = transom("js")
    assert ran.returncode == 2
    assert "--out DIR" in ran.stdout
