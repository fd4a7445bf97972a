"""Where a line of a page was written: `transom.check.positions`."""

from pathlib import Path

import pytest

from transom.check.positions import Position, find_position

PAGE = "<!doctype html>\n<script>\n  start();\n  go();\n  start();\n</script>\n"


@pytest.mark.parametrize(
    ("files", "line", "column", "found"),
    [
        ({"a.html": PAGE}, 4, 3, Position(4, 3, "go();", "a.html")),
        ({"a.html": PAGE}, 5, 3, Position(5, 3, "start();", "a.html")),  # by what is around it
        ({"a.html": PAGE, "b.html": PAGE}, 4, 3, Position(4, 3, "go();")),  # either
        ({"s.py": "x = '''\n" + PAGE.replace("  ", "\t")}, 4, 3, Position(5, 2, "go();", "s.py")),
        ({"a.css": PAGE, "b.html": "other"}, 4, 3, Position(4, 3, "go();")),
        ({}, 4, 3, Position(4, 3, "go();")),
        ({"a.html": PAGE}, 9, 1, None),
        ({"a.html": PAGE}, 0, 1, None),
    ],
)
def test_a_line_is_found_in_the_file_that_has_it(
    tmp_path: Path, files: dict[str, str], line: int, column: int, found: Position | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    seen = find_position(PAGE, line, column, [tmp_path / name for name in files])
    if found is not None and found.file:
        found = Position(found.line, found.column, found.text, str(tmp_path / found.file))
    assert seen == found


def test_of_a_line_that_a_program_wrote_the_part_around_the_place_is_shown() -> None:
    page = "a" * 5000 + "here" + "b" * 5000
    found = find_position(page, 1, 5001, [])
    assert found is not None
    assert "here" in found.text
    assert len(found.text) == 120
