"""Servers behind a login: real issuers on loopback, and a browser that follows redirects."""

import asyncio
import json
import logging
import os
import socket
import stat
import sys
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import ANY
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx2
import jwt as pyjwt
import keyring
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fastmcp import FastMCP
from keyring.backend import KeyringBackend
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from tests.connections.login_servers import (
    Browser,
    FastSite,
    Hostile,
    IssuerSite,
    OfficialSite,
    OpenSite,
    Picky,
    Site,
    nothing_kept,
    with_tool,
)
from transom.connections import login
from transom.connections.login import LoginStore
from transom.connections.oauth_client import OAuthClient
from transom.connections.targets import RemoteServer
from transom.errors import NotConnected, ProtocolError, TransomError, UsageError
from transom.host.host import Host

pytestmark = pytest.mark.load  # authorization servers and logins: many requests


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing of this user's own: neither their logins nor their keyring."""
    with nothing_kept(tmp_path, monkeypatch):
        yield


async def greet(url: str, ask: Any = None, **options: Any) -> str:
    """What the server says through a Host of its own: as a program that was just started."""
    async with Host() as host:
        await host.add_server("s", RemoteServer(url, ask=ask, **options))
        return (await host.call_tool("greet", {"name": "Ada"})).text


async def refusal(url: str, ask: Any = None, **options: Any) -> str:
    """Why there is no way in."""
    with pytest.raises(NotConnected) as caught:
        await greet(url, ask, **options)
    return str(caught.value)


def files(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "transom" / "logins").glob("*.json"))


def expire(url: str) -> None:
    """Let the access token of a login that is kept have expired."""
    store = LoginStore()
    found = store.read(url)
    assert found is not None
    found.expires_at = time.time() - 1
    store.write(found)


# --- clients that were registered by hand ----------------------------------------------------


class Taking(Hostile):
    """Gives a token to any client, and lets it in; keeps what identified the client."""

    def __init__(self, methods: list[str] | None) -> None:
        methods_supported = {"token_endpoint_auth_methods_supported": methods} if methods else {}
        super().__init__(issuer=methods_supported)
        self.identified: list[tuple[str, dict[str, str]]] = []
        self.answers["/authorize"] = lambda request: RedirectResponse(
            "{redirect_uri}?code=c&state={state}".format(**request.query_params), 302
        )
        self.answers["/token"] = self._give
        self.app = self._guard
        self._behind = with_tool(FastMCP("behind")).http_app(stateless_http=True)

    def _give(self, request: Any) -> Response:
        form = dict(parse_qsl(request._body.decode()))
        self.identified.append((request.headers.get("authorization", ""), form))
        return JSONResponse({"access_token": "t", "token_type": "Bearer"})

    async def _guard(self, scope: Any, receive: Any, send: Any) -> None:
        token = (b"authorization", b"Bearer t") in scope.get("headers", [])
        inside = scope["type"] == "lifespan" or (scope["path"] == "/mcp" and token)
        await (self._behind if inside else self._answer)(scope, receive, send)


BASIC = f"Basic {b64encode(b'us:p%25st').decode()}"


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(
    ("methods", "basic"),
    [
        (None, True),
        (["client_secret_basic", "client_secret_post"], True),
        (["client_secret_post", "none"], False),
    ],
)
async def test_a_secret_is_sent_as_the_issuer_supports_it(
    methods: list[str] | None, basic: bool, alone: bool
) -> None:
    async with Taking(methods) as site:
        browser = Browser()
        client = OAuthClient(id="us", secret="p%st", issuer=site.origin, client_credentials=alone)
        ask = None if alone else browser
        assert await greet(site.url, ask, client=client, scope="read") == "Hello, Ada"
        [(header, form)] = site.identified
        assert (header, form.get("client_secret")) == ((BASIC, None) if basic else ("", "p%st"))
        assert form["grant_type"] == ("client_credentials" if alone else "authorization_code")
        assert len(browser.pages) == (0 if alone else 1)
        asked = form["scope"] if alone else parse_qs(urlsplit(browser.pages[0]).query)["scope"][0]
        assert asked == "read"


async def test_a_client_with_a_key_signs_who_it_is_for_its_issuer_alone() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    plain = serialization.NoEncryption()
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain
    ).decode()
    async with Taking(["private_key_jwt"]) as site, Taking(None) as other:
        client = OAuthClient(id="us", private_key=pem, issuer=site.origin, client_credentials=True)
        assert await greet(site.url, client=client) == "Hello, Ada"
        [(_, form)] = site.identified
        claims = pyjwt.decode(
            form["client_assertion"], key.public_key(), ["ES256"], audience=site.origin
        )
        assert claims["iss"] == claims["sub"] == "us"
        assert "issuer mismatch" in await refusal(other.url, client=client)
        assert not other.identified


