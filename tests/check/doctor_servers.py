"""Broken servers for `transom doctor`, each with the cause that has to be named first."""

from dataclasses import dataclass, field
from typing import Any

from tests.check.fake import URI, Server, error, page, result, tool
from transom.server.resource import inline_transom

SHOW = tool("show_orders", _meta={"ui": {"resourceUri": URI}})

SCRIPT = """
const say = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
const on = {};
const connect = (more = {}) => say({ id: "hello", method: "ui/initialize", params: {
  protocolVersion: "2026-01-26", appInfo: { name: "orders", version: "1" }, appCapabilities: {},
  ...more } });
addEventListener("message", ({ data }) => {
  if (data.id === "hello") { say({ method: "ui/notifications/initialized" }); on.ready?.(); }
  else if (data.method && data.id !== undefined) say({ id: data.id, result: {} });
  on[data.method]?.(data.params);
});
const show = (text) => { document.querySelector("p").textContent = text; };
const size = (height) => say({ method: "ui/notifications/size-changed", params: { height } });
on["ui/notifications/tool-result"] = ({ structuredContent: { count } }) => show(`${count} orders`);
"""
"""What a View needs at least, and shows a number of orders."""
WITHOUT_RESULT = SCRIPT[: SCRIPT.index('on["ui/notifications/tool-result')]


def html(
    script: str = "connect();", *, body: str = "<p>Orders</p>", head: str = "", app: str = SCRIPT
) -> str:
    return (
        f"<!doctype html>\n<html><head><title>Orders</title>{head}</head>\n<body>{body}\n"
        f"<script>{app}{script}\n</script></body></html>"
    )


def shows(text: Any, ui: Any = None, *, tools: Any = None, **changes: Any) -> Server:
    """A server whose View has this page."""
    return Server(tools=tools or [SHOW], pages={URI: page(text=text, ui=ui, **changes)})


HEALTHY = shows(html())


@dataclass
class Broken:
    """`cause` has to be the first, `says` in what is said of it, `where` on the line it names."""

    cause: str
    server: Server
    says: str = ""
    host: str = "plain"
    where: str = ""
    tool: str | None = None
    also: str = field(default="")
    """What else a case of the same cause is about."""


def linked(**meta: Any) -> Server:
    return Server(tools=[tool("show_orders", _meta=meta)])


def calls(name: str, *tools: Any) -> Server:
    """A View that calls a tool of its server as soon as it is ready."""
    params = f'{{ name: "{name}", arguments: {{}} }}'
    script = f'on.ready = () => say({{ id: 1, method: "tools/call", params: {params} }});connect();'
    return shows(html(script), tools=[SHOW, *tools])


def when_ready(script: str, **options: Any) -> str:
    return html(f"on.ready = () => {{ {script} }};\nconnect();", **options)


class TooLong(Server):
    """Its page is longer than what a connection takes."""

    def read(self, uri: str) -> Any:
        return error(-32000, "The answer is longer than 32 MB")


class Failing(Server):
    """It gets its page from another program, which is not there."""

    def read(self, uri: str) -> Any:
        return error(-32603, "Vite is not there")


# What keeps it from opening: no browser is needed.
UNOPENED = [
    Broken("no-link", Server(tools=[tool("count_orders")]), "No tool links a View"),
    Broken("no-link", linked(ui={"resource_uri": URI}), "_meta.ui.resource_uri", also="misspelled"),
    Broken(
        "no-link",
        Server(tools=[SHOW, tool("count")]),
        "Tool count links no View",
        tool="count",
        also="named",
    ),
    Broken("openai-link", linked(**{"openai/outputTemplate": URI}), f'resourceUri = "{URI}"'),
    Broken(
        "link-not-ui", linked(ui={"resourceUri": "https://example.com/x"}), "https://example.com"
    ),
    Broken(
        "uri-mismatch",
        Server(tools=[tool("show", _meta={"ui": {"resourceUri": "ui://orders/List.html"}})]),
        f"the server's page is {URI}",
    ),
    Broken("resource-missing", Server(tools=[SHOW], pages={URI: {"contents": []}}), "no contents"),
    Broken(
        "resource-missing",
        Server(tools=[tool("show", _meta={"ui": {"resourceUri": "ui://other/x"}})]),
        "Resource not found",
        also="error",
    ),
    Broken("page-failed", Failing(tools=[SHOW]), "resources/read of ui://orders/list.html: Vite"),
    Broken("mime-type", shows(html(), mimeType="text/html"), "has the type text/html,"),
    Broken("mime-type", shows(html(), mimeType="text/html+skybridge"), "skybridge", also="openai"),
    Broken("page-empty", shows("  \n")),
    Broken("blob-unreadable", shows(..., blob="not base64!")),
    Broken("page-too-large", shows("<!doctype html>" + "x" * 20_000_000), "over the limit"),
    Broken("page-too-large", TooLong(tools=[SHOW]), "longer than 32 MB", also="for an answer"),
]

