"""Scenarios of the official conformance suite that fail, and why; one that passes is an error."""

_NO_DPOP = "the Python SDK, which makes our logins, has no DPoP"
FAILURES: dict[tuple[str, str, str], str] = {
    (leg, "extension", scenario): _NO_DPOP
    for leg in ("host", "sdk", "behind")
    for scenario in ("auth/dpop", "auth/dpop-nonce")
} | {
    ("sdk", "extension", "auth/wif-jwt-bearer"): (
        "the Python SDK: its client with an assertion must have a secret, which a workload lacks"
    ),
}
"""By leg, version and scenario, as `scripts/conformance.py` has them."""
