"""Debian's Firefox without a window, driven by WebDriver BiDi: Playwright needs its own build."""

import asyncio
import itertools
import json
import re
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.processes import ended

WITHIN = 90.0  # seconds; a busy machine takes long to start a browser

# Buttons may be in the shadow of an element.
_FIND_BUTTON = """(() => {
  const find = (root) => {
    for (const each of root.querySelectorAll("*")) {
      const box = each.getBoundingClientRect();
      if (each.localName === "button" && each.innerText.trim() === NAME && box.width > 0)
        return `${Math.round(box.x + box.width / 2)} ${Math.round(box.y + box.height / 2)}`;
      const inside = each.shadowRoot === null ? "" : find(each.shadowRoot);
      if (inside) return inside;
    }
    return "";
  };
  return find(document);
})()"""


class Firefox:
    """One browser with one tab."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._tab = ""

    async def read(self) -> None:
        """Hand over the answers."""
        async for text in self._socket:
            message = json.loads(text)
            if (waiting := self._waiting.pop(message.get("id"), None)) is not None:
                waiting.set_result(message)

    async def start(self) -> None:
        await self._do("session.new", capabilities={})
        self._tab = (await self._do("browsingContext.create", type="tab"))["context"]

    async def _do(self, method: str, **params: Any) -> Any:
        id = next(self._ids)
        answer = self._waiting[id] = asyncio.get_running_loop().create_future()
        await self._socket.send(json.dumps({"id": id, "method": method, "params": params}))
        async with asyncio.timeout(WITHIN):
            message = await answer
        assert message["type"] == "success", message
        return message["result"]

    async def open_page(self, url: str) -> None:
        """For a `BrowserRenderer`."""
        await self._do("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    async def frames(self) -> list[str]:
        """The frames of the page's last View, each inside the one before."""
        [frame] = (await self._do("browsingContext.getTree", root=self._tab))["contexts"]
        found: list[str] = []
        while frame["children"]:
            frame = max(frame["children"], key=lambda each: len(each["children"]))
            found.append(frame["context"])
        return found

    async def run(self, script: str, frame: str = "") -> Any:
        """What an expression is in the page, or in a frame of it."""
        target = {"context": frame or self._tab}
        given = {"expression": script, "target": target, "awaitPromise": True}
        answer = await self._do("script.evaluate", **given)
        assert answer["type"] == "success", answer
        return answer["result"].get("value")

    async def type(self, text: str) -> None:
        """Type as a user does, wherever the focus is."""
        keys = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        keyboard = {"type": "key", "id": "keyboard", "actions": keys}
        await self._do("input.performActions", context=self._tab, actions=[keyboard])

    async def press(self, name: str) -> None:
        """Press a button as a user does; nothing happens if it is not there."""
        where = await self.run(_FIND_BUTTON.replace("NAME", json.dumps(name)))
        if not where:
            return
        x, y = map(int, where.split())
        moves = [
            {"type": "pointerMove", "x": x, "y": y},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        mouse = {"type": "pointer", "id": "mouse", "actions": moves}
        await self._do("input.performActions", context=self._tab, actions=[mouse])


@asynccontextmanager
async def firefox() -> AsyncGenerator[Firefox]:
    with tempfile.TemporaryDirectory(
        prefix="transom-firefox-", ignore_cleanup_errors=True
    ) as profile:
        options = ["--headless", "--no-remote", "--profile", profile]
        try:
            process = await asyncio.create_subprocess_exec(
                *("firefox-esr", *options, "--remote-debugging-port", "0", "about:blank"),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
        except FileNotFoundError:
            raise RuntimeError("There is no Firefox: run scripts/setup firefox") from None
        errors = process.stderr
        assert errors is not None
        try:
            async with asyncio.timeout(WITHIN):
                while not (
                    found := re.search(rb"listening on (ws://\S+)", line := await errors.readline())
                ):
                    assert line, "Firefox ended"
            async with connect(f"{found[1].decode()}/session", max_size=None) as socket:
                browser = Firefox(socket)
                tasks = asyncio.create_task(browser.read()), asyncio.create_task(errors.read())
                await browser.start()
                yield browser
                tasks[0].cancel()
        finally:
            process.terminate()
            await ended(process)
