"""Pages without a browser: what a `Driver` reads and uses, and a renderer of Views with them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.host.shop import BareRenderer

Request = dict[str, Any]
Answer = dict[str, Any]


def node(role: str, name: str = "", ref: str = "", depth: int = 0, **more: Any) -> Answer:
    found: Answer = {"depth": depth, "role": role, "name": name, **more}
    return {**found, "ref": ref} if ref else found


class Page:
    """A counter: [b1] adds one, [b2] is disabled, [f3] is typed into."""

    def __init__(self) -> None:
        self.count = 0
        self.text = ""
        self.name = "Add"
        self.secret = False  # whether [f3] is a password field
        self.hide: Answer = {}  # the answer to `hide`
        self.problem = ""  # of every look
        self.requests: list[Request] = []
        self.asked = asyncio.Event()

    def nodes(self) -> list[Answer]:
        return [
            node("heading", "Counter", level=2),
            node("text", f"{self.count} so far"),
            node("button", self.name, "b1"),
            node("button", "Remove", "b2", states=["disabled"]),
            node("textbox", "Note", "f3", value=self.text, secret=self.secret),
        ]

    def ops(self, *ops: str) -> list[Request]:
        return [each for each in self.requests if each["op"] in ops]

    async def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        self.asked.set()
        return getattr(self, f"_{request['op']}")(request)

    def _look(self, request: Request) -> Answer:
        if self.problem:
            return {"problem": self.problem, "detail": "what the View likes"}
        nodes = self.nodes()
        if request["find"] is not None:
            nodes = [each for each in nodes if request["find"] in each["name"]]
        if request["under"] is not None and request["under"] not in {"b1", "f3"}:
            return {"problem": "gone", "detail": ""}
        return {"nodes": nodes, "actionable": 3, "left_out": 0, "private": 0, "offscreen": 0}

    def _target(self, request: Request) -> Answer:
        found = {each.get("ref"): each for each in self.nodes()}.get(request["ref"])
        if found is None:
            return {"problem": "unknown", "detail": ""}
        if "disabled" in found.get("states", ()):
            return {"problem": "disabled", "detail": ""}
        return {"target": {**found, "x": 1, "y": 2, "width": 3, "height": 4}}

    def _act(self, request: Request) -> Answer:
        found = self._target(request)
        if "problem" in found:
            return found
        if (found["target"]["role"], found["target"]["name"]) != (request["role"], request["name"]):
            return {"problem": "changed", "detail": ""}
        if request["action"] == "click":
            self.count += 1
        else:
            self.text += request["value"]
        secret = bool(found["target"].get("secret"))
        return {"done": True, "settled": True, "ignored": False, "secret": secret}

    def _hide(self, request: Request) -> Answer:
        return self.hide

    def _mark(self, request: Request) -> Answer:
        return {}


class PageRenderer(BareRenderer):
    """Views with a page and, unless `tools` are given, without tools.

    `answer` may be set to answer in the place of the pages.
    """

    def __init__(self, tools: list[Answer] | None = None) -> None:
        offers = {"tools": {"listChanged": True}} if tools else {}
        super().__init__({"tools/list": {"tools": tools or []}}, lambda v: v.be_ready(offers))
        self.pages_of: dict[str, Page] = {}
        self.answer: Callable[[Request], Awaitable[Answer]] | None = None

    async def drive(self, view_id: str, request: Request) -> Answer:
        page = self.pages_of.setdefault(view_id, Page())
        return await (self.answer or page.answer)(request)
