"""Logging in to servers that are reached by a URL, with OAuth 2.1.

1. The SDK's client implements the protocol: discovery, registration, PKCE, refresh, more scopes.
   This module adds what it leaves open: asking the user, storing tokens, and restrictions.
2. A login belongs to one server and one issuer. Its token goes to that server's origin only, and
   its refresh token to that issuer only.
3. A login is renewed under a lock that all processes share. If another one has renewed it
   meanwhile, that login is used; if the user has logged out meanwhile, there is none. A renewal
   goes on when its caller is cancelled, until it is stored: the issuer may have replaced it. A
   connection that closes waits for that.
4. The user is asked once: after a failed login, this process does not open another page by itself.
5. Servers and issuers are untrusted: their times, answers and redirects are limited, and nothing of
   theirs that could contain a token gets into an error or a log.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import logging
import os
import re
import secrets
import socket
import ssl
import time
from base64 import urlsafe_b64decode
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from functools import cache
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import msgspec
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.exceptions import OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp_types import LATEST_PROTOCOL_VERSION
from pydantic import AnyUrl

from transom.background import shared_task
from transom.connections.oauth_client import OAuthClient
from transom.connections.oauth_flows import flow_for, registered, with_secret_in_body
from transom.connections.urls import is_loopback, server_of
from transom.errors import NotConnected
from transom.json_values import as_list, as_object, clean
from transom.state_files import open_lock, state_folder, try_lock, write_private

Ask = Callable[[str], object]
"""Called with the address of a login page for the user to open; may be async."""

LOGIN_WITHIN = 300.0
"""Seconds the user has for a login."""

_ANSWER_WITHIN = 30.0
_CLOSE_WITHIN = 5.0
_MAX_ANSWER = 1024 * 1024
_MAX_TOKEN = 64 * 1024
_MAX_QUESTIONS = 5  # pages opened for a user and a server in an hour, by one process
_EARLY = 10.0  # seconds before it expires that a token is renewed
_POLL = 0.05
_TOKEN = re.compile(r"[!-~]+")
_KEYRING = "transom"
_UNUSABLE = "its issuer's answer cannot be used"
_DONE = "You can close this page and go back to what you were doing.\n"
_NOT_DONE = "The login was refused. You can close this page.\n"

_log = logging.getLogger("transom.connections")
# It logs failures with the full answer, which may contain tokens; they are raised as well.
logging.getLogger("mcp.client.auth.oauth2").addFilter(lambda record: record.exc_info is None)

# By the folder of a user's logins, and server: in one process there may be many users.
_questions: dict[tuple[Path | None, str], list[float]] = {}  # when they were asked; monotonic
_unanswered: set[tuple[Path | None, str]] = set()  # whose login failed or was refused


# --- what is kept ----------------------------------------------------------------------------


@cache
def tls_context() -> ssl.SSLContext:
    """The certificates that HTTPS connections trust, read once: each reading takes some 50 ms."""
    return httpx2.create_ssl_context()


class LoginSecret(msgspec.Struct):
    """The secret part of a login: tokens and client secret."""

    tokens: dict[str, Any]
    client: dict[str, Any]


class StoredLogin(msgspec.Struct, kw_only=True):
    """A login at one server, as it is stored between runs."""

    server: str
    issuer: str
    expires_at: float | None = None
    scope: str | None = None
    client_id: str | None = None
    """The client id that the user gave, if it was not registered automatically."""
    metadata: dict[str, Any] | None = None
    resource: dict[str, Any] | None = None
    secret: LoginSecret | None = None
    """None: it is in the system's keyring."""

    @property
    def token(self) -> str:
        """The access token, or nothing."""
        return "" if self.secret is None else self.secret.tokens["access_token"]

    @property
    def renewable(self) -> bool:
        """Whether it can be refreshed without the user."""
        return self.secret is not None and bool(self.secret.tokens.get("refresh_token"))

    @property
    def expired(self) -> bool:
        """Whether its token has expired."""
        return self.expires_at is not None and time.time() > self.expires_at - _EARLY


