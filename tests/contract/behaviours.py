"""The View: every fact about the official `App` (A) and about tasks (F), and where we stand."""

from tests.contract.facts import Fact

CALLS = "tests/view/test_app_calls.py::test_"
CONNECTION = "tests/view/test_app_connection.py::test_"
EVENTS = "tests/view/test_app_events.py::test_"
LISTING = "tests/view/test_app_listing.py::test_"
REQUESTS = "tests/view/test_app_requests.py::test_"
TASKS = "tests/view/test_app_tasks.py::test_"
TOOLS = "tests/view/test_app_tools.py::test_"

HANDSHAKE = CONNECTION + "the_handshake_is_initialize_then_initialized_and_nothing_else"
STATE = CONNECTION + "the_hosts_state_is_known_after_the_handshake_and_unknown_before_and_after"
VERBATIM = CONNECTION + "capabilities_are_sent_as_given_with_unknown_keys_and_by_reference"
MODES = CONNECTION + "capabilities_may_be_a_struct"
AUTO = CONNECTION + "the_first_tool_declares_the_tools_capability_without_touching_the_callers"
EARLY = CONNECTION + "what_the_host_asks_before_it_answers_initialize_is_answered"
LATE = TOOLS + "registering_after_connect_without_the_capability_raises_every_time"
STRICT = EVENTS + "a_late_first_handler_of_a_one_shot_event_raises_in_strict_mode_every_time"
DATA = EVENTS + "the_tools_data_reaches_its_handlers_in_order"
HANDLERS = EVENTS + "the_assigned_handler_runs_first_then_listeners_in_the_order_they_came"
SENSELESS = EVENTS + "a_notification_that_makes_no_sense_is_reported_and_changes_nothing"
MERGED = EVENTS + "context_changes_are_merged_before_any_handler_runs"
NESTED = EVENTS + "nested_objects_of_the_context_are_replaced_and_null_removes_a_key"
TEARDOWN = EVENTS + "teardown_passes_the_reason_and_answers_an_object"
TORN = EVENTS + "teardown_answers_the_object_a_handler_returned"
LISTED = LISTING + "tools_are_listed_in_the_order_of_registration_with_what_was_said_of_them"
PAGES = LISTING + "pages_hold_at_most_page_size_tools_and_miss_none"
FALLBACK = LISTING + "calls_go_to_the_registry_first_and_then_to_on_call_tool"
KEEPS = LISTING + "registering_never_takes_the_place_of_on_call_tool"
STALE = TOOLS + "a_stale_handle_does_nothing_and_tells_nobody"
FIELDS = TOOLS + "setting_a_field_is_an_update"
QUIET = TOOLS + "changes_before_the_handshake_and_after_the_close_are_not_told"
WIRE = REQUESTS + "each_request_has_its_method_and_params"
NOTICES = REQUESTS + "notifications_have_their_wire_form"
UNCONNECTED = CONNECTION + "nothing_can_be_asked_without_a_connection"
BAD = CALLS + "bad_arguments_are_an_error_result_that_lists_every_problem_with_its_place"
RAISED = CALLS + "anything_else_a_handler_raises_is_reported_and_its_text_stays_here"
KEYWORDS = CALLS + "arguments_reach_the_handler_by_keyword_and_its_return_value_is_the_result"

NO_DOM = "a Python View has no page to measure; it says its size with send_size_changed"
NO_LOW_LEVEL = "there is no second, lower way to set a handler, so nothing can be set twice"

