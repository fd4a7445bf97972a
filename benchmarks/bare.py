"""A measure: the same tool call in a bare asyncio loop with msgspec, and nothing else.

JSON both ways, input and output read into their types, an id to find the caller by, and one turn of
the loop in each direction. No cancellation, no limits, no timeout, no errors, no order.
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from benchmarks.ours import Echo


class _Arguments(msgspec.Struct):
    text: str
    count: int


class _Params(msgspec.Struct):
    name: str
    arguments: _Arguments


class _Request(msgspec.Struct):
    id: int
    method: str
    params: _Params
    jsonrpc: str = "2.0"


class _Block(msgspec.Struct):
    text: str
    type: str = "text"


class _Result(msgspec.Struct, rename="camel"):
    content: list[_Block]
    structured_content: Echo


class _Response(msgspec.Struct):
    id: int
    result: _Result
    jsonrpc: str = "2.0"


def caller() -> Callable[[], Awaitable[object]]:
    """A function that makes one call."""
    loop = asyncio.get_running_loop()
    encode = msgspec.json.Encoder().encode
    read_request = msgspec.json.Decoder(_Request).decode
    read_response = msgspec.json.Decoder(_Response).decode
    waiting: dict[int, asyncio.Future[_Result]] = {}
    last = 0

    def serve(data: bytes) -> None:
        request = read_request(data)
        given = request.params.arguments
        echo = Echo(given.text, given.count)
        result = _Result([_Block(encode(echo).decode())], echo)
        loop.call_soon(deliver, encode(_Response(request.id, result)))

    def deliver(data: bytes) -> None:
        response = read_response(data)
        waiting.pop(response.id).set_result(response.result)

    async def call() -> _Result:
        nonlocal last
        last += 1
        answer = waiting[last] = loop.create_future()
        params = _Params("echo", _Arguments("hello", 3))
        loop.call_soon(serve, encode(_Request(last, "tools/call", params)))
        return await answer

    return call
