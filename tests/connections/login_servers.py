"""Servers behind a login on loopback, their issuers, and a browser that follows redirects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import httpx2
import keyring
import pytest
import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from keyring.backends.null import Keyring as NoKeyring
from mcp.server.auth.provider import AuthorizationParams
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import (
    AuthSettings,
    ClientRegistrationOptions,
    RevocationOptions,
)
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from transom.connections import login
from transom.serving import listen


@contextmanager
def nothing_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing of this user's own: neither their logins nor their keyring."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    monkeypatch.setattr(login, "_questions", {})
    monkeypatch.setattr(login, "_unanswered", set())
    monkeypatch.setattr(login, "LOGIN_WITHIN", 30.0)
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())
    yield
    keyring.set_keyring(before)


REGISTERS = ClientRegistrationOptions(enabled=True)
REVOKES = RevocationOptions(enabled=True)


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class Site:
    """A web server on a free port of the loopback, and all that it was sent."""

    def __init__(self) -> None:
        self.socket = listen("127.0.0.1", 0)
        self.origin = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.url = f"{self.origin}/mcp"
        self.received: list[tuple[str, str]] = []
        """Each request: its path, and everything in it as text."""
        self.app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        index = len(self.received)
        head = f"{scope['method']} {scope['path']}?{scope['query_string'].decode()}\n"
        head += "\n".join(f"{n.decode()}: {v.decode()}" for n, v in scope["headers"])
        self.received.append((scope["path"], head))

        async def recorded() -> Any:
            message = await receive()
            body = message.get("body", b"").decode(errors="replace")
            path, text = self.received[index]
            self.received[index] = (path, f"{text}\n{body}")
            return message

        await self.app(scope, recorded, send)

    def paths(self, path: str) -> int:
        return sum(each == path for each, _ in self.received)

    def got(self, secret: str) -> bool:
        return any(secret in text for _, text in self.received)

    async def __aenter__(self) -> Self:
        self._server = _Uvicorn(uvicorn.Config(self, log_level="error", ws="none"))
        self._running = asyncio.create_task(self._server.serve(sockets=[self.socket]))
        await self._server.ready.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = True
        await self._running
        self.socket.close()


class Issuer(InMemoryOAuthProvider):
    """FastMCP's issuer, which also keeps what it gave, and can be told how long tokens last."""

    def __init__(self, origin: str, **options: Any) -> None:
        super().__init__(
            base_url=origin,
            client_registration_options=REGISTERS,
            revocation_options=REVOKES,
            **options,
        )
        self.origin = origin
        self.given: list[OAuthToken] = []
        self.asked_for: list[AuthorizationParams] = []
        self.expires_in: int | None = 3600
        self.make_token: Callable[[], str] | None = None

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        self.asked_for.append(params)
        return await super().authorize(client, params)

    async def exchange_authorization_code(self, client: Any, authorization_code: Any) -> OAuthToken:
        return self._give(await super().exchange_authorization_code(client, authorization_code))

    async def exchange_refresh_token(
        self, client: Any, refresh_token: Any, scopes: Any
    ) -> OAuthToken:
        return self._give(await super().exchange_refresh_token(client, refresh_token, scopes))

    def _give(self, token: OAuthToken) -> OAuthToken:
        token.expires_in = self.expires_in
        if self.make_token is not None:
            made = self.make_token()
            self.access_tokens[made] = self.access_tokens.pop(token.access_token)
            token.access_token = made
        self.given.append(token)
        return token

    def forget_access(self) -> None:
        """Refuse the access tokens, as if they had expired without a word; keep the others."""
        self.access_tokens.clear()

    def forget_all(self) -> None:
        """Take every login back."""
        self.access_tokens.clear()
        self.refresh_tokens.clear()


def with_tool(server: Any) -> Any:
    @server.tool()
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Hello, {name}"

    return server


class OpenSite(Site):
    """A server that lets everybody in."""

    def __init__(self) -> None:
        super().__init__()
        self.app = with_tool(FastMCP("open")).http_app()


class FastSite(Site):
    """A FastMCP server that is its own issuer."""

    def __init__(self, scopes: list[str] | None = None) -> None:
        super().__init__()
        self.issuer = Issuer(self.origin, required_scopes=scopes)
        self.app = with_tool(FastMCP("fast", auth=self.issuer)).http_app()


