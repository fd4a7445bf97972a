"""A View that is read and used through its page, and pages to do that to."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.mcpserver import MCPServer

from tests.browser.hosting import User
from transom import Host, Policy
from transom.host.views.view import View
from transom.server import Views

URI = "ui://tests/driven"
CONNECT = '<script>new transom.App({ name: "driven", version: "1" }).connect();</script>'


def page(body: str) -> str:
    """A page with this body, that connects to its host."""
    head = '<meta charset="utf-8"><script src="transom.js"></script>'
    return f"<!doctype html><html><head>{head}</head><body>{body}{CONNECT}</body></html>"


class Driven:
    """A View that is open, and requests to its page."""

    def __init__(self, renderer: Any, view: View) -> None:
        self.renderer = renderer
        self.view = view
        self.view_id = view.id

    async def drive(self, op: str, **request: Any) -> dict[str, Any]:
        return await self.renderer.drive(self.view_id, {"op": op, **request})

    async def look(self, **request: Any) -> str:
        """What the page shows, as lines."""
        return lines(await self.drive("look", **request))

    async def act(self, ref: str, action: str, value: str | None = None) -> dict[str, Any]:
        to = value if action == "drag_to" else None
        return await self.drive("act", ref=ref, action=action, value=value, to=to)

    async def ref(self, line: str) -> str:
        """The reference of what a line of the page begins with."""
        for node in (await self.drive("look", find=line.partition('"')[2].rstrip('"')))["nodes"]:
            if f'{node["role"]} "{node["name"]}"' == line:
                return node["ref"]
        raise AssertionError(f"{line} is not on the page:\n{await self.look()}")


def lines(answer: dict[str, Any]) -> str:
    """The nodes of a look without their references, a line each."""
    return "\n".join(_line(node) for node in answer["nodes"])


def _line(node: dict[str, Any]) -> str:
    text = "  " * node["depth"] + node["role"]
    text += f" {node['level']}" if "level" in node else ""
    text += f' "{node["name"]}"' if node["name"] else ""
    text += f" {node['count']} {node.get('of', '')}" if "count" in node else ""
    text += f" {node['size']}" if "size" in node else ""
    text += f" = {node['value']}" if "value" in node else ""
    text += f" -> {node['href']}" if "href" in node else ""
    return text + (f" ({', '.join(node['states'])})" if "states" in node else "")


@asynccontextmanager
async def driven(
    renderer: Any,
    *bodies: str,
    html: str = "",
    policy: Policy | None = None,
    between: Callable[[], Awaitable[object]] | None = None,
) -> AsyncIterator[list[Driven]]:
    """Views with these bodies, each open; `between` is called before each but the first."""
    views = Views()
    for number, body in enumerate(bodies or ("",)):
        made = views.add(f"{URI}{number}.html", html=html or page(body))

        @views.tool(name=f"show{number}", opens=made, annotations={"readOnlyHint": True})
        def show() -> str:
            """Open it."""
            return "shown"

    policy = policy or Policy.trusting()
    async with Host(renderer=renderer, policy=policy, open_timeout=60, audit=None) as host:
        await host.add_server("tests", MCPServer("tests", extensions=[views]))
        opened: list[Driven] = []
        for number in range(max(1, len(bodies))):
            if opened and between is not None:
                await between()
            result = await host.call_tool(f"show{number}")
            note = (result.meta or {})["transom/view"]
            assert note["state"] == "live", note
            opened.append(Driven(renderer, host.views[note["id"]]))
        yield opened


async def inside_of(page: Any) -> Any:
    """The frame of the only View on a page, once Playwright knows it."""
    while not (frames := [each for each in page.frames if each.url == "about:srcdoc"]):
        await page.wait_for_event("framenavigated")
    return frames[0]


def in_page(user: User, view: Driven) -> Any:
    """What is inside the View."""
    return user.in_view(view.view_id)


# What each control notices is in a list that a test reads and empties: `noted`.
CONTROLS = """
<button id="button">Press me</button><button>Idle</button>
<input id="text" aria-label="Text"><textarea id="area" aria-label="Area"></textarea>
<div id="rich" contenteditable aria-label="Rich">abc</div>
<label><input type="checkbox" id="tick"> Tick</label>
<input type="range" id="range" aria-label="Range"><input type="date" id="day" aria-label="Day">
<input type="color" id="hue" aria-label="Hue"><input type="number" id="count" aria-label="Count">
<select id="size" aria-label="Size"><option>small<option>large</select>
<select aria-label="Quiet"><option>one<option>two</select>
<form id="form"><input id="field" aria-label="Field"><button>Go</button></form>
<div id="drag" draggable="true" onclick="1">Drag</div><div id="drop" onclick="1">Drop</div>
<div id="over" onclick="1">Over</div>
<div id="knob" role="slider" tabindex="0" aria-label="Knob" aria-valuenow="3"></div>
<script>
  document.querySelectorAll("div").forEach(({ style }) => { style.cssText = "height: 2rem" });
  window.noted = [];
  let notes = 0;
  const note = (text) => {
    noted.push(text);
    document.body.dataset.noted = notes += 1; // that something happened can be seen
  };
  button.onclick = () => note("clicked");
  button.ondblclick = () => note("twice");
  for (const each of [text, area, tick, range, day, hue, count, size, field]) {
    each.oninput = () => note(`${each.id} ${each.type === "checkbox" ? each.checked : each.value}`);
  }
  rich.oninput = () => note(`rich ${rich.textContent}`);
  text.onkeydown = ({ key, ctrlKey }) => { if (ctrlKey && key === "A") note("Control+A"); };
  form.onsubmit = (event) => { event.preventDefault(); note(`sent ${field.value}`); };
  over.onmouseenter = () => note("hovered");
  drag.ondragstart = ({ dataTransfer }) => dataTransfer.setData("text/plain", "payload");
  drop.ondragover = (event) => event.preventDefault();
  drop.ondrop = (event) => {
    event.preventDefault();
    note(`dropped ${event.dataTransfer.getData("text/plain")}`);
  };
  knob.onkeydown = ({ key }) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[key] ?? 0;
    knob.ariaValueNow = Number(knob.ariaValueNow) + by;
    note(`knob ${knob.ariaValueNow}`);
  };
