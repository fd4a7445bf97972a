"""Hosts in Chromium: ours keeps every requirement, and one with a broken policy is found."""

import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from tests.conform.own_hosts import measure_host
from transom.channel import Channel
from transom.host.host import Host
from transom.host.views.ui_resource import UIResource
from transom.web.local.headless import HeadlessRenderer, HeadlessSeat

FILE = Path(__file__).with_name("broken_policies.toml")
TIMEOUT = 30.0  # seconds for an answer: a busy machine is not a broken host


class Policy(msgspec.Struct, frozen=True):
    expect: list[str]
    view: str
    csp: dict[str, list[str]]


POLICIES = msgspec.convert(tomllib.loads(FILE.read_text("utf-8")), dict[str, Policy])


class OtherPolicy:
    """Shows one of the pages as if it declared something else."""

    def __init__(self, seat: HeadlessSeat, policy: Policy) -> None:
        self._seat, self._policy = seat, policy

    def attach_host(self, host: Host) -> None:
        self._seat.attach_host(host)

    async def open(self, resource: UIResource) -> Channel:
        if f"/{self._policy.view}." in resource.uri:
            origins = {name: self._origin(resource, name) for name in ("declared", "undeclared")}
            csp = {
                field: [origins.get(each.lower(), each) for each in given]
                for field, given in self._policy.csp.items()
            }
            resource = msgspec.structs.replace(resource, csp=csp or None)
        return await self._seat.open(resource)

    def _origin(self, resource: UIResource, name: str) -> str:
        """One of the origins that the page is given for its probes."""
        return resource.html.split(f'"{name}": "')[1].split('"')[0]


@pytest.fixture
async def browser() -> AsyncIterator[HeadlessRenderer]:
    async with HeadlessRenderer(csp="strict") as renderer:
        yield renderer


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.parametrize("name", POLICIES)
async def test_a_broken_policy_is_reported_for_that_alone(browser: HeadlessRenderer, name: str):
    """All else holds, in a browser too."""
    async with browser.seat() as seat:
        renderer = OtherPolicy(seat, POLICIES[name])
        report = await measure_host(renderer, TIMEOUT, name)
    failed = sorted(each.id for each in report.verdicts if each.outcome == "fail")
    assert failed == sorted(POLICIES[name].expect)
    skipped = {each.id for each in report.verdicts if each.outcome == "skip"}
    assert skipped <= {"permissions-stated"}
