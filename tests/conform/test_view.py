"""`transom conform view`: our Views hold, and one that is broken is reported for that alone."""

import json
import re
from pathlib import Path

import pytest

from tests.conform.hostile_views import ATTACKS, HOSTILE_PAGES, PAGE, Attack, HostileViews
from tests.conform.mutations import MutatedRenderer, Mutation, mutations
from tests.idle_clock import run_at_once
from transom import App
from transom.background import ignore
from transom.cli.main import run
from transom.conform.measuring import (
    ViewSource,
    measure_app,
    measure_in,
    measure_view,
    view_of_page,
)
from transom.conform.report import ConformReport
from transom.conform.requirements import requirements
from transom.host.views.renderers import InProcessRenderer
from transom.host.views.ui_resource import UIResource

BROKEN = mutations("broken_views.toml")
TIMEOUT = 30.0  # seconds for an answer: a busy machine is not a broken View
URI = "ui://conform/app.html"
SOURCE = ViewSource(resource=UIResource(view_id="conform-1", server="conform", uri=URI, html=""))


def make_view() -> App:
    """A View that does a little of everything, if its host offers that."""
    app = App("everything", "1.0.0")
    app.on_error = ignore  # the kit sends what is wrong on purpose

    @app.tool(annotations={"readOnlyHint": True})
    def count_words(text: str) -> int:
        """Count the words of a text."""
        later.enable()
        return len(text.split())

    @app.tool(enabled=False)
    def later() -> str:
        """There once words were counted."""
        return "later"

    @app.on_tool_result
    async def _(_: object) -> None:
        await app.send_size_changed(width=300, height=200)
        if app.host_capabilities is not None and app.host_capabilities.logging is not None:
            await app.send_log("info", "the result is there")
            await app.update_model_context("The result is there.")

    return app


def failures(report: ConformReport) -> dict[str, str]:
    return {each.id: each.detail for each in report.verdicts if report.word(each) == "fail"}


async def test_our_view_in_python_keeps_all_that_can_be_measured_without_a_browser():
    report = await measure_app(make_view, "a View", timeout=TIMEOUT)
    assert failures(report) == {}
    skipped = {each.id for each in report.verdicts if each.outcome == "skip"}
    assert skipped == {"tools-undeclared", "page-errors", "page-policy"}


async def test_a_view_without_tools_is_not_asked_for_more():
    report = await measure_app(lambda: App("plain", "1.0.0"), "a View", timeout=TIMEOUT)
    assert failures(report) == {}
    [verdict] = [each for each in report.verdicts if each.id == "tools-undeclared"]
    assert verdict.outcome == "pass"


async def found_in(mutation: Mutation) -> list[str]:
    async with InProcessRenderer({URI: make_view}) as views:
        measured = await measure_in(MutatedRenderer(views, mutation), SOURCE, TIMEOUT)
    return sorted(measured.failed())


@pytest.mark.parametrize("mutation", BROKEN, ids=lambda each: each.name)
def test_a_broken_view_is_reported_for_that_alone(mutation: Mutation):
    assert run_at_once(found_in(mutation)) == sorted(mutation.expect)


def test_there_are_enough_broken_views_and_each_names_its_requirement():
    assert len(BROKEN) >= 20
    known = requirements("view")
    assert {id for each in BROKEN for id in each.expect} <= known.keys()
    for each in known.values():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+", each.id)
        assert each.text.endswith(".")
        assert each.by in ("host", "page", "tools", "bare")


# --- Views that are hostile to the kit -------------------------------------------------------


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda each: each.name)
def test_a_hostile_view_is_reported_and_the_run_ends(attack: Attack):
    measured = run_at_once(measure_in(HostileViews(attack), SOURCE, TIMEOUT))
    assert attack.expect in measured.failed()
    assert all(len(each.detail) <= 300 for each in measured.verdicts())
    assert "".join(each.detail for each in measured.verdicts()).isprintable()


def test_a_view_that_no_longer_answers_is_not_asked_for_more():
    [silent] = [each for each in ATTACKS if each.name == "is_silent_after_the_handshake"]
    measured = run_at_once(measure_in(HostileViews(silent), SOURCE, TIMEOUT))
    failed = ["data-partial", "starts-without-context", "teardown-answered"]
    assert measured.failed() == failed
    assert measured.outcome("capabilities-honoured") is None


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.parametrize("name", HOSTILE_PAGES)
async def test_a_hostile_page_is_reported_and_the_run_ends(name: str, tmp_path: Path):
    page = tmp_path / "page.html"
    script, expected = HOSTILE_PAGES[name]
    page.write_text(PAGE.replace("HOSTILE", script))
    async with view_of_page(page) as source:
        report = await measure_view(source, name, timeout=10.0)
    assert expected in failures(report)


# --- the command -----------------------------------------------------------------------------


def test_the_command_measures_a_view_in_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    page = tmp_path / "conform_sample_view.py"
    page.write_text("from transom import App\n\n\ndef make():\n    return App('small', '1.0.0')\n")
    report = tmp_path / "report.json"
    words = ["conform", "view", "--app", f"{page}:make", "--report", str(report)]
    assert run([*words, "--timeout", str(TIMEOUT)]) == 0
    assert json.loads(report.read_text())["summary"]["fail"] == 0
    assert "; 0 failed" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["no-such-page.html"], "there is no file no-such-page.html"),
        (["--app", "json:no_such_function"], "json:no_such_function is not a function"),
        (["--app", "no_such_module:make"], "no_such_module cannot be loaded"),
        (["--app", "json:loads", "--report", "a.txt"], "the name must end with one of"),
        ([""], "no server is named"),
        (
            ["json:loads", "show", '["open"]'],
            'ARGS must be a JSON object, not ["open"]. Write it as',
        ),
    ],
)
def test_mistakes_are_named(words: list[str], text: str, capsys: pytest.CaptureFixture[str]):
    assert run(["conform", "view", *words]) == 2
    assert text in capsys.readouterr().err


def test_the_requirements_are_listed(capsys: pytest.CaptureFixture[str]):
    assert run(["conform", "view", "--requirements"]) == 0
    assert run(["conform", "host", "--requirements"]) == 0
    printed = capsys.readouterr().out
    assert "teardown-answered" in printed
    assert "csp-default-connect" in printed
