"""Runs of a case: a model, with the tools of a server and its Views, does what the case asks.

1. Each run has a host, a connection to the server and a place in the browser of its own.
2. A run ends within its time, however it goes: what keeps it from ending is its error.
3. pydantic-evals repeats the cases, a few at the same time, and calls the evaluators.

Needs `transom[eval]`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from pydantic_ai import Agent
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.models import Model, infer_model
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import ToolsetTool, WrapperToolset
from pydantic_ai.usage import RunUsage
from pydantic_evals import Dataset, set_eval_attribute
from pydantic_evals.evaluators import EvaluationReason, Evaluator, EvaluatorContext

from transom.agents.content import as_text, parts_for_model
from transom.background import ignore
from transom.connections.target_names import parse_target
from transom.connections.targets import Target
from transom.errors import TransomError, UsageError
from transom.evals.cases import EvalCase, EvalFile, Variant, as_list
from transom.evals.checks import Check, MadeCall, RunRecord, check_run, is_tool
from transom.evals.report import CaseResult, EvalReport, Experiment, RunResult
from transom.host.asking.policy import Deny, Policy
from transom.host.host import Host
from transom.host.views.renderers import Renderer
from transom.host.views.view import View
from transom.json_values import clean
from transom.python_files import load_python_file
from transom.testing.fixture import server_name
from transom.testing.model import make_model
from transom.testing.opened_view import without_refs
from transom.testing.view_files import ViewFiles

SCRIPT = "script"
"""The name of the model that does what each case's `script` says."""
_MAX_RESULT = 20_000
_APPEARS_WITHIN = 5.0  # seconds: a page may show a little later what a tool has changed
_OF_A_VIEW = "⟦View⟧ "

MakeModel = Callable[[EvalCase], Model[Any]]
Seat = Callable[[], Renderer]
"""Makes the renderer of one run."""


@dataclass(frozen=True, kw_only=True)
class EvalOptions:
    """How the cases of a file are run."""

    models: Mapping[str, MakeModel]
    variants: Mapping[str, Variant]
    runs: int
    timeout: float
    at_once: int
    update: bool = False
    progress: bool = False
    """Whether a bar is shown on the terminal."""


def find_model(name: str, file: Path, cases: EvalFile) -> MakeModel:
    """What makes a model, by its name.

    Args:
        name: `script`; a file of Python and a name in it, such as `models.py:make`, of a model or
            of a function that makes one; or a name that Pydantic AI knows.
        file: the file of cases, beside which the one of Python is.
        cases: what it has.

    Raises:
        UsageError: there is no such model, or it lacks a package or a key.
    """
    if name == SCRIPT:
        if lacking := [case.name for case in cases.cases if not case.script]:
            raise UsageError(
                f"the model `script` needs a script in each case: not in {lacking[0]!r}"
            )
        return lambda case: make_model(case.script)
    place, _, attribute = name.rpartition(":")
    try:
        if not place.endswith(".py"):
            found: Any = infer_model(name)
        else:
            found = getattr(load_python_file(file.parent / place), attribute)
        is_model = isinstance(found, Model)
        return lambda _: found if is_model else found()
    except Exception as error:
        raise UsageError(f"the model {name} cannot be used: {error}") from error


async def run_cases(
    path: Path, cases: EvalFile, options: EvalOptions, seat: Seat, target: Target | None = None
) -> EvalReport:
    """Run every case, with each model and each variant.

    Args:
        path: the file of the cases.
        cases: what it has.
        options: how they are run.
        seat: makes the renderer of each run.
        target: the server, if it is not the one that the file names.

    Raises:
        UsageError: the file names no server, or an evaluator that there is not.
    """
    if target is None:
        target = parse_target(ViewFiles(path, "", Path).beside(cases.server))
    experiments: list[Experiment] = []
    for model, make in options.models.items():
        for name, variant in options.variants.items():
            runner = _Runner(cases, variant, make, seat, target, options.timeout)
            results = await _repeat(path, cases, options, runner)
            unused = sorted(set(variant.descriptions) - runner.overridden)
            experiments.append(Experiment(model=model, variant=name, cases=results, unused=unused))
    return EvalReport(file=str(path), experiments=experiments)


async def _repeat(
    path: Path, cases: EvalFile, options: EvalOptions, runner: _Runner
) -> list[CaseResult]:
    """Have pydantic-evals run the cases."""
    by_name = {case.name: case for case in cases.cases}
    described = [
        {"name": case.name, "inputs": case.name, "evaluators": case.evaluators}
        for case in cases.cases
    ]
    try:
        dataset = Dataset[str, str, Any].from_dict({"name": str(path), "cases": described})
    except ExceptionGroup as group:
        raise UsageError(f"{path}: {group.exceptions[0]}") from None
    except ValueError as error:
        raise UsageError(f"{path}: {clean(str(error), 500)}") from None
    for each in dataset.cases:
        expected = by_name[each.inputs].expect
        check = partial(check_run, expected, folder=path.parent, update=options.update)
        each.evaluators.append(_Expectations(check))
    report = await dataset.evaluate(
        lambda name: runner.run(by_name[name]),
        name=str(path),
        repeat=options.runs,
        max_concurrency=options.at_once,
        progress=options.progress,
    )
    results = {name: CaseResult(name=name) for name in by_name}
    for done in report.cases:
        run: RunRecord = done.attributes["run"]
        wrong = {
            name: each.reason or "" for name, each in done.assertions.items() if not each.value
        }
        wrong |= {each.name: each.error_message for each in done.evaluator_failures}
        results[done.inputs].runs.append(RunResult(record=run, wrong=wrong))
    for lost in report.failures:
        record = RunRecord(error=lost.error_message)
        results[lost.inputs].runs.append(
            RunResult(record=record, wrong={"run": record.error or ""})
        )
    return list(results.values())


