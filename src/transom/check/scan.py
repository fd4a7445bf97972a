"""What an HTML page refers to, found without running it.

A single pass that never looks back, so a hostile page costs time in proportion to its length. It
reads markup, `<style>` text and inline scripts; addresses that a script builds at run time are seen
by the browser rules. In scripts only URL literals given straight to a network call count: a
bundle is full of other addresses.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

ReferenceKind = Literal[
    "script", "style", "image", "font", "media", "frame", "base", "asset", "connect"
]
"""`connect`: given to fetch, XMLHttpRequest, WebSocket, EventSource or sendBeacon."""


class Reference(NamedTuple):
    """A URL that the page makes the browser load."""

    kind: ReferenceKind
    url: str


MAX_TAG = 64 * 1024
MAX_REFERENCES = 2_000

_TAG = re.compile(r"<(?:(?P<comment>!--)|(?P<declaration>[!?])|(?P<name>/?[A-Za-z][^\s/>]*))")
_ATTRIBUTE = re.compile(
    r"""([^\s"'>/=]+)\s*(?:=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?""", re.DOTALL
)
_CSS_URL = re.compile(r"""url\(\s*["']?([^"')\s]{1,2000})""", re.IGNORECASE)
# Starts only where a name starts and never gives a character back, so it reads a text once.
_CSS_CUSTOM = re.compile(r"(?<![\w-])--[\w-]++\s*+:[^;{}]*+")
_CSS_IMPORT = re.compile(r"""@import\s+["']([^"']{1,2000})""", re.IGNORECASE)
_JS_CONNECT = re.compile(
    r"""(?:\bfetch|\bnew\s+(?:WebSocket|EventSource)|\.sendBeacon)\s*\(\s*["'`]"""
    r"""((?:https?|wss?)://[^"'`\s<>]{1,2000})"""
)
_JS_OPEN = re.compile(
    r"""\.open\s*\(\s*["'`][A-Za-z]{3,7}["'`]\s*,\s*["'`](https?://[^"'`\s<>]{1,2000})"""
)
_JS_IMPORT = re.compile(
    r"""(?:\bimport\s*\(\s*|\bimport\s*|\bfrom\s*|\bimportScripts\s*\(\s*)["'`]"""
    r"""(https?://[^"'`\s<>]{1,2000})["'`]"""
)
_APIS: dict[str, re.Pattern[str]] = {
    "camera": re.compile(r"getUserMedia\s*\(\s*\{[^)]{0,200}\bvideo\b"),
    "microphone": re.compile(
        r"getUserMedia\s*\(\s*\{[^)]{0,200}\baudio\b|\b(?:webkit)?SpeechRecognition\b"
    ),
    "geolocation": re.compile(r"\bgeolocation\s*\.\s*(?:getCurrentPosition|watchPosition)\b"),
    "clipboardWrite": re.compile(r"\bclipboard\s*\??\.\s*write(?:Text)?\b"),
}
# Elements whose insides are text; of those, only scripts and styles can load anything.
_RAW_TEXT = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE | re.ASCII)
    for name in ("script", "style", "textarea", "title", "noscript")
}
_HEAD_ELEMENTS = frozenset(
    {"html", "head", "body", "meta", "link", "base", "title", "script", "style", "noscript"}
)
_SOURCES: dict[str, tuple[tuple[str, ReferenceKind], ...]] = {
    "img": (("src", "image"),),
    "image": (("href", "image"),),
    "iframe": (("src", "frame"),),
    "frame": (("src", "frame"),),
    "audio": (("src", "media"),),
    "video": (("src", "media"), ("poster", "image")),
    "source": (("src", "media"),),
    "track": (("src", "media"),),
    "input": (("src", "image"),),
    "base": (("href", "base"),),
    "script": (("src", "script"),),
}
_LINK_KINDS: dict[str, ReferenceKind] = {
    "stylesheet": "style",
    "modulepreload": "script",
    "preload": "asset",
}