@pytest.mark.parametrize("secret", ["p%st", None])
async def test_an_assertion_of_another_issuer_is_a_login_without_the_user(
    secret: str | None,
) -> None:
    asked: list[tuple[str, str]] = []

    async def employer(issuer: str, server: str) -> str:
        asked.append((issuer, server))
        return "signed"

    async with Taking(None) as site, Taking(None) as other:
        client = OAuthClient(id="us", secret=secret, issuer=site.origin, assertion=employer)
        assert await greet(site.url, client=client, scope="read") == "Hello, Ada"
        [(header, form)] = site.identified
        assert header == (BASIC if secret else "")
        assert asked == [(site.origin, site.url)]
        assert form == {
            "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
            "assertion": "signed",
            "client_id": "us",
            "resource": site.url,
            "scope": "read",
        }
        assert "the client is for" in await refusal(other.url, client=client)
        assert len(asked) == 1


async def test_a_login_without_its_assertion_fails_and_says_why() -> None:
    async def employer(issuer: str, server: str) -> str:
        raise LookupError("the employer's page is closed")

    async with Taking(None) as site:
        client = OAuthClient(id="us", issuer=site.origin, assertion=employer)
        text = await refusal(site.url, client=client)
        assert "there is no assertion for it: the employer's page is closed" in text
        assert not site.identified


async def test_the_secret_of_a_client_goes_to_no_other_issuer() -> None:
    async with Taking(None) as site:
        client = OAuthClient(id="us", secret="pst", issuer="https://issuer.example")
        assert "the client is for https://issuer.example" in await refusal(
            site.url, Browser(), client=client
        )
        assert not site.identified


@pytest.mark.parametrize(
    "options",
    [
        {"client_credentials": True, "secret": "s"},
        {"client_credentials": True, "issuer": "https://i.example"},
        {"client_credentials": True, "issuer": "https://i", "secret": "s", "private_key": "k"},
        {"private_key": "k"},
        {"assertion": greet},
        {"assertion": greet, "issuer": "https://i", "client_credentials": True, "secret": "s"},
    ],
)
def test_a_client_that_could_not_log_in_is_refused_when_it_is_made(options: Any) -> None:
    with pytest.raises(UsageError, match="client_credentials"):
        OAuthClient(id="us", **options)


# --- the life of a login ---------------------------------------------------------------------


async def test_the_browser_opens_once_and_later_runs_need_nobody(tmp_path: Path) -> None:
    browser = Browser()
    async with FastSite() as site:
        assert await greet(site.url, browser) == "Hello, Ada"
        assert await greet(site.url, browser) == "Hello, Ada"
        assert await greet(site.url) == "Hello, Ada"
    assert len(browser.pages) == 1
    assert browser.answer is not None
    assert browser.answer.text.startswith("You can close this page")
    [file] = files(tmp_path)
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


async def test_an_issuer_elsewhere_makes_a_token_for_the_server_alone() -> None:
    async with IssuerSite() as issuer, OfficialSite(issuer) as site:
        assert await greet(site.url, Browser()) == "Hello, Ada"
        [asked] = issuer.issuer.asked_for
        [given] = issuer.issuer.given
        assert asked.resource == site.url
        assert site.got(given.access_token)
        assert given.refresh_token is not None
        assert not site.got(given.refresh_token)
        assert not site.got("code_verifier")


@pytest.mark.parametrize("noticed_by", ["clock", "server"])
async def test_a_token_that_has_expired_is_refreshed_at_its_issuer_without_the_user(
    noticed_by: str,
) -> None:
    browser = Browser()
    async with IssuerSite() as issuer, OfficialSite(issuer) as site:
        await greet(site.url, browser)
        issuer.issuer.forget_access()
        if noticed_by == "clock":
            expire(site.url)
        assert await greet(site.url) == "Hello, Ada"
        assert await greet(site.url) == "Hello, Ada"
        first, second = issuer.issuer.given
        assert first.refresh_token is not None
        assert second.refresh_token is not None
        assert not site.got(first.refresh_token)
        assert not site.got(second.refresh_token)
    assert len(browser.pages) == 1


