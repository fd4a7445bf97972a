"""Names of several servers kept apart, and which server a URI may belong to."""

import pytest

from transom.gateway.merge import Names, fits_template, server_names


def test_the_first_to_have_a_name_keeps_it_for_good():
    names = Names(["one", "two"])
    assert names.shown("two", "search") == "search"
    assert names.shown("one", "search") == "one__search"
    assert names.shown("two", "search") == "search"
    assert names.meant("search") == ("two", "search")
    assert names.meant("one__search") == ("one", "search")
    assert names.meant("two__search") is None


def test_a_name_that_is_odd_but_alone_is_left_as_it_is():
    names = Names(["one", "two"])
    odd = "Ünicode / name.with:everything " + "x" * 200
    assert names.shown("one", odd) == odd
    clashing = names.shown("two", odd)
    assert clashing is not None
    assert clashing.startswith("two__")
    assert len(clashing) <= 64
    assert names.meant(clashing) == ("two", odd)


@pytest.mark.parametrize("name", ["orders-1__pay", "two__search", "one__search", "standing"])
def test_a_name_that_passes_for_another_ones_is_never_plain(name: str):
    names = Names(["one", "two"], ["standing"])
    assert names.shown("one", name) == f"one__{name}"


def test_no_two_names_are_shown_alike_whatever_they_are():
    names = Names(["one", "two"])
    long = "x" * 80
    given = [
        (server, name)
        for name in ("a", "two__a", "one__a", "one__two__a", long, f"two__{long}", "a-1__b")
        for server in ("one", "two")
    ]
    shown = [names.shown(server, name) for server, name in given]
    assert len(set(shown)) == len(given)
    assert [names.meant(each or "") for each in shown] == given


def test_a_server_that_never_stops_making_up_names_takes_no_more_than_its_share():
    names = Names(["one", "two"])
    shown = [names.shown("one", f"t{n}") for n in range(20_001)]
    assert shown[-2:] == ["t19999", None]
    assert names.shown("one", "t0") == "t0"
    assert names.shown("two", "fine") == "fine"


def test_a_server_named_like_a_view_of_another_gets_an_underscore():
    assert server_names(["shop", "shop-2", "shop_2", "maps-1"]) == [
        "shop",
        "shop_20",
        "shop_2",
        "maps-1",
    ]
    assert server_names(["a" * 30, "a" * 12 + "-1"]) == ["a" * 30, "a" * 12 + "_1"]
    assert server_names(["a" * 30, "a" * 12 + "-x-1"]) == ["a" * 30, "a" * 12 + "-x-1"]
    assert server_names(["budget-alloc-1"]) == ["budget-alloc-1"]


@pytest.mark.parametrize(
    ("uri", "template", "fits"),
    [
        ("a://7", "a://{id}", True),
        ("a://7/b", "a://{id}", True),
        ("b://7", "a://{id}", False),
        ("a://7/text", "a://{id}/text{?lines}", True),
        ("a://7/text?lines=3", "a://{id}/text{?lines}", True),
        ("a://7/page", "a://{id}/text{?lines}", False),
        ("a://x/y", "a://{one}/{+two}", True),
        ("a://xy", "a://{one}/{+two}", False),
        ("a://", "a://{id}", True),
        ("a://1", "a://1", True),
        ("a://11", "a://1", False),
        ("aba", "ab{x}ba", False),
        ("a", "{x}", True),
    ],
)
def test_a_uri_fits_a_template_by_what_stands_outside_of_its_braces(
    uri: str, template: str, fits: bool
):
    assert fits_template(uri, template) is fits


def test_a_template_made_to_be_slow_is_not():
    assert not fits_template("a" * 100_000, "{x}a" * 20_000 + "b")
