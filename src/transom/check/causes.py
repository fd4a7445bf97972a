"""Why a View stays blank, blocked or cut off: the reasoning of `transom doctor`. Pure.

1. A cause is named only on evidence: what the server answered, what the browser or the page
   reported, what the page shows. What is not known is not guessed.
2. Causes are in order of likelihood. What keeps a View from opening is the only cause; what keeps
   it from connecting goes before what goes wrong later.
3. Texts of the server and its page are made safe to print. `causes.toml` has our own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from transom.check.facts import (
    CSP_DIRECTIVES,
    ListedTool,
    ServedResource,
    TrialCall,
    near_miss,
    texts,
)
from transom.check.host_profiles import HostProfile
from transom.check.observing import CORS_REFUSAL, LATE_HANDLER
from transom.host.views.view_requests import CAPABILITY_OF
from transom.json_values import JsonObject, as_object, clean
from transom.protocol.messages import PROTOCOL_VERSION, VIEW_MIME_TYPE
from transom.types import ViewProblem

_MAX_TEXT = 300
_MAX_ERRORS = 10  # of a page, each a cause of its own if they are of different kinds
_SLACK = 20  # pixels that content may reach beyond its frame: margins, rounding
_GROWTH = 6  # larger heights in a row that are no page that is being built

# --- what is known -------------------------------------------------------------------------------


class Measured(msgspec.Struct, frozen=True):
    """What a View's page showed at one moment: see `measure.js`."""

    address: str
    state: str
    shown: int
    """Elements that draw something, and can be seen."""
    hidden: int
    """Elements that would, but have no size or are invisible."""
    bottom: float
    """Where the lowest of those shown ends."""
    height: float
    """Of the View's frame."""
    clips: bool
    """Whether what is below that cannot be scrolled to."""
    text: str


class Exchange(msgspec.Struct, frozen=True):
    """A message of the View, and the answer if it was a request."""

    method: str
    params: JsonObject = {}
    error: tuple[int, str] | None = None


class SeenView(msgspec.Struct, frozen=True, kw_only=True):
    """What a View did in a browser."""

    initialized: bool
    sent: tuple[Exchange, ...] = ()
    strays: tuple[str, ...] = ()
    """What it sent that is no message of MCP Apps, or none for that moment."""
    problems: tuple[ViewProblem, ...] = ()
    blocked: tuple[tuple[str, str], ...] = ()
    """Directives of its policy, each with the address that it blocked. `missing`: a file beside
    the page; `declared`: an entry of its declared policy that is no origin."""
    lines: tuple[tuple[str, str], ...] = ()
    """What was written to the console: kind, text."""
    requests: tuple[str, ...] = ()
    before: Measured | None = None
    """Its page before it got the tool's result."""
    after: Measured | None = None
    """Its page at last; None if it could not be looked into."""
    late: Measured | None = None
    """Its page, opened again, when it got the result a second late. Only if it is `unmoved`."""
    hangs: bool = False

    def sends(self, method: str) -> list[Exchange]:
        """Its messages with this method."""
        return [each for each in self.sent if each.method == method]

    @property
    def heights(self) -> list[float]:
        """The heights that it reported, in order."""
        found = [each.params.get("height") for each in self.sends("ui/notifications/size-changed")]
        return [float(height) for height in found if isinstance(height, int | float)]

    @property
    def unmoved(self) -> bool:
        """Whether the tool's result changed nothing on a page that is blank, or says it waits."""
        before, after = self.before, self.after
        if before is None or after is None or before.text != after.text:
            return False
        return not after.shown or (len(after.text) < 200 and bool(_WAITING.search(after.text)))

    @property
    def errors(self) -> list[ViewProblem]:
        """Errors and rejections that nobody caught."""
        return [each for each in self.problems if each.kind in ("error", "rejection")]


class ViewFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a cause may be concluded from."""

    tool: ListedTool | None
    """None: no tool of the server opens a View."""
    tools: tuple[ListedTool, ...] = ()
    listed: tuple[str, ...] = ()
    """The URIs of the server's resources."""
    resource: ServedResource | None = None
    too_large: str | None = None
    call: TrialCall | None = None
    made_up: bool = False
    """Whether the arguments of the call were made from the tool's schema."""
    view: SeenView | None = None

    @property
    def page(self) -> str:
        """The View's HTML."""
        return "" if self.resource is None else self.resource.html or ""

    @property
    def failure(self) -> str | None:
        """Why the tool's call failed, if it did."""
        call = self.call
        if call is None or call.failure is not None:
            return None if call is None else call.failure
        if call.fault is not None:
            return f"{call.fault[1]} ({call.fault[0]})"
        if call.result is not None and call.result.get("isError") is True:
            return " ".join(texts(call.result)) or "it says nothing more"
        return None


class Cause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a View is not seen, or not whole."""

    id: str
    text: str
    """One sentence."""
    evidence: tuple[str, ...] = ()
    fix: str
    """What to change."""
    line: int | None = None
    """Where in the page, if known: counted from 1."""
    column: int | None = None
    source: str = ""
    """Where it is said that this host is so."""


class CauseText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said of a cause."""

    text: str
    fix: str


@cache
def cause_texts() -> dict[str, CauseText]:
    """What is said of each cause, by its id."""
    given = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return msgspec.convert(given, dict[str, CauseText])


class _Place(NamedTuple):
    line: int | None = None
    column: int | None = None


_NOWHERE = _Place()


def _cause(
    id: str,
    *evidence: str,
    at: _Place = _NOWHERE,
    source: str = "",
    id_of_text: str | None = None,
    **words: object,
) -> Cause:
    said = cause_texts()[id_of_text or id]
    filled = {name: clean(str(word), 150) for name, word in words.items()}
    return Cause(
        id=id,
        text=said.text.format_map(filled),
        evidence=tuple(clean(each, _MAX_TEXT) for each in evidence),
        fix=said.fix.format_map(filled),
        line=at.line,
        column=at.column,
        source=source,
    )


def causes(facts: ViewFacts, profile: HostProfile) -> list[Cause]:
    """The causes in order of likelihood; none if nothing wrong was found."""
    found = list(_unopened(facts))
    if not found and facts.view is not None:
        case = _Case(facts, facts.view, profile)
        rules = _CONNECTED if case.view.initialized else _UNCONNECTED
        found = [cause for rule in rules for cause in rule(case)]
        found = found or list(_unexplained(case))
    if facts.tool is not None and facts.tool.app_only:
        evidence = '_meta.ui.visibility is ["app"]'
        found.insert(0, _cause("app-only", evidence, tool=facts.tool.name))
    first: dict[str, Cause] = {}
    for cause in found:
        first.setdefault(cause.id, cause)
    return list(first.values())


# --- what keeps it from opening ------------------------------------------------------------------


def _unopened(facts: ViewFacts) -> Iterator[Cause]:
    tool, resource = facts.tool, facts.resource
    if tool is None or tool.link is None:
        yield _no_link(facts)
    elif not tool.link.startswith("ui://"):
        yield _cause("link-not-ui", uri=tool.link)
    elif facts.too_large is not None:
        yield _cause("page-too-large", facts.too_large)
    elif resource is None or resource.result is None or not resource.contents:
        yield _unread(tool.link, facts)
    elif (given := resource.item.get("mimeType")) != VIEW_MIME_TYPE:
        evidence = f"resources/read of {tool.link} answered mimeType {given}"
        yield _cause("mime-type", evidence, given=given)
    elif not facts.page.strip():
        unread = bool(resource.item.get("blob")) and resource.html is None
        what = "a blob that cannot be decoded" if unread else "no text"
        id = "blob-unreadable" if unread else "page-empty"
        yield _cause(id, f"resources/read of {tool.link} answered {what}")


