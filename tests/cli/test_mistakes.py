"""What each command says about ten typical mistakes: the files in `golden`.

`UPDATE_GOLDEN=1 pytest tests/cli/test_mistakes.py` writes them; read what has changed. Every file
names the cause and what to do about it.
"""

import asyncio
import json
import os
import re
import shlex
import socket
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import TRANSOM, transom

pytestmark = pytest.mark.processes

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
SERVER = f"{sys.executable} {HERE / 'mistakes.py'}"


async def started(folder: Path, *words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *TRANSOM,
        *words,
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def printed(folder: Path, *words: str) -> str:
    """What a command prints, as a terminal would show it, and its exit code."""
    process = await started(folder, *words)
    out, err = await process.communicate()
    text = f"{out.decode()}{err.decode()}exit code {process.returncode}\n"
    return f"$ transom {shlex.join(words)}\n{text}"


def printed_here(*words: str) -> str:
    """The same without a process of its own."""
    ran = transom(*words)
    text = f"{ran.stdout}{ran.stderr}exit code {ran.returncode}\n"
    return f"$ transom {shlex.join(words)}\n{text}"


async def answered(folder: Path, words: list[str], tools: list[str], first: str = "") -> str:
    """What a gateway prints, and what it answers to its client.

    The tool `first` is called until its View is open: then there is a browser.
    """
    process = await started(folder, "gateway", *words)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    to, answers = process.stdin, asyncio.Queue[dict[str, Any]]()

    async def read(lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            if "method" not in (message := json.loads(line)):
                answers.put_nowait(message)
        answers.put_nowait({})

    async def ask(id: str, method: str, **params: Any) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        to.write(json.dumps(message).encode() + b"\n")
        return await answers.get()

    reading = asyncio.create_task(read(process.stdout))
    hello = {"name": "client", "version": "1"}
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": hello}
    found = {"initialize": await ask("initialize", "initialize", **about)}
    if "result" in found["initialize"]:
        del found["initialize"]
        to.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        await ask("list", "tools/list")
        while first and "is open" not in text_of(
            await ask(first, "tools/call", name=first, arguments={})
        ):
            pass
        for tool in tools:
            found[tool] = await ask(tool, "tools/call", name=tool, arguments={})
    to.close()
    # Lines of different Views come in any order, and one whose View had to be tried again, twice.
    text = re.sub(r"mistakes-\d+", "mistakes-N", (await process.stderr.read()).decode())
    # A server that dies may have been there for a moment, and is started again.
    moments = re.compile(r"transom gateway: Server \S+ is there\n")
    err = sorted({line for line in text.splitlines(keepends=True) if not moments.match(line)})
    await reading
    shown = [f"to the client, {name}: {text_of(each)}\n" for name, each in found.items() if each]
    code = await process.wait()
    return "".join(
        [f"$ transom gateway {shlex.join(words)}\n", *err, *shown, f"exit code {code}\n"]
    )


def text_of(answer: dict[str, Any]) -> str:
    if "error" in answer:
        return f"error {answer['error']['code']}: {answer['error']['message']}"
    blocks = answer["result"]["content"]
    return "\n    ".join(block["text"].replace("\n", "\n    ") for block in blocks)


def compare(name: str, texts: Iterable[str], folder: Path, server: str = "") -> None:
    """Without what differs from run to run and from machine to machine."""
    text = "\n".join(texts)
    if server:
        text = text.replace(server, "python server.py")
    text = (
        text.replace(" --plain", "").replace(" --timeout 50", "").replace(sys.executable, "python")
    )
    text = text.replace(f"{folder}/", "").replace(f"{HERE}/", "")
    text = re.sub(r"(127\.0\.0\.1:|[Pp]ort |--port |--http )\d+", r"\1PORT", text)
    text = re.sub(r"mistakes-\d+", "mistakes-N", text)
    text = re.sub(r"(Server \S+) is gone:", r"\1 is not running:", text)  # it depends on the moment
    text = re.sub(r" +$", "", text, flags=re.MULTILINE)
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "mistake",
    [
        "wrong-mime-type",
        "throwing-tool",
        *(
            pytest.param(each, marks=pytest.mark.nightly)
            for each in ("wrong-uri", "bad-schema", "wrong-tool-name")
        ),
    ],
)
def test_a_mistake_of_a_server_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
):
    monkeypatch.chdir(tmp_path)
    server = f"{SERVER} {mistake}"
    tool = "show_order" if mistake == "wrong-tool-name" else "show_orders"
    calls = ["--args", f"{tool}={{}}"] if mistake == "wrong-tool-name" else ["--call"]
    # Two of them are not about Views, which take long to open.
    plain = ["--plain"] if mistake in {"throwing-tool", "bad-schema"} else []
    behind = ["--headless", "--", *server.split(), *plain]
    texts = (
        printed_here("open", server, tool, "--headless", "--timeout", "50"),
        printed_here("check", server, *calls, "--timeout", "50"),
        asyncio.run(answered(tmp_path, behind, [tool])),
    )
    compare(mistake, texts, tmp_path, server)


