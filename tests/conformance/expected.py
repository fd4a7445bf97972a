"""Scenarios of the official conformance suite that fail, and why; one that passes is an error."""

_ELSEWHERE = "the Python SDK, which makes our logins, has no client for it"
FAILURES: dict[tuple[str, str, str], str] = {
    ("host", "extension", "auth/dpop"): _ELSEWHERE,
    ("host", "extension", "auth/dpop-nonce"): _ELSEWHERE,
    ("host", "extension", "auth/wif-jwt-bearer"): _ELSEWHERE,
    ("host", "extension", "auth/enterprise-managed-authorization"): (
        "ours: `OAuthClient` has no way to be given the user's identity by an employer yet"
    ),
}
"""By leg, version and scenario, as `scripts/conformance.py` has them."""
