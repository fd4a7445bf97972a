"""Every link in every page leads somewhere: files, headings, and the tests that hold a promise."""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.contract.facts import functions_in

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))]
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r'<(?:img|source) [^>]*?\bsrc(?:set)?="([^":]+)"')
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+(?:\([^)]*\))?)\)")


@cache
def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text())


@cache
def anchors(page: Path) -> frozenset[str]:
    """The names that headings can be linked by, as code hosts make them."""
    found: dict[str, int] = {}
    names: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE):
        shown = LINK.sub(lambda link: link[1], heading)
        name = re.sub(r"[^\w -]", "", shown.lower()).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if name in found else name)
        found[name] = found.get(name, 0) + 1
    return frozenset(names)


def links(page: Path) -> list[tuple[str, str]]:
    return [(text, target) for text, target in LINK.findall(prose(page)) if "://" not in target]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    dead: list[str] = []
    for _, target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        outside = not file.is_relative_to(ROOT)
        if outside or not file.exists() or (anchor and anchor not in anchors(file)):
            dead.append(target)
    assert dead == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_picture_is_there_in_light_and_dark(page: Path) -> None:
    shown = {(page.parent / name).resolve() for name in PICTURE.findall(prose(page))}
    light = {file for file in shown if not file.stem.endswith("-dark")}
    assert {file.with_stem(f"{file.stem}-dark") for file in light} == shown - light
    assert [file for file in shown if not file.exists()] == []


def test_every_picture_is_on_a_page() -> None:
    linked = {
        Path(name).name
        for page in PAGES
        for name in [*PICTURE.findall(prose(page)), *(target for _, target in links(page))]
    }
    assert {file.name for file in (DOCS / "images").iterdir()} - linked == {"favicon.svg"}


@pytest.mark.parametrize(
    ("name", "least"), [("decisions.md", 50), ("from-the-documents.md", 300), ("security.md", 35)]
)
def test_a_link_to_a_test_is_named_after_it(name: str, least: int) -> None:
    page = DOCS / name
    promises = [
        (text, target)
        for text, target in links(page)
        if re.match(r"\.\./tests/.*\.py$", target) and not text.endswith(".py")
    ]
    wrong = [
        f"{target}: {text}"
        for text, target in promises
        if f"test_{re.sub('[ -]', '_', text)}" not in functions_in((DOCS / target).resolve())
    ]
    assert wrong == []
    assert len(promises) >= least


def test_every_page_is_in_the_index() -> None:
    linked = {target.partition("#")[0] for _, target in links(DOCS / "index.md")}
    assert {page.name for page in DOCS.glob("*.md")} - linked == {"index.md"}
