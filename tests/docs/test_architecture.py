"""The architecture page names files that exist, and every folder of the package."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "transom"
PAGE = (ROOT / "docs" / "architecture.md").read_text()

PLACES = (SOURCE, ROOT, ROOT / "js" / "src", SOURCE / "web" / "static")
NAMED = sorted(set(re.findall(r"`([\w/]+(?:\.py|\.js|\.ts|/))`", PAGE)))


def test_every_file_and_folder_that_the_page_names_exists():
    missing = [name for name in NAMED if not any((place / name).exists() for place in PLACES)]
    assert missing == []


def test_the_page_names_every_package():
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert {f"{name}/" for name in packages} <= set(NAMED)


def test_the_names_that_the_page_gives_to_classes_and_functions_are_defined():
    # `Host.call_tool` and the like: the class and the method are somewhere in the package.
    text = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    classes = set(re.findall(r"^class (\w+)", text, re.MULTILINE))
    members = set(re.findall(r"\bdef (\w+)", text)) | set(re.findall(r"\b(\w+) = Event", text))
    named = re.findall(r"`([A-Z]\w+)\.(\w+)`", PAGE)
    assert {owner for owner, _ in named} <= classes
    assert {member for _, member in named} <= members


WHERE = re.findall(
    r"^\| (.+) \| `([\w/.]+)` \| `(\w+)` \|$",
    PAGE.split("## Where is …")[1].split("\n## ")[0],
    re.MULTILINE,
)


def test_where_things_are_is_told_for_thirty_features_or_more():
    assert len(WHERE) >= 30


@pytest.mark.parametrize(("feature", "file", "name"), WHERE, ids=[row[0] for row in WHERE])
def test_a_feature_is_where_the_page_says(feature: str, file: str, name: str):
    found = next((place / file for place in PLACES if (place / file).exists()), None)
    row = f'the row "{feature}" of docs/architecture.md is stale'
    assert found is not None, f"{row}: there is no {file}"
    defined = rf"^(export )?(async )?(class |def |function |const )?{name}\b"
    assert re.search(defined, found.read_text(), re.MULTILINE), f"{row}: {file} defines no {name}"
