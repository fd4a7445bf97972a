"""P: content security policy, CORS and permissions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from transom.check.origins import (
    DeclaredOrigins,
    WebOrigin,
    broad_wildcard,
    covering,
    keyword,
    origin_of,
    parse_origin,
    unsafe,
)
from transom.check.rule import (
    ABOUT_HOST,
    HOST_BEHAVIOR,
    RESOURCE_FORMAT,
    Hits,
    Severity,
    documented,
    rule,
    show,
)
from transom.check.snapshot import CSP_FIELDS, ServedPage, Snapshot
from transom.json_values import as_object, type_name

# The browser API behind each permission.
_PERMISSIONS = {
    "camera": "getUserMedia (video)",
    "microphone": "getUserMedia (audio) or SpeechRecognition",
    "geolocation": "navigator.geolocation",
    "clipboardWrite": "navigator.clipboard.write",
}
_RESOURCE_KINDS = frozenset({"script", "style", "image", "font", "media", "asset"})


def _declared_origins(seen: Snapshot) -> Iterator[tuple[ServedPage, str, WebOrigin]]:
    """Every declared origin, as written and as understood; once for each page."""
    for page in seen.pages:
        entries = [entry for field in CSP_FIELDS for entry in page.origins(field)]
        for entry in dict.fromkeys(entries):
            if origin := parse_origin(entry):
                yield page, entry, origin


@rule("P1", "error", "csp fields are lists of strings", RESOURCE_FORMAT, "read")
def csp_is_lists(seen: Snapshot) -> Hits:
    """`csp` is an object; each of its fields is an array of origins.

    `connectDomains` for fetch and WebSocket, `resourceDomains` for scripts, styles, images, fonts
    and media, `frameDomains` for nested frames, `baseUriDomains` for `<base>`.
    """
    for page in seen.pages:
        csp = page.effective_ui.get("csp")
        if csp is not None and not isinstance(csp, dict):
            yield page, f": csp must be an object, got {type_name(csp)}."
        for field in CSP_FIELDS:
            value = as_object(csp).get(field)
            texts = isinstance(value, list) and all(isinstance(entry, str) for entry in value)
            if value is not None and not texts:
                yield page, f": csp.{field} must be a list of origins."


@rule("P2", "error", "csp entries are origins", RESOURCE_FORMAT, "read")
def entries_are_origins(seen: Snapshot) -> Hits:
    """An entry is a scheme and a host, with a port where needed: `https://api.example.com`.

    No path, no trailing slash, no `*` alone, no CSP keyword such as `'self'`. Spaces, quotes,
    commas and semicolons would change the policy itself: hosts drop such entries, and it is an
    error to send them.
    """
    for page, field in ((page, field) for page in seen.pages for field in CSP_FIELDS):
        for entry in page.origins(field):
            if unsafe(entry) or keyword(entry) or parse_origin(entry) is None:
                severity = "error" if unsafe(entry) else "warn"
                yield page, f": `{show(entry)}` in csp.{field} is not an origin.", severity


@rule("P3", "warn", "csp entries are secure", RESOURCE_FORMAT, "read")
def entries_are_secure(seen: Snapshot) -> Hits:
    """Use `https:` and `wss:`; plain `http:` and `ws:` are for the developer's own machine."""
    for page, entry, origin in _declared_origins(seen):
        if not origin.secure and not origin.loopback:
            yield page, f": `{entry}` is insecure."


@rule("P4", "warn", "Wildcards are narrow", RESOURCE_FORMAT, "read")
def wildcards_are_narrow(seen: Snapshot) -> Hits:
    """`https://*.example.com` is allowed, and lets the View reach every subdomain.

    That is a note. A wildcard over names that anyone can register (`*.com`, `*.github.io`) is a
    warning.
    """
    for page, entry, origin in _declared_origins(seen):
        if broad_wildcard(origin):
            yield page, f": wildcard `{entry}` is very broad; anyone can get such a name."
        elif origin.wildcard:
            yield page, f": wildcard `{entry}` lets in every subdomain; name those you use.", "info"


@rule("P5", "error", "Connections are declared", RESOURCE_FORMAT, "html")
def connections_are_declared(seen: Snapshot) -> Hits:
    """Every origin the View fetches from must be in `csp.connectDomains`.

    That goes for fetch, XMLHttpRequest, EventSource, WebSocket and sendBeacon. An address found
    by reading the page is a warning; a connection that a browser blocked is an error.
    """
    for page in seen.pages:
        urls = [("connect", url) for url in (page.scan.connects if page.scan else ())]
        for _, origin, severity in _undeclared(seen, page, "connectDomains", ["connect-src"], urls):
            why = "not in csp.connectDomains; the host will block it"
            yield page, f" connects to `{origin}` {why}.", severity


