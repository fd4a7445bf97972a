"""P: content security policy, CORS and permissions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
    HOST_BEHAVIOR,
    RESOURCE_FORMAT,
    Hit,
    Hits,
    Severity,
    documented,
    on_page,
    rule,
    show,
)
from transom.check.scan import Reference
from transom.check.snapshot import CSP_FIELDS, ServedPage, Snapshot
from transom.json_values import Json, as_object, type_name

_PERMISSIONS = ("camera", "microphone", "geolocation", "clipboardWrite")
_API_NAMES = {
    "camera": "getUserMedia (video)",
    "microphone": "getUserMedia (audio) or SpeechRecognition",
    "geolocation": "navigator.geolocation",
    "clipboardWrite": "navigator.clipboard.write",
}
_RESOURCE_KINDS = frozenset({"script", "style", "image", "font", "media", "asset"})


def _entries(seen: Snapshot) -> Iterator[tuple[ServedPage, str, str]]:
    """Every declared entry: the page, the field and what is written there."""
    for page in seen.pages:
        for field in CSP_FIELDS:
            for entry in page.origins(field):
                yield page, field, entry


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
            yield on_page(page, f": csp must be an object, got {type_name(csp)}.")
        for field in CSP_FIELDS:
            value = as_object(csp).get(field)
            if value is not None and not _is_texts(value):
                yield on_page(page, f": csp.{field} must be a list of origins.")


@rule("P2", "error", "csp entries are origins", RESOURCE_FORMAT, "read")
def entries_are_origins(seen: Snapshot) -> Hits:
    """An entry is a scheme and a host, with a port where needed: `https://api.example.com`.

    No path, no trailing slash, no `*` alone, no CSP keyword such as `'self'`. Spaces, quotes,
    commas and semicolons would change the policy itself: hosts drop such entries, and it is an
    error to send them.
    """
    for page, field, entry in _entries(seen):
        if unsafe(entry):
            yield on_page(page, f": `{show(entry)}` in csp.{field} is not an origin.")
        elif keyword(entry) or parse_origin(entry) is None:
            yield on_page(page, f": `{show(entry)}` in csp.{field} is not an origin.", "warn")


@rule("P3", "warn", "csp entries are secure", RESOURCE_FORMAT, "read")
def entries_are_secure(seen: Snapshot) -> Hits:
    """Use `https:` and `wss:`; plain `http:` and `ws:` are for the developer's own machine."""
    for page, entry, origin in _declared_origins(seen):
        if not origin.secure and not origin.loopback:
            yield on_page(page, f": `{entry}` is insecure.")


@rule("P4", "warn", "Wildcards are narrow", RESOURCE_FORMAT, "read")
def wildcards_are_narrow(seen: Snapshot) -> Hits:
    """`https://*.example.com` is allowed, and lets the View reach every subdomain.

    That is a note. A wildcard over names that anyone can register (`*.com`, `*.github.io`) is a
    warning.
    """
    for page, entry, origin in _declared_origins(seen):
        if broad_wildcard(origin):
            yield on_page(page, f": wildcard `{entry}` is very broad; anyone can get such a name.")
        elif origin.wildcard:
            yield on_page(
                page, f": wildcard `{entry}` lets in every subdomain; name those you use.", "info"
            )


@rule("P5", "error", "Connections are declared", RESOURCE_FORMAT, "html")
def connections_are_declared(seen: Snapshot) -> Hits:
    """Every origin the View fetches from must be in `csp.connectDomains`.

    That goes for fetch, XMLHttpRequest, EventSource, WebSocket and sendBeacon. An address found
    by reading the page is a warning; a connection that a browser blocked is an error.
    """
    for page in seen.pages:
        blocked = _blocked(seen, page, "connect-src")
        read = _undeclared(page.scan.connects if page.scan else (), page.origins("connectDomains"))
        for origin, severity in _merged(blocked, read):
            yield on_page(
                page,
                f" connects to `{origin}` not in csp.connectDomains; the host will block it.",
                severity,
            )


