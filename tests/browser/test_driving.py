"""What a model reads of a View's page, and what it can do there."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.driven import CONTROLS, Driven, driven, inside_of, use_controls
from tests.browser.hosting import Chromium, UsersOwnBrowser
from transom.errors import InvalidResult, Refused, ToolError
from transom.web.csp import CspMode
from transom.web.local.headless import HeadlessRenderer
from transom.web.local.renderers import BrowserRenderer

ORDERS = """
<h1>Orders</h1><p>There are <b>many</b> of them.</p>
<button>Save</button><button disabled>Send</button>
<label for="who">Name</label><input id="who" value="Ada" required>
<label><input type="checkbox" checked> Urgent</label>
<input type="range" aria-label="Share" min="0" max="50" value="25">
<input type="password" aria-label="Password" value="hunter2">
<select aria-label="Size"><option>small<option selected>large</select>
<table><caption>Open</caption><thead><tr><th>Id<th>Total<th></thead><tbody id="rows"></table>
<a href="https://example.com/help">Help</a>
<div onclick="1">Anything</div><canvas width="100" height="50"></canvas>
<button aria-label="Cancel">Delete everything</button>
<section data-transom-private><button>Secret</button></section>
<script>
  for (let n = 1; n <= 60; n += 1) {
    rows.insertAdjacentHTML("beforeend", `<tr><td>${n}<td>${n}.50<td><button>Drop ${n}</button>`);
  }
</script>
"""

READ = """\
heading 1 "Orders"
text "There are many of them."
button "Save"
button "Send" (disabled)
textbox "Name" = Ada (required)
checkbox "Urgent" (checked)
slider "Share" = 25 (0 to 50)
textbox "Password" = ••••
combobox "Size" = large
  options "small, large"
table "Open" 60 row = Id, Total,
  row "1, 1.50"
    button "Drop 1"
  row "2, 2.50"
    button "Drop 2"
  row "3, 3.50"
    button "Drop 3"
  more 57 row
link "Help" -> https://example.com/help
clickable "Anything"
canvas [100, 50]
button "Cancel"
  text "Delete everything"
private 2 """


@pytest.mark.parametrize("csp", ["compat", "strict"])
async def test_a_page_is_read_as_a_person_perceives_it(browser: Chromium, csp: CspMode) -> None:
    async with browser.user() as user, driven(user.renderer(csp=csp), ORDERS) as [view]:
        answer = await view.drive("look")
        assert await view.look() == READ
        refs = [node["ref"] for node in answer["nodes"] if "ref" in node]
        assert len(refs) == len(set(refs)) == answer["actionable"]
        assert (await view.drive("look"))["nodes"] == answer["nodes"]  # the same references
        found = await view.look(find="drop 17")
        assert found.splitlines()[1:] == ['  row "17, 17.50"', '    button "Drop 17"']
        table = next(node["ref"] for node in answer["nodes"] if node["role"] == "table")
        assert (await view.look(under=table)).count('row "') == 60
        assert (await view.drive("look", under="t9999"))["problem"] == "unknown"
        await expect(user.page.get_by_text("Used by the agent")).to_be_visible()


# --- acts ------------------------------------------------------------------------------------

NOTED = "() => noted.splice(0)"


async def choose_an_option(view: Driven) -> None:
    """By its own reference."""
    size = await view.ref('combobox "Size"')
    for name, action in (("small", "click"), ("large", "select")):
        nodes = (await view.drive("look", under=size))["nodes"]
        [ref] = [node["ref"] for node in nodes if node["name"] == name]
        done = await view.act(ref, action)
        assert (done["done"], done["ignored"]) == (True, False)
        assert f'combobox "Size" = {name}' in await view.look()
    assert "needs an option" in (await view.act(size, "select"))["detail"]


@pytest.mark.nightly
async def test_controls_are_used_by_events_that_their_page_notices(browser: Chromium) -> None:
    async with browser.user() as user, driven(user.renderer(), CONTROLS) as [view]:
        await use_controls(view, lambda: user.run_in_view(view.view_id, NOTED))
        await choose_an_option(view)


@pytest.mark.processes
async def test_controls_are_used_with_a_real_mouse_and_keyboard_without_a_window() -> None:
    renderer = HeadlessRenderer()
    far = '<div style="height: 3000px"></div><label><input type="checkbox" id="far"> Far</label>'
    async with driven(renderer, CONTROLS + far) as [view]:
        inside = await inside_of(renderer.page)
        await use_controls(view, lambda: inside.evaluate(NOTED))
        await inside.evaluate(
            "() => { button.onclick = ({ isTrusted }) => noted.push(isTrusted); }"
        )
        for number in range(3):  # the browser's window has to be scrolled each time
            wanted = "uncheck" if number % 2 else "check"
            done = await view.act(await view.ref('checkbox "Far"'), wanted)
            assert done.get("done") is True, done
            assert await inside.evaluate("() => far.checked") is (number % 2 == 0)
            done = await view.act(await view.ref('button "Press me"'), "click")
            assert done.get("done") is True, done
            assert await inside.evaluate(NOTED) == [True]
        await choose_an_option(view)


PROBLEMS = """
<button id="gone">Gone</button><button id="hidden">Hidden</button>
<div style="position: relative; height: 2rem">
  <button id="covered" style="position: absolute; inset: 0">Covered</button>
  <div id="cover" hidden style="position: absolute; inset: 0">In front</div>
