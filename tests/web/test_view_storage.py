"""What is kept for Views between runs: which origin, which ports, and which can be opened again."""

import os
import re
import socket
import stat
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from transom.connections.targets import RemoteServer, identity_of
from transom.errors import TransomError
from transom.host.views.ui_resource import UIResource
from transom.web import view_storage
from transom.web.view_storage import ViewStorage, origin_label

PORT = 20_001


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "views"


def page(
    server: str = "map", identity: str = "npx map", uri: str = "ui://map/x", **more: Any
) -> UIResource:
    return UIResource(view_id="map-1", server=server, identity=identity, uri=uri, html="", **more)


def label(folder: Path, shown: UIResource, port: int = PORT, **of: Any) -> str:
    found = ViewStorage(folder=folder, **of).origin(shown, port)
    assert found is not None
    return found


# --- origins ---------------------------------------------------------------------------------


def test_the_same_server_and_resource_have_the_same_origin_in_every_run(folder: Path) -> None:
    first = label(folder, page())
    assert re.fullmatch(r"map-[a-z2-7]{32}", first)
    assert label(folder, page(csp={"connectDomains": ["https://x.example"]})) == first


@pytest.mark.parametrize(
    "other",
    [
        page(server="maps"),
        page(identity="npx other"),
        page(uri="ui://map/y"),
        # What would be the same if the parts were only put one after the other.
        page(server="ma", identity="pnpx map"),
        page(identity="npx mapui:", uri="//map/x"),
    ],
)
def test_any_other_server_or_resource_has_another_origin(folder: Path, other: UIResource) -> None:
    assert label(folder, other) != label(folder, page())


def test_users_and_secrets_have_origins_of_their_own(folder: Path, tmp_path: Path) -> None:
    labels = {
        label(folder, page()),
        label(tmp_path / "of another user", page()),
    }
    assert len(labels) == 2
    given = {"server": "s", "identity": "i", "uri": "ui://s/x"}
    assert origin_label(b"1", user="a", **given) != origin_label(b"1", user="b", **given)
    assert origin_label(b"1", user="a", **given) != origin_label(b"2", user="a", **given)


@pytest.mark.parametrize("server", ["", "-", "ü", "x" * 200, "A_B", "a" * 23 + "-b"])
def test_every_label_can_stand_in_a_host_name(server: str) -> None:
    made = origin_label(b"", user="", server=server, identity="", uri="")
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", made)


def test_who_cannot_be_told_apart_has_no_origin_that_lasts(folder: Path) -> None:
    assert ViewStorage(folder=folder).origin(page(identity=""), PORT) is None


def test_what_is_kept_is_for_the_users_eyes_only_and_names_no_secret(folder: Path) -> None:
    storage = ViewStorage("gateway TOKEN=hunter2", folder=folder)
    storage.ports()
    secret = page(identity="https://x.example/?key=hunter2")
    storage.origin(secret, PORT)
    storage.remember("1", secret, "show", {}, b"{}")
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert len(files) == 3
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert b"hunter2" not in file.read_bytes()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_of_too_many_origins_the_one_that_was_not_used_for_longest_is_forgotten(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_storage, "_MAX_ORIGINS", 3)
    storage = ViewStorage(folder=folder)
    for number in range(5):
        storage.origin(page(uri=f"ui://map/{number}"), PORT)
    assert [each.uri[-1] for each in storage.origins()] == ["4", "3", "2"]
    first = label(folder, page(uri="ui://map/0"))
    assert label(folder, page(uri="ui://map/0")) == first


def test_what_is_used_after_the_clock_was_set_back_is_not_forgotten_for_what_was_used_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_storage, "_MAX_ORIGINS", 3)
    monkeypatch.setattr(view_storage, "MAX_RECENT", 3)
    storage, now = ViewStorage(folder=folder), time.time()
    for number in range(5):
        moment = now + number if number < 3 else now - 86_400 + number
        monkeypatch.setattr(time, "time", lambda moment=moment: moment)
        storage.origin(page(uri=f"ui://map/{number}"), PORT)
        storage.remember(str(number), page(), "show", {}, b"{}")
    assert [each.uri[-1] for each in storage.origins()][:2] == ["4", "3"]
    assert [view.id for view in storage.recent(page())][:2] == ["4", "3"]
    assert len(storage.recent(page())) == 3


