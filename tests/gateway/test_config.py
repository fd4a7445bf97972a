"""The servers behind the gateway, as a configuration file has them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from transom.errors import UsageError
from transom.gateway.configuration.config import (
    ServerConfig,
    read_config,
    server_from_command,
    server_from_url,
    variables_of,
)

ENVIRON = {"TOKEN": "t0k", "EMPTY": "", "HOST": "example.com"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mcp.json"


def servers_of(file: Path, config: object) -> list[ServerConfig]:
    file.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
    return read_config(file, environ=ENVIRON)


def one(file: Path, **entry: Any) -> ServerConfig:
    (server,) = servers_of(file, {"mcpServers": {"orders": entry}})
    return server


def refusal(file: Path, config: object) -> str:
    with pytest.raises(UsageError) as refused:
        servers_of(file, config)
    return str(refused.value)


def refusal_of(file: Path, **entry: Any) -> str:
    return refusal(file, {"mcpServers": {"orders": entry}})


# --- what is read ----------------------------------------------------------------------------


def test_commands_and_urls_are_read_in_the_order_of_the_file(file: Path):
    servers = servers_of(
        file,
        {
            "mcpServers": {
                "orders": {"command": "python", "args": ["orders.py"], "env": {"A": "1"}},
                "maps": {"type": "http", "url": "https://example.com/mcp", "headers": {"X": "y"}},
            }
        },
    )

    assert servers == [
        ServerConfig(
            name="orders", command=("python", "orders.py"), env={"A": "1"}, cwd=str(file.parent)
        ),
        ServerConfig(name="maps", url="https://example.com/mcp", headers={"X": "y"}),
    ]


@pytest.mark.parametrize("section", ["mcpServers", "servers", "context_servers"])
def test_the_section_may_be_that_of_any_client(file: Path, section: str):
    (server,) = servers_of(file, {section: {"orders": {"type": "stdio", "command": "orders"}}})
    assert server == ServerConfig(name="orders", command=("orders",), cwd=str(file.parent))


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "http", "url": "https://example.com/mcp"},
        {"type": "streamable-http", "url": "https://example.com/mcp"},
        {"type": "streamableHttp", "url": "https://example.com/mcp"},
        {"transport": "streamable_http", "url": "https://example.com/mcp"},
        {"url": "https://example.com/mcp"},
        {"httpUrl": "https://example.com/mcp"},
        {"serverUrl": "https://example.com/mcp"},
    ],
)
def test_streamable_http_has_many_names(file: Path, entry: dict[str, str]):
    assert one(file, **entry).url == "https://example.com/mcp"


def test_keys_that_mean_nothing_here_are_left_alone(file: Path):
    server = one(file, command="orders", autoApprove=["a"], timeout=5, trust=None, args=None)
    assert server == ServerConfig(name="orders", command=("orders",), cwd=str(file.parent))


def test_a_command_may_be_a_list_and_numbers_are_text(file: Path):
    server = one(file, command=["npx", "-y"], args=["maps", 3000], env={"PORT": 1, "GONE": None})
    assert (server.command, server.env) == (("npx", "-y", "maps", "3000"), {"PORT": "1"})


@pytest.mark.parametrize(
    ("told", "command"),
    [("./run.sh", "HERE/run.sh"), ("~/run.sh", f"{Path.home()}/run.sh"), ("run.sh", "run.sh")],
)
def test_the_path_of_a_program_is_found_from_where_the_file_is(file: Path, told: str, command: str):
    assert one(file, command=told).command == (command.replace("HERE", str(file.parent)),)


def test_disabled_servers_are_not_there_and_not_looked_at(file: Path):
    servers = servers_of(
        file,
        {
            "mcpServers": {
                "off": {"command": "${UNSET}", "disabled": True},
                "out": {"type": "sse", "enabled": False},
                "orders": {"command": "orders", "disabled": False},
            }
        },
    )
    assert [server.name for server in servers] == ["orders"]


def test_comments_and_trailing_commas_are_allowed(file: Path):
    (server,) = servers_of(
        file,
        """\ufeff// what VS Code writes
        {
          "servers": { /* one
                          server */
            "orders": {"command": "orders", "args": ["http://x//y", "/* no */", ",]",],},
          },
        }
        """,
    )
    assert server.command == ("orders", "http://x//y", "/* no */", ",]")


def test_names_are_made_to_fit_and_kept_apart(file: Path):
    entries = {name: {"command": "x"} for name in ("my orders", "my/orders", "__x__", "ok_1", "")}
    servers = servers_of(file, {"mcpServers": entries})
    assert [server.name for server in servers] == [
        "my-orders",
        "my-orders-2",
        "x",
        "ok_1",
        "server",
    ]


def test_a_folder_is_found_from_where_the_file_is(file: Path):
    assert one(file, command="x", cwd="shop").cwd == str(file.parent / "shop")
    assert one(file, command="x", cwd="/srv").cwd == "/srv"
    assert one(file, command="x", cwd="~/shop").cwd == str(Path.home() / "shop")
    assert one(file, command="x").cwd == str(file.parent)


def test_the_file_of_an_editor_speaks_of_the_folder_above_its_own(tmp_path: Path):
    (tmp_path / ".vscode").mkdir()
    assert one(tmp_path / ".vscode" / "mcp.json", command="x").cwd == str(tmp_path)


# --- variables -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${TOKEN}", "t0k"),
        ("${env:TOKEN}", "t0k"),
        ("Bearer ${TOKEN}!", "Bearer t0k!"),
        ("${TOKEN}${HOST}", "t0kexample.com"),
        ("${UNSET:-a b:-c}", "a b:-c"),
        ("${UNSET:-}", ""),
        ("${EMPTY:-x}", "x"),
        ("${EMPTY}", ""),
        ("${TOKEN:-x}", "t0k"),
        ("$TOKEN", "$TOKEN"),
        ("$", "$"),
    ],
)
def test_variables_are_filled_in_everywhere(file: Path, text: str, value: str):
    server = one(file, command="run", args=[text], env={"A": text})
    assert server.command == ("run", value)
    assert server.env == {"A": value}
    remote = one(file, url="https://${HOST}/mcp", headers={"Authorization": text})
    assert (remote.url, remote.headers) == ("https://example.com/mcp", {"Authorization": value})


def test_what_a_variable_holds_is_not_filled_in_again(file: Path):
    file.write_text('{"mcpServers": {"a": {"command": "${A}"}}}')
    (server,) = read_config(file, environ={"A": "${B}", "B": "no"})
    assert server.command == ("${B}",)


def test_the_workspace_of_an_editor_is_the_folder_around_its_own(tmp_path: Path):
    (tmp_path / ".vscode").mkdir()
    server = one(tmp_path / ".vscode" / "mcp.json", command="${workspaceFolder}/run")
    assert server.command == (f"{tmp_path}/run",)


def test_a_variable_that_is_not_set_is_named(file: Path):
    says = refusal_of(file, command="x", env={"KEY": "${API_KEY}"})
    assert f"{file}: server 'orders': 'env.KEY' needs the environment variable API_KEY" in says


@pytest.mark.parametrize("text", ["${input:key}", "${command:x}", "${}", "${1}"])
def test_what_cannot_be_filled_in_is_refused(file: Path, text: str):
    assert f"'args[0]' has {text} in it" in refusal_of(file, command="x", args=[text])


def test_the_variables_of_a_file_are_known_without_their_values(file: Path):
    entries = {
        "a": {"command": "${A}", "args": ["${B:-x}", "${workspaceFolder}"], "env": {"x": "${B}"}},
        "b": {"url": "https://x/${env:C:-c}"},
        "off": {"command": "${D}", "disabled": True},
    }
    file.write_text(json.dumps({"mcpServers": entries}))
    assert variables_of(file) == ["A", "B", "C"]


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{\n  "mcpServers": {,\n}', ":2:18: this is not JSON: Expecting property name"),
        ('{"mcpServers": {}} x', ":1:20: this is not JSON: Extra data"),
        ('{\n/* a\n b */ "x" 1}', ":3:11: this is not JSON: Expecting ':'"),
        ("", ":1:1: this is not JSON"),
        ("[]", "this must be a JSON object"),
        ("[" * 200_000, "nested too deep"),
        (f'{{"mcpServers": {{"a": {"9" * 5000}}}}}', "too many digits"),
        ("{}", "has no 'mcpServers'"),
        ('{"mcpServers": []}', "'mcpServers' must be an object"),
        ('{"mcpServers": {}}', "names no server"),
        ('{"mcpServers": {"a": {"command": "x", "disabled": true}}}', "names no server"),
        ('{"mcpServers": {"a": "x"}}', "server 'a' must be an object"),
        ('{"mcpServers": {"a": {"command": "x"}}, "servers": {"a": {}}}', "more than one section"),
    ],
)
def test_a_file_that_cannot_be_used_says_where(file: Path, text: str, says: str):
    told = refusal(file, text)
    assert says in told
    assert str(file) in told


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({}, "has neither a command nor a URL"),
        ({"command": "x", "url": "https://x"}, "has both a command and a URL"),
        ({"command": ""}, "'command' is empty"),
        ({"command": []}, "'command' is empty"),
        ({"command": True}, "'command[0]' must be text, not true"),
        ({"command": "x", "args": "y"}, "'args' must be a list"),
        ({"command": "x", "args": [{}]}, "'args[0]' must be text, not an object"),
        ({"command": "x", "args": ["\0"]}, "'args[0]' has a NUL in it"),
        ({"command": "x", "env": ["A"]}, "'env' must be an object"),
        ({"command": "x", "env": {"A": [1]}}, "'env.A' must be text, not a list"),
        ({"command": "x", "type": "http"}, "has a command, but its type is 'http'"),
        ({"url": "https://x", "type": "stdio"}, "has a URL, but its type is 'stdio'"),
        ({"url": "https://x", "type": 5}, "'type' must be text, not 5"),
        ({"url": "https://x", "type": "ws"}, "type 'ws' is not supported"),
        ({"url": "ftp://x"}, "is not a URL that begins with http"),
        ({"url": "https://"}, "is not a URL that begins with http"),
        ({"url": "https://x:port"}, "is not a URL"),
        ({"url": "https://x/mcp", "type": "sse"}, "speaks SSE"),
        ({"url": "https://x/sse"}, 'say "type": "http" if this is one'),
    ],
)
def test_an_entry_that_cannot_be_used_is_named(file: Path, entry: dict[str, Any], says: str):
    told = refusal_of(file, **entry)
    assert says in told
    assert told.startswith(f"{file}: server 'orders'")


def test_an_address_that_ends_in_sse_is_taken_when_it_says_that_it_is_http(file: Path):
    assert one(file, url="https://x/sse", type="http").url == "https://x/sse"


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match="gone.json cannot be read: No such file"):
        read_config(tmp_path / "gone.json")


def test_a_file_that_is_not_text_is_refused(file: Path):
    file.write_bytes(b'{"\xff"}')
    with pytest.raises(UsageError, match="not UTF-8 text: byte 2"):
        read_config(file)


@pytest.mark.parametrize(
    "words",
    [
        ["transom", "gateway", "--config", "FILE"],
        ["/opt/bin/transom", "gateway", "--headless", "--config=FILE"],
        ["uvx", "transom@1", "gateway", "--config", "mcp.json"],
        ["python", "-m", "transom", "gateway", "--config", "FILE"],
    ],
)
def test_the_gateway_itself_with_the_same_file_is_refused(file: Path, words: list[str]):
    told = [word.replace("FILE", str(file)) for word in words]
    assert "would start itself forever" in refusal_of(file, command=told[0], args=told[1:])


@pytest.mark.parametrize(
    "words",
    [
        ["transom", "gateway", "--config", "other.json"],
        ["transom", "gateway", "--", "run", "--config", "FILE"],
        ["transom", "check", "--config", "FILE"],
        ["acme", "gateway", "--config", "FILE"],
    ],
)
def test_another_gateway_is_a_server_like_any(file: Path, words: list[str]):
    told = [word.replace("FILE", str(file)) for word in words]
    assert one(file, command=told[0], args=told[1:]).command == tuple(told)


# --- without a file --------------------------------------------------------------------------


def test_a_command_line_is_a_server_named_after_what_it_runs():
    assert server_from_command(["python", "shop/orders.py"]) == ServerConfig(
        name="orders", command=("python", "shop/orders.py")
    )
    assert server_from_command(["x"], name="my shop").name == "my-shop"


@pytest.mark.parametrize("words", [[], [""]])
def test_no_command_is_refused(words: list[str]):
    with pytest.raises(UsageError, match="no server is named"):
        server_from_command(words)


def test_a_url_is_a_server_named_after_its_host():
    url = "https://example.com/mcp"
    assert server_from_url(url) == ServerConfig(name="example-com", url=url)
    with pytest.raises(UsageError, match="--url: orders.py is not a URL"):
        server_from_url("orders.py")


@pytest.mark.processes
def test_reading_a_configuration_loads_neither_the_sdk_nor_the_web():
    code = "import sys, transom.gateway.configuration.config; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"mcp", "pydantic", "starlette", "typer", "anyio"} & set(ran.stdout.split())
