"""Two ports on the loopback addresses, given back when it is over."""

import asyncio
import socket

import pytest

from transom.errors import TransomError
from transom.web.local.stage_server import StageServer
from transom.web.stage import Stage


def port_of(origin: str) -> int:
    return int(origin.rpartition(":")[2])


async def answers(address: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(address, port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


def own_address() -> str | None:
    """An address of this machine that is not the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return probe.getsockname()[0]


async def test_the_stage_and_its_sandbox_are_two_origins_on_the_loopback_address() -> None:
    stage = Stage()
    async with StageServer(stage) as server:
        page, sandbox = port_of(stage.origin), port_of(stage.sandbox)
        assert stage.origin == f"http://127.0.0.1:{page}"
        assert stage.sandbox == f"http://*.localhost:{sandbox}"
        assert page != sandbox
        assert server.url == f"{stage.origin}/#token={stage.token}"
        assert await answers("127.0.0.1", page)
        assert await answers("127.0.0.1", sandbox)
        address = own_address()
        if address is not None:
            assert not await answers(address, page)
            assert not await answers(address, sandbox)
    assert not await answers("127.0.0.1", page)
    assert not await answers("127.0.0.1", sandbox)


async def test_nobody_else_can_answer_for_a_view_at_the_other_loopback_address() -> None:
    try:
        taken = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        return  # a machine with one loopback address
    taken.close()
    stage = Stage()
    async with StageServer(stage):
        with pytest.raises(OSError, match=r"in use"):
            socket.create_server(("::1", port_of(stage.sandbox)), family=socket.AF_INET6)


@pytest.mark.parametrize("which", [0, 1], ids=["page", "sandboxes"])
async def test_a_port_that_is_taken_is_an_error_that_says_so_and_leaves_nothing(which: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ports = (port, 0) if which == 0 else (0, port)
        with pytest.raises(TransomError, match=f"Port {port} of 127.0.0.1 cannot be used"):
            await StageServer(Stage(), ports=ports).__aenter__()


async def test_ports_can_be_chosen_and_are_free_again_afterwards() -> None:
    stage = Stage()
    async with StageServer(stage):
        ports = port_of(stage.origin), port_of(stage.sandbox)
    again = Stage()
    async with StageServer(again, ports=ports):
        assert (port_of(again.origin), port_of(again.sandbox)) == ports


async def test_tokens_are_not_to_be_guessed() -> None:
    tokens = {Stage().token for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) >= 32 for token in tokens)
