"""`transom conform host`: our Host holds, and a host that is broken is reported for that alone."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import httpx2
import pytest

from tests.conform.mutations import Mutation, mutations
from tests.conform.node_views import NodeViews
from tests.conform.own_hosts import measure_host
from tests.docs.test_samples import load
from transom import Host, Policy
from transom.background import ignore
from transom.channel import Channel, memory_pair
from transom.conform.driving import DrivenTransomHost, measure
from transom.conform.report import ConformReport, as_html, as_json, as_junit
from transom.conform.requirements import Measurement, requirements
from transom.conform.server import ConformServer
from transom.errors import UsageError
from transom.host.views.ui_resource import UIResource
from transom.json_values import as_object
from transom.traffic import TrafficMessage

BROKEN = mutations("broken_hosts.toml")
# Where the host is silent, the kit waits for it: those that it notices at once run every day.
AT_ONCE = [each for each in BROKEN if each.do != "drop" and not each.waits][::3]
TIMEOUT = 30.0  # seconds for an answer: a busy machine is not a broken host


@pytest.fixture
async def views() -> AsyncIterator[NodeViews]:
    async with NodeViews() as running:
        yield running


def failures(report: ConformReport) -> dict[str, str]:
    return {each.id: each.detail for each in report.verdicts if report.word(each) == "fail"}


def skipped(report: ConformReport) -> set[str]:
    return {each.detail for each in report.verdicts if each.outcome == "skip"}


@pytest.mark.processes
async def test_our_host_keeps_all_that_can_be_measured_without_a_browser(views: NodeViews):
    report = await measure_host(views.renderer(), TIMEOUT, "a Host")
    assert failures(report) == {}
    assert skipped(report) == {"needs a browser"}
    assert report.count() == {"pass": 95, "fail": 0, "no": 0, "skip": 21}


@pytest.mark.processes
async def test_the_sample_measures_a_host(views: NodeViews, monkeypatch: pytest.MonkeyPatch):
    sample = load("conform_host", monkeypatch)
    assert await sample.failed_requirements(views.renderer()) == []


async def check_broken(views: NodeViews, broken: list[Mutation], timeout: float) -> None:
    """Each is reported under its requirement, and nothing else is."""

    async def found(mutation: Mutation) -> list[str]:
        report = await measure_host(views.renderer(mutation), timeout, mutation.name)
        return list(failures(report))

    results = await asyncio.gather(*map(found, broken))
    expected = {each.name: sorted(each.expect) for each in broken}
    assert {each.name: sorted(r) for each, r in zip(broken, results, strict=True)} == expected


@pytest.mark.processes
async def test_a_broken_host_is_reported_for_that_alone(views: NodeViews):
    await check_broken(views, AT_ONCE, TIMEOUT)


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.parametrize("first", range(0, len(BROKEN), 8))
async def test_every_broken_host_is_reported_for_that_alone(views: NodeViews, first: int):
    await check_broken(views, BROKEN[first : first + 8], 5.0)


def test_there_are_enough_broken_hosts_and_each_names_its_requirement():
    assert len(BROKEN) >= 20
    assert {id for each in BROKEN for id in each.expect} <= requirements("host").keys()


# --- the requirements ------------------------------------------------------------------------


def test_requirements_have_a_level_a_clause_and_a_sentence():
    known = requirements("host")
    assert len(known) >= 60
    for each in known.values():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+", each.id)
        assert each.text.endswith(".")
        assert each.by in ("view", "page", "server", "model", "action")
        assert " " not in each.url
    assert known["app-tools-listed"].url.endswith("#app-capabilities-in-uiinitialize")


def test_a_failure_is_not_undone_and_unknown_requirements_are_mistakes():
    measured = ConformServer().measured
    measured.check("wire-ping", False, "no answer")
    measured.check("wire-ping", True)
    assert measured.outcome("wire-ping") == "fail"
    with pytest.raises(UsageError, match="no requirement wire-pong"):
        measured.check("wire-pong", True)


# --- reports ---------------------------------------------------------------------------------


def report_of(**outcomes: str) -> ConformReport:
    made = {id.replace("_", "-"): outcome for id, outcome in outcomes.items()}
    verdicts = [
        Measurement(id, made.get(id, "skip"), "<b>why</b>")  # type: ignore[arg-type]
        for id in requirements("host")
    ]
    return ConformReport("host", "<i>a host</i>", tuple(verdicts))


def test_what_a_host_may_do_and_does_not_is_no_failure():
    report = report_of(wire_ping="pass", app_tools_listed="fail")
    assert report.count() == {"pass": 1, "fail": 0, "no": 1, "skip": len(report.verdicts) - 2}
    assert not report.fails_on("SHOULD")
    assert report_of(handshake_context="fail").fails_on("SHOULD")
    assert not report_of(handshake_context="fail").fails_on("MUST")
    assert report_of(wire_ping="fail").fails_on("MUST")
    assert not report_of(wire_ping="fail").fails_on("never")
    assert not report_of().measured


def test_the_report_for_machines_and_as_a_page():
    report = report_of(wire_ping="fail", app_tools_listed="fail", wire_envelope="pass")
    read = json.loads(as_json(report))
    assert read["summary"] == {"pass": 1, "fail": 1, "no": 1, "skip": len(report.verdicts) - 3}
    [ping] = [each for each in read["verdicts"] if each["id"] == "wire-ping"]
    assert (ping["outcome"], ping["level"]) == ("fail", "MUST")
    suite = ET.fromstring(as_junit(report))  # noqa: S314 - ours
    assert (suite.get("tests"), suite.get("failures")) == (str(len(report.verdicts)), "1")
    assert len(suite.findall("*/failure")) == 1
    page = as_html(report)
    assert "&lt;b&gt;why&lt;/b&gt;" in page
    assert "<i>" not in page
    assert "<!--" not in page


# --- hosts that are hostile to the kit -------------------------------------------------------


class Silent:
    """A renderer whose Views never say anything."""

    async def open(self, resource: UIResource) -> Channel:
        return memory_pair()[0]


async def test_a_host_whose_views_never_start_ends_without_results():
    server = ConformServer(timeout=0.01)
    host = Host(renderer=Silent(), policy=Policy.trusting(), open_timeout=0.01)
    async with server.probes(), host:
        await host.add_server("conform", server.mcp)
        await measure(server, DrivenTransomHost(host, server))
    assert failures(server.report()) == {}
    assert "no instrument reported it" in skipped(server.report())


async def test_reports_of_strangers_are_bounded():
    server = ConformServer()
    async with server.probes() as address, httpx2.AsyncClient(base_url=address) as stranger:

        async def post(body: object) -> int:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            return (await stranger.post("/report", content=content)).status_code

        passed = {"id": "wire-ping", "outcome": "pass"}
        await post({"stamp": "another run", "verdicts": [passed]})
        await post({"stamp": server.stamp, "verdicts": "many", "view": ["no"], "done": True})
        await post({"stamp": server.stamp, "verdicts": [{**passed, "id": "wire-pong"}, 7, None]})
        assert not server.report().measured
        assert await post(b"no report") == 400
        assert await post(b"[" * 100_000) == 400
        assert await post(b" " * 300_000) == 413
        long = {"id": "wire-ping", "outcome": "fail", "detail": "\x1b[31m" + "x" * 10_000}
        await post({"stamp": server.stamp, "verdicts": [long]})
        [ping] = [each for each in server.report().verdicts if each.id == "wire-ping"]
        assert len(ping.detail) <= 300
        assert "\x1b" not in ping.detail
        assert "wire-ping" in (await stranger.get("/")).text


async def test_a_host_that_is_a_page_of_this_machine_may_connect_and_no_other_page():
    server = ConformServer()
    headers = {"Access-Control-Request-Method": "POST"}
    async with server.probes(mcp=True) as address, httpx2.AsyncClient(base_url=address) as page:

        async def allowed(origin: str) -> str | None:
            answer = await page.options("/mcp", headers={**headers, "Origin": origin})
            return answer.headers.get("Access-Control-Allow-Origin")

        for origin in ("http://localhost:8080", "http://127.0.0.1:3000", "http://[::1]:5173"):
            assert await allowed(origin) == origin
        for origin in ("https://evil.example", "http://localhost.evil.example", "null"):
            assert await allowed(origin) is None


class Done:
    """Notices that an instrument's last report was answered."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self._ids: set[Any] = set()

    def on_message(self, message: TrafficMessage) -> None:
        read = as_object(message.message)
        if message.leg != "view":
            return
        if not message.from_host and '"done": true' in json.dumps(read):
            self._ids.add(read["id"])
        elif message.from_host and read.get("id") in self._ids and "result" in read:
            self.event.set()


@pytest.mark.processes
async def test_the_command_is_the_server_of_any_host_and_writes_what_was_measured(
    views: NodeViews, tmp_path: Path
):
    done, file = Done(), tmp_path / "report.json"
    host = Host(renderer=views.renderer(), policy=Policy.trusting(), traffic=done)
    host.on_error(ignore)
    command = [sys.executable, "-m", "transom", "conform", "host", "--report", str(file)]
    async with host:
        await host.add_server("conform", [*command, "--timeout", str(TIMEOUT)])
        result = await host.call_tool("conform_start", {"text": "hello"})
        assert json.loads(result.text)["received"] == {"text": "hello"}
        await done.event.wait()
        read = json.loads(file.read_text())
    assert read["summary"]["fail"] == 0
    assert read["summary"]["pass"] > 60
