"""A View sets as many cookies as a browser takes for the domain of all Views, in Chromium."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from tests.browser.conftest import Launch
from tests.browser.hosting import server
from transom import Host, Policy
from transom.serving import listen, serve
from transom.web import Sandbox, UserLimits, WebViews
from transom.web.seat import Seat

BOMB = """
tools.bomb = () => {
  for (let i = 0; i < 180; i += 1) {
    const about = "domain=views.example.test; path=/; Secure; SameSite=None; Max-Age=31536000";
    document.cookie = `bomb${i}=${"x".repeat(4000)}; ${about}`;
  }
  return document.cookie.length; // which waits until the browser has set them all
};
"""
PAGE = """<!doctype html><meta charset="utf-8" />
<script type="module" src="/transom/elements.js"></script>
<body><transom-stage></transom-stage></body>"""


def certificate(folder: Path) -> dict[str, str]:
    """What a server needs for https; the browser is told to trust anybody."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "example.test")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    secret = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key").write_bytes(key.private_bytes(encoding, *secret))
    (folder / "certificate").write_bytes(made.public_bytes(encoding))
    return {"ssl_keyfile": str(folder / "key"), "ssl_certfile": str(folder / "certificate")}


@asynccontextmanager
async def application(**settings: Any) -> AsyncIterator[tuple[str, WebViews]]:
    sock = listen("127.0.0.1", 0)
    port = sock.getsockname()[1]
    origin = f"https://chat.example.test:{port}"

    async def connect(_: str, host: Host) -> None:
        await host.add_server("tests", server(BOMB)[0])

    def make_host(_: str, seat: Seat) -> Host:
        return Host(renderer=seat, policy=Policy.trusting(), open_timeout=60, audit=None)

    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse(PAGE)

    sandbox = Sandbox(
        f"https://{{view}}.views.example.test:{port}", origins=[origin], secret="s" * 40
    )
    views = WebViews(
        authenticate=lambda _: "ada", servers=connect, make_host=make_host, sandbox=sandbox,
        limits=UserLimits(show_within=60),
    )  # fmt: skip
    app = views.middleware(Starlette(routes=[Route("/", page)]))
    async with serve(app, [sock], ws="websockets-sansio", **settings):
        yield origin, views
        await views.aclose()


@pytest.mark.nightly
@pytest.mark.parametrize("passes", [True, False], ids=["1 MB of headers", "64 KB of headers"])
async def test_a_bomb_of_cookies_is_gone_with_the_next_view_or_that_says_what_to_do(
    launch: Launch, tmp_path: Path, passes: bool
) -> None:
    browser = await launch("--host-resolver-rules=MAP *.example.test 127.0.0.1")
    settings: dict[str, Any] = {**certificate(tmp_path), "http": "h11"}
    settings["h11_max_incomplete_event_size"] = 1_000_000 if passes else 65_536
    async with (
        asyncio.timeout(200),
        application(**settings) as (origin, views),
        await browser.new_context(ignore_https_errors=True) as context,
    ):
        page = await context.new_page()
        await page.goto(origin)
        host = await views.host("ada")
        first = ((await host.call_tool("show")).meta or {})["transom/view"]
        await host.call_tool(f"{first['id']}__bomb")
        assert len(await context.cookies()) == 180
        following = ((await host.call_tool("show")).meta or {})["transom/view"]
        if passes:
            assert following["state"] == "live"
            assert await context.cookies() == []
        else:
            assert following["state"] == "failed"
            assert "delete the cookies of its domain" in following["error"]
