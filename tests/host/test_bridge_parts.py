"""The small parts a Bridge is made of, where the whole does not reach them."""

import asyncio
from types import MappingProxyType
from typing import Any, ClassVar

import pytest

from tests.host.bare_view import HOST
from transom.channel import memory_pair
from transom.errors import NotConnected
from transom.host.views.bridge import _MAX_REPORTS, Bridge
from transom.host.views.view_server import ViewServer
from transom.protocol.messages import object_json, result_json
from transom.protocol.peer import Progress
from transom.types import HostContext, Tool


async def test_reports_to_slow_handlers_do_not_pile_up_without_end():
    release = asyncio.Event()
    ended: list[int] = []
    bridge = Bridge(memory_pair()[0], host_info=HOST)

    @bridge.on_error
    async def _(error: BaseException) -> None:
        await release.wait()
        ended.append(int(str(error)))

    for number in range(_MAX_REPORTS + 7):
        bridge.report(ValueError(number))
    release.set()
    while len(ended) < _MAX_REPORTS:  # noqa: ASYNC110 - nobody waits for a report
        await asyncio.sleep(0)
    for _ in range(5):
        await asyncio.sleep(0)
    assert ended == list(range(_MAX_REPORTS))


class SlowServer:
    """A server that reports its progress as fast as it can."""

    capabilities: ClassVar[Any] = {"tools": {}}
    current = True

    async def tools(self) -> dict[str, Tool]:
        return {"t": Tool("t")}

    async def tool(self, name: str) -> Tool | None:
        return Tool(name)

    async def request(self, method: str, params: Any, *, on_progress: Any = None) -> bytes:
        for step in range(100):
            on_progress(Progress(0, step, None, None))
        await asyncio.sleep(0)
        return b'{"content":[]}'

    def subscribe(self, observer: Any) -> Any:
        return lambda: None


async def test_progress_that_a_slow_view_cannot_take_is_dropped():
    sent: list[bytes] = []
    release = asyncio.Event()

    async def notify(method: str, params: bytes) -> None:
        sent.append(params)
        await release.wait()

    server = ViewServer(SlowServer())
    server.start(notify, print)
    asking = asyncio.ensure_future(
        server.forward("tools/call", b'{"name":"t","_meta":{"progressToken":"p"}}')
    )
    while not sent:  # noqa: ASYNC110 - the progress is not told to anyone else
        await asyncio.sleep(0)
    release.set()
    assert await asking == b'{"content":[]}'
    assert sent == [b'{"progressToken":"p","progress":0}']


async def test_progress_for_a_view_that_is_gone_stops_nothing():
    async def notify(method: str, params: bytes) -> None:
        raise NotConnected("gone")

    server = ViewServer(SlowServer())
    server.start(notify, print)
    answer = server.forward("tools/call", b'{"name":"t","_meta":{"progressToken":"p"}}')
    assert await answer == b'{"content":[]}'


@pytest.mark.parametrize(
    ("value", "json"),
    [
        ({"a": 1}, b'{"a":1}'),
        (MappingProxyType({"a": 1}), b'{"a":1}'),
        (HostContext(theme="x", extra={"y": 1}), b'{"y":1,"theme":"x"}'),
    ],
)
def test_objects_are_structs_or_mappings(value: Any, json: bytes):
    assert object_json(value) == json


@pytest.mark.parametrize("value", [None, 7, "text", [1]])
def test_other_things_are_no_objects(value: Any):
    with pytest.raises(TypeError, match="Expected a struct or a mapping"):
        object_json(value)


def test_a_result_that_is_just_a_mapping_gets_content():
    assert result_json(MappingProxyType({"isError": True})) == b'{"content":[],"isError":true}'
