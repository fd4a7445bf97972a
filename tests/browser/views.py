"""Pages for tests: a View in plain JavaScript, and a Stage that shows it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from transom.host.views.bridge import Bridge
from transom.host.views.ui_resource import UIResource
from transom.web.local.headless import HeadlessRenderer
from transom.web.mounted_views import Violation

SCRIPT = """
const say = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
const tools = {};
const before = {};
const told = [];
addEventListener("message", async ({ data, source }) => {
  if (source !== parent) return;
  if (data.id === "init" && data.result) {
    globalThis.host = data.result;
    say({ method: "ui/notifications/initialized" });
  } else if (data.method === "tools/list") {
    const list = Object.entries(tools).map(([name, { description }]) =>
      ({ name, description, inputSchema: { type: "object" } }));
    say({ id: data.id, result: { tools: list } });
  } else if (data.method === "tools/call") {
    try {
      const value = await tools[data.params.name](data.params.arguments ?? {});
      const text = typeof value === "string" ? value : JSON.stringify(value ?? null);
      say({ id: data.id, result: { content: [{ type: "text", text }] } });
    } catch (error) {
      const content = [{ type: "text", text: String(error) }];
      say({ id: data.id, result: { content, isError: true } });
    }
  } else if (data.id !== undefined && data.method) {
    before[data.method]?.();
    say({ id: data.id, result: {} });
  } else if (data.method) {
    told.push(data);
  }
});
"""
START = """
say({ id: "init", method: "ui/initialize", params: {
  appInfo: { name: "test-view", version: "1.0" },
  appCapabilities: { tools: { listChanged: true } }, protocolVersion: "2026-01-26" } });
"""


BUSY = """
  setTimeout(() => { throw new Error("not what it needs"); });
  const post = parent.postMessage.bind(parent);
  parent.postMessage = (...given) => addEventListener("load", () => setTimeout(() => {
    for (const end = Date.now() + 3500; Date.now() < end; );
    parent.postMessage = post;
    post(...given);
  }, 100));
  tools.count = () => 1;
"""
"""Of a page that fails, and connects late all the same."""


def html(script: str = "", body: str = "<h1>A View</h1>") -> str:
    """A View whose `tools`, and what it does `before` it answers a request, `script` sets."""
    code = f"<script>{SCRIPT}{script}{START}</script>"
    return f"<!doctype html><html><body>{body}{code}</body></html>"


def page(view_id: str = "view-1", script: str = "", **more: Any) -> UIResource:
    """The page of a View."""
    source = more.pop("html", None) or html(script)
    return UIResource(
        view_id=view_id, server="tests", uri=f"ui://tests/{view_id}", html=source, **more
    )


class Shown:
    """A Stage in a browser without a window, and what it told."""

    def __init__(self, **options: Any) -> None:
        self.renderer = HeadlessRenderer(on_violation=self._violated, **options)
        self.violations: list[Violation] = []
        self._news = asyncio.Condition()
        self._telling: set[asyncio.Task[None]] = set()

    def _violated(self, violation: Violation) -> None:
        self.violations.append(violation)
        task = asyncio.ensure_future(self._tell())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def violation(self, view: str, blocked: str, times: int = 1) -> None:
        """Wait until that View was seen to be stopped from that, as often as this."""
        async with self._news:
            await self._news.wait_for(
                lambda: (
                    sum(v.view == view and blocked in v.blocked for v in self.violations) >= times
                )
            )

    @asynccontextmanager
    async def view(
        self, shown: UIResource, *, on_problem: Any = None, **options: Any
    ) -> AsyncIterator[Bridge]:
        """A View, initialised."""
        channel = await self.renderer.open(shown)
        info = {"name": "test-host", "version": "1"}
        bridge = Bridge(channel, host_info=info, context={"theme": "light"}, **options)
        bridge.on_problem = on_problem
        async with bridge:
            await bridge.initialized(timeout=30)
            yield bridge


@asynccontextmanager
async def stage(**options: Any) -> AsyncIterator[Shown]:
    """A Stage in Chromium."""
    shown = Shown(**options)
    async with shown.renderer:
        yield shown
