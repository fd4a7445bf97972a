"""The SDK's client, alone, as the client that the official conformance suite tests.

    python -m tests.conformance.sdk_client URL

What it does here, Transom has to do as well when it is between the client and the suite.
"""

import asyncio
import os
import sys
from typing import Any

import httpx2
import mcp
import mcp_types as types
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from tests.conformance.client import (
    CALLS,
    CONTEXT,
    METADATA,
    SCENARIO,
    WITHOUT_USER,
    assertion,
    issuer_of,
)
from transom.check.schemas import fitting_arguments

MODE = "auto" if os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "") >= "2026" else "legacy"


async def fill_in(_: object, asked: types.ElicitRequestParams) -> types.ElicitResult:
    """Answer a form with its defaults."""
    schema: dict[str, Any] = getattr(asked, "requested_schema", {})
    content = {name: each.get("default", True) for name, each in schema["properties"].items()}
    return types.ElicitResult(action="accept", content=content)


async def use(agent: mcp.Client) -> None:
    """Do with a connected client what a scenario wants to see."""
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


class Login:
    """Keeps tokens in memory, and is the browser of a user who agrees."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None
        if "client_id" in CONTEXT:
            self._client = OAuthClientInformationFull(
                client_id=CONTEXT["client_id"],
                client_secret=CONTEXT.get("client_secret"),
                redirect_uris=[AnyUrl("http://localhost:3030/callback")],
                token_endpoint_auth_method="client_secret_basic",
            )
        self._answer: dict[str, str] = {}

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info

    async def agree(self, page: str) -> None:
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(page)
        self._answer = dict(httpx2.URL(answer.headers["location"]).params)

    async def redirected(self) -> AuthorizationCodeResult:
        found = self._answer
        return AuthorizationCodeResult(
            code=found["code"], state=found.get("state"), iss=found.get("iss")
        )


async def login(url: str) -> httpx2.Auth:
    """The SDK's login for a scenario."""
    store, id, secret = Login(), CONTEXT.get("client_id", ""), CONTEXT.get("client_secret", "")
    if SCENARIO not in WITHOUT_USER:
        return OAuthClientProvider(
            url,
            OAuthClientMetadata(
                client_name="suite", redirect_uris=[AnyUrl("http://localhost:3030/callback")]
            ),
            store,
            redirect_handler=store.agree,
            callback_handler=store.redirected,
            client_metadata_url=METADATA,
        )
    issuer = await issuer_of(url)
    if "private_key_pem" in CONTEXT:
        signing = SignedJWTParameters(
            issuer=id,
            subject=id,
            signing_key=CONTEXT["private_key_pem"],
            signing_algorithm=CONTEXT.get("signing_algorithm", "ES256"),
        )
        return PrivateKeyJWTOAuthProvider(
            url, store, id, signing.create_assertion_provider(), issuer=issuer
        )
    if SCENARIO == "auth/client-credentials-basic":
        return ClientCredentialsOAuthProvider(url, store, id, secret, issuer=issuer)
    return IdentityAssertionOAuthProvider(
        *(url, store, id, secret, issuer, assertion),
        token_endpoint_auth_method="client_secret_basic",
    )


async def main(url: str) -> None:
    async with httpx2.AsyncClient(auth=await login(url), timeout=60) as http:
        transport = streamable_http_client(url, http_client=http)
        async with mcp.Client(transport, mode=MODE, elicitation_callback=fill_in) as agent:
            await use(agent)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