def test_what_was_cleared_is_forgotten_in_its_turn_and_never_reached_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_storage, "_MAX_ORIGINS", 3)
    storage, had = ViewStorage(folder=folder), set[str]()
    for number in range(12):
        shown = page(uri=f"ui://map/{number % 6}")
        had_now = label(folder, shown)
        assert had_now not in had
        had.add(had_now)
        assert len(storage.clear()) == 1
    assert len(storage._read().origins) == 3


# --- which server it is ----------------------------------------------------------------------


def test_a_server_is_its_url_or_its_command_with_its_folder_and_environment(tmp_path: Path) -> None:
    words = ["python", "server.py"]
    all_of_them = [
        identity_of("https://x.example/mcp"),
        identity_of("https://x.example/mcp?server=other"),
        identity_of(words),
        identity_of(["python", "server.py", "-v"]),
        identity_of(["python server.py"]),
        identity_of(words, cwd=str(tmp_path)),
        identity_of(words, env={"TARGET": "a"}),
        identity_of(words, env={"TARGET": "b"}),
    ]
    assert len(set(all_of_them)) == len(all_of_them)
    assert identity_of(words) == identity_of(tuple(words), env={}, cwd=os.curdir)
    assert identity_of(RemoteServer("https://x.example/mcp", {"A": "b"})) == all_of_them[0]
    assert identity_of(object()) == ""


# --- ports -----------------------------------------------------------------------------------


def test_a_new_program_gets_ports_that_nothing_uses(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = range(61_000, 61_000 + 16)  # in which nobody listens by chance
    monkeypatch.setattr(view_storage, "_FIRST_PORT", ports.start)
    monkeypatch.setattr(view_storage, "_LAST_PORT", ports.stop)
    with ExitStack() as others:
        for port in ports[2:]:
            with suppress(OSError):  # somebody else uses it: as good
                others.enter_context(socket.create_server(("127.0.0.1", port)))
        assert set(ViewStorage(folder=folder).ports()) == set(ports[:2])


def test_each_program_keeps_ports_of_its_own(folder: Path) -> None:
    pairs = [ViewStorage(program, folder=folder).ports() for program in ("a", "b", "a")]
    assert pairs[0] == pairs[2]
    assert len({*pairs[0], *pairs[1]}) == 4
    assert all(20_000 <= port < 32_000 for pair in pairs for port in pair)


def test_of_too_many_programs_the_one_that_was_not_run_for_longest_is_forgotten(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_storage, "_MAX_PROGRAMS", 2)
    first = ViewStorage("a", folder=folder).ports()
    for program in ("b", "a", "c"):
        ViewStorage(program, folder=folder).ports()
    assert ViewStorage("a", folder=folder).ports() == first
    assert len(ViewStorage(folder=folder)._read().ports) == 2


# --- clearing --------------------------------------------------------------------------------


def test_clearing_leads_to_origins_that_were_never_used(folder: Path) -> None:
    storage = ViewStorage(folder=folder)
    labels = [storage.origin(page(), PORT)]
    other = storage.origin(page(server="pdf"), PORT)
    for _ in range(2):
        [gone] = storage.clear(lambda each: each.server == "map")
        assert gone.origin == f"http://{labels[-1]}.localhost:{PORT}"
        assert gone.origin in storage.cleared(PORT)
        labels.append(storage.origin(page(), PORT))
    assert len(set(labels)) == 3
    assert storage.origin(page(server="pdf"), PORT) == other
    storage.confirm_cleared(gone.origin)
    assert storage.cleared(PORT) == [f"http://{labels[0]}.localhost:{PORT}"]
    assert storage.cleared(PORT + 1) == []


# --- Views of earlier runs -------------------------------------------------------------------


def test_a_view_of_an_earlier_run_is_known_with_its_call_and_its_result(folder: Path) -> None:
    result = b'{"content":[],"_meta":{"viewUUID":"1"}}'
    ViewStorage(folder=folder).remember("1", page(), "show", {"a": 1}, b"{}")
    ViewStorage(folder=folder).remember("1", page(), "show", {"a": 1}, result)
    [view] = ViewStorage(folder=folder).recent(page(uri="ui://map/y"))
    assert (view.tool, view.arguments, bytes(view.result)) == ("show", {"a": 1}, result)
    for storage, shown in (
        (ViewStorage("another program", folder=folder), page()),
        (ViewStorage(folder=folder), page(identity="another server")),
        (ViewStorage(folder=folder), page(server="another name")),
    ):
        assert storage.recent(shown) == []
    ViewStorage(folder=folder).forget("1")
    assert ViewStorage(folder=folder).recent(page()) == []


def test_views_that_are_too_many_too_old_or_too_large_are_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_storage, "MAX_RECENT", 3)
    storage, now = ViewStorage(folder=folder), time.time()
    for number in range(5):
        monkeypatch.setattr(time, "time", lambda number=number: now + number)
        storage.remember(str(number), page(), "show", {}, b"{}")
    assert [view.id for view in storage.recent(page())] == ["4", "3", "2"]
    assert len(list(folder.rglob("recent/*/*"))) == 3
    monkeypatch.setattr(time, "time", lambda: now + 31 * 86_400)
    assert storage.recent(page()) == []
    assert list(folder.rglob("recent/*/*")) == []
    storage.remember("large", page(), "show", {"text": "x" * 1024 * 1024}, b"{}")
    assert storage.recent(page()) == []


