"""Pages of all kinds, read and used: patterns of ARIA, labels, shadow roots, frames, frameworks."""

import subprocess
from pathlib import Path

import pytest

from tests.browser.driven import driven, lines
from tests.browser.hosting import Chromium

ROOT = Path(__file__).parents[2]

LABELS = """
<label for="a">By for</label><input id="a"><label>Around <input></label>
<input aria-label="By aria-label"><span id="s1">By</span> <span id="s2">two ids</span>
<input aria-labelledby="s1 s2"><input title="By title"><input placeholder="By placeholder">
<fieldset><legend>By legend</legend><label><input type="radio" name="r"> One</label></fieldset>
<button><img alt="By picture" src="data:,"></button>
<button><svg viewBox="0 0 1 1"><title>By drawing</title></svg></button>
<input type="submit"><input type="button" value="By value">
<button title="Close"><span aria-hidden="true">x</span></button>
<style>.visually-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden }</style>
<button><span class="visually-hidden">For readers</span> ★</button>
<label style="cursor: pointer"><input type="checkbox" class="visually-hidden"> Drawn box</label>
<style>@media all { .added::after { content: " by a rule" } }</style>
<button class="added">Added</button>
<img alt="A cat" src="data:,"><img alt="" src="data:,"><video></video>
"""

LABELS_READ = """\
textbox "By for" =
textbox "Around" =
textbox "By aria-label" =
text "By two ids"
textbox "By two ids" =
textbox "By title" =
textbox "By placeholder" =
group "By legend"
  radio "One"
button "By picture"
button "By drawing"
button "Submit"
button "By value"
button "Close"
button "For readers ★"
checkbox "Drawn box"
button "Added by a rule"
img "A cat"
video [300, 150]"""

FOUND = """
<div>Marketing <input type="range"></div><div><p>Budget</p><button>Less</button></div>
<select multiple aria-label="Many"><option selected>a<option selected>b<option>c</select>
<ul aria-label="Things" id="things"></ul><article onclick="1"><h3>Card</h3>Its text</article>
<figure><img alt="Chart" src="data:,"><figcaption>Chart</figcaption></figure>
<button onclick="sure.showModal()">Open</button><dialog id="sure"><button>No</button></dialog>
<div style="height: 3000px"></div><button>Below</button>
<script>
  for (let n = 0; n < 20; n += 1) things.insertAdjacentHTML("beforeend", `<li>Thing ${n}`);
</script>
"""

FOUND_READ = """\
text "Marketing"
slider = 50 (0 to 100)
text "Budget"
button "Less"
listbox "Many" = a, b
  options "a, b, c"
list "Things"
  text "Thing 0 · Thing 1 · Thing 2 · Thing 3 · Thing 4"
  more 15 item
clickable "Card Its text"
img "Chart"
button "Open"
button "Below\""""


async def test_what_is_found_has_the_control_that_it_is_about(browser: Chromium) -> None:
    async with browser.user() as user, driven(user.renderer(), FOUND) as [view]:
        assert await view.look() == FOUND_READ
        assert await view.look(find="marketing") == 'text "Marketing"\nslider = 50 (0 to 100)'
        assert await view.look(find="budget") == 'text "Budget"\nbutton "Less"'
        answer = await view.drive("look")
        [more] = [node for node in answer["nodes"] if node["role"] == "more"]
        [things] = [node for node in answer["nodes"] if node["name"] == "Things"]
        assert more["under"] == things["ref"]
        below = [(await view.drive("look", find=text))["offscreen"] for text in ("below", "open")]
        assert (answer["modal"], answer["offscreen"] - below[0], below[1]) == (False, 0, 0)
        drag = {"action": "drag_to", "ref": await view.ref('button "Open"'), "to": "b999"}
        assert (await view.drive("act", **drag))["of"] == "b999"
        await view.act(drag["ref"], "click")
        answer = await view.drive("look")
        assert (lines(answer), answer["modal"]) == ('dialog\n  button "No" (focused)', True)


