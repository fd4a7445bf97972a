"""The table holds every method of the protocol, each in its direction."""

import msgspec
import pytest

from transom.errors import INVALID_PARAMS, InvalidResult, ProtocolError
from transom.protocol.methods import HOST, METHODS, VIEW, Sender
from transom.types import AppCapabilities, HostCapabilities, HostContext, ToolResult

# id of the behaviour -> sender -> what it may send; a trailing "?" marks a request.
BEHAVIOURS: dict[str, dict[Sender, list[str]]] = {
    "E-006": {"view": ["notifications/cancelled"], "host": ["notifications/cancelled"]},
    "E-007": {"view": ["notifications/progress"], "host": ["notifications/progress"]},
    "E-008": {"view": ["ui/initialize?"]},
    "E-009": {"view": ["ui/open-link?", "ui/download-file?"]},
    "E-010": {"view": ["ui/message?"]},
    "E-011": {"view": ["ui/update-model-context?", "ui/request-display-mode?"]},
    "E-012": {
        "view": [
            "tools/call?",
            "resources/read?",
            "resources/list?",
            "resources/templates/list?",
            "prompts/list?",
            "sampling/createMessage?",
            "ping?",
        ]
    },
    "E-014": {"host": ["tools/list?", "tools/call?", "ping?", "ui/resource-teardown?"]},
    "E-016": {
        "view": [
            "ui/notifications/initialized",
            "ui/notifications/size-changed",
            "ui/notifications/request-teardown",
            "notifications/message",
            "notifications/tools/list_changed",
        ]
    },
    "E-017": {
        "host": [
            "ui/notifications/tool-input",
            "ui/notifications/tool-input-partial",
            "ui/notifications/tool-result",
            "ui/notifications/tool-cancelled",
            "ui/notifications/host-context-changed",
            "notifications/tools/list_changed",
            "notifications/resources/list_changed",
            "notifications/prompts/list_changed",
        ]
    },
    "E-018": {
        "view": ["ui/notifications/sandbox-proxy-ready"],
        "host": ["ui/notifications/sandbox-resource-ready"],
    },
}
# The draft's "MAY": usable by a View (B-020), and tasks (F-001).
DRAFT = {
    ("view", "tools/list"),
    *(("host", f"tasks/{verb}") for verb in ("get", "list", "result", "cancel")),
    *(("view", f"tasks/{verb}") for verb in ("get", "list", "result", "cancel")),
}
# Transom's own, for hosts that announce them.
OURS = {
    ("view", "transom/request-pin"),
    ("view", "transom/notifications/problem"),
    ("view", "transom/notifications/unconnected"),
}
ROWS = [
    pytest.param(sender, name.removesuffix("?"), name.endswith("?"), id=f"{id}-{sender}-{name}")
    for id, directions in BEHAVIOURS.items()
    for sender, names in directions.items()
    for name in names
]


@pytest.mark.parametrize(("sender", "name", "is_request"), ROWS)
def test_every_method_of_the_protocol_is_in_the_table(sender: Sender, name: str, is_request: bool):
    row = METHODS[sender, name]
    assert (row.sender, row.name, row.is_request) == (sender, name, is_request)


def test_the_table_holds_nothing_but_what_the_spec_and_the_draft_have_and_what_is_named_ours():
    known = {(param.values[0], param.values[1]) for param in ROWS}
    assert set(METHODS) - known - DRAFT == OURS


def test_the_two_directions_are_the_whole_table():
    assert {("view", name): row for name, row in VIEW.items()} | {
        ("host", name): row for name, row in HOST.items()
    } == METHODS


def test_a_notification_is_known_by_its_name():
    for (_, name), row in METHODS.items():
        assert row.is_request == ("notifications/" not in name)


@pytest.mark.parametrize("row", METHODS.values(), ids=lambda row: f"{row.sender}-{row.name}")
def test_what_a_method_needs_is_a_capability_of_its_receiver(row):
    receiver = HostCapabilities if row.sender == "view" else AppCapabilities
    names = {field.name for field in msgspec.structs.fields(receiver)}
    assert row.needs is None or row.needs in names
    assert not row.must or row.needs


NEEDS = {
    ("view", "ui/open-link"): "open_links",
    ("view", "ui/download-file"): "download_file",
    ("view", "ui/message"): "message",
    ("view", "ui/update-model-context"): "update_model_context",
    ("view", "tools/call"): "server_tools",
    ("view", "resources/list"): "server_resources",
    ("view", "resources/templates/list"): "server_resources",
    ("view", "resources/read"): "server_resources",
    ("view", "sampling/createMessage"): "sampling",
    ("view", "notifications/message"): "logging",
    ("host", "tools/list"): "tools",
    ("host", "tools/call"): "tools",
}