@rule("P6", "error", "Loaded resources are declared", RESOURCE_FORMAT, "html")
def resources_are_declared(seen: Snapshot) -> Hits:
    """Every origin of scripts, styles, images, fonts and media must be in `csp.resourceDomains`.

    Or put them into the page. Found by reading the page: a warning; blocked in a browser: an error.
    """
    directives = ("script-src", "style-src", "img-src", "font-src", "media-src", "worker-src")
    for page in seen.pages:
        reported: set[str] = set()
        for directive in directives:
            for origin in _blocked(seen, page, directive):
                reported.add(origin)
                yield _loads(page, directive.removesuffix("-src"), origin, "error")
        declared = DeclaredOrigins(page.origins("resourceDomains"))
        for reference in _references(page, _RESOURCE_KINDS):
            origin = origin_of(reference.url)
            if origin and str(origin) not in reported and not declared.cover(origin):
                reported.add(str(origin))
                yield _loads(page, reference.kind, str(origin), "warn")


@rule("P7", "error", "Nested frames are declared", RESOURCE_FORMAT, "html")
def frames_are_declared(seen: Snapshot) -> Hits:
    """A View may hold frames only of the origins in `csp.frameDomains`; without it, none."""
    for page in seen.pages:
        urls = [reference.url for reference in _references(page, {"frame"})]
        read = _undeclared(urls, page.origins("frameDomains"))
        for origin, severity in _merged(_blocked(seen, page, "frame-src"), read):
            yield on_page(page, f" embeds `{origin}`; add it to csp.frameDomains.", severity)


@rule("P8", "warn", "The base is declared", RESOURCE_FORMAT, "html")
def base_is_declared(seen: Snapshot) -> Hits:
    """The origin of `<base href>` must be in `csp.baseUriDomains`, or the browser ignores it."""
    for page in seen.pages:
        urls = [reference.url for reference in _references(page, {"base"})]
        for origin in _undeclared(urls, page.origins("baseUriDomains")):
            yield on_page(page, f": <base> to `{origin}` is not declared.")


@rule("P9", "error", "Nothing is loaded by a relative address", RESOURCE_FORMAT, "html")
def nothing_is_relative(seen: Snapshot) -> Hits:
    """A View has no server of its own, so `./app.js` and `/style.css` cannot be loaded.

    Put scripts and styles into the page (a bundler can do it), or use whole addresses and declare
    them in `csp.resourceDomains`. Scripts and styles are errors, images and media warnings.
    """
    for page in seen.pages:
        if any(origin_of(reference.url) for reference in _references(page, {"base"})):
            continue
        found = [r for r in _references(page, _RESOURCE_KINDS | {"frame"}) if _is_relative(r.url)]
        vital = [r.url for r in found if r.kind in ("script", "style")]
        others = [r.url for r in found if r.kind not in ("script", "style")]
        if vital:
            yield _relative(page, vital, "error")
        if others:
            yield _relative(page, others, "warn")


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
            yield on_page(page, f": `{entry}` is declared but never used.")


@rule("P11", "warn", "No localhost is left over", RESOURCE_FORMAT, "read")
def no_localhost(seen: Snapshot) -> Hits:
    """`localhost` in the CSP is for development; a user has no such server.

    Run with `--dev` while you work on the server.
    """
    for page, entry, origin in _declared_origins(seen):
        if origin.loopback:
            yield on_page(page, f": `{entry}` left in csp.")


@rule("P12", "error", "Permissions are empty objects", RESOURCE_FORMAT, "read")
def permissions_are_objects(seen: Snapshot) -> Hits:
    """`permissions` is an object; its keys are camera, microphone, geolocation, clipboardWrite.

    Each value is `{}`, not `true`: `{"permissions": {"camera": {}}}`.
    """
    for page in seen.pages:
        permissions = page.effective_ui.get("permissions")
        if permissions is not None and not isinstance(permissions, dict):
            yield on_page(page, f": permissions must be an object, got {type_name(permissions)}.")
        for key, value in as_object(permissions).items():
            if key == "tools":
                continue
            if key not in _PERMISSIONS:
                yield on_page(
                    page,
                    f": permissions.{show(key)} is unknown; use {', '.join(_PERMISSIONS)}.",
                )
            elif value != {}:
                yield on_page(
                    page, f": permissions.{key} must be an empty object, got {show(value)}."
                )


@rule("P13", "info", "permissions.tools is only proposed", RESOURCE_FORMAT, "read")
def tools_permission_is_proposed(seen: Snapshot) -> Hits:
    """`permissions.tools` (WebMCP delegation) is only a proposal: ext-apps pull request 691."""
    for page in seen.pages:
        if "tools" in as_object(page.effective_ui.get("permissions")):
            yield on_page(
                page,
                ": permissions.tools is not in the published spec; most hosts will ignore it.",
            )