class HtmlScan:
    """What one pass over a page found."""

    def __init__(self, html: str) -> None:
        self._html = html
        self.doctype = self.html_tag = False
        self.body = False
        """There is an element or text that could show."""
        self.scripts = 0
        # A dictionary, so that each is kept once and in order.
        self.references: dict[Reference, None] = {}
        self.apis: set[str] = set()
        """Permission-bound browser APIs: camera, microphone, geolocation, clipboardWrite."""
        self._run()

    def _run(self) -> None:
        html, at = self._html, 0
        while (found := _TAG.search(html, at)) is not None:
            self._text(at, found.start())
            if found["comment"]:
                at = html.find("-->", found.end()) + 3
                if at < 3:
                    return
                continue
            end = self._tag_end(found.end())
            if end < 0:
                return
            inside, at = html[found.end() : end], end + 1
            if found["declaration"]:
                self.doctype |= inside.lower().split()[:2] == ["doctype", "html"]
            elif not found["name"].startswith("/"):
                at = self._element(found["name"].lower(), inside, at)
        self._text(at, len(html))

    def _text(self, start: int, end: int) -> None:
        # Text outside of any document is not a body: "hello" alone is not a page.
        if not self.body and self.html_tag and not self._html[start:end].isspace() and start < end:
            self.body = True

    def _tag_end(self, at: int) -> int:
        """Where the tag closes, reading over quoted values; -1 if it does not."""
        html, limit, quote = self._html, min(len(self._html), at + MAX_TAG), ""
        for position in range(at, limit):
            char = html[position]
            if quote:
                if char == quote:
                    quote = ""
            elif char == ">":
                return position
            elif char in "\"'" and html[position - 1] in "= \t\n\r":
                quote = char
        # A quote that never closes, or a tag without an end: take the next ">" there is.
        return html.find(">", at, limit)

    def _element(self, name: str, inside: str, at: int) -> int:
        attributes = _attributes(inside)
        self.html_tag |= name == "html"
        self.body |= name not in _HEAD_ELEMENTS
        for attribute, kind in _SOURCES.get(name, ()):
            self._add(kind, attributes.get(attribute, ""))
        for relation in attributes.get("rel", "").lower().split() if name == "link" else ():
            if relation in _LINK_KINDS:
                self._add(_LINK_KINDS[relation], attributes.get("href", ""))
        if style := attributes.get("style"):
            self._css(style)
        if name not in _RAW_TEXT:
            return at
        closing = _RAW_TEXT[name].search(self._html, at)
        end = closing.start() if closing else len(self._html)
        if name == "script":
            self._script(attributes, self._html[at:end])
        elif name == "style":
            self._css(self._html[at:end])
        return end

    def _add(self, kind: ReferenceKind, url: str) -> None:
        url = url.strip()
        # A template says nothing of what is loaded; of a connection it mostly leaves the origin.
        templated = kind != "connect" and ("{{" in url or "${" in url)
        if url and not templated and len(self.references) < MAX_REFERENCES:
            self.references[Reference(kind, url)] = None

    def _script(self, attributes: dict[str, str], text: str) -> None:
        kind = attributes.get("type", "").strip().lower()
        if kind not in ("", "module", "text/javascript", "application/javascript"):
            return
        self.scripts += 1
        for pattern in (_JS_CONNECT, _JS_OPEN):
            for url in pattern.findall(text):
                self._add("connect", url)
        for url in _JS_IMPORT.findall(text):
            self._add("script", url)
        self.apis.update(api for api, pattern in _APIS.items() if pattern.search(text))

    def _css(self, text: str) -> None:
        # A custom property loads nothing by itself, and style sheets are full of unused ones.
        text = _CSS_CUSTOM.sub("", text)
        for url in _CSS_IMPORT.findall(text):
            self._add("style", url)
        for url in _CSS_URL.findall(text):
            # `url(#clip)` names a part of this very page.
            if not url.startswith("#"):
                self._add("asset", url)


def _attributes(inside: str) -> dict[str, str]:
    # Of an attribute that is given twice, browsers take the first.
    found = reversed(_ATTRIBUTE.findall(inside))
    return {name.lower(): double or single or bare for name, double, single, bare in found}