@rule("P6", "error", "Loaded resources are declared", RESOURCE_FORMAT, "html")
def resources_are_declared(seen: Snapshot) -> Hits:
    """Every origin of scripts, styles, images, fonts and media must be in `csp.resourceDomains`.

    Or put them into the page. Found by reading the page: a warning; blocked in a browser: an error.
    """
    directives = ("script-src", "style-src", "img-src", "font-src", "media-src", "worker-src")
    names = {"asset": "an asset", "img": "image"}
    for page in seen.pages:
        loaded = _references(page, _RESOURCE_KINDS)
        found = _undeclared(seen, page, "resourceDomains", directives, loaded)
        for kind, origin, severity in found:
            what = f"{names.get(kind, kind)} from `{origin}`"
            yield page, f" loads {what} not in csp.resourceDomains.", severity


@rule("P7", "error", "Nested frames are declared", RESOURCE_FORMAT, "html")
def frames_are_declared(seen: Snapshot) -> Hits:
    """A View may hold frames only of the origins in `csp.frameDomains`; without it, none."""
    for page in seen.pages:
        frames = _references(page, {"frame"})
        for _, origin, severity in _undeclared(seen, page, "frameDomains", ["frame-src"], frames):
            yield page, f" embeds `{origin}`; add it to csp.frameDomains.", severity


@rule("P8", "warn", "The base is declared", RESOURCE_FORMAT, "html")
def base_is_declared(seen: Snapshot) -> Hits:
    """The origin of `<base href>` must be in `csp.baseUriDomains`, or the browser ignores it."""
    for page in seen.pages:
        bases = _references(page, {"base"})
        for _, origin, _ in _undeclared(seen, page, "baseUriDomains", (), bases):
            yield page, f": <base> to `{origin}` is not declared."


@rule("P9", "error", "Nothing is loaded by a relative address", RESOURCE_FORMAT, "html")
def nothing_is_relative(seen: Snapshot) -> Hits:
    """A View has no server of its own, so `./app.js` and `/style.css` cannot be loaded.

    Put scripts and styles into the page (a bundler can do it), or use whole addresses and declare
    them in `csp.resourceDomains`. Scripts and styles are errors, images and media warnings.
    """
    for page in seen.pages:
        if any(origin_of(url) for _, url in _references(page, {"base"})):
            continue
        relative: dict[Severity, list[str]] = {"error": [], "warn": []}
        for kind, url in _references(page, _RESOURCE_KINDS | {"frame"}):
            if _is_relative(url):
                relative["error" if kind in ("script", "style") else "warn"].append(url)
        for severity, urls in relative.items():
            if urls:
                more = f" and {len(urls) - 1} more" if len(urls) > 1 else ""
                why = "relatively; a View has no server to resolve it against"
                yield page, f" references `{show(urls[0])}`{more} {why}.", severity


@rule("P10", "info", "Declared origins are used", RESOURCE_FORMAT, "html", heuristic=True)
def declarations_are_used(seen: Snapshot) -> Hits:
    """An origin that the page never names is probably left over; each one widens what is allowed.

    Judged by looking for the host name anywhere in the page and, with `--browser`, by what the
    rendered View requests. An address that it requests only after a click is not seen.
    """
    used: set[tuple[str, WebOrigin]] = set()
    for view in seen.views or ():
        requested = (origin for url in view.requests if (origin := origin_of(url)))
        used |= {(view.uri, needed) for origin in requested for needed in covering(origin)}
    for page, entry, origin in _declared_origins(seen):
        named = page.html is None or origin.host in page.html
        if not named and (page.uri, origin) not in used:
            yield page, f": `{entry}` is declared but never used."


@rule("P11", "warn", "No localhost is left over", RESOURCE_FORMAT, "read")
def no_localhost(seen: Snapshot) -> Hits:
    """`localhost` in the CSP is for development; a user has no such server.

    Run with `--dev` while you work on the server.
    """
    for page, entry, origin in _declared_origins(seen):
        if origin.loopback:
            yield page, f": `{entry}` left in csp."


