"""Hostile messages: valid ones, damaged at random. One seed gives the same messages every time."""

import json
import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

VALID: list[dict[str, Any]] = [
    {"id": 0, "method": "ping"},
    {"id": 1, "method": "ui/initialize", "params": {"appInfo": {"name": "a", "version": "1"}}},
    {"id": 2, "method": "tools/call", "params": {"name": "t", "arguments": {"a": [1, {"b": ""}]}}},
    {"id": "3", "method": "tools/list", "params": {"cursor": "c", "_meta": {"progressToken": 3}}},
    {"id": 4, "method": "ui/message", "params": {"role": "user", "content": [{"type": "text"}]}},
    {"method": "ui/notifications/initialized"},
    {"method": "ui/notifications/size-changed", "params": {"width": 1.5, "height": 1e3}},
    {"method": "notifications/cancelled", "params": {"requestId": 0, "reason": "enough"}},
    {"method": "notifications/progress", "params": {"progressToken": 0, "progress": 0.5}},
    {"id": 0, "result": {}},
    {"id": 1, "result": {"content": [{"type": "text", "text": 'say "[hi]" \\ {'}]}},
    {"id": 2, "error": {"code": -32603, "message": "no", "data": {"deep": [[[]]]}}},
    {"id": None, "error": {"code": -32700, "message": "what"}},
]
ODD: list[Any] = [
    *(None, True, False, 0, -1, 1, 1.0, -0.0, 0.5, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 10**400),
    *("", "0", "1", "2.0", "\0", "\ud800", "\u2028", "é☃", '"', "\\", "[", "{", "__proto__"),
    *([], {}, [[]], {"": {}}, [None], {"id": 0}, {"jsonrpc": "2.0"}, {"method": "ping"}),
    *("x" * 257, "[" * 300, "ping", "notifications/cancelled", "notifications/progress"),
]
KEYS = [
    *("jsonrpc", "id", "method", "params", "result", "error", "code", "message", "data", "_meta"),
    *("requestId", "progressToken", "progress", "reason", "Id", "", "__proto__", "\0", "é"),
]
BYTES = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\0", b"\n", b"\\", b'"', b"[", b"}", b",", b" "]

Path = list[str | int]


class Mutator:
    """Makes one hostile message after the other."""

    def __init__(self, seed: int, *, ids: int = 6) -> None:
        self.random = random.Random(seed)
        self.ids = ids

    def message(self) -> bytes:
        """The next one. Some are left as they were: what is valid has to work too."""
        rng = self.random
        value = {"jsonrpc": "2.0", **json.loads(json.dumps(rng.choice(VALID)))}
        if "id" in value and rng.random() < 0.7:
            id = rng.randrange(self.ids)
            value["id"] = id if rng.random() < 0.8 else str(id)
        for _ in range(rng.choice((0, 0, 0, 1, 1, 1, 2, 4))):
            damaged = self.damaged(value)
            value = damaged if isinstance(damaged, dict) else {"jsonrpc": "2.0", "id": damaged}
        text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
        if len(text) < 300 and rng.random() < 0.3:
            text = json.dumps(value, indent=1)
        data = text.encode("utf-8", "surrogatepass")
        while rng.random() < 0.2:
            data = self.torn(data)
        return data

    # --- the value -------------------------------------------------------------------------

    def damaged(self, value: Any) -> Any:
        """The value with one thing wrong."""
        rng = self.random
        places = _places(value)
        if not places:
            return deepcopy(rng.choice(ODD))
        holder, at = _find(value, rng.choice(places))
        match rng.randrange(8):
            case 0:
                del holder[at]
            case 1:
                holder[at] = deepcopy(rng.choice(ODD))
            case 2:
                for _ in range(rng.choice((1, 3, 60, 150))):
                    holder[at] = [holder[at]] if rng.random() < 0.5 else {"a": holder[at]}
            case 3:
                other, there = _find(value, rng.choice(places))
                holder[at] = json.loads(json.dumps(other[there]))
            case 4 if isinstance(holder, dict):
                holder[rng.choice(KEYS)] = holder.pop(at)
            case 5:
                value[rng.choice(KEYS)] = deepcopy(rng.choice(ODD))
            case 6:
                holder[at] = rng.randint(-(2**70), 2**70) / rng.choice((1, 2**60, 3))
            case _:
                value = {**rng.choice(({"jsonrpc": "2.0"}, value)), "params": value}
        return value

    # --- the bytes -------------------------------------------------------------------------

    def torn(self, data: bytes) -> bytes:
        """The bytes with one thing wrong."""
        rng = self.random
        place = rng.randrange(len(data) + 1)
        ways: list[Callable[[], bytes]] = [
            lambda: data[:place],
            lambda: data[place:],
            lambda: data[:place] + rng.choice(BYTES) + data[place:],
            lambda: data[:place] + rng.randbytes(rng.randrange(4)) + data[place + 1 :],
            lambda: data + rng.choice((data, b" x", b"\n", b"\0")),
            lambda: rng.choice((b"\xef\xbb\xbf", b"[", b" ", b"\n")) + data,
            lambda: data.replace(b'"id"', b'"id":1,"id"', 1),
            lambda: data.replace(b"{", b'{"jsonrpc":"2.0",', 1),
            lambda: data[:place] + b"[" * rng.choice((10, 200, 3000)) + data[place:],
            lambda: data.replace(b"2.0", rng.choice((b"2", b"2.00", b"1.0")), 1),
        ]
        return rng.choice(ways)()


def _places(value: Any) -> list[Path]:
    """The path to everything inside a value."""
    found: list[Path] = []
    todo: list[tuple[Any, Path]] = [(value, [])]
    while todo and len(found) < 200:
        inner, path = todo.pop()
        entries = inner.items() if isinstance(inner, dict) else enumerate(inner)
        for key, child in entries:
            found.append([*path, key])
            if isinstance(child, dict | list) and len(path) < 50:
                todo.append((child, [*path, key]))
    return found


def _find(value: Any, path: Path) -> tuple[Any, Any]:
    """What holds the place at the end of the path, and its key there."""
    for key in path[:-1]:
        value = value[key]
    return value, path[-1]
