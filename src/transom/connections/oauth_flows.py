"""The OAuth flows that get a login: of the user, or of a program that asks nobody.

1. The SDK's clients are the flows. This module chooses one, and how its client identifies itself.
2. A client that was registered by hand sends its secret as the issuer supports it: in the header
   `Authorization`, unless the issuer, or the client's registration there, wants it in the body.
3. A secret, a key or an assertion is only used at the issuer that it was given for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qsl

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, TokenStorage
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import issuers_match
from mcp.shared.auth import (
    JWT_BEARER_GRANT_TYPE,
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
)
from pydantic import AnyUrl

from transom.connections.oauth_client import OAuthClient

_BASIC: Final = "client_secret_basic"
_POST: Final = "client_secret_post"


def registered(client: OAuthClient) -> OAuthClientInformationFull:
    """A client that was registered by hand, as the SDK has it."""
    return OAuthClientInformationFull(
        client_id=client.id,
        client_secret=client.secret,
        token_endpoint_auth_method="none" if client.secret is None else _BASIC,
    )


def flow_for(
    server: str,
    client: OAuthClient | None,
    storage: TokenStorage,
    *,
    metadata_url: str | None,
    show_page: Callable[[str], Awaitable[None]],
    wait_for_code: Callable[[], Awaitable[AuthorizationCodeResult]],
) -> OAuthClientProvider:
    """The flow for the login at a server. `metadata_url`: of a client-id metadata document."""
    if client is not None and client.asks_nobody:
        return _flow_without_user(server, client, storage)

    class UserFlow(OAuthClientProvider):
        async def _perform_authorization(self) -> httpx2.Request:
            if client is not None:
                _identify(self.context, client)
            return await super()._perform_authorization()

    return UserFlow(
        server,
        OAuthClientMetadata(
            client_name="Transom",
            redirect_uris=[AnyUrl("http://127.0.0.1/callback")],
            token_endpoint_auth_method="none",  # noqa: S106 - no password
        ),
        storage,
        redirect_handler=show_page,
        callback_handler=wait_for_code,
        client_metadata_url=metadata_url,
    )


def _flow_without_user(
    server: str, client: OAuthClient, storage: TokenStorage
) -> OAuthClientProvider:
    # Loads what signs tokens, which takes as long as the rest of the SDK.
    from mcp.client.auth.extensions.client_credentials import (  # noqa: PLC0415
        ClientCredentialsOAuthProvider,
        PrivateKeyJWTOAuthProvider,
        SignedJWTParameters,
    )

    if client.private_key is not None:
        signing = SignedJWTParameters(
            issuer=client.id,
            subject=client.id,
            signing_key=client.private_key,
            signing_algorithm=client.algorithm,
        )
        return PrivateKeyJWTOAuthProvider(
            server, storage, client.id, signing.create_assertion_provider(), issuer=client.issuer
        )

    class SecretFlow(ClientCredentialsOAuthProvider):
        async def _initialize(self) -> None:
            await super()._initialize()
            self.context.client_info = registered(client)  # with an assertion, maybe no secret

        async def _perform_authorization(self) -> httpx2.Request:
            _identify(self.context, client)
            if client.assertion is None:
                return await super()._perform_authorization()
            return await self._present(client.assertion)

        async def _present(self, assertion: Callable[[str, str], Awaitable[str]]) -> httpx2.Request:
            resource = self.context.get_resource_url()
            try:
                signed = await assertion(client.issuer or "", resource)
            except Exception as error:
                raise OAuthFlowError(f"there is no assertion for it: {error}") from error
            form = {"grant_type": JWT_BEARER_GRANT_TYPE, "assertion": signed, "resource": resource}
            if scope := self.context.client_metadata.scope:
                form["scope"] = scope
            data, headers = self.context.prepare_token_auth({**form, "client_id": client.id}, {})
            return httpx2.Request("POST", self._get_token_endpoint(), data=data, headers=headers)

    return SecretFlow(server, storage, client.id, client.secret or "", issuer=client.issuer)


def _identify(context: OAuthContext, client: OAuthClient) -> None:
    """Choose how the client identifies itself, now that the issuer is known."""
    metadata, info = context.oauth_metadata, context.client_info
    issuer = "" if metadata is None else str(metadata.issuer)
    if client.issuer is not None and not issuers_match(issuer, client.issuer):
        raise OAuthFlowError(f"the client is for {client.issuer}, and the server is at {issuer}")
    if info is None or info.client_id != client.id or info.client_secret is None:
        return
    supported = metadata and metadata.token_endpoint_auth_methods_supported
    only_post = supported and _POST in supported and _BASIC not in supported
    info.token_endpoint_auth_method = _POST if only_post else _BASIC


def with_secret_in_body(request: httpx2.Request, context: OAuthContext) -> httpx2.Request | None:
    """A refused request for a token with the client's secret in its body; None: it has none."""
    info = context.client_info
    if info is None or not request.headers.get("authorization", "").startswith("Basic "):
        return None
    info.token_endpoint_auth_method = _POST
    form = dict(parse_qsl(request.content.decode()))
    data, headers = context.prepare_token_auth(form, {})
    return httpx2.Request("POST", request.url, data=data, headers=headers)
