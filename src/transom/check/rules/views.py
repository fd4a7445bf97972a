"""C: the UI resource of a View. V: what the rendered View does."""

from __future__ import annotations

import difflib
import re

from transom.check.facts import (
    CSP_FIELDS,
    RESOURCE_FIELDS,
    Facts,
    ServedResource,
    ViewObservation,
    near_miss,
)
from transom.check.rule import Hits, Messages, rule, show
from transom.errors import INTERNAL_ERROR, METHOD_NOT_FOUND
from transom.json_values import as_object, type_name
from transom.protocol.messages import VIEW_MIME_TYPE

_SANDBOX_DOMAINS = {
    "claudemcpcontent.com": re.compile(r"[0-9a-f]{16,64}"),
    "oaiusercontent.com": re.compile(r"[a-z0-9-]+"),
}


@rule("C1")
def mime_type_is_exact(resource: ServedResource) -> Messages:
    mime = resource.item.get("mimeType")
    if mime != VIEW_MIME_TYPE:
        served = "without a mimeType" if mime is None else f"as `{show(mime)}`"
        yield f" is served {served}; hosts need `{VIEW_MIME_TYPE}`."


@rule("C2")
def listed_type_agrees(resource: ServedResource) -> Messages:
    listed, served = resource.listed.get("mimeType"), resource.item.get("mimeType")
    if listed is not None and listed != served:
        yield f": listing says `{show(listed)}`, content says `{show(served)}`."


@rule("C3")
def content_uri_is_the_same(seen: Facts) -> Hits:
    for resource in seen.resources:
        uri = resource.item.get("uri")
        if resource.contents and uri != resource.uri and not near_miss(resource.uri, uri):
            answer = "without a uri" if uri is None else f"with uri `{show(uri)}`"
            yield (
                f"resource {resource.uri}",
                f"resources/read of `{resource.uri}` answered {answer}.",
            )


@rule("C4")
def content_has_a_body(resource: ServedResource) -> Messages:
    if resource.item.get("text") and resource.item.get("blob"):
        yield ": both text and blob are given; hosts read one of them."
    elif resource.html is None:
        yield ": no HTML body (text or base64 blob)."


@rule("C5")
def content_is_a_document(resource: ServedResource) -> Messages:
    found, why = resource.scan, None
    if not found.doctype:
        why = "there is no <!doctype html>"
        if not found.html_tag:
            why = "there is neither a doctype nor an <html> tag"
    elif not found.body and not found.scripts:
        why = "its body is empty and there is no script"
    if resource.html is not None and why is not None:
        severity = None if not found.doctype and not found.html_tag else "warn"
        yield f": body is not a complete HTML document ({why}).", severity


@rule("C6")
def one_content_item(seen: Facts) -> Hits:
    for resource in seen.resources:
        count = len(resource.contents)
        if resource.result is not None and count != 1:
            severity = "info" if count else "error"
            yield (
                resource,
                f": resources/read returned {count} content items; hosts use one.",
                severity,
            )


@rule("C8")
def metadata_is_on_content(resource: ServedResource) -> Messages:
    listed = [f for f in ("csp", "permissions", "domain") if f in resource.listed_ui]
    if missing := ", ".join(field for field in listed if field not in resource.ui):
        fix = "put it on the contents[] item"
        yield f": security metadata only in the listing ({missing}); {fix}."


@rule("C9")
def metadata_agrees(resource: ServedResource) -> Messages:
    for field in (
        field for field in RESOURCE_FIELDS if field in resource.listed_ui.keys() & resource.ui
    ):
        if resource.listed_ui[field] != resource.ui[field]:
            yield f": `{field}` differs between resources/list and resources/read; the latter wins."


@rule("C10")
def metadata_is_known(resource: ServedResource) -> Messages:
    csp = as_object(resource.ui.get("csp"))
    strange = [(key, RESOURCE_FIELDS, "") for key in resource.ui if key not in RESOURCE_FIELDS]
    strange += [(key, CSP_FIELDS, "csp.") for key in csp if key not in CSP_FIELDS]
    for key, known, prefix in strange:
        near = difflib.get_close_matches(key.replace("_", "").lower(), map(str.lower, known), 1)
        name = next((k for k in known if near and k.lower() == near[0]), None)
        hint = f"; did you mean `{prefix}{name}`?" if name else "."
        yield f": unknown `_meta.ui.{prefix}{show(key)}`{hint}"


