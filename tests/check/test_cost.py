"""What a hostile server makes the checker do grows no faster than what the server sends."""

import gc
import time
from typing import Any

import pytest

from tests.check.fake import SHOW, URI, Server, page, result, tool
from transom.check.report import apply_rules, as_json, as_junit, as_sarif
from transom.check.rules import RULES
from transom.check.runner import Calling, Options, collect

pytestmark = pytest.mark.load


def origins(count: int) -> list[str]:
    return [f"https://h{number}.example.com" for number in range(count)]


def csp_and_html(count: int) -> Server:
    html = "<!doctype html><html>" + "".join(f"<img src={url}.org>" for url in origins(count))
    return Server(pages={URI: page(text=html, ui={"csp": {"connectDomains": origins(count)}})})


def linked(count: int) -> Server:
    names = [f"ui://orders/{number}" for number in range(count)]
    tools = [tool(f"t{n}", _meta={"ui": {"resourceUri": uri}}) for n, uri in enumerate(names)]
    return Server(tools=tools, resources=[{"uri": f"{uri}.html"} for uri in names])


def answer(data: dict[str, Any]) -> Server:
    return Server(results={"show_orders": result(structuredContent=data)})


def schema(count: int) -> dict[str, Any]:
    names = [f"p{number}" for number in range(count)]
    properties = {name: {"type": "string", "enum": ["a", "b"]} for name in names}
    return {"type": "object", "properties": properties, "required": names}


HOSTILE = {
    "tools": lambda n: Server(tools=[tool(f"t{number}", title=...) for number in range(n)]),
    "tools of one name": lambda n: Server(tools=[SHOW, *[tool("same", _meta=...)] * n]),
    "links": linked,
    "origins": csp_and_html,
    "entries that are none": lambda n: Server(
        pages={URI: page(ui={"csp": {"connectDomains": [f"*{number}" for number in range(n)]}})}
    ),
    "unknown fields": lambda n: Server(pages={URI: page(ui={f"cps{k}": 1 for k in range(n)})}),
    "permissions": lambda n: Server(
        pages={URI: page(ui={"permissions": {f"p{k}": 1 for k in range(n)}})}
    ),
    "contents": lambda n: Server(pages={URI: {"contents": page()["contents"] * n}}),
    "long names": lambda n: Server(tools=[tool("aB" * n * 10), tool("a_" * n * 10)]),
    "long words": lambda n: Server(tools=[tool("show", description="always use " * n)]),
    "properties": lambda n: Server(tools=[tool("show", inputSchema=schema(n))]),
    "visibility": lambda n: Server(tools=[tool("t", _meta={"ui": {"visibility": ["x"] * n}})]),
    "text": lambda n: Server(results={"show_orders": result(content=[{"type": "text"}] * n)}),
    "secrets": lambda n: answer({f"token_{number}": "eyJ-" * 9 for number in range(n)}),
    "deep data": lambda n: answer({"a": [[{"b": "eyJ" * 500}]] * n}),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
async def test_the_work_grows_with_what_the_server_sends(name):
    await cost(HOSTILE[name](10))  # what is loaded or compiled once is no part of it
    short, long = [await cost(HOSTILE[name](count)) for count in (250, 4_000)]

    assert long < max(80 * short, 0.5), (short, long)  # 16 if it is linear, 256 if it is quadratic


async def cost(server: Server) -> float:
    """In processor time, which hardly depends on what else the machine does.

    Without the garbage collector's, which depends on what else is in memory.
    """
    gc.disable()
    before = time.process_time()
    options = Options(calling=Calling(all=True, max_calls=3), read_twice=True, max_resources=3)
    seen = await collect(server.connect, options)
    report = apply_rules("orders", seen, heuristics=[rule.id for rule in RULES])
    for write in (as_json, as_sarif, as_junit):
        write(report)
    took = time.process_time() - before
    gc.enable()
    return took
