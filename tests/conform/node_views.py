"""Instruments without a browser: one Node process runs all of them (`instruments.mjs`)."""

import asyncio
import json
from itertools import count
from pathlib import Path
from typing import Any, Self

from tests.conform.mutations import Change, ChangedChannel, Mutated, Mutation
from transom.channel import Channel, memory_pair
from transom.errors import ChannelClosed
from transom.host.host import Host
from transom.host.views.ui_resource import UIResource
from transom.host.views.view import View

SCRIPT = Path(__file__).with_name("instruments.mjs")


class NodeViews:
    """The process."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._pipes: dict[int, Channel] = {}

    async def __aenter__(self) -> Self:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            "node", str(SCRIPT), stdin=pipe, stdout=pipe, limit=2**24
        )
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.kill()  # instruments may still wait for answers
        await self._process.wait()
        await self._reading

    def renderer(self, mutation: Mutation | None = None) -> "NodeRenderer":
        return NodeRenderer(self, mutation)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            said = json.loads(line)
            pipe = self._pipes.get(said["view"])
            if pipe is not None:
                try:
                    await pipe.send(json.dumps(said["message"]).encode())
                except ChannelClosed:
                    self._pipes.pop(said["view"], None)

    def write(self, **order: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")

    def open(self, html: str, change: Change) -> Channel:
        view = next(self._numbers)
        ours, theirs = memory_pair()
        self._pipes[view] = theirs
        self.write(view=view, html=html)

        async def relay() -> None:
            try:
                while True:
                    message = json.loads(await theirs.receive())
                    for each in change("host", message):
                        self.write(view=view, message=each)
            except ChannelClosed:
                self.write(view=view)

        task = asyncio.create_task(relay())
        return ChangedChannel(ours, change, task)


class NodeRenderer:
    """Runs the Views of one Host; they may be inline or fullscreen."""

    def __init__(self, views: NodeViews, mutation: Mutation | None) -> None:
        self._views, self._mutation = views, mutation

    async def open(self, resource: UIResource) -> Channel:
        mutation = self._mutation
        if mutation is not None and mutation.view and f"/{mutation.view}." not in resource.uri:
            mutation = None
        return self._views.open(resource.html, Mutated(mutation))

    def attach_host(self, host: Host) -> None:
        async def change_mode(_: View, mode: str) -> str:
            return mode

        host.on_request_display_mode = change_mode
