"""docs/security.md tells the caps as they are."""

import inspect
import re
from pathlib import Path

import msgspec
import pytest

from transom import Host, Limits
from transom.connections.process import MAX_LINE
from transom.gateway import inputs
from transom.gateway.client import MAX_BYTES
from transom.gateway.http import HttpGateway

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
UNITS = {"": 1, " s": 1, " KB": 1024, " MB": 1024 * 1024}


def table(title: str) -> dict[str, float]:
    """The table with this first column: name and value."""
    body = re.search(rf"^\| {title} \| default \|.*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
    assert body is not None
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+)( s| KB| MB|) \|", body[0], re.MULTILINE)
    return {name: float(value) * UNITS[unit] for name, value, unit in rows}


def test_every_limit_is_in_the_table_with_its_value() -> None:
    limits = Limits()
    known = {name: getattr(limits, name) for name in limits.__struct_fields__}
    assert table("limit") == known


def test_the_hosts_own_caps_are_in_the_table_with_their_values() -> None:
    known = inspect.signature(Host).parameters
    capped = {name for name in known if name.startswith("max_") or name.endswith("_timeout")}
    assert table("keyword") == {name: known[name].default for name in capped}


def test_the_gateways_caps_are_told_with_their_values() -> None:
    clients = inspect.signature(HttpGateway).parameters
    for told in (
        f"messages of up to {MAX_BYTES >> 20} MB from servers and clients",
        f"{clients['max_clients'].default} clients over HTTP",
        f"no open request or stream for {clients['idle'].default / 60:g} minutes",
        f"{inputs._MAX_WAITING} calls of a client of 2026-07-28 may wait for their input",
        f"for {inputs._PATIENCE / 60:g} minutes each, with {inputs._MAX_QUESTIONS} questions each",
        f"sends nothing for {clients['hung_after'].default / 60:g} minutes",
    ):
        assert told in " ".join(PAGE.split()), told
    assert MAX_BYTES == MAX_LINE


@pytest.mark.parametrize("field", msgspec.structs.fields(Limits), ids=lambda field: field.name)
def test_a_row_says_what_a_limit_is_for(field: msgspec.structs.FieldInfo) -> None:
    [said] = re.findall(
        rf"^\| `{field.name}` \| [^|]+ \| ([^|]+) \|$",
        PAGE.split("`transom.Host` has")[0],
        re.MULTILINE,
    )
    assert len(said.split()) >= 3
