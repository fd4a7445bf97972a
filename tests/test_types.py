"""How values are read and written: names, defaults, and keys we do not know."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.hostile import json_values
from transom import types as t
from transom.protocol import messages as m

OPEN = [
    t.ToolResult,
    t.ReadResourceResult,
    t.HostContext,
    m.Empty,
    m.Verdict,
    m.InitializeResult,
    m.DisplayModeResult,
    m.ListToolsResult,
    m.ListResourcesResult,
    m.CreateTaskResult,
    m.ListTasksResult,
]
INFO = {"name": "n", "version": "1"}
NEEDED: dict[type, dict[str, object]] = {
    t.ReadResourceResult: {"contents": []},
    m.InitializeResult: {"protocolVersion": "x", "hostInfo": INFO, "hostCapabilities": {}},
    m.DisplayModeResult: {"mode": "pip"},
    m.CreateTaskResult: {"task": {"taskId": "t", "status": "working"}},
    m.ListTasksResult: {"tasks": []},
}


def by_name(kind: type) -> str:
    return kind.__name__


# --- open structs: unknown keys are kept -----------------------------------------------------


def test_every_open_struct_is_tried_here():
    def below(kind: type) -> set[type]:
        return {kind, *(deeper for sub in kind.__subclasses__() for deeper in below(sub))}

    ours = {k for k in below(t.Open) if k.__module__.startswith("transom.") and k is not t.Open}
    assert {t.ToolResult, m.Empty} <= set(OPEN) <= ours


@pytest.mark.parametrize("kind", OPEN, ids=by_name)
def test_unknown_keys_of_results_and_context_are_kept_and_go_out_as_they_came(kind: type[t.Open]):
    unknown = {"new": {"deep": [1, None, "x"]}, "is_error": 1, "_private": 1.5, "": None}
    value = kind.from_wire({**NEEDED.get(kind, {}), **unknown})
    assert value.extra == unknown
    out = json.loads(value.to_wire())
    assert {key: out[key] for key in unknown} == unknown
    assert kind.from_wire(value.to_wire()) == value


@pytest.mark.parametrize("extra", [{}, {"a": 1}, {"extra": {}}, 5, None, [], "x"], ids=str)
def test_a_key_called_extra_is_an_unknown_key_like_any_other(extra: object):
    value = t.ToolResult.from_wire(msgspec.json.encode({"content": [], "extra": extra}))
    assert value.extra == {"extra": extra}
    assert json.loads(value.to_wire()) == {"content": [], "extra": extra}


def test_known_keys_never_end_up_in_extra_and_extra_never_overrides_them():
    value = t.ToolResult(extra={"isError": True, "content": 5, "more": 1})
    assert json.loads(value.to_wire()) == {"content": [], "more": 1}
    read = t.ToolResult.from_wire(b'{"isError":true,"more":1}')
    assert read == t.ToolResult(is_error=True, extra={"more": 1})


def test_a_mistake_in_a_known_key_is_a_mistake_whatever_else_is_there():
    for raw in (b'{"content":5}', b'{"content":5,"more":1}', b'{"more":1,"isError":"no"}'):
        with pytest.raises(msgspec.ValidationError):
            t.ToolResult.from_wire(raw)
    with pytest.raises(msgspec.ValidationError, match="contents"):
        t.ReadResourceResult.from_wire(b'{"more":1}')
    for raw in (b"", b"{", b"nonsense"):
        with pytest.raises(msgspec.DecodeError):
            t.ToolResult.from_wire(raw)
    for raw in (b"[]", b"null", b"5"):
        with pytest.raises(msgspec.ValidationError):
            t.ToolResult.from_wire(raw)


def test_it_is_read_from_bytes_raw_or_a_mapping_alike():
    raw = b'{"content":[{"type":"text","text":"hi"}],"more":1}'
    values = [
        t.ToolResult.from_wire(raw),
        t.ToolResult.from_wire(msgspec.Raw(raw)),
        t.ToolResult.from_wire(json.loads(raw)),
    ]
    assert values[0] == values[1] == values[2]
    assert values[0].text == "hi"


def test_two_values_do_not_share_their_extra():
    first, second = t.ToolResult(), t.ToolResult()
    assert first.extra is not second.extra
    first.extra["a"] = 1
    assert second.extra == {}
    assert t.ToolResult().extra == {}


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=5))
def test_any_object_survives_an_open_struct(members: dict[str, object]):
    raw = json.dumps(members).encode()
    try:
        value = m.Empty.from_wire(raw)
    except msgspec.DecodeError:
        # What msgspec cannot hold it does not read either: a lone surrogate, say.
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(raw)
        return
    assert json.loads(value.to_wire()) == json.loads(raw)


@given(
    st.dictionaries(st.sampled_from(["theme", "locale", "platform", "moon", "extra"]), st.text())
)
def test_a_context_is_the_same_after_a_round_trip(members: dict[str, str]):
    value = t.HostContext.from_wire(members)
    assert t.HostContext.from_wire(value.to_wire()) == value
    assert json.loads(value.to_wire()) == members


# --- other structs: unknown keys are dropped -------------------------------------------------


def test_unknown_keys_of_params_and_capabilities_are_dropped():
    assert msgspec.json.decode(b'{"url":"x","new":1}', type=m.OpenLinkParams).url == "x"
    capabilities = msgspec.json.decode(
        b'{"openLinks":{"deep":1},"new":{}}', type=t.HostCapabilities
    )
    assert json.loads(msgspec.json.encode(capabilities)) == {"openLinks": {"deep": 1}}


def test_unknown_keys_inside_content_blocks_are_dropped():
    raw = b'{"content":[{"type":"text","text":"hi","new":1,"_meta":{"k":1}}],"kept":2}'
    out = json.loads(t.ToolResult.from_wire(raw).to_wire())
    assert out == {
        "content": [{"type": "text", "text": "hi", "_meta": {"k": 1}}],
        "kept": 2,
    }


def test_a_content_block_of_an_unknown_kind_is_a_mistake():
    with pytest.raises(msgspec.ValidationError, match="type"):
        t.ToolResult.from_wire(b'{"content":[{"type":"hologram"}]}')


BLOCKS = [
    (t.TextContent("hi", annotations={"audience": ["user"]}, meta={"k": 1}), "text"),
    (t.ImageContent("aGk=", "image/png"), "image"),
    (t.AudioContent("aGk=", "audio/wav"), "audio"),
    (t.ResourceLink("file:///a", "a", mime_type="text/plain", size=0), "resource_link"),
    (t.EmbeddedResource(t.ResourceContents("file:///a", blob="")), "resource"),
]


@pytest.mark.parametrize(("block", "kind"), BLOCKS, ids=[kind for _, kind in BLOCKS])
def test_content_blocks_survive_the_round_trip(block: t.ContentBlock, kind: str):
    raw = msgspec.json.encode(block)
    assert json.loads(raw)["type"] == kind
    assert msgspec.json.decode(raw, type=t.ContentBlock) == block


# --- names and defaults ----------------------------------------------------------------------


def test_names_are_camel_case_on_the_wire_and_snake_case_here():
    tool = t.Tool(
        "t",
        input_schema={"type": "object"},
        output_schema={"type": "object"},
        annotations=t.ToolAnnotations(read_only_hint=True),
        execution=t.ToolExecution(task_support="optional"),
        icons=[t.Icon("data:,", mime_type="image/png", sizes=["any"])],
        meta={"k": 1},
    )
    raw = msgspec.json.encode(tool)
    assert json.loads(raw) == {
        "name": "t",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
        "execution": {"taskSupport": "optional"},
        "icons": [{"src": "data:,", "mimeType": "image/png", "sizes": ["any"]}],
        "_meta": {"k": 1},
    }
    assert msgspec.json.decode(raw, type=t.Tool) == tool


def test_what_the_protocol_requires_is_written_even_when_it_is_empty():
    assert json.loads(t.ToolResult().to_wire()) == {"content": []}
    assert json.loads(msgspec.json.encode(t.Tool("t")))["inputSchema"]["type"] == "object"
    assert json.loads(m.ListToolsResult().to_wire()) == {"tools": []}
    assert json.loads(m.ListResourcesResult().to_wire()) == {"resources": []}
    insets = json.loads(msgspec.json.encode(t.SafeAreaInsets()))
    assert insets == {"top": 0, "right": 0, "bottom": 0, "left": 0}
    assert json.loads(msgspec.json.encode(t.Resource("ui://a"))) == {"uri": "ui://a", "name": ""}
    assert json.loads(msgspec.json.encode(t.Task("t", "working")))["ttl"] is None


def test_what_says_nothing_is_not_written():
    assert json.loads(msgspec.json.encode(t.AppCapabilities(tools=t.ListChanged()))) == {
        "tools": {}
    }
    assert json.loads(t.HostContext().to_wire()) == {}
    assert "isError" not in json.loads(t.ToolResult().to_wire())
    assert json.loads(t.ToolResult(is_error=True).to_wire())["isError"] is True


def test_values_cannot_be_changed():
    with pytest.raises(AttributeError):
        t.Tool("t").name = "u"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        t.ToolResult().is_error = True  # type: ignore[misc]


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        (None, ("model", "app")),
        ({}, ("model", "app")),
        ({"ui": None}, ("model", "app")),
        ({"ui": []}, ("model", "app")),
        ({"ui": {}}, ("model", "app")),
        ({"ui": {"visibility": "app"}}, ("app",)),
        ({"ui": {"visibility": ["app"]}}, ("app",)),
        ({"ui": {"visibility": ["model", "app"]}}, ("model", "app")),
        ({"ui": {"visibility": []}}, ()),
        ({"ui": {"visibility": [1, None, "app"]}}, ("app",)),
    ],
    ids=str,
)
def test_a_tool_is_visible_to_both_unless_it_says_otherwise(
    meta: dict[str, object] | None, expected: tuple[str, ...]
):
    assert t.Tool("t", meta=meta).visibility == expected


def test_the_text_of_a_result_is_all_its_text_blocks():
    result = t.ToolResult(
        content=[t.TextContent("one"), t.ImageContent("", "image/png"), t.TextContent("two")]
    )
    assert result.text == "one\ntwo"
    assert t.ToolResult().text == ""


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        (t.TextContent("hi"), "text"),
        (t.ImageContent(data="", mime_type="image/png"), "image"),
        (t.AudioContent(data="", mime_type="audio/wav"), "audio"),
        (t.ResourceLink(uri="file:///a", name="a"), "resource_link"),
    ],
)
def test_a_content_block_says_what_it_is(block: t.ContentBlock, kind: str) -> None:
    assert block.type == kind
    assert json.loads(msgspec.json.encode(block))["type"] == kind
