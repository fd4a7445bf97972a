"""Whether a run did what its case expects: one sentence for each thing that it did not."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from transom.evals.cases import Expected, as_list
from transom.testing.model import Call

_SHOWN = 200  # characters of a text in a sentence


class MadeCall(msgspec.Struct, kw_only=True):
    """A call that the model made."""

    tool: str
    """The tool's name as the model sees it, such as `orders-1__get_selection`."""
    arguments: dict[str, Any]
    result: str = ""
    """What the model read."""
    failed: bool = False


class RunRecord(msgspec.Struct, kw_only=True):
    """What became of one run."""

    calls: list[MadeCall] = []
    answer: str = ""
    error: str | None = None
    """Why it came to no end: an error of the model or of the server, or its time was over."""
    pages: list[str] = []
    """What each open View showed in the end, as text, the newest first."""
    missing: list[str] = []
    """What was looked for on the pages, and not found."""
    after: list[str] = []
    """What the tools that were called afterwards answered."""
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


class Check(NamedTuple):
    """One thing that was expected; `reason` says what was found where it does not hold."""

    name: str
    reason: str | None

    @property
    def passed(self) -> bool:
        """Whether it holds."""
        return self.reason is None


def is_tool(shown: str, tool: str) -> bool:
    """Whether a model's name of a tool is that of `tool`, which may lack the View's id."""
    return shown == tool or shown.endswith(f"__{tool}")


def check_run(expected: Expected, run: RunRecord, folder: Path, *, update: bool) -> Iterator[Check]:
    """Compare a run with what is expected of it.

    Args:
        expected: the case's.
        run: what it did.
        folder: where the file of a snapshot is.
        update: whether that is written rather than compared.
    """
    yield Check("finished", run.error)
    if run.error is not None:
        return
    if expected.calls or expected.only:
        yield Check("calls", _wrong_calls(expected, run.calls))
    for tool in expected.never:
        made = [call for call in run.calls if is_tool(call.tool, tool)]
        yield Check(f"never {tool}", f"it was called: {described(made)}" if made else None)
    yield from _contains("answer", run.answer, expected.answer)
    for tool, texts in expected.results.items():
        results = [call.result for call in run.calls if is_tool(call.tool, tool)]
        if results:
            yield from _contains(f"result of {tool}", results[-1], texts)
        else:
            yield Check(f"result of {tool}", "it was not called")
    for text in as_list(expected.page):
        seen = _short(" | ".join(run.pages)) or "no View's page was open"
        yield Check(f"page has {_short(text)!r}", seen if text in run.missing else None)
    if expected.snapshot is not None:
        now = run.pages[0] if run.pages else ""
        yield Check("snapshot", _wrong_snapshot(folder / expected.snapshot, now, update=update))
    for wanted, done in zip(expected.after, run.after, strict=True):
        yield from _contains(f"{wanted.tool} afterwards", done, wanted.contains)


def _wrong_calls(expected: Expected, made: Sequence[MadeCall]) -> str | None:
    """What is wrong with the calls; each expected one is found once."""
    left = list(enumerate(made))
    after = -1
    for wanted in expected.calls:
        fitting = [index for index, call in left if not call.failed and _fits(call, wanted)]
        found = next((at for at in fitting if expected.any_order or at > after), None)
        if found is None:
            text = described([MadeCall(tool=wanted.tool, arguments=wanted.arguments)])
            when = " at that place" if fitting else ""
            return f"{text} was not called{when}; called: {described(made) or 'nothing'}"
        after = found
        left = [(index, call) for index, call in left if index != found]
    if expected.only and left:
        return f"also called: {described([call for _, call in left])}"
    return None


def _fits(made: MadeCall, wanted: Call) -> bool:
    return is_tool(made.tool, wanted.tool) and _has(made.arguments, wanted.arguments)


def _has(value: Any, wanted: Any) -> bool:
    """Whether an object has the members that are wanted; other values are equal."""
    if isinstance(value, Mapping) and isinstance(wanted, Mapping):
        members = cast("Mapping[str, Any]", value)
        return all(
            key in members and _has(members[key], each)
            for key, each in cast("Mapping[str, Any]", wanted).items()
        )
    if isinstance(value, bool) != isinstance(wanted, bool):  # True == 1 in Python
        return False
    return bool(value == wanted)


def _contains(name: str, text: str, wanted: str | list[str]) -> Iterator[Check]:
    for each in as_list(wanted):
        found = each.casefold() in text.casefold()
        yield Check(f"{name} has {_short(each)!r}", None if found else f"it is {_short(text)!r}")


def _wrong_snapshot(file: Path, now: str, *, update: bool) -> str | None:
    if update:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(now)
        return None
    if not file.is_file():
        return f"there is no {file}: write it with --update"
    before = file.read_text().splitlines()
    lines = difflib.unified_diff(before, now.splitlines(), "snapshot", "View", n=1, lineterm="")
    return "\n".join(lines)[:2000] or None


def described(calls: Sequence[MadeCall]) -> str:
    """Calls, in a sentence."""
    texts = [
        f"{call.tool} {msgspec.json.encode(call.arguments).decode()}{' (failed)' * call.failed}"
        for call in calls
    ]
    return _short(", ".join(texts), 600)


def _short(text: str, most: int = _SHOWN) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
