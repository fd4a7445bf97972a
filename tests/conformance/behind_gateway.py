"""The SDK's client behind a gateway, as the client that the official conformance suite tests.

    python -m tests.conformance.behind_gateway URL

What the suite sees is what the gateway makes of the client's requests. Logins are the gateway's.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import keyring
import mcp
from keyring.backends.null import Keyring as NoKeyring
from mcp.client.stdio import StdioServerParameters

from tests.conformance.client import CONTEXT, METADATA, SCENARIO, WITHOUT_USER, login
from tests.conformance.sdk_client import MODE, fill_in, use
from transom.gateway import Gateway, ServerConfig

ROOT = Path(__file__).parents[2]
AGREES = f"{sys.executable} -m tests.conformance.agreeing_user %s"
"""A browser whose user agrees to every login."""


async def log_in(url: str, environment: dict[str, str]) -> None:
    """Log in with the client that a scenario has, as a user of the gateway does."""
    words = ("-m", "transom", "login", url, "--client-id", CONTEXT.get("client_id", METADATA))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *words),
        env=environment | {"TRANSOM_CLIENT_SECRET": CONTEXT.get("client_secret", "")},
        stdout=sys.stderr,
    )
    await process.wait()


async def serve(url: str) -> None:
    """Be the gateway of a program that logs in without a user."""
    keyring.set_keyring(NoKeyring())
    server = ServerConfig(name="suite", url=url, client=await login(url))
    async with Gateway([server]) as gateway:
        await gateway.serve_stdio()


async def main(url: str, state: Path) -> None:
    environment = os.environ | {
        "BROWSER": AGREES,
        "XDG_STATE_HOME": str(state),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
    }
    words = ["-m", "transom", "gateway", "--url", url]
    if SCENARIO in WITHOUT_USER:
        words = ["-m", "tests.conformance.behind_gateway", "serve", url]
    elif "client_id" in CONTEXT or SCENARIO == "auth/basic-cimd":
        await log_in(url, environment)
    gateway = StdioServerParameters(command=sys.executable, args=words, cwd=ROOT, env=environment)
    async with mcp.Client(gateway, mode=MODE, elicitation_callback=fill_in) as agent:
        await use(agent)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve(sys.argv[-1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(main(sys.argv[-1], Path(folder)))
