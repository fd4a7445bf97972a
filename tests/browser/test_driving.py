"""What a model reads of a View's page, and what it can do there."""

import pytest
from playwright.async_api import expect

from tests.browser.driven import driven
from tests.browser.hosting import Chromium
from transom.web.csp import CspMode

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
  for (let n = 1; n <= 20; n += 1) {
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
table "Open" 20 row = Id, Total,
  row "1, 1.50"
    button "Drop 1"
  row "2, 2.50"
    button "Drop 2"
  row "3, 3.50"
    button "Drop 3"
  more 17 row
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
        assert (await view.look(under=table)).count('row "') == 20
        assert (await view.drive("look", under="t99"))["problem"] == "unknown"
        await expect(user.page.get_by_text("Used by the agent")).to_be_visible()
