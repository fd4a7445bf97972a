"""The `Host` of one client's Views: made when a tool first opens one, and kept over replicas.

1. Nothing is loaded or shown until then: a server without Views costs nothing.
2. The host's servers are the connections that the proxy has. A server that is lost is removed with
   its Views, and added again for the next View.
3. Where a client may go on at another replica of the gateway, a record says which Views it had.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import msgspec

from transom.background import Background, Debounced, shared_task
from transom.connections.connection import ServerConnection
from transom.drive.tools import Drive
from transom.errors import TransomError
from transom.gateway.eras import Handles
from transom.gateway.inputs import Inputs
from transom.host.asking.policy import ApprovalRequest, Decision, Deny, Policy
from transom.host.limits import Limits
from transom.host.tools.tool_visibility import ViewCalls
from transom.host.views.view_settings import ViewSettings
from transom.traffic import TrafficListener

if TYPE_CHECKING:
    from transom.host.host import Host
    from transom.host.tools.surface import Naming
    from transom.host.views.renderers import Renderer

_log = logging.getLogger("transom.gateway")

COALESCE = 0.01  # seconds in which several changes become one notification or record
_MADE_WITHIN = 10.0  # seconds to wait for a host that is being made, before it is closed
_MAX_RECORDS = 1024 * 1024  # bytes of records that may include the input and result of Views
_LOST_REPLICA = "the replica of the gateway that had it is gone"

Approval = Literal["client", "page", "elicit", "never"]
"""Who approves the calls of a View's tools: see `Gateway`."""


@runtime_checkable
class Display(Protocol):
    """Where Views are shown, for all clients of a gateway."""

    pictures: bool
    """Whether it can take pictures of Views."""
    drives: bool
    """Whether the pages of its Views can be read and used."""

    async def seat(self, client_name: str) -> Renderer:
        """A renderer for the Views of one client."""
        ...

    def where(self) -> str | None:
        """The address of the page, as it may be shown to the user; None if there is no page."""
        ...


class ViewOptions(msgspec.Struct, frozen=True):
    """How a gateway shows Views, the same for all of its clients: see `Gateway`."""

    screen: Display | None = None
    naming: Naming = "both"
    approval: Approval = "client"
    drive: Drive = "when_no_tools"
    fresh: bool = False
    view_calls: ViewCalls = "linked"
    approve_view_calls: bool = False
    limits: Limits | None = None
    traffic: TrafficListener | None = None
    settings: Mapping[str, ViewSettings] = {}
    """By server: how its tools open Views."""
    identities: Mapping[str, str] = {}
    """By server: what identifies it, also in the next run."""


class ViewRecords(msgspec.Struct, frozen=True):
    """The Views of a client that may go on at another replica of the gateway."""

    data: bytes | None
    """What the replica that had it before stored."""
    keep: Callable[[bytes], Awaitable[None]]
    """Stores what this one has, whenever that changes."""


