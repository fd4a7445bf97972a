"""P: content security policy, CORS and permissions; and which URLs a declared origin covers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from urllib.parse import urlsplit

import msgspec

from transom.check.facts import CSP_DIRECTIVES, CSP_FIELDS, Facts, ServedResource, ViewObservation
from transom.check.rule import Hits, Messages, Severity, rule, show
from transom.check.scan import Reference
from transom.json_values import as_object, type_name

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


# --- the rules -------------------------------------------------------------------------------

# The browser API behind each permission.
_PERMISSIONS = {
    "camera": "getUserMedia (video)",
    "microphone": "getUserMedia (audio) or SpeechRecognition",
    "geolocation": "navigator.geolocation",
    "clipboardWrite": "navigator.clipboard.write",
}
MAX_LABELS = 20
# The directives that block what a page loads. Its <base> is judged by the page alone.
_BLOCKING = [each for each in CSP_DIRECTIVES.items() if each[0] != "base-uri"]
_HOST = re.compile(r"\[[0-9a-f:.]+\]|[a-z0-9_.-]+", re.IGNORECASE | re.ASCII)
_RESOURCE_KINDS = frozenset({"script", "style", "image", "font", "media", "asset"})


def _declared_origins(seen: Facts) -> Iterator[tuple[ServedResource, str, WebOrigin]]:
    """Every declared origin, as written and as understood; once for each page."""
    for resource in seen.resources:
        entries = [entry for field in CSP_FIELDS for entry in resource.origins(field)]
        for entry in dict.fromkeys(entries):
            if origin := parse_origin(entry):
                yield resource, entry, origin


@rule("P1")
def csp_is_lists(seen: Facts) -> Hits:
    for resource in seen.resources:
        csp = resource.effective_ui.get("csp")
        if csp is not None and not isinstance(csp, dict):
            yield resource, f": csp must be an object, got {type_name(csp)}."
        for field in CSP_FIELDS:
            value = as_object(csp).get(field)
            texts = isinstance(value, list) and all(isinstance(entry, str) for entry in value)
            if value is not None and not texts:
                yield resource, f": csp.{field} must be a list of origins."


@rule("P2")
def entries_are_origins(seen: Facts) -> Hits:
    for resource, field in (
        (resource, field) for resource in seen.resources for field in CSP_FIELDS
    ):
        for entry in resource.origins(field):
            if unsafe(entry) or keyword(entry) or parse_origin(entry) is None:
                severity = "error" if unsafe(entry) else "warn"
                yield resource, f": `{show(entry)}` in csp.{field} is not an origin.", severity


@rule("P3")
def entries_are_secure(seen: Facts) -> Hits:
    for resource, entry, origin in _declared_origins(seen):
        if origin.scheme in ("http", "ws") and not origin.loopback:
            yield resource, f": `{entry}` is insecure."


@rule("P4")
def wildcards_are_narrow(seen: Facts) -> Hits:
    for resource, entry, origin in _declared_origins(seen):
        if broad_wildcard(origin):
            yield resource, f": wildcard `{entry}` is very broad; anyone can get such a name."
        elif origin.wildcard:
            yield (
                resource,
                f": wildcard `{entry}` lets in every subdomain; name those you use.",
                "info",
            )


@rule("P5")
def connections_are_declared(seen: Facts) -> Hits:
    why = "not in csp.connectDomains; the host will block it"
    for resource, _, origin, severity in _undeclared(seen, "connectDomains", ["connect"]):
        yield resource, f" connects to `{origin}` {why}.", severity


@rule("P6")
def resources_are_declared(seen: Facts) -> Hits:
    names = {"asset": "an asset", "img": "image"}
    for resource, kind, origin, severity in _undeclared(seen, "resourceDomains", _RESOURCE_KINDS):
        what = f"{names.get(kind, kind)} from `{origin}`"
        yield resource, f" loads {what} not in csp.resourceDomains.", severity


@rule("P7")
def frames_are_declared(seen: Facts) -> Hits:
    for resource, _, origin, severity in _undeclared(seen, "frameDomains", ["frame"]):
        yield resource, f" embeds `{origin}`; add it to csp.frameDomains.", severity


@rule("P8")
def base_is_declared(seen: Facts) -> Hits:
    for resource, _, origin, _ in _undeclared(seen, "baseUriDomains", ["base"]):
        yield resource, f": <base> to `{origin}` is not declared."


@rule("P9")
def nothing_is_relative(resource: ServedResource) -> Messages:
    if any(origin_of(url) for _, url in _references(resource, {"base"})):
        return
    relative: dict[Severity, list[str]] = {"error": [], "warn": []}
    for kind, url in _references(resource, _RESOURCE_KINDS | {"frame"}):
        if _is_relative(url):
            relative["error" if kind in ("script", "style") else "warn"].append(url)
    for severity, urls in relative.items():
        if urls:
            more = f" and {len(urls) - 1} more" if len(urls) > 1 else ""
            why = "relatively; a View has no server to resolve it against"
            yield f" references `{show(urls[0])}`{more} {why}.", severity


@rule("P10")
def declarations_are_used(seen: Facts) -> Hits:
    used: set[tuple[str, WebOrigin | str]] = set()
    for view in seen.views or ():
        requested = (origin for url in view.requests if (origin := origin_of(url)))
        used |= {(view.uri, needed) for origin in requested for needed in covering(origin)}
    hosts = {origin.host for _, _, origin in _declared_origins(seen)}
    for resource in seen.resources:
        used |= {(resource.uri, host) for host in _named_hosts(resource.html or "", hosts)}
    for resource, entry, origin in _declared_origins(seen):
        named = resource.html is None or (resource.uri, origin.host) in used
        if not named and (resource.uri, origin) not in used:
            yield resource, f": `{entry}` is declared but never used."


@rule("P11")
def no_localhost(seen: Facts) -> Hits:
    for resource, entry, origin in _declared_origins(seen):
        if origin.loopback:
            yield resource, f": `{entry}` left in csp."


@rule("P12")
def permissions_are_objects(seen: Facts) -> Hits:
    for resource in seen.resources:
        permissions = resource.effective_ui.get("permissions")
        if permissions is not None and not isinstance(permissions, dict):
            yield resource, f": permissions must be an object, got {type_name(permissions)}."
        for key, value in as_object(permissions).items():
            if key not in (*_PERMISSIONS, "tools"):
                known = ", ".join(_PERMISSIONS)
                yield resource, f": permissions.{show(key)} is unknown; use {known}."
            elif key != "tools" and value != {}:
                yield resource, f": permissions.{key} must be an empty object, got {show(value)}."


@rule("P13")
def tools_permission_is_proposed(seen: Facts) -> Hits:
    for resource in seen.resources:
        if "tools" in as_object(resource.effective_ui.get("permissions")):
            why = "most hosts will ignore it"
            yield resource, f": permissions.tools is not in the published spec; {why}."


@rule("P14")
def permissions_fit(resource: ServedResource) -> Messages:
    declared = as_object(resource.effective_ui.get("permissions"))
    for key, api in _PERMISSIONS.items() if resource.html is not None else ():
        if key in declared and key not in resource.scan.apis:
            yield f" asks for {key} but never uses it."
        elif key not in declared and key in resource.scan.apis:
            yield f" uses {api} without permissions.{key}."


@rule("P15")
def denial_is_handled(view: ViewObservation) -> Messages:
    for names, error in view.denied_failures:
        denied = f"{names} are denied" if "," in names else f"{names} is denied"
        yield f"`{view.uri}` fails when {denied}: {error}."


@rule("P16")
def cors_is_allowed(seen: Facts) -> Hits:
    stable = {resource.uri for resource in seen.resources if resource.effective_ui.get("domain")}
    for view in seen.views or ():
        for origin in view.cors_refusals if view.uri not in stable else ():
            yield view, f"`{origin}` refused the View's origin; set a stable `domain` or open CORS."


def _named_hosts(html: str, hosts: Collection[str]) -> Iterator[str]:
    """Those of `hosts` that occur in the page, also as the end of a longer name.

    One pass over the page: looking for each host would take as many.
    """
    for name in _HOST.findall(html):
        labels = name.lower().split(".")[-MAX_LABELS:]
        for start in range(len(labels)):
            if (host := ".".join(labels[start:])) in hosts:
                yield host


def _references(resource: ServedResource, kinds: Collection[str]) -> list[Reference]:
    """What the page makes a browser load, of these kinds."""
    return [reference for reference in resource.scan.references if reference.kind in kinds]


def _undeclared(
    seen: Facts, field: str, kinds: Collection[str]
) -> Iterator[tuple[ServedResource, str, str, Severity]]:
    """The pages with the kind and origin of what they need and `csp.FIELD` does not declare.

    What a browser blocked is an error; what was only read in the page is a warning.
    """
    for resource in seen.resources:
        reported: set[str] = set()
        for directive in (name for name, (_, declares) in _BLOCKING if declares == field):
            for finer, origin in (
                b for v in seen.views or () if v.uri == resource.uri for b in v.blocked
            ):
                # Browsers also name a finer directive, such as script-src-elem.
                if f"{finer}-".startswith(f"{directive}-"):
                    reported.add(origin)
                    yield resource, directive.removesuffix("-src"), origin, "error"
        declared = DeclaredOrigins(resource.origins(field))
        for kind, url in _references(resource, kinds):
            origin = origin_of(url)
            if origin and str(origin) not in reported and not declared.cover(origin):
                reported.add(str(origin))
                yield resource, kind, str(origin), "warn"


def _is_relative(url: str) -> bool:
    scheme, colon, _ = url.partition(":")
    has_scheme = bool(colon) and scheme.replace("+", "").replace("-", "").isalnum()
    return not has_scheme and not url.startswith(("//", "#"))