</div>
<button id="disabled">Disabled</button><button id="changed">Changed</button>
<button id="private">Private</button><input id="fixed" aria-label="Fixed">
<div style="height: 3000px"></div><button id="far">Far</button>
<script>
  window.pressed = [];
  document.onclick = ({ target }) => pressed.push(target.id);
  window.spoil = () => {
    gone.remove();
    hidden.hidden = true;
    cover.hidden = false;
    disabled.disabled = true;
    changed.textContent = "Pay";
    private.setAttribute("data-transom-private", "");
    fixed.readOnly = true;
  };
</script>
"""


async def test_nothing_is_done_to_what_is_not_as_it_was_shown(browser: Chromium) -> None:
    async with browser.user() as user, driven(user.renderer(), PROBLEMS) as [view]:
        named = {n["name"]: n for n in (await view.drive("look"))["nodes"] if "ref" in n}
        await user.run_in_view(view.view_id, "() => spoil()")
        found: dict[str, str] = {}
        details: dict[str, str] = {}
        for name, node in named.items():
            action = "type" if name == "Fixed" else "click"
            done = await view.act(node["ref"], action, "x")
            found[name], details[name] = done.get("problem", "done"), done.get("detail", "")
        assert found == {
            "Gone": "gone",
            "Hidden": "hidden",
            "Covered": "covered",
            "Disabled": "disabled",
            "Changed": "changed",
            "Private": "unfit",
            "Fixed": "disabled",
            "Far": "done",
        }
        assert details["Covered"] == 'button "Covered" is covered by something "In front"'
        assert details["Changed"] == f'{named["Changed"]["ref"]} is button "Pay" now'
        assert (await view.act("b999", "click"))["problem"] == "unknown"
        # What is found for a question holds back nothing that the user presses meanwhile.
        far = {"ref": named["Far"]["ref"], "action": "click"}
        assert (await view.drive("target", **far))["target"]["name"] == "Far"
        await user.in_view(view.view_id).get_by_text("In front").click()
        other = {"ref": named["Far"]["ref"], "action": "click", "role": "button", "name": "Near"}
        assert (await view.drive("act", **other))["problem"] == "changed"
        assert await user.run_in_view(view.view_id, "() => pressed") == ["far", "cover"]


LEAVING = "<button onclick=\"parent.document.querySelector('iframe').remove()\">Leave</button>"


@pytest.mark.processes
async def test_a_press_by_which_the_page_leaves_was_done() -> None:
    async with driven(HeadlessRenderer(), LEAVING) as [view]:
        await view.view.snapshot()
        done = await view.view.act(await view.ref('button "Leave"'), "click")
        gone = "View tests-1: its page shows something else now"
        assert done.changes == f"It was done. What changed cannot be said: {gone}"


HALF = """
<div id="knob" role="slider" tabindex="0" aria-label="Knob" aria-valuenow="3">Knob</div>
<div id="list" role="combobox" tabindex="0" aria-label="List">List</div>
<script>
  knob.onkeydown = () => { knob.ariaValueNow = Math.min(5, Number(knob.ariaValueNow) + 1); };
  list.onclick = () => { list.textContent = "Open"; };
