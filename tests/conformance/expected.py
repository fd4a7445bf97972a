"""Scenarios of the official conformance suite that fail, and why; one that passes is an error."""

_NO_DPOP = "the Python SDK, which makes our logins, has no DPoP"
_NO_QUESTION = "MCP Apps: a View's tool has no way to ask the client something"
FAILURES: dict[tuple[str, str, str], str] = {
    (leg, "extension", scenario): _NO_DPOP
    for leg in ("host", "sdk", "behind")
    for scenario in ("auth/dpop", "auth/dpop-nonce")
} | {
    ("sdk", "extension", "auth/wif-jwt-bearer"): (
        "the Python SDK: its client with an assertion must have a secret, which a workload lacks"
    ),
    ("direct", "all", "tasks-request-headers"): (
        "the Python SDK does not compare `Mcp-Name` with the task of a request; the gateway does"
    ),
    ("views", "extension", "tasks-mrtr-input"): _NO_QUESTION,
    ("views", "extension", "tasks-mrtr-composition"): _NO_QUESTION,
    ("views", "extension", "tasks-required-task-error"): (
        "nobody: the gateway waits for such a task, so that a client without tasks can use the tool"
    ),
}
"""By leg, version and scenario, as `scripts/conformance.py` has them."""
