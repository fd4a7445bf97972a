"""The URL of a server: whether it is one, and how it is shown."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit


def is_http_url(text: str) -> bool:
    """Whether it is an http or https URL that names a host."""
    with suppress(ValueError):
        return text.startswith(("http://", "https://")) and bool(urlsplit(text).hostname)
    return False


def server_of(url: str) -> str:
    """A server's URL without possible secrets: for messages and logs, and as its identity."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    return urlunsplit((parts.scheme.lower(), host, parts.path, "", ""))
