"""What an untrusted peer may send, as hypothesis strategies."""

import json
from typing import Any

import msgspec
from hypothesis import strategies as st

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.text(alphabet='[]{}"\\/ab\u0000\u2028é', max_size=12)
)
json_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)

request_ids = st.integers(-(2**63), 2**63 - 1) | st.text(max_size=256)
"""Every id that JSON-RPC and our rules allow."""

methods = st.sampled_from(
    ["ping", "tools/call", "ui/initialize", "notifications/cancelled", "notifications/progress"]
) | st.text(max_size=12)

ids_of_any_type = json_values | request_ids | st.sampled_from([0, 1, "0", "1", 2**63, -(2**70)])

_members: dict[str, st.SearchStrategy[Any]] = {
    "jsonrpc": st.just("2.0") | json_values,
    "id": ids_of_any_type,
    "method": methods | json_values,
    "params": json_values
    | st.fixed_dictionaries(
        {},
        optional={
            "requestId": ids_of_any_type,
            "reason": json_values,
            "progressToken": ids_of_any_type,
            "progress": json_values,
            "total": json_values,
            "message": json_values,
        },
    ),
    "result": st.dictionaries(st.text(max_size=4), json_values, max_size=3) | json_values,
    "error": st.fixed_dictionaries({"code": st.integers() | json_values, "message": st.text()})
    | json_values,
    "extra": json_values,
}


def as_json(value: object) -> bytes:
    """JSON as the standard library writes it: with escapes, so every str has a form."""
    return json.dumps(value).encode()


shaped_messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={name: strategy for name, strategy in _members.items() if name != "jsonrpc"},
) | st.fixed_dictionaries({}, optional=_members)
"""JSON-RPC-shaped objects with hostile members."""

anything = (
    st.binary(max_size=200)
    | json_values.map(as_json)
    | shaped_messages.map(as_json)
    | st.lists(shaped_messages, max_size=3).map(as_json)
)
"""Arbitrary bytes, arbitrary JSON, and nearly messages."""


def requests(ids: st.SearchStrategy[int | str] = request_ids) -> st.SearchStrategy[bytes]:
    """Valid requests."""
    return st.builds(
        lambda id, method: msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method}),
        ids,
        st.text(max_size=12),
    )


def bad_requests(ids: st.SearchStrategy[int | str] = request_ids) -> st.SearchStrategy[bytes]:
    """Requests whose id can be read and that must be refused all the same."""
    return st.builds(
        lambda id, flaw: as_json({"jsonrpc": "2.0", "id": id, "method": "m", **flaw}),
        ids,
        st.sampled_from([{"params": []}, {"extra": 1}, {"result": {}}, {"jsonrpc": "1.0"}]),
    )