@rule("P12", "error", "Permissions are empty objects", RESOURCE_FORMAT, "read")
def permissions_are_objects(seen: Snapshot) -> Hits:
    """`permissions` is an object; its keys are camera, microphone, geolocation, clipboardWrite.

    Each value is `{}`, not `true`: `{"permissions": {"camera": {}}}`.
    """
    for page in seen.pages:
        permissions = page.effective_ui.get("permissions")
        if permissions is not None and not isinstance(permissions, dict):
            yield page, f": permissions must be an object, got {type_name(permissions)}."
        for key, value in as_object(permissions).items():
            if key not in (*_PERMISSIONS, "tools"):
                known = ", ".join(_PERMISSIONS)
                yield page, f": permissions.{show(key)} is unknown; use {known}."
            elif key != "tools" and value != {}:
                yield page, f": permissions.{key} must be an empty object, got {show(value)}."


@rule("P13", "info", "permissions.tools is only proposed", RESOURCE_FORMAT, "read")
def tools_permission_is_proposed(seen: Snapshot) -> Hits:
    """`permissions.tools` (WebMCP delegation) is only a proposal: ext-apps pull request 691."""
    for page in seen.pages:
        if "tools" in as_object(page.effective_ui.get("permissions")):
            why = "is not in the published spec; most hosts will ignore it"
            yield page, f": permissions.tools {why}."


@rule("P14", "info", "Permissions fit what is used", RESOURCE_FORMAT, "html", heuristic=True)
def permissions_fit(seen: Snapshot) -> Hits:
    """Ask for what the View uses, and for all of it.

    Judged by the browser APIs that its scripts name.
    """
    for page in seen.pages:
        if page.scan is None:
            continue
        declared = as_object(page.effective_ui.get("permissions"))
        for key, api in _PERMISSIONS.items():
            if key in declared and key not in page.scan.apis:
                yield page, f" asks for {key} but never uses it."
            elif key not in declared and key in page.scan.apis:
                yield page, f" uses {api} without permissions.{key}."


@rule("P15", "warn", "The View copes with a denied permission", RESOURCE_FORMAT, "browser")
def denial_is_handled(seen: Snapshot) -> Hits:
    """Hosts and users may deny a permission, so a View must check for it and work without it.

    The View is rendered with every permission denied. An uncaught error that names a denied
    permission is reported.
    """
    for view in seen.views or ():
        for names, error in view.denied_failures:
            denied = f"{names} are denied" if "," in names else f"{names} is denied"
            yield view, f"`{view.uri}` fails when {denied}: {error}."


@rule("P16", "warn", "APIs accept the View's origin", RESOURCE_FORMAT, "browser")
def cors_is_allowed(seen: Snapshot) -> Hits:
    """A declared API that answers only known origins refuses a View, whose origin is the host's.

    Set a stable `domain` and let the API allow it, or answer any origin and use a key.
    """
    stable = {page.uri for page in seen.pages if page.effective_ui.get("domain")}
    for view in seen.views or ():
        for origin in view.cors_refusals if view.uri not in stable else ():
            yield view, f"`{origin}` refused the View's origin; set a stable `domain` or open CORS."


@documented("P17", "error", "The host's CSP is no looser than declared", HOST_BEHAVIOR, ABOUT_HOST)
def host_policy_is_tight() -> None:
    """The policy that a host makes may hold no origin that was not declared.

    Nor may it hold a scheme or `*` that lets in any, and it must cover everything else with
    `default-src`. No server can break this; Transom's own host is tested for it.
    """


def _references(page: ServedPage, kinds: Collection[str]) -> list[tuple[str, str]]:
    """The kinds and URLs of what the page makes a browser load."""
    return [(r.kind, r.url) for r in page.scan.references if r.kind in kinds] if page.scan else []


def _undeclared(
    seen: Snapshot,
    page: ServedPage,
    field: str,
    directives: Iterable[str],
    loaded: Iterable[tuple[str, str]],
) -> Iterator[tuple[str, str, Severity]]:
    """The kind and origin of what the page needs and `csp.FIELD` does not declare.

    What a browser blocked is an error; what was only read in the page is a warning.
    """
    reported: set[str] = set()
    blocked = [b for view in seen.views or () if view.uri == page.uri for b in view.blocked]
    for directive in directives:
        for found in blocked:
            # Browsers also name a finer directive, such as script-src-elem.
            if f"{found.directive}-".startswith(f"{directive}-"):
                reported.add(found.origin)
                yield directive.removesuffix("-src"), found.origin, "error"
    declared = DeclaredOrigins(page.origins(field))
    for kind, url in loaded:
        origin = origin_of(url)
        if origin and str(origin) not in reported and not declared.cover(origin):
            reported.add(str(origin))
            yield kind, str(origin), "warn"


def _is_relative(url: str) -> bool:
    scheme, colon, _ = url.partition(":")
    has_scheme = bool(colon) and scheme.replace("+", "").replace("-", "").isalnum()
    return not has_scheme and not url.startswith(("//", "#"))