def _no_link(facts: ViewFacts) -> Cause:
    tools = facts.tools if facts.tool is None else (facts.tool,)
    for tool in tools:
        if isinstance(link := tool.meta.get("openai/outputTemplate"), str):
            evidence = f'_meta["openai/outputTemplate"] is {link}'
            return _cause("openai-link", evidence, tool=tool.name, link=link)
    who = "No tool of the server" if facts.tool is None else f"Tool {facts.tool.name}"
    keys = {
        f"there is {'_meta.ui' if entries is tool.ui else '_meta'}.{key}, which hosts do not read"
        for tool in tools
        for entries in (tool.meta, tool.ui)
        for key, value in entries.items()
        if isinstance(value, str) and value.startswith("ui://")
    }
    names = f"its tools: {', '.join(each.name for each in facts.tools) or 'none'}"
    cause = _cause("no-link", *(sorted(keys) or [names]), who=who)
    text = cause.text.replace("No tool of the server links no View", "No tool links a View")
    return msgspec.structs.replace(cause, text=text)


def _unread(uri: str, facts: ViewFacts) -> Cause:
    why = None if facts.resource is None else facts.resource.failure
    evidence = f"resources/read of {uri}: {why or 'it answered no contents'}"
    meant = next((each for each in facts.listed if near_miss(uri, each)), None)
    if meant is not None:
        return _cause("uri-mismatch", evidence, uri=uri, meant=meant)
    if why and uri in facts.listed:
        return _cause("page-failed", evidence, uri=uri)
    pages = [each for each in facts.listed if each.startswith("ui://")]
    return _cause(
        "resource-missing",
        evidence,
        f"the server lists {', '.join(pages) or 'no ui:// resource'}",
        uri=uri,
    )


# --- a View that was shown -----------------------------------------------------------------------


