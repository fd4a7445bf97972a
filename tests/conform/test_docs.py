"""docs/conformance.md has the requirements as they are."""

from scripts.conform import PAGE, with_tables


def test_the_page_has_the_requirements_as_they_are():
    page = PAGE.read_text("utf-8")
    assert page == with_tables(page), "run: python -m scripts.conform --tables"