class LoginStore:
    """The logins of one user: a file each that only this user can read.

    If the `keyring` package is installed and finds a system keyring, tokens are stored there, and
    the files only list the logins.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or _logins_folder()

    def _file(self, server: str, suffix: str) -> Path:
        return self.folder / (hashlib.sha256(server.encode()).hexdigest()[:32] + suffix)

    def read(self, server: str) -> StoredLogin | None:
        """The login at a server, if there is one."""
        login = _read(self._file(server, ".json"))
        if login is None or login.server != server:
            return None
        if login.secret is None and (keyring := _keyring()) is not None:
            with suppress(Exception):  # locked, refused, or gone: treated as no login
                text = keyring.get_password(_KEYRING, server)
                login.secret = msgspec.json.decode(text or "", type=LoginSecret)
        return None if login.secret is None else login

    def write(self, login: StoredLogin) -> None:
        """Store a login, replacing an earlier one."""
        if (keyring := _keyring()) is not None:
            with suppress(Exception):  # if it refuses so long a text, the file has it
                text = msgspec.json.encode(login.secret).decode()
                keyring.set_password(_KEYRING, login.server, text)
                login = msgspec.structs.replace(login, secret=None)
        write_private(self._file(login.server, ".json"), msgspec.json.encode(login))

    def delete(self, server: str) -> None:
        """Delete a login."""
        self._file(server, ".json").unlink(missing_ok=True)
        if (keyring := _keyring()) is not None:
            with suppress(Exception):  # it has none
                keyring.delete_password(_KEYRING, server)

    def logins(self) -> list[StoredLogin]:
        """All of them, by server, without their secrets."""
        found = [_read(path) for path in self.folder.glob("*.json")]
        return sorted((each for each in found if each), key=lambda login: login.server)

    @asynccontextmanager
    async def locked(self, server: str) -> AsyncGenerator[None]:
        """Hold the lock of a server's login; other processes wait."""
        try:
            handle = open_lock(self._file(server, ".lock"))
        except OSError:  # nothing can be stored there, so no lock is needed
            yield
            return
        try:
            until = time.monotonic() + LOGIN_WITHIN + _ANSWER_WITHIN
            while not try_lock(handle):  # not in a thread: that could not be cancelled
                if time.monotonic() > until:
                    raise NotConnected(f"another process is still logging in to {server}")
                await asyncio.sleep(_POLL)
            yield
        finally:
            os.close(handle)


def _read(path: Path) -> StoredLogin | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=StoredLogin)
    except (OSError, msgspec.MsgspecError):
        return None


def _logins_folder() -> Path:
    try:
        return state_folder("logins")
    except RuntimeError:
        raise NotConnected("logins cannot be kept: this user has no home folder") from None


def _keyring() -> Any:
    """The system's keyring; None: the package is not installed, or found none."""
    try:
        found = import_module("keyring").get_keyring()
        return found if found.priority >= 1 else None
    except Exception:  # noqa: BLE001 - whatever is wrong with it, there is the file
        return None


# --- the login at one server -----------------------------------------------------------------


class LoginOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to log in to a server.

    Args:
        ask: shows the user a login page. None: nobody can be asked; if a login is needed, an error
            says how to log in.
        folder: where logins are stored; by default in the user's state folder.
        client: the client, if the issuer has no automatic registration.
        port: the port for the redirect back to this machine; 0: any free one.
        scope: the scopes to request; by default what the server needs.
        again: ask the user even if an earlier login failed.
    """

    ask: Ask | None = None
    folder: Path | None = None
    client: OAuthClient | None = None
    port: int = 0
    scope: str | None = None
    again: bool = False


class ServerLogin:
    """The login at one server: adds its token to requests, and renews it."""

    def __init__(self, url: str, options: LoginOptions | None = None) -> None:
        self.server = server_of(url)
        self.stored: StoredLogin | None = None
        """The login that requests use."""
        self.asked = False
        """Whether the user logged in now, rather than it being refreshed or found."""
        self._options = options or LoginOptions()
        self._loaded = False
        self._is_stored = False
        self._renewals: set[asyncio.Task[None]] = set()

    async def authorize(self, request: httpx2.Request) -> None:
        """Add the login to a request, if there is one; an expired one is refreshed first.

        Raises:
            NotConnected: it cannot be refreshed now.
        """
        if not self._loaded:
            with suppress(NotConnected):
                self.stored = await self._read()
            self._loaded, self._is_stored = True, self.stored is not None
        if self.stored is not None and self.stored.expired and self.stored.renewable:
            await self.renew(None)
        if self.stored is not None and _origin(str(request.url)) == _origin(self.server):
            request.headers["Authorization"] = f"Bearer {self.stored.token}"

    async def renew(self, challenge: httpx2.Response | None) -> None:
        """Get a login that the server accepts: refresh it, or ask the user.

        Args:
            challenge: the server's refusal; None: just refresh an expired login.

        Raises:
            NotConnected: that failed; the text says why and what to do.
        """
        abandoned = asyncio.Event()
        task = shared_task(self._renew(challenge, self.stored, abandoned))
        self._renewals.add(task)
        task.add_done_callback(self._renewals.discard)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            abandoned.set()
            raise

    async def aclose(self) -> None:
        """Wait a while for renewals whose callers were cancelled: their logins are stored then."""
        if self._renewals:
            await asyncio.wait(self._renewals, timeout=_CLOSE_WITHIN)

    async def _renew(
        self,
        challenge: httpx2.Response | None,
        refused: StoredLogin | None,
        abandoned: asyncio.Event,
    ) -> None:
        store = LoginStore(self._options.folder)
        async with store.locked(self.server):
            kept = await self._read()
            if kept is None and self._is_stored:  # the user has logged out
                self.stored = refused = None
            is_new = kept is not None and (refused is None or kept.token != refused.token)
            if kept is not None and is_new and not kept.expired:
                self.stored, self.asked = kept, False  # another process was faster
                self._is_stored = True
                _unanswered.discard((self._options.folder, self.server))
                return
            if challenge is None and kept is None and refused is None:
                return
            renewal = _Renewal(self.server, self._options, kept or refused, abandoned)
            async with aclosing(renewal):
                try:
                    self.stored = await renewal.run(challenge)
                finally:
                    if abandoned.is_set():  # so the user has not refused it
                        _unanswered.discard((self._options.folder, self.server))
                self.asked = renewal.asked
            if self.stored is not None:
                try:
                    await asyncio.to_thread(store.write, self.stored)
                    self._is_stored = True
                except OSError as error:
                    _log.warning("The login at %s cannot be kept: %s", self.server, error)

    async def _read(self) -> StoredLogin | None:
        return await asyncio.to_thread(LoginStore(self._options.folder).read, self.server)


def is_challenge(response: httpx2.Response) -> bool:
    """Whether a response demands a login, or one with more scopes."""
    return response.status_code == 401 or _wants_more(response)


def scope_challenge(scope: str) -> httpx2.Response:
    """The challenge of a server that demands more scopes."""
    challenge = f'Bearer error="insufficient_scope", scope="{scope}"'
    return httpx2.Response(403, headers={"www-authenticate": challenge})


def _wants_more(response: httpx2.Response) -> bool:
    error = extract_field_from_www_auth(response, "error")
    return response.status_code == 403 and error == "insufficient_scope"


class _Renewal:
    """One renewal of a login: sends the requests of the SDK's client.

    It is also that client's token storage.
    """

    def __init__(
        self,
        server: str,
        options: LoginOptions,
        kept: StoredLogin | None,
        abandoned: asyncio.Event | None = None,
    ) -> None:
        self.asked = False
        self._abandoned = abandoned or asyncio.Event()  # set when nobody waits for it any more
        self._server = server
        self._asks = (options.folder, server)
        self._options = options
        self._kept = kept
        self._tokens: OAuthToken | None = None
        self._redirect = _Redirect(options.port, self._abandoned)
        self._http = httpx2.AsyncClient(
            follow_redirects=False, timeout=_ANSWER_WITHIN, verify=tls_context()
        )
        self._answer = ""  # the error in the last answer
        client = options.client
        client_id = client.id if client is not None else (kept.client_id if kept else None)
        self._client_id = client_id
        self._provider = flow_for(
            server,
            client,
            self,
            metadata_url=client_id if client_id and "://" in client_id else None,
            show_page=self._show_page,
            wait_for_code=self._redirect.result,
        )

    async def aclose(self) -> None:
        self._redirect.close()
        await self._http.aclose()

    # --- the steps ---------------------------------------------------------------------------

    async def run(self, challenge: httpx2.Response | None) -> StoredLogin | None:
        """The new login; None: it could not be refreshed, and there is no challenge."""
        try:
            await self._run(challenge)
        except NotConnected:
            raise
        except OAuthRegistrationError:
            text = f"{self._answer or _UNUSABLE} when it was to register a client"
            advice = "give `transom login` a --client-id, or the server a token with --header"
            raise self._failure(text, advice) from None
        except OAuthTokenError:  # not its text, which contains the whole answer
            raise self._failure(self._answer or _UNUSABLE) from None
        except (OAuthFlowError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._failure(str(error) or type(error).__name__) from None
        except TimeoutError:
            raise self._failure("its issuer does not answer") from None
        except ValueError:
            raise self._failure(_UNUSABLE) from None
        return None if self._tokens is None else self._login(self._tokens)

    async def _run(self, challenge: httpx2.Response | None) -> None:
        context = self._provider.context
        if self._kept is not None and self._kept.metadata is not None:
            context.oauth_metadata = OAuthMetadata.model_validate(self._kept.metadata)
            context.auth_server_url = self._kept.issuer
        if self._kept is not None and self._kept.resource is not None:
            resource = ProtectedResourceMetadata.model_validate(self._kept.resource)
            context.protected_resource_metadata = resource
        if challenge is None or not _wants_more(challenge):
            context.token_expiry_time = 1.0  # treat the token as expired, so that it is refreshed
        # With a version, the SDK names the server to the issuer even if it has no metadata.
        headers = {"mcp-protocol-version": LATEST_PROTOCOL_VERSION}
        request = httpx2.Request("POST", self._server, headers=headers)
        flow = self._provider.async_auth_flow(request)
        refreshing = True
        try:
            step = await anext(flow)
            while step is not request or (self._tokens is None and challenge is not None):
                if step is not request or challenge is None:
                    answer = await self._send(step)
                    refused = answer.status_code == 401 and self._options.client is not None
                    again = with_secret_in_body(step, context) if refused else None
                    answer = answer if again is None else await self._send(again)
                    if refreshing and answer.status_code >= 500:
                        raise self._failure(self._answer, "try again later")
                else:
                    refreshing = False
                    if self._options.client is None or not self._options.client.asks_nobody:
                        await self._prepare_to_ask(challenge)
                    elif _wants_more(challenge):  # there is nobody to see what it would be for
                        raise NotConnected(self._advice(challenge))
                    answer = self._with_scope(challenge)
                step = await flow.asend(answer)
        finally:
            await flow.aclose()
        _unanswered.discard(self._asks)

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request of the login itself; the body is capped, and not decompressed."""
        self._refuse_unsafe(str(request.url))
        body = bytearray()
        async with asyncio.timeout(_ANSWER_WITHIN):
            sent = await self._http.send(request, stream=True)
            try:
                async for part in sent.aiter_raw():
                    body += part
                    if len(body) > _MAX_ANSWER:
                        raise self._failure("its issuer's answer is too long")
            finally:
                await sent.aclose()
        answer = httpx2.Response(sent.status_code, content=bytes(body), request=sent.request)
        answer.next_request = sent.next_request
        self._answer = _described(answer)
        return answer

    async def _prepare_to_ask(self, challenge: httpx2.Response) -> None:
        """Check that the user can be asked, and listen for the browser's redirect."""
        now = time.monotonic()
        asked = [each for each in _questions.get(self._asks, []) if each > now - 3600]
        _questions[self._asks] = asked
        if self._abandoned.is_set():
            raise self._failure("nobody waits for it any more")
        if self._options.ask is None or (
            not self._options.again and (self._asks in _unanswered or len(asked) >= _MAX_QUESTIONS)
        ):
            raise NotConnected(self._advice(challenge))
        await self._redirect.open()
        context = self._provider.context
        context.client_metadata.redirect_uris = [AnyUrl(self._redirect.url)]
        # An automatically registered client is registered again: it was for another port, maybe for
        # fewer scopes, and the issuer may have deleted it.
        context.client_info = self._given_client()

    def _given_client(self) -> OAuthClientInformationFull | None:
        if self._client_id is None or "://" in self._client_id:
            return None
        given, kept = self._options.client, self._kept
        has_secret = given is not None and given.secret is not None
        if not has_secret and kept is not None and kept.client_id == self._client_id:
            return OAuthClientInformationFull.model_validate(kept.secret and kept.secret.client)
        return registered(given or OAuthClient(id=self._client_id))

    def _with_scope(self, challenge: httpx2.Response) -> httpx2.Response:
        scope = self._options.scope
        if scope is None:
            return challenge
        # First, because the first one counts: whatever the server's text has is not looked for.
        told = challenge.headers.get("www-authenticate", "")
        headers = {"www-authenticate": f'Bearer scope="{scope}", {told}'}
        return httpx2.Response(challenge.status_code, headers=headers)

    async def _show_page(self, url: str) -> None:
        """Ask the user, unless the page is not one of the issuer's."""
        self._refuse_unsafe(url)
        metadata = self._provider.context.oauth_metadata
        issuer = self._issuer
        # A server that is its own issuer could name another issuer's login page, to get the code of
        # the user's login there. The SDK notices that if the redirect has `iss`. Otherwise the page
        # must belong to the issuer, unless the user configured a client id for it.
        signed = metadata is not None and metadata.authorization_response_iss_parameter_supported
        arranged = self._client_id is not None
        if not signed and not arranged and not _belongs_together(url, issuer):
            text = f"the login page {server_of(url)} does not belong to its issuer {issuer}"
            raise self._failure(text)
        states = parse_qs(urlsplit(url).query).get("state")
        if states is None:  # it has a fragment, so that the parameters are not where they belong
            raise self._failure("the address of its login page cannot be used")
        self._redirect.state = states[-1]
        self.asked = True
        _questions[self._asks].append(time.monotonic())
        _unanswered.add(self._asks)
        try:
            asking = self._options.ask(url) if self._options.ask else None
            if inspect.isawaitable(asking):
                await asking
        except Exception as error:
            raise self._failure(f"its page cannot be shown: {error}") from error

    async def revoke(self) -> None:
        """Revoke the tokens at the issuer, if it supports that.

        Raises:
            NotConnected: the issuer refused that, or cannot be reached.
        """
        context = self._provider.context
        secret = self._kept and self._kept.secret
        if self._kept is None or secret is None or self._kept.metadata is None:
            return
        endpoint = self._kept.metadata.get("revocation_endpoint")
        if endpoint is None:
            return
        context.client_info = await self.get_client_info()
        token = secret.tokens.get("refresh_token") or secret.tokens["access_token"]
        given = {"token": token, "client_id": secret.client["client_id"]}
        try:
            data, headers = context.prepare_token_auth(given, {})
            answer = await self._send(httpx2.Request("POST", endpoint, data=data, headers=headers))
            if answer.status_code == 400 and "client_secret" not in data:
                # An issuer may require the field; it says the same as none (RFC 6749, 2.3.1).
                data = {**data, "client_secret": ""}
                request = httpx2.Request("POST", endpoint, data=data, headers=headers)
                answer = await self._send(request)
        except (OAuthFlowError, httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            raise NotConnected(f"The login could not be revoked: {clean(reason, 400)}") from None
        if answer.status_code >= 300:
            raise NotConnected(f"The login could not be revoked: {self._answer}")

    # --- what may not be ---------------------------------------------------------------------

    def _refuse_unsafe(self, url: str) -> None:
        """Refuse plain HTTP, and requests to this machine on behalf of a remote server."""
        if _is_this_machine(url) and not _is_this_machine(self._server):
            text = f"{server_of(url)} is not safe: it is on this machine, and the server is not"
            raise self._failure(text)
        if urlsplit(url).scheme != "https" and not is_loopback(url):
            raise self._failure(f"{server_of(url)} is not safe: it has to be an https URL")

    def _check_token(self, tokens: OAuthToken) -> None:
        for text in (tokens.access_token, tokens.refresh_token):
            if text is not None and (len(text) > _MAX_TOKEN or not _TOKEN.fullmatch(text)):
                raise self._failure(_UNUSABLE)
        if (other := _other_audience(tokens.access_token, self._server)) is not None:
            text = f"its issuer gave a token for another server, {clean(other, 100)}"
            raise self._failure(text)

    # --- texts -------------------------------------------------------------------------------

    def _failure(self, reason: str, advice: str = "") -> NotConnected:
        if not advice and not self._options.again:
            advice = f"to log in, run: transom login {self._server}"
        text = f"The login at {self._server} failed: {clean(reason, 400)}"
        return NotConnected(f"{text}; {advice}" if advice else text)

    def _advice(self, challenge: httpx2.Response) -> str:
        command = f"transom login {self._server}"
        if _wants_more(challenge):
            scope = clean(extract_field_from_www_auth(challenge, "scope") or "", 200)
            more = f" --scope '{scope}'" if re.fullmatch(r"[\w.:/ -]+", scope) else ""
            return f"{self._server} requires a login with more rights. Run: {command}{more}"
        if self._kept is not None:
            return f"The login at {self._server} has expired or was revoked. Run: {command}"
        return f"{self._server} requires a login. Run: {command}, or give it a token with --header"

    # --- the storage of the SDK's client -----------------------------------------------------

    @property
    def _issuer(self) -> str:
        metadata = self._provider.context.oauth_metadata
        return str(metadata.issuer) if metadata is not None else _origin(self._server)

    def _login(self, tokens: OAuthToken) -> StoredLogin:
        context = self._provider.context
        client = context.client_info
        assert client is not None  # noqa: S101 - there are tokens, so there was a client
        client.issuer = client.issuer or self._issuer  # the user's client id is for this issuer
        metadata, resource = context.oauth_metadata, context.protected_resource_metadata
        return StoredLogin(
            server=self._server,
            issuer=self._issuer,
            expires_at=context.token_expiry_time if tokens.expires_in is not None else None,
            scope=tokens.scope,
            client_id=self._client_id,
            metadata=metadata and metadata.model_dump(mode="json", exclude_none=True),
            resource=resource and resource.model_dump(mode="json", exclude_none=True),
            secret=LoginSecret(
                tokens=tokens.model_dump(mode="json", exclude_none=True),
                client=client.model_dump(mode="json", exclude_none=True),
            ),
        )

    async def get_tokens(self) -> OAuthToken | None:
        """The stored tokens."""
        secret = self._kept and self._kept.secret
        return OAuthToken.model_validate(secret.tokens) if secret else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store new tokens."""
        self._check_token(tokens)
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The registered client."""
        secret = self._kept and self._kept.secret
        return OAuthClientInformationFull.model_validate(secret.client) if secret else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Nothing: it is stored together with the tokens."""


class _Redirect:
    """Waits on loopback for the browser's redirect from a login page.

    Requests without the secret `state`, such as from a page that guesses the port, are ignored.
    """

    def __init__(self, port: int, abandoned: asyncio.Event) -> None:
        self.state = ""
        self._port = port
        self._abandoned = abandoned
        self._server: asyncio.Server | None = None
        self._came: asyncio.Future[dict[str, str]] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/callback"

    async def open(self) -> None:
        self._came = asyncio.get_running_loop().create_future()
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        except OSError as error:
            text = f"The browser cannot come back to port {self._port}: {error.strerror}"
            raise NotConnected(text) from None
        self._port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def result(self) -> AuthorizationCodeResult:
        """The parameters of the redirect."""
        assert self._came is not None  # noqa: S101 - it was opened
        abandoned = asyncio.create_task(self._abandoned.wait())
        try:
            wanted = [self._came, abandoned]
            await asyncio.wait(wanted, timeout=LOGIN_WITHIN, return_when=asyncio.FIRST_COMPLETED)
        finally:
            abandoned.cancel()
        if not self._came.done():
            raise OAuthFlowError(f"nobody logged in within {LOGIN_WITHIN / 60:g} minutes")
        found = self._came.result()
        if "code" not in found:
            reason = ": ".join(filter(None, map(found.get, ("error", "error_description"))))
            raise OAuthFlowError(f"it was refused ({reason or 'without a reason'})")
        return AuthorizationCodeResult(
            code=found["code"], state=found["state"], iss=found.get("iss")
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        garbage = (ValueError, LookupError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)
        with suppress(OSError, TimeoutError, *garbage):
            async with asyncio.timeout(10):
                head = await reader.readuntil(b"\r\n\r\n")
                line, *headers = head.decode("latin-1").split("\r\n")
                parts = urlsplit(line.split(" ")[1])
                found = {name: values[0] for name, values in parse_qs(parts.query).items()}
                ours = (
                    line.startswith("GET ")
                    and parts.path == "/callback"
                    and f"127.0.0.1:{self._port}" in [_host_in(each) for each in headers]
                    and secrets.compare_digest(found.get("state", "").encode(), self.state.encode())
                    and bool(self.state)
                )
                status = "200 OK" if ours else "404 Not Found"
                text = _DONE if "code" in found else _NOT_DONE
                writer.write(
                    f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\nconnection: close\r\n"
                    f"cache-control: no-store\r\nreferrer-policy: no-referrer\r\n\r\n"
                    f"{text if ours else ''}".encode()
                )
                await writer.drain()
                if ours and self._came is not None and not self._came.done():
                    self._came.set_result(found)
        writer.close()


def _host_in(header: str) -> str:
    name, _, value = header.partition(":")
    return value.strip() if name.lower() == "host" else ""


def _described(answer: httpx2.Response) -> str:
    """An issuer's error: only the fields of the answer that are meant for it."""
    if answer.status_code < 300:
        return ""
    with suppress(ValueError):
        body = as_object(msgspec.json.decode(answer.content))
        words = [body.get("error"), body.get("error_description")]
        if text := ": ".join(each for each in words if isinstance(each, str)):
            return f"its issuer answered {answer.status_code}, {clean(text, 300)}"
    return f"its issuer answered {answer.status_code}"


def _origin(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    default = {"http": ":80", "https": ":443"}.get(parts.scheme, "")
    return f"{parts.scheme}://{host.removesuffix(default)}"


def _is_this_machine(url: str) -> bool:
    """Whether this may be another name of this machine: any spelling of loopback, or its own."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    own = socket.gethostname().lower()
    if is_loopback(url) or host in ("localhost.localdomain", "ip6-localhost", "ip6-loopback"):
        return True
    if host in (own, f"{own}.local", own.partition(".")[0]):
        return True
    with suppress(OSError, ValueError):
        host = socket.inet_ntoa(socket.inet_aton(host))  # such as 127.1, 0x7f000001, 2130706433
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _belongs_together(page: str, issuer: str) -> bool:
    """Whether one has the other's origin, or is a subdomain of the other."""
    if _origin(page) == _origin(issuer):
        return True
    hosts = sorted((urlsplit(each).hostname or "" for each in (page, issuer)), key=len)
    named = "." in hosts[0] and not hosts[0].replace(".", "").isdecimal()
    return named and hosts[1].endswith(f".{hosts[0]}")


def _other_audience(token: str, server: str) -> str | None:
    """The audience of a token, if it names one that is not this server.

    Only a URL counts: many issuers use names of their own for servers.
    """
    try:
        claims = as_object(msgspec.json.decode(urlsafe_b64decode(token.split(".")[1] + "==")))
        audience = claims["aud"]
    except (LookupError, ValueError):
        return None
    named = as_list(audience) or [audience]
    urls = [str(each) for each in named if str(each).startswith(("http://", "https://"))]
    if not urls or len(urls) < len(named) or _origin(server) in map(_origin, urls):
        return None
    return urls[0]


# --- the end of a login ----------------------------------------------------------------------


async def log_out(url: str, folder: Path | None = None) -> tuple[StoredLogin | None, str]:
    """Delete the login at a server and revoke it.

    Returns:
        The login, if there was one, and why it could not be revoked at its issuer, if so.
    """
    server = server_of(url)
    store = LoginStore(folder)
    async with store.locked(server):
        login = await asyncio.to_thread(store.read, server)
        await asyncio.to_thread(store.delete, server)
    if login is not None:
        async with aclosing(_Renewal(server, LoginOptions(folder=folder), login)) as renewal:
            try:
                await renewal.revoke()
            except NotConnected as error:
                return login, str(error)
    return login, ""
