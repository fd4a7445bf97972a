"""Names, ids, handles, cursors and URIs that nobody would choose: each request is answered once.

None of them is answered with an internal error, and the next call works.
"""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateway import in_memory, memory
from tests.gateway.memory import Server, gateway

pytestmark = pytest.mark.load

DIGITS = "9" * 5000
HOSTILE = [
    "",
    "__",
    "____",
    "show",
    "plain",
    "shop-1__read",
    "shop-1__",
    "__read",
    "shop-0__read",
    "shop-01__read",
    "shop-٣__read",
    "shop-²__read",
    f"shop-{DIGITS}__read",
    f"shop-{DIGITS}",
    DIGITS,
    f"-{DIGITS}",
    "x" * 100_000,
    "shop-1__" + "y" * 100_000,
    "\0",
    "\r\n",
    "⟦View shop-1⟧",
    "\u202eevil",
    "transom://views",
    "transom://views/",
    "transom://views/shop-1",
    f"transom://views/shop-{DIGITS}",
    "transom://",
    "ui://shop/list.html",
    "ui://[",
    "http://[::1",
    "{a}{b}{c}",
    "%00%ff%",
    "../../etc/passwd",
    "constructor",
    "__proto__",
    "list_view_tools",
    "call_view_tool",
    "screenshot_view",
]
NAMES = st.sampled_from(HOSTILE)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = NAMES | st.text(max_size=40)
VALUES = st.recursive(
    TEXTS | st.none() | st.booleans() | st.integers() | NUMBERS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
ODD = TEXTS | VALUES
METHODS = st.sampled_from(
    [
        *("tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list"),
        *("resources/templates/list", "resources/read", "resources/subscribe"),
        *("resources/unsubscribe", "completion/complete", "logging/setLevel", "ping"),
        *("tasks/list", "tasks/get", "tasks/cancel", "tasks/result", "server/discover", "no/such"),
    ]
)
META = st.fixed_dictionaries({}, optional={"progressToken": ODD, "ui": ODD})
ARGUMENTS = st.fixed_dictionaries({}, optional={"view_id": ODD, "name": ODD, "arguments": ODD})
REFERENCE = st.fixed_dictionaries(
    {"type": st.sampled_from(["ref/prompt", "ref/resource", "", 1])},
    optional={"name": ODD, "uri": ODD},
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": TEXTS | VALUES,
        "uri": TEXTS | VALUES,
        "cursor": ODD,
        "taskId": ODD,
        "level": ODD,
        "arguments": ARGUMENTS | VALUES,
        "ref": REFERENCE | VALUES,
        "task": ODD,
        "_meta": META | VALUES,
        "inputResponses": ODD,
        "requestState": ODD,
    },
)
# None that a later request of the test has: that would be refused without an answer.
IDS = (
    st.integers(max_value=0)
    | st.integers(min_value=10**6)
    | st.text(max_size=300)
    | st.floats(min_value=10**6)
    | st.none()
    | st.just(DIGITS)
)
REQUESTS = st.lists(st.tuples(METHODS | TEXTS, PARAMS), min_size=1, max_size=20)
NOTES = st.lists(
    st.tuples(
        st.sampled_from(["notifications/cancelled", "notifications/progress", "notifications/x"]),
        st.fixed_dictionaries({}, optional={"requestId": IDS, "progressToken": IDS, "reason": ODD}),
    ),
    max_size=5,
)
LINES = st.lists(
    st.binary(max_size=60) | st.builds(lambda id: json.dumps(_ping(id)).encode(), IDS), max_size=5
)
FEW = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Everything(dict[str, Any]):
    """Answers what it does not know with an error."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> dict[str, Any]:
        return {"error": {"code": -32601, "message": "Method not found"}}


def _ping(id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "ping"}


def check(answer: dict[str, Any]) -> None:
    assert ("result" in answer) != ("error" in answer)
    if "error" in answer:
        assert answer["error"]["message"] != "Internal error", answer


async def test_every_hostile_name_is_answered_wherever_a_name_goes():
    async with gateway(Server({"tools/call": memory.text("called")}), pictures=True) as at:
        await at.open()
        for name in HOSTILE:
            for method, params in (
                ("tools/call", {"name": name}),
                ("tools/call", {"name": "list_view_tools", "arguments": {"view_id": name}}),
                ("tools/call", {"name": "screenshot_view", "arguments": {"view_id": name}}),
                (
                    "tools/call",
                    {
                        "name": "call_view_tool",
                        "arguments": {"view_id": name, "name": name, "arguments": {}},
                    },
                ),
                ("resources/read", {"uri": name}),
                ("resources/subscribe", {"uri": name}),
                ("prompts/get", {"name": name}),
                ("tools/list", {"cursor": name}),
                ("tasks/get", {"taskId": name}),
            ):
                check(await (await at.client.begin(method, params)).answer)


@FEW
@given(requests=REQUESTS, notes=NOTES, lines=LINES)
def test_whatever_the_client_of_one_server_sends(
    requests: list[tuple[str, Any]], notes: list[tuple[str, Any]], lines: list[bytes]
):
    async def run() -> None:
        called = memory.text("called")
        async with gateway(Server({"tools/call": called, "tasks/get": {}}), pictures=True) as at:
            await at.open()
            for method, params in notes:
                await at.client.tell(method, params)
            for line in lines:
                await at.client.channel.send(line)
            for method, params in requests:
                check(await (await at.client.begin(method, params)).answer)
            assert (await at.call("plain"))["content"][0] == called["content"][0]

    asyncio.run(run())


@FEW
@given(requests=REQUESTS, notes=NOTES, lines=LINES)
def test_whatever_the_client_of_several_servers_sends(
    requests: list[tuple[str, Any]], notes: list[tuple[str, Any]], lines: list[bytes]
):
    async def run() -> None:
        shop = in_memory.Fake("shop", ["plain"], capabilities={"resources": {}, "prompts": {}})
        other = in_memory.Fake("other", ["plain", "more"], capabilities={"tasks": {}})
        for each in (shop, other):
            each.answers = Everything(each.answers)
        async with in_memory.gateway(shop, other) as client:
            for method, params in notes:
                await client.tell(method, params)
            assert client.channel is not None
            for line in lines:
                await client.channel.send(line)
            for method, params in requests:
                check(await client.ask(method, params))
            await client.result("tools/call", {"name": "more"})

    asyncio.run(run())