# What is seen in a browser.
SHOWN = [
    Broken(
        "app-only",
        shows(
            html(),
            tools=[tool("show_orders", _meta={"ui": {"resourceUri": URI, "visibility": ["app"]}})],
        ),
        "Only Views may call show_orders",
    ),
    # --- the handshake never begins
    Broken(
        "script-error",
        shows(html("\nrender();\nconnect();")),
        "render is not defined",
        where="render();",
    ),
    Broken(
        "syntax-error", shows(html("\nconst = 1; connect();")), "SyntaxError", where="const = 1"
    ),
    Broken("page-truncated", shows(html()[:-30]), "inside <script>", where="<script>"),
    Broken(
        "bare-import",
        shows(
            '<!doctype html><p>Orders</p>\n<script type="module">\n'
            'import { App } from "@modelcontextprotocol/ext-apps";\nnew App({}).connect();</script>'
        ),
        "@modelcontextprotocol/ext-apps",
        where="import { App }",
    ),
    Broken(
        "transom-import",
        shows(
            '<!doctype html><p>Orders</p>\n<script type="module">\n'
            'import { App } from "transom";\nnew App({}).connect();</script>'
        ),
        "views.add",
        where="import { App }",
    ),
    Broken(
        "csp-script",
        shows(
            '<!doctype html><p>Orders</p>\n<script type="module">\n'
            'import { App } from "https://cdn.example.com/app.js";\nnew App({}).connect();</script>'
        ),
        'Csp(resource=["https://cdn.example.com"])',
        where="import { App }",
    ),
    Broken(
        "file-missing",
        shows('<!doctype html><p>Orders</p>\n<script src="./app.js"></script>'),
        "app.js",
        where="./app.js",
    ),
    Broken(
        "script-missing",
        shows(
            '<!doctype html><p>Orders</p>\n<script src="http://127.0.0.1:9/app.js"></script>\n'
            "<script>new App();</script>",
            {"csp": {"resourceDomains": ["http://127.0.0.1:9"]}},
        ),
        "http://127.0.0.1:9/app.js",
        where="/app.js",
    ),
    Broken(
        "page-not-built",
        shows(
            '<!doctype html><div id="root"></div>\n'
            '<script type="module" src="/src/main.tsx"></script>'
        ),
        "src/main.tsx",
        where="main.tsx",
    ),
    Broken("no-script", shows("<!doctype html><h1>Orders</h1>"), "has no script"),
    Broken(
        "never-connects",
        shows("<!doctype html><p>Orders</p><script>\nclass App {}\nnew App();</script>"),
        where="new App()",
    ),
    Broken(
        "never-connects",
        shows(
            inline_transom(
                '<!doctype html><p>Orders</p>\n<script type="module">\n'
                'import { App } from "transom";\nconst app = new App({});</script>'
            )
        ),
        where="const app = new App({})",
        also="with transom.js in the page",
    ),
    Broken(
        "openai-api",
        shows(html("\nshow(window.openai.toolOutput.count);\nconnect();")),
        where="window.openai",
    ),
    Broken(
        "wrong-origin",
        shows(html(app=SCRIPT.replace('"*"', '"https://claude.ai"'))),
        "https://claude.ai",
        where="https://claude.ai",
    ),
    Broken(
        "wrong-window",
        shows(html(app=SCRIPT.replace("parent.post", "window.top.post"))),
        "window.top.postMessage",
        where="window.top",
    ),
    Broken(
        "not-json-rpc",
        shows(html('parent.postMessage({ type: "ui-lifecycle-iframe-ready" }, "*");')),
        where="postMessage",
    ),
    Broken(
        "mcp-initialize",
        shows(html(app=SCRIPT.replace('"ui/initialize"', '"initialize"'))),
        "handshake of MCP",
        where='"initialize"',
    ),
    Broken("too-early", shows(html("size(100);")), "size-changed"),
    Broken("page-hangs", shows(html("for (;;) {}"))),
    Broken(
        "page-left",
        shows(html('location.href = "https://orders.example.com/";')),
        "https://orders.example.com",
        where="location.href",
    ),
    Broken(
        "handshake-not-begun", shows(html("if (window.never) connect(); // new App().connect()"))
    ),
    # --- begins, and is not finished
    Broken("initialize-refused", shows(html("connect({ appInfo: 1 });")), "appInfo"),
    Broken(
        "protocol-version",
        shows(
            html(
                'connect({ protocolVersion: "2025-06-18" });',
                app=SCRIPT.replace(
                    'data.id === "hello"', 'data.result?.protocolVersion === "2025-06-18"'
                ),
            )
        ),
        "2025-06-18",
    ),
    Broken(
        "initialized-missing",
        shows(html(app=SCRIPT.replace('say({ method: "ui/notifications/initialized" });', ""))),
    ),
    # --- errors once it is connected
    Broken(
        "tool-failed",
        Server(
            tools=[SHOW],
            pages={URI: page(text=html())},
            results={
                "show_orders": {
                    "content": [{"type": "text", "text": "no database"}],
                    "isError": True,
                }
            },
        ),
        "no database",
    ),
    Broken(
        "page-error",
        shows(html('\non["ui/notifications/tool-result"] = () => draw();\nconnect();')),
        "draw is not defined",
        where="draw()",
    ),
    Broken(
        "unhandled-rejection",
        shows(when_ready('Promise.reject(new Error("no orders"))')),
        "no orders",
    ),
    Broken(
        "no-structured-content",
        Server(
            tools=[SHOW],
            pages={URI: page(text=html())},
            results={"show_orders": result(structuredContent=...)},
        ),
        "the result has content",
    ),
    Broken(
        "call-denied",
        calls("delete_all", tool("delete_all", _meta={"ui": {"visibility": ["model"]}})),
        "delete_all",
        where="delete_all",
    ),
    Broken("call-unknown", calls("list_orders"), "the server has show_orders"),
    Broken(
        "call-failed",
        Server(
            tools=[SHOW, tool("page")],
            pages=calls("page").pages,
            results={"page": {"error": {"code": -32603, "message": "disk full"}}},
        ),
        "disk full",
    ),
    Broken(
        "late-handler",
        shows(
            when_ready(
                'console.warn(\'[ext-apps] "toolresult" handler registered after connect() '
                "completed')"
            )
        ),
    ),
    Broken(
        "late-handler",
        shows(
            html(
                """on["ui/notifications/tool-input"] = () => setTimeout(() => {
  on["ui/notifications/tool-result"] = () => { document.body.textContent = "two orders"; };
}, 300);
connect();""",
                body="<p>Loading…</p>",
                app=WITHOUT_RESULT,
            )
        ),
        "changes it: two orders",
        where="tool-result",
        also="whatever the library",
    ),
    Broken(
        "no-result-handler",
        shows(
            html(
                body="<p>Loading…</p>",
                app=WITHOUT_RESULT,
            )
        ),
        "Loading…",
    ),
    Broken(
        "data-not-shown",
        shows(
            html('on["ui/notifications/tool-result"] = () => {};connect();', body="<p>Loading…</p>")
        ),
        "Loading…",
    ),
    Broken(
        "shows-nothing",
        shows(html('on["ui/notifications/tool-result"] = () => {};connect();', body="")),
    ),
    Broken(
        "content-hidden",
        shows(html("connect();", head="<style>p{display:none}</style>")),
        "1 elements",
    ),
    Broken(
        "storage-denied",
        shows(html("\nlocalStorage.orders = 1;\nconnect();")),
        "sandboxed",
        host="inspector",
        where="localStorage.orders",
    ),
    Broken("eval-denied", shows(html('eval("1");connect();')), host="vscode"),
    # --- what its policy blocks
    Broken(
        "csp-connect",
        shows(when_ready('\nfetch("https://api.example.com/orders").catch(() => {})')),
        'connect=["https://api.example.com"]',
        where="api.example.com",
    ),
    Broken(
        "csp-connect",
        shows(html('\nfetch("https://api.example.com/orders").then(connect);')),
        where="api.example.com",
        also="before it connects",
    ),
    Broken(
        "csp-script",
        shows(
            html(
                "\nnew Chart();\nconnect();",
                head='\n<script src="https://cdn.example.com/chart.js"></script>',
            )
        ),
        where="chart.js",
        also="whose name an error says",
    ),
    Broken(
        "csp-img",
        shows(html(body='<p>Orders</p>\n<img src="https://img.example.com/a.png">')),
        "resourceDomains",
        where="img.example.com",
    ),
    Broken(
        "csp-style",
        shows(html(head='\n<link rel="stylesheet" href="https://css.example.com/a.css">')),
        "https://css.example.com",
    ),
    Broken(
        "csp-frame",
        shows(html(body='<p>Orders</p>\n<iframe src="https://map.example.com/"></iframe>')),
        "frameDomains",
    ),
    Broken(
        "csp-entry",
        shows(
            when_ready('fetch("https://api.example.com/").catch(() => {})'),
            {"csp": {"connectDomains": ["api.example.com/*"]}},
        ),
        "api.example.com/*",
    ),
    Broken(
        "insecure-address",
        shows(html(body='<p>Orders</p><img src="http://img.example.com/a.png">')),
        "http://img.example.com",
    ),
    Broken(
        "file-missing",
        shows(html(body='<p>Orders</p>\n<img src="logo.png">')),
        "logo.png",
        where="logo.png",
        also="image",
    ),
    Broken(
        "permission",
        shows(when_ready("navigator.geolocation.getCurrentPosition(() => {}, () => {})")),
        'permissions=["geolocation"]',
    ),
    # --- its size
    Broken(
        "grows",
        shows(
            html(
                "addEventListener('resize', () => size(innerHeight + 8));"
                "on.ready = () => size(300); connect();"
            )
        ),
        "px",
    ),
    Broken("zero-height", shows(html("on.ready = () => size(0);connect();"))),
    Broken(
        "cut-off",
        shows(
            html(
                "on.ready = () => size(200);connect();",
                body='<p>Orders</p><div style="height:900px;background:red"></div>',
                head="<style>\nhtml { height: 200px; overflow: hidden }</style>",
            )
        ),
        "cannot be scrolled to",
        where="overflow: hidden",
    ),
    Broken(
        "never-sized",
        shows(html(body='<p>Orders</p><div style="height:2000px;background:red"></div>')),
        "size-changed",
    ),
    # --- its host
    Broken(
        "taller-than-host",
        shows(
            html(
                "on.ready = () => size(1500);connect();",
                body='<p>Orders</p><div style="height:1400px;background:red"></div>',
                head="<style>body { overflow: hidden }</style>",
            )
        ),
        "In Visual Studio Code a View has 720 px",
        host="vscode",
    ),
    Broken(
        "capability",
        shows(
            when_ready(
                'say({ id: 5, method: "ui/message", params: { role: "user", content: [] } })'
            )
        ),
        "Cursor does not offer",
        host="cursor",
    ),
    Broken(
        "display-mode",
        shows(
            when_ready(
                'say({ id: 5, method: "ui/request-display-mode", params: { mode: "fullscreen" } })'
            )
        ),
        "Cursor does not do",
        host="cursor",
    ),
    Broken(
        "csp-ignored",
        shows(html(), {"csp": {"frameDomains": ["https://map.example.com"]}}),
        "Claude takes no notice of frameDomains",
        host="claude",
    ),
    Broken(
        "permission-not-granted",
        shows(html(), {"permissions": {"camera": {}}}),
        "Goose does not grant camera",
        host="goose",
    ),
]