@pytest.mark.parametrize("jumps", [(30, -30), (-30, 30)], ids=["ahead", "behind"])
async def test_a_clock_that_jumps_by_days_and_back_costs_nobody_their_login(
    jumps: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, now = Browser(), time.time
    async with FastSite() as site, Host() as host:
        await host.add_server("s", RemoteServer(site.url, ask=browser))
        for days in (*jumps, 0):
            monkeypatch.setattr(time, "time", lambda days=days: now() + days * 86_400)
            for _ in range(3):
                assert (await host.call_tool("greet", {"name": "Ada"})).text == "Hello, Ada"
            assert await greet(site.url) == "Hello, Ada"
        assert len(site.issuer.given) <= 3  # a token is refreshed when it seems to have expired
    assert len(browser.pages) == 1


async def test_a_login_that_was_taken_back_is_an_error_that_says_what_to_do() -> None:
    async with FastSite() as site:
        await greet(site.url, Browser())
        site.issuer.forget_all()
        assert (
            f"The login at {site.url} has expired or was revoked. Run: transom login {site.url}"
            in await refusal(site.url)
        )
        browser = Browser()
        assert await greet(site.url, browser) == "Hello, Ada"
        assert len(browser.pages) == 1


async def test_a_login_that_is_taken_back_during_a_session_is_made_again_or_an_error() -> None:
    browser = Browser()
    async with FastSite() as site, Host() as asking, Host() as alone:
        await asking.add_server("s", RemoteServer(site.url, ask=browser))
        await alone.add_server("s", RemoteServer(site.url))
        site.issuer.forget_all()
        with pytest.raises(ProtocolError, match=f"Run: transom login {site.url}"):
            await alone.call_tool("greet", {"name": "Ada"})
        assert (await asking.call_tool("greet", {"name": "Ada"})).text == "Hello, Ada"
        assert (await alone.call_tool("greet", {"name": "Bo"})).text == "Hello, Bo"
    assert len(browser.pages) == 2


async def test_where_nobody_can_be_asked_the_error_names_the_command() -> None:
    async with FastSite() as site:
        found = await refusal(site.url)
    assert f"{site.url} requires a login. Run: transom login {site.url}" in found


async def test_a_login_that_the_user_refuses_is_an_error_and_not_asked_for_again() -> None:
    browser = Browser(agrees=False)
    async with FastSite() as site:
        assert "it was refused (access_denied)" in await refusal(site.url, browser)
        assert f"Run: transom login {site.url}" in await refusal(site.url, browser)
    assert len(browser.pages) == 1
    assert browser.answer is not None
    assert browser.answer.text.startswith("The login was refused")


async def test_a_user_is_asked_whatever_another_user_of_the_process_answered(
    tmp_path: Path,
) -> None:
    eve, ann = Browser(agrees=False), Browser()
    async with FastSite() as site:
        await refusal(site.url, eve, logins=tmp_path / "eve")
        assert await greet(site.url, ann, logins=tmp_path / "ann") == "Hello, Ada"
    assert (len(eve.pages), len(ann.pages)) == (1, 1)


async def test_an_issuer_that_fails_while_refreshing_costs_nobody_their_login() -> None:
    browser = Browser()
    async with Hostile() as issuer, FastSite() as site:
        issuer.answers["/token"] = lambda _: Response("down", 503)
        await greet(site.url, browser)
        store = LoginStore()
        found = store.read(site.url)
        assert found is not None
        assert found.metadata is not None
        down = {**found.metadata, "token_endpoint": f"{issuer.origin}/token"}
        store.write(login.msgspec.structs.replace(found, metadata=down))
        expire(site.url)
        text = await refusal(site.url, browser)
        assert "its issuer answered 503; try again later" in text
        assert store.read(site.url) is not None
    assert len(browser.pages) == 1


async def test_a_call_that_needs_more_scopes_asks_for_them_on_top() -> None:
    browser = Browser()
    async with FastSite(scopes=["read"]) as site:
        site.app = Picky(site.app, site.issuer, "write")
        assert await greet(site.url, browser) == "Hello, Ada"
        assert [each.scopes for each in site.issuer.asked_for] == [["read"], ["read", "write"]]
        assert await greet(site.url) == "Hello, Ada"
    assert len(browser.pages) == 2


@pytest.mark.parametrize(
    "challenge",
    [
        'Bearer scope="admin"',
        'Bearer scscope=""ope=admin',  # which is `scope=admin` for who takes out `scope=""`
        'Bearer realm="scope=admin", scope="admin", scope="all"',
        'Bearer error="insufficient_scope scope=admin", error_scope="admin"',
    ],
)
@pytest.mark.parametrize("alone", [False, True])
async def test_a_server_gets_no_scope_but_those_that_the_user_chose(
    challenge: str, alone: bool
) -> None:
    async with Taking(None) as site:
        refused = {"www-authenticate": challenge}
        site.answers["/mcp"] = lambda _: PlainTextResponse("no", 401, headers=refused)
        client = OAuthClient(id="us", secret="p", issuer=site.origin, client_credentials=alone)
        browser = Browser()
        ask = None if alone else browser
        assert await greet(site.url, ask, client=client, scope="read") == "Hello, Ada"
        [(_, form)] = site.identified
        asked = form["scope"] if alone else parse_qs(urlsplit(browser.pages[0]).query)["scope"][0]
        assert asked == "read"


async def test_a_client_without_a_user_gets_no_more_scopes_because_a_server_wants_them() -> None:
    async with Taking(None) as site, Host() as host:
        client = OAuthClient(id="us", secret="p", issuer=site.origin, client_credentials=True)
        await host.add_server("s", RemoteServer(site.url, client=client))
        assert len(site.identified) == 1
        more = {"www-authenticate": 'Bearer error="insufficient_scope", scope="admin"'}
        refusal = PlainTextResponse("no", 403, headers=more)
        site.app = refusal
        with pytest.raises(TransomError, match="requires a login with more rights"):
            await host.call_tool("greet", {"name": "Ada"})
        assert len(site.identified) == 1


async def test_more_scopes_where_nobody_can_be_asked_are_an_error_with_the_command() -> None:
    async with FastSite(scopes=["read"]) as site, Host() as host:
        site.app = Picky(site.app, site.issuer, "write")
        await host.add_server("s", RemoteServer(site.url, ask=Browser()))
        site.app.scope = "admin"
        async with Host() as alone:
            await alone.add_server("s", RemoteServer(site.url))
            with pytest.raises(ProtocolError, match="--scope 'admin'"):
                await alone.call_tool("greet", {"name": "Ada"})


async def test_headers_win_over_a_login() -> None:
    async with FastSite() as site:
        await greet(site.url, Browser())
        [given] = site.issuer.given
        site.received.clear()
        found = await refusal(site.url, Browser(), headers={"authorization": "Bearer mine"})
        assert "answered 401 Unauthorized: it does not accept the Authorization" in found
        assert site.got("Bearer mine")
        assert not site.got(given.access_token)


async def test_a_server_without_a_login_costs_nothing(tmp_path: Path) -> None:
    async with OpenSite() as site:
        assert await greet(site.url) == "Hello, Ada"
    assert not (tmp_path / "transom").exists()


# --- several processes -----------------------------------------------------------------------

_GREET = """
import asyncio, sys
from transom.host.host import Host
async def main():
    async with Host() as host:
        await host.add_server("s", sys.argv[1])
        print((await host.call_tool("greet", {"name": "Ada"})).text)
asyncio.run(main())
"""


@pytest.mark.processes
@pytest.mark.nightly
async def test_processes_that_refresh_at_once_lose_no_token() -> None:
    """The issuer takes each refresh token once: the second to use one would be logged out."""
    async with FastSite() as site:
        await greet(site.url, Browser())
        expire(site.url)
        environ = {**os.environ, "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
        running = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", _GREET, site.url,
                stdout=asyncio.subprocess.PIPE, env=environ,
            )
            for _ in range(2)
        ]  # fmt: skip
        said = await asyncio.gather(*(each.communicate() for each in running))
        assert [out.strip() for out, _ in said] == [b"Hello, Ada"] * 2
        assert len(site.issuer.given) == 2  # the login, and one refresh for all


