"""How the URL of a server is shown."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


def server_of(url: str) -> str:
    """A server's URL without possible secrets: for messages and logs, and as its identity."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    return urlunsplit((parts.scheme.lower(), host, parts.path, "", ""))