class _Case:
    """What there is to reason about."""

    def __init__(self, facts: ViewFacts, view: SeenView, profile: HostProfile) -> None:
        self.facts = facts
        self.view = view
        self.profile = profile
        self.page = _without_library(facts.page)
        """What its author wrote, on the same lines."""
        resource = facts.resource
        self.scan = None if resource is None else resource.scan
        ui = {} if resource is None else resource.effective_ui
        self.permissions = as_object(ui.get("permissions"))
        self.result = None if facts.call is None else facts.call.result

    def at(self, *needles: str) -> _Place:
        """The line of the page that has the first of these texts that it has."""
        for needle in needles:
            if needle and (position := self.page.find(needle)) >= 0:
                return _Place(self.page.count("\n", 0, position) + 1)
        return _NOWHERE

    def line(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The first line of the console with this."""
        return next(filter(None, (pattern.search(text) for _, text in self.view.lines)), None)

    def source(self, field: str) -> str:
        """Where a field of the profile comes from."""
        found = self.profile.sources.get(field)
        return "" if found is None else found.url

    def blocked(self, directive: str) -> list[str]:
        """What this part of the View's policy blocked."""
        return [url for name, url in self.view.blocked if name == directive]


def _without_library(page: str) -> str:
    """The page without the transom.js that its server put into it, which is one line of it."""
    mark = page.find("globalThis.transom={")
    start, end = page.rfind("<script>", 0, max(mark, 0)), page.find("</script>", mark)
    if mark < 0 or start < 0 or end < 0 or "\n" in page[start:end]:
        return page
    return page[:start] + page[end + len("</script>") :]


_Rule = Callable[[_Case], Iterator[Cause]]


def _place_of(problem: ViewProblem) -> _Place:
    known = problem.is_in_page and problem.line
    return _Place(problem.line, problem.column) if known else _NOWHERE


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def _gone(case: _Case) -> Iterator[Cause]:
    after = case.view.after
    if case.view.hangs:
        yield _cause("page-hangs", "the page did not answer for several seconds")
    elif after is not None and after.address != "about:srcdoc":
        to = case.blocked("frame-src")
        at = case.at(*to, "location.href", "location.assign", "<form")
        shows = f"the frame of the View shows {after.address}"
        yield _cause("page-left", shows, at=at, address=(to or [after.address])[0])


# --- errors of the page

_LOAD = re.compile(r"Failed to fetch|NetworkError|Load failed|dynamically imported module")
_IMPORT = re.compile(r"""Failed to resolve module specifier\s*["']?([^"'\s]+)""")
_EXPORT = re.compile(r"""does not provide an export named '?([^'\s]+)""")
_STORAGE = re.compile(
    r"(localStorage|sessionStorage|indexedDB|cookie|caches)\b.{0,120}"
    r"(denied|sandbox|insecure|not allowed)|SecurityError.{0,80}(storage|indexedDB|cookie)",
    re.IGNORECASE,
)
_EVAL = re.compile(r"unsafe-eval|EvalError|Evaluating a string as JavaScript", re.IGNORECASE)
_OPENAI = re.compile(r"\bopenai\b|'toolOutput'|'widgetState'")
_UNDEFINED = re.compile(r"of (undefined|null)\b|(is|are) (undefined|null)\b|is not iterable")
_DENIED = re.compile(r"NotAllowedError|permissions? policy|Permission denied", re.IGNORECASE)
_MISSING = re.compile(r"is not (defined|a function|a constructor)|Can't find variable")
_URL = re.compile(r"https?://[^\s'\"<>),]+")
_NOT_LOADED = "A script did not load: "  # as the sandbox reports it, see js/src/failures.ts


def _errors(case: _Case) -> Iterator[Cause]:
    for problem in case.view.errors[:_MAX_ERRORS]:
        cause = _of_error(case, problem)
        if cause.id in ("page-error", "script-error", "unhandled-rejection"):
            yield from _reasons(case, problem.message)
        yield cause


def _reasons(case: _Case, said: str) -> Iterator[Cause]:
    """What was refused or blocked, and led to an error that says this."""
    for call, cause in _failed_calls(case):
        if call.error is not None and call.error[1] and call.error[1] in said:
            yield cause
    lacks = _MISSING.search(said) or _UNDEFINED.search(said)
    if lacks and any(
        urlsplit(each).path.endswith((".js", ".mjs")) for each in case.blocked("missing")
    ):
        yield from _files(case)
    if lacks:
        yield from _unloaded(case)
    urls = tuple(f" {url}" for url in _URL.findall(said))
    for cause in _csp(case):
        loads = cause.id == "csp-script" or (cause.id == "csp-connect" and _UNDEFINED.search(said))
        if (lacks and loads) or cause.evidence[0].endswith(urls):
            yield cause


def _unloaded(case: _Case) -> Iterator[Cause]:
    said = [each.message for each in case.view.errors if each.message.startswith(_NOT_LOADED)]
    if urls := [url for url in _URL.findall(" ".join(said)) if ".localhost:" not in url]:
        yield _cause("script-missing", *said[:3], at=case.at(*urls), file=urls[0])
    elif said:  # of the page's own origin, where there is no file
        yield from _files(case)


def _of_error(case: _Case, problem: ViewProblem) -> Cause:
    """The cause that an error of the page is about."""
    said, at = problem.message, _place_of(problem)
    if said.startswith(_NOT_LOADED) and (why := next(_unloaded(case), None)) is not None:
        return why
    if _LOAD.search(said) and (why := next(_blocked_loads(case), None)) is not None:
        return why if why.line is not None else msgspec.structs.replace(why, **at._asdict())
    if found := _IMPORT.search(said):
        at = case.at(f'"{found[1]}"', f"'{found[1]}'")
        id = "transom-import" if found[1] == "transom" else "bare-import"
        return _cause(id, said, at=at, name=found[1])
    if found := _EXPORT.search(said):
        return _cause("wrong-import", said, at=at, name=found[1])
    if found := _STORAGE.search(said):
        used = case.at(found[1] or "", "localStorage", "sessionStorage", "indexedDB")
        return _cause("storage-denied", said, at=used, source=case.source("storage"))
    if _EVAL.search(said):
        return _cause("eval-denied", said, at=at, source=case.source("eval"))
    if _OPENAI.search(said):
        return _cause("openai-api", said, at=at)
    if _DENIED.search(said) and (cause := _undeclared_permission(case, said)) is not None:
        return cause
    if "SyntaxError" in said:
        cut = _truncated(case)
        return _cause("syntax-error", said, at=at) if cut is None else cut
    if _UNDEFINED.search(said) and _lacks_structure(case):
        return _cause("no-structured-content", said, _parts(case), at=at)
    if problem.kind == "rejection":
        return _cause("unhandled-rejection", said, at=at)
    return _cause("page-error" if case.view.initialized else "script-error", said, at=at)


def _blocked_loads(case: _Case) -> Iterator[Cause]:
    """Why the page could not load something."""
    for rule in (_declared, _network, _csp):
        yield from rule(case)


def _truncated(case: _Case) -> Cause | None:
    """The page ends in the middle of something."""
    page = case.page.rstrip()
    low = page.lower()
    for name in ("script", "style"):
        begin = low.rfind(f"<{name}")
        if begin > low.rfind(f"</{name}"):
            length = len(case.facts.page)
            evidence = f"it has {length} characters, and no </{name}> after its last <{name}>"
            at = case.at(page[begin:])
            return _cause("page-truncated", evidence, at=at, what=f"<{name}>")
    begin = page.rfind("<")
    if begin > page.rfind(">") and re.match(r"</?[a-zA-Z]", page[begin:]):
        evidence = f"its last characters: {page[begin : begin + 40]}"
        return _cause("page-truncated", evidence, at=case.at(page[begin:]), what="a tag")
    return None


def _module_errors(case: _Case) -> Iterator[Cause]:
    """What browsers write to the console and report to no page."""
    for _, text in case.view.lines:
        if _IMPORT.search(text) or _EXPORT.search(text):
            yield _of_error(case, ViewProblem("error", text))
            return


# --- the handshake

_TARGET = re.compile(r"target origin provided \('([^']*)'\) does not match")
_TO_TOP = re.compile(
    r"\b(?:window\.|globalThis\.)?top\s*\??\.\s*postMessage|\bopener\s*\??\.\s*post"
)
_CONNECTS = re.compile(r"\.\s*connect\s*\(|useApp\b|ui/initialize")


def _wrong_target(case: _Case) -> Iterator[Cause]:
    if found := case.line(_TARGET):
        yield _cause("wrong-origin", found.string, at=case.at(found[1]), origin=found[1])
    elif not case.view.sent and (found := _TO_TOP.search(case.page)):
        yield _cause("wrong-window", found[0], at=case.at(found[0]))


_UNREACHABLE = re.compile(r"Failed to load resource: net::ERR_(?!BLOCKED|FAILED)\w+")


def _unreachable(case: _Case) -> Iterator[Cause]:
    """What the page loads first may be what it would connect with."""
    failed = [text for _, text in case.view.lines if _UNREACHABLE.search(text)]
    origins = dict.fromkeys(_origin(each) for each in case.view.requests if not _is_local(each))
    if failed and origins and not case.view.sent and not any(_unloaded(case)):
        names = ", ".join(origins)
        yield _cause("unreachable", *failed[:3], at=case.at(*origins), origins=names)


def _wrong_messages(case: _Case) -> Iterator[Cause]:
    view = case.view
    if view.sends("ui/initialize"):
        return
    if view.sends("initialize"):
        at = case.at('"initialize"', "'initialize'")
        yield _cause("mcp-initialize", "its first message: initialize", at=at)
    elif view.sent:
        method = view.sent[0].method
        yield _cause("too-early", *view.strays[:3], at=case.at(method), method=method)
    elif view.strays:
        yield _cause("not-json-rpc", *view.strays[:3], at=case.at("postMessage"))


def _unfinished(case: _Case) -> Iterator[Cause]:
    began = case.view.sends("ui/initialize")
    if not began:
        return
    params, error = began[-1].params, began[-1].error
    at = case.at("ui/initialize")
    if error is not None:
        given = [key for key in ("appInfo", "appCapabilities", "protocolVersion") if key in params]
        has = f"its params have {', '.join(given) or 'none of what is needed'}"
        yield _cause("initialize-refused", f"{error[1]} ({error[0]})", has, at=at)
    elif (version := params.get("protocolVersion")) != PROTOCOL_VERSION:
        at = case.at(str(version))
        evidence = "ui/initialize was answered, ui/notifications/initialized never came"
        yield _cause("protocol-version", evidence, at=at, version=version, ours=PROTOCOL_VERSION)
    else:
        yield _cause("initialized-missing", "ui/initialize was sent and answered", at=at)


def _not_begun(case: _Case) -> Iterator[Cause]:
    """Where nothing was sent, and nothing went wrong."""
    view, page = case.view, case.page
    if view.sent or view.strays or view.errors or view.hangs or case.scan is None:
        return
    if (cut := _truncated(case)) is not None:
        yield cut
    elif case.scan.scripts == 0:
        yield _cause("no-script", "no ui/initialize came, and the page has no <script>")
    elif "openai" in page and "ui/initialize" not in case.facts.page:
        at = case.at("window.openai", "openai")
        yield _cause("openai-api", "the page mentions openai, and no ui/initialize came", at=at)
    elif not _CONNECTS.search(page):
        evidence = "no ui/initialize came, and the page has no call of connect()"
        yield _cause("never-connects", evidence, at=case.at("new App(", "new transom.App("))


# --- what its policy blocks

_SOURCES = (".ts", ".tsx", ".jsx", ".vue", ".svelte")


def _declared(case: _Case) -> Iterator[Cause]:
    if entries := case.blocked("declared"):
        yield _cause("csp-entry", *entries[:5], entry=entries[0])


def _files(case: _Case) -> Iterator[Cause]:
    if missing := case.blocked("missing"):
        built = not any(urlsplit(each).path.endswith(_SOURCES) for each in missing)
        id = "file-missing" if built else "page-not-built"
        if missing[0].removeprefix("./") == "transom.js":
            id = "transom-import"
        evidence = [f"there is no {each}" for each in missing[:5]]
        yield _cause(id, *evidence, at=case.at(missing[0]), file=missing[0], name=missing[0])


def _scripts(case: _Case) -> Iterator[Cause]:
    """Blocked scripts, which may be all that the page would connect with."""
    yield from (cause for cause in _csp(case) if cause.id in ("csp-script", "eval-denied"))


def _csp(case: _Case) -> Iterator[Cause]:
    for name, url in case.view.blocked:
        directive, origin = re.sub(r"-(elem|attr)$", "", name), _origin(url)
        if directive not in CSP_DIRECTIVES or origin in (case.profile.csp_allowed or ()):
            continue
        if not origin:
            if url == "eval":
                yield _of_error(case, ViewProblem("error", f"{name} blocked unsafe-eval"))
            continue
        reported = (
            _place_of(each)
            for each in case.view.problems
            if each.kind == "blocked" and url in each.message and (_place_of(each).line or 0) > 1
        )
        ours, field = CSP_DIRECTIVES[directive]
        yield _cause(
            f"csp-{directive.removesuffix('-src')}",
            f"{name} blocked {url}",
            at=next(reported, case.at(url, origin)),
            id_of_text="csp",
            origin=origin,
            directive=directive,
            ours=ours,
            field=field,
        )


def _network(case: _Case) -> Iterator[Cause]:
    for url in (*case.view.requests, *(url for _, url in case.view.blocked)):
        if _is_insecure(url):
            at = case.at(url, _origin(url))
            yield _cause("insecure-address", f"it requested {url}", at=at, origin=_origin(url))
            break
    if found := case.line(CORS_REFUSAL):
        origin = _origin(found[1])
        yield _cause("cors", found.string, at=case.at(found[1], origin), origin=origin)


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in ("", "localhost") or host.endswith(".localhost") or host.startswith("127.")


def _is_insecure(url: str) -> bool:
    return urlsplit(url).scheme in ("http", "ws") and not _is_local(url)


# --- permissions

_APIS = {
    "camera": r"camera|video|getUserMedia",
    "microphone": r"microphone|audio|getUserMedia",
    "geolocation": r"geolocation",
    "clipboardWrite": r"clipboard",
}


def _undeclared_permission(case: _Case, message: str) -> Cause | None:
    named = [name for name, words in _APIS.items() if re.search(words, message, re.IGNORECASE)]
    used = sorted(case.scan.apis) if case.scan is not None else []
    wanted = [name for name in named or used if name not in case.permissions]
    if not wanted:
        return None  # what is declared was refused because here is nobody who could allow it
    at = case.at("getUserMedia", "geolocation.", "clipboard.")
    return _cause("permission", message, at=at, name=wanted[0])


def _permissions(case: _Case) -> Iterator[Cause]:
    for kind, text in case.view.lines:
        cause = _undeclared_permission(case, text) if kind == "error" else None
        if cause is not None and _DENIED.search(text):
            yield cause
            break
    granted = case.profile.permissions
    refused = [name for name in case.permissions if granted is not None and name not in granted]
    if refused:
        title, source = case.profile.title, case.source("permissions")
        evidence = f"{title} grants {', '.join(granted or ()) or 'no permission'}"
        names = ", ".join(refused)
        yield _cause("permission-not-granted", evidence, source=source, host=title, names=names)


# --- its data

_WAITING = re.compile(
    r"\b(loading|waiting|connecting|please wait|no data)\b|(…|\.\.\.)$", re.IGNORECASE
)
_RESULT_HANDLERS = ("ontoolresult", "toolresult", "tool-result")
_TAKES_DATA = re.compile(
    r"tool-?result|tool-?input|useApp|tools/call|callServerTool", re.IGNORECASE
)


def _tool_failed(case: _Case) -> Iterator[Cause]:
    why, call = case.facts.failure, case.facts.call
    if call is not None and why is not None and not case.facts.made_up:
        yield _cause("tool-failed", why, tool=call.tool)


def _late_handler(case: _Case) -> Iterator[Cause]:
    if found := case.line(LATE_HANDLER):
        yield _cause("late-handler", found.string, at=case.at(*_RESULT_HANDLERS, "ontoolinput"))


def _calls(case: _Case) -> Iterator[Cause]:
    yield from (cause for _, cause in _failed_calls(case))


def _failed_calls(case: _Case) -> Iterator[tuple[Exchange, Cause]]:
    known = {tool.name: tool for tool in case.facts.tools}
    for call in case.view.sends("tools/call"):
        if call.error is None or "serverTools" not in (case.profile.capabilities or "serverTools"):
            continue
        name = str(call.params.get("name"))
        said = f"{call.error[1]} ({call.error[0]})"
        at = case.at(f'"{name}"', f"'{name}'")
        if name not in known:
            has = f"the server has {', '.join(known)}"
            yield call, _cause("call-unknown", said, has, at=at, tool=name)
        elif "app" not in known[name].visibility:
            visible = f"_meta.ui.visibility is {list(known[name].visibility)}"
            yield call, _cause("call-denied", said, visible, at=at, tool=name)
        else:
            yield call, _cause("call-failed", said, at=at, tool=name)


def _lacks_structure(case: _Case) -> bool:
    """Whether the page wants structured content that the tool's result does not have."""
    wants = case.view.initialized and "structuredContent" in case.page
    return wants and case.result is not None and "structuredContent" not in case.result


def _parts(case: _Case) -> str:
    return f"the result has {', '.join(case.result or ()) or 'nothing'}"


def _unused_data(case: _Case) -> Iterator[Cause]:
    after, late, page = case.view.after, case.view.late, case.page
    unused = case.view.unmoved and case.facts.call is not None and case.facts.failure is None
    if after is None or not unused:
        return
    seen = f"the page still shows: {after.text}" if after.shown else "the page shows nothing"
    if late is not None and late.text != after.text:
        shown = f"a second later, the same result changes it: {late.text}"
        yield _cause("late-handler", seen, shown, at=case.at(*_RESULT_HANDLERS))
    elif not _TAKES_DATA.search(page):
        yield _cause("no-result-handler", f"it got the result, and {seen}", at=case.at("connect("))
    elif _lacks_structure(case):
        at = case.at("structuredContent")
        yield _cause("no-structured-content", _parts(case), seen, at=at)
    elif after.shown:
        yield _cause("data-not-shown", seen, at=case.at(*_RESULT_HANDLERS))


# --- its size


def _size(case: _Case) -> Iterator[Cause]:
    heights, after = case.view.heights, case.view.after
    if _grow(heights):
        said = f"it reported {', '.join(f'{each:g}' for each in heights[:_GROWTH])} … px"
        at = case.at("100vh", "100dvh", "height: 100%", "height:100%")
        yield _cause("grows", said, at=at)
    elif heights and heights[-1] < 1:
        at = case.at("position: absolute", "position:absolute", "position: fixed")
        yield _cause("zero-height", f"size-changed said {heights[-1]:g} px", at=at)
    elif after is not None and after.shown:
        yield from _overflow(case, after)


def _overflow(case: _Case, after: Measured) -> Iterator[Cause]:
    sizes: dict[str, Any] = {"content": f"{after.bottom:g}", "frame": f"{after.height:g}"}
    measured = f"measured: {after.bottom:g} px of content in a frame of {after.height:g}"
    limits = case.profile.container
    room = None if limits is None else limits.height or limits.max_height
    if after.bottom > after.height + _SLACK and after.clips:
        at = case.at("overflow: hidden", "overflow:hidden")
        yield _cause("cut-off", measured, at=at, **sizes)
    elif after.bottom > after.height + _SLACK and not case.view.heights:
        said = "no ui/notifications/size-changed came"
        yield _cause("never-sized", said, measured, at=case.at("autoResize"), **sizes)
    elif room and after.bottom > room + _SLACK and after.clips:
        title, source = case.profile.title, case.source("container")
        room_text = f"{room:g}"
        yield _cause(
            "taller-than-host", measured, source=source, host=title, room=room_text, **sizes
        )


def _grow(heights: list[float]) -> bool:
    """Whether they grow, and have never been larger."""
    tail = heights[-_GROWTH:]
    steady = len(tail) == _GROWTH and all(a < b for a, b in pairwise(tail))
    return steady and tail[-1] == max(heights)


# --- its host


def _host(case: _Case) -> Iterator[Cause]:
    profile, view, host = case.profile, case.view, case.profile.title
    offered = profile.capabilities
    for method, name in CAPABILITY_OF.items():
        if offered is not None and name not in offered and view.sends(method):
            yield _cause(
                "capability",
                f"hostCapabilities has no {name}",
                at=case.at(method),
                source=case.source("capabilities"),
                method=method,
                host=host,
                capability=name,
            )
    for mode in [each.params.get("mode") for each in view.sends("ui/request-display-mode")]:
        if profile.display_modes is not None and mode not in profile.display_modes:
            modes = f"availableDisplayModes: {', '.join(profile.display_modes)}"
            source = case.source("display_modes")
            yield _cause("display-mode", modes, source=source, mode=mode, host=host)
    for field in profile.csp_ignored or ():
        if case.facts.resource is not None and (origins := case.facts.resource.origins(field)):
            source = case.source("csp_ignored")
            said = f"{field}: {', '.join(origins)}"
            yield _cause("csp-ignored", said, source=source, host=host, field=field)


# --- the order


def _unexplained(case: _Case) -> Iterator[Cause]:
    """What is wrong without any evidence why."""
    after = case.view.after
    if not case.view.initialized:
        yield _cause("handshake-not-begun", "no ui/initialize came", at=case.at("connect("))
    elif after is not None and after.shown == 0 and after.hidden:
        said = f"measured: {after.hidden} elements without a size, or invisible"
        yield _cause("content-hidden", said, count=after.hidden)
    elif after is not None and after.shown == 0:
        yield _cause("shows-nothing", "its page has no visible element")


_UNCONNECTED: tuple[_Rule, ...] = (
    _gone,
    _files,
    _errors,
    _module_errors,
    _scripts,
    _unreachable,
    _wrong_target,
    _wrong_messages,
    _unfinished,
    _not_begun,
    _blocked_loads,
)
_CONNECTED: tuple[_Rule, ...] = (
    _gone,
    _tool_failed,
    _errors,
    _calls,
    _late_handler,
    _files,
    _blocked_loads,
    _permissions,
    _unused_data,
    _size,
    _host,
)
