"""`transom login` and `transom logout`; and how the other commands log in to a server by URL."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import Any

from transom.cli import run_async
from transom.cli.options import LoginCommandOptions, LogoutOptions
from transom.connections.oauth_client import OAuthClient
from transom.connections.targets import RemoteServer, Target
from transom.connections.urls import is_http_url, server_of
from transom.errors import TransomError, UsageError

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_SECRET = "TRANSOM_CLIENT_SECRET"  # noqa: S105 - its name


def run(options: LoginCommandOptions | LogoutOptions) -> int:
    """Do what the command line says; the exit code."""
    if isinstance(options, LogoutOptions):
        _log_out(_checked(options.url))
    elif options.list:
        _print_logins()
    elif options.url is None:
        raise UsageError("name the server: transom login URL")
    else:
        run_async(_log_in(_checked(options.url), options))
    return 0


def _checked(url: str) -> str:
    if not is_http_url(url):
        raise UsageError(f"{url} is not a URL that begins with http:// or https://")
    return url


async def _log_in(url: str, options: LoginCommandOptions) -> None:
    http: Any = import_module("transom.connections.http")
    module: Any = import_module("transom.connections.login")
    client = None
    if options.client_id is not None:
        client = OAuthClient(id=options.client_id, secret=os.environ.get(_SECRET))
    login = module.LoginOptions(
        ask=page_opener("transom login", url, opens=not options.no_open, waits=True),
        client=client,
        port=options.port,
        scope=options.scope,
        again=True,
    )
    channel = await http.connect_http(url, login=login)
    try:
        found = channel.login
        if options.scope is not None and not found.asked:
            await found.renew(module.scope_challenge(options.scope))
    finally:
        await channel.aclose()
    if found.stored is None:
        text = f"{found.server} needs no login."
    elif found.asked:
        text = f"Logged in to {found.server} at {found.stored.issuer}"
    else:
        text = f"There is already a login: to log in as somebody else, transom logout {url}"
    sys.stdout.write(f"{text}\n")


def _log_out(url: str) -> None:
    login: Any = import_module("transom.connections.login")
    found, problem = run_async(login.log_out(url))
    if found is None:
        raise UsageError(f"There is no login at {server_of(url)}: see transom login --list")
    sys.stdout.write(f"Logged out of {found.server}\n")
    if problem:
        sys.stderr.write(f"transom logout: {problem}; its token may be valid until it expires\n")


def _print_logins() -> None:
    login: Any = import_module("transom.connections.login")
    found = login.LoginStore().logins()
    for each in found:
        rights = f" ({each.scope})" if each.scope else ""
        until = "" if each.expires_at is None else _until(each.expires_at)
        sys.stdout.write(f"{each.server} at {each.issuer}{rights}{until}\n")
    if not found:
        sys.stdout.write("There are no logins.\n")


def _until(moment: float) -> str:
    what = "expired" if moment < time.time() else "until"
    return f", {what} {time.strftime('%Y-%m-%d %H:%M', time.localtime(moment))}"


# --- for the other commands ------------------------------------------------------------------


def page_opener(
    program: str, url: str, *, opens: bool = True, waits: bool = False
) -> Callable[[str], Awaitable[None]]:
    """What shows the user the page of a login, and says so on standard error.

    Args:
        program: who says so.
        url: the server.
        opens: whether to open the browser.
        waits: whether the user can open the page by hand where no browser can be opened.
    """

    async def show(page: str) -> None:
        where = "Open this page" if not opens else "Your browser opens; if it does not, open"
        sys.stderr.write(f"{program}: {server_of(url)} wants you to log in. {where}: {page}\n")
        if not opens:
            return
        try:
            await import_module("transom.web.local.renderers").open_in_browser(page)
        except TransomError:
            if not waits:
                raise

    return show


def remote_server(target: list[str] | str, headers: Sequence[str], program: str) -> Target:
    """A target of the command line, with what a URL needs beside it.

    Raises:
        UsageError: a header cannot be used.
    """
    if not isinstance(target, str):
        if headers:
            raise UsageError("--header is for a server that is reached by a URL")
        return target
    # Without a terminal it may be a job that nobody looks at.
    ask = page_opener(program, target, waits=True) if sys.stdin.isatty() else None
    return RemoteServer(target, read_headers(headers), ask)


def read_headers(given: Sequence[str]) -> dict[str, str]:
    """The headers of `--header "NAME: VALUE"`; `${VAR}` is replaced from the environment.

    Raises:
        UsageError: one is not of that form, or its variable is not set.
    """

    def value(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise UsageError(f"--header needs the environment variable {found[1]}: it is not set")
        return os.environ[found[1]]

    headers: dict[str, str] = {}
    for text in given:
        name, colon, rest = text.partition(":")
        if not colon or not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name.strip(), re.ASCII):
            raise UsageError("--header is 'NAME: VALUE', such as 'Authorization: Bearer ${TOKEN}'")
        headers[name.strip()] = _VARIABLE.sub(value, rest.strip())
    return headers
