import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.web.csp import CspMode, allow_attribute, build_csp, dropped_entries

RESOURCES = ("script-src", "style-src", "img-src", "font-src", "media-src", "worker-src")
FIELD_OF = {
    **dict.fromkeys(RESOURCES, "resourceDomains"),
    "connect-src": "connectDomains",
    "frame-src": "frameDomains",
    "base-uri": "baseUriDomains",
}
ENTRIES = ["https://a.com", "wss://*.b.com:8443", "*", "https:", "'unsafe-eval'", "a b"]
FIELDS = ["connectDomains", "resourceDomains", "frameDomains", "baseUriDomains"]


def directives(policy: str) -> dict[str, list[str]]:
    parts = [part.split() for part in policy.split("; ")]
    names = [part[0] for part in parts]
    assert len(names) == len(set(names))
    return {part[0]: part[1:] for part in parts}


def test_strict_without_a_declaration_is_the_specs_default() -> None:
    policy = directives(build_csp(None, "strict"))
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == ["'self'", "'unsafe-inline'"]
    assert policy["style-src"] == ["'self'", "'unsafe-inline'"]
    assert policy["img-src"] == ["'self'", "data:"]
    assert policy["media-src"] == ["'self'", "data:"]
    assert policy["connect-src"] == ["'none'"]
    assert policy["frame-src"] == ["'none'"]
    assert policy["object-src"] == ["'none'"]
    assert policy["base-uri"] == ["'self'"]


def test_compat_allows_what_the_reference_host_allows_and_no_origin() -> None:
    policy = directives(build_csp(None))
    assert "'unsafe-eval'" in policy["script-src"]
    assert {"blob:", "data:"} <= set(policy["script-src"])
    assert policy["frame-src"] == ["'none'"]
    assert policy["base-uri"] == ["'none'"]
    local = {"'self'", "'none'", "'unsafe-inline'", "'unsafe-eval'", "'wasm-unsafe-eval'"}
    local |= {"blob:", "data:"}
    assert all(set(sources) <= local for sources in policy.values())


@pytest.mark.parametrize("mode", ["compat", "strict"])
def test_each_list_goes_where_the_spec_says(mode: str) -> None:
    policy = directives(
        build_csp(
            {
                "connectDomains": ["https://api.example.com", "wss://live.example.com:8443"],
                "resourceDomains": ["https://*.cdn.example.com"],
                "frameDomains": ["https://frames.example.com"],
                "baseUriDomains": ["https://base.example.com"],
            },
            mode,  # type: ignore[arg-type]
        )
    )
    connect = ["https://api.example.com", "wss://live.example.com:8443"]
    assert policy["connect-src"][-2:] == connect
    for name in ("script-src", "style-src", "img-src", "font-src", "media-src", "worker-src"):
        assert policy[name][-1] == "https://*.cdn.example.com"
    assert policy["frame-src"] == ["https://frames.example.com"]
    assert policy["base-uri"][-1] == "https://base.example.com"
    assert policy["object-src"] == ["'none'"]
    assert policy["form-action"] == ["'none'"]


@pytest.mark.parametrize(
    "entry",
    [
        "*",
        "https:",
        "data:",
        "'unsafe-eval'",
        "https://a.com; script-src *",
        "https://a.com script-src",
        "https://a.com\thttps://b.com",
        "https://a.com\r\nSet-Cookie: x=1",
        "https://a.com,https://b.com",
        "https://a.com/path",
        "https://a.com?q",
        "a.com",
        "https://*",
        "https://*.*.com",
        "https://user@a.com",
        "javascript://a.com",
        "https://\u017fhop.com",
        "",
        3,
        None,
        ["https://a.com"],
    ],
)
def test_what_is_no_origin_is_dropped_and_told(entry: object) -> None:
    for field in FIELDS:
        assert build_csp({field: [entry]}) == build_csp(None)
        assert len(dropped_entries({field: [entry]})) == 1


def test_a_list_without_an_end_is_looked_at_to_some_entry_and_no_further() -> None:
    dropped = dropped_entries({"connectDomains": ["x"] * 1_000_000})
    assert len(dropped) == 1001
    assert dropped[-1] == "connectDomains: 999000 more entries"


@pytest.mark.parametrize("lists", ["https://a.com", 3, {"a": 1}, True])
def test_a_declaration_that_is_no_list_counts_for_nothing(lists: object) -> None:
    assert build_csp({"connectDomains": lists}) == build_csp(None)
    assert dropped_entries({"connectDomains": lists})


def test_a_trailing_slash_and_repetition_do_no_harm() -> None:
    declared = {"connectDomains": ["https://a.com/", "https://a.com", "https://a.com"]}
    assert directives(build_csp(declared, "strict"))["connect-src"] == ["https://a.com"]


