"""What a hostile View can do from inside its sandbox, in real Chromium: nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.browser.views import Shown, page, stage
from transom.host.views.bridge import Bridge

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.processes]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["compat", "strict"])
async def shown(request: pytest.FixtureRequest) -> AsyncIterator[Shown]:
    async with stage(csp=request.param) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def outside() -> AsyncIterator[tuple[str, list[bytes]]]:
    """An origin nobody declared, and what reached it."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readline())
        answer = b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 0\r\n\r\n"
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}", heard


async def call(bridge: Bridge, tool: str, **arguments: Any) -> str:
    return (await bridge.call_tool(tool, arguments)).text


REACH = """
tools.reach = async ({ how, url }) => {
  const settled = (start) => new Promise((resolve) => {
    start(resolve);
    setTimeout(() => resolve("nothing happened"), 700);
  });
  const load = (tag, attributes) => settled((resolve) => {
    const made = Object.assign(document.createElement(tag), attributes);
    made.onload = () => resolve("loaded");
    made.onerror = () => resolve("blocked");
    document.body.append(made);
  });
  switch (how) {
    case "fetch": return fetch(url).then(() => "reached", () => "blocked");
    case "beacon": navigator.sendBeacon(url, "x"); return settled(() => {});
    case "image": return load("img", { src: url });
    case "script": return load("script", { src: url });
    case "style": return load("link", { rel: "stylesheet", href: url });
    case "frame": return load("iframe", { src: url });
    case "object": return load("object", { data: url });
    case "socket": return settled((resolve) => {
      try {
        const socket = new WebSocket(url.replace("http", "ws"));
        socket.onopen = () => resolve("reached");
        socket.onerror = () => resolve("blocked");
      } catch { resolve("blocked"); }
    });
    case "events": return settled((resolve) => {
      const source = new EventSource(url);
      source.onopen = () => resolve("reached");
      source.onerror = () => resolve("blocked");
    });
    case "form": {
      const form = Object.assign(document.createElement("form"), { action: url, method: "post" });
      document.body.append(form);
      setTimeout(() => form.submit(), 0);
      return "nothing happened";
    }
    case "worker": return settled((resolve) => {
      try {
        const worker = new Worker(url);
        worker.onerror = () => resolve("blocked");
      } catch { resolve("blocked"); }
    });
    case "popup": return window.open(url) ? "reached" : "blocked";
  }
};
"""
WAYS = (
    "fetch", "beacon", "image", "script", "style", "frame", "object", "socket", "events", "worker",
    "popup",
)  # fmt: skip


@pytest.mark.parametrize("ways", [WAYS, ("form",)], ids=["all at once", "form"])
async def test_an_origin_that_was_not_declared_is_not_reached(
    shown: Shown, outside: tuple[str, list[bytes]], ways: tuple[str, ...]
) -> None:
    url, heard = outside
    name = f"reach-{ways[0]}"
    async with shown.view(page(name, REACH)) as bridge:
        tried = [call(bridge, "reach", how=how, url=f"{url}/{how}") for how in ways]
        said = dict(zip(ways, await asyncio.gather(*tried), strict=True))
        asked = [how for how in ways if how not in ("popup", "worker")]  # these are stopped before
        await shown.violation(name, url.partition(":")[2], times=len(asked))
    assert set(said.values()) <= {"blocked", "nothing happened", "loaded"}, said
    assert heard == []


AHEAD = """
tools.link = ({ rel, url }) => new Promise((resolve) => {
  const made = Object.assign(document.createElement("link"), { rel, href: url, as: "image" });
  made.onload = () => resolve("loaded");
  made.onerror = () => resolve("blocked");
  setTimeout(() => resolve("nothing happened"), 1000);
  document.head.append(made);
});
tools.rules = ({ url }) => new Promise((resolve) => {
  const made = Object.assign(document.createElement("script"), { type: "speculationrules" });
  const rule = [{ urls: [url], eagerness: "immediate" }];
  made.textContent = JSON.stringify({ prefetch: rule, prerender: rule });
  document.head.append(made);
  setTimeout(() => resolve("nothing happened"), 1000);
});
"""


AHEAD_OF_TIME = (
    "preconnect", "dns-prefetch", "prefetch", "preload", "modulepreload", "prerender",
)  # fmt: skip


