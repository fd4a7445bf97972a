"""Whether a Content-Security-Policy lets in more than a resource declared."""

from __future__ import annotations

from collections.abc import Iterator

from transom.check.jsonvalue import JsonObject, as_list
from transom.check.origins import parse_origin

__all__ = ["loose_directives"]

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
