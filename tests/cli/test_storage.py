"""`transom storage`: seeing and clearing what Views may have stored."""

from pathlib import Path

import pytest

from tests.cli.running import transom
from transom.host.views.ui_resource import UIResource
from transom.web.view_storage import ViewStorage


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def stored(server: str) -> str:
    """The origin of a View of that server."""
    page = UIResource(view_id="x", server=server, identity=server, uri=f"ui://{server}/x", html="")
    return f"http://{ViewStorage().origin(page, 20_001)}.localhost:20001"


def test_what_is_kept_is_listed_and_cleared_by_server_or_origin_or_all() -> None:
    assert transom("storage").stdout == "Nothing is stored for Views.\n"
    origins = {server: stored(server) for server in ("map", "pdf", "orders")}
    listed = transom("storage").stdout
    for server, origin in origins.items():
        assert f"{server}  ui://{server}/x\n    {origin}  last used 20" in listed
    assert transom("storage", "clear", "map").stdout == "Cleared map  ui://map/x\n"
    assert transom("storage", "clear", origins["pdf"]).stdout == "Cleared pdf  ui://pdf/x\n"
    assert origins["orders"] in (listed := transom("storage").stdout)
    assert "pdf" not in listed
    assert transom("storage", "clear", "--all").stdout == "Cleared orders  ui://orders/x\n"
    assert transom("storage", "clear", "--all").stdout == "Nothing is stored for Views.\n"
    assert all(stored(server) != origin for server, origin in origins.items())


def test_what_cannot_be_cleared_is_an_error_that_says_so() -> None:
    stored("map")
    code, _, said = transom("storage", "clear", "maps")
    assert (code, said) == (
        2,
        "transom storage: Nothing is stored for maps: see transom storage\n",
    )
    assert transom("storage", "clear", "map", "--all").returncode == 2
    assert "ui://map/x" in transom("storage").stdout


def test_a_folder_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "transom").write_text("a file")
    for words in (["storage"], ["storage", "clear", "--all"]):
        result = transom(*words)
        assert (result.returncode, result.stdout) == (2, "")
        assert "Not a directory" in result.stderr or "cannot be used" in result.stderr
