"""Runs of cases, with Views in Python: no browser, so these run in this process."""

import asyncio
import json
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from mcp.server.mcpserver import MCPServer
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from rich.console import Console

from transom import App
from transom.cli.main import run as transom
from transom.errors import UsageError
from transom.evals.cases import EvalFile, Variant
from transom.evals.report import EvalReport, as_json, as_junit, print_report
from transom.evals.runs import EvalOptions, MakeModel, find_model, run_cases
from transom.host.views.renderers import InProcessRenderer
from transom.server import Views

ORDERS = "ui://orders/list.html"
SCRIPT = [
    {"tool": "show", "arguments": {"status": "open"}},
    {"tool": "select", "arguments": {"id": "A-1"}},
    "Selected.",
]
CALLS = [{"tool": "show"}, {"tool": "select", "arguments": {"id": "A-1"}}]


def orders_view() -> App:
    app = App("orders", "1.0.0")
    chosen: list[str] = []

    @app.tool
    def select(id: str) -> str:
        """Choose an order."""
        chosen.append(id)
        return f"selected {id}"

    @app.tool
    async def hang() -> str:
        """Never answer."""
        await asyncio.Event().wait()
        return ""

    @app.tool(annotations={"readOnlyHint": True})
    def get_selection() -> str:
        """What is chosen."""
        return ", ".join(chosen)

    return app


def make_server() -> MCPServer:
    views = Views()
    page = views.add(ORDERS, html="<!doctype html><title>Orders</title>")

    @views.tool(opens=page, annotations={"readOnlyHint": True})
    def show(status: str = "all") -> str:
        """Show orders."""
        return f"orders: {status}"

    return MCPServer("orders", extensions=[views])


async def evaluate(
    cases: list[dict[str, Any]],
    *,
    models: dict[str, MakeModel] | None = None,
    variants: dict[str, Variant] | None = None,
    runs: int = 1,
    timeout: float = 60.0,
    **of_file: Any,
) -> EvalReport:
    named = [{"name": "select", "ask": "Select A-1", "script": SCRIPT, **each} for each in cases]
    file = msgspec.convert({"server": "orders.py", "cases": named, **of_file}, EvalFile)
    path = Path("cases.yaml")
    options = EvalOptions(
        models=models or {"script": find_model("script", path, file)},
        variants=variants or {"": Variant()},
        runs=runs,
        timeout=timeout,
        at_once=4,
    )

    def seat() -> InProcessRenderer:
        return InProcessRenderer({ORDERS: orders_view})

    return await run_cases(path, file, options, seat, make_server())


def wrong_in(report: EvalReport) -> list[dict[str, str]]:
    return [run.wrong for each in report.experiments for case in each.cases for run in case.runs]


async def test_runs_pass_that_do_what_is_expected():
    expect = {
        "calls": CALLS,
        "only": True,
        "answer": "selected",
        "results": {"show": "orders: open", "select": "selected A-1"},
        "after": [{"tool": "get_selection", "contains": "A-1"}],
    }
    report = await evaluate([{"expect": expect}], runs=3)
    assert wrong_in(report) == [{}, {}, {}]  # each had a View of its own
    record = report.experiments[0].cases[0].runs[0].record
    assert [call.tool for call in record.calls] == ["show", "orders-1__select"]
    assert record.input_tokens > 0
    assert record.output_tokens > 0


async def test_what_is_wrong_with_a_run_is_said():
    report = await evaluate(
        [
            {"name": "calls", "expect": {"calls": [{"tool": "get_selection"}]}},
            {"name": "page", "expect": {"page": "A-1"}},
            {"name": "after", "expect": {"after": [{"tool": "none", "contains": "A-1"}]}},
            {"name": "opened", "expect": {"only": True}, "open": {"tool": "show"}, "script": ["?"]},
            {"name": "theirs", "evaluators": [{"Contains": "Bought"}, {"Contains": "Selected"}]},
        ]
    )
    calls, page, after, opened, theirs = wrong_in(report)
    assert "get_selection {} was not called; called: show" in calls["calls"]
    assert "cannot use the pages of Views" in page["finished"]
    assert after["none afterwards has 'A-1'"] == "it is 'no open View has the tool none'"
    assert opened == {}
    assert len(theirs) == 1


async def test_a_refused_call_is_a_failed_one():
    report = await evaluate([{"expect": {"calls": CALLS}}], approve=False)
    [wrong] = wrong_in(report)
    assert 'orders-1__select {"id":"A-1"} (failed)' in wrong["calls"]


