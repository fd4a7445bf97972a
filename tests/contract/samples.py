"""The samples of the documents in Python, line by line, and what they take for granted.

The originals are beside the tests of `transom.js` and run there as they stand.
"""

import json
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import MCPServer

from transom import App, ProtocolError
from transom.channel import Channel
from transom.server import Views, register_app_tool

TOOLS: dict[str, Any] = {"tools": {"listChanged": True}}


class World:
    """What is around a sample: an editor, a form, a player. The page of a sample has the same."""

    def __init__(self) -> None:
        self.selection = ""
        self.on_selection: Callable[[], Any] = lambda: None
        self.on_dirty: Callable[[], Any] = lambda: None
        self.on_queue: Callable[[list[str]], Any] = lambda _: None
        self.texts: list[str] = []
        self.tracks = ["one", "two"]
        self.plays: list[str] = []

    def written(self) -> list[str]:
        return self.texts

    def select(self) -> Any:
        self.selection = "Some words to select."
        return self.on_selection()

    def deselect(self) -> Any:
        self.selection = ""
        return self.on_selection()

    def dirty(self) -> Any:
        return self.on_dirty()

    def played(self) -> list[str]:
        return self.plays

    def stock(self, tracks: Any) -> None:
        self.tracks = tracks

    def enqueue(self, tracks: list[str]) -> Any:
        return self.on_queue(tracks)


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


async def end_to_end(page: World, channel: Channel) -> None:
    app = App("DocEditor", "1.0.0", capabilities=TOOLS)

    # Static handler for tools known up front
    @app.on_call_tool
    async def call(name: str) -> dict[str, Any]:
        if name == "get-selection":
            return text(page.selection)
        raise ProtocolError(-32603, f"Unknown tool: {name}")

    @app.on_list_tools
    async def tools() -> dict[str, Any]:
        return {
            "tools": [
                {
                    "name": "get-selection",
                    "description": "Read the user's current selection",
                    "inputSchema": {"type": "object"},
                },
            ],
        }

    # Dynamic tool added later from UI state
    @app.tool(name="insert-text")
    def insert(text: str) -> dict[str, Any]:
        """Insert text at the cursor."""
        page.texts.append(text)
        return {"content": [{"type": "text", "text": "Inserted"}]}

    await app.connect(channel)
    await app.send_tool_list_changed()  # announce the dynamic tool


async def static_list(page: World, channel: Channel) -> None:
    app = App("MyApp", "1.0.0", capabilities=TOOLS)

    @app.on_list_tools
    async def tools() -> dict[str, Any]:
        return {
            "tools": [
                {
                    "name": "get-selection",
                    "description": "Return the user's current text selection",
                    "inputSchema": {"type": "object"},
                },
                {
                    "name": "insert-text",
                    "description": "Insert text at the current cursor position",
                    "inputSchema": {
                        "type": "object",
                        "properties": {"text": {"type": "string"}},
                        "required": ["text"],
                    },
                },
            ],
        }

    @app.on_call_tool
    async def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        match name:
            case "get-selection":
                return text(page.selection)
            case "insert-text":
                page.texts.append(arguments["text"])
                return text("Inserted")
            case _:
                raise RuntimeError(f"Unknown tool: {name}")

    await app.connect(channel)


def names_only(*, definitions: bool) -> Callable[[World, Channel], Any]:
    async def start(page: World, channel: Channel) -> None:
        app = App("MyApp", "1.0.0", capabilities=TOOLS)

        @app.on_list_tools
        async def tools() -> dict[str, Any]:
            names = ["get-selection", "format-text"]
            schema = {"type": "object"}
            defined = [{"name": name, "inputSchema": schema} for name in names]
            return {"tools": defined if definitions else names}

        @app.on_call_tool
        async def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
            match name:
                case "get-selection":
                    return text("selected")
                case "format-text":
                    return text('{"bold":true}' if arguments == {"bold": True} else "{}")
                case _:
                    raise RuntimeError(f"Unknown tool: {name}")

        await app.connect(channel)

    return start


