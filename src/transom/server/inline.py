"""`transom.js`, put into a page where the page asks for it.

1. A page asks with `<script src="transom.js"></script>`, or with `import { App } from "transom"`
   in an inline module. Either way it gets one inline classic script that sets `window.transom`;
   an import becomes a destructuring of it. Nothing else runs under
   `script-src 'unsafe-inline'`: no data: or blob: module, no import map.
2. `transom.js` is a module without imports. Its `export` statements start a line, and those that
   declare do so one name at a time. The inlined copy makes members of `window.transom` of them.
3. `webmcp.js` goes in with it where the page mentions WebMCP. It imports from `transom.js` alone,
   in one line, and exports nothing.
"""

from __future__ import annotations

import functools
import html.parser
import importlib.resources
import re
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

from transom.errors import RegistrationError

__all__ = ["inline_transom"]

_LITERAL: Final = ("textarea", "title")  # elements in which tags are text
_SCRIPT_NAMES: Final = ("transom.js", "./transom.js")
_IMPORT: Final = re.compile(
    r"""(?P<start>^|[;\n])(?P<space>[ \t]*)import\s*
        (?:(?P<what>\{[^}]*\}|\*\s*as\s+[\w$]+|[\w$]+)\s*from\s*)?
        (?P<quote>["'])(?:transom|(?:\./)?transom\.js)(?P=quote)[ \t]*;?""",
    re.VERBOSE,
)
_EXPORT_DECLARATION: Final = re.compile(
    r"^export\s+(?=(?:async\s+)?(?:class|function\*?|const|let)\s+(?P<name>[\w$]+))", re.MULTILINE
)
_EXPORT_LIST: Final = re.compile(r"^export\s*\{(?P<names>[^}]*)\}\s*;?", re.MULTILINE)
_OWN_IMPORT: Final = re.compile(r"^import \{[^}]*\} from \"\./transom\.js\";$", re.MULTILINE)
_WEBMCP: Final = re.compile(r"\bmodelContext|\btoolname\b")
_STRAY: Final = re.compile(r"^\s*(?:export\b|import\b(?!\s*\())", re.MULTILINE)


class _Script(NamedTuple):
    """One `<script>` of a page: where its tag starts, where its body starts and ends."""

    start: int
    body: int
    end: int
    close: int
    source: str | None
    kind: str


class _Scripts(html.parser.HTMLParser):
    """Finds the scripts of a page, and only real ones: not those in comments or in text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[_Script] = []
        self._open: tuple[int, int, str | None, str] | None = None
        self._text = text
        self._literal: str | None = None
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.feed(text)
        self.close()

    def _offset(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._literal is None and tag in _LITERAL:
            self._literal = tag
        elif self._literal is None and tag == "script":
            start = self._offset()
            given = dict(attrs)
            kind = (given.get("type") or "").strip().lower()
            body = start + len(self.get_starttag_text() or "")
            self._open = (start, body, given.get("src"), kind)

    def handle_endtag(self, tag: str) -> None:
        if tag == self._literal:
            self._literal = None
        elif tag == "script" and self._open is not None:
            start, body, source, kind = self._open
            end = self._offset()
            close = self._text.find(">", end) + 1
            self.found.append(_Script(start, body, end, close, source, kind))
            self._open = None


def inline_transom(text: str, uri: str = "the page") -> str:
    """Return the page with `transom.js` in it, once, where it first asks for it.

    Raises:
        RegistrationError: it asks in a way that cannot be served, or there is no `transom.js`.
    """
    if "transom" not in text:
        return text
    edits: list[tuple[int, int, str]] = []
    webmcp = _WEBMCP.search(text) is not None
    for script in _Scripts(text).found:
        if script.source is not None:
            if script.source.strip() in _SCRIPT_NAMES:
                edits.append((script.start, script.close, "" if edits else _library(webmcp)))
        elif script.kind == "module":
            body = text[script.body : script.end]
            rewritten = _IMPORT.sub(functools.partial(_destructured, uri), body)
            if rewritten != body:
                if not edits:
                    edits.append((script.start, script.start, _library(webmcp)))
                edits.append((script.body, script.end, rewritten))
    for start, end, replacement in reversed(edits):
        text = text[:start] + replacement + text[end:]
    return text


def _destructured(uri: str, match: re.Match[str]) -> str:
    before, what = match["start"] + match["space"], match["what"]
    if what is None:
        return before
    if what.startswith("{"):
        names = re.sub(r"([\w$]+)\s+as\s+([\w$]+)", r"\1: \2", what)
        return f"{before}const {names} = globalThis.transom;"
    if what.startswith("*"):
        return f"{before}const {what.split()[-1]} = globalThis.transom;"
    raise RegistrationError(
        f"{uri}: transom.js has no default export. Write import {{ App }} from 'transom'."
    )


@functools.cache
def _library(webmcp: bool) -> str:
    try:
        module = _file().read_text(encoding="utf-8")
        more = _file("webmcp.js").read_text(encoding="utf-8") if webmcp else ""
    except OSError:
        raise RegistrationError(
            "the page asks for transom.js, and this installation of Transom does not have it. "
            "Install Transom again from a complete package."
        ) from None
    return f"<script>{_as_classic(module, _OWN_IMPORT.sub('', more))}</script>"


def _file(name: str = "transom.js") -> Traversable:
    # By path inside the package: importing transom.web from here would go up a layer.
    return importlib.resources.files("transom").joinpath("web", "static", name)


def _as_classic(module: str, more: str = "") -> str:
    members: list[str] = []

    def declared(match: re.Match[str]) -> str:
        members.append(match["name"])
        return ""

    def listed(match: re.Match[str]) -> str:
        for entry in filter(None, (part.strip() for part in match["names"].split(","))):
            inner, _, outer = entry.partition(" as ")
            members.append(f"{outer.strip()}: {inner.strip()}" if outer else inner)
        return ""

    body = _EXPORT_DECLARATION.sub(declared, module)
    body = _EXPORT_LIST.sub(listed, body)
    body += f"{{\n{more}}}"  # a block: its names are its own
    if stray := _STRAY.search(body):
        line = body[stray.start() :].lstrip().partition("\n")[0]
        raise RegistrationError(
            f"transom.js cannot be put into a page because of this line: {line}"
        )
    body = (
        f'(() => {{ "use strict";\n{body}\nglobalThis.transom = {{ {", ".join(members)} }};\n}})();'
    )
    # Inside a script only these end or bend it. Both stay what they were in any JS string.
    return re.sub(r"<(?=/script|!--)", r"<\\", body, flags=re.IGNORECASE)
