"""Official Views, as they are, come back where they were: their storage is keyed by `viewUUID`."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import FrameLocator, Page, Route, expect

from tests.browser.hosting import User, lasting_browser
from tests.gateway.raw_client import GATEWAY, PACKAGES, ROOT, RawClient
from tests.pdf import pdf_of

pytestmark = pytest.mark.processes

# Stands for the library that the map loads from the network: a camera, and things that do nothing.
CESIUM = """
const any = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => 0 : name === "then" ? undefined : any),
  set: () => true, apply: () => any, construct: () => any,
});
const radians = (degrees) => (degrees * Math.PI) / 180;
const moved = [];
const camera = {
  positionCartographic: { longitude: 0, latitude: 0, height: 1 }, heading: 0, pitch: 0, roll: 0,
  moveEnd: { addEventListener: (heard) => moved.push(heard) },
  computeViewRectangle: () => undefined,
  setView({ destination }) {
    this.positionCartographic = destination;
    for (const heard of moved) heard();
  },
  flyTo({ destination, complete }) {
    if ("longitude" in destination) this.setView({ destination });
    complete?.();
  },
};
const tile = { tilesLoaded: true, tileLoadProgressEvent: any };
const scene = { globe: tile, requestRender() {}, postProcessStages: any };
globalThis.Cesium = {
  Ion: {}, Camera: {}, Color: {}, Credit: any, UrlTemplateImageryProvider: any,
  Math: { toDegrees: (angle) => (angle * 180) / Math.PI, toRadians: radians },
  Rectangle: { fromDegrees: () => ({}) },
  Cartesian3: { fromDegrees: (longitude, latitude, height) =>
    ({ longitude: radians(longitude), latitude: radians(latitude), height }) },
  Viewer: class {
    camera = camera; scene = scene; imageryLayers = any;
    canvas = document.createElement("canvas");
    render() {}
  },
};
"""

ROME = {"west": 12.4, "south": 41.8, "east": 12.6, "north": 42.0, "duration": 0}


class Run:
    """One run of the gateway, and a user at its page."""

    def __init__(self, client: RawClient, user: User) -> None:
        self._client = client
        self._user = user
        self._calls = 0

    @property
    def page(self) -> Page:
        return self._user.page

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        self._calls += 1
        params = {"name": name, "arguments": arguments}
        answer = await self._client.ask(self._calls, "tools/call", params)
        assert answer["result"].get("isError") is not True, answer
        return answer["result"]

    async def open(self, name: str, **arguments: Any) -> None:
        """Call the tool, and open the page by the address that the gateway prints."""
        calling = asyncio.create_task(self.call(name, **arguments))
        stderr = self._client.process.stderr
        assert stderr is not None
        while b"http://127" not in (line := await stderr.readline()):
            assert line, "the gateway ended"
        await self._user.open_page("http" + line.decode().partition("http")[2].strip())
        await calling

    async def place(self, view_id: str) -> tuple[float, float]:
        """Where the map is."""
        found = (await self.call(f"{view_id}__get-current-view"))["structuredContent"]["camera"]
        return round(float(found["longitude"]), 3), round(float(found["latitude"]), 3)

    def view(self, view_id: str) -> FrameLocator:
        return self._user.in_view(f"{view_id}~1")  # as the page calls it

    async def is_at(self, view_id: str, place: tuple[float, float]) -> None:
        """Wait until the map is there; it is where its input says first."""
        await self.page.locator(f"[id='view-{view_id}~1'][data-state=live]").wait_for()
        while await self.place(view_id) != place:  # noqa: ASYNC110 - it does not say when
            await asyncio.sleep(0.1)

    async def reopen(self, text: str) -> None:
        card = self.page.locator("transom-view[data-state=closed]").filter(has_text=text)
        await card.get_by_role("button", name="Reopen").click()


@asynccontextmanager
async def run(folder: Path) -> AsyncIterator[Run]:
    """A gateway for both servers, and a browser that keeps what pages store."""

    async def library(route: Route) -> None:
        script = route.request.url.endswith("Cesium.js")
        await route.fulfill(
            body=CESIUM if script else "",
            content_type="text/javascript" if script else "text/css",
            headers={"Access-Control-Allow-Origin": "*"},
        )

    async with lasting_browser(folder / "profile") as user:
        await user.context.route("https://cesium.com/**", library)
        process = await asyncio.create_subprocess_exec(
            *[*GATEWAY, "--config", str(folder / "servers.json")],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=64 * 1024 * 1024,
            cwd=ROOT,
            env={**os.environ, "XDG_STATE_HOME": str(folder / "state")},
        )
        client = RawClient(process, {"roots/list": {"result": {"roots": []}}})
        try:
            info = {"name": "tests", "version": "1"}
            given = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
            await client.ask("hello", "initialize", given)
            client.tell("notifications/initialized")
            await client.ask("tools", "tools/list")
            yield Run(client, user)
        finally:
            await client.aclose()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A configuration with the two servers, and a document."""
    document = tmp_path / "book.pdf"
    document.write_bytes(pdf_of([""] * 9))
    script = "dist/index.js"
    servers = {
        "pdf": ["node", str(PACKAGES / "server-pdf" / script), "--stdio", str(document)],
        "map": ["node", str(PACKAGES / "server-map" / script), "--stdio"],
    }
    entries = {name: {"command": words[0], "args": words[1:]} for name, words in servers.items()}
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": entries}))
    return tmp_path


@pytest.mark.nightly
@pytest.mark.timeout(480)
async def test_official_views_are_where_they_were_after_a_reload_and_a_new_browser_and_gateway(
    folder: Path,
) -> None:
    async with run(folder) as first:
        await first.open("show-map")
        await first.call("display_pdf", url=f"file://{folder / 'book.pdf'}")
        await first.call("map-1__navigate-to", **ROME)
        rome = await first.place("map-1")
        assert rome == (12.5, 41.9)
        number = first.view("pdf-1").locator("#page-input")
        await expect(first.view("pdf-1").locator("#total-pages")).to_contain_text(
            "9", timeout=60_000
        )
        await number.fill("7")
        await number.press("Enter")
        # What they store is in the browser's storage now: the map waits half a second to.
        for view_id in ("map-1", "pdf-1"):
            stored = "(body) => Object.keys(localStorage).length"
            shown = first.view(view_id).locator("body")
            while not await shown.evaluate(stored):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.05)
        await first.page.reload()
        await expect(first.view("pdf-1").locator("#page-input")).to_have_value("7", timeout=60_000)
        await first.is_at("map-1", rome)
    async with run(folder) as second:
        await second.open("show-map")
        assert await second.place("map-1") != rome
        await second.reopen("show-map")
        await second.is_at("map-2", rome)
