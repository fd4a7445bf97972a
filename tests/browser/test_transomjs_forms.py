"""Forms with `toolname` are tools, without and with the browser's own WebMCP. In Chromium."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest_asyncio
from playwright.async_api import BrowserContext

from tests.browser.conftest import Launch
from tests.browser.transomjs_host import VIEW_URL, View, host_page, mounted

FORM = """
<form toolname="book" tooldescription="Book a table" toolautosubmit>
  <input name="who" required toolparamdescription="Whose table" minlength="2" pattern="[A-Za-z]+">
  <label>Seats <input type="number" name="seats" min="1" max="8" step="1" value="2"></label>
  <input type="range" name="odd" min="1" max="9" step="2">
  <input type="checkbox" name="outside">
  <input type="checkbox" name="needs" value="ramp"><input type="checkbox" name="needs" value="dog">
  <input type="radio" name="meal" value="lunch" required>
  <input type="radio" name="meal" value="tea">
  <select name="room"><option value="r1">Red</option><option value="r2">Blue</option></select>
  <select name="drinks" multiple><option>Tea</option><option>Wine</option></select>
  <textarea name="note"></textarea>
  <input type="date" name="day"><input type="email" name="mail">
  <input type="password" name="secret">
  <input type="hidden" name="token" value="t"><input type="file" name="file">
  <input name="off" disabled><fieldset disabled><input name="off-too"></fieldset>
  <input name="fixed" readonly value="f"><input>
  <button>Book</button>
</form>
"""
LISTEN = """
  globalThis.events = [];
  addEventListener("submit", (event) => {
    event.preventDefault();
    const data = new FormData(event.target);
    const given = Object.fromEntries([...data.keys()].map((name) => [name, data.getAll(name)]));
    events.push([event.agentInvoked, given]);
    if (event.target.dataset.answer) {
      event.respondWith(Promise.resolve({ booked: event.target.dataset.answer }));
    }
  });
