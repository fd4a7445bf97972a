"""The host: every fact about the official `AppBridge` (B) and about the wire (E), and our stand."""

from tests.contract.facts import Fact

BRIDGE = "tests/host/test_bridge.py::test_"
TOOLS = "tests/host/test_bridge_tools.py::test_"
REQUESTS = "tests/host/test_bridge_requests.py::test_"
CONTEXT = "tests/host/test_bridge_context.py::test_"
HOSTILE = "tests/host/test_bridge_hostile.py::test_"
SDK_CLIENT = "tests/connections/test_sdk_client.py::test_"
VIEW_SERVER = "tests/host/test_view_server.py::test_"
HOST = "tests/host/test_host.py::test_"
VIEWS = "tests/host/test_views.py::test_"
SURFACE = "tests/host/test_surface.py::test_"
RENDERERS = "tests/host/test_renderers.py::test_"
OFFICIAL = "tests/interop/test_official_view.py::test_"

UNHANDLED = REQUESTS + "what_nobody_handles_is_not_found"
SHAPE = BRIDGE + "the_answer_to_initialize_has_exactly_four_members"
FITS = REQUESTS + "params_that_do_not_fit_are_refused_and_the_place_named"
AGAIN = BRIDGE + "a_second_initialize_is_answered_reported_and_counts"
QUEUE = BRIDGE + "what_is_sent_before_initialized_waits_and_goes_out_in_order"
ORDER = BRIDGE + "tool_data_out_of_order_is_refused_and_not_sent"
VERBATIM = VIEW_SERVER + "a_call_goes_on_as_it_is_and_so_does_its_result"
FANOUT = VIEW_SERVER + "list_changed_reaches_every_bridge"
RESOURCES = VIEW_SERVER + "resources_and_prompts_go_on_too"
HIDDEN = VIEW_SERVER + "a_tool_that_views_may_not_call_is_refused"
MODES = CONTEXT + "a_mode_that_the_view_did_not_declare_never_reaches_the_handler"
DIFF = CONTEXT + "only_what_changed_is_told"
REFUSAL = REQUESTS + "a_refusal_is_a_result_that_says_so"
LISTED = TOOLS + "listing_follows_every_page"
RESULT = TOOLS + "a_call_brings_its_result"
TEARDOWN = BRIDGE + "teardown_asks_the_view_and_waits_for_its_answer"
WIRE_DATA = BRIDGE + "tool_data_goes_out_as_it_is"