def test_methods_need_the_capability_the_spec_ties_them_to():
    found = {place: row.needs for place, row in METHODS.items() if row.needs and place not in DRAFT}
    assert found == NEEDS


def test_a_sender_must_look_first_only_where_the_spec_says_so():
    assert {place for place, row in METHODS.items() if row.must} == {
        ("view", "sampling/createMessage"),
        ("host", "tools/list"),
        ("host", "tools/call"),
    }


def test_the_view_may_open_the_conversation_and_the_host_may_not():
    early = {place for place, row in METHODS.items() if row.early}
    assert early == {
        ("view", "ui/initialize"),
        ("view", "ui/notifications/initialized"),
        ("view", "transom/notifications/problem"),
        ("view", "transom/notifications/unconnected"),
        ("view", "ping"),
        *((side, f"notifications/{name}") for side in VIEW_AND_HOST for name in BOTH_WAYS),
        ("view", "ui/notifications/sandbox-proxy-ready"),
        ("host", "ui/notifications/sandbox-resource-ready"),
    }


VIEW_AND_HOST = ("view", "host")
BOTH_WAYS = ("progress", "cancelled")


# --- reading ---------------------------------------------------------------------------------

TEXT = {"type": "text", "text": "hi"}
TOOL = {"name": "t", "inputSchema": {"type": "object"}}
PARAMS: list[tuple[Sender, str, object]] = [
    (
        "view",
        "ui/initialize",
        {
            "appInfo": {"name": "a", "version": "1", "title": "A", "icons": [{"src": "data:,"}]},
            "appCapabilities": {"tools": {"listChanged": True}, "availableDisplayModes": ["pip"]},
            "protocolVersion": "2026-01-26",
        },
    ),
    ("view", "ui/open-link", {"url": "https://example.com"}),
    (
        "view",
        "ui/download-file",
        {
            "contents": [
                {"type": "resource", "resource": {"uri": "file:///a", "blob": "aGk="}},
                {"type": "resource_link", "uri": "file:///a", "name": "a"},
            ]
        },
    ),
    ("view", "ui/message", {"role": "user", "content": [TEXT]}),
    ("view", "ui/message", {"role": "user", "content": TEXT}),
    ("view", "ui/update-model-context", {"content": [TEXT], "structuredContent": {"a": 1}}),
    ("view", "ui/update-model-context", {}),
    ("view", "ui/request-display-mode", {"mode": "fullscreen"}),
    ("view", "tools/call", {"name": "t", "arguments": {"a": 1}, "_meta": {"progressToken": 1}}),
    ("view", "resources/read", {"uri": "ui://a"}),
    ("view", "resources/list", {"cursor": "c"}),
    ("view", "sampling/createMessage", {"messages": [], "maxTokens": 5}),
    ("view", "ui/notifications/size-changed", {"width": 1.5, "height": 2}),
    ("view", "notifications/message", {"level": "info", "data": None, "logger": "l"}),
    ("host", "tools/list", {"cursor": "c"}),
    ("host", "tools/call", {"name": "t", "arguments": None}),
    ("host", "ui/resource-teardown", {"reason": "over"}),
    ("host", "ui/notifications/tool-input", {"arguments": {"a": 1}}),
    ("host", "ui/notifications/tool-result", {"content": [TEXT], "isError": True, "x": 1}),
    ("host", "ui/notifications/tool-cancelled", {"reason": "r"}),
    ("host", "ui/notifications/host-context-changed", {"theme": "dark", "moon": 1}),
    ("host", "ui/notifications/sandbox-resource-ready", {"html": "<p>", "csp": {}}),
]


@pytest.mark.parametrize(("sender", "name", "params"), PARAMS)
def test_params_of_the_spec_are_read_and_unknown_keys_do_no_harm(
    sender: Sender, name: str, params: dict[str, object]
):
    row = METHODS[sender, name]
    for sent in (params, {**params, "unknownKey": {"a": [1]}}):
        assert isinstance(row.read_params(msgspec.json.encode(sent)), row.params)


@pytest.mark.parametrize(
    "name",
    [
        *("ui/notifications/initialized", "ui/notifications/size-changed"),
        *("ui/notifications/request-teardown", "ui/update-model-context", "resources/list", "ping"),
    ],
)
def test_absent_params_are_an_empty_object(name: str):
    row = VIEW[name]
    assert row.read_params(None) == row.read_params(b"{}")


def test_bad_params_are_answered_with_the_place_and_the_reason():
    with pytest.raises(ProtocolError) as caught:
        VIEW["ui/open-link"].read_params(b'{"url":5}')
    assert caught.value.code == INVALID_PARAMS
    assert caught.value.message == (
        "Invalid params for ui/open-link: url: Expected `str`, got `int`"
    )
    with pytest.raises(ProtocolError, match="missing required field `url`"):
        VIEW["ui/open-link"].read_params(None)