</script>
"""

# Name of a control, action, value, and the last that the page notes.
ACTS: list[tuple[str, str, str | None, str | None]] = [
    ("Press me", "click", None, "clicked"),
    ("Press me", "double_click", None, "twice"),
    ("Text", "type", "Hi", "text Hi"),
    ("Text", "type", " you", "text Hi you"),
    ("Text", "press", "Control+A", "Control+A"),
    ("Text", "clear", None, "text "),
    ("Area", "type", "a\nb", "area a\nb"),
    ("Rich", "type", "def", "rich abcdef"),
    ("Rich", "clear", None, "rich "),
    ("Tick", "check", None, "tick true"),
    ("Tick", "check", None, None),
    ("Tick", "uncheck", None, "tick false"),
    ("Range", "set", "30", "range 30"),
    ("Day", "set", "2026-01-02", "day 2026-01-02"),
    ("Hue", "set", "#ff0000", "hue #ff0000"),
    ("Count", "set", "12", "count 12"),
    ("Size", "select", "large", "size large"),
    ("Quiet", "select", "two", None),
    ("Field", "type", "yes", "field yes"),
    ("Field", "press", "Enter", "sent yes"),
    ("Go", "submit", None, "sent yes"),
    ("Drag", "drag_to", "Drop", "dropped payload"),
    ("Over", "hover", None, "hovered"),
    ("Knob", "set", "5", "knob 5"),
    ("Over", "scroll_into_view", None, None),
]

# Name of a control, action, value, and what is wrong with that.
MISFITS: list[tuple[str, str, str | None, str]] = [
    ("Range", "set", "loud", 'slider "Range" cannot have the value loud'),
    ("Day", "set", "nonsense", 'date "Day" cannot have the value nonsense'),
    ("Size", "select", "huge", 'combobox "Size" has no option huge'),
    ("Press me", "type", "x", 'Nothing can be typed into button "Press me"'),
    ("Press me", "check", None, 'button "Press me" cannot be checked'),
    ("Text", "press", "NoSuchKey", "NoSuchKey"),
    ("Over", "submit", None, 'clickable "Over" is in no form'),
    ("Text", "upload", "x", "A model cannot give a View files: only its user can choose some"),
]


async def use_controls(view: Driven, noted: Callable[[], Awaitable[list[str]]]) -> None:
    """Do all of that, and compare what the page has noted, and what it says is wrong."""
    named = {n["name"]: n["ref"] for n in (await view.drive("look"))["nodes"] if "ref" in n}
    for name, action, value, last in ACTS:
        given = named[value] if action == "drag_to" and value else value
        done = await view.act(named[name], action, given)
        assert done.get("done") is True, (name, action, done)
        assert (await noted() or [None])[-1] == last, (name, action)
        assert done["ignored"] is False, (name, action)
    for name, action, value, wrong in MISFITS:
        done = await view.act(named[name], action, value)
        assert done["problem"] == "unfit", (name, action, done)
        assert wrong in done["detail"]
        assert await noted() == [], (name, action)
    assert (await view.act(named["Idle"], "click"))["ignored"] is True