async def selection(page: World, channel: Channel) -> None:
    app = App("MyApp", "1.0.0", capabilities=TOOLS)
    has_selection = False

    @app.on_list_tools
    async def tools() -> dict[str, Any]:
        tools = [{"name": "format-text", "inputSchema": {"type": "object"}}]
        if has_selection:
            tools.append({"name": "get-selection", "inputSchema": {"type": "object"}})
        return {"tools": tools}

    async def selection_change() -> None:
        nonlocal has_selection
        new_has_selection = bool(page.selection)
        if new_has_selection != has_selection:
            has_selection = new_has_selection
            # Notify the host to re-query the tool list
            await app.send_tool_list_changed()

    page.on_selection = selection_change
    await app.connect(channel)


async def errors(page: World, channel: Channel) -> None:
    app = App("MyApp", "1.0.0", capabilities=TOOLS)

    @app.on_call_tool
    async def call(name: str) -> dict[str, Any] | None:
        if name == "submit-form":
            return {**text("Form has validation errors"), "isError": True}
        return None

    @app.on_list_tools
    async def tools() -> dict[str, Any]:
        return {"tools": [{"name": "submit-form", "inputSchema": {"type": "object"}}]}

    await app.connect(channel)


async def dynamic(page: World, channel: Channel) -> None:
    app = App("MyApp", "1.0.0", capabilities=TOOLS)

    def insert(text: str) -> dict[str, Any]:
        page.texts.append(text)
        return {"content": [{"type": "text", "text": "Inserted"}]}

    app.register_tool(
        "insert-text", insert, description="Insert text at the current cursor position"
    )
    save = app.register_tool("save", lambda: {"content": []}, description="Save changes")
    save.disable()  # hidden until there are unsaved changes

    async def dirty() -> None:
        save.enable()
        await app.send_tool_list_changed()

    page.on_dirty = dirty
    app.register_tool(
        "refresh",
        lambda: text("refreshed"),
        description="Reload data — UI only",
        meta={"ui": {"visibility": ["app"]}},
    )
    await app.connect(channel)


async def webmcp(page: World, channel: Channel) -> None:
    app = App("music", "1")

    def play_track(id: str) -> None:
        page.plays.append(id)

    app.register_tool(
        "play_track",
        play_track,
        description="Play a track from the user's library.",
        input_schema=lambda: {
            "type": "object",
            "properties": {"id": {"type": "string", "enum": list(page.tracks)}},
            "required": ["id"],
        },
    )
    app.register_tool(
        "remove_from_queue",
        lambda **_: None,
        description="Remove a track from the playback queue.",
        enabled=False,  # queue empty at boot
        input_schema={"type": "object"},
    )
    page.on_queue = lambda q: app.update_tool("remove_from_queue", disabled=len(q) == 0)
    await app.connect(channel)


HANDLES = """
  const schema = (name, more) => ({
    type: "object", properties: { [name]: { type: "string", ...more } }, required: [name],
  });
  const app = new App({ name: "handles", version: "1" });
  const echo = app.registerTool(
    "echo",
    { description: "Echo", inputSchema: schema("text"), annotations: { readOnlyHint: true } },
    (given) => ({ content: [{ type: "text", text: "echoed" }], structuredContent: given }),
  );
  const register = () => app.registerTool("plain", { description: "Plain" }, () => "plain");
  let plain = register();
  Object.assign(globalThis, {
    rename: () => echo.update({
      name: "say", description: "Say", inputSchema: schema("words"), annotations: {},
    }),
    disable: () => echo.disable("not now"),
    enable: () => echo.enable(),
    remove: () => echo.remove(),
    fetched: (ids) => app.updateTool("plain", { inputSchema: schema("id", { enum: ids }) }),
    hide: () => plain.disable("hidden"),
    unhide: () => plain.enable(),
    unregister: () => plain.remove(),
    again: () => { plain = register(); },
  });
  await app.connect();
"""
"""The methods of a handle, for a user to call."""


