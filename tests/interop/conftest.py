"""The official SDK as a fixture; see node_peer.py for what can be done with it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.interop import node_peer


@pytest.fixture
async def start_node() -> AsyncIterator[node_peer.StartNode]:
    """`await start_node("view.mjs", "--sdk", "1")`: a script that ends when the test ends."""
    async with AsyncExitStack() as stack:

        async def start(script: str, *options: str, **ends: Any) -> node_peer.NodePeer:
            peer = await node_peer.start(script, *options, **ends)
            stack.push_async_callback(peer.aclose)
            return peer

        yield start
