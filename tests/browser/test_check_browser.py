"""`transom check --browser`, from the command line, in real Chromium."""

import json
from pathlib import Path

import pytest

from tests.cli.running import transom

pytestmark = pytest.mark.processes

BROKEN = '''
from mcp.server import MCPServer
from transom.server import Csp, Views

views = Views()
silent = views.add("ui://broken/silent.html", prefers_border=True,
    html="<!doctype html><title>Silent</title><script>throw new Error('at once')</script>")
page = """<!doctype html><title>Chatty</title><script>
const say = (m) => parent.postMessage({ jsonrpc: "2.0", ...m }, "*");
addEventListener("message", ({ data }) => {
  if (data.id === 0) {
    say({ method: "ui/notifications/initialized" });
    say({ id: 1, method: "tools/call", params: { name: "for_the_model", arguments: {} } });
    fetch("https://undeclared.example/x").catch(() => {});
  } else if (data.method === "tools/list") {
    say({ id: data.id, error: { code: -32601, message: "no" } });
  } else if (data.method && data.id !== undefined) say({ id: data.id, result: {} });
});
say({ id: 0, method: "ui/initialize", params: { protocolVersion: "2026-01-26",
  appInfo: { name: "chatty", version: "1" }, appCapabilities: { tools: {} } } });
</script>"""
chatty = views.add("ui://broken/chatty.html", html=page, prefers_border=True)
busy = views.add("ui://broken/busy.html", prefers_border=True,
    csp=Csp(connect=["https://api.example.com", "https://unused.example.com"]),
    html="""<!doctype html><title>Busy</title><script>
const say = (m) => parent.postMessage({ jsonrpc: "2.0", ...m }, "*");
const tools = Array.from({ length: 51 }, (_, n) => ({ name: `tool_${n}`,
  inputSchema: { type: "object", properties: { n: { type: "integer" } } } }));
addEventListener("message", ({ data }) => {
  if (data.id === 0) {
    say({ method: "ui/notifications/initialized" });
    fetch("https://" + "api." + "example.com/x").catch(() => {});
    console.warn('[ext-apps] "toolresult" handler registered after connect() completed');
  } else if (data.method === "tools/list") say({ id: data.id, result: { tools } });
  else if (data.method === "tools/call")
    say({ id: data.id, error: { code: -32601, message: "no" } });
  else if (data.method && data.id !== undefined) say({ id: data.id, result: {} });
});
say({ id: 0, method: "ui/initialize", params: { protocolVersion: "2026-01-26",
  appInfo: { name: "busy", version: "1" }, appCapabilities: { tools: {} } } });
</script>""")

@views.tool(opens=busy, annotations={"readOnlyHint": True, "openWorldHint": False}, title="D")
def show_busy() -> dict[str, int]:
    """Show a View that has too many tools and answers no call."""
    return {"a": 1}

@views.tool(opens=silent, annotations={"readOnlyHint": True, "openWorldHint": False}, title="A")
def show_silent() -> dict[str, int]:
    """Show a View that says nothing."""
    return {"a": 1}

@views.tool(opens=chatty, annotations={"readOnlyHint": True, "openWorldHint": False}, title="B")
def show_chatty() -> dict[str, int]:
    """Show a View that does what it must not."""
    return {"a": 1}

thrower = views.add("ui://broken/thrower.html", prefers_border=True,
    html="""<!doctype html><title>Thrower</title><script type="module">
import { App } from "transom";
const app = new App({ name: "thrower", version: "1" });
const inputSchema = { type: "object", properties: { n: { type: "int" } } };
app.registerTool("go", { inputSchema }, () => "gone");
app.ontoolinput = () => { document.querySelector("nav").textContent = "x"; };
await app.connect();
</script>""")

@views.tool(opens=thrower, visibility=["model"], annotations={"readOnlyHint": True}, title="C")
def for_the_model() -> dict[str, int]:
    """Answer the model only."""
    return {"a": 1}

server = MCPServer("broken", extensions=[views])
'''


@pytest.mark.timeout(240)
def test_what_views_do_wrong_is_found(tmp_path: Path) -> None:
    server = tmp_path / "broken.py"
    server.write_text(BROKEN)
    options = ("--browser", "--format", "json", "--select", "V,P5,P10", "--timeout", "60")
    ran = transom("check", str(server), *options)
    report = json.loads(ran.stdout)
    told = {(found["rule"], found["subject"].rpartition("/")[2]) for found in report["findings"]}
    assert ("V1", "silent.html") in told
    assert ("V4", "silent.html") in told
    assert ("V3", "chatty.html") in told
    assert ("V5", "chatty.html") in told
    assert ("P5", "chatty.html") in told
    assert ("V1", "chatty.html") not in told
    assert {rule for rule, page in told if page == "busy.html"} == {"V2", "V5", "V7", "P10"}
    assert [found["message"] for found in report["findings"] if found["rule"] == "P10"] == [
        "`ui://broken/busy.html`: `https://unused.example.com` is declared but never used."
    ]
    messages = [found["message"] for found in report["findings"]]
    assert any("App tool `go` cannot be called: " in message for message in messages)
    thrown = "`ui://broken/thrower.html` throws in light: TypeError: Cannot set properties of null"
    assert any(message.startswith(thrown) for message in messages)
    assert ran.returncode == 1
