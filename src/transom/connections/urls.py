"""The URL of a server: whether it is one, where it leads, and how it is shown."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit, urlunsplit


def is_http_url(text: str) -> bool:
    """Whether it is an http or https URL that names a host."""
    with suppress(ValueError):
        return text.startswith(("http://", "https://")) and bool(urlsplit(text).hostname)
    return False


def is_loopback(url: str) -> bool:
    """Whether requests to this URL certainly stay on this machine."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def server_of(url: str) -> str:
    """A server's URL without possible secrets: for messages and logs, and as its identity."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    return urlunsplit((parts.scheme.lower(), host, parts.path, "", ""))
