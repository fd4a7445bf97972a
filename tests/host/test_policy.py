"""What a host allows: approval, grants, visibility, links and file names."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom import Allow, AllowAlways, Deny, Limits, Policy, Tool
from transom.background import ignore
from transom.errors import Refused
from transom.host.asking.approvals import Approvals
from transom.host.asking.grants import Grantee, Grants, fingerprint
from transom.host.asking.links import link_refusal
from transom.host.asking.policy import ApprovalRequest
from transom.host.audit import AuditLog
from transom.host.tools.tool_texts import Provenance
from transom.host.tools.tool_visibility import model_may_call, view_may_call
from transom.host.views.downloads import safe_filenames
from transom.types import Implementation, ToolAnnotations

PLAY = Tool(
    "play",
    title="Play",
    description="Play a track",
    input_schema={
        "type": "object",
        "properties": {"id": {"type": "string", "enum": ["a", "b"], "description": "which"}},
        "required": ["id"],
    },
    annotations=ToolAnnotations(read_only_hint=False),
)
MUSIC, MUSIC_2 = Grantee("model", "music-1"), Grantee("model", "music-2")
READ = Tool("read", annotations=ToolAnnotations(read_only_hint=True))


def changed(tool: Tool, **changes: Any) -> Tool:
    return msgspec.structs.replace(tool, **changes)


def request(tool: Tool, view_id: str = "music-1") -> ApprovalRequest:
    return ApprovalRequest(
        view_id=view_id,
        server="music",
        app=Implementation("player", "1.0"),
        tool=tool,
        arguments={"id": "a"},
    )


def test_a_name_passes_for_no_other_and_for_no_words_of_the_question():
    words = "play of View mail-1, from server mail, run with these arguments?"
    for name in (words, "pl\u0430y", "play ", "play\u2800", "play\ud800"):
        asked = request(changed(PLAY, name=name))
        assert "from server mail" not in asked.question()
        assert asked.shown()["tool"] != "play"
        assert asked.shown()["tool"].isascii()
        assert f"May {asked.shown()['tool']} of View music-1" in asked.question()
    named = msgspec.structs.replace(
        request(PLAY), app=Implementation('x"), from server mail, run ("', "1.0")
    )
    assert (
        """View music-1 ("x'), from server mail, run ('"), from server music""" in named.question()
    )
    assert request(changed(PLAY, name="files/read.v2-b_c")).shown()["tool"] == "files/read.v2-b_c"


def never(_: ApprovalRequest) -> Deny:
    raise AssertionError("nobody is asked")


# --- approval --------------------------------------------------------------------------------

VIEW = Provenance("music-1", "music", Implementation("player", "1.0"))


def approvals(policy: Policy) -> Approvals:
    return Approvals(policy, AuditLog(None), on_error=ignore, on_grants_changed=ignore)


def asks_about(policy: Policy, tool: Tool) -> bool:
    return approvals(policy).check(VIEW, tool, {"id": "a"}) is not None


def test_a_tool_that_only_reads_runs():
    assert not asks_about(Policy(never), READ)
    assert not asks_about(Policy(), READ)


def test_even_a_tool_that_only_reads_can_be_made_to_ask():
    assert asks_about(Policy(never, read_only_runs=False), READ)


@pytest.mark.parametrize(
    "annotations",
    [
        None,
        ToolAnnotations(),
        ToolAnnotations(read_only_hint=False),
        ToolAnnotations(destructive_hint=False, idempotent_hint=True),
    ],
)
def test_anything_else_has_to_be_asked_about(annotations: ToolAnnotations | None):
    assert asks_about(Policy(never), changed(PLAY, annotations=annotations))


def test_with_nobody_to_ask_it_is_denied_and_the_text_says_what_would_allow_it():
    with pytest.raises(Refused) as refused:
        approvals(Policy()).check(VIEW, PLAY, {"id": "a"})
    assert "play of View music-1" in str(refused.value)
    assert "Policy(approve=...)" in str(refused.value)
    assert "Policy.trusting()" in str(refused.value)


def test_a_trusting_policy_allows_everything():
    assert not asks_about(Policy.trusting(), PLAY)


async def test_an_answer_for_once_is_not_remembered():
    asked = approvals(Policy(lambda _: Allow()))
    assert await asked.obtain(request(PLAY))
    assert asked.check(VIEW, PLAY, {}) is not None


@pytest.mark.parametrize("answer", [Deny("not today"), Deny()])
async def test_a_no_is_a_refusal_with_its_reason(answer: Deny):
    with pytest.raises(Refused, match=answer.reason):
        await approvals(Policy(lambda _: answer)).obtain(request(PLAY))


async def test_an_answer_for_good_is_remembered():
    asked = approvals(Policy(lambda _: AllowAlways()))
    assert await asked.obtain(request(PLAY))
    assert asked.check(VIEW, PLAY, {}) is None


@pytest.mark.parametrize("answer", [True, None, "yes", Allow, 1])
async def test_an_approver_that_answers_nonsense_has_not_allowed_anything(answer: Any):
    asked = approvals(Policy(lambda _: answer))
    with pytest.raises(Refused, match=f"answered {type(answer).__name__};"):
        await asked.obtain(request(PLAY))
    assert not asked.grants.covers(MUSIC, PLAY)


# --- grants ----------------------------------------------------------------------------------


def test_a_grant_is_for_one_tool_of_one_view():
    grants = Grants()
    grants.give(MUSIC, PLAY)
    assert grants.covers(MUSIC, PLAY)
    assert not grants.covers(MUSIC_2, PLAY)
    assert not grants.covers(MUSIC, changed(PLAY, name="stop"))


def test_a_tool_that_is_gone_for_a_while_keeps_its_grant():
    grants = Grants()
    grants.give(MUSIC, PLAY)
    grants.give(MUSIC, READ)
    assert grants.covers(MUSIC, msgspec.json.decode(msgspec.json.encode(PLAY), type=Tool))


@pytest.mark.parametrize(
    "changes",
    [
        {"description": "Delete a track"},
        {"title": "Delete"},
        {"annotations": ToolAnnotations(read_only_hint=False, destructive_hint=True)},
        {"input_schema": {"type": "object", "properties": {}}},
        {"input_schema": {"type": "object", "properties": {"id": {"type": "integer"}}}},
        {"output_schema": {"type": "object"}},
        {"meta": {"ui": {"visibility": ["model"]}}},
    ],
)
def test_a_tool_that_changes_its_meaning_loses_its_grant_and_the_user_can_be_told(
    changes: dict[str, Any],
):
    grants = Grants()
    grants.give(MUSIC, PLAY)
    other = changed(PLAY, **changes)
    assert not grants.covers(MUSIC, other)
    assert grants.outdated(MUSIC, other)
    assert not grants.outdated(MUSIC, PLAY)
    assert grants.covers(MUSIC, PLAY)


def test_a_tool_never_granted_is_not_outdated():
    assert not Grants().outdated(MUSIC, PLAY)


def test_what_a_lazy_schema_changes_from_listing_to_listing_is_not_its_meaning():
    schema = {
        "required": ["id"],
        "properties": {
            "id": {
                "description": "which",
                "enum": ["c"],
                "type": "string",
            }
        },
        "type": "object",
    }
    assert fingerprint(changed(PLAY, input_schema=schema)) == fingerprint(PLAY)


def test_a_property_named_like_a_keyword_is_part_of_the_meaning():
    def with_enum(kind: str) -> Tool:
        properties = {"enum": {"type": kind}, "properties": {"default": 1, "type": "object"}}
        return Tool("t", input_schema={"type": "object", "properties": properties})

    assert fingerprint(with_enum("string")) != fingerprint(with_enum("integer"))


def test_adding_an_enum_is_a_change_of_meaning():
    def with_id(schema: dict[str, Any]) -> Tool:
        return Tool("t", input_schema={"type": "object", "properties": {"id": schema}})

    assert fingerprint(with_id({"type": "string"})) != fingerprint(
        with_id({"type": "string", "enum": ["a"]})
    )


def test_the_grants_of_a_view_that_is_gone_are_forgotten():
    grants = Grants()
    grants.give(MUSIC, PLAY)
    grants.give(MUSIC_2, PLAY)
    grants.forget("music-1")
    assert not grants.covers(MUSIC, PLAY)
    assert grants.covers(MUSIC_2, PLAY)


# --- visibility ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("meta", "model", "view"),
    [
        (None, True, True),
        ({}, True, True),
        ({"ui": {}}, True, True),
        ({"ui": {"visibility": ["model", "app"]}}, True, True),
        ({"ui": {"visibility": ["model"]}}, True, False),
        ({"ui": {"visibility": ["app"]}}, False, True),
        ({"ui": {"visibility": []}}, False, False),
        ({"ui": {"visibility": ["model", "internal"]}}, True, False),
        ({"ui": {"visibility": ["app", "app"]}}, False, True),
        ({"ui": {"visibility": ["nobody"]}}, False, False),
        ({"ui": {"visibility": [7, None]}}, False, False),
        ({"ui": {"visibility": "app"}}, False, True),
        ({"ui": {"visibility": "model"}}, True, False),
        ({"ui": {"visibility": "all of them"}}, False, False),
    ],
)
def test_an_explicit_visibility_counts_as_it_stands(
    meta: dict[str, Any] | None, model: bool, view: bool
):
    tool = Tool("t", meta=meta)
    assert model_may_call(tool) is model
    assert view_may_call(tool) is view


# --- links -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("javascript:alert(1)", "only http, https and mailto"),
        ("JAVASCRIPT://example.com/%0aalert(1)", "only http, https and mailto"),
        ("java\nscript:alert(1)", "control characters"),
        ("\x01https://example.com", "control characters"),
        ("https://exa mple.com", "spaces"),
        ("https:/\\evil.example", "backslashes"),
        ("file:///etc/passwd", "only http, https and mailto"),
        ("data:text/html,<script>", "only http, https and mailto"),
        ("example.com", "only http, https and mailto"),
        ("//example.com", "only http, https and mailto"),
        ("https:example.com", "no host"),
        ("https:///path", "no host"),
        ("https://[::1", "not a URL"),
        ("mailto:", "no address"),
        ("https://example.com/" + "a" * 9000, "longer than 8192"),
    ],
)
def test_a_bad_link_is_refused_with_a_reason(url: str, problem: str):
    assert problem in (link_refusal(url) or "")


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "http://localhost:8000/a?b=c#d",
        "HTTPS://EXAMPLE.COM",
        "https://[::1]:8080/",
        "https://bücher.example/ü",
        "mailto:someone@example.com?subject=Hi%20there",
    ],
)
def test_a_good_link_is_allowed(url: str):
    assert link_refusal(url) is None


@given(st.text())
def test_no_text_makes_the_link_check_fail(url: str):
    problem = link_refusal(url)
    assert problem is None or problem


# --- file names ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("file:///notes.txt", "notes.txt"),
        ("https://example.com/a/b/report%20final.pdf?x=/y#/z", "report final.pdf"),
        ("file:///a/b/", "b"),
        ("report.pdf", "report.pdf"),
        ("file:///%2e%2e%2f%2e%2e%2fetc%2fpasswd", "_._etc_passwd"),
        ("file:///..", "download"),
        ("", "download"),
        ("///", "download"),
        ("file:///.bashrc", "bashrc"),
        ("file:///con.txt", "_con.txt"),
        ("file:///NUL", "_NUL"),
        ("file:///lpt1.tar.gz", "_lpt1.tar.gz"),
        ("file:///photo%E2%80%AEgpj.exe", "photo_gpj.exe"),
        ("file:///a%00b%0Ac.txt", "a_b_c.txt"),
        ("file:///c%3A%5Cwindows%5Csystem.ini", "c__windows_system.ini"),
        ("file:///trailing.txt.%20.", "trailing.txt"),
        ("file:///%3Cscript%3E.html", "_script_.html"),
        ("file:///ünïcode ✓.md", "ünïcode ✓.md"),
        ("file:///" + "n" * 300 + ".txt", "n" * 124 + ".txt"),
    ],
)
def test_a_file_name_is_the_last_part_of_its_uri_made_harmless(uri: str, name: str):
    assert safe_filenames([uri]) == [name]


def test_a_name_that_is_taken_gets_a_number():
    uris = ["notes.txt", "notes (2).txt", "Notes.txt", "notes", "NOTES", "notes.txt"]
    assert safe_filenames(f"file:///{uri}" for uri in uris) == [
        *("notes.txt", "notes (2).txt", "Notes (3).txt"),
        *("notes", "NOTES (2)", "notes (4).txt"),
    ]


@pytest.mark.load
def test_a_hundred_thousand_equal_names_are_made_unique_in_one_pass():
    names = safe_filenames(["file:///a.txt"] * 100_000)  # the square of it would take hours
    assert len(set(names)) == 100_000
    assert names[-1] == "a (100000).txt"


@given(st.text())
def test_every_file_name_is_safe(uri: str):
    [name] = safe_filenames([uri])
    assert name
    assert len(name) <= 130
    assert not name.startswith((".", " "))
    assert not name.endswith((".", " "))
    assert not set(name) & set('/\\:*?"<>|\x00\n\r\u202e')
    assert name.partition(".")[0].lower() not in {"con", "nul", "com1"}


# --- limits ----------------------------------------------------------------------------------


def test_the_limits_are_those_of_the_spec_unless_given():
    limits = Limits()
    assert limits.max_tools == 50
    assert limits.call_timeout == 600
    assert limits.max_result_bytes == 10 * 1024 * 1024
    assert limits.relist_interval == 1
    assert limits.fresh_timeout == 0.5


def test_every_limit_is_a_keyword_with_a_finite_default():
    for field in msgspec.structs.fields(Limits):
        value = getattr(Limits(), field.name)
        assert value is False or 0 < value < float("inf")
        assert getattr(Limits(**{field.name: 1}), field.name) == 1
    with pytest.raises(TypeError):
        Limits(50)  # type: ignore[misc]