PATTERNS = """
<div role="tablist" aria-label="Views"><button role="tab" aria-selected="true">Day</button>
  <button role="tab" id="week">Week</button></div><div role="tabpanel" id="panel">Day shown</div>
<button id="file" aria-haspopup="menu" aria-expanded="false">File</button>
<div role="menu" id="menu" hidden><div role="menuitem" id="item">Print</div></div>
<div role="combobox" tabindex="0" id="combo" aria-controls="list" aria-expanded="false"
  aria-label="Fruit">Apple</div>
<ul role="listbox" id="list" aria-label="Fruits" hidden><li role="option">Apple
  <li role="option" id="pear">Pear</ul>
<ul role="tree" aria-label="Files"><li role="treeitem" aria-expanded="true">src
  <ul role="group"><li role="treeitem">app.ts</ul></ul>
<div role="treegrid" aria-label="Mail"><div role="row"><span role="columnheader">From</span>
  <span role="columnheader">Subject</span></div><div role="row" aria-expanded="false">
  <span role="gridcell">Ada</span> <span role="gridcell">Engines</span></div></div>
<div role="slider" tabindex="0" aria-label="Volume" aria-valuemin="0" aria-valuemax="10"
  aria-valuenow="4" id="volume" style="height: 1rem"></div>
<div role="switch" tabindex="0" aria-checked="false" id="wifi">Wi-Fi</div>
<div role="alert">Saved</div><div role="progressbar" aria-label="Upload" aria-valuenow="40"></div>
<details><summary>More</summary>Hidden until opened</details>
<div role="dialog" aria-modal="true" aria-label="Sure?"><button id="yes">Yes</button></div>
<script>
  week.onclick = () => {
    document.querySelectorAll("[role=tab]").forEach((tab) => (tab.ariaSelected = tab === week));
    panel.textContent = "Week shown";
  };
  file.onclick = () => { menu.hidden = false; file.ariaExpanded = true; };
  item.onclick = () => { menu.hidden = true; panel.textContent = "Printed"; };
  combo.onclick = () => { list.hidden = false; combo.ariaExpanded = true; };
  list.onclick = ({ target }) => { combo.textContent = target.textContent; list.hidden = true; };
  volume.onkeydown = ({ key }) => {
    if (key === "ArrowRight") setTimeout(() => (volume.ariaValueNow = +volume.ariaValueNow + 1));
  };
  wifi.onclick = () => (wifi.ariaChecked = wifi.ariaChecked !== "true");
</script>
"""

PATTERNS_READ = """\
tablist "Views"
  tab "Day" (selected)
  tab "Week"
text "Day shown"
button "File" (collapsed)
combobox "Fruit" = Apple (collapsed)
tree "Files"
  treeitem "src" (expanded)
    treeitem "app.ts"
treegrid "Mail" 1 row = From, Subject
  row "Ada, Engines" (collapsed)
slider "Volume" = 4 (0 to 10)
switch "Wi-Fi"
text "Saved"
progressbar "Upload" = 40
button "More" (collapsed)
dialog "Sure?" (modal)
  button "Yes\""""

PLACES = """
<style>button { content: "shown nowhere" }</style>
<x-card>Slotted <button>In the light</button></x-card>
<iframe srcdoc="<button>In a frame</button><p>Framed text</p>" width="300" height="80"></iframe>
<div contenteditable role="textbox" aria-label="Note">Old</div>
<div id="list" style="height: 100px; overflow: auto"><div style="height: 20000px"></div></div>
<canvas width="30" height="20" aria-label="Chart"></canvas>
<script>
  customElements.define("x-card", class extends HTMLElement {
    constructor() {
      super();
      this.attachShadow({ mode: "open" }).innerHTML =
        "<style>::slotted(button)::before { content: '> ' }</style>" +
        "<h2>Card</h2><slot></slot><button>In the shadow</button><output></output>";
      const button = this.shadowRoot.querySelector("button");
      button.onclick = ({ detail }) => {
        this.shadowRoot.querySelector("output").textContent = `Pressed ${detail}`;
      };
    }
  });
  const rows = list.firstElementChild;
  const render = () => {
    const first = Math.floor(list.scrollTop / 20);
    rows.innerHTML = "";
    for (let n = first; n < first + 6; n += 1) {
      const style = `position: absolute; margin-top: ${n * 20}px`;
      rows.insertAdjacentHTML("beforeend", `<button style="${style}">Row ${n}</button>`);
    }
  };
  list.onscroll = render;
  render();
</script>
"""

PLACES_READ = """\
heading 2 "Card"
text "Slotted"
button "> In the light"
button "In the shadow"
button "In a frame"
text "Framed text"
textbox "Note" = Old
button "Row 0"
button "Row 1"
button "Row 2"
button "Row 3"
button "Row 4"
button "Row 5"
canvas "Chart" [30, 20]"""


