"""Scenarios of the official conformance suite that fail, and why; one that passes is an error."""

_ELSEWHERE = "the Python SDK, which makes our logins, has no client for it"
_NO_USER = "logins without a user are for programs with a `Host`; the gateway takes a header"
FAILURES: dict[tuple[str, str, str], str] = {
    ("host", "extension", "auth/dpop"): _ELSEWHERE,
    ("host", "extension", "auth/dpop-nonce"): _ELSEWHERE,
    ("host", "extension", "auth/wif-jwt-bearer"): _ELSEWHERE,
    ("host", "extension", "auth/enterprise-managed-authorization"): (
        "ours: `OAuthClient` has no way to be given the user's identity by an employer yet"
    ),
    ("sdk", "extension", "auth/dpop"): _ELSEWHERE,
    ("sdk", "extension", "auth/dpop-nonce"): _ELSEWHERE,
    ("sdk", "extension", "auth/wif-jwt-bearer"): _ELSEWHERE,
    ("sdk", "extension", "auth/enterprise-managed-authorization"): _NO_USER,
    ("sdk", "extension", "auth/client-credentials-jwt"): _NO_USER,
    ("sdk", "extension", "auth/client-credentials-basic"): _NO_USER,
}
"""By leg, version and scenario, as `scripts/conformance.py` has them."""
