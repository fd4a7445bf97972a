"""C: the UI resource."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from transom.check.rule import (
    CONTENT_REQUIREMENTS,
    METADATA_LOCATION,
    PERMITS,
    RESOURCE_DISCOVERY,
    RESOURCE_FORMAT,
    Hits,
    documented,
    rule,
    show,
)
from transom.check.snapshot import CSP_FIELDS, PAGE_FIELDS, ServedPage, Snapshot, body, near_miss
from transom.json_values import as_object, type_name
from transom.protocol.messages import VIEW_MIME_TYPE

_SANDBOX_DOMAINS = {
    "claudemcpcontent.com": re.compile(r"[0-9a-f]{16,64}"),
    "oaiusercontent.com": re.compile(r"[a-z0-9-]+"),
}


def _read(seen: Snapshot) -> Iterator[ServedPage]:
    """The pages that could be read and hold at least one item."""
    return (page for page in seen.pages if page.item is not None)


@rule("C1", "error", "The page is served as an MCP App", CONTENT_REQUIREMENTS, "read")
def mime_type_is_exact(seen: Snapshot) -> Hits:
    """`contents[].mimeType` must be exactly `text/html;profile=mcp-app`.

    Plain `text/html`, a space after the semicolon or a host's own type is not rendered.
    """
    for page in _read(seen):
        mime = (page.item or {}).get("mimeType")
        if mime != VIEW_MIME_TYPE:
            served = "without a mimeType" if mime is None else f"as `{show(mime)}`"
            yield page, f" is served {served}; hosts need `{VIEW_MIME_TYPE}`."


@rule("C2", "warn", "Listing and content agree on the type", CONTENT_REQUIREMENTS, "read")
def listed_type_agrees(seen: Snapshot) -> Hits:
    """When the resource is listed with a `mimeType`, it must be the one that reading gives."""
    for page in _read(seen):
        listed, served = (page.listed or {}).get("mimeType"), (page.item or {}).get("mimeType")
        if listed is not None and listed != served:
            yield page, f": listing says `{show(listed)}`, content says `{show(served)}`."


@rule("C3", "error", "The content carries the URI that was read", CONTENT_REQUIREMENTS, "read")
def content_uri_is_the_same(seen: Snapshot) -> Hits:
    """`contents[].uri` must be there, start with `ui://` and be the URI that was read.

    (A difference of case, slash or `.html` is reported by B4.)
    """
    for page in _read(seen):
        uri = (page.item or {}).get("uri")
        if uri != page.uri and not near_miss(page.uri, uri):
            answer = "without a uri" if uri is None else f"with uri `{show(uri)}`"
            yield f"resource {page.uri}", f"resources/read of `{page.uri}` answered {answer}."


@rule("C4", "error", "The content is text or base64", CONTENT_REQUIREMENTS, "read")
def content_has_a_body(seen: Snapshot) -> Hits:
    """The HTML comes in `text`, or base64-encoded UTF-8 in `blob`: one of them, not empty."""
    for page in _read(seen):
        item = page.item or {}
        if item.get("text") and item.get("blob"):
            yield page, ": both text and blob are given; hosts read one of them."
        elif body(item) is None:
            yield page, ": no HTML body (text or base64 blob)."


@rule("C5", "error", "The content is an HTML document", CONTENT_REQUIREMENTS, "html")
def content_is_a_document(seen: Snapshot) -> Hits:
    """The page must be a complete HTML5 document.

    Start with `<!doctype html><html>`. The body needs content, or a script that creates it.
    """
    for page in seen.pages:
        if page.scan is None:
            continue
        found, why, severity = page.scan, None, "warn"
        if not found.doctype and not found.html_tag:
            why, severity = "there is neither a doctype nor an <html> tag", "error"
        elif not found.doctype:
            why = "there is no <!doctype html>"
        elif not found.body and not found.scripts:
            why = "its body is empty and there is no script"
        if why is not None:
            yield page, f": body is not a complete HTML document ({why}).", severity


@rule("C6", "error", "Reading gives one content item", RESOURCE_FORMAT, "read")
def one_content_item(seen: Snapshot) -> Hits:
    """`resources/read` must answer with a content item; hosts use one and ignore the rest."""
    for page in seen.pages:
        count = len(page.contents)
        if page.result is not None and count != 1:
            severity = "info" if count else "error"
            yield page, f": resources/read returned {count} content items; hosts use one.", severity


@documented("C7", "info", "A UI resource need not be listed", RESOURCE_DISCOVERY, PERMITS)
def listing_is_optional() -> None:
    """Servers may leave UI resources out of `resources/list`: hosts find Views through tools.

    So a resource that is not listed is never reported.
    """


@rule("C8", "warn", "Security metadata is on the content item", METADATA_LOCATION, "read")
def metadata_is_on_content(seen: Snapshot) -> Hits:
    """`csp`, `permissions` and `domain` belong on `contents[]._meta.ui` of resources/read.

    The published specification knows only that place; the listing is a later addition that not
    every host looks at.
    """
    for page in _read(seen):
        listed = [f for f in ("csp", "permissions", "domain") if f in page.listed_ui]
        if missing := ", ".join(field for field in listed if field not in page.ui):
            where = f"only in the listing ({missing}); put it on the contents[] item"
            yield page, f": security metadata {where}."


@rule("C9", "warn", "Listing and content agree on metadata", METADATA_LOCATION, "read")
def metadata_agrees(seen: Snapshot) -> Hits:
    """A field given in both places must have the same value; the content item's wins."""
    for page in _read(seen):
        for field in (field for field in PAGE_FIELDS if field in page.listed_ui.keys() & page.ui):
            if page.listed_ui[field] != page.ui[field]:
                where = "between resources/list and resources/read; the latter wins"
                yield page, f": `{field}` differs {where}."


