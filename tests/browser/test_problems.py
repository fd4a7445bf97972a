"""What goes wrong inside a page is visible outside of it, in real Chromium."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.browser.views import Shown, html, page, stage
from tests.host.shop import Heard

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.processes]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shown() -> AsyncIterator[Shown]:
    async with stage() as made:
        yield made


ACTS = """
console.error("before it is connected", { a: 1 });
setTimeout(() => { throw new TypeError("thrown later"); });
tools.act = ({ what }) => {
  if (what === "reject") Promise.reject(new RangeError("rejected"));
  if (what === "fetch") fetch("https://not-declared.example/").catch(() => {});
  if (what === "many") for (let n = 0; n < 300; n += 1) console.error(n);
  if (what === "odd") console.error({ get a() { throw 1; } }, "x".repeat(5000));
  return "done";
};
"""


async def test_a_page_without_transom_js_is_listened_to(shown: Shown):
    problems = Heard()
    async with shown.view(page("view-1", ACTS)) as bridge:
        bridge.on_problem = lambda problem: problems.append((problem.kind, problem.message))
        for what in ("reject", "fetch"):
            await bridge.call_tool("act", {"what": what})
        await problems.has(("rejection", "RangeError: rejected"))
        await problems.where(lambda: any(kind == "blocked" for kind, _ in problems))
        [blocked] = [message for kind, message in problems if kind == "blocked"]
        assert "not-declared.example" in blocked
        await bridge.call_tool("act", {"what": "odd"})
        await problems.where(lambda: any(kind == "console" for kind, _ in problems))
        assert all(len(message) <= 2000 for _, message in problems)


async def test_what_goes_wrong_before_a_page_is_connected_is_told(shown: Shown):
    problems = Heard()
    script = "undefinedFunction();"
    bad = html(ACTS).replace("<h1>A View</h1>", f"<script>{script}</script>")
    channel_page = page("view-2", html=bad)
    async with shown.view(channel_page, on_problem=problems.append) as bridge:
        del bridge
        await problems.where(lambda: len(problems) >= 3)
        told = [(problem.kind, problem.message) for problem in problems]
        assert ("error", "ReferenceError: undefinedFunction is not defined") in told
        assert ("console", 'before it is connected {"a":1}') in told
        assert ("error", "TypeError: thrown later") in told
        assert len(told) == 3


async def test_no_page_tells_more_than_a_hundred(shown: Shown):
    problems = Heard()
    async with shown.view(page("view-3", ACTS), on_problem=problems.append) as bridge:
        await bridge.call_tool("act", {"what": "many"})
        await bridge.call_tool("act", {"what": "reject"})
        await problems.where(lambda: any("More than 100" in each.message for each in problems))
        await bridge.ping()
        assert len(problems) == 101
