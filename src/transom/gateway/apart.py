"""The names of several servers' tools and prompts, kept apart for one client.

1. A name stays as it is. When two servers have it, it is the one's that came first: in the order
   of the configuration, when both are there. The other's is `SERVER__NAME`.
2. A name that would pass for a View's tool, for a server's or for one of the gateway's own gets its
   server in front in any case.
3. A name that was given out never comes to mean something else, whether or not its server is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from transom.host.tool_names import looks_owned, owned_name, owner_of

__all__ = ["Names", "server_names"]

_MAX_SERVER = 32
_MAX_HELD = 20_000  # names of one server


def server_names(names: Sequence[str]) -> list[str]:
    """The servers' names, with a `_` in one that could be the id of another one's View.

    `shop-2` is what the second View of `shop` is called, so next to a `shop` it becomes `shop_2`.
    """
    taken = set(names)
    apart: list[str] = []
    for name in names:
        server, _, number = name.rpartition("-")
        chosen = name
        if number.isdecimal() and server in taken:
            while chosen in taken:
                chosen = f"{server[: _MAX_SERVER - 1 - len(number)].rstrip('-_')}_{number}"
                number += "0"
            taken.add(chosen)
        apart.append(chosen)
    return apart


class Names:
    """One kind of names.

    Args:
        servers: what the servers are called.
        reserved: names that are no server's.
    """

    def __init__(self, servers: Iterable[str], reserved: Iterable[str] = ()) -> None:
        self._held = dict.fromkeys(servers, 0)
        self._reserved = frozenset(reserved)
        self._shown: dict[tuple[str, str], str] = {}
        self._meant: dict[str, tuple[str, str]] = {}

    def shown(self, server: str, name: str) -> str | None:
        """What the client calls it; None when this server has had too many names."""
        key = (server, name)
        found = self._shown.get(key)
        if found is None and self._held[server] < _MAX_HELD:
            self._held[server] += 1
            found = self._shown[key] = self._new(server, name)
            self._meant[found] = key
        return found

    def meant(self, shown: str) -> tuple[str, str] | None:
        """The server and its own name for what the client calls so."""
        return self._meant.get(shown)

    def _new(self, server: str, name: str) -> str:
        odd = name in self._reserved or looks_owned(name) or owner_of(name) in self._held
        if not odd and name not in self._meant:
            return name
        owned = owned_name(server, name)
        return owned if owned not in self._meant else owned_name(server, name, digest=True)
