"""What the two apps answer, and to whom."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import httpx2
import pytest
from starlette.websockets import WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.web.page import StagePage
from transom.host.views.ui_resource import UIResource
from transom.web.asgi import PageSocket, stage_app
from transom.web.local.stage_server import StageServer
from transom.web.mounted_views import Violation
from transom.web.stage import Stage


@pytest.fixture
def seen() -> list[Violation]:
    """What the policies of Views have blocked."""
    return []


@pytest.fixture
async def stage(seen: list[Violation]) -> AsyncIterator[Stage]:
    made = Stage(on_violation=seen.append)
    async with StageServer(made):
        yield made


def view(view_id: str = "orders-1", **more: Any) -> UIResource:
    return UIResource(view_id=view_id, server="orders", uri="ui://orders/list", html="<p>", **more)


async def get(url: str, *, host: str | None = None, **more: Any) -> httpx2.Response:
    headers = {} if host is None else {"Host": host}
    # No TLS here, and making a context for it takes longer than the request.
    async with httpx2.AsyncClient(verify=False) as client:
        return await client.request(more.pop("method", "GET"), url, headers=headers, **more)


def sandbox(stage: Stage, view_id: str) -> tuple[str, str]:
    """Where the sandbox is served, and the Host that the View is at."""
    mounted = stage.mounted(view_id)
    assert mounted is not None
    host = mounted.host
    return f"http://127.0.0.1:{host.rpartition(':')[2]}", host


# --- the page --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html"),
        ("/stage.js", "text/javascript"),
        ("/views.js", "text/javascript"),
        ("/stage.css", "text/css"),
        ("/colours.css", "text/css"),
    ],
)
async def test_the_stage_is_served_with_headers_that_let_nobody_else_in(
    stage: Stage, path: str, kind: str
) -> None:
    answer = await get(stage.origin + path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    policy = answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert "'unsafe" not in policy
    assert f"frame-src {stage.sandbox};" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert stage.token not in answer.text


@pytest.mark.parametrize("path", ["/", "/stage.js"])
@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1", "127.0.0.1:1"])
async def test_another_host_header_gets_nothing(stage: Stage, host: str, path: str) -> None:
    answer = await get(stage.origin + path, host=host)
    assert answer.status_code == 421
    assert "script" not in answer.text


async def test_localhost_is_not_the_name_of_the_stage(stage: Stage) -> None:
    port = stage.origin.rpartition(":")[2]
    assert (await get(stage.origin, host=f"localhost:{port}")).status_code == 421


@pytest.mark.parametrize("path", ["/nothing", "/sandbox.js", "/..%2f..%2fasgi.py", "/transom.js"])
async def test_there_is_nothing_else_on_the_stage(stage: Stage, path: str) -> None:
    answer = await get(stage.origin + path)
    assert answer.status_code == 404
    assert "default-src 'none'" in answer.headers["content-security-policy"]


# --- the socket ------------------------------------------------------------------------------


def socket_url(stage: Stage) -> str:
    return stage.origin.replace("http", "ws", 1) + "/socket"


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "http://localhost", "file://"]
)
async def test_a_stolen_token_is_worth_nothing_at_another_origin(
    stage: Stage, origin: str | None
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(socket_url(stage), origin=origin)
    assert refused.value.response.status_code == 403
    assert not stage.has_page


async def test_a_view_cannot_be_a_page(stage: Stage) -> None:
    stage.mount(view())
    _, host = sandbox(stage, "orders-1")
    with pytest.raises(InvalidStatus):
        await connect(socket_url(stage), origin=f"http://{host}")
    assert not stage.has_page


async def test_a_socket_for_another_host_is_refused(stage: Stage) -> None:
    headers = {"Host": "evil.example"}
    with pytest.raises(InvalidStatus):
        await connect(socket_url(stage), origin=stage.origin, additional_headers=headers)


@pytest.mark.parametrize(
    "said",
    [
        json.dumps({"token": "wrong"}),
        json.dumps({"token": ""}),
        json.dumps({"token": 7}),
        json.dumps({}),
        json.dumps(["token"]),
        "",
        "\N{SNOWMAN}",
        '{"token": ',
        b'{"token": "bytes"}',
        json.dumps({"token": "x", "received": "many"}),
    ],
)
async def test_a_page_that_does_not_say_who_it_is_is_turned_away(
    stage: Stage, said: str | bytes
) -> None:
    async with connect(socket_url(stage), origin=stage.origin) as socket:
        await socket.send(said)
        with pytest.raises(ConnectionClosed):
            await socket.recv()
        assert socket.close_code == 4401
    assert not stage.has_page


async def test_a_page_that_says_nothing_is_turned_away(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transom.web.asgi._HELLO_WITHIN", 0.01)
    async with connect(socket_url(stage), origin=stage.origin) as socket:
        with pytest.raises(ConnectionClosed):
            await socket.recv()
        assert socket.close_code == 4401


async def test_a_page_that_claims_frames_it_never_got_is_cut_off(stage: Stage) -> None:
    async with StagePage(stage) as page:
        pass
    again = StagePage(stage, page=page.welcome["page"], received=1000)
    with pytest.raises(ConnectionClosed, match="never sent"):
        await again.__aenter__()


@pytest.mark.parametrize("said", ["nonsense", "9 -\n{}", "-1", b"1 -\n{}", "1 view"])
async def test_what_no_page_sends_ends_the_socket_and_nothing_else(
    stage: Stage, said: str | bytes
) -> None:
    async with StagePage(stage) as page:
        await page.write(said)
        assert (await page.over())[0] == 4400
    assert stage.has_page
    async with StagePage(stage, page=page.welcome["page"]) as again:
        assert again.welcome["resumed"] is True


async def test_a_page_that_never_stops_sending_lets_others_have_their_turn(stage: Stage) -> None:
    turns, seen = 0, list[int]()
    hello = json.dumps({"token": stage.token})
    frames = iter([hello, *(f"{number} -\n{{}}" for number in range(1, 10_001))])
    headers = [(b"host", stage.origin[7:].encode()), (b"origin", stage.origin.encode())]
    scope: dict[str, Any] = {"type": "websocket", "path": "/socket", "headers": headers}
    connect = iter([{"type": "websocket.connect"}])

    async def receive() -> dict[str, Any]:
        """As a server that has a lot to hand over: nothing is waited for."""
        for message in connect:
            return message
        for text in frames:
            return {"type": "websocket.receive", "text": text}
        seen.append(turns)
        return {"type": "websocket.disconnect", "code": 1006}

    async def send(_: Any) -> None:
        pass

    async def somebody() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.create_task(somebody())
    await stage_app(stage)({**scope, "query_string": b"", "root_path": ""}, receive, send)
    other.cancel()
    assert seen[0] > 100


async def test_what_a_page_says_of_its_surroundings_is_cut(stage: Stage) -> None:
    async with StagePage(stage) as page:
        long = "x" * 100_000
        await page.tell(do="surroundings", value={"theme": "dark", "userAgent": long})
        await stage.wait_for_page()
        assert stage.surroundings["theme"] == "dark"
        assert len(stage.surroundings["userAgent"]) == 1000


async def test_what_a_page_says_that_the_stage_does_not_know_is_ignored(stage: Stage) -> None:
    async with StagePage(stage) as page:
        await page.tell(do="dance")
        await page.tell(do="surroundings", value={"theme": 7})
        await page.tell(do="closed", view="nobody")
        await page.tell(do="place", view="nobody", value="nowhere")
        await page.tell(do="answer", id=99, value=True)
        await page.send("-", "no json")
        await page.send("-", '{"do": "closed", "deep": ' + "[" * 5000 + "]" * 5000 + "}")
        await page.send("nobody", "{}")
        await page.tell(do="surroundings", value={"theme": "dark", "unknown": 1})
        await page.until(lambda p: p.acknowledged == 9)
        assert page.closed is None
    assert stage.surroundings == {"theme": "dark"}


# --- the sandbox -----------------------------------------------------------------------------


async def test_each_view_has_its_policy_as_a_header_of_all_that_its_origin_serves(
    stage: Stage,
) -> None:
    stage.mount(view(csp={"connectDomains": ["https://api.example.com"]}))
    base, host = sandbox(stage, "orders-1")
    for path in ("/transom-view", "/sandbox.js"):
        answer = await get(base + path, host=host)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "https://api.example.com" in policy
        assert f"frame-ancestors {stage.origin}" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert stage.token not in answer.text
    for path in ("/nothing", "/csp-report"):
        answer = await get(base + path, host=host)
        assert answer.status_code in (404, 405)
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")


async def test_the_sandbox_knows_the_stage_and_nothing_secret(stage: Stage) -> None:
    stage.mount(view())
    base, host = sandbox(stage, "orders-1")
    answer = await get(base + "/transom-view", host=host)
    assert f'content="{stage.origin}"' in answer.text
    assert "%" not in answer.text.replace("100%", "")
    assert "ui://orders/list" not in answer.text


@pytest.mark.parametrize("path", ["/transom-view", "/sandbox.js", "/csp-report"])
async def test_a_host_that_is_no_views_gets_nothing(stage: Stage, path: str) -> None:
    stage.mount(view())
    base, host = sandbox(stage, "orders-1")
    method = "POST" if path == "/csp-report" else "GET"
    name, _, port = host.partition(":")
    for other in ("evil.example", f"localhost:{port}", name, f"x{host}", f"127.0.0.1:{port}"):
        assert (await get(base + path, host=other, method=method)).status_code == 404
    stage.remove("orders-1", "it was closed")
    assert (await get(base + path, host=host, method=method)).status_code == 404


async def test_views_of_two_pages_that_share_an_origin_are_told_apart(stage: Stage) -> None:
    other = Stage(sandbox=stage.sandbox, sandboxes=stage.sandboxes, origin="http://other.test")
    ours = stage.mount(view("orders-1"), label="orders-shared")
    other.mount(view("orders-2"), label="orders-shared")
    at, host = sandbox(stage, "orders-1")
    assert host == sandbox(other, "orders-2")[1]

    async def check(shown: Stage, name: str) -> None:
        mounted = shown.mounted(name)
        assert mounted is not None
        answer = await get(f"{at}/transom-view?{mounted.number}", host=host)
        assert f'content="{shown.origin}"' in answer.text
        assert f"frame-ancestors {shown.origin} " in answer.headers["content-security-policy"]
        assert (await get(f"{at}/sandbox.js", host=host)).status_code == 200

    await check(stage, "orders-1")
    await check(other, "orders-2")
    await ours.aclose()
    await check(other, "orders-2")


async def test_cookies_for_the_domain_of_all_views_are_expired(stage: Stage) -> None:
    stage.mount(view())
    at, host = sandbox(stage, "orders-1")
    names = ["a", "b", "__Secure-c"]
    cookies = "; ".join(f"{name}=1" for name in names)
    guard = stage.host_of("guard")
    pages = [(host, "/transom-view"), (guard, "/transom-view")]
    for each_host, path in [*pages, (host, "/sandbox.js"), (guard, "/guard.js")]:
        async with httpx2.AsyncClient(verify=False) as client:
            headers = {"Host": each_host, "Cookie": cookies}
            answer = await client.get(at + path, headers=headers)
        expired = answer.headers.get_list("set-cookie")
        assert {each.partition("=")[0] for each in expired} == set(names)
        assert all("; Domain=localhost;" in each and "; Max-Age=0;" in each for each in expired)
        assert {each.partition("Path=")[2].partition(";")[0] for each in expired} == {"/", path}
    assert "set-cookie" not in (await get(f"{at}/transom-view", host=host)).headers


async def test_a_view_loads_under_a_bomb_of_cookies_which_is_gone_then(stage: Stage) -> None:
    stage.mount(view())
    at, host = sandbox(stage, "orders-1")
    # As many as a browser has for one domain, in 60 KB, which a proxy may pass.
    bomb = {f"c{number}": "x" * 300 for number in range(180)}
    headers = {"Host": host, "Cookie": "; ".join(f"{name}={value}" for name, value in bomb.items())}
    async with httpx2.AsyncClient(verify=False) as client:
        answer = await client.get(f"{at}/transom-view", headers=headers)
    assert answer.status_code == 200
    assert {each.partition("=")[0] for each in answer.headers.get_list("set-cookie")} == set(bomb)


async def test_no_two_views_share_an_origin_not_even_of_the_same_name(stage: Stage) -> None:
    stage.mount(view())
    _, first = sandbox(stage, "orders-1")
    stage.remove("orders-1", "it was closed")
    stage.mount(view())
    stage.mount(view("orders-2"))
    hosts = {first, sandbox(stage, "orders-1")[1], sandbox(stage, "orders-2")[1]}
    assert len(hosts) == 3
    assert all(host.startswith("orders-") for host in hosts)


@pytest.mark.parametrize("view_id", ["a.b", "../x", "A_B", "x" * 200, "ä", "-", "a\r\nX: y"])
async def test_whatever_a_view_is_called_its_origin_is_a_name(stage: Stage, view_id: str) -> None:
    stage.mount(view(view_id))
    base, host = sandbox(stage, view_id)
    label = host.partition(".")[0]
    assert len(label) <= 63
    assert label.replace("-", "").isalnum()
    assert (await get(base + "/transom-view", host=host)).status_code == 200


# --- reports of violations -------------------------------------------------------------------


async def post_report(stage: Stage, body: bytes) -> int:
    base, host = sandbox(stage, "orders-1")
    return (await get(f"{base}/csp-report", host=host, method="POST", content=body)).status_code


def report(**fields: str) -> bytes:
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    return json.dumps({"csp-report": named}).encode()


async def test_a_report_tells_what_was_blocked(stage: Stage, seen: list[Violation]) -> None:
    stage.mount(view())
    body = report(
        blocked_uri="https://evil.example/x", effective_directive="img-src", source_file="srcdoc"
    )
    assert await post_report(stage, body) == 204
    assert (
        await post_report(stage, report(violated_directive="font-src", blocked_uri="data")) == 204
    )
    assert seen == [
        Violation("orders-1", "img-src", "https://evil.example/x", "srcdoc"),
        Violation("orders-1", "font-src", "data"),
    ]


async def test_what_a_page_sends_after_the_end_disturbs_nobody(stage: Stage) -> None:
    frames: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    closed = asyncio.Event()

    async def send(message: Any) -> None:
        if message["type"] == "websocket.close":
            closed.set()

    websocket = WebSocket({"type": "websocket"}, frames.get, send)
    frames.put_nowait({"type": "websocket.connect"})
    await websocket.accept()
    hello = json.dumps({"token": stage.token, "page": None, "received": 0})
    frames.put_nowait({"type": "websocket.receive", "text": hello})
    frames.put_nowait({"type": "websocket.receive", "text": "0"})
    connect_page = partial(stage.connect_page, origin=stage.origin)
    running = asyncio.create_task(PageSocket(websocket, connect_page).run())
    while not stage.has_page:  # noqa: ASYNC110 - within a few turns
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    stage.page_lost("it is over")
    await closed.wait()
    frames.put_nowait({"type": "websocket.receive", "text": "0"})
    await running


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b'{"csp-report": 7}', b'{"csp-report":{"blocked-uri":[1]}}', b"\xff"),
        b'{"csp-report":{"blocked-uri":"\xff"}}',
        b'{"csp-report":{"other":' + b"[" * 10_000,
    ],
    ids=range(8),
)
async def test_a_report_that_makes_no_sense_is_dropped(
    stage: Stage, seen: list[Violation], body: bytes
) -> None:
    stage.mount(view())
    assert await post_report(stage, body) == 204
    assert seen == []


@pytest.mark.load
async def test_reports_are_capped_in_size_length_and_number(
    stage: Stage, seen: list[Violation]
) -> None:
    stage.mount(view())
    assert await post_report(stage, report(blocked_uri="x" * 20_000)) == 413
    assert seen == []
    for number in range(103):
        long = report(blocked_uri=f"{number}" + "x" * 9000, effective_directive="y" * 900)
        assert await post_report(stage, long) == 204
    assert len(seen) == 100
    assert all(len(v.blocked) <= 500 and len(v.directive) <= 100 for v in seen)


# --- in an app of one's own ------------------------------------------------------------------


async def test_the_stage_can_be_mounted_under_a_path_of_another_app() -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from transom.web.asgi import stage_app

    stage = Stage(origin="https://agent.example.com", sandbox="https://*.views.example.com")
    app = Starlette(routes=[Mount("/stage", stage_app(stage))])
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=stage.origin) as client:
        page = await client.get("/stage/")
        assert page.status_code == 200
        policy = page.headers["content-security-policy"]
        assert "frame-src https://*.views.example.com;" in policy
        assert "connect-src 'self' wss://agent.example.com;" in policy
        assert (await client.get("/stage/stage.js")).status_code == 200
        stage.mount(view())
        mounted = stage.mounted("orders-1")
        assert mounted is not None
        assert mounted.host.endswith(".views.example.com")