@rule("C11")
def border_is_stated(resource: ServedResource) -> Messages:
    border = resource.effective_ui.get("prefersBorder")
    if border is None:
        yield ": prefersBorder not set; hosts differ.", "info"
    elif not isinstance(border, bool):
        yield f": prefersBorder must be true or false, got {type_name(border)}."


@rule("C12")
def domain_is_text(resource: ServedResource) -> Messages:
    domain = resource.effective_ui.get("domain")
    if domain is not None and not isinstance(domain, str):
        yield f": domain must be a string on the wire, got {type_name(domain)}."


@rule("C13")
def domain_belongs_to_host(seen: Facts) -> Hits:
    for resource in (resource for resource in seen.resources if resource.contents):
        domain = resource.effective_ui.get("domain")
        if isinstance(domain, str) and not _sandbox_domain(domain, seen.server_host):
            yield resource, f": domain `{show(domain)}` is not a sandbox domain of a host."


@rule("C14")
def domain_is_needed(resource: ServedResource) -> Messages:
    if isinstance(resource.effective_ui.get("domain"), str):
        yield ": domain set; drop it unless an API allowlists the origin."


@rule("C15")
def resource_is_a_template(resource: ServedResource) -> Messages:
    contents = (resource.result or {}).get("contents")
    if resource.again is not None and resource.again.get("contents") != contents:
        yield " changes between reads; keep data out of the template."


def _sandbox_domain(domain: str, server_host: str | None) -> bool:
    if not domain or "/" in domain or ":" in domain or any(c.isspace() for c in domain):
        return False
    if server_host and (domain == server_host or domain.endswith(f".{server_host}")):
        return False
    for suffix, label in _SANDBOX_DOMAINS.items():
        if domain == suffix or domain.endswith(f".{suffix}"):
            return label.fullmatch(domain.removesuffix(suffix).rstrip(".")) is not None
    return True


# --- V: what the rendered View does ----------------------------------------------------------

MAX_TOOLS = 50


@rule("V1")
def handshake_completes(view: ViewObservation) -> Messages:
    if not view.initialized:
        yield (
            f"`{view.uri}` never completed ui/initialize within {view.waited:g}s; its page must "
            "call `await app.connect()`, and a script error before that prevents it."
        )


@rule("V2")
def handlers_are_early(view: ViewObservation) -> Messages:
    if view.late_handler:
        late = "when the tool-result may have been sent already"
        yield f"`{view.uri}` sets a handler after connect(), {late}."


@rule("V3")
def calls_are_allowed(seen: Facts) -> Hits:
    visible = {tool.name: tool.visibility for tool in seen.tools}
    for view in seen.views or ():
        for name in view.calls:
            if name not in visible:
                yield view, f"View called `{name}` which the server does not have."
            elif "app" not in visible[name]:
                yield view, f"View called `{name}` which is not visible to apps."


@rule("V4")
def every_theme_works(view: ViewObservation) -> Messages:
    for error in view.uncaught:
        yield f"`{view.uri}` throws in {view.theme}: {error}."


@rule("V5")
def declared_tools_work(view: ViewObservation) -> Messages:
    if view.declared_tools and view.tools is None:
        fault = "no answer" if view.list_fault is None else view.list_fault
        yield f"View declared tools but tools/list failed: {fault}."
    if any(code == METHOD_NOT_FOUND for _, code in view.tool_faults):
        yield f"View declared tools but tools/call failed: {METHOD_NOT_FOUND}."
    for name, why in view.bad_schemas:
        yield f"App tool `{show(name)}` cannot be called: {why}."


@rule("V6")
def tool_failures_are_results(view: ViewObservation) -> Messages:
    fix = "return isError so the model can recover"
    for name, code in view.tool_faults:
        if code == INTERNAL_ERROR:
            yield f"App tool `{name}` answered {code}; {fix}."


@rule("V7")
def tools_are_few(seen: Facts) -> Hits:
    taken = {tool.name for tool in seen.tools}
    for view in seen.views or ():
        tools = view.tools or ()
        if len(tools) > MAX_TOOLS:
            yield view, f"View registered {len(tools)} tools (recommended max {MAX_TOOLS})."
        for name in (name for name in tools if name in taken):
            yield view, f"App tool `{name}` shadows a server tool."
