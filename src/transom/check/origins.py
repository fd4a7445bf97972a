"""Origins as a View's CSP declares them, and whether a declaration covers a URL.

Whether a Content-Security-Policy lets in more than a resource declared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec

from transom.json_values import JsonObject, as_list

__all__ = [
    "Origin",
    "broad_wildcard",
    "covered",
    "keyword",
    "loose_directives",
    "origin_of",
    "parse_origin",
    "unsafe",
]


# What ends a source, a directive or a header: an entry that holds one is an injection.
_UNSAFE = re.compile(r"[\s;,'\"<>\\\x00-\x1f\x7f]")
_ORIGIN = re.compile(
    r"(?P<scheme>https?|wss?)://(?P<host>(?:\*\.)?(?:[a-z0-9_-]+\.)*[a-z0-9_-]+\.?|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>\d{1,5}))?",
    re.IGNORECASE,
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


class Origin(msgspec.Struct, frozen=True):
    """Scheme, host and port; `wildcard` when the host stands for its subdomains."""

    scheme: str
    host: str
    port: int
    wildcard: bool = False

    @property
    def loopback(self) -> bool:
        """Whether it is the user's own machine."""
        return (
            self.host in ("localhost", "[::1]")
            or self.host.endswith(".localhost")
            or self.host.startswith("127.")
        )

    @property
    def secure(self) -> bool:
        """Whether it is reached encrypted."""
        return self.scheme in ("https", "wss")

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


def parse_origin(entry: str) -> Origin | None:
    """Read an origin, or a wildcard for its subdomains; `None` for anything else, even a path."""
    found = _ORIGIN.fullmatch(entry)
    if found is None:
        return None
    scheme, host = found["scheme"].lower(), found["host"].lower()
    port = int(found["port"]) if found["port"] else _DEFAULT_PORTS[scheme]
    if port > 65535:
        return None
    wildcard = host.startswith("*.")
    return Origin(scheme, host[2:] if wildcard else host, port, wildcard)


def origin_of(url: str) -> Origin | None:
    """The origin of an absolute or protocol-relative URL; `None` for any other."""
    if url.startswith("//"):
        url = f"https:{url}"
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    host = parts.netloc.rpartition("@")[2]
    return parse_origin(f"{parts.scheme}://{host}") if host and "*" not in host else None


def covered(origin: Origin, declared: list[str]) -> bool:
    """Whether a CSP made of `declared` lets a View reach `origin`."""
    return any(_covers(entry, origin) for entry in declared)


def broad_wildcard(origin: Origin) -> bool:
    """Whether the wildcard spans names of strangers: a top-level domain or a shared suffix."""
    return origin.wildcard and ("." not in origin.host or origin.host in _SHARED_SUFFIXES)


def _covers(entry: str, origin: Origin) -> bool:
    # Hosts hand paths and keywords on to the browser, so judge what it would do with them.
    if entry == "*":
        return True
    if entry.lower() in ("https:", "http:", "ws:", "wss:"):
        return origin.scheme in _MATCHES[entry.lower()[:-1]]
    allowed = parse_origin(entry) or origin_of(entry)
    if allowed is None or origin.scheme not in _MATCHES[allowed.scheme]:
        return False
    upgraded = allowed.port == 80 and origin.port == 443
    if allowed.port != origin.port and not upgraded:
        return False
    if allowed.wildcard:
        return origin.host.endswith(f".{allowed.host}")
    return origin.host == allowed.host


_FIELDS = {
    "connect-src": "connectDomains",
    "script-src": "resourceDomains",
    "style-src": "resourceDomains",
    "img-src": "resourceDomains",
    "font-src": "resourceDomains",
    "media-src": "resourceDomains",
    "worker-src": "resourceDomains",
    "frame-src": "frameDomains",
    "base-uri": "baseUriDomains",
}
# Sources that name no origin but the page's own. Hosts differ in which of them they allow.
_LOCAL = frozenset({"'self'", "'none'", "data:", "blob:"})
_LOCAL_CODE = ("'unsafe-", "'wasm-", "'nonce-", "'sha", "'strict-dynamic'", "'report-sample'")


def loose_directives(policy: str, declared: JsonObject) -> Iterator[str]:
    """The directives of `policy` that allow what `declared` does not, each as it is written."""
    directives = _parse(policy)
    # Every fetch falls back on default-src; base-uri falls back on nothing.
    for needed in ("default-src", "base-uri"):
        if needed not in directives:
            yield f"there is no {needed}"
    for name, sources in directives.items():
        if "-src" not in name and name != "base-uri":
            continue
        allowed = _declared(name, declared)
        loose = [source for source in sources if not _is_local(source) and source not in allowed]
        if loose:
            yield f"{name} {' '.join(loose)}"


def _declared(directive: str, declared: JsonObject) -> set[str]:
    field = _FIELDS.get(directive) or _FIELDS.get(directive.rpartition("-")[0])
    entries = as_list(declared.get(field)) if field else []
    # A trailing slash means the same origin; hosts may be kind and drop it.
    origins = [entry.removesuffix("/") for entry in entries if isinstance(entry, str)]
    return {origin for origin in origins if parse_origin(origin)}


def _is_local(source: str) -> bool:
    return source in _LOCAL or source.startswith(_LOCAL_CODE)


def _parse(policy: str) -> dict[str, list[str]]:
    directives: dict[str, list[str]] = {}
    for part in policy.split(";"):
        words = part.split()
        if words:
            # A repeated directive is ignored by browsers: the first one counts.
            directives.setdefault(words[0].lower(), words[1:])
    return directives
