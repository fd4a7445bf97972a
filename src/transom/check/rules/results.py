"""D: tool results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from transom.check.facts import Facts, ListedTool, has_text, name_words, texts
from transom.check.rule import CHECKS, Hits, rule, show
from transom.check.schemas import mismatches_of
from transom.json_values import Json, JsonObject, as_list, as_object, size_of, type_name

LONG_TEXT = 4_000
LARGE_RESULT = 100 * 1024
LARGE_META = 2 * 1024

_BLOCKS = ("text", "image", "audio", "resource", "resource_link")
_PRIVATE_WORDS = frozenset(
    {"password", "passwd", "secret", "ssn", "apikey", "privatekey", "credential", "credentials"}
)
_TOKEN_WORDS = frozenset({"access", "auth", "refresh", "session", "api", "bearer", "id"})
# Starts at the start of a run and never gives a character back, so it reads a text once.
_JWT = re.compile(r"(?<![\w-])eyJ[\w-]{8,}+\.eyJ[\w-]{8,}+\.", re.ASCII)

ResultJudge = Callable[[ListedTool, JsonObject], Hits]
_JUDGES: list[ResultJudge] = []


def _result_rule(id: str) -> Callable[[ResultJudge], ResultJudge]:
    """Judge the results of the model's tools by a rule; for those of app-only helpers see D11."""

    def decorate(judge: ResultJudge) -> ResultJudge:
        def check(seen: Facts) -> Hits:
            for tool, result in seen.results():
                if not tool.app_only:
                    yield from judge(tool, result)

        _JUDGES.append(judge)
        CHECKS[id] = judge.__name__, check
        return judge

    return decorate


@_result_rule("D1")
def results_can_be_read(tool: ListedTool, result: JsonObject) -> Hits:
    kinds = {str(as_object(block).get("type")) for block in as_list(result.get("content"))}
    if not has_text(result) and not kinds & {*_BLOCKS[1:]}:
        yield tool, " returned no readable content.", "error"


@_result_rule("D2")
def content_is_short(tool: ListedTool, result: JsonObject) -> Hits:
    length = sum(map(len, texts(result)))
    if length > LONG_TEXT:
        yield tool, f": content is {length} chars; keep it a summary.", "info"


@_result_rule("D3")
def views_get_data(tool: ListedTool, result: JsonObject) -> Hits:
    failed = result.get("isError") is True
    if tool.link is not None and not failed and result.get("structuredContent") is None:
        yield tool, " gives its View only text; return structuredContent too.", "warn"


@_result_rule("D4")
def data_is_an_object(tool: ListedTool, result: JsonObject) -> Hits:
    data = result.get("structuredContent")
    if data is not None and not isinstance(data, dict):
        yield tool, f": structuredContent must be an object, got {type_name(data)}.", "error"
    # SDKs write a value of unknown type as JSON text, and put one of another type below `result`.
    where = "its text" if data is None else "structuredContent"
    inner = _json_text(result) if data is None else data
    if _looks_like_result(inner) or _looks_like_result(as_object(inner).get("result")):
        why = "the View looks for its data one level higher"
        yield tool, f": {where} is a whole tool result; {why}.", "warn"


@_result_rule("D5")
def data_fits_schema(tool: ListedTool, result: JsonObject) -> Hits:
    schema, data = tool.raw.get("outputSchema"), result.get("structuredContent")
    if not isinstance(schema, dict) or result.get("isError") is True:
        return
    if data is None:
        yield tool, ": structuredContent is missing, though outputSchema is declared.", "error"
        return
    try:
        for mismatch in mismatches_of(data, schema):
            yield (
                tool,
                f": structuredContent{mismatch.path} {show(mismatch.message, 200)}.",
                "error",
            )
    except ValueError as error:
        yield tool, f": outputSchema cannot be used: {show(str(error), 200)}.", "error"


@rule("D6")
def data_has_a_schema(seen: Facts) -> Hits:
    for tool, result in seen.results():
        structured = isinstance(result.get("structuredContent"), dict)
        if structured and "outputSchema" not in tool.raw:
            yield tool, " returns structuredContent without outputSchema."


@rule("D7")
def data_is_public(seen: Facts) -> Hits:
    for tool, result in seen.results():
        for path in () if tool.app_only else _private(result.get("structuredContent")):
            yield tool, f": `{path}` looks private but structuredContent may reach the model."


@rule("D8")
def facts_are_readable(seen: Facts) -> Hits:
    for tool, result in seen.results():
        bulky = size_of(result.get("_meta")) > LARGE_META
        if bulky and not result.get("structuredContent") and sum(map(len, texts(result))) < 40:
            yield tool, " keeps most data in _meta; the model cannot use it."


@rule("D9")
def results_are_modest(seen: Facts) -> Hits:
    for tool, result in seen.results():
        size = size_of(result)
        if size > LARGE_RESULT and not tool.app_only:
            yield tool, f" returned {size // 1024} KB; move bulk data to an app-only tool."


@rule("D10")
def failures_are_results(seen: Facts) -> Hits:
    for tool, call in seen.called("example", "invalid"):
        if call.fault is not None:
            fault = f"{call.fault[0]}: {show(call.fault[1], 120)}"
            yield tool, f" answered a tool failure with JSON-RPC error {fault}."


@rule("D11")
def helpers_answer_well(seen: Facts) -> Hits:
    helpers = [(tool, result) for tool, result in seen.results() if tool.app_only]
    for judge in _JUDGES:
        for tool, result in helpers:
            yield from judge(tool, result)


def _json_text(result: JsonObject) -> Json:
    try:
        return msgspec.json.decode("".join(texts(result)))
    except (msgspec.DecodeError, RecursionError):
        return None


def _looks_like_result(value: Json) -> bool:
    """Whether `value` has the members of a tool result, and nothing else."""
    data = as_object(value)
    blocks = [as_object(block) for block in as_list(data.get("content"))]
    nested = isinstance(data.get("structuredContent"), dict) or (
        bool(blocks) and all(block.get("type") in _BLOCKS for block in blocks)
    )
    return nested and data.keys() <= {"content", "structuredContent", "isError", "_meta"}


def _private(data: Json) -> Iterator[str]:
    """Paths of what looks private; walks without recursion, and keeps paths short."""
    waiting: list[tuple[str, str, Json]] = [("", "", data)]
    found = 0
    while waiting and found < 20:
        path, key, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(
                (f"{path}.{name}".lstrip(".")[:200], name, inner) for name, inner in value.items()
            )
        elif isinstance(value, list):
            waiting.extend((f"{path}[{at}]", key, inner) for at, inner in enumerate(value[:100]))
        elif isinstance(value, str) and value and (_private_name(key) or _JWT.search(value[:4096])):
            found += 1
            yield path


def _private_name(key: str) -> bool:
    parts = name_words(key)
    joined = "".join(parts)
    if _PRIVATE_WORDS & {*parts, joined}:
        return True
    return parts[-1:] == ["token"] and (len(parts) == 1 or bool(_TOKEN_WORDS & set(parts)))
