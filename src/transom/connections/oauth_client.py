"""A client that was registered with an issuer by hand; its flows are in `oauth_flows`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from transom.errors import UsageError


class OAuthClient(msgspec.Struct, frozen=True, kw_only=True):
    """A client for logins that was registered by hand with the issuer of a server's tokens.

    By default it is for logins of the user. Nobody is asked with `client_credentials`, where the
    program logs in as itself, or with an `assertion`, where another issuer says who logs in: the
    user's employer (enterprise-managed authorization) or what runs the program (workload identity).

    Args:
        id: its client id; or the https URL of a client-id metadata document.
        secret: its secret, if it has one.
        private_key: the PEM of the key that it signs with instead of sending a secret
            (`private_key_jwt`); for `client_credentials`.
        algorithm: that of the key.
        issuer: the URL of the issuer; the client is not used with any other.
        client_credentials: whether the program logs in as itself. It then needs a secret or a key,
            and the issuer.
        assertion: called with the issuer and the URL of the server, for each login; returns the
            signed JWT that is exchanged for a token (RFC 7523), such as an employer's ID-JAG. It
            needs the issuer, and the secret if the client has one.

    Raises:
        UsageError: something is missing for `client_credentials` or an `assertion`, or they are
            given together, or a key is given without `client_credentials`.
    """

    id: str
    secret: str | None = None
    private_key: str | None = None
    algorithm: str = "ES256"
    issuer: str | None = None
    client_credentials: bool = False
    assertion: Callable[[str, str], Awaitable[str]] | None = None

    @property
    def asks_nobody(self) -> bool:
        """Whether it logs in without the user."""
        return self.client_credentials or self.assertion is not None

    def __post_init__(self) -> None:
        """See `Raises`."""
        if self.assertion is not None and (self.client_credentials or self.issuer is None):
            raise UsageError("An assertion needs the issuer, and excludes client_credentials=True")
        if not self.client_credentials:
            if self.private_key is not None:
                raise UsageError("A private_key is for a client with client_credentials=True")
        elif self.issuer is None or (self.secret is None) is (self.private_key is None):
            text = "client_credentials needs the issuer, and either the secret or the private_key"
            raise UsageError(f"A client with {text}")
