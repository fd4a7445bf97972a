"""Whatever a server answers, no rule fails and a report can be written."""

import asyncio
import json
from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from tests.check.fake import MIME, URI, Server
from transom.check.report import Report, apply_rules, as_json, as_junit, as_sarif
from transom.check.rules import RULES
from transom.check.runner import Calling, Options, collect

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
    report = asyncio.run(report_on(Anything(tools, resources, read, called)))

    assert [skip for skip in report.skipped if "failed" in skip.reason] == []
    json.loads(as_json(report))
    json.loads(as_sarif(report))
    ET.fromstring(as_junit(report))  # noqa: S314 - our own output