async def test_names_roles_and_states_are_those_of_the_accessibility_tree(
    browser: Chromium,
) -> None:
    pages = (LABELS, PATTERNS, PLACES)
    async with browser.user() as user, driven(user.renderer(), *pages) as views:
        for view, expected in zip(views, (LABELS_READ, PATTERNS_READ, PLACES_READ), strict=True):
            read = "\n".join(line.rstrip() for line in (await view.look()).splitlines())
            assert read == expected
        labels, patterns, places = views

        assert (await labels.act(await labels.ref('checkbox "Drawn box"'), "check"))["done"] is True
        assert 'checkbox "Drawn box" (checked' in await labels.look()

        for line, action, value, expected in (
            ('tab "Week"', "click", None, 'text "Week shown"'),
            ('button "File"', "click", None, 'menuitem "Print"'),
            ('menuitem "Print"', "click", None, 'text "Printed"'),
            ('combobox "Fruit"', "select", "pear", 'combobox "Fruit" = Pear'),
            ('slider "Volume"', "set", "7", 'slider "Volume" = 7'),
            ('switch "Wi-Fi"', "check", None, 'switch "Wi-Fi" (checked'),
            ('button "More"', "press", "Enter", "Hidden until opened"),
        ):
            ref = await patterns.ref(line)
            done = await patterns.act(ref, action, value)
            assert done.get("done") is True, (line, done)
            assert expected in await patterns.look(), line

        for line in ('button "In the shadow"', 'button "In a frame"'):
            assert (await places.act(await places.ref(line), "click"))["done"] is True
        assert "Pressed 1" in await places.look()
        await places.act(await places.ref('textbox "Note"'), "type", " and new")
        assert 'textbox "Note" = Old and new' in await places.look()


# --- frameworks ------------------------------------------------------------------------------

REACT = """
import { createElement as h, useState } from "react";
import { createRoot } from "react-dom/client";
function Form() {
  const [name, setName] = useState("");
  const [on, setOn] = useState(false);
  const [size, setSize] = useState("small");
  const [share, setShare] = useState("10");
  const [sent, setSent] = useState("");
  const field = (label, type, value, set) =>
    h("input", { "aria-label": label, type, value, onChange: (e) => set(e.target.value) });
  const send = (e) => { e.preventDefault(); setSent(`${name} ${on} ${size} ${share}`); };
  const check = (e) => setOn(e.target.checked);
  return h("form", { onSubmit: send },
    field("Name", "text", name, setName), field("Share", "range", share, setShare),
    h("label", {}, h("input", { type: "checkbox", checked: on, onChange: check }), "On"),
    h("select", { "aria-label": "Size", value: size, onChange: (e) => setSize(e.target.value) },
      h("option", {}, "small"), h("option", {}, "large")),
    h("button", {}, "Send"), h("p", {}, `Sent: ${sent}`));
}
createRoot(document.getElementById("app")).render(h(Form));
"""

VUE = """
import { createApp, h, ref, vModelText, vModelCheckbox, vModelSelect, withDirectives } from "vue";
createApp({
  setup() {
    const [name, on, size, share, sent] = [ref(""), ref(false), ref("small"), ref("10"), ref("")];
    const bound = (tag, model, bind, props, children) => {
      const update = { "onUpdate:modelValue": (value) => { model.value = value; } };
      return withDirectives(h(tag, { ...props, ...update }, children), [[bind, model.value]]);
    };
    const send = (e) => {
      e.preventDefault();
      sent.value = `${name.value} ${on.value} ${size.value} ${share.value}`;
    };
    return () => h("form", { onSubmit: send }, [
      bound("input", name, vModelText, { "aria-label": "Name" }),
      bound("input", share, vModelText, { "aria-label": "Share", type: "range" }),
      h("label", [bound("input", on, vModelCheckbox, { type: "checkbox" }), "On"]),
      bound("select", size, vModelSelect, { "aria-label": "Size" },
        [h("option", { value: "small" }, "small"), h("option", { value: "large" }, "large")]),
      h("button", "Send"), h("p", `Sent: ${sent.value}`),
    ]);
  },
}).mount("#app");
"""


def bundled(source: str, folder: Path) -> str:
    """A page with a script, and the packages that it imports."""
    entry = folder / "entry.js"
    entry.write_text(source)
    built = subprocess.run(
        [
            *(ROOT / "node_modules/.bin/esbuild", entry, "--bundle", "--minify"),
            *("--format=iife", '--define:process.env.NODE_ENV="production"'),
        ],
        check=True,
        capture_output=True,
        text=True,
        env={"NODE_PATH": str(ROOT / "node_modules")},
    )
    script = built.stdout.replace("</script", "<\\/script")
    return f'<div id="app"></div><script>{script}</script>'


@pytest.mark.nightly
@pytest.mark.processes
async def test_react_and_vue_notice_what_is_done(browser: Chromium, tmp_path: Path) -> None:
    pages = [bundled(source, tmp_path) for source in (REACT, VUE)]
    async with browser.user() as user, driven(user.renderer(), *pages) as views:
        for view in views:
            for line, action, value in (
                ('textbox "Name"', "type", "Ada"),
                ('slider "Share"', "set", "40"),
                ('checkbox "On"', "check", None),
                ('combobox "Size"', "select", "large"),
                ('button "Send"', "click", None),
            ):
                done = await view.act(await view.ref(line), action, value)
                assert done.get("done") is True, (line, done)
            assert 'text "Sent: Ada true large 40"' in await view.look()
            await view.act(await view.ref('textbox "Name"'), "clear")
            await view.act(await view.ref('textbox "Name"'), "press", "Enter")
            assert 'text "Sent: true large 40"' in await view.look()