@dataclass
class _Expectations(Evaluator[str, str, Any]):
    """What a case expects, for pydantic-evals."""

    check: Callable[[RunRecord], Any]

    def evaluate(self, ctx: EvaluatorContext[str, str, Any]) -> dict[str, EvaluationReason]:
        checks: list[Check] = list(self.check(ctx.attributes["run"]))
        return {each.name: EvaluationReason(each.passed, each.reason) for each in checks}


@dataclass
class _Runner:
    """Runs cases with one model and one variant."""

    cases: EvalFile
    variant: Variant
    make: MakeModel
    seat: Seat
    target: Target
    timeout: float
    overridden: set[str] = field(default_factory=set[str])
    """The tools that a model has seen with another description."""

    async def run(self, case: EvalCase) -> str:
        """Run a case; the model's answer."""
        record, usage = RunRecord(), RunUsage()
        set_eval_attribute("run", record)
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.timeout):
                await self._run(case, record, usage)
        except TimeoutError:
            record.error = f"it took longer than {self.timeout:g} s"
        except Exception as error:  # noqa: BLE001 - whatever a model raises, other runs go on
            record.error = clean(f"{type(error).__name__}: {error}", 500)
        record.seconds = time.monotonic() - began
        record.input_tokens, record.output_tokens = usage.input_tokens, usage.output_tokens
        return record.answer

    async def _run(self, case: EvalCase, record: RunRecord, usage: RunUsage) -> None:
        # This module is made for Pydantic AI, and so is that one.
        from transom.agents.pydantic_ai import HostToolset  # noqa: PLC0415

        policy = Policy.trusting() if self.cases.approve else Policy(approve=_refuse)
        async with Host(renderer=self.seat(), policy=policy, audit=None) as host:
            host.on_error(ignore)
            await host.add_server(server_name(self.cases.server, ()), self.target)
            if case.open is not None:
                await host.call_tool(case.open.tool, case.open.arguments)
            tools = _ObservedToolset(
                HostToolset[object](host), record.calls, self.variant.descriptions, self.overridden
            )
            instructions = self.variant.instructions or self.cases.instructions
            agent = Agent(self.make(case), instructions=instructions, toolsets=[tools])
            record.answer = (await agent.run(case.ask, usage=usage)).output
            await _look(host, case, record)


async def _look(host: Host, case: EvalCase, record: RunRecord) -> None:
    """See what became of the Views."""
    expected = case.expect
    for after in expected.after:
        view = next((each for each in _live(host) if _has_tool(each, after.tool)), None)
        if view is None:
            record.after.append(f"no open View has the tool {after.tool}")
            continue
        try:
            result = await view.call_tool(after.tool, after.arguments)
            record.after.append(clean(_text_of(parts_for_model(result)), _MAX_RESULT))
        except TransomError as error:
            record.after.append(str(error))
    if not expected.page and expected.snapshot is None:
        return
    left = await _texts_to_appear(host, as_list(expected.page))
    record.missing += left
    for view in _live(host):
        record.pages.append(without_refs(await view.snapshot()))


async def _texts_to_appear(host: Host, texts: list[str]) -> list[str]:
    """Wait until the pages of Views show texts; those that they do not."""
    until = time.monotonic() + _APPEARS_WITHIN
    while True:
        texts = [text for text in texts if not await _is_shown(host, text)]
        if not texts or time.monotonic() > until:
            return texts
        await asyncio.sleep(0.1)  # no event says that a page has drawn something


async def _is_shown(host: Host, text: str) -> bool:
    for view in _live(host):
        found = await view.snapshot(find=text)
        if text.casefold() in "\n".join(line.text for line in found.lines).casefold():
            return True
    return False


def _live(host: Host) -> list[View]:
    """The open Views, the newest first."""
    return [view for view in reversed([*host.views.values()]) if view.takes_calls]


def _has_tool(view: View, tool: str) -> bool:
    return any(each.name == tool for each in view.tools)


def _text_of(parts: Any) -> str:
    return "\n".join(map(as_text, parts))


async def _refuse(_: object) -> Deny:
    return Deny("The user said no")


@dataclass
class _ObservedToolset(WrapperToolset[object]):
    """The tools of a host, some described otherwise, whose calls are recorded."""

    calls: list[MadeCall]
    descriptions: Mapping[str, str]
    overridden: set[str] = field(default_factory=set[str])

    async def get_tools(self, ctx: RunContext[object]) -> dict[str, ToolsetTool[object]]:
        return {
            name: self._described(name, tool)
            for name, tool in (await super().get_tools(ctx)).items()
        }

    def _described(self, name: str, tool: ToolsetTool[object]) -> ToolsetTool[object]:
        wanted = next((each for each in self.descriptions if is_tool(name, each)), None)
        if wanted is None:
            return tool
        self.overridden.add(wanted)
        mark = _OF_A_VIEW if (tool.tool_def.description or "").startswith(_OF_A_VIEW) else ""
        described = replace(tool.tool_def, description=f"{mark}{self.descriptions[wanted]}")
        return replace(tool, tool_def=described)

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[object],
        tool: ToolsetTool[object],
    ) -> Any:
        call = MadeCall(tool=name, arguments=tool_args, failed=True)
        self.calls.append(call)
        try:
            result: Any = await super().call_tool(name, tool_args, ctx, tool)
        except ToolFailed as error:
            call.result = clean(str(error), _MAX_RESULT)
            raise
        call.failed = False
        value = getattr(result, "return_value", result)
        text = (
            value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
        )
        call.result = clean(text, _MAX_RESULT)
        return result