@pytest.mark.nightly
@pytest.mark.timeout(240)
async def test_mistakes_in_pages_are_named(tmp_path: Path):
    """A JavaScript syntax error, a missing connect() and a blocked fetch."""
    server = f"{SERVER} pages"
    tools = ["syntax_error", "no_connect", "blocked_fetch"]
    # One that never connects is waited for; the others need a browser, which may start slowly.
    limits = {"no_connect": "15"}
    behind = ["--headless", "--", *server.split()]
    texts = [  # one after the other: several browsers at once may take longer than the limits
        *[
            await printed(
                tmp_path, "open", server, tool, "--headless", "--timeout", limits.get(tool, "50")
            )
            for tool in tools
        ],
        await printed(tmp_path, "check", server, "--browser", "--ignore", "A2", "--timeout", "50"),
        await answered(tmp_path, behind, ["syntax_error", "blocked_fetch"], first="show_orders"),
    ]
    compare("pages", texts, tmp_path, server)


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that something else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


async def test_a_port_in_use_is_named(tmp_path: Path, taken: int):
    port, server = str(taken), f"{SERVER} none"
    behind = ["--", *server.split()]
    texts = await asyncio.gather(
        printed(tmp_path, "open", server, "--port", port),
        answered(tmp_path, ["--port", port, *behind], []),
        answered(tmp_path, ["--http", port, *behind], []),
    )
    compare("port-in-use", texts, tmp_path, server)


CRASH = """\
from pathlib import Path

from orders_database import connect

server = None
"""
NO_VIEWS = """\
from mcp.server.mcpserver import MCPServer
from transom.server import Views

views = Views()
page = views.add("ui://orders/page.html", html="<!doctype html><title>Orders</title>")

@views.tool(opens=page)
def show_orders() -> str:
    "Show the orders."
    return "Two orders."

server = MCPServer("orders")
"""
BAD_URI = """\
from transom.server import Views

views = Views()
page = views.add("orders.html", html="<!doctype html><title>Orders</title>")
"""


@pytest.mark.parametrize(
    ("mistake", "source"),
    [
        ("crash-at-import", CRASH),
        ("no-server", "print('Orders')\n"),
        pytest.param("views-not-installed", NO_VIEWS, marks=pytest.mark.nightly),
        pytest.param("bad-uri", BAD_URI, marks=pytest.mark.nightly),
    ],
)
def test_a_file_that_cannot_be_served_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str, source: str
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.py").write_text(source)
    behind = ["--", sys.executable, "orders.py"]
    texts = [
        printed_here("open", "orders.py", "--timeout", "50"),
        printed_here("check", "orders.py", "--timeout", "50"),
    ]
    if mistake == "crash-at-import":  # the others are about `open FILE` and `check FILE`
        texts.append(asyncio.run(answered(tmp_path, behind, [])))
    compare(mistake, texts, tmp_path)