@rule("C10", "warn", "Only known metadata", RESOURCE_FORMAT, "read")
def metadata_is_known(seen: Snapshot) -> Hits:
    """`_meta.ui` of a resource knows csp, permissions, domain and prefersBorder.

    `csp` knows connectDomains, resourceDomains, frameDomains and baseUriDomains. Anything else is
    ignored, so a misspelt name silently loses what it was meant to allow.
    """
    for page in _read(seen):
        csp = as_object(page.ui.get("csp"))
        strange = [(key, PAGE_FIELDS, "") for key in page.ui if key not in PAGE_FIELDS]
        strange += [(key, CSP_FIELDS, "csp.") for key in csp if key not in CSP_FIELDS]
        for key, known, prefix in strange:
            near = difflib.get_close_matches(key.replace("_", "").lower(), map(str.lower, known), 1)
            name = next((k for k in known if near and k.lower() == near[0]), None)
            hint = f"; did you mean `{prefix}{name}`?" if name else "."
            yield page, f": unknown `_meta.ui.{prefix}{show(key)}`{hint}"


@rule("C11", "error", "prefersBorder is set, and is a boolean", RESOURCE_FORMAT, "read")
def border_is_stated(seen: Snapshot) -> Hits:
    """State `prefersBorder`: hosts differ in what they do without it.

    `true` asks for a visible border and background, `false` for none. Leaving it out is only
    worth a note; a value that is not a boolean is an error.
    """
    for page in _read(seen):
        border = page.effective_ui.get("prefersBorder")
        if border is None:
            yield page, ": prefersBorder not set; hosts differ.", "info"
        elif not isinstance(border, bool):
            yield page, f": prefersBorder must be true or false, got {type_name(border)}."


@rule("C12", "error", "domain is a string", RESOURCE_FORMAT, "read")
def domain_is_text(seen: Snapshot) -> Hits:
    """`domain` is one plain string on the wire.

    A map of one domain per host is a feature of some frameworks, which must pick the right one
    before they send it.
    """
    for page in _read(seen):
        domain = page.effective_ui.get("domain")
        if domain is not None and not isinstance(domain, str):
            yield page, f": domain must be a string on the wire, got {type_name(domain)}."


@rule("C13", "warn", "domain is a sandbox domain of the host", RESOURCE_FORMAT, "read")
def domain_belongs_to_host(seen: Snapshot) -> Hits:
    """`domain` names a sandbox origin that the host owns, never the server's own site.

    It has no scheme and no path. Each host documents its form: the checker knows those of
    `claudemcpcontent.com` and `oaiusercontent.com`. Any other domain passes unless it is the
    server's own, which is known for a server behind a URL.
    """
    for page in _read(seen):
        domain = page.effective_ui.get("domain")
        if isinstance(domain, str) and not _sandbox_domain(domain, seen.server_host):
            yield page, f": domain `{show(domain)}` is not a sandbox domain of a host."


@rule("C14", "info", "domain is needed", RESOURCE_FORMAT, "read")
def domain_is_needed(seen: Snapshot) -> Hits:
    """`domain` gives the View a stable origin, for APIs or OAuth that allowlist origins.

    APIs that answer any origin, or that use a key, do not need it.
    """
    for page in _read(seen):
        if isinstance(page.effective_ui.get("domain"), str):
            yield page, ": domain set; drop it unless an API allowlists the origin."


@rule("C15", "info", "The page is a template", RESOURCE_DISCOVERY, "read", heuristic=True)
def page_is_a_template(seen: Snapshot) -> Hits:
    """Hosts may cache the page, so data that changes must come in the tool result.

    The page is read twice, the second time after the tools were called when that is allowed.
    """
    for page in _read(seen):
        contents = (page.result or {}).get("contents")
        if page.again is not None and page.again.get("contents") != contents:
            yield page, " changes between reads; keep data out of the template."


def _sandbox_domain(domain: str, server_host: str | None) -> bool:
    if not domain or "/" in domain or ":" in domain or any(c.isspace() for c in domain):
        return False
    if server_host and (domain == server_host or domain.endswith(f".{server_host}")):
        return False
    for suffix, label in _SANDBOX_DOMAINS.items():
        if domain == suffix or domain.endswith(f".{suffix}"):
            return label.fullmatch(domain.removesuffix(suffix).rstrip(".")) is not None
    return True
