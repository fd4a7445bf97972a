"""D: tool results."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

from transom.check.rule import (
    ERRORS,
    OUTPUT_SCHEMA,
    SERVER_BEHAVIOR,
    STRUCTURED,
    TOOL_RESULT,
    Check,
    Hits,
    rule,
    show,
)
from transom.check.schemas import problems_of
from transom.check.snapshot import ListedTool, Snapshot, has_content, name_words, text_length
from transom.json_values import Json, JsonObject, size_of, type_name

LONG_TEXT = 4_000
LARGE_RESULT = 100 * 1024
LARGE_META = 2 * 1024

_PRIVATE_WORDS = frozenset(
    {"password", "passwd", "secret", "ssn", "apikey", "privatekey", "credential", "credentials"}
)
_TOKEN_WORDS = frozenset({"access", "auth", "refresh", "session", "api", "bearer", "id"})
# Starts at the start of a run and never gives a character back, so it reads a text once.
_JWT = re.compile(r"(?<![\w-])eyJ[\w-]{8,}+\.eyJ[\w-]{8,}+\.", re.ASCII)

_Judge = Callable[[ListedTool, JsonObject], Hits]
_JUDGES: list[_Judge] = []


def _each_result(judge: _Judge) -> Check:
    """Judge the results of the model's tools; for those of app-only helpers see D11."""
    _JUDGES.append(judge)

    @functools.wraps(judge)
    def check(seen: Snapshot) -> Hits:
        for tool, result in seen.results():
            if not tool.app_only:
                yield from judge(tool, result)

    return check


@rule("D1", "error", "A result can be read", SERVER_BEHAVIOR, "call")
@_each_result
def results_can_be_read(tool: ListedTool, result: JsonObject) -> Hits:
    """`content` must hold something meaningful even when a View shows the result.

    The model sees `content`, not the View. A short sentence that says what was found is enough.
    """
    if not isinstance(result.get("content"), list) or not has_content(result):
        yield tool, " returned no readable content.", "error"


@rule("D2", "info", "content is a summary", TOOL_RESULT, "call")
@_each_result
def content_is_short(tool: ListedTool, result: JsonObject) -> Hits:
    """`content` goes into the conversation; keep tables and dumps in `structuredContent`.

    Only a note: some advise to repeat the data as text for old clients.
    """
    length = text_length(result)
    if length > LONG_TEXT:
        yield tool, f": content is {length} chars; keep it a summary.", "info"


@rule("D3", "warn", "A View gets structured data", STRUCTURED, "call")
@_each_result
def views_get_data(tool: ListedTool, result: JsonObject) -> Hits:
    """A tool that opens a View should return `structuredContent`.

    Otherwise the View has to take the text apart.
    """
    failed = result.get("isError") is True
    if tool.link is not None and not failed and result.get("structuredContent") is None:
        yield tool, " gives its View only text; return structuredContent too.", "warn"


@rule("D4", "error", "structuredContent is an object", STRUCTURED, "call")
@_each_result
def data_is_an_object(tool: ListedTool, result: JsonObject) -> Hits:
    """`structuredContent` is a JSON object; wrap a list as `{"items": [...]}`."""
    data = result.get("structuredContent")
    if data is not None and not isinstance(data, dict):
        yield tool, f": structuredContent must be an object, got {type_name(data)}.", "error"


@rule("D5", "error", "structuredContent fits outputSchema", OUTPUT_SCHEMA, "call")
@_each_result
def data_fits_schema(tool: ListedTool, result: JsonObject) -> Hits:
    """A tool that declares `outputSchema` must return data that fits it, unless `isError`.

    Clients validate it and refuse the result otherwise.
    """
    schema, data = tool.raw.get("outputSchema"), result.get("structuredContent")
    if not isinstance(schema, dict) or result.get("isError") is True:
        return
    if data is None:
        yield tool, ": structuredContent is missing, though outputSchema is declared.", "error"
        return
    try:
        for problem in problems_of(data, schema):
            yield tool, f": structuredContent{problem.path} {show(problem.message, 200)}.", "error"
    except ValueError as error:
        yield tool, f": outputSchema cannot be used: {show(str(error), 200)}.", "error"


@rule("D6", "info", "Structured results have an outputSchema", OUTPUT_SCHEMA, "call")
def data_has_a_schema(seen: Snapshot) -> Hits:
    """An `outputSchema` tells hosts, Views and models what `structuredContent` holds.

    With it, clients can check the data before they use it.
    """
    for tool, result in seen.results():
        structured = isinstance(result.get("structuredContent"), dict)
        if structured and "outputSchema" not in tool.raw:
            yield tool, " returns structuredContent without outputSchema."


@rule("D7", "warn", "No private data in structuredContent", STRUCTURED, "call", heuristic=True)
def data_is_public(seen: Snapshot) -> Hits:
    """Treat `structuredContent` as something the model may see.

    Judged by key names (password, secret, access token …) and values that look like a JWT. Put
    what only the View may have into the result's `_meta`, or behind an app-only tool.
    """
    for tool, result in seen.results():
        for path in () if tool.app_only else _private(result.get("structuredContent")):
            yield tool, f": `{path}` looks private but structuredContent may reach the model."


@rule("D8", "info", "Facts are not hidden in _meta", TOOL_RESULT, "call", heuristic=True)
def facts_are_readable(seen: Snapshot) -> Hits:
    """The model cannot see a result's `_meta`; what it needs goes into content.

    Judged by size: a large `_meta` beside hardly any content.
    """
    for tool, result in seen.results():
        bulky = size_of(result.get("_meta")) > LARGE_META
        if bulky and not result.get("structuredContent") and text_length(result) < 40:
            yield tool, " keeps most data in _meta; the model cannot use it."


@rule("D9", "warn", "A result is of modest size", TOOL_RESULT, "call")
def results_are_modest(seen: Snapshot) -> Hits:
    """Bulk data belongs behind an app-only tool or a resource that the View reads itself."""
    for tool, result in seen.results():
        size = size_of(result)
        if size > LARGE_RESULT and not tool.app_only:
            yield tool, f" returned {size // 1024} KB; move bulk data to an app-only tool."


@rule("D10", "warn", "A failure is a result with isError", ERRORS, "call")
def failures_are_results(seen: Snapshot) -> Hits:
    """A tool that cannot do its work, or gets arguments that do not fit, answers with `isError`.

    Its text tells the model what to change. JSON-RPC errors are for protocol faults, such as a
    tool that does not exist; models never see them.
    """
    for tool, call in seen.called("example", "invalid"):
        if call.fault is not None:
            fault = f"{call.fault.code}: {show(call.fault.message, 120)}"
            yield tool, f" answered a tool failure with JSON-RPC error {fault}."


@rule("D11", "error", "Helpers answer as other tools do", TOOL_RESULT, "call")
def helpers_answer_well(seen: Snapshot) -> Hits:
    """App-only tools keep the same split: readable content, structured data that fits its schema.

    These are the rules D1 to D5 for the tools that only Views call.
    """
    helpers = [(tool, result) for tool, result in seen.results() if tool.app_only]
    for judge in _JUDGES:
        for tool, result in helpers:
            yield from judge(tool, result)


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