FACTS = [
    # B1 Construction and connection
    Fact("B-001", "differ", BRIDGE + "the_context_is_empty_unless_given", "keywords, one channel"),
    Fact("B-002", "match", BRIDGE + "nothing_is_sent_on_connect"),
    Fact("B-003", "match", SDK_CLIENT + "a_client_that_is_not_connected_is_refused"),
    Fact("B-004", "match", BRIDGE + "a_bridge_is_connected_once"),
    Fact("B-005", "match", UNHANDLED),
    Fact("B-006", "match", CONTEXT + "without_a_handler_the_mode_stays_what_it_is"),
    Fact(
        "B-007",
        "match",
        BRIDGE + "mappings_are_sent_as_they_are_even_when_they_make_no_sense",
    ),
    # B2 Initialize handling
    Fact("B-008", "match", BRIDGE + "every_protocol_version_is_answered_with_ours"),
    Fact("B-009", "match", SHAPE),
    Fact("B-010", "match", BRIDGE + "bad_initialize_params_are_refused_and_the_place_named"),
    Fact("B-011", "match", AGAIN),
    Fact(
        "B-012",
        "exceed",
        BRIDGE + "initialized_without_initialize_is_ignored_and_reported",
        "a View nobody knows is not ready; neither is one made ready twice",
    ),
    Fact("B-013", "match", BRIDGE + "who_the_view_is_is_known_from_initialize_on"),
    # B3 Initialised gating
    Fact("B-014", "exceed", QUEUE, "sends wait in order, requests wait for the View"),
    Fact("B-015", "match", BRIDGE + "what_a_view_asks_before_initialized_is_served_and_reported"),
    Fact(
        "B-016",
        "exceed",
        VIEW_SERVER + "list_changed_waits_until_the_view_is_initialised_and_comes_once",
        "told when the View is ready, once",
    ),
    # B4 Forwarding with a client
    Fact("B-017", "match", VERBATIM),
    Fact("B-018", "match", RESOURCES),
    Fact("B-019", "match", RESOURCES),
    Fact(
        "B-020",
        "exceed",
        VIEW_SERVER + "a_view_sees_the_tools_it_may_call_page_by_page",
        "tools/list is forwarded, as the draft has it; a View's own tasks can be asked after",
    ),
    Fact(
        "B-021",
        "match",
        VIEW_SERVER + "list_changed_is_not_forwarded_when_the_server_did_not_announce_it",
    ),
    Fact(
        "B-022",
        "exceed",
        VIEW_SERVER + "a_handler_of_the_host_goes_before_the_server",
        "a handler wins whenever it was set; taken away, the server answers again",
    ),
    Fact("B-023", "exceed", FANOUT, "every Bridge hears it, and the client's own handler too"),
    Fact("B-024", "exceed", VERBATIM, "unknown keys inside content blocks are kept as well"),
    Fact(
        "B-025",
        "exceed",
        VIEW_SERVER + "progress_comes_back_under_the_views_own_token",
        "progress is relayed, and the View's token never reaches the server's connection",
    ),
    Fact(
        "B-026", "match", VIEW_SERVER + "a_view_that_gives_up_stops_the_server_and_gets_no_answer"
    ),
    Fact(
        "B-027",
        "exceed",
        TOOLS + "a_views_list_changed_reaches_the_host",
        "on_tools_changed, once for however many notices",
    ),
    Fact("B-028", "match", BRIDGE + "the_bridge_never_starts_an_mcp_handshake"),
    # B5 Visibility enforcement
    Fact("B-029", "exceed", HIDDEN, "refused before the server is asked"),
    Fact(
        "B-030",
        "exceed",
        SURFACE + "tools_that_are_not_for_the_model_are_not_there",
        "the host's list of tools is ours to make",
    ),
    Fact("B-031", "match", VIEW_SERVER + "a_tool_that_the_server_does_not_list_is_refused"),
    Fact("B-032", "exceed", HIDDEN, "[] and lists without 'app' are denied as well"),
    # B6 App tools from the host side
    Fact("B-033", "differ", LISTED, "call_tool(name, arguments) and list_tools(), all pages"),
    Fact("B-034", "differ", RESULT, "Python names; the draft's aliases do not exist"),
    Fact(
        "B-035",
        "exceed",
        BRIDGE + "a_view_without_tools_is_not_asked_for_them",
        "the capability and the state are checked before anything is sent",
    ),
    Fact("B-036", "match", BRIDGE + "a_view_without_tools_is_not_asked_for_them"),
    Fact(
        "B-037",
        "exceed",
        TOOLS + "one_bad_definition_is_left_out_and_reported_and_the_others_stay",
        "one bad tool does not spoil the list, pages are followed, a null cursor ends them",
    ),
    Fact("B-038", "match", TOOLS + "an_answer_that_is_no_result_is_an_invalid_result"),
    Fact(
        "B-039",
        "differ",
        TOOLS + "progress_reaches_the_caller_and_buys_time",
        "30 s by default, as the draft asks of hosts; cancelling the task cancels the call",
    ),
    Fact("B-040", "match", BRIDGE + "calls_in_flight_end_when_the_view_closes"),
    Fact(
        "B-041",
        "exceed",
        VIEWS + "closing_asks_the_view_to_wind_up_first_and_takes_its_tools_away",
        "a View's tools go with it",
    ),
    Fact(
        "B-042",
        "exceed",
        HOST + "a_tool_that_only_reads_runs_and_any_other_is_refused_with_a_way_out",
        "approval, limits, names, attribution and audit are built in",
    ),
    Fact(
        "B-043",
        "exceed",
        BRIDGE + "capabilities_that_are_not_given_follow_from_the_handlers",
        "hostCapabilities.tools and .appTools say so, as ext-apps PR 656 and issue 676 propose",
    ),
    # B7 Tool data notifications
    Fact("B-044", "match", ORDER),
    Fact("B-045", "exceed", ORDER, "enforced by a table, before anything is sent"),
    Fact("B-046", "match", BRIDGE + "a_cancellation_may_have_a_reason"),
    # B8 Host context
    Fact("B-047", "match", DIFF),
    Fact(
        "B-048",
        "exceed",
        CONTEXT + "a_key_taken_away_is_told_as_null_apart_from_the_other_changes",
        "keys not named stay; None takes one away and the View is told",
    ),
    Fact(
        "B-049",
        "exceed",
        CONTEXT + "a_change_to_what_it_is_already_is_none",
        "values are compared, whatever the order of their keys",
    ),
    Fact(
        "B-050",
        "differ",
        CONTEXT + "a_handler_that_agrees_changes_the_mode_and_the_context",
        "there is one way to change the context, so what is told is what is kept",
    ),
    Fact(
        "B-051",
        "exceed",
        CONTEXT + "before_initialize_a_change_is_in_the_answer_and_nowhere_else",
        "no stray error",
    ),
    Fact(
        "B-052",
        "exceed",
        CONTEXT + "a_handler_that_refuses_or_talks_nonsense_leaves_the_mode",
        "what a handler returns is checked",
    ),
    Fact("B-053", "exceed", MODES, "asked of neither handler nor View unless both declared it"),
    Fact("B-054", "match", REQUESTS + "sizes_reach_the_host_with_or_without_params"),
    # B9 Handlers for View requests
    Fact(
        "B-055",
        "differ",
        REQUESTS + "the_newest_handler_counts_and_none_takes_it_away",
        "a handler taken away leaves -32601, as if it had never been set",
    ),
    Fact("B-056", "match", REQUESTS + "an_event_may_have_many_listeners"),
    Fact("B-057", "match", FITS),
    Fact(
        "B-058",
        "exceed",
        REQUESTS + "a_message_may_be_one_block_or_a_list",
        "the spec's single block is taken too",
    ),
    Fact(
        "B-059",
        "exceed",
        REQUESTS + "links_that_could_run_something_never_reach_the_handler",
        "only http, https and mailto reach the handler",
    ),
    Fact(
        "B-060",
        "match",
        REQUESTS + "a_model_context_may_have_content_structure_both_or_nothing",
    ),
    Fact("B-061", "match", FITS),
    Fact(
        "B-062",
        "differ",
        REQUESTS + "any_other_failure_of_a_handler_is_told_to_the_host_and_not_to_the_view",
        "only a ProtocolError crosses, code unchanged; other texts stay in the host",
    ),
    Fact(
        "B-063",
        "exceed",
        REQUESTS + "a_handler_that_returns_nothing_has_done_it",
        "answered with {}",
    ),
    Fact("B-064", "match", VIEWS + "the_last_update_of_the_context_counts"),
    Fact("B-065", "match", HOST + "a_views_messages_links_and_files_reach_the_host_with_the_view"),
    Fact("B-066", "match", REQUESTS + "files_reach_the_handler_under_harmless_names"),
    # B10 Teardown and helpers
    Fact("B-067", "match", BRIDGE + "leaving_the_bridge_tears_the_view_down"),
    Fact(
        "B-068",
        "differ",
        BRIDGE + "teardown_completes_when_the_view_is_silent",
        "teardown closes the connection and waits 2 s at most; it tells whether the View agreed",
    ),
    Fact("B-069", "match", BRIDGE + "a_wish_to_be_torn_down_is_only_a_wish"),
    Fact(
        "B-070",
        "match",
        RENDERERS
        + "the_nested_key_says_which_view_a_tool_opens_and_the_flat_one_where_it_is_not_there",
    ),
    Fact(
        "B-071",
        "match",
        "tests/web/test_csp.py::test_permissions_become_the_allow_attribute_in_a_fixed_order",
    ),
    Fact("B-072", "match", REQUESTS + "log_entries_reach_the_host"),
    # E1 Envelope and ids
    Fact("E-001", "match", HOSTILE + "requests_with_impossible_ids_are_not_answered"),
    Fact(
        "E-002",
        "differ",
        TOOLS + "ids_count_up_whatever_the_other_direction_does",
        "a Bridge counts from 1: Views of ext-apps 1.x cannot cancel number 0",
    ),
    Fact("E-003", "match", HOSTILE + "the_order_of_members_does_not_matter"),
    Fact("E-004", "match", HOSTILE + "an_answer_with_a_wrong_id_answers_nothing"),
    Fact("E-005", "match", REQUESTS + "unknown_notices_are_ignored"),
    Fact("E-006", "match", REQUESTS + "a_view_that_gives_up_on_a_request_stops_its_handler"),
    Fact("E-007", "match", TOOLS + "progress_reaches_the_caller_and_buys_time"),
    # E2 View -> Host requests
    Fact("E-008", "match", SHAPE),
    Fact("E-009", "match", REQUESTS + "a_handlers_own_result_is_sent_as_it_is"),
    Fact(
        "E-010",
        "exceed",
        REQUESTS + "a_message_may_be_one_block_or_a_list",
        "both forms are taken",
    ),
    Fact("E-011", "match", CONTEXT + "a_handler_may_choose_another_mode"),
    Fact("E-012", "match", REQUESTS + "a_host_can_answer_in_place_of_a_server"),
    Fact("E-013", "match", REFUSAL),
    # E3 Host -> View requests
    Fact("E-014", "match", RESULT),
    Fact("E-015", "match", TEARDOWN),
    # E4 Notifications
    Fact("E-016", "match", OFFICIAL + "events_of_the_view_arrive"),
    Fact("E-017", "match", WIRE_DATA),
    Fact(
        "E-018",
        "differ",
        REQUESTS + "unknown_notices_are_ignored",
        "a Bridge speaks to the View; the sandbox is the renderer's own",
    ),
    Fact("E-019", "match", REQUESTS + "sizes_reach_the_host_with_or_without_params"),
    # E5 Shared objects
    Fact("E-020", "match", BRIDGE + "structs_are_sent_with_their_wire_names"),
    Fact(
        "E-021",
        "match",
        CONTEXT + "keys_go_by_their_python_or_their_wire_name_and_unknown_ones_as_given",
    ),
    Fact("E-022", "match", BRIDGE + "unknown_keys_in_initialize_are_dropped"),
    # E6 Error codes
    Fact(
        "E-023",
        "differ",
        FITS,
        "invalid params are -32602 for every method; other texts of exceptions do not cross",
    ),
    Fact("E-024", "match", OFFICIAL + "calls_that_fail_carry_the_code_of_the_sdk"),
    Fact(
        "E-025",
        "differ",
        BRIDGE + "after_the_end_every_use_says_that_it_is_not_connected",
        "ProtocolError, InvalidResult, RequestTimeout, ConnectionClosed, NotConnected; a "
        "cancelled call is asyncio.CancelledError",
    ),
]
