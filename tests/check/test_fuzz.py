"""Whatever a server answers, no rule fails and a report can be written."""

import asyncio
import io
import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.check.fake import MIME, URI, FakeChannel, Server
from tests.fuzz.mutation import Mutator
from transom.check.report import Report, apply_rules, as_json, as_junit, as_sarif
from transom.check.rules import RULES
from transom.check.rules.csp import DeclaredOrigins, WebOrigin, origin_of, unsafe
from transom.check.runner import Calling, NothingToCheck, Options, collect
from transom.check.scan import HtmlScan
from transom.check.terminal import print_report

pytestmark = pytest.mark.load

ORIGIN = WebOrigin("https", "a.example", 443)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from([URI, "ui://x", "https://a.example", "model", "app", "object", "text", MIME])
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def about(**known: Any) -> Any:
    """An object with some of these keys, each right or anything."""
    optional = {key: value | ANYTHING for key, value in known.items()}
    return st.fixed_dictionaries({}, optional=optional)


CSP = about(
    connectDomains=st.lists(SCALARS, max_size=3), resourceDomains=st.lists(SCALARS, max_size=3)
)
UI = about(
    resourceUri=st.just(URI),
    visibility=st.lists(st.sampled_from(["model", "app"])),
    csp=CSP,
    permissions=about(camera=st.just({}), tools=st.just({})),
    domain=SCALARS,
    prefersBorder=st.booleans(),
)
META = about(ui=UI)
TOOL = about(
    name=st.sampled_from(["show", "delete_all", "getPage"]),
    description=st.text(max_size=5),
    inputSchema=about(type=st.just("object"), properties=ANYTHING, required=ANYTHING),
    outputSchema=about(type=st.just("object"), properties=ANYTHING),
    annotations=about(readOnlyHint=st.booleans(), idempotentHint=st.booleans()),
    _meta=META,
)
HTML = st.lists(
    st.sampled_from(
        ["<!doctype html>", "<html>", "<script src=", "<style>", "url(", "'", '"', ">", "<!--",
         "fetch('https://a.example')", "</script>", "x.js", " ", "<base href=https://b.example>"]
    ),
    max_size=12,
).map("".join)  # fmt: skip
ITEM = about(uri=st.just(URI), mimeType=st.just(MIME), text=HTML, blob=st.text(), _meta=META)
RESULT = about(
    content=st.lists(about(type=st.just("text"), text=st.text()), max_size=2),
    structuredContent=ANYTHING,
    isError=st.booleans(),
    _meta=META,
)


class Anything(Server):
    def __init__(self, tools: Any, resources: Any, read: Any, called: Any) -> None:
        super().__init__(tools=tools, resources=resources, lists=lambda all_tools, _: all_tools)
        self.read_answer = read
        self.call_answer = called

    def read(self, uri: str) -> Any:
        return {"result": self.read_answer}

    def call(self, name: str, arguments: Any, known: Any) -> Any:
        return {"result": self.call_answer}


async def report_on(server: Server) -> Report:
    options = Options(calling=Calling(all=True), timeout=5)
    seen = await collect(server.connect, options)
    everything = [rule.id for rule in RULES]
    return apply_rules("x", seen, heuristics=everything)


@given(
    st.lists(TOOL | ANYTHING, max_size=3),
    st.lists(about(uri=st.just(URI), mimeType=st.just(MIME), _meta=META) | ANYTHING, max_size=2),
    about(contents=st.lists(ITEM | ANYTHING, max_size=2)),
    RESULT,
)
def test_no_answer_makes_a_rule_fail_or_a_report_unwritable(tools, resources, read, called):
    require_whole(asyncio.run(report_on(Anything(tools, resources, read, called))))


def require_whole(report: Report) -> None:
    assert [skip for skip in report.skipped if "failed" in skip.reason] == []
    json.loads(as_json(report))
    json.loads(as_sarif(report))
    ET.fromstring(as_junit(report))  # noqa: S314 - our own output
    print_report(Console(file=io.StringIO(), width=100), report)


class DamagedChannel(FakeChannel):
    """A right server behind a wire that damages some answers, as values or as bytes."""

    def __init__(self, mutator: Mutator) -> None:
        super().__init__(Server())
        self.mutator = mutator

    async def send(self, data: bytes) -> None:
        await super().send(data)
        if self.answers.empty():
            return
        whole, rng = json.loads(self.answers.get_nowait()), self.mutator.random
        for _ in range(rng.choice((0, 0, 1, 2, 5))):
            whole["result"] = self.mutator.damaged({"result": whole.get("result")}).get("result")
        answer = json.dumps(whole).encode("utf-8", "surrogatepass")
        self.answers.put_nowait(self.mutator.torn(answer) if rng.random() < 0.02 else answer)


async def damaged_report(seed: int) -> Report | None:
    mutator = Mutator(seed)

    async def connect() -> DamagedChannel:
        return DamagedChannel(mutator)

    options = Options(calling=Calling(all=True), timeout=0.2, read_twice=True)
    try:
        seen = await collect(connect, options)
    except NothingToCheck:
        return None
    return apply_rules("x", seen, heuristics=[rule.id for rule in RULES])


async def test_damaged_answers_make_no_rule_fail_and_no_report_unwritable():
    reports = [await damaged_report(seed) for seed in range(60)]
    assert sum(report is not None for report in reports) > 20
    for report in filter(None, reports):
        require_whole(report)


PIECES = (
    *("<", ">", "</", "<!", "<!--", "-->", "=", "'", '"', "/", " ", "\0", "\ud800", "\u017f", "&#"),
    *("<script", "</script>", "<style>", "</style>", "<link rel=stylesheet href=", "<base href="),
    *("url(", "@import '", "--a:", "fetch('https://", "import('https://", "x.open('GET','https://"),
    *("getUserMedia({", "https://[", "https://a.example:99999", "//", "data:", "{{", "${", "html"),
)


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=30).map("".join))
def test_no_page_and_no_address_makes_the_scan_fail(html):
    for reference in HtmlScan(html).references:
        DeclaredOrigins([html, reference.url]).cover(origin_of(reference.url) or ORIGIN)
    assert unsafe(html) in (True, False)
