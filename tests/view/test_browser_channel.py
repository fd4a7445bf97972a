"""The channel to the parent window, with a browser that is made of Python."""

import asyncio
import json
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from transom.errors import ChannelClosed, UsageError
from transom.view.app import App
from transom.view.connection import parent_channel

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class Value:
    """A value of JavaScript: an object has its members as attributes."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __getattr__(self, name: str) -> Any:
        if isinstance(self.data, dict) and name in self.data:
            return self.data[name]
        raise AttributeError(name)


class Proxy:
    """What `create_proxy` makes: a function that must be given back."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.destroyed = False

    def __call__(self, *args: Any) -> Any:
        assert not self.destroyed, "a function that was given back is called"
        return self.function(*args)

    def destroy(self) -> None:
        assert not self.destroyed, "given back twice"
        self.destroyed = True


class Browser:
    """The modules `js` and `pyodide.ffi` of a page inside another."""

    def __init__(self) -> None:
        self.posted: asyncio.Queue[tuple[Any, str]] = asyncio.Queue()
        self.listeners: list[Proxy] = []
        self.proxies: list[Proxy] = []
        self.parent: Any = SimpleNamespace(postMessage=self._post)
        self.window = SimpleNamespace(
            parent=self.parent,
            addEventListener=self._add,
            removeEventListener=self._remove,
        )
        self.js = ModuleType("js")
        self.js.window = self.window  # type: ignore[attr-defined]
        self.js.JSON = SimpleNamespace(  # type: ignore[attr-defined]
            stringify=lambda value: json.dumps(value.data),
            parse=lambda text: Value(json.loads(text)),
        )
        self.ffi = ModuleType("pyodide.ffi")
        self.ffi.create_proxy = self._proxy  # type: ignore[attr-defined]

    def _post(self, value: Value, origin: str) -> None:
        self.posted.put_nowait((value.data, origin))

    def _add(self, kind: str, listener: Proxy) -> None:
        assert kind == "message"
        self.listeners.append(listener)

    def _remove(self, kind: str, listener: Proxy) -> None:
        assert kind == "message"
        self.listeners.remove(listener)

    def _proxy(self, function: Any) -> Proxy:
        self.proxies.append(Proxy(function))
        return self.proxies[-1]

    def deliver(self, data: Any, source: Any = None) -> None:
        event = SimpleNamespace(data=Value(data), source=self.parent if source is None else source)
        for listener in list(self.listeners):
            listener(event)


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Browser:
    browser = Browser()
    pyodide = ModuleType("pyodide")
    pyodide.ffi = browser.ffi  # type: ignore[attr-defined]
    for name, module in (("js", browser.js), ("pyodide", pyodide), ("pyodide.ffi", browser.ffi)):
        monkeypatch.setitem(sys.modules, name, module)
    return browser


async def test_messages_go_to_the_parent_as_values_for_any_origin(browser: Browser) -> None:
    channel = parent_channel()
    await channel.send(b'{"jsonrpc":"2.0","method":"x","params":{"a":"\xe2\x82\xac"}}')
    expected = {"jsonrpc": "2.0", "method": "x", "params": {"a": "\u20ac"}}
    assert browser.posted.get_nowait() == (expected, "*")


async def test_messages_of_the_parent_arrive_in_order(browser: Browser) -> None:
    channel = parent_channel()
    waiting = asyncio.ensure_future(channel.receive())
    await asyncio.sleep(0)
    for id in range(3):
        browser.deliver({**PING, "id": id})
    received = [await waiting, await channel.receive(), await channel.receive()]
    assert [json.loads(data)["id"] for data in received] == [0, 1, 2]


async def test_messages_of_other_windows_and_other_messages_are_ignored(browser: Browser) -> None:
    channel = parent_channel()
    browser.deliver(PING, source=SimpleNamespace())
    browser.deliver(PING, source=browser.window)
    for other in ("text", 3, None, [], [PING], {}, {"jsonrpc": "1.0"}, {"type": "resize"}):
        browser.deliver(other)
    browser.deliver({**PING, "id": "last"})
    assert json.loads(await channel.receive())["id"] == "last"


async def test_a_closed_channel_gives_its_listener_back_and_ends_who_waits(
    browser: Browser,
) -> None:
    channel = parent_channel()
    waiting = asyncio.ensure_future(channel.receive())
    await asyncio.sleep(0)
    await channel.aclose()
    await channel.aclose()
    with pytest.raises(ChannelClosed):
        await waiting
    with pytest.raises(ChannelClosed):
        await channel.receive()
    with pytest.raises(ChannelClosed):
        await channel.send(b"{}")
    assert browser.listeners == []
    assert [proxy.destroyed for proxy in browser.proxies] == [True]
    assert browser.posted.empty()


async def test_a_host_that_floods_loses_the_view_and_not_single_messages(browser: Browser) -> None:
    channel = parent_channel()
    for id in range(5000):
        browser.deliver({**PING, "id": id})
    assert browser.listeners == []
    for id in range(4096):
        assert json.loads(await channel.receive())["id"] == id
    with pytest.raises(ChannelClosed, match="4096 messages of the host wait unread"):
        await channel.receive()
    await channel.aclose()


async def test_a_page_that_is_not_inside_another_has_no_host(browser: Browser) -> None:
    browser.window.parent = browser.window
    with pytest.raises(UsageError, match="not inside another"):
        parent_channel()
    del browser.js.window
    with pytest.raises(UsageError, match="not inside another"):
        parent_channel()
    assert browser.proxies == []


async def test_an_app_connects_to_its_parent_by_itself_and_again(browser: Browser) -> None:
    app = App("a", "1")
    app.register_tool("hello", lambda name: f"hello {name}", input_schema=dict[str, str])
    result = {
        "protocolVersion": "2026-01-26",
        "hostInfo": {"name": "page", "version": "1"},
        "hostCapabilities": {},
        "hostContext": {"theme": "dark"},
    }
    for _ in range(2):
        connecting = asyncio.ensure_future(app.connect())
        request, _ = await browser.posted.get()
        assert request["method"] == "ui/initialize"
        browser.deliver({"jsonrpc": "2.0", "id": request["id"], "result": result})
        await connecting
        assert (await browser.posted.get())[0]["method"] == "ui/notifications/initialized"
        call = {"name": "hello", "arguments": {"name": "you"}}
        browser.deliver({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": call})
        answer, _ = await browser.posted.get()
        assert answer["result"]["content"] == [{"type": "text", "text": "hello you"}]
        await app.close()
    assert browser.listeners == []