class SlowRefresh:
    """An issuer that replaces a refresh token at once, and answers when it may."""

    def __init__(self, site: Site) -> None:
        self.rotated, self.may_answer = asyncio.Event(), asyncio.Event()
        self._exchange = site.issuer.exchange_refresh_token
        site.issuer.exchange_refresh_token = self._answer  # type: ignore[method-assign]
        site.issuer.forget_access()

    async def _answer(self, *given: Any) -> Any:
        token = await self._exchange(*given)
        self.rotated.set()
        await self.may_answer.wait()
        return token

    async def cancelled_call(self, host: Host) -> None:
        """A call that is cancelled after the refresh token was replaced."""
        call = asyncio.create_task(host.call_tool("greet", {"name": "Ada"}))
        await self.rotated.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_a_call_that_is_cancelled_while_its_login_is_refreshed_loses_no_token() -> None:
    """The issuer takes each refresh token once, and has given the next one by then."""
    async with FastSite() as site, Host() as host:
        await greet(site.url, Browser())
        await host.add_server("s", RemoteServer(site.url))
        refresh = SlowRefresh(site)
        await refresh.cancelled_call(host)
        refresh.may_answer.set()
        assert (await host.call_tool("greet", {"name": "Bo"})).text == "Hello, Bo"
        assert await greet(site.url) == "Hello, Ada"
        assert len(site.issuer.given) == 2