@pytest.mark.parametrize(
    ("entry", "taken"),
    [
        ("https://chat.example.com", False),
        ("https://CHAT.example.com:443/", False),
        ("wss://chat.example.com", False),
        ("http://chat.example.com", False),
        ("https://*.example.com", False),
        ("https://*.com", False),
        ("https://chat.example.com:0443", False),
        ("wss://chat.example.com:000000443", False),
        ("https://chat.example.com:" + "0" * 30 + "443", False),
        ("https://chat.example.com.", False),
        ("https://chat.example.com:443.", False),
        ("https://ch%61t.example.com", False),
        ("https://\uff43hat.example.com", False),
        ("https://admin.example.com", False),
        ("https://*.admin.example.com", True),
        ("https://intern.example.com:8443", False),
        ("https://intern.example.com:08443", False),
        ("https://intern.example.com", True),
        ("https://x.views.example.com", False),
        ("https://a.x.views.example.com", False),
        ("https://*.x.views.example.com", False),
        ("http://127.0.0.1:8000", False),
        ("http://localhost:8000", False),
        ("http://a.localhost:8000", False),
        ("http://[::1]:8000", False),
        ("http://[0:0::1]:08000", False),
        ("http://[::ffff:127.0.0.1]:8000", False),
        ("http://127.0.0.2:8000", False),
        ("http://0.0.0.0:8000", False),
        ("http://127.1:8000", False),
        ("http://0x7f000001:8000", False),
        ("http://2130706433:8000", False),
        ("http://017700000001:8000", False),
        ("http://127.0.0.0x1:8000", False),
        ("http://*.127.0.0.1:8000", False),
        ("http://localhost:3000", True),
        ("https://10.0.0.1", True),
        ("https://api.example.com", True),
        ("https://*.chat.example.com", True),
        ("https://chat.example.com:8443", True),
        ("https://chat.example.com.evil.example", True),
    ],
)
def test_a_view_reaches_no_origin_of_the_application_whatever_it_declares(
    entry: str, taken: bool
) -> None:
    page, others = (
        "https://chat.example.com",
        [
            "https://admin.example.com",
            "https://intern.example.com:8443",
            "https://*.views.example.com",
            "http://127.0.0.1:8000",
        ],
    )
    for field in FIELDS:
        declared = {field: [entry]}
        policies = [
            build_csp(each, "strict", ancestors=page, ours=others) for each in (declared, None)
        ]
        assert (policies[0] != policies[1]) is taken, field
        assert (dropped_entries(declared, [page, *others]) == []) is taken, field


def test_the_header_has_what_was_read_and_not_what_was_declared() -> None:
    declared = {"connectDomains": ["HTTPS://API.example.com:00443/", "wss://[0:0:0::1]:09"]}
    found = directives(build_csp(declared, "strict"))["connect-src"]
    assert found == ["https://api.example.com:443", "wss://[::1]:9"]


@pytest.mark.parametrize("port", ["0", "65536", "99999999999999999999999", "1e3", "+443", "\u0664"])
def test_a_port_that_is_none_is_dropped(port: str) -> None:
    assert dropped_entries({"connectDomains": [f"https://a.com:{port}"]})


def test_only_so_many_entries_fit_into_a_header() -> None:
    many = {"connectDomains": [f"https://h{n}.example.com" for n in range(1000)]}
    assert len(build_csp(many)) < 8000
    assert len(dropped_entries(many)) == 900


@given(st.dictionaries(st.sampled_from(FIELDS), st.lists(st.text())))
def test_nothing_that_is_declared_can_add_a_directive_or_end_the_header(
    declared: dict[str, list[str]],
) -> None:
    policy = build_csp(declared, "strict", ancestors="http://127.0.0.1:1")
    assert policy.isascii()
    assert policy.isprintable()
    assert (
        directives(policy).keys() - {"worker-src"} == directives(build_csp(None, "strict")).keys()
    )


@given(
    st.fixed_dictionaries(dict.fromkeys(FIELDS, st.lists(st.sampled_from(ENTRIES)))),
    st.sampled_from(["compat", "strict"]),
)
def test_a_directive_holds_no_origin_that_was_not_declared_for_it(
    declared: dict[str, list[str]], mode: CspMode
) -> None:
    local = directives(build_csp(None, mode))
    for name, sources in directives(build_csp(declared, mode)).items():
        allowed = {entry for entry in declared.get(FIELD_OF.get(name, ""), []) if "://" in entry}
        own = {*local.get(name, local["default-src"]), "'none'"}
        assert set(sources) - own <= allowed


def test_permissions_become_the_allow_attribute_in_a_fixed_order() -> None:
    wanted = {"tools": {}, "clipboardWrite": {}, "camera": {}, "microphone": {}, "geolocation": {}}
    allowed = "camera; microphone; geolocation; clipboard-write; tools"
    assert allow_attribute(wanted) == allowed
    assert allow_attribute({"camera": {}, "fullscreen *": {}}) == "camera"
    assert allow_attribute({"camera": True}) == ""
    assert allow_attribute(None) == ""
