"""Some scenarios of the official conformance suite, by night; `make conformance` runs all of them.

The suite gives its own requests a few seconds, which a busy machine may need.
"""

import pytest
from scripts.conformance import (
    EXTENSIONS,
    LEGS,
    WIRES,
    Outcome,
    differences,
    server_of,
    try_client,
    try_server,
    wires_of,
)

from tests.conformance.expected import FAILURES

OLDER, NEWER = WIRES


@pytest.mark.nightly
@pytest.mark.processes
async def test_the_gateway_passes_as_a_server() -> None:
    async with server_of("stdio") as url:
        for wire, scenario in (
            (OLDER, "tools-call-elicitation"),
            (NEWER, "http-custom-header-server-validation"),
            (NEWER, "input-required-result-multi-round"),
        ):
            [outcome] = await try_server("stdio", wire, url, scenario)
            assert outcome == Outcome("stdio", wire, scenario, (), ())


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.parametrize(
    ("wire", "scenario"),
    [(OLDER, "auth/pre-registration"), (NEWER, "http-invalid-tool-headers")],
)
async def test_a_host_passes_as_a_client(wire: str, scenario: str) -> None:
    assert await try_client("host", wire, scenario) == Outcome("host", wire, scenario, (), ())


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.parametrize("leg", ["sdk", "behind"])
@pytest.mark.parametrize("wire", WIRES)
async def test_the_sdks_client_passes_alone_and_through_the_gateway(leg: str, wire: str) -> None:
    assert await try_client(leg, wire, "tools_call") == Outcome(leg, wire, "tools_call", (), ())


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.parametrize("leg", ["host", "behind"])
@pytest.mark.parametrize(
    "scenario", ["auth/enterprise-managed-authorization", "auth/wif-jwt-bearer"]
)
async def test_a_login_by_an_assertion_passes(leg: str, scenario: str) -> None:
    assert await try_client(leg, EXTENSIONS, scenario) == Outcome(leg, EXTENSIONS, scenario, (), ())


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.parametrize("scenario", ["tasks-lifecycle", "tasks-capability-negotiation"])
async def test_the_tasks_of_views_pass(scenario: str) -> None:
    async with server_of("views") as url:
        [outcome] = await try_server("views", EXTENSIONS, url, scenario)
        assert outcome == Outcome("views", EXTENSIONS, scenario, (), ())


def test_an_unexpected_pass_is_an_error_as_an_unexpected_failure_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(FAILURES, ("url", NEWER, "expected"), "a reason")
    as_expected = [
        Outcome("url", NEWER, "expected", ("x",), ()),
        Outcome("url", NEWER, "a", (), ()),
    ]
    assert differences(as_expected) == []
    [passes] = differences([Outcome("url", NEWER, "expected", (), ("y",))])
    assert "passes" in passes
    [fails] = differences([Outcome("url", NEWER, "other", ("x", "y"), ())])
    assert "fails: x, y" in fails


def test_every_expected_failure_has_a_leg_and_a_reason() -> None:
    for (leg, wire, _), reason in FAILURES.items():
        assert leg in LEGS
        assert wire in wires_of(leg)
        assert reason
