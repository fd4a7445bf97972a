"""Origins as a View's CSP declares them, and whether a declaration covers a URL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import msgspec

MAX_HOST = 255  # longer names do not exist

# What ends a source, a directive or a header: an entry that holds one is an injection.
_UNSAFE = re.compile(r"[\s;,'\"<>\\\x00-\x1f\x7f]")
_ORIGIN = re.compile(
    r"(?P<scheme>https?|wss?)://(?P<host>(?:\*\.)?(?:[a-z0-9_-]+\.)*[a-z0-9_-]+\.?|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>\d{1,5}))?",
    re.IGNORECASE | re.ASCII,  # ASCII: else the long s (U+017F) is an `s`
)
_KEYWORDS = frozenset(
    {
        "'self'", "'none'", "'unsafe-inline'", "'unsafe-eval'", "'strict-dynamic'",
        "'wasm-unsafe-eval'", "'unsafe-hashes'", "'report-sample'",
        "self", "none", "*", "data:", "blob:", "filesystem:", "mediastream:",
        "http:", "https:", "ws:", "wss:",
    }
)  # fmt: skip
_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
# A CSP source of the key's scheme also matches URLs of these (CSP3, "scheme-part matches").
_MATCHES = {
    "http": {"http", "https"},
    "https": {"https"},
    "ws": {"ws", "wss", "http", "https"},
    "wss": {"wss", "https"},
}
# Suffixes under which strangers register names. Not the whole public list: those seen in CSPs.
_SHARED_SUFFIXES = frozenset(
    {
        "co.uk", "org.uk", "ac.uk", "com.au", "co.jp", "co.in", "com.br", "co.nz", "co.za",
        "github.io", "gitlab.io", "vercel.app", "netlify.app", "herokuapp.com", "pages.dev",
        "workers.dev", "web.app", "firebaseapp.com", "cloudfront.net", "amazonaws.com",
        "s3.amazonaws.com", "azurewebsites.net", "azureedge.net", "appspot.com", "run.app",
        "fly.dev", "onrender.com", "surge.sh", "glitch.me", "repl.co", "replit.app", "ngrok.io",
        "ngrok.app", "ngrok-free.app", "trycloudflare.com", "blogspot.com", "deno.dev",
        "supabase.co", "googleapis.com", "r2.dev", "up.railway.app",
    }
)  # fmt: skip


class WebOrigin(msgspec.Struct, frozen=True):
    """Scheme, host and port; `wildcard` when the host stands for its subdomains."""

    scheme: str
    host: str
    port: int
    wildcard: bool = False

    @property
    def loopback(self) -> bool:
        """Whether it is the user's own machine."""
        local = self.host in ("localhost", "[::1]") or self.host.endswith(".localhost")
        return local or self.host.startswith("127.")

    def __str__(self) -> str:
        host = f"*.{self.host}" if self.wildcard else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"


def unsafe(entry: str) -> bool:
    """Whether `entry` holds a character that would break out of a CSP source list."""
    return bool(_UNSAFE.search(entry)) and not keyword(entry)


def keyword(entry: str) -> bool:
    """Whether `entry` is a CSP keyword or a bare scheme rather than an origin."""
    return entry.lower() in _KEYWORDS or entry.lower().startswith(("'nonce-", "'sha"))


def parse_origin(entry: str) -> WebOrigin | None:
    """Read an origin, or a wildcard for its subdomains; `None` for anything else, even a path."""
    found = _ORIGIN.fullmatch(entry)
    if found is None:
        return None
    scheme, host = found["scheme"].lower(), found["host"].lower()
    port = int(found["port"]) if found["port"] else _DEFAULT_PORTS[scheme]
    if port > 65535 or len(host) > MAX_HOST:
        return None
    wildcard = host.startswith("*.")
    return WebOrigin(scheme, host[2:] if wildcard else host, port, wildcard)


def origin_of(url: str) -> WebOrigin | None:
    """The origin of an absolute or protocol-relative URL; `None` for any other."""
    if url.startswith("//"):
        url = f"https:{url}"
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    host = parts.netloc.rpartition("@")[2]
    return parse_origin(f"{parts.scheme}://{host}") if host and "*" not in host else None


def broad_wildcard(origin: WebOrigin) -> bool:
    """Whether the wildcard spans names of strangers: a top-level domain or a shared suffix."""
    return origin.wildcard and ("." not in origin.host or origin.host in _SHARED_SUFFIXES)


def covering(origin: WebOrigin) -> Iterator[WebOrigin]:
    """Every origin and wildcard whose declaration would let a View reach `origin`."""
    labels = origin.host.split(".")
    parents = [".".join(labels[start:]) for start in range(1, len(labels))]
    for scheme in (scheme for scheme in _MATCHES if origin.scheme in _MATCHES[scheme]):
        for port in (443, 80) if origin.port == 443 else (origin.port,):
            yield WebOrigin(scheme, origin.host, port)
            for parent in parents:
                yield WebOrigin(scheme, parent, port, wildcard=True)


class DeclaredOrigins:
    """The entries of one CSP list, and what a browser would let through because of them.

    Hosts hand paths and keywords on to the browser, so those count for what it makes of them. The
    entries are parsed once: a long list does not make every look-up long.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self._origins: set[WebOrigin] = set()
        self._schemes: set[str] = set()
        for entry in entries:
            if entry == "*":
                self._schemes |= _MATCHES.keys()
            elif entry.endswith(":") and entry[:-1].lower() in _MATCHES:
                self._schemes |= _MATCHES[entry[:-1].lower()]
            elif origin := parse_origin(entry) or origin_of(entry):
                self._origins.add(origin)

    def cover(self, origin: WebOrigin) -> bool:
        """Whether they let a View reach `origin`."""
        return origin.scheme in self._schemes or not self._origins.isdisjoint(covering(origin))