async def test_a_program_that_ends_while_its_login_is_refreshed_loses_no_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(login, "_CLOSE_WITHIN", 60.0)  # a busy machine may need more than 5 s
    async with FastSite() as site:
        await greet(site.url, Browser())
        async with Host() as host:
            await host.add_server("s", RemoteServer(site.url))
            refresh = SlowRefresh(site)
            await refresh.cancelled_call(host)
            asyncio.get_running_loop().call_later(0.1, refresh.may_answer.set)
        stored = LoginStore().read(site.url)  # here a program ends, with all that still runs
        assert stored is not None
        assert [stored.token] == [each.access_token for each in site.issuer.given[1:]]


async def test_a_login_whose_caller_was_cancelled_asks_nobody_and_waits_for_nobody() -> None:
    shown = asyncio.Event()

    async def show(_: str) -> None:
        shown.set()

    async with FastSite() as site:
        call = asyncio.create_task(greet(site.url, show))
        await shown.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(20):
            assert await greet(site.url, Browser()) == "Hello, Ada"


async def test_a_host_that_runs_does_not_undo_a_logout(tmp_path: Path) -> None:
    async with FastSite() as site, Host() as host:
        await greet(site.url, Browser())
        await host.add_server("s", RemoteServer(site.url))
        revoked, site.issuer.revoke_token = site.issuer.revoke_token, _nothing  # type: ignore[method-assign]
        assert await login.log_out(site.url) == (ANY, "")
        site.issuer.revoke_token = revoked  # type: ignore[method-assign]
        site.issuer.forget_access()
        with pytest.raises(ProtocolError, match="requires a login"):
            await host.call_tool("greet", {"name": "Ada"})
        assert files(tmp_path) == []
        assert len(site.issuer.given) == 1


async def _nothing(_: object) -> None:
    """An issuer that says that it has revoked a token, and has not."""


async def test_a_logout_revokes_the_login_or_says_why_not() -> None:
    async with FastSite() as site:
        await greet(site.url, Browser())
        assert site.issuer.refresh_tokens
        found, problem = await login.log_out(site.url)
        assert found is not None
        assert problem == ""
        assert not site.issuer.refresh_tokens
    async with Hostile() as site:
        site.answers |= _issues()
        site.answers["/revoke"] = lambda _: JSONResponse({"error": "no_way"}, 403)
        site.metadata["revocation_endpoint"] = f"{site.origin}/revoke"
        with suppress(NotConnected):
            await greet(site.url, Browser())
        found, problem = await login.log_out(site.url)
        assert found is not None
        assert problem == "The login could not be revoked: its issuer answered 403, no_way"


async def test_clients_that_need_a_login_at_once_open_one_page() -> None:
    browser = Browser()
    async with FastSite() as site:
        said = await asyncio.gather(*(greet(site.url, browser) for _ in range(4)))
    assert said == ["Hello, Ada"] * 4
    assert len(browser.pages) == 1


# --- where tokens are ------------------------------------------------------------------------