FACTS = [
    # A1 Construction, options, capabilities
    Fact("A-001", "match", HANDSHAKE),
    Fact("A-002", "differ", HANDSHAKE, "App(name, version, *, capabilities, ...) as Python has it"),
    Fact("A-003", "differ", NOTICES, NO_DOM),
    Fact("A-004", "differ", STRICT, "options are keywords: strict, page_size, timeout"),
    Fact("A-005", "match", MODES),
    Fact("A-006", "match", VERBATIM),
    Fact("A-007", "match", VERBATIM),
    Fact("A-008", "match", EARLY),
    Fact("A-009", "match", NESTED),
    Fact("A-010", "match", STATE),
    Fact("A-011", "match", LATE),
    Fact("A-012", "match", MODES),
    # A2 Handshake and version negotiation
    Fact("A-013", "match", HANDSHAKE),
    Fact("A-014", "match", HANDSHAKE),
    Fact(
        "A-015",
        "match",
        CONNECTION + "an_app_reconnects_with_its_tools_and_handlers_and_its_ids_go_on",
    ),
    Fact("A-016", "match", CONNECTION + "initialized_has_no_params_member"),
    Fact("A-017", "match", HANDSHAKE),
    Fact("A-018", "match", CONNECTION + "any_version_the_host_answers_is_taken"),
    Fact("A-019", "match", CONNECTION + "an_answer_without_what_it_needs_fails_the_handshake"),
    Fact(
        "A-020",
        "exceed",
        CONNECTION + "a_host_that_leaves_out_its_context_is_tolerated",
        "the spec says SHOULD",
    ),
    Fact(
        "A-021",
        "exceed",
        CONNECTION + "values_we_have_never_heard_of_do_not_fail_the_handshake",
        "a newer host must not lose every older View",
    ),
    Fact(
        "A-022",
        "match",
        CONNECTION + "unknown_keys_of_the_context_are_kept_and_of_capabilities_dropped",
    ),
    Fact("A-023", "match", CONNECTION + "a_fixed_size_wins_over_a_maximum"),
    Fact("A-024", "match", CONNECTION + "a_context_that_makes_no_sense_fails_the_handshake"),
    Fact("A-025", "match", CONNECTION + "an_error_to_initialize_fails_the_handshake_and_closes"),
    Fact(
        "A-026",
        "match",
        CONNECTION + "silence_fails_the_handshake_after_the_timeout_and_says_so_to_the_host",
    ),
    Fact(
        "A-027",
        "match",
        CONNECTION + "connecting_twice_is_refused_and_leaves_the_connection_as_it_is",
    ),
    Fact(
        "A-028",
        "match",
        CONNECTION + "an_app_reconnects_with_its_tools_and_handlers_and_its_ids_go_on",
    ),
    Fact("A-029", "match", EARLY),
    Fact("A-030", "match", CONNECTION + "a_context_change_before_the_answer_is_overwritten_by_it"),
    # A3 Events, handler timing, one-shot events, strict mode
    Fact(
        "A-031",
        "match",
        EVENTS + "an_event_that_does_not_exist_is_refused_with_the_names_that_do",
    ),
    Fact("A-032", "match", HANDLERS),
    Fact("A-033", "match", EVENTS + "a_listener_added_twice_runs_twice_and_is_removed_once"),
    Fact(
        "A-034", "differ", HANDLERS, "replacing the assigned handler is an assignment: no warning"
    ),
    Fact(
        "A-035",
        "exceed",
        EVENTS + "a_handler_that_raises_does_not_stop_the_others",
        "each handler runs whatever the others do",
    ),
    Fact("A-036", "match", EVENTS + "an_event_nobody_listens_to_is_not_kept_for_latecomers"),
    Fact("A-037", "match", EVENTS + "an_event_nobody_listens_to_is_not_kept_for_latecomers"),
    Fact(
        "A-038",
        "match",
        EVENTS + "an_event_that_had_a_handler_before_the_handshake_may_get_others_later",
    ),
    Fact("A-039", "exceed", STRICT, "a refused handler is not remembered as one"),
    Fact(
        "A-040",
        "match",
        REQUESTS + "asking_before_the_handshake_has_ended_warns_or_raises_in_strict_mode",
    ),
    Fact(
        "A-041",
        "match",
        REQUESTS + "logs_sizes_pings_and_the_wish_to_close_may_go_out_during_the_handshake",
    ),
    Fact(
        "A-042",
        "exceed",
        REQUESTS + "asking_before_the_handshake_has_ended_warns_or_raises_in_strict_mode",
        "every one of them raises in the same way, when awaited",
    ),
    Fact("A-043", "match", UNCONNECTED),
    Fact("A-044", "differ", HANDLERS, NO_LOW_LEVEL),
    Fact("A-045", "differ", HANDLERS, "there is no 1.x of Transom whose handlers to accept"),
    Fact("A-046", "match", MERGED),
    Fact("A-047", "match", MERGED),
    Fact("A-048", "match", SENSELESS),
    Fact("A-049", "match", DATA),
    Fact("A-050", "match", DATA),
    Fact("A-051", "match", DATA),
    Fact(
        "A-052",
        "exceed",
        EVENTS + "other_notifications_keep_their_place_among_the_views_own",
        "one queue for all notifications",
    ),
    Fact("A-053", "match", DATA),
    # A4 App tools: registration and capability
    Fact(
        "A-054",
        "exceed",
        TOOLS + "a_decorated_function_gives_the_name_the_description_and_the_schemas",
        "also visibility, task support and threads",
    ),
    Fact("A-055", "match", FIELDS),
    Fact("A-056", "match", TOOLS + "a_name_that_is_taken_is_refused"),
    Fact("A-057", "exceed", TOOLS + "any_name_of_the_allowed_letters_works", "no name is special"),
    Fact(
        "A-058",
        "exceed",
        TOOLS + "other_names_are_refused",
        "names are checked, and keep the order of registration",
    ),
    Fact("A-059", "match", AUTO),
    Fact("A-060", "match", CONNECTION + "an_explicit_tools_capability_is_kept_as_it_is"),
    Fact("A-061", "match", AUTO),
    Fact("A-062", "exceed", LATE, "it raises each time and leaves the registry untouched"),
    Fact(
        "A-063",
        "match",
        TOOLS + "registering_after_connect_with_the_capability_works_and_is_told",
    ),
    Fact(
        "A-064",
        "exceed",
        LISTING + "on_list_tools_may_return_a_list_or_a_result_of_structs_or_mappings",
        "a tool handler set before connect declares the capability, as a tool does",
    ),
    Fact(
        "A-065",
        "exceed",
        LISTING + "declared_but_empty_answers_an_empty_list",
        "declaring tools is enough to serve both methods",
    ),
    Fact("A-066", "match", TOOLS + "two_apps_never_see_each_others_tools"),
    # A5 App tools: listing
    Fact("A-067", "match", LISTED),
    Fact(
        "A-068",
        "exceed",
        LISTED,
        "the schema comes from the function, and says that nothing else is taken",
    ),
    Fact(
        "A-069",
        "match",
        CALLS + "a_non_object_output_is_wrapped_in_schema_and_value_alike",
    ),
    Fact("A-070", "exceed", PAGES, "lists are paged"),
    Fact("A-071", "match", PAGES),
    Fact(
        "A-072",
        "exceed",
        LISTING + "a_lazy_schema_that_cannot_be_made_hides_its_tool_only_and_is_surfaced",
        "one bad schema hides one tool",
    ),
    Fact(
        "A-073",
        "exceed",
        TOOLS + "a_definition_that_cannot_be_used_is_refused_and_leaves_no_trace",
        "refused when it is registered",
    ),
    Fact(
        "A-074",
        "exceed",
        CALLS + "a_non_object_output_is_wrapped_in_schema_and_value_alike",
        "schema and value agree",
    ),
    Fact(
        "A-075",
        "exceed",
        TOOLS + "a_definition_that_cannot_be_used_is_refused_and_leaves_no_trace",
        "what is no schema is refused at registration, not at listing",
    ),
    Fact("A-076", "match", LISTED),
    # A6 App tools: calling
    Fact("A-077", "differ", KEYWORDS, "arguments by keyword; a CallContext where one is wanted"),
    Fact("A-078", "match", CALLS + "missing_or_null_arguments_are_an_empty_object"),
    Fact(
        "A-079",
        "differ",
        BAD,
        "defaults are applied, but unknown arguments are named to the model, not dropped",
    ),
    Fact("A-080", "exceed", KEYWORDS, "the function's own signature is the schema"),
    Fact("A-081", "exceed", BAD, "an isError result, so that a model can correct its call"),
    Fact(
        "A-082",
        "exceed",
        CALLS + "an_unknown_tool_is_a_json_rpc_error_that_names_it",
        "-32602, as core MCP servers answer",
    ),
    Fact(
        "A-083",
        "exceed",
        CALLS + "a_disabled_tool_is_refused_with_its_reason",
        "an isError result with the reason",
    ),
    Fact("A-084", "differ", RAISED, "the text of an exception is not for the other side"),
    Fact(
        "A-085",
        "exceed",
        CALLS + "a_tool_error_is_a_result_the_model_can_read",
        "ToolError does it",
    ),
    Fact(
        "A-086",
        "exceed",
        CALLS + "params_without_a_name_are_invalid_params",
        "-32602 with place and reason, for core methods too",
    ),
    Fact("A-087", "match", CALLS + "a_result_is_checked_against_the_output_schema"),
    Fact("A-088", "match", CALLS + "a_result_is_checked_against_the_output_schema"),
    Fact("A-089", "match", CALLS + "an_error_result_is_not_checked_against_the_output_schema"),
    Fact("A-090", "exceed", CALLS + "the_handlers_own_object_is_never_changed", "a copy is sent"),
    Fact(
        "A-091",
        "exceed",
        CALLS + "returning_nothing_is_a_result_with_readable_content",
        "every call has an answer",
    ),
    Fact(
        "A-092",
        "exceed",
        CALLS + "a_result_that_cannot_be_sent_is_an_error_and_the_app_goes_on",
        "what goes out is a result",
    ),
    Fact("A-093", "match", KEYWORDS),
    Fact("A-094", "match", CALLS + "calls_run_side_by_side_and_may_end_out_of_order"),
    Fact(
        "A-095",
        "match",
        CALLS + "a_tool_removed_or_disabled_while_it_runs_completes_its_call",
    ),
    Fact("A-096", "match", CALLS + "cancelling_a_call_stops_the_coroutine"),
    Fact(
        "A-097",
        "exceed",
        CALLS + "closing_cancels_calls_that_run_and_answers_them",
        "the host need not wait for its timeout",
    ),
    Fact("A-098", "match", CALLS + "a_tool_may_call_the_server_while_it_runs"),
    # A7 App tools: lifecycle handle and list_changed
    Fact("A-099", "match", TOOLS + "a_disabled_tool_stays_registered_and_is_not_listed"),
    Fact("A-100", "match", FIELDS),
    Fact(
        "A-101",
        "exceed",
        TOOLS + "renaming_keeps_the_handle_and_its_place_and_refuses_a_taken_name",
        "a handle can rename its tool, and an unknown field is a TypeError",
    ),
    Fact(
        "A-102",
        "exceed",
        TOOLS + "a_schema_given_later_is_listed_and_checked",
        "what is listed is what is checked",
    ),
    Fact(
        "A-103",
        "differ",
        TOOLS + "a_schema_given_later_is_listed_and_checked",
        "without a schema the function's own signature counts again",
    ),
    Fact("A-104", "match", STALE),
    Fact("A-105", "exceed", STALE, "a stale handle tells nobody"),
    Fact("A-106", "match", TOOLS + "only_real_changes_are_told"),
    Fact("A-107", "match", TOOLS + "changes_in_one_turn_of_the_loop_are_told_once"),
    Fact(
        "A-108",
        "exceed",
        TOOLS + "only_real_changes_are_told",
        "real changes only, once in a turn of the event loop",
    ),
    Fact("A-109", "match", QUIET),
    Fact(
        "A-110",
        "match",
        TOOLS + "an_explicit_notice_counts_for_the_changes_of_its_turn",
    ),
    Fact("A-111", "exceed", QUIET, "nothing is sent after the close"),
    Fact("A-112", "exceed", FIELDS, "setting a field is an update, and is told"),
    Fact(
        "A-113",
        "differ",
        TOOLS + "an_explicit_notice_needs_the_declared_capability",
        "a host that was not told to listen does not",
    ),
    # A8 oncalltool / onlisttools versus registerTool
    Fact("A-114", "exceed", FALLBACK, "registered tools first, then the handlers, by name"),
    Fact("A-115", "exceed", FALLBACK, "the order in which they are set does not matter"),
    Fact("A-116", "exceed", FALLBACK, "clearing a handler leaves the registered tools alone"),
    Fact("A-117", "differ", KEEPS, NO_LOW_LEVEL),
    Fact("A-118", "match", LISTING + "on_list_tools_may_page_by_itself"),
    # A9 Requests to the host
    Fact("A-119", "match", REQUESTS + "a_server_tool_is_called_with_a_progress_token"),
    Fact(
        "A-120",
        "match",
        REQUESTS + "a_failed_server_tool_is_a_result_and_a_failed_call_an_error",
    ),
    Fact("A-121", "match", WIRE),
    Fact("A-122", "exceed", WIRE, "list_server_tools and ping; request() for everything else"),
    Fact(
        "A-123",
        "differ",
        REQUESTS + "other_capabilities_are_looked_at_in_strict_mode_only",
        "hosts of 2026-01-26 cannot declare some of them, so only strict mode insists",
    ),
    Fact(
        "A-124",
        "exceed",
        REQUESTS + "sampling_with_tools_needs_the_hosts_capability_too",
        "looked at before sending, as the spec wants",
    ),
    Fact(
        "A-125",
        "exceed",
        REQUESTS + "a_display_mode_the_host_does_not_have_is_not_asked_for",
        "looked at before sending, as the spec wants",
    ),
    Fact("A-126", "match", REQUESTS + "both_forms_of_a_refusal_are_understood"),
    # A10 Notifications, teardown, size
    Fact("A-127", "match", NOTICES),
    Fact("A-128", "exceed", TEARDOWN, "without a handler the answer is {}"),
    Fact("A-129", "exceed", TEARDOWN, "the reason reaches the handler"),
    Fact("A-130", "exceed", TORN, "whatever a handler returns, there is an answer"),
    Fact("A-131", "match", TEARDOWN),
    Fact("A-132", "match", NOTICES),
    Fact("A-133", "differ", NOTICES, NO_DOM),
    Fact("A-134", "differ", NOTICES, NO_DOM),
    # F Tasks
    Fact("F-001", "match", TASKS + "a_handle_of_the_servers_is_passed_through_and_followed_there"),
    Fact(
        "F-002",
        "exceed",
        TASKS + "a_call_that_asks_for_a_task_is_answered_with_its_handle_at_once",
        "tools run as tasks, and tasks/get list result cancel are served",
    ),
    Fact(
        "F-003",
        "exceed",
        TASKS + "a_handle_known_at_once_is_answered_as_the_servers_own",
        "a handle is an answer",
    ),
    Fact(
        "F-004",
        "exceed",
        TASKS + "a_call_that_asks_for_a_task_is_answered_with_its_handle_at_once",
        "task support is a keyword, and listed",
    ),
    Fact("F-005", "match", TASKS + "a_handle_of_the_servers_is_passed_through_and_followed_there"),
    Fact(
        "F-006",
        "match",
        TASKS + "a_tool_that_must_run_as_a_task_says_so",
    ),
    Fact("F-007", "match", CALLS + "cancelling_a_call_stops_the_coroutine"),
]