async def test_what_hangs_ends_with_its_run():
    async def wait(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await asyncio.Event().wait()
        raise AssertionError

    expect = {"calls": [{"tool": "hang"}]}
    script = [{"tool": "show"}, {"tool": "hang"}, "Done."]
    report = await evaluate([{"expect": expect, "script": script}], timeout=3.0)
    assert wrong_in(report) == [{"finished": "it took longer than 3 s"}]
    models: dict[str, MakeModel] = {"slow": lambda _: FunctionModel(wait)}
    report = await evaluate([{"expect": expect}], models=models, timeout=0.2)
    assert wrong_in(report) == [{"finished": "it took longer than 0.2 s"}]
    assert report.failure == "it took longer than 0.2 s"


async def test_a_model_that_fails_fails_its_run_and_no_other():
    report = await evaluate(
        [
            {"name": "fails", "script": [{"tool": "fly"}], "expect": {"calls": CALLS}},
            {"name": "works", "expect": {"calls": CALLS}},
        ]
    )
    fails, works = wrong_in(report)
    assert "The script calls fly, which is not offered" in fails["finished"]
    assert works == {}
    assert report.failure is None


async def reads_descriptions(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if len(messages) > 1:
        return ModelResponse(parts=[TextPart("Done.")])
    fitting = [each for each in info.function_tools if "mark" in (each.description or "").lower()]
    return ModelResponse(parts=[ToolCallPart(each.name, {"id": "A-1"}) for each in fitting or []]
                         or [TextPart("I cannot.")])  # fmt: skip


async def test_two_descriptions_of_a_tool_are_compared():
    report = await evaluate(
        [{"ask": "Mark A-1", "open": {"tool": "show"}, "expect": {"calls": [{"tool": "select"}]}}],
        models={"reader": lambda _: FunctionModel(reads_descriptions)},
        variants={
            "as it is": Variant(),
            "longer": Variant(descriptions={"select": "Mark an order.", "selekt": "Mark."}),
        },
        runs=4,
    )
    before, after = (each.cases[0].counts for each in report.experiments)
    assert (before, after) == ((0, 4), (4, 4))
    [comparison] = report.comparisons()
    assert (comparison.before, comparison.after) == ("as it is", "longer")
    assert comparison.chance == pytest.approx(2 / 70)
    assert comparison.verdict == "the difference is hardly chance"
    assert report.experiments[1].unused == ["selekt"]

    console = Console(width=80, record=True, file=StringIO())
    print_report(console, report)
    text = console.export_text()
    assert "select     0/4    0%      0% to 49%" in text
    assert "✗ select, runs 1, 2, 3, 4: calls: select {} was not called; called: nothing" in text
    assert "! the variant describes selekt, which no model was offered" in text
    assert "reader: 0% with 'as it is', 100% with 'longer'; p = 0.029: the differ" in text

    found = json.loads(as_json(report))["experiments"][1]["cases"][0]
    assert (found["passed"], found["of"], found["runs"][0]["passed"]) == (4, 4, True)
    xml = as_junit(report, 0.8)
    assert '<testsuite name="reader, as it is" tests="1" failures="1">' in xml
    assert '<testsuite name="reader, longer" tests="1" failures="0">' in xml
    assert report.fails(0.8)
    assert not report.fails(0.0)


def test_a_model_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    case = {"name": "one", "ask": "Look", "expect": {"answer": "x"}}
    cases = msgspec.convert({"server": "orders.py", "cases": [case]}, EvalFile)
    (tmp_path / "models.py").write_text("value = 1 / 0\n")
    for name, says in {
        "openai:gpt-5": "openai:gpt-5 cannot be used: Set the `OPENAI_API_KEY` environment",
        "nobody:knows": "Unknown model",
        "models.py:value": "division by zero",
        "none.py:value": "No such file",
        "script": "the model `script` needs a script in each case: not in 'one'",
    }.items():
        with pytest.raises(UsageError) as caught:
            find_model(name, tmp_path / "cases.yaml", cases)
        assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        ("cases: 3", [], "cases.yaml, line 1: cases: Expected `array`"),
        ("", ["--model", "x"], "cases.yaml, line 1: Expected `object`"),
        ("SERVER", [], "no model is named: give --model, such as --model openai:gpt-5"),
        ("SERVER", ["--model", "test", "--variant", "b"], "has no variant b"),
        ("SERVER", ["--model", "test"], "there is no file orders.py"),
        ("SERVER\n    evaluators: [Nonsense]", ["--model", "test"], "Nonsense"),
    ],
)
def test_what_the_command_cannot_do_it_says(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    words: list[str],
    says: str,
):
    monkeypatch.chdir(tmp_path)
    if "Nonsense" in text:
        Path("orders.py").touch()
    good = "server: orders.py\ncases:\n  - {name: one, ask: Look, expect: {answer: x}}"
    if "evaluators" in text:
        good = good.replace(
            "{name: one, ask: Look, expect: {answer: x}}", "name: one\n    ask: Look"
        )
    Path("cases.yaml").write_text(text.replace("SERVER", good))
    assert transom(["eval", "cases.yaml", *words]) == 2
    assert says in capsys.readouterr().err
