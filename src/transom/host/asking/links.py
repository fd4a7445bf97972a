"""Which links of a View the user's browser may open."""

from __future__ import annotations

from urllib.parse import urlsplit

_SCHEMES = frozenset({"http", "https", "mailto"})
_MAX_URL = 8192


def link_refusal(url: str) -> str | None:
    """Why a link must not be opened; None when it may be.

    Only absolute http, https and mailto links may. Characters that browsers drop or rewrite before
    they look at the scheme are refused with the rest of the link.
    """
    if len(url) > _MAX_URL:
        return f"the link is longer than {_MAX_URL} characters"
    if any(ord(char) <= 0x20 or ord(char) == 0x7F or char == "\\" for char in url):
        return "the link has spaces, control characters or backslashes in it"
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return "the link is not a URL"
    if parts.scheme.lower() not in _SCHEMES:
        return "only http, https and mailto links can be opened"
    if parts.scheme.lower() != "mailto" and not host:
        return "the link has no host"
    if parts.scheme.lower() == "mailto" and "@" not in parts.path:
        return "the link has no address"
    return None
