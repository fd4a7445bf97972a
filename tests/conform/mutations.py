"""Hosts and Views that are broken in one way each: what happens to messages is data.

A mutation is a table in broken_hosts.toml or broken_views.toml:

    expect      the requirements under which the kit must report it, and no others
    sender      whose messages are changed: `host` or `view`
    method      which: the method, or that of the request that an answer is for
    answer      true: answers to such requests, not the requests themselves
    when        only where the (request's) params have these members
    view        only this View (of several): main, declared …; conform-1, conform-2 (a bare host)
    do          drop | drop-all | twice | set | remove | hold | inject | prepend | replace;
                drop-all: the message, and all that the sender sends after it
    path, value     for set and remove: where in the message; set changes what is there
    until       hold: until a message with this method came from the same sender
    message     inject, prepend: a message of the same sender that comes after it, or before
    find, with  replace: text in the message
    waits       true: what is missing is noticed only after a while, as with drop
"""

import asyncio
import copy
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec

from transom.channel import Channel
from transom.host.views.renderers import Renderer
from transom.host.views.ui_resource import UIResource

FOLDER = Path(__file__).parent
Change = Callable[[str, Any], list[Any]]
"""What becomes of a message: who sent it (`host` or `view`), and the message."""


class Mutation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"by": "with"}):
    name: str
    expect: list[str]
    do: str
    sender: str = "host"
    method: str = ""
    answer: bool = False
    when: dict[str, Any] = {}
    view: str = ""
    path: str = ""
    value: Any = None
    create: bool = False
    until: str = ""
    message: dict[str, Any] = {}
    find: str = ""
    by: str = ""
    waits: bool = False


def mutations(file: str) -> list[Mutation]:
    tables = tomllib.loads((FOLDER / file).read_text("utf-8"))
    return [msgspec.convert({"name": name, **each}, Mutation) for name, each in tables.items()]


class Mutated:
    """The messages of one View, on their way, with a mutation."""

    def __init__(self, mutation: Mutation | None) -> None:
        self._mutation = mutation
        self._requests: dict[tuple[str, str], dict[str, Any]] = {}
        self._held: list[Any] = []
        self._ended = False

    def __call__(self, sender: str, sent: Any) -> list[Any]:
        """What comes instead of a message."""
        if not isinstance(sent, dict):
            return [sent]
        message = cast("dict[str, Any]", sent)
        if "method" in message and "id" in message:
            self._requests[sender, json.dumps(message["id"])] = message
        mutation = self._mutation
        if mutation is None or mutation.sender != sender:
            return [message]
        if mutation.do == "hold" and message.get("method") == mutation.until:
            held, self._held = self._held, []
            return [message, *held]
        if self._ended:
            return []
        return self._change(mutation, message) if self._is_meant(mutation, message) else [message]

    def _is_meant(self, mutation: Mutation, message: dict[str, Any]) -> bool:
        request = message
        if mutation.answer:
            other = "view" if mutation.sender == "host" else "host"
            request = self._requests.get((other, json.dumps(message.get("id"))), {})
            if "method" in message:
                return False
        elif "method" not in message:
            return False
        params = request.get("params", {})
        return request.get("method") == mutation.method and all(
            params.get(key) == value for key, value in mutation.when.items()
        )

    def _change(self, mutation: Mutation, message: dict[str, Any]) -> list[Any]:
        match mutation.do:
            case "drop" | "drop-all":
                self._ended = mutation.do == "drop-all"
                return []
            case "twice":
                return [message, message]
            case "hold":
                self._held.append(message)
                return []
            case "inject":
                return [message, mutation.message]
            case "prepend":
                return [mutation.message, message]
            case "replace":
                return [json.loads(json.dumps(message).replace(mutation.find, mutation.by))]
            case _:
                return [_edited(mutation, message)]


def _edited(mutation: Mutation, message: dict[str, Any]) -> dict[str, Any]:
    changed = copy.deepcopy(message)
    at: Any = changed
    *way, last = [int(part) if part.isdecimal() else part for part in mutation.path.split(".")]
    for part in way:
        if isinstance(part, str) and part not in at:
            return message
        at = at[part]
    if isinstance(last, str) and last not in at and not mutation.create:
        return message
    if mutation.do == "remove":
        del at[last]
    else:
        at[last] = mutation.value
    return changed


class ChangedChannel:
    """The host's end of a View's channel; what the View sends is changed on its way."""

    def __init__(
        self, channel: Channel, change: Change, relay: asyncio.Task[None] | None = None
    ) -> None:
        self._channel, self._change, self._relay = channel, change, relay
        self._waiting: list[bytes] = []

    async def send(self, data: bytes) -> None:
        if self._relay is None:  # otherwise that is where the host's messages are changed
            for message in self._change("host", json.loads(data)):
                await self._channel.send(json.dumps(message).encode())
        else:
            await self._channel.send(data)

    async def receive(self) -> bytes:
        while not self._waiting:
            message = json.loads(await self._channel.receive())
            self._waiting = [json.dumps(each).encode() for each in self._change("view", message)]
        return self._waiting.pop(0)

    async def aclose(self) -> None:
        await self._channel.aclose()
        if self._relay is not None:
            await self._relay


class MutatedRenderer:
    """Opens Views with a mutation, in another renderer."""

    def __init__(self, renderer: Renderer, mutation: Mutation) -> None:
        self._renderer, self._mutation = renderer, mutation

    async def open(self, resource: UIResource) -> Channel:
        meant = self._mutation.view in ("", resource.view_id)
        channel = await self._renderer.open(resource)
        return ChangedChannel(channel, Mutated(self._mutation if meant else None))
