"""A client that was registered with an issuer by hand; its flows are in `oauth_flows`."""

from __future__ import annotations

import msgspec

from transom.errors import UsageError


class OAuthClient(msgspec.Struct, frozen=True, kw_only=True):
    """A client for logins that was registered by hand with the issuer of a server's tokens.

    By default it is for logins of the user. With `client_credentials`, the program logs in as
    itself, and nobody is asked.

    Args:
        id: its client id; or the https URL of a client-id metadata document.
        secret: its secret, if it has one.
        private_key: the PEM of the key that it signs with instead of sending a secret
            (`private_key_jwt`); for `client_credentials`.
        algorithm: that of the key.
        issuer: the URL of the issuer; the client is not used with any other.
        client_credentials: whether the program logs in as itself. It then needs a secret or a key,
            and the issuer.

    Raises:
        UsageError: something is missing for `client_credentials`, or a key is given without it.
    """

    id: str
    secret: str | None = None
    private_key: str | None = None
    algorithm: str = "ES256"
    issuer: str | None = None
    client_credentials: bool = False

    def __post_init__(self) -> None:
        """See `Raises`."""
        if not self.client_credentials:
            if self.private_key is not None:
                raise UsageError("A private_key is for a client with client_credentials=True")
        elif self.issuer is None or (self.secret is None) is (self.private_key is None):
            text = "client_credentials needs the issuer, and either the secret or the private_key"
            raise UsageError(f"A client with {text}")