</script>
"""


async def test_what_was_done_in_part_is_not_said_to_be_nothing(browser: Chromium) -> None:
    async with browser.user() as user, driven(user.renderer(), HALF) as [view]:
        await view.view.snapshot()
        for line, action, value, wrong in (
            ('slider "Knob"', "set", "9", "is at 5, and does not go to 9"),
            ('combobox "List"', "select", "huge", "has no option huge"),
        ):
            ref = await view.ref(line)
            with pytest.raises(ToolError, match=rf"{wrong}.*\. It may have been done in part"):
                await view.view.act(ref, action, value)


async def test_a_script_that_did_not_load_is_no_empty_page_and_is_loaded_later(
    browser: Chromium,
) -> None:
    async with browser.user() as user:
        await user.context.route("**/drive.js", lambda route: route.fulfill(status=503))
        async with driven(user.renderer(), CONTROLS) as [view]:
            with pytest.raises(InvalidResult, match="The script that reads Views did not load"):
                await view.view.snapshot()
            await user.context.unroute("**/drive.js")
            assert "Press me" in (await view.view.snapshot()).text


IS_SEEN = """<p id="seen"></p><script>
  const say = () => { seen.textContent = document.visibilityState; };
  document.onvisibilitychange = say;
  say();
</script>"""


# The next View gets a guard that the page has loaded before.
UNTIL_GUARD_WAITS = """(async () => {
  const waits = ({ shadowRoot }) => shadowRoot?.querySelector("iframe[data-spare=ready]");
  while (![...document.querySelectorAll("div")].some(waits)) {
    await new Promise((looked) => { setTimeout(looked); });
  }
})()"""


@pytest.mark.processes
@pytest.mark.usefixtures("whole_chromium")
async def test_a_view_in_a_tab_behind_another_is_read_and_used(tmp_path: Path) -> None:
    async with (
        UsersOwnBrowser(tmp_path / "profile") as browser,
        driven(
            BrowserRenderer(open_page=browser.open_behind),
            *[IS_SEEN + CONTROLS] * 2,
            between=lambda: browser.run_behind(UNTIL_GUARD_WAITS),
        ) as views,
    ):
        for view in views:
            assert (await view.look()).startswith('text "hidden"\nbutton "Press me"'), view.view_id
            done = await view.act(await view.ref('button "Press me"'), "click")
            assert done["done"] is True


# A browser tells the frames inside later.
UNTIL_HIDDEN = """async () => {
  while (document.body.checkVisibility()) await new Promise((looked) => { setTimeout(looked); });
}"""


async def test_a_view_that_the_page_hides_says_so_and_one_that_hides_itself_is_empty(
    browser: Chromium,
) -> None:
    async with browser.user() as user, driven(user.renderer(), CONTROLS) as [view]:
        ref = await view.ref('button "Press me"')
        await user.page.locator("transom-view").evaluate("(view) => { view.hidden = true; }")
        await user.run_in_view(view.view_id, UNTIL_HIDDEN)
        with pytest.raises(ToolError) as looked:
            await view.view.snapshot()
        why = "nothing of it can be seen now: the page around it may hide it"
        assert str(looked.value) == f"View tests-1: {why}"
        assert (await view.act(ref, "click"))["problem"] == "hidden"
        assert (await view.drive("hide", on=True))["problem"] == "hidden"  # it may be shown again
        await user.page.locator("transom-view").evaluate("(view) => { view.hidden = false; }")
        assert "Press me" in (await view.view.snapshot()).text
        hide = "() => { document.documentElement.style.display = 'none'; }"
        await user.run_in_view(view.view_id, hide)
        assert await view.look() == ""


async def test_the_user_takes_control_and_gives_it_back(browser: Chromium) -> None:
    async with browser.user() as user, driven(user.renderer(), CONTROLS) as [view]:
        ref = await view.ref('button "Press me"')
        await user.page.get_by_role("button", name="Take control: tests-1").click()
        await expect(
            user.page.get_by_role("status").get_by_text("You have control")
        ).to_be_visible()
        with pytest.raises(Refused, match="taken control of View tests-1"):
            await view.act(ref, "click")
        assert "Press me" in await view.look()
        await user.page.get_by_role("button", name="Give it back: tests-1").click()
        await expect(user.page.get_by_role("button", name="Take control: tests-1")).to_be_visible()
        assert (await view.act(ref, "click"))["done"] is True
        assert await user.run_in_view(view.view_id, NOTED) == ["clicked"]