@pytest.mark.parametrize("raw", [b"[]", b"null", b"5", b'"x"', b"{", b"\xff", b'{"a":"\\ud800"}'])
def test_params_that_are_no_object_are_invalid_for_every_method(raw: bytes):
    for row in METHODS.values():
        with pytest.raises(ProtocolError) as caught:
            row.read_params(raw)
        assert caught.value.code == INVALID_PARAMS


def test_unusable_results_are_the_other_sides_fault():
    with pytest.raises(InvalidResult, match="Invalid result for tools/call: content"):
        HOST["tools/call"].read_result(b'{"content":5}')
    with pytest.raises(InvalidResult, match="ui/initialize"):
        VIEW["ui/initialize"].read_result(b"{}")
    for row in METHODS.values():
        if row.is_request:
            for raw in (b"[]", b"null", b"{", b"\xff"):
                with pytest.raises(InvalidResult):
                    row.read_result(raw)


def test_the_answer_to_initialize_keeps_what_it_does_not_know_and_may_lack_a_context():
    row = VIEW["ui/initialize"]
    answer = {
        "protocolVersion": "2026-01-26",
        "hostInfo": {"name": "h", "version": "1"},
        "hostCapabilities": {"openLinks": {}, "somethingNew": {}},
    }
    bare = row.read_result(msgspec.json.encode(answer))
    assert bare.context() == HostContext()
    full = row.read_result(
        msgspec.json.encode({**answer, "hostContext": {"theme": "dark", "moon": 1}, "more": 2})
    )
    assert full.context() == HostContext(theme="dark", extra={"moon": 1})
    assert full.extra == {"more": 2}
    assert full.host_capabilities == HostCapabilities(open_links={})


def test_a_message_is_a_list_of_blocks_in_either_form():
    row = VIEW["ui/message"]
    one = row.read_params(msgspec.json.encode({"role": "user", "content": TEXT}))
    many = row.read_params(msgspec.json.encode({"role": "user", "content": [TEXT]}))
    assert one.blocks == many.blocks
    assert one.blocks[0].text == "hi"
    with pytest.raises(ProtocolError):
        row.read_params(b'{"role":"assistant","content":[]}')


def test_a_refusal_is_understood_in_the_form_of_the_sdk():
    verdict = VIEW["ui/open-link"].read_result(b'{"isError":true,"why":"no"}')
    assert verdict.is_error
    assert verdict.extra == {"why": "no"}
    assert not VIEW["ui/open-link"].read_result(b"{}").is_error


def test_a_tool_result_may_lack_content():
    assert HOST["tools/call"].read_result(b"{}") == ToolResult()


def test_the_arguments_of_a_call_stay_raw():
    call = HOST["tools/call"].read_params(b'{"name":"t","arguments":{"a": [1, 2]}}')
    assert bytes(call.arguments) == b'{"a": [1, 2]}'
    assert bytes(HOST["tools/call"].read_params(b'{"name":"t"}').arguments) == b"{}"


def test_the_texts_of_a_problem_and_of_a_wish_to_stay_are_cut_where_they_are_read():
    sent = {"kind": "tool", "message": "m" * 5000, "tool": "t" * 500, "source": "s" * 5000}
    problem = VIEW["transom/notifications/problem"].read_params(msgspec.json.encode(sent))
    assert (len(problem.message), len(problem.tool), len(problem.source)) == (2000, 128, 500)
    wish = VIEW["transom/request-pin"].read_params(msgspec.json.encode({"reason": "r" * 5000}))
    assert len(wish.reason) == 500


def test_a_problem_of_a_kind_that_nobody_knows_is_refused():
    with pytest.raises(ProtocolError, match="kind"):
        VIEW["transom/notifications/problem"].read_params(b'{"kind":"worse","message":"m"}')


def test_disabled_tools_are_read_from_a_listing_and_what_is_none_is_left_out():
    given = [{"name": "a", "reason": "r" * 900, "registration": 3}, 5, {"reason": "no name"}]
    for entries, found in ((given, ["a"]), ([{"name": "b"}] * 500, ["b"] * 100), ("a", [])):
        raw = msgspec.json.encode({"tools": [], "_meta": {"transom/disabled": entries}})
        page = HOST["tools/list"].read_result(raw)
        assert [tool.name for tool in page.disabled] == found
        assert all(len(tool.reason or "") <= 500 for tool in page.disabled)


def test_a_tool_knows_its_registration_and_whether_its_schema_is_lazy():
    raw = b"""{"tools":[{"name":"a","_meta":{"transom/registration":7,"transom/lazy":true}},
        {"name":"b","_meta":{"transom/registration":true,"transom/lazy":1}},{"name":"c"}]}"""
    tools = HOST["tools/list"].read_result(raw).tools
    assert [(tool.registration, tool.lazy) for tool in tools] == [
        (7, True),
        (None, False),
        (None, False),
    ]
