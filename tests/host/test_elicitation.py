"""A host that asks its user what a server wants to know, in both versions of MCP."""

import asyncio
from typing import Any

import pytest

from tests.connections.scripted_server import ScriptedServer
from transom import Host, Policy
from transom.connections import targets
from transom.errors import TransomError
from transom.host import ElicitRequest

TOOL = {"name": "register", "inputSchema": {"type": "object"}}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "Ada"},
        "age": {"type": "integer", "default": 30},
        "mail": {"type": "string"},
    },
}
QUESTION = {"message": "Who\u200b are you?", "requestedSchema": SCHEMA}
PAGE = {"message": "Pay here", "mode": "url", "url": "https://pay.example/1", "elicitationId": "1"}


class Asking(ScriptedServer):
    """Asks the user before it answers a call; keeps what it was answered."""

    def __init__(self, question: dict[str, Any], *, modern: bool) -> None:
        super().__init__(
            {"tools/list": {"tools": [TOOL]}, "tools/call": self._call},
            capabilities={"tools": {}},
            modern=modern,
        )
        self.modern = modern
        self.question = question
        self.answered: list[Any] = []

    async def _call(self, params: dict[str, Any]) -> Any:
        if not self.modern:
            await self.say({"id": "q", "method": "elicitation/create", "params": self.question})
            await self.until(self._replies)
            [reply] = self._replies()
            self.answered.append({key: reply[key] for key in reply.keys() & {"result", "error"}})
        elif "inputResponses" not in params:
            asked = {"method": "elicitation/create", "params": self.question}
            return {"resultType": "input_required", "inputRequests": {"q": asked}}
        else:
            self.answered.append({"result": params["inputResponses"]["q"]})
        return {"content": [{"type": "text", "text": "done"}]}

    def _replies(self) -> list[Any]:
        return [each for each in self.received if each.get("id") == "q" and "method" not in each]

    @property
    def declared(self) -> Any:
        """What the host said that it can be asked for."""
        if not self.modern:
            [hello] = [each for each in self.received if each.get("method") == "initialize"]
            return hello["params"]["capabilities"].get("elicitation")
        [hello, *_] = [each for each in self.received if each.get("method") == "server/discover"]
        meta = hello["params"]["_meta"]
        return meta["io.modelcontextprotocol/clientCapabilities"].get("elicitation")


@pytest.fixture(params=[True, False], ids=["2026-07-28", "2025-11-25"])
def modern(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(targets, "way_to", lambda server: server.connect)
    monkeypatch.setattr("transom.host.server_tools.connected_server", lambda _: None)
    return request.param


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        (
            QUESTION,
            {"name": "Bo", "mail": "b@x"},
            {"action": "accept", "content": {"name": "Bo", "age": 30, "mail": "b@x"}},
        ),
        (QUESTION, True, {"action": "accept", "content": {"name": "Ada", "age": 30}}),
        (QUESTION, False, {"action": "decline"}),
        (QUESTION, None, {"action": "cancel"}),
        (PAGE, True, {"action": "accept"}),
        (PAGE, False, {"action": "decline"}),
    ],
)
async def test_what_a_server_asks_is_answered_by_the_hosts_handler(
    modern: bool, question: dict[str, Any], answer: object, expected: dict[str, Any]
) -> None:
    server = Asking(question, modern=modern)
    asked: list[tuple[str, ElicitRequest]] = []
    async with Host(policy=Policy.trusting()) as host:

        @host.on_elicit
        async def _(name: str, request: ElicitRequest) -> object:
            asked.append((name, request))
            return answer

        await host.add_server("shop", server)
        assert (await host.call_tool("register", {})).text == "done"
        assert server.declared == {"form": {}, "url": {}}
    assert server.answered == [{"result": expected}]
    [(name, request)] = asked
    assert (name, request.mode, request.url) == (
        "shop",
        question.get("mode", "form"),
        question.get("url"),
    )
    assert request.message == question["message"].replace("\u200b", "")
    assert request.requested_schema == question.get("requestedSchema", {})


async def test_without_a_handler_nobody_can_be_asked_and_servers_know(modern: bool) -> None:
    server = Asking(QUESTION, modern=modern)
    async with Host(policy=Policy.trusting()) as host:
        await host.add_server("shop", server)
        assert server.declared is None
        if modern:
            with pytest.raises(TransomError, match="wants input from the user"):
                await host.call_tool("register", {})
        else:
            await host.call_tool("register", {})
            assert server.answered[0]["error"]["code"] == -32601


@pytest.mark.parametrize(
    "question", [{"message": 5}, {"message": "x" * 300_000}, {"mode": "telepathy"}]
)
async def test_a_question_that_cannot_be_asked_is_an_error(modern: bool, question: Any) -> None:
    server = Asking(question, modern=modern)
    async with Host(policy=Policy.trusting()) as host:
        host.on_elicit = dict
        await host.add_server("shop", server)
        if modern:
            with pytest.raises(TransomError):
                await host.call_tool("register", {})
        else:
            await host.call_tool("register", {})
            assert server.answered[0]["error"]["code"] == -32602


async def test_what_goes_wrong_in_the_handler_is_the_hosts_to_know(modern: bool) -> None:
    server = Asking(QUESTION, modern=modern)
    errors: asyncio.Queue[BaseException] = asyncio.Queue()
    async with Host(policy=Policy.trusting()) as host:
        host.on_error = errors.put_nowait

        @host.on_elicit
        def _() -> None:
            raise RuntimeError("a secret")

        await host.add_server("shop", server)
        try:
            await host.call_tool("register", {})
        except TransomError as error:
            text = str(error)
        else:
            text = str(server.answered)
        assert "could not be asked" in text
        assert "a secret" not in text
        assert str(await errors.get()) == "a secret"
