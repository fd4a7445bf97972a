"""Reading a page without running it."""

import time

import pytest

from transom.check.scan import HtmlScan, Reference


def references(html: str) -> list[Reference]:
    return list(HtmlScan(html).references)


@pytest.mark.parametrize(
    ("html", "kind", "url"),
    [
        ("<script src=https://a.example/x.js></script>", "script", "https://a.example/x.js"),
        ("<SCRIPT SRC='//a.example/x.js'></SCRIPT>", "script", "//a.example/x.js"),
        ('<link rel="stylesheet" href="x.css">', "style", "x.css"),
        ('<link href="x.js" rel="modulepreload">', "script", "x.js"),
        ('<link rel="preload" as="font" href="f.woff2">', "asset", "f.woff2"),
        ("<img alt='a > b' src=' https://a.example/i.png '>", "image", "https://a.example/i.png"),
        ("<video poster=p.png></video>", "image", "p.png"),
        ("<audio><source src=a.mp3></audio>", "media", "a.mp3"),
        ("<iframe src=https://a.example></iframe>", "frame", "https://a.example"),
        ("<base href=https://a.example/>", "base", "https://a.example/"),
        ("<style>a { background: url( 'https://a.example/b.png' ) }</style>", "asset",
         "https://a.example/b.png"),
        ("<style>@import 'https://a.example/c.css';</style>", "style", "https://a.example/c.css"),
        ("<p style='background:url(b.png)'>Hi</p>", "asset", "b.png"),
        ("<script type=module>import x from 'https://esm.example/x'</script>", "script",
         "https://esm.example/x"),
        ("<script>const m = await import('https://esm.example/y')</script>", "script",
         "https://esm.example/y"),
    ],
)  # fmt: skip
def test_what_a_page_loads_is_found(html, kind, url):
    assert references(html) == [Reference(kind, url)]


@pytest.mark.parametrize(
    "html",
    [
        "<a href=https://a.example>link</a>",
        "<link rel=icon href=/favicon.ico>",
        "<link rel=preconnect href=https://a.example>",
        "<!-- <script src=x.js></script> -->",
        "<textarea><img src=x.png></textarea>",
        "<noscript><img src=x.png></noscript>",
        "<script>const html = '<img src=x.png>'</script>",
        '<script type=application/json>{"a": "fetch(\'https://a.example\')"}</script>',
        "<img src='{{ url }}'>",
        "<svg><path clip-path='url(#clip)' style='mask: url(#m)'/></svg>",
        "<style>:root { --icon: url(images/icon.svg) }</style>",
        "<script>// see https://a.example/docs</script>",
        "<script>const schema = 'https://json-schema.org/draft'; from = 'https://x.example'</script>",
    ],
)
def test_what_a_page_only_mentions_is_left_alone(html):
    assert references(html) == []


@pytest.mark.parametrize(
    ("script", "url"),
    [
        ("fetch('https://a.example/x')", "https://a.example/x"),
        ("await fetch( `https://a.example/x`, {})", "https://a.example/x"),
        ("fetch(`https://a.example/${id}`)", "https://a.example/${id}"),
        ("new WebSocket('wss://a.example')", "wss://a.example"),
        ('new EventSource("https://a.example/e")', "https://a.example/e"),
        ("navigator.sendBeacon('https://a.example/b')", "https://a.example/b"),
        ("x.open('GET', 'https://a.example/x')", "https://a.example/x"),
    ],
)
def test_what_a_script_connects_to_is_found(script, url):
    assert references(f"<script>{script}</script>") == [Reference("connect", url)]


@pytest.mark.parametrize(
    ("script", "api"),
    [
        ("navigator.mediaDevices.getUserMedia({ audio: true })", "microphone"),
        ("const R = window.webkitSpeechRecognition", "microphone"),
        ("navigator.mediaDevices.getUserMedia({video: {width: 1}})", "camera"),
        ("navigator.geolocation.watchPosition(f)", "geolocation"),
        ("navigator.clipboard?.writeText(t)", "clipboardWrite"),
    ],
)
def test_what_needs_a_permission_is_found(script, api):
    assert HtmlScan(f"<script>{script}</script>").apis == {api}


def test_a_document_is_known_by_its_doctype_and_its_html_tag():
    assert HtmlScan("<!-- (c) --><!DOCTYPE  html><html lang=en><body>Hi</body></html>").doctype
    assert HtmlScan("<!doctype html><html><body>Hi").doctype
    assert not HtmlScan("<!doctype svg><html><body>Hi").doctype
    assert HtmlScan("<HTML><body></body></HTML>").html_tag
    assert not HtmlScan("plain text").html_tag


def test_a_body_is_text_or_an_element_that_can_show():
    assert HtmlScan("<html><body>Hi</body></html>").body
    assert HtmlScan("<html><div></div></html>").body
    assert not HtmlScan("<html><head><title>T</title><meta charset=utf-8></head> </html>").body


HOSTILE = {
    "tags": lambda n: "<" * n,
    "a tag without end": lambda n: "<a " * n,
    "quotes": lambda n: '<a =">' * n + "<a ='>" * n,
    "comments": lambda n: "<!--" * n,
    "doctypes": lambda n: "<!doctype x>" * n,
    "scripts": lambda n: "<script>" * n,
    "attributes": lambda n: "<p a" + " " * n + ">" + "<p " + "a " * n + ">" + "<p " + "=" * n + ">",
    "urls in a style": lambda n: "<style>" + "url( " * n,
    "dashes in a style": lambda n: "<style>" + "-" * n,
    "names in a style": lambda n: "<style>" + "--a" * n,
    "custom properties": lambda n: "<style>" + "--a:" * n,
    "dashes in an attribute": lambda n: '<p style="' + "-" * min(n, 60_000) + '">',
    "connections": lambda n: "<script>" + "fetch ( " * n,
    "imports": lambda n: "<script>" + "import (" * n,
    "browser APIs": lambda n: "<script>" + "getUserMedia({" * (n // 10),
}


@pytest.mark.load
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_costs_work_in_proportion_to_its_length(name):
    """In processor time, which does not depend on what else the machine does."""
    short, long = (min(cost(HOSTILE[name](n)) for _ in range(2)) for n in (10_000, 40_000))

    assert long < max(8 * short, 0.1), (short, long)  # 4 if it is linear, 16 if it is quadratic


def cost(html: str) -> float:
    before = time.process_time()
    HtmlScan(html)
    return time.process_time() - before