class ClientHost:
    """Makes the host of one client's Views, and gives it the servers.

    `configure` sets the handlers of a host that was made. Without `records`, the client's Views end
    with this gateway.
    """

    def __init__(
        self,
        options: ViewOptions,
        client_name: str,
        inputs: Inputs,
        records: ViewRecords | None,
        configure: Callable[[Host], None],
    ) -> None:
        self.host: Host | None = None
        """None until it was made."""
        self.changed = Debounced(self._keep_records, log_error, delay=COALESCE)
        """Triggered when what other replicas need to know has changed."""
        self.handles = Handles(self.changed.trigger)
        self._options = options
        self._client_name = client_name
        self._inputs = inputs
        self._records = records
        self._configure = configure
        self._on_page: Any = None
        self._making: asyncio.Task[Host] | None = None
        self._adding = asyncio.Lock()
        self._background = Background(log_error)

    # --- making it ---------------------------------------------------------------------------

    @property
    def needed(self) -> bool:
        """Whether a tool is known that opens a View: the host is there, or is being made."""
        return self._making is not None

    def begin(self) -> asyncio.Task[Host]:
        """Begin to make it."""
        self._making = shared_task(self._make())
        return self._making

    async def _make(self) -> Host:
        options = self._options
        assert options.screen is not None  # noqa: S101 - see `ClientViews.opened_by`
        # The SDK takes most of a second to load; the first answers should not wait for that.
        module: Any = await asyncio.to_thread(import_module, "transom.host.host")
        renderer = await options.screen.seat(self._client_name)
        self._on_page = getattr(renderer, "approve", None)
        host: Host = module.Host(
            renderer=renderer,
            policy=self._policy(),
            drive=options.drive,
            fresh=options.fresh,
            naming=options.naming,
            limits=options.limits,
            call_timeout=None,
            audit=None,  # nobody could read it
            traffic=options.traffic,
        )
        self._configure(host)
        await host.__aenter__()
        if self._records is not None and self._records.data is not None:
            self._restore(host, self._records.data)
        self.host = host
        return host

    def _policy(self) -> Policy:
        options = self._options
        approve = {
            "client": self._ask_on_page,  # calls of the model's are approved by the client itself
            "page": self._ask_on_page,
            "elicit": self._ask_through_client,
            "never": _never,
        }[options.approval]
        make = Policy.trusting if options.approval == "client" else partial(Policy, approve)
        return make(
            view_calls=options.view_calls,
            approve_view_calls=approve if options.approve_view_calls else None,
            approve_opening=approve,
        )

    async def ready(self) -> Host:
        """The host, once it is made; made again if that failed."""
        making = self._making
        if making is None or (making.done() and (making.cancelled() or making.exception())):
            making = self.begin()
        return await asyncio.shield(making)

    async def _ask_on_page(self, request: ApprovalRequest) -> Decision:
        if self._on_page is None:
            return Deny("There is no user to ask: no page shows Views to a user")
        return await self._on_page(request)

    async def _ask_through_client(self, request: ApprovalRequest) -> Decision:
        if self._inputs.can_approve(request):
            return await self._inputs.approve(request)
        return await self._ask_on_page(request)

    async def aclose(self) -> None:
        """Close every View."""
        await self._background.aclose()
        if self._making is not None and not self._making.done():
            await asyncio.wait([self._making], timeout=_MADE_WITHIN)
        if self.host is not None:
            await self.host.aclose()
        self.changed.close()
        with suppress(TransomError):
            await self._keep_records()

    # --- servers -----------------------------------------------------------------------------

    def settings_of(self, connection: ServerConnection) -> ViewSettings:
        """How a server's tools open Views."""
        return self._options.settings.get(connection.name) or ViewSettings()

    def has(self, connection: ServerConnection) -> bool:
        """Whether it is made, and has a server."""
        return self.host is not None and connection.name in self.host.servers

    async def with_server(self, connection: ServerConnection) -> Host:
        """The host, once it is made and has a server."""
        host = await self.ready()
        async with self._adding:
            if connection.name not in host.servers:
                settings = self.settings_of(connection)
                await host.add_server(
                    connection.name,
                    connection,
                    open_views=settings.open,
                    reuse_views=settings.reuse,
                )
        return host

    def server_lost(self, name: str, reason: str) -> None:
        """A server was lost: close its Views."""
        if self.host is not None:
            self._background.start(self._remove_server(self.host, name, reason))

    async def _remove_server(self, host: Host, name: str, reason: str) -> None:
        async with self._adding:
            views = [view for view in host.views.values() if view.server == name]
            why = f"its server went away: {reason}"
            await asyncio.gather(*(view.close(why) for view in views))
            if name in host.servers:
                await host.remove_server(name)

    # --- records -----------------------------------------------------------------------------

    def _restore(self, host: Host, data: bytes) -> None:
        from transom.host.open_views import HostRecords  # noqa: PLC0415 - as in `_make`

        records, handles = msgspec.msgpack.decode(data, type=tuple[HostRecords, dict[str, str]])
        self.handles.by_view.update(handles)
        views = {
            view_id: each if each.reason else msgspec.structs.replace(each, reason=_LOST_REPLICA)
            for view_id, each in records.views.items()
        }
        host.restore(msgspec.structs.replace(records, views=views))

    async def _keep_records(self) -> None:
        if self._records is None or self.host is None:
            return
        records = self.host.records()
        data = msgspec.msgpack.encode((records, dict(self.handles.by_view)))
        if len(data) > _MAX_RECORDS:
            views = {
                view_id: msgspec.structs.replace(
                    each, origin=msgspec.structs.replace(each.origin, arguments={}, result=None)
                )
                for view_id, each in records.views.items()
            }
            slim = msgspec.structs.replace(records, views=views)
            data = msgspec.msgpack.encode((slim, dict(self.handles.by_view)))
        await self._records.keep(data)


def _never(request: ApprovalRequest) -> Decision:
    if request.opens:
        return Deny("Nobody may be asked: this gateway runs with --approve never")
    return Deny(
        f"{request.tool.name[:128]} of View {request.view_id} may change something, and this "
        "gateway runs with --approve never"
    )


def log_error(error: BaseException) -> None:
    """Log an error that reaches no caller."""
    _log.info("%s", error)
