"""The headers that a message to a streamable HTTP server needs.

Before 2026-07-28 that is the version which `initialize` agreed on. From then on each request says
its version in its `_meta`, and servers want to see in the headers what it asks for, so that
whoever routes it need not read it: the method, the name, and the arguments that a tool's schema
marks with `x-mcp-header`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from transom.servers.envelope import PROTOCOL_KEY

_MAX_PENDING = 1000
_MAX_TOOLS = 10_000


class HttpHeaders:
    """Makes the headers of one connection. It must see every message, both ways."""

    def __init__(self) -> None:
        self._version: str | None = None
        self._pending: dict[RequestId, str] = {}  # the requests whose results matter here
        self._parameters: dict[str, dict[tuple[str, ...], str]] = {}  # by tool: path -> header

    def headers_for(self, message: JSONRPCMessage) -> dict[str, str]:
        """The headers for a message to the server."""
        if not isinstance(message, JSONRPCRequest | JSONRPCNotification):
            return {}  # the transport repeats the last version
        if isinstance(message, JSONRPCRequest) and message.method in ("initialize", "tools/list"):
            while len(self._pending) >= _MAX_PENDING:  # a server need not answer what was cancelled
                del self._pending[next(iter(self._pending))]
            self._pending[message.id] = message.method
        params = message.params or {}
        version = _object(params.get("_meta")).get(PROTOCOL_KEY)
        if isinstance(version, str):
            return self._modern(version, message.method, params)
        return {} if self._version is None else {MCP_PROTOCOL_VERSION_HEADER: self._version}

    def _modern(self, version: str, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        headers = {
            MCP_PROTOCOL_VERSION_HEADER: encode_header_value(version),
            MCP_METHOD_HEADER: encode_header_value(method),
        }
        key = NAME_BEARING_METHODS.get(method)
        name: object = None if key is None else params.get(key)
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
            if method == "tools/call" and name in self._parameters:
                arguments = _object(params.get("arguments"))
                headers |= mcp_param_headers(self._parameters[name], arguments)
        return headers

    def learn(self, message: JSONRPCMessage) -> None:
        """Take from a message of the server's what later headers depend on."""
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id is None:
            return
        method = self._pending.pop(message.id, None)
        if method is None or isinstance(message, JSONRPCError):
            return
        if method == "initialize":
            version: object = message.result.get("protocolVersion")
            self._version = version if isinstance(version, str) else None
        else:
            self._learn_tools(message.result.get("tools"))

    def _learn_tools(self, tools: object) -> None:
        for tool in cast("list[object]", tools) if isinstance(tools, list) else []:
            name: object = _object(tool).get("name")
            schema: object = _object(tool).get("inputSchema")
            if not isinstance(name, str):
                continue
            self._parameters.pop(name, None)
            if len(self._parameters) < _MAX_TOOLS and find_invalid_x_mcp_header(schema) is None:
                marked = x_mcp_header_map(schema)
                if marked:
                    self._parameters[name] = marked


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
