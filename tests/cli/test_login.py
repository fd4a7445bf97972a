"""`transom login` and `transom logout`, and the commands that use a login."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl
from starlette.responses import JSONResponse, RedirectResponse

from tests.cli.running import TRANSOM, Ran, transom
from tests.connections.login_servers import (
    Browser,
    FastSite,
    Hostile,
    OpenSite,
    nothing_kept,
)
from tests.connections.test_http import url_of
from tests.ports import reserved_port
from transom.cli.login import read_headers
from transom.connections import login
from transom.errors import TransomError, UsageError
from transom.web.local import renderers

pytestmark = pytest.mark.load  # authorization servers and logins: many requests


@pytest.fixture(autouse=True)
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """The user's browser; and nothing else of this user's own."""
    browser = Browser()
    monkeypatch.setattr(renderers, "open_in_browser", browser)
    with nothing_kept(tmp_path, monkeypatch):
        yield browser


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": lambda _: True})())


async def run(*words: str) -> Ran:
    """The command in a thread: the servers are in this one."""
    return await asyncio.to_thread(transom, *words)


@pytest.mark.processes
async def test_a_login_is_made_listed_and_forgotten(browser: Browser) -> None:
    async with FastSite(scopes=["read"]) as site:
        made = await run("login", site.url)
        assert made.returncode == 0, made.stderr
        assert made.stdout == f"Logged in to {site.url} at {site.origin}/\n"
        assert f"{site.url} wants you to log in. Your browser opens" in made.stderr
        again = await run("login", site.url)
        assert again.stdout.startswith("There is already a login")
        listed = await run("login", "--list")
        assert listed.stdout.startswith(f"{site.url} at {site.origin}/ (read), until 20")
        gone = await run("logout", site.url)
        assert (gone.returncode, gone.stdout) == (0, f"Logged out of {site.url}\n")
        assert (await run("login", "--list")).stdout == "There are no logins.\n"
        assert (await run("logout", site.url)).returncode == 2
        said = "".join(text for ran in (made, again, listed, gone) for text in ran[1:])
        [given] = site.issuer.given
        assert given.access_token not in said
        assert (given.refresh_token or "?") not in said
    assert len(browser.pages) == 1


@pytest.mark.processes
async def test_without_a_browser_the_address_of_the_page_is_printed(browser: Browser) -> None:
    async with FastSite() as site:
        running = await asyncio.create_subprocess_exec(
            *TRANSOM, "login", "--no-open", site.url,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"},
        )  # fmt: skip
        assert running.stderr is not None
        line = (await running.stderr.readline()).decode()
        _, _, page = line.strip().partition("Open this page: ")
        await browser(page)
        said, _ = await running.communicate()
    assert said.decode() == f"Logged in to {site.url} at {site.origin}/\n"


async def test_more_scopes_are_asked_for_on_top(browser: Browser) -> None:
    async with FastSite(scopes=["read"]) as site:
        await run("login", site.url)
        ran = await run("login", site.url, "--scope", "write")
        assert ran.returncode == 0, ran.stderr
        assert [each.scopes for each in site.issuer.asked_for] == [["read"], ["read", "write"]]


async def test_a_first_login_may_name_its_scopes() -> None:
    async with FastSite() as site:
        ran = await run("login", site.url, "--scope", "read write")
        assert ran.returncode == 0, ran.stderr
        [asked] = site.issuer.asked_for
        assert asked.scopes == ["read", "write"]


async def test_an_issuer_that_registers_nobody_needs_a_client_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with FastSite() as site:
        await run("login", site.url)
        await run("logout", site.url)
        port = reserved_port()
        site.issuer.clients["us"] = OAuthClientInformationFull(
            client_id="us",
            client_secret="pst",
            token_endpoint_auth_method="client_secret_post",
            redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}/callback")],
        )
        monkeypatch.setenv("TRANSOM_CLIENT_SECRET", "pst")
        site.received.clear()
        ran = await run("login", site.url, "--client-id", "us", "--port", str(port))
        assert ran.returncode == 0, ran.stderr
        assert site.paths("/register") == 0


async def test_a_client_id_may_be_the_url_of_a_metadata_document() -> None:
    async with Hostile() as site:
        site.metadata["client_id_metadata_document_supported"] = True
        site.answers["/authorize"] = lambda request: RedirectResponse(
            "{redirect_uri}?error=enough&state={state}".format(**request.query_params), 302
        )
        id = "https://transom.example/client.json"
        ran = await run("login", site.url, "--client-id", id)
        assert "it was refused (enough)" in ran.stderr
        assert site.paths("/register") == 0
        [page] = [text for path, text in site.received if path == "/authorize"]
        assert "client_id=https%3A%2F%2Ftransom.example%2Fclient.json" in page


async def test_a_client_id_of_the_user_may_go_with_a_login_page_elsewhere() -> None:
    """Some issuers have it on another domain; without a client id that would be suspicious."""
    async with Hostile() as site, Hostile() as pages:
        site.metadata["authorization_endpoint"] = f"{pages.origin}/authorize"
        pages.answers["/authorize"] = lambda request: RedirectResponse(
            "{redirect_uri}?code=c&state={state}".format(**request.query_params), 302
        )
        site.answers["/token"] = lambda _: JSONResponse({"access_token": "t"})
        ran = await run("login", site.url, "--client-id", "us")
        assert f"{site.url} refuses the login it has asked for" in ran.stderr
        assert site.got("Bearer t")
        assert not pages.got("Bearer t")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["login", "orders.py"], "orders.py is not a URL"),
        (["login", "--no-open"], "name the server: transom login URL"),
        (["logout", "http://127.0.0.1:1/mcp"], "There is no login at http://127.0.0.1:1/mcp"),
    ],
)
def test_what_cannot_be_is_an_error_that_says_why(words: list[str], expected: str) -> None:
    ran = transom(*words)
    assert ran.returncode == 2
    assert expected in ran.stderr


async def test_a_server_that_is_not_there_or_wants_no_login_is_told_apart() -> None:
    assert "Nothing answers at" in (await run("login", url_of(reserved_port()))).stderr
    async with OpenSite() as site:
        ran = await run("login", site.url)
        assert (ran.returncode, ran.stdout) == (0, f"{site.url} needs no login.\n")


async def test_a_refused_login_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderers, "open_in_browser", Browser(agrees=False))
    async with FastSite() as site:
        ran = await run("login", site.url)
        assert ran.returncode == 2
        assert "failed: it was refused (access_denied)\n" in ran.stderr


# --- the other commands ----------------------------------------------------------------------

Command = Callable[[str], list[str]]
CHECK: Command = lambda url: ["check", url, "--select", "A1"]  # noqa: E731
OPEN: Command = lambda url: ["open", url, "greet", '{"name": "Ada"}', "--headless"]  # noqa: E731


@pytest.mark.usefixtures("at_terminal")
async def test_check_and_open_ask_for_a_login_at_a_terminal(browser: Browser) -> None:
    async with FastSite() as site:
        checked = await run(*CHECK(site.url))
        assert checked.returncode in (0, 1), checked.stderr
        assert "transom check: " in checked.stderr
        await login.log_out(site.url)
        opened = await run(*OPEN(site.url))
        assert "greet opened no View: the tool links none" in opened.stderr
    assert len(browser.pages) == 2


@pytest.mark.parametrize("command", [CHECK, OPEN], ids=["check", "open"])
async def test_check_and_open_without_a_terminal_name_the_command(
    command: Command, browser: Browser
) -> None:
    async with FastSite() as site:
        ran = await run(*command(site.url))
        assert ran.returncode == 2
        said = " ".join(f"{ran.stdout} {ran.stderr}".split())
        assert f"requires a login. Run: transom login {site.url}" in said
    assert browser.pages == []


@pytest.mark.parametrize("command", [CHECK, OPEN], ids=["check", "open"])
async def test_a_header_with_a_token_needs_no_login(
    command: Command, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FastSite() as site:
        await run("login", site.url)
        [given] = site.issuer.given
        for stored in login.LoginStore().folder.glob("*"):
            stored.unlink()
        monkeypatch.setenv("CI_TOKEN", given.access_token)
        ran = await run(*command(site.url), "--header", "Authorization: Bearer ${CI_TOKEN}")
        assert ran.returncode in (0, 1) or "opened no View" in ran.stderr
    assert len(browser.pages) == 1


def test_headers_are_read_with_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "k:1")
    assert read_headers(["X-Key: ${KEY}", "A:b"]) == {"X-Key": "k:1", "A": "b"}
    for wrong in ("X-Key", ": b", "a b: c", "A: ${NOT_SET_ANYWHERE}"):
        with pytest.raises(UsageError, match="--header"):
            read_headers([wrong])


async def test_a_page_that_no_browser_opens_is_an_error_where_nobody_reads_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from transom.cli.login import page_opener

    async def none(url: str) -> None:
        raise TransomError("No browser could be opened")

    monkeypatch.setattr(renderers, "open_in_browser", none)
    await page_opener("transom login", "https://a.example/mcp", waits=True)("https://b.example")
    with pytest.raises(TransomError):
        await page_opener("transom gateway", "https://a.example/mcp")("https://b.example")
