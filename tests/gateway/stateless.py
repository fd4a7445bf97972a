"""What clients of 2026-07-28 and of the handshake before it do with `stateless_server`."""

import json
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import (
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    PromptReference,
    Root,
    TextContent,
)

from tests.gateway.raw_client import PYTHON, ROOT, RawClient

COMMAND = [PYTHON, "-m", "tests.gateway.stateless_server"]
_META = "io.modelcontextprotocol/"
SUBSCRIPTION = f"{_META}subscriptionId"
ENVELOPE = {
    f"{_META}protocolVersion": "2026-07-28",
    f"{_META}clientInfo": {"name": "raw", "version": "1"},
    f"{_META}clientCapabilities": {
        "elicitation": {"form": {}},
        "sampling": {},
        "roots": {},
        "extensions": {"x/odd": {"deep": [1, 2.5]}},
    },
}


def stamped(params: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    """Params as a 2026-07-28 client sends them."""
    return {**(params or {}), "_meta": {**ENVELOPE, **meta}}


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


ASKED: list[tuple[str, dict[str, Any]]] = [
    ("server/discover", stamped()),
    ("tools/list", stamped()),
    ("tools/list", stamped({"cursor": "nowhere"})),
    ("resources/list", stamped()),
    ("resources/templates/list", stamped()),
    ("resources/read", stamped({"uri": "test://clock"})),
    ("resources/read", stamped({"uri": "test://items/7"})),
    ("resources/read", stamped({"uri": "test://nothing"})),
    ("prompts/list", stamped()),
    ("prompts/get", stamped({"name": "ask_about", "arguments": {"subject": "x"}})),
    ("prompts/get", stamped({"name": "nothing"})),
    ("completion/complete", stamped({"ref": {"type": "ref/prompt", "name": "ask_about"},
                                     "argument": {"name": "subject", "value": "v"}})),
    ("tools/call", stamped(call("add", a=1, b=2.50))),
    ("tools/call", stamped(call("add", a="one"))),
    ("tools/call", stamped(call("fail"))),
    ("tools/call", stamped(call("nothing"))),
    ("tools/call", stamped(call("tagged"), **{"x/a": [1, 1.0, "ü"], "other": None})),
    ("tools/call", stamped(call("work", steps=2))),
    ("tools/call", stamped(call("work", steps=2), progressToken=5)),
    ("tools/call", stamped(call("work", steps=2), **{f"{_META}logLevel": "info"})),
    ("tools/call", stamped(call("work", steps=1), **{f"{_META}logLevel": "debug"})),
    ("tools/call", stamped(call("work", steps=1), **{f"{_META}logLevel": "loud"})),
    ("tools/call", stamped(call("known"))),
    ("tools/call", {**call("add", a=1, b=2), "_meta": {f"{_META}protocolVersion": "2099-01-01"}}),
    ("tools/call", {**call("add", a=1, b=2), "_meta": {f"{_META}protocolVersion": 5}}),
    ("logging/setLevel", stamped({"level": "debug"})),
    ("resources/subscribe", stamped({"uri": "test://clock"})),
    ("ping", stamped()),
    ("no/such-method", stamped()),
]  # fmt: skip


def plain(message: Any) -> str:
    return json.dumps(message, sort_keys=True, default=repr, ensure_ascii=False)


class RawScript:
    """The raw client's part: everything on the wire, as it is there."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.heard: dict[str, str] = {}
        self._ids = iter(range(1, 1000))

    async def ask(self, label: str, method: str, params: Any) -> dict[str, Any]:
        before = len(self.client.notes)
        answer = await self.client.ask(next(self._ids), method, params)
        kept = {key: answer[key] for key in answer if key != "id"}
        if "requestState" in kept.get("result", {}):
            kept["result"] = {**kept["result"], "requestState": "SEALED"}
        self.heard[label] = plain([kept, self.client.notes[before:]])
        return answer

    async def run(self) -> dict[str, str]:
        for count, (method, params) in enumerate(ASKED):
            await self.ask(f"{count}: {method} {json.dumps(params)}", method, params)
        await self.inputs()
        await self.cancelling()
        await self.listening()
        self.heard["stray"] = plain(self.client.stray)
        self.heard["requests"] = plain(self.client.asked)
        return self.heard

    async def inputs(self) -> None:
        """Tools that want input first: asked by an answer, answered with the next call."""
        given = {
            "greet": {"action": "accept", "content": {"name": "Ada"}},
            "think": {"role": "assistant", "model": "none",
                      "content": {"type": "text", "text": "something"}},
            "look": {"roots": [{"uri": "file:///srv"}]},
        }  # fmt: skip
        for name, response in given.items():
            wanted = (await self.ask(f"{name}: asks", "tools/call", stamped(call(name))))["result"]
            assert wanted["resultType"] == "input_required"
            again = {
                **call(name),
                "inputResponses": dict.fromkeys(wanted["inputRequests"], response),
                "requestState": wanted["requestState"],
            }
            await self.ask(f"{name}: answered", "tools/call", stamped(again))
            forged = {**again, "requestState": "v1.forged"}
            await self.ask(f"{name}: forged", "tools/call", stamped(forged))
            no = {key: {"action": "decline"} for key in wanted["inputRequests"]}
            declined = {**again, "inputResponses": no}
            await self.ask(f"{name}: declined", "tools/call", stamped(declined))

    async def cancelling(self) -> None:
        id = next(self._ids)
        params = stamped(call("hang"), progressToken="hanging")
        cancelled = self.client.begin(id, "tools/call", params)
        await self.client.until(
            lambda: any(
                note["progressToken"] == "hanging"
                for note in self.client.noted("notifications/progress")
            )
        )
        self.client.tell("notifications/cancelled", {"requestId": id})
        read = stamped({"uri": "test://cancelled"})
        while True:
            answer = await self.client.ask(next(self._ids), "resources/read", read)
            if answer["result"]["contents"][0]["text"] == "hang":
                break
        self.heard["cancelled"] = f"answered: {cancelled.done()}"

    async def listening(self) -> None:
        """Two streams, each with what it asked for; one that is refused; one that ends."""
        begun = len(self.client.notes)
        wanted = [
            {"toolsListChanged": True, "resourceSubscriptions": ["test://clock"]},
            {"promptsListChanged": True, "resourcesListChanged": True},
        ]
        streams: list[int] = []
        for each in wanted:
            streams.append(next(self._ids))
            self.client.begin(streams[-1], "subscriptions/listen", stamped({"notifications": each}))
        acknowledged = "notifications/subscriptions/acknowledged"
        await self.client.until(lambda: len(self.client.noted(acknowledged)) == 2)
        await self.ask("listen: refused", "subscriptions/listen", stamped({"notifications": 5}))
        await self.client.ask(next(self._ids), "tools/call", stamped(call("grow")))
        await self.client.until(lambda: len(self.client.notes) - begun >= 6)
        self.client.tell("notifications/cancelled", {"requestId": streams[1]})
        await self.client.ask(next(self._ids), "tools/call", stamped(call("add", a=1, b=1)))
        told = "notifications/tools/list_changed"
        before = len(self.client.noted(told))
        await self.client.ask(next(self._ids), "tools/call", stamped(call("grow")))
        await self.client.until(lambda: len(self.client.noted(told)) > before)
        await self.client.until(lambda: len(self.client.notes) - begun >= 8)
        self.heard["streams"] = "\n".join(sorted(map(plain, self.client.notes[begun:])))


# --- the SDK's own client --------------------------------------------------------------------


def _dump(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def sdk_script(target: list[str] | str, mode: str) -> dict[str, Any]:
    """What `mcp.Client` gets in this mode, from a command or a URL."""
    heard: dict[str, Any] = {}
    logs: list[Any] = []

    async def elicit(_: Any, params: Any) -> ElicitResult:
        heard["elicitation"] = _dump(params)
        return ElicitResult(action="accept", content={"name": "Ada"})

    async def sample(_: Any, params: Any) -> CreateMessageResult:
        heard["sampling"] = _dump(params)
        content = TextContent(text="something")
        return CreateMessageResult(role="assistant", model="none", content=content)

    async def roots(_: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri="file:///srv")])

    async def log(params: Any) -> None:
        logs.append(_dump(params))

    where: Any = target
    if isinstance(target, list):
        where = StdioServerParameters(command=target[0], args=target[1:], cwd=ROOT)
    async with Client(
        where,
        mode=mode,
        log_level="info" if mode == "auto" else None,
        elicitation_callback=elicit,
        sampling_callback=sample,
        list_roots_callback=roots,
        logging_callback=log,
    ) as client:
        progress: list[Any] = []

        async def progressed(*told: Any) -> None:
            progress.append(told)

        heard["version"] = client.protocol_version
        heard["server"] = _dump(client.server_info)
        heard["capabilities"] = _dump(client.server_capabilities)
        heard["instructions"] = client.instructions
        heard["tools"] = _dump(await client.list_tools())
        heard["resources"] = _dump(await client.list_resources())
        heard["templates"] = _dump(await client.list_resource_templates())
        heard["prompts"] = _dump(await client.list_prompts())
        heard["prompt"] = _dump(await client.get_prompt("ask_about", {"subject": "x"}))
        heard["read"] = _dump(await client.read_resource("test://clock"))
        ref = PromptReference(name="ask_about")
        heard["complete"] = _dump(await client.complete(ref, {"name": "subject", "value": "v"}))
        for name in ("greet", "think", "look", "tagged", "fail", "known"):
            heard[f"call {name}"] = _dump(await client.call_tool(name, {}))
        heard["work"] = _dump(
            await client.call_tool("work", {"steps": 3}, progress_callback=progressed)
        )
        heard["progress"] = progress
        if mode == "auto":
            async with client.listen(tools_list_changed=True) as events:
                heard["honored"] = _dump(events.honored)
                await client.call_tool("grow", {})
                async for event in events:
                    heard["event"] = repr(event)
                    break
            heard["grown"] = [tool.name for tool in (await client.list_tools()).tools]
        with anyio.move_on_after(0.2) as scope:
            await client.call_tool("hang", {})
        assert scope.cancelled_caught
        while (await client.read_resource("test://cancelled")).contents[0].text != "hang":  # type: ignore[union-attr]
            pass
        heard["logs"] = logs
    return heard