def test_clearing_a_server_forgets_its_views(folder: Path) -> None:
    storage = ViewStorage(folder=folder)
    for server in ("map", "pdf"):
        storage.origin(page(server), PORT)
        storage.remember(server, page(server), "show", {}, b"{}")
    storage.clear(lambda each: each.server == "map")
    assert storage.recent(page("map")) == []
    assert len(storage.recent(page("pdf"))) == 1


# --- a bad day -------------------------------------------------------------------------------


DAMAGED = ["", "{", "[]", '{"secret": "short"}', '{"secret": 1}', "\x00", "\udcff"]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_view_that_cannot_be_read_is_as_if_it_was_not_there(folder: Path, text: str) -> None:
    storage = ViewStorage(folder=folder)
    storage.remember("1", page(), "show", {}, b"{}")
    [file] = folder.rglob("recent/*/*.json")
    file.write_text(text, errors="surrogateescape")
    assert storage.recent(page()) == []
    assert storage.origin(page(), PORT) == storage.origin(page(), PORT)


@pytest.mark.parametrize("text", DAMAGED)
def test_a_state_that_cannot_be_read_is_said_and_left_as_it_is(folder: Path, text: str) -> None:
    before = label(folder, page())
    file = folder / "state.json"
    state = file.read_bytes()
    file.write_text(text, errors="surrogateescape")
    damaged, storage = file.read_bytes(), ViewStorage(folder=folder)
    for read in (storage.ports, storage.origins, lambda: storage.clear(lambda _: True)):
        with pytest.raises(TransomError, match="it is damaged .*transom storage clear --all"):
            read()
    assert storage.recent(page()) == []
    assert storage.cleared(PORT) == []
    storage.remember("1", page(), "show", {}, b"{}")
    storage.forget("1")
    assert storage.origin(page(), PORT) is None
    assert "state.json cannot be read" in storage.failure
    assert file.read_bytes() == damaged
    file.write_bytes(state)
    assert label(folder, page()) == before
    file.write_bytes(damaged)
    assert ViewStorage(folder=folder).clear() == []
    assert label(folder, page()) != before


def test_a_state_that_may_not_be_read_is_not_replaced(folder: Path) -> None:
    label(folder, page())
    file = folder / "state.json"
    file.unlink()
    file.mkdir()  # root may read any file
    storage = ViewStorage(folder=folder)
    with pytest.raises(TransomError, match="cannot be read: Is a directory"):
        storage.ports()
    assert file.is_dir()


def test_a_folder_that_cannot_be_used_is_a_problem_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "views").write_text("a file")
    storage = ViewStorage(folder=tmp_path / "views")
    with pytest.raises(TransomError, match="cannot be used"):
        storage.ports()
    assert storage.origin(page(), PORT) is None
    assert "cannot be used" in storage.failure
    storage.remember("1", page(), "show", {}, b"{}")
    assert storage.recent(page()) == []
