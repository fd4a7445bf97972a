"""The architecture page names files that exist, and every folder of the package."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "transom"
PAGE = (ROOT / "docs" / "architecture.md").read_text()

NAMED = sorted(set(re.findall(r"`([\w/]+(?:\.py|\.js|\.ts|/))`", PAGE)))


def test_every_file_and_folder_that_the_page_names_exists():
    places = (SOURCE, ROOT, ROOT / "js" / "src", SOURCE / "web" / "static")
    missing = [name for name in NAMED if not any((place / name).exists() for place in places)]
    assert missing == []


def test_the_page_names_every_package():
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert {f"{name}/" for name in packages} <= set(NAMED)


def test_the_names_that_the_page_gives_to_classes_and_functions_are_defined():
    # `Host.call_tool` and the like: the class and the method are somewhere in the package.
    text = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    for owner, member in re.findall(r"`([A-Z]\w+)\.(\w+)`", PAGE):
        assert re.search(rf"^class {owner}\b", text, re.MULTILINE), owner
        assert re.search(rf"\b(def {member}\b|{member} = Event)", text), f"{owner}.{member}"
