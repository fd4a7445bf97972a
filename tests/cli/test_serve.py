"""Server objects in Python files and modules are found and run over stdio."""

import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest
from mcp.server import Server
from mcp.server.mcpserver import MCPServer

from transom.check.runner import Conversation, NoAnswer
from transom.cli.serve import _load_imports, find_server
from transom.connections.process import ServerProcess
from transom.errors import UsageError
from transom.json_values import as_object


def module(**names: object) -> ModuleType:
    made = ModuleType("orders")
    vars(made).update(names)
    return made


def test_the_server_with_the_usual_name_is_found():
    mine, other = MCPServer("mine"), MCPServer("other")
    assert find_server(module(other=other, server=mine)) is mine
    assert find_server(module(app=mine, other=other)) is mine


def test_the_only_server_is_found_whatever_its_name():
    only = Server("only")
    assert find_server(module(orders=only, alias=only, MCPServer=MCPServer, n=1)) is only


def test_a_module_without_a_server_has_none():
    assert find_server(module(x=1, MCPServer=MCPServer)) is None


def test_several_servers_have_to_be_told_apart():
    with pytest.raises(UsageError, match="there are several servers, name one: a, b"):
        find_server(module(a=MCPServer("a"), b=MCPServer("b")))


def test_a_server_can_be_named_and_made_on_demand():
    a, b = MCPServer("a"), MCPServer("b")
    assert find_server(module(a=a, b=b), "b") is b
    assert find_server(module(make=lambda: a), "make") is a


@pytest.mark.parametrize("name", ["gone", "number", "a.b.c"])
def test_a_name_that_is_no_server_is_refused(name):
    with pytest.raises(UsageError, match=f"{name} in orders is not an MCPServer"):
        find_server(module(number=7), name)


PLAIN = """
    from mcp.server.mcpserver import MCPServer
    server = MCPServer("plain")
    @server.tool()
    def tell() -> str:
        '''Tell.'''
        return "told"
"""
LOW_LEVEL = """
    from mcp.server import Server
    anything = Server("low", version="1")
"""
SCRIPT = """
    from mcp.server.mcpserver import MCPServer
    def main():
        server = MCPServer("script")
        server.run()
    if __name__ == "__main__":
        main()
"""
UNGUARDED = """
    from mcp.server.mcpserver import MCPServer
    server = MCPServer("unguarded")
    server.run()
"""
NEIGHBOUR = """
    from helper import NAME
    from mcp.server.mcpserver import MCPServer
    mcp = MCPServer(NAME)
"""
FAST = """
    from fastmcp import FastMCP
    mcp = FastMCP("fast")
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    ("source", "name"),
    [
        pytest.param(PLAIN, "plain", marks=pytest.mark.nightly),
        pytest.param(LOW_LEVEL, "low", marks=pytest.mark.nightly),
        (SCRIPT, "script"),
        pytest.param(UNGUARDED, "unguarded", marks=pytest.mark.nightly),
        (NEIGHBOUR, "neighbour"),
        (FAST, "fast"),
    ],
    ids=["plain", "low-level", "script", "unguarded", "neighbour", "fastmcp"],
)
async def test_a_python_file_serves_its_server(tmp_path, source, name):
    file = tmp_path / "orders.py"
    file.write_text(textwrap.dedent(source))
    (tmp_path / "helper.py").write_text("NAME = 'neighbour'")

    assert await hello(str(file)) == name


@pytest.mark.processes
async def test_a_module_serves_its_server(tmp_path):
    (tmp_path / "orders.py").write_text(textwrap.dedent(PLAIN))

    assert await hello("orders:server", cwd=tmp_path) == "plain"


@pytest.mark.processes
@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import no_such_module", "No module named 'no_such_module'"),
        ("def", "SyntaxError"),
        ("x = 1", "there is no MCP server in"),
    ],
)
async def test_a_file_that_cannot_serve_says_why(tmp_path, source, says):
    file = tmp_path / "orders.py"
    file.write_text(source)

    with pytest.raises(NoAnswer) as failed:
        await hello(str(file))
    assert says in str(failed.value)


@pytest.mark.processes
async def test_a_module_without_a_server_says_so(tmp_path):
    (tmp_path / "orders.py").write_text("x = 1")

    with pytest.raises(NoAnswer) as failed:
        await hello("orders:server", cwd=tmp_path)
    assert "server in orders is not an MCPServer, FastMCP or Server" in str(failed.value)


async def hello(text: str, cwd: Path | None = None) -> object:
    """The name of the server that runs."""
    command = [sys.executable, "-m", "transom.cli.serve", text]
    process = await ServerProcess.start(command, cwd=None if cwd is None else str(cwd))
    try:
        answer = await Conversation(process, 30).open({})
    finally:
        await process.aclose()
    return as_object(answer["serverInfo"])["name"]


# --- a process that waits for a save -----------------------------------------------------------


def test_a_spare_process_loads_what_installed_packages_load_when_it_is_used_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed, own = tmp_path / "installed", tmp_path / "own"
    (installed / "lazy_one").mkdir(parents=True)
    own.mkdir()
    lazy = (
        "from importlib import import_module\n"
        "def __getattr__(name):\n    return getattr(import_module('lazy_one.part'), name)\n"
    )
    (installed / "lazy_one" / "__init__.py").write_text(lazy)
    (installed / "lazy_one" / "part.py").write_text("Thing = 1\n")
    (installed / "plain_one.py").write_text("")
    (own / "own_part.py").write_text("import plain_one\n")
    server = own / "own_server.py"
    server.write_text("from lazy_one import Thing, Missing\nimport own_part\nimport not_there\n")
    for folder in (installed, own):
        monkeypatch.syspath_prepend(folder)
    names = ("lazy_one", "lazy_one.part", "plain_one", "own_part", "own_server")
    try:
        _load_imports(server, (str(installed),), set())
        assert [name for name in names if name in sys.modules] == list(names[:3])
    finally:
        for name in names:
            sys.modules.pop(name, None)
