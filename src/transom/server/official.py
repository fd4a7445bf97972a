"""Views on the official SDK's `MCPServer`.

An SDK extension may add tools and resources and intercept calls, but not lists, and lists must
depend on the client. So a middleware changes the lists. The SDK calls its middleware provisional:
no other module uses it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, cast

import mcp.types as mcp
import pydantic
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resources import FunctionResource
from mcp.shared.exceptions import MCPError
from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

from transom.errors import INVALID_PARAMS
from transom.protocol.messages import UI_EXTENSION, VIEW_MIME_TYPE
from transom.server.declare import (
    hidden,
    is_plain,
    is_ui_resource,
    model_only,
    unknown_tool,
    without_view,
)
from transom.server.resource import ViewResource
from transom.server.tools import AppTool, without_circles

# Where the lists of pages have their entries, and an entry its URI.
_PAGES = {
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}
_FRAMES_UP = 12


class OfficialGate:
    """The middleware that makes the lists fit the client."""

    def __init__(self) -> None:
        self.declared: dict[str, AppTool] = {}
        """Tools that were declared for Views."""
        self.assume_views = False

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Handle a request, and leave out of its answer what the client cannot use."""
        plain = is_plain(ctx.session.client_capabilities, self.assume_views)
        if ctx.method == "tools/call" and plain:
            name = (ctx.params or {}).get("name")
            tool = self.declared.get(name) if isinstance(name, str) else None
            if tool is not None and hidden(tool.meta):
                raise MCPError(INVALID_PARAMS, unknown_tool(tool.name))
        answer = await call_next(ctx)
        if ctx.method == "server/discover":
            return _with_extension(_wire(answer))
        if ctx.method != "tools/list" and ctx.method not in _PAGES:
            return answer
        result = _wire(answer)
        if result.get("cacheScope") == "public":
            # The answer depends on the client now: no cache may give it to another one.
            result["cacheScope"] = "private"
        if ctx.method == "tools/list":
            result["tools"] = [
                self._shown(entry, plain=plain)
                for entry in result.get("tools", [])
                if not (plain and hidden(entry.get("_meta")))
            ]
        elif plain:
            key, uri = _PAGES[ctx.method]
            entries = result.get(key, [])
            result[key] = [entry for entry in entries if not is_ui_resource(entry.get(uri))]
        return result

    def _shown(self, entry: dict[str, Any], *, plain: bool) -> dict[str, Any]:
        """The entry of a tool, for a client without Views or for one that shows them."""
        shown = {**entry}
        meta, tool = shown.pop("_meta", None), self.declared.get(entry["name"])
        if tool is not None and tool.input is not None:
            # The SDK has made a schema of its own, of the function's signature.
            shown["inputSchema"] = tool.input.schema.json_schema
        if plain:
            meta = without_view(meta)
        elif tool is None:
            meta = model_only(meta)
        return shown if meta is None else {**shown, "_meta": meta}


def _with_extension(result: dict[str, Any]) -> dict[str, Any]:
    capabilities = cast("dict[str, Any]", result.get("capabilities") or {})
    known = cast("dict[str, Any]", capabilities.get("extensions") or {})
    extensions: dict[str, Any] = {UI_EXTENSION: {}, **known}
    return {**result, "capabilities": {**capabilities, "extensions": extensions}}


def _wire(answer: HandlerResult) -> dict[str, Any]:
    if isinstance(answer, pydantic.BaseModel):
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dict(answer or {})


class OfficialServer:
    """An `MCPServer` that Views are put on."""

    def __init__(self, server: MCPServer[Any], *, assume_views: bool = False) -> None:
        """Add the gate to the server's middleware, unless it is there already."""
        self.server = server
        self._gate = _gate_of(server)
        self._gate.assume_views |= assume_views

    def add_tool(self, tool: AppTool) -> None:
        """Register a tool."""
        returns: Any = mcp.CallToolResult
        if tool.output.schema is not None:
            returns = Annotated[returns, _model_of(without_circles(tool.output.schema))]
        # The SDK hides what an unexpected exception says, and logs it.
        function = tool.bound(returns, passed=(Exception,))
        self.server.add_tool(function, meta=tool.meta or None, **tool.keywords)
        self._gate.declared[tool.name] = tool

    def add_resource(self, resource: ViewResource) -> None:
        """Register a View's page."""
        self.server.add_resource(
            FunctionResource(
                uri=resource.uri,
                name=resource.name,
                title=resource.title,
                description=resource.description,
                mime_type=VIEW_MIME_TYPE,
                meta=resource.meta,
                fn=resource.read,
            )
        )


def _gate_of(server: MCPServer[Any]) -> OfficialGate:
    chain = cast("list[object]", server.middleware)
    for entry in chain:
        if isinstance(entry, OfficialGate):
            return entry
    made = OfficialGate()
    # Behind the SDK's own and before the user's, so that a cache of theirs stays inside.
    inner = (n for n, entry in enumerate(chain) if not type(entry).__module__.startswith("mcp."))
    chain.insert(next(inner, len(chain)), made)
    return made


def _model_of(schema: Mapping[str, Any]) -> type[pydantic.BaseModel]:
    # The SDK takes an output schema only as a type: this one reports the given schema.
    class Structured(pydantic.RootModel[dict[str, Any]]):
        json_schema: ClassVar[Mapping[str, Any]] = schema

        @classmethod
        def __get_pydantic_json_schema__(
            cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
        ) -> dict[str, Any]:
            return dict(cls.json_schema)

    return Structured


def consuming_server() -> MCPServer[Any] | None:
    """Return the server that calls an extension for its tools, or None."""
    # The SDK gives an extension neither the server nor its lists, and middleware, which alone can
    # change them, is the server's: only the stack knows it (docs/decisions.md). `Views.install` is
    # given the server.
    frame = inspect.currentframe()
    for _ in range(_FRAMES_UP):
        frame = frame.f_back if frame is not None else None
        candidate = frame.f_locals.get("self") if frame is not None else None
        if isinstance(candidate, MCPServer):
            return cast("MCPServer[Any]", candidate)
    return None