async def test_nothing_is_fetched_ahead_from_an_origin_that_was_not_declared(
    shown: Shown, outside: tuple[str, list[bytes]]
) -> None:
    url, heard = outside
    async with shown.view(page("ahead", AHEAD)) as bridge:
        tried = [call(bridge, "link", rel=rel, url=f"{url}/{rel}") for rel in AHEAD_OF_TIME]
        said = dict(zip(AHEAD_OF_TIME, await asyncio.gather(*tried), strict=True))
    assert set(said.values()) <= {"blocked", "nothing happened"}, said
    assert heard == []


async def test_rules_of_what_to_fetch_ahead_reach_nobody(
    shown: Shown, outside: tuple[str, list[bytes]]
) -> None:
    url, heard = outside
    async with shown.view(page("rules", AHEAD)) as bridge:
        await call(bridge, "rules", url=f"{url}/rules")
    assert heard == []


PEERS = """
tools.peers = async ({ urls }) => {
  const inner = document.createElement("iframe");
  document.body.append(inner);
  const found = [];
  for (const there of [window, inner.contentWindow]) {
    for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection"]) {
      if (!there[name]) continue;
      const servers = urls.map((url) => ({ urls: url, username: "u", credential: "c" }));
      const peer = new there[name]({ iceServers: servers });
      peer.createDataChannel("x");
      await peer.setLocalDescription(await peer.createOffer());
      await new Promise((resolve) => setTimeout(resolve, 1000));
      found.push(name);
    }
  }
  return found;
};
"""