class _Keyring(KeyringBackend):
    priority = 5  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    def __init__(self, longest: int = 1_000_000) -> None:
        super().__init__()
        self.kept: dict[str, str] = {}
        self._longest = longest

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get(username)

    def set_password(self, service: str, username: str, password: str) -> None:
        if len(password) > self._longest:
            raise ValueError("too long")
        self.kept[username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[username]


async def test_the_keyring_of_the_system_holds_the_tokens_where_there_is_one(
    tmp_path: Path,
) -> None:
    ring = _Keyring()
    keyring.set_keyring(ring)
    async with FastSite() as site:
        await greet(site.url, Browser())
        assert await greet(site.url) == "Hello, Ada"
        [given] = site.issuer.given
        assert given.access_token in ring.kept[site.url]
        [file] = files(tmp_path)
        assert given.access_token not in file.read_text()
        await login.log_out(site.url)
        assert ring.kept == {}
        assert site.issuer.refresh_tokens == {}


async def test_a_keyring_that_does_not_take_a_token_leaves_it_to_the_file() -> None:
    keyring.set_keyring(_Keyring(longest=10))
    async with FastSite() as site:
        await greet(site.url, Browser())
        assert await greet(site.url) == "Hello, Ada"


async def test_users_with_a_folder_each_have_a_login_each(tmp_path: Path) -> None:
    ada, bo = tmp_path / "ada", tmp_path / "bo"
    async with FastSite() as site:
        await greet(site.url, Browser(), logins=ada)
        assert "requires a login" in await refusal(site.url, logins=bo)
        assert await greet(site.url, logins=ada) == "Hello, Ada"


@pytest.mark.parametrize("content", ["", "{}", "[" * 100_000, '{"server": 3}', "\0"])
async def test_a_file_that_is_broken_is_no_login(tmp_path: Path, content: str) -> None:
    async with FastSite() as site:
        await greet(site.url, Browser())
        [file] = files(tmp_path)
        file.write_text(content)
        assert "requires a login" in await refusal(site.url)
        assert LoginStore().logins() == []
        assert await greet(site.url, Browser()) == "Hello, Ada"


async def test_no_token_is_in_a_log_the_audit_or_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    audit: list[Any] = []
    async with FastSite() as site, Host(audit=audit.append) as host:
        await host.add_server("s", RemoteServer(site.url, ask=Browser()))
        await host.call_tool("greet", {"name": "Ada"})
        site.issuer.forget_access()
        await host.call_tool("greet", {"name": "Ada"})
        site.issuer.forget_all()
        with pytest.raises(NotConnected) as caught:
            await host.add_server("t", site.url)
        written = caplog.text + repr(audit) + str(caught.value)
        secrets = [each.access_token for each in site.issuer.given]
        secrets += [each.refresh_token or "" for each in site.issuer.given]
        assert len(secrets) == 4
        assert [each for each in secrets if each in written] == []


async def test_an_answer_with_a_token_that_cannot_be_read_is_not_repeated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with Hostile() as site:
        site.answers |= _issues(
            lambda _: JSONResponse({"access_token": "hush", "expires_in": "soon"})
        )
        found = await refusal(site.url, Browser())
    assert "its issuer's answer cannot be used" in found
    assert "hush" not in found
    assert "hush" not in caplog.text


# --- two servers, and hostile ones -----------------------------------------------------------


def _back(request: Any, **parameters: str) -> RedirectResponse:
    """Back from a login page to where the client waits."""
    query = request.query_params
    more = urlencode({"code": "the-code", "state": query["state"], **parameters})
    return RedirectResponse(f"{query['redirect_uri']}?{more}", 302)


def _issues(token: Any = None) -> dict[str, Any]:
    """The answers of an issuer that agrees to everything."""
    return {
        "/register": lambda _: JSONResponse({"client_id": "c", "redirect_uris": []}, 201),
        "/authorize": _back,
        "/token": token or (lambda _: JSONResponse({"access_token": "t", "token_type": "Bearer"})),
    }


async def test_servers_with_different_issuers_never_see_each_others_tokens() -> None:
    async with FastSite() as one, IssuerSite() as issuer, OfficialSite(issuer) as other:
        browser = Browser()
        async with Host() as host:
            await host.add_server("one", RemoteServer(one.url, ask=browser))
            await host.add_server("other", RemoteServer(other.url, ask=browser))
            for tool in await host.list_tools():
                assert (await host.call_tool(tool.name, {"name": "Ada"})).text == "Hello, Ada"
        one.issuer.forget_access()
        issuer.issuer.forget_access()
        assert await greet(one.url) == "Hello, Ada"
        assert await greet(other.url) == "Hello, Ada"
        _share_nothing(one.issuer.given, [issuer, other])
        _share_nothing(issuer.issuer.given, [one])


def _share_nothing(given: list[Any], others: list[Site]) -> None:
    secrets = [each.access_token for each in given] + [each.refresh_token for each in given]
    assert len(secrets) == 4
    assert [each for each in secrets for other in others if other.got(each)] == []


async def test_a_server_that_names_the_login_page_of_another_issuer_gets_no_code() -> None:
    browser = Browser()
    async with IssuerSite() as honest, Hostile() as hostile:
        hostile.metadata["authorization_endpoint"] = f"{honest.origin}/authorize"
        hostile.metadata["registration_endpoint"] = f"{honest.origin}/register"
        found = await refusal(hostile.url, browser)
        assert f"{honest.origin}/authorize does not belong to its issuer {hostile.origin}" in found
        assert browser.pages == []
        assert hostile.paths("/token") == 0


@pytest.mark.parametrize("promised", [True, False])
async def test_a_server_that_leads_the_user_to_another_issuer_gets_no_code(promised: bool) -> None:
    """Its own login page passes the user on; the issuer there says who it is (RFC 9207)."""
    browser = Browser()
    async with IssuerSite(iss=True) as honest, Hostile() as hostile:
        hostile.metadata["registration_endpoint"] = f"{honest.origin}/register"
        hostile.metadata["authorization_response_iss_parameter_supported"] = promised
        hostile.answers["/authorize"] = lambda request: RedirectResponse(
            f"{honest.origin}/authorize?{request.url.query}", 302
        )
        found = await refusal(hostile.url, browser)
        assert "iss mismatch" in found
        assert len(browser.pages) == 1
        assert hostile.paths("/token") == 0
        assert honest.issuer.auth_codes != {}
        assert not any(hostile.got(code) for code in honest.issuer.auth_codes)


async def test_a_server_that_poses_as_another_gets_no_token() -> None:
    async with FastSite() as honest, Hostile(resource={"resource": honest.url}) as hostile:
        hostile.resource["authorization_servers"] = [honest.origin]
        browser = Browser()
        found = await refusal(hostile.url, browser)
        assert f"resource {honest.url} does not match" in found
        assert browser.pages == []


async def test_metadata_that_another_issuer_signed_is_refused() -> None:
    browser = Browser()
    async with FastSite() as honest, Hostile(issuer={"issuer": honest.origin}) as hostile:
        assert "issuer mismatch" in await refusal(hostile.url, browser)
        assert browser.pages == []


async def test_a_code_is_not_sent_where_the_issuer_redirects_it() -> None:
    async with Hostile() as server, Hostile() as thief:
        server.answers |= _issues(lambda _: RedirectResponse(f"{thief.origin}/token", 307))
        thief.answers |= _issues()
        assert "its issuer answered 307" in await refusal(server.url, Browser())
        assert server.got("the-code")
        assert thief.received == []


async def test_a_token_does_not_follow_a_redirect_to_another_server() -> None:
    async with FastSite() as site, Hostile() as thief:
        await greet(site.url, Browser())
        honest = site.app

        async def redirecting(scope: Any, receive: Any, send: Any) -> None:
            away = RedirectResponse(thief.url, 307)
            await (away if scope["path"] == "/mcp" else honest)(scope, receive, send)

        site.app = redirecting
        await refusal(site.url)
        [given] = site.issuer.given
        assert not thief.got(given.access_token)
        assert not thief.got("authorization")


async def test_a_server_that_changes_its_issuer_gets_nothing_of_the_old_login() -> None:
    async with IssuerSite() as issuer, OfficialSite(issuer) as site, Hostile() as thief:
        await greet(site.url, Browser())
        [given] = issuer.issuer.given
        thief.answers |= _issues()
        metadata = {"resource": site.url, "authorization_servers": [thief.origin]}

        async def turned(scope: Any, receive: Any, send: Any) -> None:
            found = Response("no", 401)
            if scope["path"].startswith("/.well-known/oauth-protected-resource"):
                found = JSONResponse(metadata)
            await found(scope, receive, send)

        site.app = turned
        issuer.issuer.forget_all()
        await refusal(site.url, Browser())
        assert thief.paths("/token") == 1
        assert given.refresh_token is not None
        [client] = issuer.issuer.clients
        for secret in (given.access_token, given.refresh_token, client):
            assert not thief.got(secret)


def jwt(**claims: Any) -> str:
    parts = [urlsafe_b64encode(json.dumps(each).encode()).decode() for each in ({}, claims)]
    return ".".join(["e" + parts[0].rstrip("="), parts[1].rstrip("="), "signature"])


async def test_a_token_for_another_server_is_neither_kept_nor_sent(tmp_path: Path) -> None:
    async with FastSite() as site:
        site.issuer.make_token = lambda: jwt(aud=["https://bank.example/api"], jti=time.time_ns())
        found = await refusal(site.url, Browser())
        [given] = site.issuer.given
        assert "gave a token for another server, https://bank.example/api" in found
        assert not site.got(f"Bearer {given.access_token}")
        assert files(tmp_path) == []


@pytest.mark.parametrize("audience", ["URL", ["https://a.example", "URL"], "api://name", 3, None])
async def test_a_token_that_may_be_for_the_server_is_used(audience: Any) -> None:
    async with FastSite() as site:
        text = json.dumps(audience).replace("URL", site.url)
        site.issuer.make_token = lambda: jwt(aud=json.loads(text), jti=time.time_ns())
        assert await greet(site.url, Browser()) == "Hello, Ada"


@pytest.mark.parametrize(
    "issuer", ["http://issuer.example", "http://169.254.169.254/latest", "https://127.0.0.1:1/x"]
)
async def test_an_issuer_that_is_not_safe_or_not_there_is_an_error(issuer: str) -> None:
    browser = Browser()
    async with Hostile(resource={"authorization_servers": [issuer]}) as site:
        found = await refusal(site.url, browser)
        assert "is not safe" in found or "failed" in found
        assert browser.pages == []


@pytest.mark.parametrize(
    "where",
    ["127.0.0.1", "127.1.2.3:8443", "[::1]", "localhost", "LOCALHOST.", "x.localhost", "127.1",
     "0x7f.1", "0x7f000001", "2130706433", "017700000001", "0.0.0.0", "0", "[::]",  # noqa: S104
     "\uff11\uff12\uff17.0.0.1", "loc%61lhost", "127\u30020\u30020\u30021",
     "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "localhost.localdomain",
     socket.gethostname(), socket.gethostname().upper() + ".", f"{socket.gethostname()}.local"],
)  # fmt: skip
async def test_a_server_elsewhere_cannot_have_this_machine_asked(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    metadata = {"resource": "https://x.example/mcp", "authorization_servers": [f"https://{where}/"]}

    async def body() -> AsyncIterator[bytes]:
        yield json.dumps(metadata).encode()

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.host)
        return httpx2.Response(200, content=body())

    network = partial(httpx2.AsyncClient, transport=httpx2.MockTransport(answer))
    monkeypatch.setattr(httpx2, "AsyncClient", network)
    found = login.ServerLogin("https://x.example/mcp", login.LoginOptions(ask=Browser()))
    with pytest.raises(NotConnected, match="is not safe: it is on this machine"):
        await found.renew(httpx2.Response(401))
    assert set(asked) == {"x.example"}


async def test_an_answer_without_end_is_cut_off() -> None:
    async with Hostile() as site:
        site.resource["resource_name"] = "x" * 2_000_000
        assert "its issuer's answer is too long" in await refusal(site.url, Browser())


@pytest.mark.parametrize("token", ["a b", "a\nx-more: 1", "é", "", "x" * 100_000])
async def test_a_token_that_does_not_fit_into_a_header_is_refused(token: str) -> None:
    async with Hostile() as site:
        site.answers |= _issues(lambda _: JSONResponse({"access_token": token}))
        site.received.clear()
        assert "its issuer's answer cannot be used" in await refusal(site.url, Browser())
        assert not site.got("x-more: 1")


async def test_a_server_that_refuses_each_login_does_not_open_pages_for_ever() -> None:
    browser = Browser()
    async with Hostile() as site:
        site.answers |= _issues()
        for _ in range(6):
            await refusal(site.url, browser)
        assert len(browser.pages) <= 5


async def test_a_server_opens_no_more_pages_when_the_clock_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    browser = Browser()
    async with Hostile() as site:
        site.answers |= _issues()
        for _ in range(6):
            await refusal(site.url, browser)
        asked = len(browser.pages)
        now = time.time
        monkeypatch.setattr(time, "time", lambda: now() + 86400)
        await refusal(site.url, browser)
        assert len(browser.pages) == asked  # a clock that is set forward allows no more


async def test_strangers_who_call_where_the_browser_comes_back_to_change_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tried: list[int] = []

    class Guessing(Browser):
        async def __call__(self, url: str) -> None:
            query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
            back, state = query["redirect_uri"], query["state"]
            async with httpx2.AsyncClient() as stranger:
                for target, headers in (
                    (f"{back}?code=evil&state=guess", {}),
                    (f"{back}?error=access_denied", {}),
                    (f"{back}?code=evil&state={state}", {"host": "evil.example"}),
                    (f"{back}/more?code=evil&state={state}", {}),
                ):
                    tried.append((await stranger.get(target, headers=headers)).status_code)
            for garbage in (b"x\r\n\r\n", b"\r\n\r\n", bytes(200_000), b"GET http://[ x\r\n\r\n"):
                reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(back).port)
                writer.write(garbage)
                with suppress(OSError):
                    assert await reader.read() == b""
                writer.close()
            await super().__call__(url)

    async with FastSite() as site:
        assert await greet(site.url, Guessing()) == "Hello, Ada"
    assert tried == [404] * 4
    assert caplog.text == ""


async def test_a_login_page_whose_address_has_a_fragment_is_an_error() -> None:
    browser = Browser()
    async with Hostile() as site:
        site.answers |= _issues()
        site.metadata["authorization_endpoint"] = f"{site.origin}/authorize#here"
        found = await refusal(site.url, browser)
    assert "the address of its login page cannot be used" in found
    assert browser.pages == []
