"""Origins, what covers them, and policies that let in too much."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.check.origins import (
    broad_wildcard,
    covered,
    keyword,
    loose_directives,
    origin_of,
    parse_origin,
    unsafe,
)
from transom.web.csp import build_csp


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
        "https://*",
        "https://a.*.example",
        "https://a.example https://b.example",
        "ftp://a.example",
        "*",
        "https:",
        "",
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
        ("*", "https://a.example", True),
        ("'self'", "https://a.example", False),
    ],
)
def test_a_declaration_covers_what_a_browser_would_let_through(declared, url, is_covered):
    origin = origin_of(url)
    assert origin is not None
    assert covered(origin, [declared]) is is_covered


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


ENTRIES = st.lists(
    st.sampled_from(
        [
            "https://a.example", "https://a.example/", "wss://*.b.example:8443", "*", "'self'",
            "https:", "data:", "https://a.example; script-src *", "http://localhost:3000", "a b",
        ]
    )
    | st.text(max_size=20),
    max_size=5,
)  # fmt: skip


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "connectDomains": ENTRIES,
            "resourceDomains": ENTRIES,
            "frameDomains": ENTRIES,
            "baseUriDomains": ENTRIES,
        },
    ),
    st.sampled_from(["compat", "strict"]),
)
def test_our_own_host_never_lets_in_more_than_was_declared(declared, mode):
    assert list(loose_directives(build_csp(declared, mode), declared)) == []


TIGHT = "default-src 'none'; base-uri 'self'"


@pytest.mark.parametrize(
    ("policy", "loose"),
    [
        (TIGHT, []),
        (f"{TIGHT}; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:", []),
        (f"{TIGHT}; script-src https://cdn.example", []),
        (f"{TIGHT}; script-src-elem https://cdn.example", []),
        (f"{TIGHT}; connect-src https://cdn.example", ["connect-src https://cdn.example"]),
        (f"{TIGHT}; img-src *", ["img-src *"]),
        (f"{TIGHT}; img-src https: 'self'", ["img-src https:"]),
        (f"{TIGHT}; frame-ancestors https://host.example; sandbox allow-scripts", []),
        ("base-uri 'none'", ["there is no default-src"]),
        ("default-src 'self'", ["there is no base-uri"]),
        ("default-src https://cdn.example; base-uri 'self'", ["default-src https://cdn.example"]),
    ],
)
def test_a_policy_may_hold_only_what_was_declared(policy, loose):
    declared = {"resourceDomains": ["https://cdn.example", "https://x.example; script-src *"]}
    assert list(loose_directives(policy, declared)) == loose
