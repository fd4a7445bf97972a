"""Origins, and what covers them."""

import pytest

from transom.check.rules.csp import (
    DeclaredOrigins,
    broad_wildcard,
    keyword,
    origin_of,
    parse_origin,
    unsafe,
)


@pytest.mark.parametrize(
    "entry",
    [
        "https://a.example",
        "wss://a.example:8443",
        "http://localhost:3000",
        "https://*.a.example",
        "https://[::1]:3000",
        "HTTPS://A.Example",
    ],
)
def test_an_origin_is_read(entry):
    assert parse_origin(entry) is not None


@pytest.mark.parametrize(
    "entry",
    [
        "a.example",
        "https://",
        "https://a.example/",
        "https://a.example/path",
        "https://a.example?x",
        "https://user@a.example",
        "https://a.example:99999",
        f"https://{'a.' * 200}example",
        "https://*",
        "https://a.*.example",
        "https://a.example https://b.example",
        "ftp://a.example",
        "*",
        "https:",
        "",
        "https://\u017fhop.com",
        "http\u017f://shop.com",
        "https://shop.com:\u0663",
    ],
)
def test_what_is_no_origin_is_not_read(entry):
    assert parse_origin(entry) is None


def test_an_origin_is_written_without_its_usual_port():
    assert str(parse_origin("HTTPS://A.Example:443")) == "https://a.example"
    assert str(parse_origin("wss://*.a.example:8443")) == "wss://*.a.example:8443"


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://a.example/x?y#z", "https://a.example"),
        ("//a.example/x", "https://a.example"),
        ("wss://user:word@a.example/x", "wss://a.example"),
        ("/x", None),
        ("data:text/html,x", None),
        ("https://[bad", None),
        ("https://*.a.example/", None),
    ],
)
def test_the_origin_of_a_url(url, origin):
    found = origin_of(url)
    assert (str(found) if found else None) == origin


@pytest.mark.parametrize(
    ("declared", "url", "is_covered"),
    [
        ("https://a.example", "https://a.example/x", True),
        ("https://a.example/", "https://a.example/x", True),
        ("https://a.example", "https://b.example", False),
        ("https://a.example", "https://a.example:8443", False),
        ("https://a.example", "http://a.example", False),
        ("http://a.example", "https://a.example", True),
        ("https://a.example", "wss://a.example", False),
        ("wss://a.example", "wss://a.example", True),
        ("https://*.a.example", "https://x.y.a.example", True),
        ("https://*.a.example", "https://a.example", False),
        ("https://*.a.example", "https://evila.example", False),
        ("https:", "https://a.example", True),
        ("https", "https://a.example", False),
        ("*", "https://a.example", True),
        ("'self'", "https://a.example", False),
    ],
)
def test_a_declaration_covers_what_a_browser_would_let_through(declared, url, is_covered):
    origin = origin_of(url)
    assert origin is not None
    assert DeclaredOrigins([declared]).cover(origin) is is_covered


def test_injections_are_told_from_keywords():
    assert unsafe("https://a.example; script-src *")
    assert unsafe("https://a.example\nX: y")
    assert unsafe("'evil'")
    assert not unsafe("'self'")
    assert keyword("'nonce-abc'")
    assert not keyword("https://a.example")


@pytest.mark.parametrize("host", ["com", "co.uk", "github.io", "vercel.app"])
def test_wildcards_over_what_anyone_can_register_are_broad(host):
    origin = parse_origin(f"https://*.{host}")
    assert origin is not None
    assert broad_wildcard(origin)
