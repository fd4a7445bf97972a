"""A page that works, and the same broken in many ways, each with what the kit says about it."""

from typing import NamedTuple

SCRIPT = """
import { App } from "transom";
const app = globalThis.app = new App({ name: "counter", version: "1.0.0" });
let count = 0;
const show = () => { document.querySelector("output").textContent = `${count} so far`; };
app.registerTool("add", { description: "Add.", inputSchema: schema }, ({ n }) => {
  count += n; show(); return `${count}`;
});
app.ontoolresult = (result) => { count = Number(result.content[0].text); show(); };
document.querySelector("button").onclick = async () => {
  const { content } = await app.callServerTool({ name: "next", arguments: { count } });
  count = Number(content[0].text); show();
};
await app.connect();
"""
SCHEMA = (
    'const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };\n'
)
PAGE = (
    "<!doctype html><html><head><script data-transom></script></head>"
    "<body><h1>Counter</h1><output></output><button>Next</button>"
    f'<script type="module">{SCHEMA}{SCRIPT}</script></body></html>'
)
# As on a busy machine: what waits to be drawn, such as the size of the page, waits for a second.
SLOW_FRAMES = """<head><script>
const draw = requestAnimationFrame;
globalThis.requestAnimationFrame = (then) => setTimeout(() => draw(then), 1000);
</script>"""


class Broken(NamedTuple):
    """A way to break the page, and what a failure says then."""

    name: str
    old: str
    new: str
    says: str


BROKEN = [
    Broken("throws_before_it_connects", "let count = 0;", "nothing.at.all;", "nothing is not def"),
    Broken("never_connects", "await app.connect();", "", "it was not initialised within"),
    Broken("throws_later", "await app.connect();", "await app.connect();\nthrow Error('late');",
           "View page-1: error: Error: late (the page, line"),
    Broken("rejects", "await app.connect();",
           "await app.connect();\nPromise.reject(new Error('lost'));",
           "View page-1: rejection: Error: lost"),
    Broken("fetches", "await app.connect();",
           "await app.connect();\nfetch('https://example.com/data').catch(() => {});",
           "View page-1: blocked: connect-src blocked https://example.com/data"),
    Broken("loads_an_image", "</output>", "</output><img src='https://example.com/a.png'>",
           "View page-1: blocked: img-src blocked https://example.com/a.png"),
    Broken("fails_at_its_result", "count = Number(result.content[0].text);", "result.none.text;",
           "View page-1: error: TypeError: Cannot read properties of undefined"),
    Broken("tool_throws", "count += n; show();", "count.none.at(n);",
           "View page-1: tool add: TypeError: Cannot read properties of undefined"),
    Broken("lazy_schema_throws", "inputSchema: schema", "inputSchema: () => none",
           "View page-1: schema add: ReferenceError: none is not defined"),
    Broken("tool_is_missing", 'registerTool("add"', 'registerTool("ad"', "it has: ad"),
    Broken("tool_is_disabled", "await app.connect();",
           "app.updateTool('add', { disabled: true });\nawait app.connect();",
           "View page-1 should have the tools add"),
    Broken("argument_is_renamed", 'required: ["n"]', 'required: ["m"]', "m: is required"),
    Broken("calls_another_tool", 'name: "next"', 'name: "nxt"',
           "View page-1 sent tools/call {'name': 'nxt', 'arguments': {'count': 7}}"),
    Broken("calls_with_other_arguments", "arguments: { count }", "arguments: { cnt: count }",
           "View page-1 sent tools/call {'name': 'next', 'arguments': {'cnt': 7}}"),
    Broken("shows_something_else", "so far", "by now", "3 by now"),
    Broken("button_is_gone", "<button>Next</button>", "<button hidden>Next</button>",
           "get_by_role"),
]  # fmt: skip
SOON = [each for each in BROKEN if each.name in ("throws_later", "fetches", "tool_throws")]
"""Those about which nothing has to be waited for."""
