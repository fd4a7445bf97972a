"""A View's requests, and who answers them: the host's handlers, or the View's server.

1. Params are checked before a handler sees them; invalid ones are answered with -32602 and the
   path.
2. A handler of the host answers, or else the server; if there is neither, the answer is -32601. A
   handler takes precedence over the server, but visibility is checked first: a handler does not get
   calls of tools that Views may not call.
3. A handler that returns nothing has accepted the request. False or `Refused` is a refusal,
   answered as `isError: true`. A `ProtocolError` is answered as it is, anything else as "Internal
   error".
4. Links that could run something never reach a handler, files reach it under harmless names.
5. A View is never put into a display mode that it, or the host, did not declare.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import msgspec

from transom.errors import INVALID_PARAMS, METHOD_NOT_FOUND, ProtocolError, Refused
from transom.events import Slot
from transom.host.asking.links import link_refusal
from transom.host.views.downloads import Download, safe_filenames
from transom.host.views.view_context import ViewContext
from transom.host.views.view_server import ViewServer, refusal_json
from transom.protocol import messages as m
from transom.protocol import wire
from transom.protocol.messages import object_json, result_json
from transom.protocol.methods import VIEW, Method
from transom.types import AppCapabilities, EmbeddedResource, HostCapabilities, HostContext

_HANDLERS = {
    "ui/open-link": "on_open_link",
    "ui/download-file": "on_download_file",
    "ui/message": "on_message",
    "ui/update-model-context": "on_update_model_context",
    "sampling/createMessage": "on_create_message",
    "tools/call": "on_call_tool",
    "tools/list": "on_list_tools",
    "resources/list": "on_list_resources",
    "resources/templates/list": "on_list_resource_templates",
    "resources/read": "on_read_resource",
    "prompts/list": "on_list_prompts",
    "transom/request-pin": "on_request_pin",
}

_WIRE_NAMES = {each.name: each.encode_name for each in msgspec.structs.fields(HostCapabilities)}
CAPABILITY_OF = {
    name: _WIRE_NAMES[row.needs] for name, row in VIEW.items() if row.is_request and row.needs
}
"""The capability of its host that a View needs for a request."""

# Capabilities that the server may have in place of a handler, by the request that shows it.
_OF_SERVER = {"serverTools": "tools/call", "serverResources": "resources/read"}
# Capabilities that need a handler, and Transom's own experimental ones.
_BY_HANDLER = {"on_log": "logging"} | {
    _HANDLERS[method]: capability
    for method, capability in CAPABILITY_OF.items()
    if method in _HANDLERS and capability not in _OF_SERVER
}
_OURS = {"on_request_pin": m.PIN, "on_problem": m.PROBLEMS}


class ViewRequests:
    """Answers the requests of one View: by the host's handlers, or by the View's server."""

    def __init__(
        self,
        handlers: Mapping[str, Slot],
        context: HostContext | Mapping[str, Any] | None,
        on_context: Callable[[], object],
        server: ViewServer,
        *,
        host_info: bytes,
        capabilities: bytes | None,
        offers: Collection[str] | None,
        max_files: int,
    ) -> None:
        self.app: AppCapabilities | None = None  # what the View declared that it can do
        self._host_info = host_info
        self._given = capabilities
        self._offers = offers
        self._handlers = handlers
        self.context = ViewContext(context)
        self._on_context = on_context
        self._server = server
        self._max_files = max_files

    def initialize(self, app: AppCapabilities) -> bytes:
        """The answer to `ui/initialize` of a View that declares these capabilities."""
        self.app = app
        return b'{"protocolVersion":%b,"hostInfo":%b,"hostCapabilities":%b,"hostContext":%b}' % (
            wire.encode(m.PROTOCOL_VERSION),
            self._host_info,
            wire.encode(self._capabilities()) if self._given is None else self._given,
            self.context.take_all(),
        )

    def _capabilities(self) -> dict[str, Any]:
        """The host's capabilities, which follow from its handlers and its server."""
        handlers, server = self._handlers, self._server
        # Both say that the View's tools will be used: the draft has not decided on a name yet
        # (ext-apps pull request 656, issue 676).
        found: dict[str, Any] = {name: {"listChanged": True} for name in ("tools", "appTools")}
        for handler, capability in _BY_HANDLER.items():
            if handlers.get(handler):
                found[capability] = {}
        for capability, method in _OF_SERVER.items():
            if server.serves(method) or handlers.get(_HANDLERS[method]):
                announces = server.announces(method.partition("/")[0])
                found[capability] = {"listChanged": True} if announces else {}
        if self._offers is not None:
            found = {name: value for name, value in found.items() if name in self._offers}
        ours: dict[str, Any] = {key: {} for handler, key in _OURS.items() if handlers.get(handler)}
        return {**found, "experimental": ours} if ours else found

    def answer(self, request: wire.Request) -> bytes | Awaitable[bytes]:
        """The answer to a request, or an awaitable of it."""
        method = request.method
        if method == "ping":
            return b"{}"
        row = VIEW.get(method)
        if row is None or not row.is_request or not self._is_offered(method):
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found")
        if method == "ui/request-display-mode":
            return self._request_display_mode(row.read_params(request.params))
        handler = self._handlers.get(_HANDLERS.get(method, ""))
        if not handler and not self._server.serves(method):
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found")
        params = _read(row, request.params)
        if not handler:
            return self._server.forward(method, request.params)
        return self._handle(method, handler, params)

    def _is_offered(self, method: str) -> bool:
        needed = CAPABILITY_OF.get(method)
        return needed is None or self._offers is None or needed in self._offers

    def _handle(self, method: str, handler: Slot, params: Any) -> Awaitable[bytes]:
        match method:
            case "ui/open-link":
                return self._open_link(handler, params)
            case "ui/download-file":
                return self._download(handler, params)
            case "ui/message":
                return _verdict(handler, params.blocks)
            case "ui/update-model-context":
                return _verdict(handler, params)
            case "transom/request-pin":
                return _verdict(handler, params.reason)
            case "sampling/createMessage":
                return _object(handler, params)
            case "tools/call":
                return self._call_tool(handler, params)
            case "resources/read":
                return _object(handler, params.uri)
            case _:  # the lists
                return _object(handler, params.cursor)

    # --- the host's handlers -----------------------------------------------------------------

    async def _open_link(self, handler: Slot, params: m.OpenLinkParams) -> bytes:
        if link_refusal(params.url) is not None:
            return _REFUSED
        return await _verdict(handler, params.url)

    async def _download(self, handler: Slot, params: m.DownloadFileParams) -> bytes:
        contents = params.contents
        if len(contents) > self._max_files:
            text = f"{len(contents)} files at once; a request may have {self._max_files}"
            raise ProtocolError(INVALID_PARAMS, text)
        names = safe_filenames(
            content.resource.uri if isinstance(content, EmbeddedResource) else content.uri
            for content in contents
        )
        files = [Download(*named) for named in zip(names, contents, strict=True)]
        return await _verdict(handler, files)

    async def _call_tool(self, handler: Slot, params: m.CallToolParams) -> bytes:
        arguments: Any = msgspec.json.decode(params.arguments) or {}
        try:
            if self._server.serves("tools/call"):
                await self._server.check_allowed(params.name, arguments, must_exist=False)
            return result_json(await _called(handler, params.name, arguments))
        except Refused as refusal:
            return refusal_json(refusal)

    # --- display modes -----------------------------------------------------------------------

    async def _request_display_mode(self, params: m.DisplayModeParams) -> bytes:
        handler = self._handlers.get("on_request_display_mode")
        now: object = self.context.values.get("displayMode") or "inline"
        if handler and params.mode != now and self.may_show_in(params.mode):
            try:
                outcome = await _called(handler, params.mode)
            except Refused:
                outcome = False
            mode = params.mode if outcome is None or outcome is True else outcome
            if isinstance(mode, str) and mode != now and self.may_show_in(mode):
                now = mode
                self.context.change({"displayMode": mode})
                self._on_context()
        return wire.encode({"mode": now})

    def may_show_in(self, mode: str) -> bool:
        """Whether View and host both support a display mode, as far as they declared any."""
        offered = self.context.values.get("availableDisplayModes")
        taken = None if self.app is None else self.app.available_display_modes
        return (not isinstance(offered, list) or mode in offered) and (
            taken is None or mode in taken
        )


_REFUSED = b'{"isError":true}'


def _read(row: Method, raw: msgspec.Raw | None) -> Any:
    params = row.read_params(raw)
    if isinstance(params, m.CallToolParams):
        arguments = bytes(params.arguments)
        if not arguments.startswith((b"{", b"null")):
            text = f"Invalid params for {row.name}: arguments: Expected `object`"
            raise ProtocolError(INVALID_PARAMS, text)
    return params


async def _called(handler: Slot, *args: object) -> Any:
    outcome = handler.ask(*args)
    return await outcome if inspect.isawaitable(outcome) else outcome


async def _object(handler: Slot, *args: object) -> bytes:
    return object_json(await _called(handler, *args))


async def _verdict(handler: Slot, *args: object) -> bytes:
    try:
        outcome = await _called(handler, *args)
    except Refused:
        return _REFUSED
    if outcome is None or outcome is True:
        return b"{}"
    return _REFUSED if outcome is False else object_json(outcome)
