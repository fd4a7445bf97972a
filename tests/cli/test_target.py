"""What a TARGET names."""

import sys

import pytest

from transom.cli import parse_target
from transom.errors import UsageError


def served(text: str) -> list[str]:
    return [sys.executable, "-m", "transom.cli.serve", text]


@pytest.fixture
def orders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.py").touch()
    (tmp_path / "my orders.py").touch()
    (tmp_path / "server.js").touch()
    return tmp_path


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("text", ["orders.py", "./orders.py", "orders.py:shop", "my orders.py"])
def test_a_python_file_is_served(text):
    assert parse_target(text) == served(text)


@pytest.mark.parametrize("text", ["orders:server", "shop.orders:make.server"])
def test_an_object_in_a_module_is_served(text):
    assert parse_target(text) == served(text)


@pytest.mark.parametrize("text", ["http://localhost:3000/mcp", "https://example.com/mcp"])
def test_a_url_is_reached(text):
    assert parse_target(text) == text


def test_anything_else_is_a_command_line():
    found = parse_target(f"{sys.executable} -m shop 'two words'")
    assert found == [sys.executable, "-m", "shop", "two words"]


@pytest.mark.usefixtures("orders")
def test_a_command_that_takes_a_python_file_is_a_command():
    found = parse_target(f"{sys.executable} orders.py")
    assert found == [sys.executable, "orders.py"]


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no server is named"),
        ("   ", "no server is named"),
        ("gone.py", "there is no file gone.py"),
        ("no-such-command --stdio", "'no-such-command' is neither a Python file"),
        ("server.js --stdio", "did you mean 'node server.js --stdio'"),
        ("node 'unclosed", "is not a command line: No closing quotation"),
        ("http://", "http:// is not a URL"),
        ("http://[::bad", "is not a URL"),
    ],
)
def test_what_names_nothing_is_refused_with_a_reason(text, says):
    with pytest.raises(UsageError) as refused:
        parse_target(text)
    assert says in str(refused.value)
