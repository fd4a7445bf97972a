"""Chromium's process sandbox: on wherever it can be. tests/browser/test_chromium.py tries it."""

import logging

import pytest

from transom.errors import TransomError, UsageError
from transom.web.local import chromium
from transom.web.local.chromium import start_chromium

FORBIDDEN = (
    "[1:1:ERROR:zygote_host_impl_linux.cc:130] No usable sandbox! If this is a Debian system"
)


class Machine:
    """Starts Chromium with a sandbox or without, unless it fails with this."""

    def __init__(self, failure: str = "") -> None:
        self.tried: list[bool] = []
        self._failure = failure

    async def start(self, sandbox: bool) -> str:
        self.tried.append(sandbox)
        if self._failure and sandbox:
            raise RuntimeError(self._failure)
        return "started"


@pytest.fixture(autouse=True)
def ordinary_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chromium, "_is_root", lambda: False)
    monkeypatch.setattr(chromium, "_unsandboxed", set[str]())
    monkeypatch.delenv("TRANSOM_CHROMIUM_SANDBOX", raising=False)


async def test_an_ordinary_users_chromium_has_its_process_sandbox(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Machine()
    assert await start_chromium("chromium", machine.start) == "started"
    monkeypatch.setenv("TRANSOM_CHROMIUM_SANDBOX", "required")
    await start_chromium("chromium", machine.start)
    assert machine.tried == [True, True]
    assert caplog.messages == []


async def test_where_the_system_forbids_the_process_sandbox_that_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Machine(FORBIDDEN)
    for _ in range(2):
        assert await start_chromium("chromium", machine.start) == "started"
    assert machine.tried == [True, False, False]
    (told,) = caplog.records
    assert told.levelno == logging.WARNING
    assert "without its process sandbox, since the system does not let it" in told.getMessage()
    assert "TRANSOM_CHROMIUM_SANDBOX=off" in told.getMessage()
    await start_chromium("another", machine.start)
    assert machine.tried[3:] == [True, False]

    monkeypatch.setenv("TRANSOM_CHROMIUM_SANDBOX", "required")
    with pytest.raises(UsageError, match="is required, and the system .* Let Chromium use user"):
        await start_chromium("chromium", machine.start)
    monkeypatch.setenv("TRANSOM_CHROMIUM_SANDBOX", "off")
    await start_chromium("third", machine.start)
    assert machine.tried[5:] == [True, False]
    assert len(caplog.records) == 2


async def test_root_has_no_process_sandbox_which_is_an_error_if_it_is_required(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(chromium, "_is_root", lambda: True)
    machine = Machine()
    with caplog.at_level(logging.INFO):
        await start_chromium("chromium", machine.start)
    assert "since this is root" in caplog.text
    monkeypatch.setenv("TRANSOM_CHROMIUM_SANDBOX", "required")
    with pytest.raises(UsageError, match="has no sandbox as root"):
        await start_chromium("chromium", machine.start)
    assert machine.tried == [False]


async def test_whatever_else_fails_is_no_reason_to_leave_the_process_sandbox_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine("the disk is full")
    with pytest.raises(RuntimeError, match="the disk is full"):
        await start_chromium("chromium", machine.start)
    monkeypatch.setenv("TRANSOM_CHROMIUM_SANDBOX", "no")
    with pytest.raises(TransomError, match="is 'no': it can be off or required"):
        await start_chromium("chromium", machine.start)
    assert machine.tried == [True]