class Datagrams(asyncio.DatagramProtocol):
    """What came to a UDP port."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def datagram_received(self, data: bytes, addr: object) -> None:
        self.heard.append(data)


async def test_a_browser_without_a_window_makes_no_connections_to_other_browsers(
    shown: Shown, outside: tuple[str, list[bytes]]
) -> None:
    url, heard = outside
    loop = asyncio.get_running_loop()
    transport, datagrams = await loop.create_datagram_endpoint(
        Datagrams, local_addr=("127.0.0.1", 0)
    )
    stun = f"stun:127.0.0.1:{transport.get_extra_info('sockname')[1]}"
    turn = f"turn:{url.removeprefix('http://')}?transport=tcp"
    async with shown.view(page("peers", PEERS)) as bridge:
        assert await call(bridge, "peers", urls=[stun, turn]) == "[]"
    transport.close()
    assert datagrams.heard == []
    assert heard == []


NAVIGATE = """
tools.navigate = async ({ how, url }) => {
  setTimeout(() => {
    if (how === "self") location.href = url;
    if (how === "proxy") parent.location.href = url;
    if (how === "stage") top.location.href = url;
    if (how === "link") {
      const made = Object.assign(document.createElement("a"), { href: url, target: "_top" });
      document.body.append(made);
      made.click();
    }
    if (how === "refresh") {
      const made = document.createElement("meta");
      made.httpEquiv = "refresh";
      made.content = `0;url=${url}`;
      document.head.append(made);
    }
  }, 0);
  return "tried";
};
"""


@pytest.mark.parametrize(
    "how",
    [
        "stage",
        "link",
        *(pytest.param(how, marks=pytest.mark.nightly) for how in ("self", "proxy", "refresh")),
    ],
)
async def test_a_view_cannot_leave_for_elsewhere_and_take_its_data_along(
    shown: Shown, outside: tuple[str, list[bytes]], how: str
) -> None:
    url, heard = outside
    async with shown.view(page(f"leave-{how}", NAVIGATE)) as bridge:
        browser_page = shown.renderer.page
        assert browser_page is not None
        before = browser_page.url
        await call(bridge, "navigate", how=how, url=f"{url}/?stolen={how}")
        async with shown.view(page("meanwhile")):  # time enough for a navigation to begin
            assert browser_page.url == before
    assert heard == []


LOOK = """
const attempt = (what) => { try { return String(what()); } catch (error) { return error.name; } };
tools.look = () => ({
  stageDom: attempt(() => top.document.title),
  stageStorage: attempt(() => top.sessionStorage.length),
  stageToken: attempt(() => top.location.hash),
  cookie: attempt(() => document.cookie),
  origin: location.origin === "null" ? origin : location.origin,
  frames: attempt(() => [...Array(top.frames.length).keys()]
    .filter((n) => top.frames[n] !== parent).map((n) => top.frames[n].document.title)),
  referrer: document.referrer,
});
tools.origin = () => origin;
tools.remember = ({ value }) => { localStorage.setItem("mark", value); return "kept"; };
tools.recall = () => localStorage.getItem("mark") ?? "nothing";
"""


async def test_a_view_sees_neither_the_stage_nor_another_view(shown: Shown) -> None:
    async with (
        shown.view(page("one", LOOK)) as one,
        shown.view(page("two", LOOK)) as two,
    ):
        seen = json.loads(await call(one, "look"))
        for secret in ("stageDom", "stageStorage", "stageToken"):
            assert seen[secret] == "SecurityError"
        assert seen["frames"] == ""  # those of other Views are not among the page's
        assert seen["cookie"] == ""
        assert shown.renderer._stage.token not in json.dumps(seen)
        ours, theirs = await call(one, "origin"), await call(two, "origin")
        assert ours.startswith("http://one-")
        assert len({ours, theirs, shown.renderer._stage.origin}) == 3
        assert await call(one, "remember", value="secret of one") == "kept"
        assert await call(two, "recall") == "nothing"
    async with shown.view(page("one", LOOK)) as again:
        assert await call(again, "recall") == "nothing"


FORGE = """
tools.forge = async () => {
  const size = { jsonrpc: "2.0", method: "ui/notifications/size-changed", params: { height: 9 } };
  const html = "<h1>taken over</h1>";
  const take = {
    jsonrpc: "2.0", method: "ui/notifications/sandbox-resource-ready", params: { html },
  };
  top.postMessage(size, "*");
  for (let n = 0; n < top.frames.length; n += 1) {
    top.frames[n].postMessage({ jsonrpc: "2.0", id: 1, method: "tools/list" }, "*");
    if (top.frames[n] !== parent) top.frames[n].postMessage(take, "*");
  }
  parent.postMessage(take, "*");
  parent.postMessage({ jsonrpc: "2.0", method: "ui/notifications/sandbox-proxy-ready" }, "*");
  return "tried";
};
tools.told = () => told.map(({ method }) => method);
"""


async def test_forged_messages_from_another_frame_are_not_heard(shown: Shown) -> None:
    async with (
        shown.view(page("victim", FORGE)) as victim,
        shown.view(page("forger", FORGE)) as forger,
    ):
        sizes: list[Any] = []
        victim.on_size_changed = lambda *size: sizes.append(size)
        forger.on_size_changed = lambda *size: sizes.append(size)
        await call(forger, "forge")
        assert await call(victim, "told") == "[]"
        assert await call(forger, "told") == "[]"
        assert sizes == []


async def test_the_policy_is_a_header_that_a_page_cannot_loosen(
    shown: Shown, outside: tuple[str, list[bytes]]
) -> None:
    url, heard = outside
    policy = "default-src * 'unsafe-inline' 'unsafe-eval'; connect-src *"
    loosened = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    source = page("loose", REACH).html.replace("<body>", f"<head>{loosened}</head><body>")
    async with shown.view(page("loose", html=source)) as bridge:
        assert await call(bridge, "reach", how="fetch", url=url) == "blocked"
    assert heard == []


async def test_a_declared_origin_is_reached(shown: Shown, outside: tuple[str, list[bytes]]) -> None:
    url, heard = outside
    async with shown.view(page("declared", REACH, csp={"connectDomains": [url]})) as bridge:
        assert await call(bridge, "reach", how="fetch", url=f"{url}/fine") == "reached"
    assert heard == [b"GET /fine HTTP/1.1\r\n"]


async def test_eval_is_for_compat_only(shown: Shown) -> None:
    script = "tools.run = () => { try { return eval('1 + 1'); } catch (e) { return e.name; } };"
    async with shown.view(page("eval", script)) as bridge:
        said = await call(bridge, "run")
    assert said == ("2" if shown.renderer._stage.csp_mode == "compat" else "EvalError")


async def test_permissions_reach_the_inner_frame_and_others_do_not(shown: Shown) -> None:
    script = """
    tools.allowed = () => document.featurePolicy.allowedFeatures();
    tools.known = () => document.featurePolicy.features();
    """
    wanted = {"camera": {}, "tools": {}}
    async with shown.view(page("perm", script, permissions=wanted)) as bridge:
        allowed = json.loads(await call(bridge, "allowed"))
        known = json.loads(await call(bridge, "known"))
    assert "camera" in allowed
    assert ("tools" in allowed) == ("tools" in known)  # older browsers do not know WebMCP
    assert "microphone" not in allowed
    assert "geolocation" not in allowed
