"""One table of a TOML file is changed and everything else stays."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.errors import UsageError
from transom.gateway.install import TomlValue as Value
from transom.gateway.install import put_table
from transom.gateway.install import toml_table as table

VALUES: dict[str, Value] = {"command": "run", "args": ["a"]}
NEW = '[mcp_servers.new]\ncommand = "run"\nargs = ["a"]\n'


def put(text: str, name: str = "new", values: dict[str, Value] = VALUES) -> str:
    return put_table(text, "mcp_servers", name, values, "FILE")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", NEW),
        ('model = "m"  # mine', f'model = "m"  # mine\n\n{NEW}'),
        ("[mcp_servers.x]\ncommand = 'x'\n", f"[mcp_servers.x]\ncommand = 'x'\n\n{NEW}"),
        ("[mcp_servers]\n", f"[mcp_servers]\n\n{NEW}"),
        (
            '[mcp_servers.new]\ncommand = "old"\n\n# the next\n[z]\na = 1\n',
            f"{NEW}\n# the next\n[z]\na = 1\n",
        ),
        (
            '[a]\n[mcp_servers."new"]\ncommand = "old"\n[mcp_servers.new.env]\nK = "v"\n\n[z]\n',
            '[a]\n[mcp_servers."new"]\ncommand = "run"\nargs = ["a"]\n\n[z]\n',
        ),
        (
            'a = """\n[mcp_servers.new]\n"""\nb = [\n[1],\n]\n[mcp_servers.new]\nenv = {}\n',
            f'a = """\n[mcp_servers.new]\n"""\nb = [\n[1],\n]\n{NEW}',
        ),
        ("[mcp_servers.new]\r\na = 1\r\n[z]\r\n", NEW.replace("\n", "\r\n") + "[z]\r\n"),
    ],
)
def test_a_table_is_put_in_and_the_rest_is_as_it_was(before: str, after: str):
    assert put(before) == after


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = ", "FILE is not TOML: Invalid value (at end of document)"),
        ("[mcp_servers.new]\na = '#' # why\n", "has comments in it that would be lost"),
        ("[mcp_servers.new]\n# why\na = 1\n", "has comments in it that would be lost"),
        ("mcp_servers = {}\n", "cannot be put there without changing more"),
        ("mcp_servers = 1\n", "cannot be put there without changing more"),
        ("mcp_servers.new.command = 'x'\n", "but not as a [mcp_servers.new] table"),
        ("[mcp_servers]\nnew = {command = 'x'}\n", "but not as a [mcp_servers.new] table"),
        ("[mcp_servers.new.env]\na = 'x'\n", "but not as a [mcp_servers.new] table"),
    ],
)
def test_what_cannot_be_changed_without_loss_is_refused(text: str, says: str):
    with pytest.raises(UsageError) as refused:
        put(text)
    assert says in str(refused.value)


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, st.dictionaries(TEXT, TEXT | st.lists(TEXT) | st.dictionaries(TEXT, TEXT)))
def test_any_table_is_read_as_it_was_written(name: str, values: dict[str, Value]):
    assert tomllib.loads(table("s", name, values)) == {"s": {name: values}}
    assert put(put("a = 1\n", name, values), name) == put("a = 1\n", name)
