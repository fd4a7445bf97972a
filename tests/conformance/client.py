"""A `Host` as the client that the official conformance suite tests.

    python -m tests.conformance.client URL

The suite starts it for each scenario, with the scenario's name, version and data in the environment
(`MCP_CONFORMANCE_SCENARIO`, `_PROTOCOL_VERSION`, `_CONTEXT`).
"""

import asyncio
import json
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import keyring
from keyring.backends.null import Keyring as NoKeyring

from transom import Host, Policy
from transom.check.schemas import fitting_arguments
from transom.connections import OAuthClient, RemoteServer
from transom.errors import TransomError

SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
ASSERTED = ("auth/enterprise-managed-authorization", "auth/wif-jwt-bearer")
WITHOUT_USER = ("auth/client-credentials-jwt", "auth/client-credentials-basic", *ASSERTED)
METADATA = "https://conformance-test.local/client-metadata.json"  # a client id, where supported
ADD = ("add_numbers", {"a": 5, "b": 3})
CALLED = CONTEXT.get("toolCalls", [])
CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "tools_call": [ADD],
    "http-standard-headers": [ADD],
    "sse-retry": [("test_reconnection", {})],
    "elicitation-sep1034-client-defaults": [("test_client_elicitation_defaults", {})],
    "sep-2322-client-request-state": [
        ("test_mrtr_echo_state", {}),
        ("test_mrtr_unrelated", {}),
        ("test_mrtr_no_state", {}),
        ("test_mrtr_no_result_type", {}),
    ],
    "http-custom-headers": [(each["name"], each["arguments"]) for each in CALLED],
}
"""What is called, by scenario; in any other, every tool that is listed."""


async def agree(page: str) -> None:
    """Open a login page, as the browser of a user who agrees."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        with suppress(httpx2.HTTPError):
            await browser.get(page)


async def issuer_of(url: str) -> str:
    """The issuer of a server's tokens, which a program would have in its configuration."""
    base = httpx2.URL(url)
    async with httpx2.AsyncClient() as http:
        found = await http.get(base.join(f"/.well-known/oauth-protected-resource{base.path}"))
    return found.json()["authorization_servers"][0]


async def assertion(issuer: str, server: str) -> str:
    """Who logs in: what the suite's workload has, or what the user's employer says."""
    if "valid_jwt" in CONTEXT:
        return CONTEXT["valid_jwt"]
    kinds = "urn:ietf:params:oauth:token-type:"
    exchange = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "client_id": CONTEXT["idp_client_id"],
        "subject_token": CONTEXT["idp_id_token"],
        "subject_token_type": f"{kinds}id_token",
        "requested_token_type": f"{kinds}id-jag",
        "audience": issuer,
        "resource": server,
    }
    async with httpx2.AsyncClient() as http:
        answer = await http.post(CONTEXT["idp_token_endpoint"], data=exchange)
    return answer.json()["access_token"]


async def login(url: str) -> OAuthClient:
    """The client for logins of a scenario."""
    if "client_id" not in CONTEXT:
        return OAuthClient(id=METADATA)
    id, secret = CONTEXT["client_id"], CONTEXT.get("client_secret")
    if SCENARIO in ASSERTED:
        return OAuthClient(id=id, secret=secret, issuer=await issuer_of(url), assertion=assertion)
    if SCENARIO not in WITHOUT_USER:
        return OAuthClient(id=id, secret=secret)
    return OAuthClient(
        id=id,
        secret=secret,
        private_key=CONTEXT.get("private_key_pem"),
        algorithm=CONTEXT.get("signing_algorithm", "ES256"),
        issuer=await issuer_of(url),
        client_credentials=True,
    )


async def main(url: str, logins: Path) -> None:
    async with Host(policy=Policy.trusting(), audit=None) as host:
        host.on_elicit = lambda: {"confirmed": True} if "2322" in SCENARIO else True
        server = RemoteServer(url, ask=agree, logins=logins, client=await login(url))
        await host.add_server("suite", server)
        tools = await host.list_tools()
        if SCENARIO == "json-schema-2020-12-preservation":
            [schema] = [t.input_schema for t in tools if t.name == "json_schema_2020_12_tool"]
            calls = [("json_schema_echo", {"schema": schema})]
        else:
            calls = CALLS.get(SCENARIO) or [
                (tool.name, fitting_arguments(tool.input_schema) or {}) for tool in tools
            ]
        for name, arguments in calls:
            try:
                await host.call_tool(name, arguments)
            except TransomError as error:  # what the suite thinks of it is what counts
                sys.stderr.write(f"{name}: {error}\n")


if __name__ == "__main__":
    keyring.set_keyring(NoKeyring())
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(sys.argv[-1], Path(folder)))
