"""Views of the example servers that a document speaks of, as a model has them."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Route

from tests.contract.model import HostModel, Model, Through, model_of, server_of
from tests.gateway.raw_client import PACKAGES
from transom.types import TextContent, ToolResult
from transom.web.local.headless import HeadlessRenderer

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.processes]

host_by_night = pytest.mark.parametrize(
    "through", ["gateway", pytest.param("Host", marks=pytest.mark.nightly)]
)

# As much of a library for globes as a View needs to believe in it.
CESIUM = """
  const known = {
    Math: { toDegrees: (angle) => angle, toRadians: (angle) => angle },
    positionCartographic: { latitude: 52.5, longitude: 13.4, height: 1000 },
    computeViewRectangle: () => undefined,
    flyTo: ({ complete }) => { complete?.(); },
  };
  const anything = new Proxy(function () {}, {
    get: (_, name) => known[name] ?? (name === "then" ? undefined : anything),
    set: () => true,
    apply: () => anything,
    construct: () => anything,
  });
  globalThis.Cesium = anything;
"""


EMPTY = """<!doctype html>
<script type="module">
  import { App } from "transom";
  await new App({ name: "empty", version: "1" }).connect();
</script>
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[HeadlessRenderer]:
    async with HeadlessRenderer() as made:
        async with model_of("Host", server_of(EMPTY), made.seat()) as it:
            await it.call_any("open_sample")  # from now on there is a page

        async def answer(route: Route) -> None:
            if route.request.url.endswith("/Cesium.js"):
                await route.fulfill(body=CESIUM, content_type="text/javascript")
            else:
                await route.abort()

        assert made.page is not None
        await made.page.context.route(re.compile("^https:"), answer)
        yield made


def command(name: str) -> list[str]:
    return ["node", str(Path(PACKAGES) / f"server-{name}" / "dist" / "index.js"), "--stdio"]


async def told(model: Model, tool: str) -> str:
    """What the View told by itself and with that tool."""
    return texts(model, await model.call(tool))


def texts(model: Model, result: ToolResult) -> str:
    """What a model reads after a call."""
    said = [*result.content]
    if isinstance(model, HostModel):
        said += [block for each in model.host.model_context() for block in each.content]
    return "\n".join(block.text for block in said if isinstance(block, TextContent))


@pytest.mark.processes
@pytest.mark.nightly
@host_by_night
@pytest.mark.parametrize(
    ("server", "opens", "change", "bad", "look", "error"),
    [
        (
            "shadertoy",
            "render-shadertoy",
            "set-shader-source",
            {"fragmentShader": "void mainImage(out vec4 c, in vec2 p) { nonsense }"},
            "get-shader-info",
            "Shader compilation failed",
        ),
        pytest.param(
            "threejs",
            "show_threejs_scene",
            "set-scene-source",
            {"code": "throw new Error('no scene today')"},
            "get-scene-info",
            "Three.js Scene Error: ",
            marks=pytest.mark.nightly,
        ),
    ],
    ids=["shadertoy", "threejs"],
)
async def test_a_view_that_runs_the_models_code_tells_it_what_is_wrong_with_it(
    browser: HeadlessRenderer,
    through: Through,
    server: str,
    opens: str,
    change: str,
    bad: dict[str, str],
    look: str,
    error: str,
) -> None:
    async with model_of(through, command(server), browser.seat(through)) as model:
        await model.call_any(opens, {})
        await model.until(change, look)
        assert not (await model.call(change, bad)).is_error
        async with asyncio.timeout(30):
            while error not in await told(model, look):
                pass  # the View tells it when it has tried


@pytest.mark.nightly
@host_by_night
@pytest.mark.parametrize(
    ("server", "opens", "bad", "look", "error"),
    [
        (
            "shadertoy",
            "render-shadertoy",
            {"fragmentShader": "void mainImage(out vec4 c, in vec2 p) { nonsense }"},
            "get-shader-info",
            "Shader compilation failed",
        ),
        pytest.param(
            "threejs",
            "show_threejs_scene",
            {"code": "throw new Error('no scene today')"},
            "get-scene-info",
            "Three.js Scene Error: ",
            marks=pytest.mark.nightly,
        ),
    ],
    ids=["shadertoy", "threejs"],
)
async def test_a_view_that_is_opened_with_bad_code_says_so(
    browser: HeadlessRenderer,
    through: Through,
    server: str,
    opens: str,
    bad: dict[str, str],
    look: str,
    error: str,
) -> None:
    """In the result that opened it, or in the next, when a busy machine takes longer to try."""
    async with model_of(through, command(server), browser.seat(through)) as model:
        said = texts(model, await model.call_any(opens, bad))
        async with asyncio.timeout(60):
            while error not in said:
                said = await told(model, look)


@host_by_night
async def test_the_map_goes_where_the_model_says_and_tells_where_it_is(
    browser: HeadlessRenderer, through: Through
) -> None:
    async with model_of(through, command("map"), browser.seat(through)) as model:
        await model.call_any("show-map", {})
        await model.until("navigate-to", "get-current-view")
        place = {"west": 13, "south": 52, "east": 14, "north": 53, "label": "Berlin"}
        result = await model.call("navigate-to", place)
        assert result.text.startswith("Navigated to: W:13.0000, S:52.0000")
        result = await model.call("get-current-view")
        assert result.structured_content is not None
        assert result.structured_content["camera"]["latitude"] == 52.5
