"""What servers are called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.errors import UsageError
from transom.gateway.configuration.config import (
    fitted_name,
    name_of_command,
    name_of_url,
    unique_names,
)
from transom.host.tools.tool_names import check_server_name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python orders.py", "orders"),
        ("/usr/bin/python3.11 /srv/shop/orders.py --port 1", "orders"),
        ("orders.py:shop", "orders"),
        ("python -m shop.orders --stdio", "shop-orders"),
        ("uv run --with mcp orders.py", "orders"),
        ("uv --directory shop run server.py", "server"),
        ("python shop/server.py", "shop"),
        ("node maps/dist/index.js --stdio", "maps"),
        ("node dist/index.js", "index"),
        ("npx -y @modelcontextprotocol/server-everything stdio", "server-everything"),
        ("npx -y @acme/maps@2.1.0", "maps"),
        ("uvx mcp-server-git==1.2 --repository .", "mcp-server-git"),
        ("docker run -i --rm -e KEY=1 mcp/time", "time"),
        ("env TOKEN=1 acme-server", "acme-server"),
        (r"C:\tools\acme.exe", "acme-exe"),
        ("npx", "npx"),
        ("--stdio", "server"),
        ("./一二.py", "server"),
    ],
)
def test_a_command_is_named_after_what_it_runs(command: str, name: str):
    assert name_of_command(command.split()) == name


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://mcp.example.com/mcp", "mcp-example-com"),
        ("http://localhost:3000", "localhost"),
        ("http://[::bad", "server"),
        ("", "server"),
    ],
)
def test_a_url_is_named_after_its_host(url: str, name: str):
    assert name_of_url(url) == name


@given(st.text())
def test_whatever_a_server_is_called_becomes_a_name_a_host_takes(text: str):
    check_server_name(fitted_name(text))


@given(st.text(alphabet="aZ09_-", max_size=36))
def test_a_name_that_a_host_takes_is_kept(text: str):
    try:
        check_server_name(text)
    except UsageError:
        assert fitted_name(text) != text
    else:
        assert fitted_name(text) == text


@given(st.lists(st.text(alphabet="ab-2", min_size=1, max_size=40).map(fitted_name)))
def test_names_are_told_apart_and_stay_names(names: list[str]):
    apart = unique_names(names)

    assert len(apart) == len(names) == len(set(apart))
    for name in apart:
        check_server_name(name)


def test_a_name_that_somebody_gave_is_not_given_to_another():
    assert unique_names(["a", "a", "a-2", "b"]) == ["a", "a-3", "a-2", "b"]


@given(st.lists(st.text()))
def test_any_command_gets_a_name_that_a_host_takes(words: list[str]):
    check_server_name(name_of_command(words))