@rule("P14", "info", "Permissions fit what is used", RESOURCE_FORMAT, "html", heuristic=True)
def permissions_fit(seen: Snapshot) -> Hits:
    """Ask for what the View uses, and for all of it.

    Judged by the browser APIs that its scripts name.
    """
    for page in seen.pages:
        if page.scan is None:
            continue
        declared = as_object(page.effective_ui.get("permissions"))
        for key in _PERMISSIONS:
            if key in declared and key not in page.scan.apis:
                yield on_page(page, f" asks for {key} but never uses it.")
            elif key not in declared and key in page.scan.apis:
                yield on_page(page, f" uses {_API_NAMES[key]} without permissions.{key}.")


@rule("P15", "warn", "The View copes with a denied permission", RESOURCE_FORMAT, "browser")
def denial_is_handled(seen: Snapshot) -> Hits:
    """Hosts and users may deny a permission, so a View must check for it and work without it.

    The View is rendered with every permission denied. An uncaught error that names a denied
    permission is reported.
    """
    for view in seen.views or ():
        for names, error in view.denied_failures:
            denied = f"{names} are denied" if "," in names else f"{names} is denied"
            yield Hit(f"view {view.uri}", f"`{view.uri}` fails when {denied}: {error}.")


@rule("P16", "warn", "APIs accept the View's origin", RESOURCE_FORMAT, "browser")
def cors_is_allowed(seen: Snapshot) -> Hits:
    """A declared API that answers only known origins refuses a View, whose origin is the host's.

    Set a stable `domain` and let the API allow it, or answer any origin and use a key.
    """
    pages = {page.uri: page for page in seen.pages}
    for view in seen.views or ():
        page = pages.get(view.uri)
        if page is not None and page.effective_ui.get("domain"):
            continue
        for origin in view.cors_refusals:
            yield Hit(
                f"view {view.uri}",
                f"`{origin}` refused the View's origin; set a stable `domain` or open CORS.",
            )


@documented(
    "P17",
    "error",
    "The host's CSP is no looser than declared",
    HOST_BEHAVIOR,
    "about the host, not the server",
)
def host_policy_is_tight() -> None:
    """The policy that a host makes may hold no origin that was not declared.

    Nor may it hold a scheme or `*` that lets in any, and it must cover everything else with
    `default-src`. No server can break this; Transom's own host is tested for it.
    """


def _is_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _references(page: ServedPage, kinds: Iterable[str]) -> list[Reference]:
    wanted = set(kinds)
    return [r for r in page.scan.references if r.kind in wanted] if page.scan else []


def _undeclared(urls: Iterable[str], declared: list[str]) -> list[str]:
    allowed = DeclaredOrigins(declared)
    origins = (origin for url in urls if (origin := origin_of(url)))
    return list(dict.fromkeys(str(origin) for origin in origins if not allowed.cover(origin)))


def _blocked(seen: Snapshot, page: ServedPage, directive: str) -> list[str]:
    """Origins a browser refused under that directive or a finer one (`script-src-elem`)."""
    return list(
        dict.fromkeys(
            found.origin
            for view in seen.views or ()
            if view.uri == page.uri
            for found in view.blocked
            if found.directive == directive or found.directive.startswith(f"{directive}-")
        )
    )


def _merged(blocked: list[str], read: list[str]) -> Iterator[tuple[str, Severity]]:
    """What a browser blocked is an error; what was only read in the page is a warning."""
    for origin in blocked:
        yield origin, "error"
    for origin in read:
        if origin not in blocked:
            yield origin, "warn"


def _loads(page: ServedPage, kind: str, origin: str, severity: Severity) -> Hit:
    names = {"asset": "an asset", "img": "image"}
    return on_page(
        page,
        f" loads {names.get(kind, kind)} from `{origin}` not in csp.resourceDomains.",
        severity,
    )


def _relative(page: ServedPage, urls: list[str], severity: Severity) -> Hit:
    more = f" and {len(urls) - 1} more" if len(urls) > 1 else ""
    return on_page(
        page,
        f" references `{show(urls[0])}`{more} relatively; a View has no server to resolve it "
        "against.",
        severity,
    )


def _is_relative(url: str) -> bool:
    scheme, colon, _ = url.partition(":")
    has_scheme = bool(colon) and scheme.replace("+", "").replace("-", "").isalnum()
    return not has_scheme and not url.startswith(("//", "#"))
