"""A server that asks the user before it answers a call, in both versions of MCP."""

from typing import Any

import pytest

from tests.connections.scripted_server import ScriptedServer
from transom.connections import targets

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
            number = len(self.answered)
            asked = {"method": "elicitation/create", "params": self.question}
            await self.say({"id": f"q{number}", **asked})
            await self.until(lambda: len(self._replies()) > number)
            reply = self._replies()[number]
            self.answered.append({key: reply[key] for key in reply.keys() & {"result", "error"}})
        elif "inputResponses" not in params:
            asked = {"method": "elicitation/create", "params": self.question}
            return {"resultType": "input_required", "inputRequests": {"q": asked}}
        else:
            self.answered.append({"result": params["inputResponses"]["q"]})
        return {"content": [{"type": "text", "text": "done"}]}

    def _replies(self) -> list[Any]:
        return [each for each in self.received if str(each.get("id")).startswith("q")]

    @property
    def declared(self) -> Any:
        """What the host said that it can be asked for."""
        if not self.modern:
            [hello] = [each for each in self.received if each.get("method") == "initialize"]
            return hello["params"]["capabilities"].get("elicitation")
        [hello, *_] = [each for each in self.received if each.get("method") == "server/discover"]
        meta = hello["params"]["_meta"]
        return meta["io.modelcontextprotocol/clientCapabilities"].get("elicitation")


def reach_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `add_server` take such a server."""
    monkeypatch.setattr(targets, "way_to", lambda server: server.connect)
    monkeypatch.setattr("transom.host.server_tools.connected_server", lambda _: None)
