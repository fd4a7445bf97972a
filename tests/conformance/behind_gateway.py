"""The SDK's client behind a gateway, as the client that the official conformance suite tests.

    python -m tests.conformance.behind_gateway URL

What the suite sees is what the gateway makes of the client's requests. Logins are the gateway's.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import mcp
import mcp_types as types
from mcp.client.stdio import StdioServerParameters
from pydantic import ValidationError

from tests.conformance.client import CALLS, CONTEXT, METADATA, SCENARIO
from transom.check.schemas import fitting_arguments

ROOT = Path(__file__).parents[2]
AGREES = f"{sys.executable} -m tests.conformance.agreeing_user %s"
"""A browser whose user agrees to every login."""


async def fill_in(_: object, asked: types.ElicitRequestParams) -> types.ElicitResult:
    """Answer a form with its defaults."""
    schema: dict[str, Any] = getattr(asked, "requested_schema", {})
    content = {name: each.get("default", True) for name, each in schema["properties"].items()}
    return types.ElicitResult(action="accept", content=content)


async def log_in(url: str, environment: dict[str, str]) -> None:
    """Log in with the client that a scenario has, as a user of the gateway does."""
    words = ("-m", "transom", "login", url, "--client-id", CONTEXT.get("client_id", METADATA))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *words),
        env=environment | {"TRANSOM_CLIENT_SECRET": CONTEXT.get("client_secret", "")},
        stdout=sys.stderr,
    )
    await process.wait()


async def main(url: str, state: Path) -> None:
    newer = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "") >= "2026"
    environment = os.environ | {
        "BROWSER": AGREES,
        "XDG_STATE_HOME": str(state),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
    }
    if "client_id" in CONTEXT or SCENARIO == "auth/basic-cimd":
        await log_in(url, environment)
    gateway = StdioServerParameters(
        command=sys.executable,
        args=["-m", "transom", "gateway", "--url", url],
        cwd=ROOT,
        env=environment,
    )
    mode = "auto" if newer else "legacy"
    async with mcp.Client(gateway, mode=mode, elicitation_callback=fill_in) as agent:
        tools = (await agent.list_tools()).tools
        given = [(tool.name, fitting_arguments(tool.input_schema) or {}) for tool in tools]
        if SCENARIO == "json-schema-2020-12-preservation":
            [schema] = [t.input_schema for t in tools if t.name == "json_schema_2020_12_tool"]
            given = [("json_schema_echo", {"schema": schema})]
        for name, arguments in CALLS.get(SCENARIO) or given:
            try:
                await agent.call_tool(name, arguments)
            except (mcp.MCPError, ValidationError) as error:  # what the suite thinks of it counts
                sys.stderr.write(f"{name}: {error}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(sys.argv[-1], Path(folder)))
