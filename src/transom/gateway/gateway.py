"""`Gateway`: the gateway without its command, for programs that serve it themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Self, get_args

from transom.connections.connection import Connect
from transom.connections.targets import identity_of
from transom.drive.tools import Drive
from transom.errors import UsageError
from transom.gateway.client_host import Approval, Display, ViewOptions
from transom.gateway.configuration.config import ServerConfig, server_from_command, server_from_url
from transom.gateway.display import SharedDisplay
from transom.gateway.members import connect_to
from transom.gateway.merge import server_names
from transom.gateway.proxy import Proxy
from transom.host.tools.tool_visibility import ViewCalls
from transom.host.views.view_settings import ViewSettings

if TYPE_CHECKING:
    from transom.bus import Bus
    from transom.channel import Channel
    from transom.gateway.http import HttpGateway
    from transom.host.limits import Limits
    from transom.host.tools.surface import Naming
    from transom.host.views.renderers import Renderer
    from transom.traffic import TrafficListener


class Gateway:
    """An MCP server in front of MCP servers: it shows their Views, and offers the Views' tools.

        servers = {"orders": ["python", "orders.py"]}
        async with Gateway(servers, renderer=BrowserRenderer()) as gateway:
            await gateway.serve_stdio()

    `asgi` makes an application for clients that connect over HTTP; `serve` serves one client on any
    channel. Each client has connections to the servers, and Views, of its own. Leaving the gateway
    ends the applications and closes the renderer.

    Args:
        servers: by name: a command as a list, or the URL of a streamable HTTP server; or a list of
            `ServerConfig`, for what else a server needs.
        renderer: shows Views: one renderer with a seat for each client, such as `BrowserRenderer`
            or `HeadlessRenderer`, or a `Display`. None: tools that link a View just run.
        naming: how a model sees the tools of Views: `flat`, `indirect` or `both`.
        approval: who approves the calls of a View's tools: the `client`, the user on the `page`,
            the user through the client (`elicit`), or nobody (`never`: only read-only tools run).
        drive: which Views the model may use by their pages, with `look_at_view` and `act_on_view`:
            those without tools (`when_no_tools`), all (`always`), none (`never`).
        fresh: whether every View is listed again at each listing.
        view_calls: which tools of its server a View may call; see `Policy`.
        approve_view_calls: whether the user is asked before a View calls one.
        limits: how much a View may cost, such as how long a call of its tools may take.
        hung_after: seconds of silence after which a server that owes an answer is restarted; 0:
            never.
        traffic: gets every message to and from servers and Views; see `Host`.

    Raises:
        UsageError: there is no server, one has no command or URL that can be used, or a setting has
            a value that there is not.
    """

    def __init__(
        self,
        servers: Mapping[str, Sequence[str] | str] | Sequence[ServerConfig],
        *,
        renderer: Renderer | Display | None = None,
        naming: Naming = "both",
        approval: Approval = "client",
        drive: Drive = "when_no_tools",
        fresh: bool = False,
        view_calls: ViewCalls = "linked",
        approve_view_calls: bool = False,
        limits: Limits | None = None,
        hung_after: float = 300.0,
        traffic: TrafficListener | None = None,
    ) -> None:
        _check("naming", naming, ("flat", "indirect", "both"))  # its module loads much
        _check("approval", approval, get_args(Approval))
        _check("drive", drive, get_args(Drive))
        _check("view_calls", view_calls, get_args(ViewCalls))
        configs = _configs(servers) if isinstance(servers, Mapping) else list(servers)
        if not configs:
            raise UsageError("A gateway needs at least one server")
        for each in configs:
            if bool(each.command) is bool(each.url):
                raise UsageError(f"Gateway(servers): {each.name!r} needs either a command or a URL")
        self._servers = [(each.name, connect_to(each)) for each in configs]
        names = server_names([each.name for each in configs])
        settings = {
            name: ViewSettings(dict(each.open_views), dict(each.reuse_views))
            for name, each in zip(names, configs, strict=True)
        }
        self._display = _display(renderer)
        shows = any(each.may_open for each in settings.values())
        identities = [
            identity_of(each.url or each.command, env=each.env, cwd=each.cwd) for each in configs
        ]
        self._views = ViewOptions(
            self._display if shows else None,
            naming=naming,
            approval=approval,
            drive=drive,
            fresh=fresh,
            view_calls=view_calls,
            approve_view_calls=approve_view_calls,
            limits=limits,
            settings=settings,
            identities=dict(zip(names, identities, strict=True)),
            traffic=traffic,
        )
        self._hung_after = hung_after
        self._applications: list[HttpGateway] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        for application in self._applications:
            await application.aclose()
        if isinstance(self._display, SharedDisplay):
            await self._display.aclose()

    async def serve_stdio(self, *, started: Channel | None = None) -> None:
        """Serve the client on standard input and output until it is gone, or a signal comes.

        Meanwhile, whatever else this process prints goes to standard error.

        Args:
            started: a process of the first server that already runs.

        Raises:
            NotConnected: no server can be started.
        """
        from transom.gateway.stdio import serve_stdio  # noqa: PLC0415 - HTTP does not need it

        servers = self._servers
        if started is not None:
            servers = [(servers[0][0], _starting_with(started, servers[0][1])), *servers[1:]]
        await serve_stdio(lambda channel: self._proxy(channel, servers))

    async def serve(self, channel: Channel, *, client_name: str = "") -> None:
        """Serve one client on a channel until it is gone.

        Args:
            channel: to the client.
            client_name: what the user sees the client as.

        Raises:
            NotConnected: no server can be started.
        """
        await self._proxy(channel, self._servers, client_name).run()

    def _proxy(
        self, channel: Channel, servers: Sequence[tuple[str, Connect]], client_name: str = ""
    ) -> Proxy:
        return Proxy(
            channel, servers, self._views, client_name=client_name, hung_after=self._hung_after
        )

    def asgi(
        self,
        *,
        token: str | None = None,
        allowed_hosts: Collection[str] | None = None,
        max_clients: int = 100,
        idle: float = 1800.0,
        bus: Bus | None = None,
    ) -> HttpGateway:
        """An ASGI application that serves clients at `/mcp`, below where it is mounted.

        Args:
            token: the bearer token that each request must have, of at least 16 characters.
            allowed_hosts: the values that the headers Host and Origin may have, such as
                `localhost:8000`, so that no web page can use the gateway. Needed without a token.
            max_clients: how many clients there may be at once.
            idle: seconds without an open request or stream after which a client ends.
            bus: connects the replicas of this gateway, if there are several.

        Raises:
            UsageError: anyone could use it: there is neither a token nor a list of hosts, or the
                token is too short.
        """
        if token is None and allowed_hosts is None:
            raise UsageError("Anyone could use the servers: give a token, or allowed_hosts")
        from transom.gateway.http import HttpGateway  # noqa: PLC0415 - Starlette takes a while

        application = HttpGateway(
            self._servers,
            self._views,
            token=token,
            allowed_hosts=None if allowed_hosts is None else frozenset(allowed_hosts),
            max_clients=max_clients,
            idle=idle,
            hung_after=self._hung_after,
            bus=bus,
        )
        self._applications.append(application)
        return application

    async def serve_http(
        self,
        address: str,
        *,
        token: str | None = None,
        max_clients: int = 100,
        idle: float = 1800.0,
        bus: Bus | None = None,
        announce: Callable[[str], object] = print,
    ) -> None:
        """Serve clients at an address until a signal comes.

        Args:
            address: `[HOST:]PORT`; without a host, the loopback address.
            token: the bearer token of each request; required unless the address is loopback.
            max_clients: how many clients there may be at once.
            idle: seconds without an open request or stream after which a client ends.
            bus: connects the replicas of this gateway, if there are several.
            announce: called with a text that says where the gateway listens.

        Raises:
            UsageError: the address cannot be used, or needs a token.
        """
        from transom.gateway.http import serve_http  # noqa: PLC0415 - as in `asgi`

        # Whose headers it accepts is known when it listens.
        application = self.asgi(
            token=token, allowed_hosts=(), max_clients=max_clients, idle=idle, bus=bus
        )
        await serve_http(application, address, announce=announce)


def _check(setting: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise UsageError(f"{setting} is one of {', '.join(known)}, not {value!r}")


def _configs(servers: Mapping[str, Sequence[str] | str]) -> list[ServerConfig]:
    if bare := [name for name, each in servers.items() if not each]:
        raise UsageError(f"Gateway(servers): {bare[0]!r} needs a command as a list, or a URL")
    return [
        server_from_url(each, name=name, where=f"Gateway(servers): {name!r}")
        if isinstance(each, str)
        else server_from_command(each, name=name)
        for name, each in servers.items()
    ]


def _display(renderer: Renderer | Display | None) -> Display | None:
    if renderer is None or isinstance(renderer, Display):
        return renderer

    async def make() -> Renderer:
        return renderer

    drives, pictures = hasattr(renderer, "drive"), hasattr(renderer, "screenshot")
    return SharedDisplay(make, pictures=pictures, drives=drives)


def _starting_with(started: Channel, connect: Connect) -> Connect:
    """Uses the process that was already started for the first connection."""
    waiting = [started]

    async def next_one() -> Channel:
        return waiting.pop() if waiting else await connect()

    return next_one
