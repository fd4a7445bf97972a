"""A page comes from text, a file or a function, and is checked before anybody sees it blank."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from transom.errors import RegistrationError
from transom.server.resource import ViewHtml

URI = "ui://orders/list.html"
GOOD = "<!doctype html><title>Orders</title><p>hi</p>"


def rewrite(path: Path, text: str) -> None:
    """Write a file so that its time stamp differs, however coarse the clock is."""
    before = path.stat().st_mtime_ns
    path.write_text(text)
    os.utime(path, ns=(before + 1_000_000_000, before + 1_000_000_000))


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "<!DOCTYPE HTML>\n<p>",
        "\n  <!doctype html>",
        "<!-- made by hand --> <!-- twice -->\n<!doctype html>",
        '<!doctype html SYSTEM "about:legacy-compat"><p>',
    ],
)
def test_a_document_is_served_as_it_is(text: str):
    assert ViewHtml(URI, text).read() == text


@pytest.mark.parametrize(
    "text",
    [
        "<p>hi</p>",
        "<html><body></body></html>",
        "<!-- <!doctype html> --><p>",
        pytest.param("<!-- -->" * 10_000 + "<p>", id="many comments"),
        "<!doctype htmlx>",
        "<svg/>",
    ],
)
def test_text_that_is_no_document_is_refused(text: str):
    with pytest.raises(RegistrationError, match="Start it with <!doctype html>"):
        ViewHtml(URI, text)


def test_a_file_name_given_as_text_is_refused_with_the_way_to_read_it():
    with pytest.raises(RegistrationError, match=r"write html=Path\('orders.html'\)"):
        ViewHtml(URI, "orders.html")


def test_a_file_is_read(tmp_path: Path):
    file = tmp_path / "orders.html"
    file.write_text("\ufeff" + GOOD, encoding="utf-8")
    assert ViewHtml(URI, file).read() == GOOD


def test_a_relative_path_is_found_even_after_the_working_directory_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "orders.html").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    page = ViewHtml(URI, Path("orders.html"))
    monkeypatch.chdir("/")
    (tmp_path / "orders.html").write_text(GOOD + "!")
    assert page.read() == GOOD + "!"


def test_a_missing_file_is_refused_when_it_is_declared(tmp_path: Path):
    with pytest.raises(RegistrationError) as refused:
        ViewHtml(URI, tmp_path / "orders.html")
    assert str(tmp_path / "orders.html") in str(refused.value)
    assert "Path(__file__).with_name('orders.html')" in str(refused.value)


def test_a_folder_is_no_page(tmp_path: Path):
    with pytest.raises(RegistrationError, match="there is no file"):
        ViewHtml(URI, tmp_path)


def test_a_file_that_is_no_document_is_refused_when_it_is_declared(tmp_path: Path):
    file = tmp_path / "orders.html"
    file.write_text("<p>hi")
    with pytest.raises(RegistrationError, match="Start it with <!doctype html>"):
        ViewHtml(URI, file)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path):
    file = tmp_path / "orders.html"
    file.write_bytes(GOOD.encode() + b"\xff\xfe")
    with pytest.raises(RegistrationError, match="UTF-8"):
        ViewHtml(URI, file)


def test_a_changed_file_is_read_again(tmp_path: Path):
    file = tmp_path / "orders.html"
    file.write_text(GOOD)
    page = ViewHtml(URI, file)
    rewrite(file, GOOD.replace("hi", "ho"))
    assert page.read() == GOOD.replace("hi", "ho")


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "orders.html"
    file.write_text(GOOD)
    page = ViewHtml(URI, file)

    def refuse(*_: object, **__: object) -> str:
        raise AssertionError("read again")

    monkeypatch.setattr(Path, "read_text", refuse)
    assert page.read() == GOOD


@pytest.mark.parametrize("breakage", ["deleted", "half written"])
def test_a_file_that_breaks_leaves_the_last_good_page_and_a_line_in_the_log(
    breakage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    file = tmp_path / "orders.html"
    file.write_text(GOOD)
    page = ViewHtml(URI, file)
    if breakage == "deleted":
        file.unlink()
    else:
        rewrite(file, "<!doc")
    with caplog.at_level(logging.WARNING):
        assert page.read() == GOOD
    assert "serving the last good page" in caplog.text
    file.write_text(GOOD + "!")
    os.utime(file, (1, 1))
    assert page.read() == GOOD + "!"


def test_a_function_is_called_at_every_read_and_not_before():
    calls: list[int] = []

    def render() -> str:
        calls.append(1)
        return f"{GOOD}{len(calls)}"

    page = ViewHtml(URI, render)
    assert not calls
    assert [page.read(), page.read()] == [f"{GOOD}1", f"{GOOD}2"]


@pytest.mark.parametrize(
    ("made", "problem"), [("<p>", "<!doctype html>"), (None, "NoneType"), (b"<p>", "bytes")]
)
def test_a_function_that_makes_no_document_is_an_error_at_the_read(made: object, problem: str):
    page = ViewHtml(URI, lambda: made)  # type: ignore[arg-type, return-value]
    with pytest.raises(RegistrationError, match=problem):
        page.read()


def test_an_async_function_is_refused_when_it_is_declared():
    async def render() -> str:
        return GOOD

    with pytest.raises(RegistrationError, match="Write a plain one"):
        ViewHtml(URI, render)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", [None, 3, b"<!doctype html>", ["<!doctype html>"]])
def test_anything_else_is_no_page(source: object):
    with pytest.raises(RegistrationError, match="html is text, a Path or a function"):
        ViewHtml(URI, source)  # type: ignore[arg-type]