async def handles(page: Any, channel: Channel) -> None:
    def schema(name: str, **more: Any) -> dict[str, Any]:
        properties = {name: {"type": "string", **more}}
        return {"type": "object", "properties": properties, "required": [name]}

    app = App("handles", "1")
    echo = app.register_tool(
        "echo",
        lambda **given: {**text("echoed"), "structuredContent": given},
        description="Echo",
        input_schema=schema("text"),
        annotations={"readOnlyHint": True},
    )

    def register() -> None:
        plain = app.register_tool("plain", lambda **_: "plain", description="Plain")
        page.hide = lambda: plain.disable("hidden")
        page.unhide = plain.enable
        page.unregister = plain.remove

    register()
    page.again = register
    page.rename = lambda: echo.update(
        name="say", description="Say", input_schema=schema("words"), annotations={}
    )
    page.disable = lambda: echo.disable("not now")
    page.enable = echo.enable
    page.remove = echo.remove
    page.fetched = lambda ids: app.update_tool("plain", input_schema=schema("id", enum=ids))
    await app.connect(channel)


STAYS = """
  const app = new App({ name: "stays", version: "1" });
  app.onerror = () => {};
  app.registerTool("stay", {}, async () => `${await app.requestPin("playing music")}`);
  app.registerTool("fail", {}, () => { throw new Error("a secret of the page"); });
  await app.connect();
"""
"""A View that wishes to stay open, and one of whose tools fails."""


async def stays(page: World, channel: Channel) -> None:
    app = App("stays", "1")
    app.on_error = lambda _: None

    @app.tool
    async def stay() -> str:
        return "true" if await app.request_pin("playing music") else "false"

    @app.tool
    def fail() -> None:
        raise RuntimeError("a secret of the page")

    await app.connect(channel)


ORDERS = """
  const app = new App({ name: "orders", version: "1" });
  const inputSchema = { type: "object", properties: { query: { type: "string" } } };
  const ask = (name, given) =>
    app.callServerTool({ name, arguments: given }).catch((error) => `refused: ${error.message}`);
  app.registerTool("reload", { inputSchema }, (given) => ask("refresh-orders", given));
  app.registerTool("count", {}, () => ask("count-orders", {}));
  await app.connect();
"""
"""A View that asks its server: what a helper is for, and what is not for it."""


async def orders(page: World, channel: Channel) -> None:
    app = App("orders", "1")

    async def ask(name: str, arguments: dict[str, Any]) -> object:
        try:
            return await app.call_server_tool(name, arguments)
        except ProtocolError as error:
            return f"refused: {error}"

    @app.tool
    async def reload(query: str) -> object:
        return await ask("refresh-orders", {"query": query})

    @app.tool
    async def count() -> object:
        return await ask("count-orders", {})

    await app.connect(channel)


def orders_server(html: str) -> MCPServer:
    """The document's server: a tool that opens, a helper of the View, a plain tool."""
    views = Views()
    data = {"ada": ["o1", "o2"], "bob": ["o3"]}

    async def search_orders(query: str) -> dict[str, Any]:
        return {"orders": data.get(query, [])}

    @views.tool(opens=views.add("ui://samples/page.html", html=html))
    def open_sample() -> str:
        """Show orders."""
        return "open"

    server = MCPServer("orders", extensions=[views])

    @server.tool(name="count-orders")
    def count_orders() -> int:
        """Count orders."""
        return 3

    async def refresh(query):
        result = await search_orders(query)
        return {
            "content": [{"type": "text", "text": json.dumps(result)}],
            "structuredContent": result,
        }

    register_app_tool(
        server,
        "refresh-orders",
        refresh,
        description="Refresh order data for the app UI.",
        input_schema={
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
        meta={"ui": {"visibility": ["app"]}},
    )
    return server