class IssuerSite(Site):
    """An issuer of the SDK's own making, at an origin of its own."""

    def __init__(self, *, iss: bool = False) -> None:
        super().__init__()
        self.issuer = Issuer(self.origin)
        routes = create_auth_routes(
            self.issuer,
            AnyHttpUrl(self.origin),
            client_registration_options=REGISTERS,
            revocation_options=REVOKES,
        )
        self.app = Starlette(routes=routes)
        if iss:
            self.app.add_middleware(_WithIss, issuer=f"{self.origin}/")


class _WithIss:
    """Names the issuer in its redirects, as RFC 9207 wants it."""

    def __init__(self, app: Any, issuer: str) -> None:
        self.app = app
        self.issuer = issuer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def named(message: Any) -> None:
            if message["type"] == "http.response.start" and scope["path"] == "/authorize":
                message["headers"] = [
                    (n, v + b"&iss=" + self.issuer.encode() if n == b"location" else v)
                    for n, v in message["headers"]
                ]
            await send(message)

        await self.app(scope, receive, named)


class OfficialSite(Site):
    """A server of the SDK whose issuer is elsewhere."""

    def __init__(self, issuer: IssuerSite, scopes: list[str] | None = None) -> None:
        super().__init__()
        self.issuer = issuer.issuer
        settings = AuthSettings(
            issuer_url=AnyHttpUrl(issuer.origin),
            resource_server_url=AnyHttpUrl(self.url),
            required_scopes=scopes,
            validate_token_resource=False,
        )
        server = MCPServer("official", auth=settings, token_verifier=issuer.issuer)
        self.app = with_tool(server).streamable_http_app(
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False)
        )


class Browser:
    """Opens login pages: follows where they lead, as a user who agrees to everything."""

    def __init__(self, *, agrees: bool = True) -> None:
        self.pages: list[str] = []
        self._agrees = agrees
        self.answer: httpx2.Response | None = None

    async def __call__(self, url: str) -> None:
        self.pages.append(url)
        if not self._agrees:
            query = parse_qs(urlsplit(url).query)
            url = f"{query['redirect_uri'][0]}?error=access_denied&state={query['state'][0]}"
        async with httpx2.AsyncClient(follow_redirects=True) as client:
            with suppress(httpx2.HTTPError):
                self.answer = await client.get(url)


class Hostile(Site):
    """A server that wants a login, with metadata and answers that a test makes up.

    Args:
        resource: what its metadata says of itself, on top of the truth.
        issuer: what it says of itself as an issuer, on top of the truth.
    """

    def __init__(self, *, resource: Any = None, issuer: Any = None) -> None:
        super().__init__()
        self.resource = {
            "resource": self.url,
            "authorization_servers": [self.origin],
            **(resource or {}),
        }
        self.metadata = {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            **(issuer or {}),
        }
        self.answers: dict[str, Callable[[Request], Response]] = {
            "/.well-known/oauth-protected-resource/mcp": lambda _: JSONResponse(self.resource),
            "/.well-known/oauth-authorization-server": lambda _: JSONResponse(self.metadata),
            "/mcp": lambda _: PlainTextResponse("who are you?", 401),
        }
        self.app = self._answer

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        request = Request(scope, receive)
        await request.body()
        make = self.answers.get(scope["path"], lambda _: PlainTextResponse("what?", 404))
        await make(request)(scope, receive, send)


class Picky:
    """In front of a server: calls need a scope more than everything else does."""

    def __init__(self, app: Any, issuer: Issuer, scope: str) -> None:
        self.app = app
        self.issuer = issuer
        self.scope = scope

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {name: value.decode() for name, value in scope.get("headers", [])}
        if scope["type"] != "http" or scope["path"] != "/mcp" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        message = await receive()
        token = self.issuer.access_tokens.get(
            headers.get(b"authorization", "").removeprefix("Bearer ")
        )
        if b'"tools/call"' in message["body"] and token and self.scope not in token.scopes:
            challenge = f'Bearer error="insufficient_scope", scope="{self.scope}"'
            refusal = PlainTextResponse("no", 403, headers={"www-authenticate": challenge})
            await refusal(scope, receive, send)
            return
        messages = iter([message])

        async def again() -> Any:
            return next(messages, None) or await receive()

        await self.app(scope, again, send)