"""


def page(body: str, script: str = "") -> str:
    """A page with forms and no App of its own."""
    return (
        "<!doctype html><html><head><title>Tables</title>"
        f'<script src="transom.js"></script><script>{LISTEN}</script></head>'
        f"<body>{body}<script>{script}</script></body></html>"
    )


@pytest_asyncio.fixture(loop_scope="session")
async def webmcp(launch: Launch) -> AsyncIterator[BrowserContext]:
    """A context of a Chromium that has WebMCP of its own."""
    browser = await launch("--enable-features=WebMCP")
    made = await browser.new_context()
    yield made
    await made.close()


@asynccontextmanager
async def shown(context: BrowserContext, html: str, allow: str = "") -> AsyncIterator[View]:
    """A View in a frame that may submit forms, as those of Transom may."""
    async with host_page(context, view=html) as view:
        sandbox = "allow-scripts allow-same-origin allow-forms"
        await view.page.evaluate(
            "given => mount(...given)", [VIEW_URL, {"allow": allow, "sandbox": sandbox}]
        )
        await view.heard("ui/notifications/initialized")
        yield view


async def schema_of(view: View, name: str = "book") -> dict[str, Any]:
    [tool] = [tool for tool in await view.tools() if tool["name"] == name]
    return tool["inputSchema"]


async def test_a_form_is_a_tool_with_its_fields_and_is_submitted(context: BrowserContext):
    async with shown(context, page(FORM)) as view:
        [tool] = await view.tools()
        assert (tool["name"], tool["description"]) == ("book", "Book a table")
        properties = tool["inputSchema"]["properties"]
        assert tool["inputSchema"]["required"] == ["who", "meal"]
        assert properties["who"] == {
            "type": "string", "minLength": 2, "pattern": "^(?:[A-Za-z]+)$",
            "description": "Whose table",
        }  # fmt: skip
        assert properties["seats"] == {
            "type": "number", "minimum": 1, "maximum": 8, "multipleOf": 1, "description": "Seats",
        }  # fmt: skip
        assert properties["odd"] == {"type": "number", "minimum": 1, "maximum": 9}
        assert properties["outside"] == {"type": "boolean"}
        assert properties["needs"]["items"]["enum"] == ["ramp", "dog"]
        assert properties["meal"]["enum"] == ["lunch", "tea"]
        assert properties["room"]["anyOf"][0] == {"const": "r1", "title": "Red"}
        given = {
            "who": "Ann", "seats": 4, "outside": True, "needs": ["dog"], "meal": "tea",
            "room": "r1", "drinks": ["Wine"], "note": "late", "day": "2026-05-01",
        }  # fmt: skip
        assert await view.text("book", given) == "Submitted."
        [[invoked, filled]] = await view.run("events")
        assert invoked is True
        expected = {**given, "seats": "4", "outside": "on", "needs": "dog", "drinks": "Wine"}
        expected |= {"odd": "5", "mail": "", "secret": "", "token": "t", "fixed": "f"}
        del filled["file"]
        assert filled == {name: [value] for name, value in expected.items()}


async def test_what_the_page_responds_with_is_the_result(context: BrowserContext):
    async with shown(context, page(FORM)) as view:
        await view.run("void (document.forms[0].dataset.answer = '7 pm')")
        result = await view.call("book", {"who": "Ann", "meal": "tea"})
        assert result["structuredContent"] == {"booked": "7 pm"}


async def test_a_frame_that_may_not_submit_forms_still_has_their_listeners(
    context: BrowserContext,
):
    async with mounted(context, page(FORM)) as view:
        assert await view.text("book", {"who": "Ann", "meal": "tea"}) == "Submitted."
        [[invoked, filled]] = await view.run("events")
        assert (invoked, filled["who"]) == (True, ["Ann"])


async def test_what_does_not_fit_is_told_and_not_submitted(context: BrowserContext):
    async with shown(context, page(FORM)) as view:
        for given, said in (
            ({"meal": "tea"}, "- who: is required"),
            ({"who": "Ann", "meal": "supper"}, "- meal: must be one of"),
            ({"who": "Ann", "meal": "tea", "seats": 9}, "- seats: must have maximum 8"),
            ({"who": "Ann", "meal": "tea", "mail": "nobody"}, "mail: Please include"),
            ({"who": "Ann", "meal": "tea", "day": "soon"}, "- day: must match"),
        ):
            refused = await view.call("book", given)
            assert refused["isError"]
            assert said in refused["content"][0]["text"]
        assert await view.run("events") == []


ASKS = """<form toolname="pay" tooldescription="Pay">
  <input name="sum" required><button>Pay now</button></form>"""


async def test_without_toolautosubmit_the_user_submits(context: BrowserContext):
    async with shown(context, page(ASKS)) as view:
        await view.page.evaluate(
            "given => { globalThis.answer = ask('tools/call', given) }",
            {"name": "pay", "arguments": {"sum": "9"}},
        )
        await view.until("document.activeElement.textContent === 'Pay now'")
        assert await view.run("[document.querySelector('input').value, events.length]") == ["9", 0]
        again = await view.call("pay", {"sum": "10"})
        assert again["isError"]
        await view.run("document.querySelector('button').click()")
        answer = await view.page.evaluate("answer")
        assert answer["result"]["content"][0]["text"] == "Submitted."
        assert await view.run("events") == [[True, {"sum": ["9"]}]]
        await view.run("document.querySelector('button').click()")
        assert (await view.run("events"))[1] == [False, {"sum": ["9"]}]  # by the user alone


async def test_a_form_that_is_reset_ends_the_call(context: BrowserContext):
    async with shown(context, page(ASKS)) as view:
        await view.page.evaluate(
            "given => { globalThis.answer = ask('tools/call', given) }",
            {"name": "pay", "arguments": {"sum": "9"}},
        )
        await view.until("document.activeElement.textContent === 'Pay now'")
        await view.run("document.forms[0].reset()")
        assert (await view.page.evaluate("answer"))["result"]["isError"]


async def test_forms_come_change_and_go_with_the_page(context: BrowserContext):
    script = f"""
      globalThis.form = `{ASKS}`;
      new transom.App({{ name: "own", version: "1" }}).connect();
    """
    async with shown(context, page("", script)) as view:
        assert await view.names() == []
        await view.run("void (document.body.innerHTML += form)")
        await view.heard("notifications/tools/list_changed")
        assert await view.names() == ["pay"]
        await view.run("document.forms[0].setAttribute('toolname', 'tip')")
        await view.heard("notifications/tools/list_changed", 2)
        assert await view.names() == ["tip"]
        await view.run("document.forms[0].append(document.createElement('textarea'))")
        await view.run("void (document.querySelector('textarea').name = 'why')")
        assert list((await schema_of(view, "tip"))["properties"]) == ["sum", "why"]
        await view.run("document.forms[0].removeAttribute('tooldescription')")
        await view.heard("notifications/tools/list_changed", 3)
        assert await view.names() == []


ODD = """
<form toolname="mix" tooldescription="Mix" toolautosubmit>
  <input name="elements" required><input name="submit"><input name="requestSubmit">
  <input name="getAttribute"><input name="hasAttribute"><input name="noValidate">
  <input name="addEventListener"><input name="dispatchEvent"><input name="__proto__">
</form>
<form toolname="measure" tooldescription="Measure" toolautosubmit>
  <input name="n" type="number" min="low" max="" step="-1"><input name="code" pattern="([a-z">
  <input name="text" minlength="99999999999999999999" maxlength="-5">
  <select name="unit"></select><select name="units" multiple></select>
</form>
"""


async def test_odd_names_and_attributes_of_fields_mean_what_they_mean_in_html(
    context: BrowserContext,
):
    async with shown(context, page(ODD)) as view:
        assert await view.names() == ["mix", "measure"]
        assert await view.text("mix", {"elements": "water", "submit": "now"}) == "Submitted."
        assert (await view.run("events"))[0][1]["elements"] == ["water"]
        schema = await schema_of(view, "measure")
        assert schema["properties"] == {  # HTML ignores the attributes; there is nothing to choose
            "n": {"type": "number"}, "code": {"type": "string"}, "text": {"type": "string"},
        }  # fmt: skip
        assert await view.text("measure", {"n": 3, "code": "(", "text": "long"}) == "Submitted."


async def test_two_forms_of_one_name_are_a_mistake_that_the_author_sees(context: BrowserContext):
    async with shown(context, page(ASKS + ASKS)) as view:
        assert await view.names() == ["pay"]
        assert "Tool pay is already registered" in "\n".join(view.console)


async def test_the_browsers_own_says_the_same_of_a_form(
    context: BrowserContext, webmcp: BrowserContext
):
    async def kinds(view: View) -> dict[str, Any]:
        schema = await schema_of(view)
        kinds = {name: part["type"] for name, part in schema["properties"].items()}
        return {"kinds": kinds, "required": sorted(schema["required"])}

    async with shown(context, page(FORM)) as view:
        ours = await kinds(view)
    async with shown(webmcp, page(FORM), "tools") as view:
        assert await view.names() == ["book"]  # once
        assert await kinds(view) == ours
