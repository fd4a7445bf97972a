"""A View as a server declares it: HTML at a `ui://` URI, and what it asks of its host.

1. The page is text, a file or a function. Text and files are checked when they are declared. A
   file is read again when it changes; a function is called at every read.
2. A page asks for `transom.js` with `<script src="transom.js"></script>`, or with
   `import { App } from "transom"` in an inline module. Either way it gets one inline classic script
   that sets `window.transom`; an import becomes a destructuring of it. Nothing else runs under
   `script-src 'unsafe-inline'`: no data: or blob: module, no import map.
3. `inline.js` is that script. What only some pages need follows in it, for pages that mention it:
   WebMCP, forms that are its tools, and what converts schemas of zod. All are built from `js/src`.
"""

from __future__ import annotations

import functools
import html.parser
import importlib.resources
import inspect
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Unpack, cast

from transom.errors import RegistrationError
from transom.server import declare
from transom.server.declare import ResourceOptions

_LITERAL: Final = ("textarea", "title")  # elements in which tags are text
_SCRIPT_NAMES: Final = ("transom.js", "./transom.js")
_IMPORT: Final = re.compile(
    r"""(?P<start>^|[;\n])(?P<space>[ \t]*)import\s*
        (?:(?P<what>\{[^}]*\}|\*\s*as\s+[\w$]+|[\w$]+)\s*from\s*)?
        (?P<quote>["'])(?:transom|(?:\./)?transom\.js)(?P=quote)[ \t]*;?""",
    re.VERBOSE,
)
_MENTIONED: Final = {
    "inline-webmcp.js": re.compile(r"\bmodelContext|(?i:\btoolname\b)"),
    "inline-forms.js": re.compile(r"\btoolname\b", re.IGNORECASE),
    "inline-zod.js": re.compile(r"\bzod\b", re.IGNORECASE),
}


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
    """Return the page with `transom.js` in it, once, where it first asks for it."""
    if "transom" not in text:
        return text
    edits: list[tuple[int, int, str]] = []
    library = _library(tuple(name for name, word in _MENTIONED.items() if word.search(text)))
    for script in _Scripts(text).found:
        if script.source is not None:
            if script.source.strip() in _SCRIPT_NAMES:
                edits.append((script.start, script.close, "" if edits else library))
        elif script.kind == "module":
            body = text[script.body : script.end]
            rewritten = _IMPORT.sub(functools.partial(_keeping_lines, uri), body)
            if rewritten != body:
                if not edits:
                    edits.append((script.start, script.start, library))
                edits.append((script.body, script.end, rewritten))
    for start, end, replacement in reversed(edits):
        text = text[:start] + replacement + text[end:]
    return text


def _keeping_lines(uri: str, match: re.Match[str]) -> str:
    """What replaces an import, with as many lines: an error names those of the author's page."""
    text = _destructured(uri, match)
    return text + "\n" * (match[0].count("\n") - text.count("\n"))


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
def _library(additions: tuple[str, ...]) -> str:
    # By path inside the package: importing transom.web from here would go up a layer.
    static = importlib.resources.files("transom").joinpath("web", "static")
    try:
        script = "".join(
            static.joinpath(name).read_text("utf-8") for name in ("inline.js", *additions)
        )
    except OSError:
        raise RegistrationError(
            "the page asks for transom.js, and this installation of Transom does not have it. "
            "Install Transom again from a complete package."
        ) from None
    return f"<script>{_inside_script(script)}</script>"


def _inside_script(script: str) -> str:
    # Inside a script only these end or bend it. Both stay what they were in any JS string.
    return re.sub(r"<(?=/script|!--)", r"<\\", script, flags=re.IGNORECASE)


HtmlSource = str | Path | Callable[[], str]
"""A page itself, the file that has it, or a function that returns it."""

_log = logging.getLogger(__name__)

# Never tries another end for a comment: each one that is tried would double the work.
_DOCTYPE: Final = re.compile(r"(?>\s+|<!--.*?-->)*+<!doctype html\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class ViewResource:
    """A declared View. Give it to `views.tool(opens=...)`.

    Attributes:
        uri: where hosts read the page.
        meta: the `_meta` of the resource, in the list and with the page alike.
    """

    uri: str
    name: str
    title: str | None
    description: str | None
    meta: dict[str, Any] | None
    _html: ViewHtml

    def read(self) -> str:
        """Return the page's HTML as it is now.

        Raises:
            RegistrationError: the function given as `html` returned no HTML document.
        """
        return self._html.read()


def view_resource(uri: str, html: HtmlSource, **options: Unpack[ResourceOptions]) -> ViewResource:
    """Check a View's declaration and make it."""
    for key in options:
        if key not in ResourceOptions.__optional_keys__:
            raise TypeError(f"a View has no keyword {key!r}")
    uri = declare.check_uri(uri)
    ui = declare.view_meta(uri, options)
    return ViewResource(
        uri=uri,
        name=options.get("name") or uri.removeprefix("ui://"),
        title=options.get("title"),
        description=options.get("description"),
        meta={"ui": ui} if ui else None,
        _html=ViewHtml(uri, html),
    )


class ViewHtml:
    """The HTML of one View, as it is served."""

    def __init__(self, uri: str, source: HtmlSource) -> None:
        """Take the HTML as text, as the path of a file, or as a function that returns it."""
        self._uri = uri
        self._stamp: tuple[int, int] | None = None
        if isinstance(source, str):
            if "<" not in source:
                raise RegistrationError(
                    f"{uri}: html is the page itself, but {source!r} is not HTML. "
                    f"To read a file write html=Path({source!r})."
                )
            self._text = _finished(uri, source)
            self._source: Path | Callable[[], str] | None = None
        elif isinstance(source, Path):
            self._source = path = source.expanduser().absolute()
            if not path.is_file():
                raise RegistrationError(
                    f"{uri}: there is no file {path}. A relative path starts at the working "
                    f"directory; write html=Path(__file__).with_name({path.name!r}) for a file "
                    "beside your code."
                )
            self._load(path)
        elif callable(source):
            if inspect.iscoroutinefunction(source):
                raise RegistrationError(
                    f"{uri}: html is an async function. Write a plain one that returns the page."
                )
            self._source = source
            self._text = ""
        else:
            raise RegistrationError(
                f"{uri}: html is text, a Path or a function that returns text, "
                f"not {type(source).__name__}."
            )

    def read(self) -> str:
        """Return the page as it is now.

        A file that became unreadable or stopped being a page since it was last read is
        reported in the log, and the last good page is served.
        """
        source = self._source
        if isinstance(source, Path):
            try:
                if _stamp(source) != self._stamp:
                    self._load(source)
            except (OSError, RegistrationError) as error:
                _log.warning("%s: serving the last good page: %s", self._uri, error)
        elif source is not None:
            made = cast("object", source())
            if not isinstance(made, str):
                raise RegistrationError(
                    f"{self._uri}: the html function returned {type(made).__name__}, not str."
                )
            return _finished(self._uri, made)
        return self._text

    def _load(self, path: Path) -> None:
        stamp = _stamp(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise RegistrationError(
                f"{self._uri}: {path} is not UTF-8. Save it as UTF-8."
            ) from None
        self._text = _finished(self._uri, text)
        self._stamp = stamp


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _finished(uri: str, text: str) -> str:
    if not _DOCTYPE.match(text):
        raise RegistrationError(
            f"{uri}: the page is not an HTML document. Start it with <!doctype html>."
        )
    return inline_transom(text, uri)
