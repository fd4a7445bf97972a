"""What a tool's name says it does: verbs, for the rules that judge by name."""

from __future__ import annotations

import re

__all__ = ["DESTROYING", "LEAVING", "READING", "WRITING", "verb", "words"]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

READING = frozenset(
    {
        "get", "list", "search", "find", "show", "read", "fetch", "view", "preview", "lookup",
        "query", "describe", "count", "browse", "display", "check", "inspect",
    }
)  # fmt: skip
DESTROYING = frozenset(
    {
        "delete", "remove", "cancel", "overwrite", "drop", "purge", "wipe", "destroy", "erase",
        "send", "charge", "refund", "revoke", "terminate", "truncate", "uninstall",
    }
)  # fmt: skip
LEAVING = frozenset(
    {"send", "post", "publish", "email", "mail", "notify", "tweet", "upload", "share", "charge"}
)
WRITING = DESTROYING | LEAVING | frozenset(
    {
        "create", "add", "update", "set", "save", "write", "insert", "edit", "modify", "rename",
        "move", "submit", "store", "append", "replace", "approve", "book", "order", "buy", "pay",
        "import", "merge", "patch", "put", "register", "reset", "log",
    }
)  # fmt: skip


def words(name: str) -> list[str]:
    """The words of a name in snake_case, kebab-case or camelCase, in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


def verb(name: str) -> str:
    """The word a name starts with."""
    found = words(name)
    return found[0] if found else ""
