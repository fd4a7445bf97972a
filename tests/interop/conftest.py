"""The official SDK as a fixture; see node_peer.py for what can be done with it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.interop import node_peer


@pytest.fixture(scope="session")
def node_process() -> Iterator[str]:
    with node_peer.node_process() as path:
        yield path


@pytest.fixture
async def start_node(node_process: str) -> AsyncIterator[node_peer.StartNode]:
    """`await start_node("view", sdk="1")`: a peer that ends when the test ends."""
    async with AsyncExitStack() as stack:

        async def start(kind: str, **options: Any) -> node_peer.NodePeer:
            peer = await node_peer.start(node_process, kind, **options)
            stack.push_async_callback(peer.aclose)
            return peer

        yield start
