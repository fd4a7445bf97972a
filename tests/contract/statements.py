"""Every statement of the five documents that Transom began with: where it lives, what proves it.

`scripts/statements.py` makes docs/from-the-documents.md of this.
"""

from typing import NamedTuple


class Statement(NamedTuple):
    """One numbered statement."""

    id: str
    says: str
    where: str
    """`FILE:NAME` below src/transom, with blanks between several."""
    tests: tuple[str, ...] = ()
    why: str = ""
    """What there is in the place of a test, or what is different with us."""


class Document(NamedTuple):
    """Whose statements have the same beginning of their id."""

    id: str
    title: str
    count: int


DOCUMENTS = [
    Document("000", "App tools: letting the host call tools inside your View", 45),
    Document("001", "onlisttools", 14),
    Document("002", "WebMCP: tool definitions that respond to state", 28),
    Document("003", "Tool registration for Apps (the pull request)", 66),
    Document("004", "The server's side of an MCP App: a checklist", 19),
]

_SAMPLES = "tests/contract/test_samples.py::test_"
_CALLS = "tests/view/test_app_calls.py::test_"
_CONNECTION = "tests/view/test_app_connection.py::test_"
_EVENTS = "tests/view/test_app_events.py::test_"
_LISTING = "tests/view/test_app_listing.py::test_"
_REQUESTS = "tests/view/test_app_requests.py::test_"
_TASKS = "tests/view/test_app_tasks.py::test_"
_TOOLS = "tests/view/test_app_tools.py::test_"
_EXTRAS = "tests/view/test_app_host_extras.py::test_"
_JS_MESSAGES = "tests/browser/test_transomjs_messages.py::test_"
_JS_SAMPLES = "tests/browser/test_transomjs_samples.py::test_"
_JS_STANDARD = "tests/browser/test_transomjs_standard.py::test_"
_JS_TASKS = "tests/browser/test_transomjs_tasks.py::test_"
_JS_TOOLS = "tests/browser/test_transomjs_tools.py::test_"
_JS_TYPES = "tests/browser/test_transomjs_types.py::test_"
_JS_WEBMCP = "tests/browser/test_transomjs_webmcp.py::test_"
_JS_WIRE = "tests/browser/test_transomjs_wire.py::test_"
_REACT = "tests/browser/test_react.py::test_"
_BRIDGE = "tests/host/test_bridge.py::test_"
_BRIDGE_TOOLS = "tests/host/test_bridge_tools.py::test_"
_HOST = "tests/host/test_host.py::test_"
_POLICY = "tests/host/test_policy.py::test_"
_SURFACE = "tests/host/test_surface.py::test_"
_VIEWS = "tests/host/test_views.py::test_"
_VIEW_SERVER = "tests/host/test_view_server.py::test_"
_GATEWAY = "tests/gateway/test_views.py::test_"
_REACH = "tests/gateway/test_reach.py::test_"
_SEATS = "tests/web/test_seat.py::test_"
_OFFICIAL_VIEWS = "tests/contract/test_official_views.py::test_"
_OFFICIAL = "tests/gateway/test_official.py::test_"
_CHECK = "tests/check/test_rules.py::test_"
_SHAPES = "tests/server/test_shapes.py::test_"
_SERVER_RESULTS = "tests/server/test_results.py::test_"
_FUNCTIONS = "tests/server/test_functions.py::test_"
_GIVEN = "tests/server/test_given_schemas.py::test_"
_CAPABILITIES = "tests/server/test_capabilities.py::test_"
_EDITOR = "tests/examples/test_editor.py::test_"
_BUDGET = "tests/examples/test_budget.py::test_"
_SCHEMAS = "tests/test_schema_documents.py::test_"
_BROWSER_CHANNEL = "tests/view/test_browser_channel.py::test_"
_MUSIC = "tests/examples/test_music.py::test_"
_CHECKED = "tests/check/test_official_servers.py::test_"
_SEVERAL_VIEWS = "tests/gateway/test_several_views.py::test_"
_HOST_OFFICIAL_VIEW = "tests/interop/test_host_official_view.py::test_"
_TRANSPARENCY = "tests/gateway/test_transparency.py::test_"
_BRIDGE_APP = "tests/host/test_bridge_app.py::test_"
_PAGES_SHOWN = "tests/host/test_renderers.py::test_"
_RENDERERS = "tests/browser/test_renderers.py::test_"
_DRIVING = "tests/browser/test_driving.py::test_"
_DRIVING_GATEWAY = "tests/gateway/test_driving.py::test_"
_ORDERS = "tests/examples/test_orders.py::test_"
_HOST_LOAD = "tests/host/test_host_load.py::test_"
_OFFICIAL_SCHEMA = "tests/protocol/test_official_schema.py::test_"
_MISTAKES = "tests/server/test_mistakes.py::test_"
_AGENTS = "tests/agents/test_frameworks.py::test_"
_SANDBOX = "tests/browser/test_sandbox.py::test_"

# The samples, through Host and gateway, with transom.js in Chromium and as an App in Python.
END_TO_END = _SAMPLES + "the_example_from_end_to_end"
STATIC = _SAMPLES + "a_static_list"
BY_NAME = _SAMPLES + "tools_that_are_handled_by_name"
ERRORS = _SAMPLES + "errors_are_returned"
SELECTION = _SAMPLES + "a_list_that_follows_the_state_of_the_page"
REGISTRY = _SAMPLES + "a_registry_that_changes"
STRAWMAN = _SAMPLES + "the_strawman_of_webmcp"
HANDLE = _SAMPLES + "a_handle_updates_disables_enables_and_removes"
PUSHED = _SAMPLES + "a_page_that_fetches_its_data_pushes_the_schema"
LAZY = _SAMPLES + "a_lazy_schema_is_pulled_at_every_listing"
GRANTS = _SAMPLES + "a_grant_lasts_through_a_toggle_and_ends_with_the_registration"
HOOKS = _SAMPLES + "a_page_with_hooks"
ORDERS = _SAMPLES + "a_helper_of_the_server_answers_its_view_and_not_the_model"

# What proves several statements, on the wire.
THEIR_HOOKS = _REACT + "a_page_written_for_their_hooks_runs_in_our_host_with_theirs_and_with_ours"
GOOD_SCHEMAS = _JS_STANDARD + "schemas_that_say_what_they_are_need_nothing"
OLDER_ZOD = _JS_STANDARD + "zod_of_every_version_needs_nothing"
OPEN_SCHEMAS = _JS_STANDARD + "schemas_of_others_are_open_and_hold_arguments_to_themselves"
SAMPLES_WITH_ZOD = _JS_SAMPLES + "the_example_from_end_to_end"
SAMPLES_WITH_VALIBOT = _JS_SAMPLES + "the_examples_with_valibot_whose_schemas_are_not_listed"
SAMPLES_COMPILE = _JS_TYPES + "samples_for_the_official_sdk_compile_with_every_zod"
GIVEN_SCHEMAS = _JS_STANDARD + "what_is_given_beside_them_is_the_way_out"
LATE_JS = _JS_WIRE + "a_handler_of_tools_after_connect_without_the_capability_throws"
LATE = _TOOLS + "registering_after_connect_without_the_capability_raises_every_time"
ONE_NOTICE_JS = _JS_TOOLS + "changes_of_one_turn_are_told_once_and_an_explicit_notice_is_that_one"
ONE_NOTICE = _TOOLS + "changes_in_one_turn_of_the_loop_are_told_once"
NO_NOTICE_JS = _JS_TOOLS + "an_explicit_capability_is_kept_and_then_nothing_is_told"
NO_NOTICE = _TOOLS + "an_explicit_notice_needs_the_declared_capability"
EARLY_JS = _JS_TOOLS + "nothing_is_told_before_the_handshake_or_after_the_close"
EARLY = _TOOLS + "changes_before_the_handshake_and_after_the_close_are_not_told"
HOST_TAKES_JS = _JS_WIRE + "a_host_that_has_tools_and_takes_no_notices_gets_none"
HOST_TAKES = _EXTRAS + "only_hosts_that_take_notices_of_changes_are_sent_them"
REGISTRY_FIRST_JS = _JS_TOOLS + "calls_go_to_the_registry_first_and_then_to_oncalltool"
REGISTRY_FIRST = _LISTING + "calls_go_to_the_registry_first_and_then_to_on_call_tool"
THROWN_JS = _JS_TOOLS + "what_a_callback_throws_stays_in_the_page_unless_it_was_meant"
THROWN = _CALLS + "anything_else_a_handler_raises_is_reported_and_its_text_stays_here"
OUTPUT_JS = _JS_TOOLS + "output_is_held_to_its_schema_and_wrapped_if_it_is_no_object"
OUTPUT = _CALLS + "a_result_is_checked_against_the_output_schema"
ERROR_OUTPUT = _CALLS + "an_error_result_is_not_checked_against_the_output_schema"
ARGUMENTS_JS = _JS_TOOLS + "bad_arguments_are_a_result_that_lists_the_problems_with_their_places"
ARGUMENTS = _CALLS + "bad_arguments_are_an_error_result_that_lists_every_problem_with_its_place"
NO_ARGUMENTS_JS = (
    _JS_TOOLS + "arguments_reach_the_callback_with_defaults_and_missing_ones_are_an_object"
)
NO_ARGUMENTS = _CALLS + "missing_or_null_arguments_are_an_empty_object"
STALE_JS = _JS_TOOLS + "a_stale_handle_does_nothing_and_tells_nobody"
STALE = _TOOLS + "a_stale_handle_does_nothing_and_tells_nobody"
DECLARES_JS = _JS_TOOLS + "the_first_tool_declares_the_capability_and_leaves_the_callers_object"
DECLARES = _CONNECTION + "the_first_tool_declares_the_tools_capability_without_touching_the_callers"
LISTED_JS = _JS_TOOLS + "tools_are_listed_in_the_order_of_registration_with_what_was_said"
LISTED = _LISTING + "tools_are_listed_in_the_order_of_registration_with_what_was_said_of_them"
BAD_ENTRIES_JS = _JS_WIRE + "bare_names_are_tools_and_what_is_none_is_left_out_and_told"
BAD_ENTRIES = _LISTING + "what_on_list_tools_gets_wrong_is_left_out_and_reported"
TAKEN_JS = _JS_TOOLS + "names_are_checked"
TAKEN = _TOOLS + "a_name_that_is_taken_is_refused"
DISABLED_JS = (
    _JS_TOOLS + "a_disabled_tool_stays_registered_is_not_listed_and_refused_with_its_reason"
)
DISABLED = _TOOLS + "a_disabled_tool_stays_registered_and_is_not_listed"
THREE_THINGS_JS = _JS_TOOLS + "update_tool_changes_three_things_by_name_and_says_how_to_do_the_rest"
THREE_THINGS = _TOOLS + "update_tool_changes_availability_description_and_schema_by_name"
NOT_THE_REST = _TOOLS + "update_tool_refuses_the_rest_and_says_how_to_do_it"
BROKEN_JS = _JS_TOOLS + "one_that_cannot_be_made_hides_its_tool_only_and_says_why"
BROKEN = _LISTING + "a_lazy_schema_that_cannot_be_made_hides_its_tool_only_and_is_surfaced"
GONE = _JS_WEBMCP + "what_is_gone_says_what_to_use_now"
COME_AND_GO = _JS_WEBMCP + "tools_come_and_go_by_signal_and_by_name_and_every_change_is_an_event"
DECLARED_TYPES = _JS_TYPES + "the_declarations_compile_and_a_page_that_uses_all_of_them_does"
OFFICIAL = _OFFICIAL + "an_official_servers_view_opens_and_its_tools_are_called"
SCRIPTS = _OFFICIAL_VIEWS + "a_view_that_runs_the_models_code_tells_it_what_is_wrong_with_it"
BAD_CODE = _OFFICIAL_VIEWS + "a_view_that_is_opened_with_bad_code_says_so"
MODEL_HIDES = _SURFACE + "tools_that_are_not_for_the_model_are_not_there"
ONLY_LISTED = _REACH + "only_what_the_view_lists_for_the_model_is_sent_to_it"
WHILE_OPENING = _REACH + "what_a_view_says_while_it_opens_is_in_the_result_that_opened_it"
NO_TOOLS = _VIEWS + "a_view_without_tools_is_never_asked_for_them"
NO_DOM = "tests/browser/test_sandbox.py::test_a_view_sees_neither_the_stage_nor_another_view"

_APP = "view/app.py:App."
_HANDLE = "view/tools.py:RegisteredTool."
_JS = "js/src/app.ts:"
_JS_TOOL = "js/src/tools.ts:"
_MCP = "js/src/webmcp.ts:"
REGISTERS = f"{_APP}register_tool {_JS}registerTool"
LISTS = f"{_APP}on_list_tools {_JS}onlisttools"
ANSWERS = f"{_APP}on_call_tool {_JS}oncalltool"
NOTIFIES = f"{_APP}send_tool_list_changed {_JS}sendToolListChanged"
CONNECTS = f"{_APP}connect {_JS}connect"
UPDATES = f"{_APP}update_tool {_MCP}updateTool"
ASKS_AGAIN = "host/host.py:Host.list_tools gateway/client_views.py:ClientViews.tools"
BUILDS = "view/listing.py:Listing js/src/tool_service.ts:list"

STATEMENTS = [
    # --- 000: app tools ------------------------------------------------------------------------
    Statement("000-1", "A View registers tools that the host and its model call.", REGISTERS,
              (REGISTRY, END_TO_END)),
    Statement("000-2", "A View calls tools of its server (`callServerTool`).",
              f"{_APP}call_server_tool {_JS}callServerTool "
              "host/views/view_server.py:ViewServer.forward",
              (ORDERS, _JS_MESSAGES + "each_has_its_method_and_params")),
    Statement("000-3", "Tools for the DOM and the selection.", REGISTERS,
              (END_TO_END, _EDITOR + "the_model_reads_what_the_user_selects_with_the_keyboard")),
    Statement("000-4", "Tools for the state of a form.", REGISTERS,
              (ERRORS, _BUDGET + "the_model_moves_a_slider_and_the_server_keeps_it")),
    Statement("000-5", "Tools for local computation.", REGISTERS,
              (_BUDGET + "a_comparison_is_an_answer_and_a_second_ring_in_the_chart",)),
    Statement("000-6", "Tools for what the user wants: save, confirm.", REGISTERS,
              (REGISTRY, _EDITOR + "saving_is_offered_while_there_is_something_to_save",
               _REACH + "how_long_a_call_may_take_is_set_by_tool")),
    Statement("000-7", "Two equivalent patterns: a static list, a dynamic registry.",
              f"{LISTS} {REGISTERS}", (STATIC, REGISTRY)),
    Statement("000-8", "Static: the host lists with `onlisttools`, calls with `oncalltool`.",
              f"{LISTS} {ANSWERS}", (STATIC,)),
    Statement("000-9", "Dynamic: a handle with `enable`, `disable`, `remove` and `update`.",
              f"view/tools.py:RegisteredTool {_JS}registerTool", (HANDLE,)),
    Statement("000-10", "The SDK builds the list and dispatches calls.",
              f"{BUILDS} view/tool_service.py:ToolService", (REGISTRY,)),
    Statement("000-11", "The hook `useAppTools`.", "js/src/react.ts:useAppTools",
              (HOOKS, THEIR_HOOKS, _REACT + "fixed_lists_of_several_components_are_one")),
    Statement("000-12", "The hook `useRegisterTool`.", "js/src/react.ts:useRegisterTool",
              (HOOKS, THEIR_HOOKS,
               _REACT + "what_changes_between_renders_changes_the_tool_and_keeps_it")),
    Statement("000-13", "The host asks only Views that declared tools.",
              "host/views/bridge.py:Bridge.list_tools",
              (NO_TOOLS, _BRIDGE + "a_view_without_tools_is_not_asked_for_them")),
    Statement("000-14", "`new App(info, { tools: { listChanged: true } })` declares them.",
              f"view/app.py:App {_JS}App",
              (_JS_SAMPLES + "the_example_from_end_to_end",
               _CONNECTION
               + "tools_that_are_declared_and_not_registered_yet_are_declared_as_given")),
    Statement("000-15", "`listChanged` is for lists that change; the host lists again on notice.",
              NOTIFIES, (SELECTION, NO_NOTICE_JS, NO_NOTICE)),
    Statement("000-16", "A tool needs a name and an `inputSchema` of type object.",
              "view/listing.py:Listing js/src/tool_service.ts:list", (BAD_ENTRIES_JS, BAD_ENTRIES)),
    Statement("000-17", "The sample of `onlisttools`.", LISTS, (STATIC,)),
    Statement("000-18", "Tools take any Standard Schema (Zod, ArkType, Valibot).",
              f"{_JS}registerTool schema/schema.py:Validator",
              (GOOD_SCHEMAS, OLDER_ZOD, OPEN_SCHEMAS, GIVEN_SCHEMAS, SAMPLES_WITH_ZOD,
               SAMPLES_WITH_VALIBOT,
               _SCHEMAS + "an_object_describes_and_validates_by_itself"),
              "one that cannot be converted to JSON Schema is listed without its parameters"),
    Statement("000-19", "The registry fills `onlisttools` and `oncalltool`.",
              f"{BUILDS} view/tool_service.py:ToolService", (REGISTRY,)),
    Statement("000-20", "The sample of `registerTool` with Zod.", REGISTERS, (REGISTRY,)),
    Statement("000-21", "`update` changes name, description, schemas and annotations.",
              f"{_HANDLE}update {_JS_TOOL}update",
              (HANDLE, _JS_TOOLS + "a_handle_changes_names_schemas_and_the_rest",
               _TOOLS + "setting_a_field_is_an_update")),
    Statement("000-22", "`enable` lists the tool again.", f"{_HANDLE}enable {_JS_TOOL}enable",
              (HANDLE, REGISTRY)),
    Statement("000-23", "`disable` hides it; it stays registered.",
              f"{_HANDLE}disable {_JS_TOOL}disable", (HANDLE, DISABLED_JS, DISABLED)),
    Statement("000-24", "`remove` removes it for good.",
              f"{_HANDLE}remove {_JS_TOOL}remove", (HANDLE,)),
    Statement("000-25", "Register before `connect`: what comes late misses the first listing.",
              CONNECTS, (LATE_JS, LATE,
              _TOOLS + "registering_after_connect_with_the_capability_works_and_is_told"),
              "late without the capability is an error; with it the host is told"),
    Statement("000-26", "A result has `content`, and `structuredContent` where that helps.",
              "results.py:to_result js/src/results.ts:structuredContent",
              (HANDLE, _JS_TOOLS + "whatever_a_callback_returns_becomes_a_result")),
    Statement("000-27", "The sample of `oncalltool`: a switch that throws by default.", ANSWERS,
              (STATIC, _JS_SAMPLES + "the_example_from_end_to_end",
               _LISTING + "on_call_tool_that_raises_is_answered_as_a_tool_is")),
    Statement("000-28", "The registry is looked at first, then `oncalltool`.",
              f"view/tool_service.py:ToolService {_JS}oncalltool",
              (END_TO_END, REGISTRY_FIRST_JS, REGISTRY_FIRST)),
    Statement("000-29", "What is thrown fails the request.",
              "view/invoke.py:Invocation js/src/errors.ts:ProtocolError",
              (_SAMPLES
               + "what_goes_wrong_in_a_page_is_told_to_the_host_and_never_to_the_model",
               THROWN_JS, THROWN),
              "the text of an error that was not meant for the model does not reach it"),
    Statement("000-30", "`isError: true` is an error that the model reads.",
              "errors.py:ToolError js/src/errors.ts:ToolError", (ERRORS,)),
    Statement("000-31", "The sample of `submit-form`.", ANSWERS, (ERRORS,)),
    Statement("000-32", "The host is notified after register, enable, disable and remove.",
              NOTIFIES, (HANDLE, ONE_NOTICE_JS, ONE_NOTICE)),
    Statement("000-33", "The host lists again, and the model has the tools at its next turn.",
              ASKS_AGAIN, (REGISTRY, _VIEWS + "a_views_change_is_seen_by_the_next_listing",
                           _GATEWAY + "many_changes_are_told_as_one")),
    Statement("000-34", "`sendToolListChanged` notifies the host.", NOTIFIES,
              (SELECTION, ONE_NOTICE_JS, _TOOLS
               + "an_explicit_notice_counts_for_the_changes_of_its_turn")),
    Statement("000-35", "It works when the View declared `listChanged` and the host has it.",
              NOTIFIES, (NO_NOTICE_JS, NO_NOTICE, HOST_TAKES_JS, HOST_TAKES)),
    Statement("000-36", "The sample of `save`, enabled while there is something to save.",
              REGISTERS, (REGISTRY,)),
    Statement("000-37", "`registerTool` without an `inputSchema`.", REGISTERS, (REGISTRY,)),
    Statement("000-38", "`_meta.ui.visibility` says who may call a tool.",
              "host/tools/tool_visibility.py:model_may_call "
              "host/tools/tool_visibility.py:view_may_call",
              (REGISTRY, _TOOLS + "visibility_is_written_where_hosts_look_for_it")),
    Statement("000-39", "By default that is the model and the app.",
              "host/tools/tool_visibility.py:model_may_call "
              "host/tools/tool_visibility.py:view_may_call",
              (END_TO_END, _POLICY + "an_explicit_visibility_counts_as_it_stands")),
    Statement("000-40", "`[\"app\"]` keeps a tool out of the model's list.",
              "host/tools/surface.py:Surface.put_view host/views/view.py:View._call",
              (REGISTRY, MODEL_HIDES, ONLY_LISTED)),
    Statement("000-41", "The sample of `refresh`, for the user interface only.", REGISTERS,
              (REGISTRY,)),
    Statement("000-42", "The example from end to end.", f"view/app.py:App {_JS}App", (END_TO_END,)),
    Statement("000-43", "`connect()` needs no arguments.", CONNECTS,
              (END_TO_END, _BROWSER_CHANNEL + "an_app_connects_to_its_parent_by_itself_and_again")),
    Statement("000-44", "`sendToolListChanged` announces a tool that was added.", NOTIFIES,
              (END_TO_END,)),
    Statement("000-45", "Related pages: the handlers, tool `_meta`, the React hooks.",
              "js/src/react.ts:useApp", (),
              "a list of links: what they lead to is in 000-8 to 000-41"),

    # --- 001: onlisttools ------------------------------------------------------------------------
    Statement("001-1", "`onlisttools` returns the tools of the View.", LISTS, (STATIC,)),
    Statement("001-2", "The host discovers tools, then calls them by `oncalltool`.",
              f"{LISTS} {ANSWERS}", (STATIC, BY_NAME)),
    Statement("001-3", "The tools capability must be declared.", f"view/app.py:App {_JS}App",
              (LATE_JS, _JS_WIRE
               + "with_the_capability_it_is_in_time_and_before_connect_it_declares_it",
               NO_TOOLS, _BRIDGE + "a_view_without_tools_is_not_asked_for_them"),
              "a handler that is set before `connect` declares it"),
    Statement("001-4", "With `listChanged`, the host lists again on notice.", NOTIFIES,
              (SELECTION,)),
    Statement("001-5", "It is a request: the host waits for the answer.",
              "host/views/bridge.py:Bridge.list_tools",
              (SELECTION, _BRIDGE_TOOLS + "all_pages_together_have_one_time_limit")),
    Statement("001-6", "It returns names or definitions.", BUILDS, (BY_NAME, BAD_ENTRIES_JS)),
    Statement("001-7", "Its signature is `(params, extra)`.", LISTS,
              (_LISTING + "on_list_tools_may_page_by_itself",
               _JS_TOOLS + "onlisttools_gets_the_params_and_what_belongs_to_the_request")),
    Statement("001-8", "The params have a cursor.", BUILDS,
              (_LISTING + "on_list_tools_may_page_by_itself",
               _JS_TOOLS + "pages_hold_a_hundred_tools_and_miss_none")),
    Statement("001-9", "It returns `Tool[]`; description and annotations are optional.",
              "types.py:Tool", (BY_NAME, STATIC, LISTED)),
    Statement("001-10", "Handlers are set before `connect`.", CONNECTS, (LATE_JS, STATIC)),
    Statement("001-11", "The sample of a static list.", LISTS, (STATIC, BY_NAME)),
    Statement("001-12", "The sample that follows `selectionchange`.", LISTS,
              (SELECTION, SAMPLES_COMPILE)),
    Statement("001-13", "The sample of the pair `onlisttools`, `oncalltool`.",
              f"{LISTS} {ANSWERS}", (BY_NAME,)),
    Statement("001-14", "What is listed must be handled.", ANSWERS,
              (BY_NAME, _LISTING + "on_call_tool_that_raises_is_answered_as_a_tool_is",
               _JS_TOOLS + "calls_go_to_the_registry_first_and_then_to_oncalltool")),

    # --- 002: WebMCP ---------------------------------------------------------------------------
    Statement("002-1", "`inputSchema` may be a function, called when tools are listed.",
              f"{_HANDLE}lazy {_JS_TOOL}inputSchema", (STRAWMAN, LAZY)),
    Statement("002-2", "A tool may be registered disabled.", f"{REGISTERS} {_MCP}disabled",
              (STRAWMAN,)),
    Statement("002-3", "`updateTool` enables and disables.", UPDATES, (STRAWMAN,)),
    Statement("002-4", "A tool stays the same through that.",
              f"{_HANDLE}enabled host/asking/grants.py:Grants",
              (GRANTS, _JS_WIRE
               + "a_registration_has_a_number_of_its_own_that_no_change_takes_away")),
    Statement("002-5", "The strawman runs as written.", f"{_MCP}registerTool",
              (STRAWMAN, _JS_WEBMCP + "the_sample_runs_as_written_in_a_page_that_has_an_app",
               _JS_WEBMCP + "the_sample_runs_as_written_and_the_browser_has_its_tools_too")),
    Statement("002-6", "The function is called each time an agent is shown the tool.", ASKS_AGAIN,
              (LAZY,)),
    Statement("002-7", "It is synchronous.", f"view/tools.py:RegisteredTool {_JS_TOOL}inputSchema",
              (_TOOLS + "an_async_lazy_schema_is_refused_at_registration", BROKEN_JS)),
    Statement("002-8", "Disabled tools are visible to introspection.",
              f"{_APP}tools {_MCP}tools host/views/view.py:View.disabled_tools",
              (GRANTS, _JS_WEBMCP + "a_developer_sees_every_tool_and_a_model_only_what_it_may_call",
               DISABLED)),
    Statement("002-9", "They are hidden from the model.", "host/tools/surface.py:Surface.put_view",
              (STRAWMAN, HANDLE)),
    Statement("002-10", "They are rejected when called.",
              f"view/tool_service.py:ToolService {_JS_TOOL}disabled",
              (STRAWMAN, DISABLED_JS, GRANTS)),
    Statement("002-11", "`updateTool` changes `disabled`, `description` and `inputSchema`.",
              UPDATES, (PUSHED, THREE_THINGS_JS, THREE_THINGS)),
    Statement("002-12", "It changes neither `execute` nor `annotations` nor `name`.", UPDATES,
              (THREE_THINGS_JS, NOT_THE_REST)),
    Statement("002-13", "The music app: ids of the tracks and playlists there are.",
              f"{REGISTERS} {_MCP}registerTool",
              (STRAWMAN, _MUSIC + "a_track_that_joins_the_library_joins_the_schemas",
               _MUSIC + "removing_from_the_queue_is_offered_while_there_is_a_queue")),
    Statement("002-14", "`provideContext` is the workaround there was.", f"{_MCP}provideContext",
              (GONE,), "gone from WebMCP: calling it says what to use now"),
    Statement("002-15", "Availability is pushed at once.", f"{UPDATES} {NOTIFIES}",
              (STRAWMAN, ONE_NOTICE_JS, ONE_NOTICE)),
    Statement("002-16", "Schemas are pulled when a prompt is put together.", ASKS_AGAIN, (LAZY,)),
    Statement("002-17", "Pages that fetch their data push it with `updateTool`.", UPDATES,
              (PUSHED,)),
    Statement("002-18", "A call is validated against what is true now.",
              f"{_HANDLE}_schema {_JS_TOOL}inputSchema", (STRAWMAN, LAZY)),
    Statement("002-19", "What is out of date is so from one listing to the next only.", ASKS_AGAIN,
              (LAZY,)),
    Statement("002-20", "To replace a tool is to unregister and register: another tool.",
              f"{_HANDLE}remove host/asking/grants.py:Grants",
              (GRANTS, _JS_WIRE
               + "a_registration_has_a_number_of_its_own_that_no_change_takes_away")),
    Statement("002-21", "`unregisterTool` removes a tool.",
              f"{_MCP}unregisterTool {_HANDLE}remove", (COME_AND_GO, HANDLE)),
    Statement("002-22", "Open: does a grant last through a toggle? Yes.",
              "host/asking/grants.py:Grants",
              (GRANTS, _HOST
               + "what_was_allowed_for_good_is_not_asked_again_even_after_it_was_disabled")),
    Statement("002-23", "Open: what if a lazy schema throws? Its tool is left out, and it is told.",
              f"{_HANDLE}error {_JS}onerror host/host.py:Host.on_view_problem",
              (_SAMPLES + "a_lazy_schema_that_throws_takes_its_tool_away_until_it_does_not",
               _EXTRAS + "a_schema_and_a_handler_that_raise_are_told_to_a_host_that_wants_to_know",
               _JS_WIRE + "what_goes_wrong_in_a_page_is_told_once", BROKEN_JS, BROKEN)),
    Statement("002-24", "Open: is `toolchange` for everyone? Yes.",
              f"{_APP}on_tool_change {_MCP}toolchange",
              (COME_AND_GO, _JS_WEBMCP + "the_event_has_a_handler_of_its_own",
               _EVENTS + "a_tool_change_reaches_everyone_who_listens")),
    Statement("002-25", "`navigator.modelContextTesting` has `toolchange`.",
              f"{_MCP}modelContextTesting", (GONE,),
              "gone from WebMCP: using it says what to use now"),
    Statement("002-26", "`list_changed` of MCP is the push counterpart.", NOTIFIES,
              (SELECTION, _BRIDGE_TOOLS + "a_views_list_changed_reaches_the_host")),
    Statement("002-27", "A registered tool is never overwritten silently.", REGISTERS,
              (_JS_WEBMCP + "mistakes_are_rejections_and_change_nothing", TAKEN_JS, TAKEN)),
    Statement("002-28", "`execute` may be a method in shorthand.", f"{_MCP}registerTool",
              (STRAWMAN,)),

    # --- 003: the pull request -----------------------------------------------------------------
    Statement("003-1", "`registerTool` takes input and output schemas.", REGISTERS,
              (OUTPUT_JS, OUTPUT, END_TO_END)),
    Statement("003-2", "`oncalltool` is set by assignment.", ANSWERS, (STATIC,)),
    Statement("003-3", "`onlisttools` is set by assignment.", LISTS, (STATIC,)),
    Statement("003-4", "`sendToolListChanged` notifies of changes.", NOTIFIES, (SELECTION,)),
    Statement("003-5", "Tools are enabled, disabled, updated and removed.",
              f"view/tools.py:RegisteredTool {_JS}registerTool", (HANDLE,)),
    Statement("003-6", "The host calls a View's tools.",
              "host/views/bridge.py:Bridge.call_tool host/host.py:Host.call_tool",
              (END_TO_END, _BRIDGE_TOOLS + "a_call_brings_its_result")),
    Statement("003-7", "The host lists a View's tools.",
              "host/views/bridge.py:Bridge.list_tools host/host.py:Host.list_tools",
              (END_TO_END, _BRIDGE_TOOLS + "listing_follows_every_page")),
    Statement("003-8", "A listing is read as the result of a listing.",
              "host/views/view_tools.py:ToolDefinitions.list_all",
              (_BRIDGE_TOOLS + "an_answer_that_is_no_list_of_tools_is_an_invalid_result",)),
    Statement("003-9", "Input and output are validated.",
              "view/tool_service.py:ToolService js/src/json_schema.ts:faultsOf",
              (END_TO_END, ARGUMENTS_JS, ARGUMENTS, OUTPUT_JS, OUTPUT)),
    Statement("003-10", "Registered tools need no handlers of their own.",
              f"{BUILDS} view/tool_service.py:ToolService", (REGISTRY,)),
    Statement("003-11", "Listings have whole definitions with JSON Schemas.", BUILDS,
              (LISTED_JS, LISTED, END_TO_END)),
    Statement("003-12", "Several Apps do not see each other's tools.",
              f"view/app.py:App {_JS}App",
              (_JS_TOOLS + "two_apps_do_not_see_each_others_tools",
               _TOOLS + "two_apps_never_see_each_others_tools")),
    Statement("003-13", "`inputSchema` is always an object.", BUILDS, (LISTED_JS, LISTED)),
    Statement("003-14", "Only enabled tools are listed.", BUILDS, (HANDLE,)),
    Statement("003-15", "A host asks a View for a screenshot.",
              "host/views/view.py:View.screenshot",
              (_RENDERERS + "a_view_is_shown_called_and_pictured",
               _GATEWAY + "a_picture_of_a_view_is_an_image"),
              "dropped in the course of the pull request: the browser takes the picture, and the "
              "View has no part in it"),
    Statement("003-16", "A host clicks in a View.", "host/views/view.py:View.act",
              (_DRIVING + "controls_are_used_with_a_real_mouse_and_keyboard_without_a_window",
               _DRIVING + "controls_are_used_by_events_that_their_page_notices",
               _DRIVING_GATEWAY + "the_page_of_a_server_without_view_tools_is_used_in_both_eras"),
              "dropped in the course of the pull request: the View has no part in it"),
    Statement("003-17", "The map server's View has tools.", "host/host.py:Host.call_tool",
              (_OFFICIAL_VIEWS + "the_map_goes_where_the_model_says_and_tells_where_it_is",),
              "a stand-in for CesiumJS, which its page loads from the network"),
    Statement("003-18", "The PDF server's View has tools.", "host/host.py:Host.call_tool",
              (_OFFICIAL + "the_model_reads_and_turns_the_pages_of_a_pdf",),
              "the server that was published offers them as one, `interact`"),
    Statement("003-19", "The budget server's View has tools.", "host/host.py:Host.call_tool",
              (OFFICIAL, _OFFICIAL + "a_budget_that_the_model_sets_is_set_in_the_view")),
    Statement("003-20", "The shadertoy server's View has tools, and sends what does not compile.",
              "host/host.py:Host.model_context", (OFFICIAL, SCRIPTS, BAD_CODE)),
    Statement("003-21", "The wiki server's View has tools.", "host/host.py:Host.call_tool",
              (OFFICIAL,)),
    Statement("003-22", "The threejs server's View has tools, and sends errors of the scene.",
              "host/host.py:Host.model_context", (OFFICIAL, SCRIPTS, BAD_CODE)),
    Statement("003-23", "Descriptions say that tools are found with `list_widget_tools`.",
              "host/tools/indirect_tools.py:INDIRECT_TOOLS",
              (_GATEWAY + "a_client_that_never_lists_again_calls_through_call_view_tool",
               _HOST + "two_tools_list_and_call_every_views_tools"),
              "the tool is named `list_view_tools` here, and the result of the call that opens a "
              "View says so"),
    Statement("003-24", "Twenty example servers.", "check/__init__.py:check",
              (_CHECKED + "an_official_server_is_checked_without_a_false_alarm", OFFICIAL),
              "`make compat` shows all of their Views and writes down what each did"),
    Statement("003-25", "The first `registerTool` declares the capability.", REGISTERS,
              (STRAWMAN, DECLARES_JS, DECLARES)),
    Statement("003-26", "`registerTool` at the top of a module does not throw.", REGISTERS,
              (REGISTRY, DECLARES_JS)),
    Statement("003-27", "A server's own tool serves hosts that do not know Views' tools.",
              "server/views.py:Views.tool",
              (OFFICIAL, _CAPABILITIES + "in_memory", _SHAPES
               + "a_plain_tool_is_only_marked_as_the_models_alone")),
    Statement("003-28", "Asked: what if two Views have the same tool? They are told apart.",
              "host/tools/tool_names.py:owned_name",
              (_SURFACE + "two_views_with_the_same_tools_are_told_apart",
               _VIEWS + "two_views_of_one_resource_never_mix",
               _SEVERAL_VIEWS
               + "views_of_two_servers_are_told_apart_and_close_with_their_own_server")),
    Statement("003-29", "Asked: does the older View learn that it is not called any more?",
              "host/views/view.py:View.close",
              (_VIEWS + "closing_asks_the_view_to_wind_up_first_and_takes_its_tools_away",),
              "both stay callable; a View that goes is told so by its teardown"),
    Statement("003-30", "Asked: how long does a View live?", "host/open_views.py:OpenViews",
              (_VIEWS + "the_least_recently_used_view_makes_room_for_a_new_one",
               _VIEWS + "a_pinned_view_stays_and_an_unpinned_one_goes",
               _VIEWS + "a_closed_view_is_reopened_under_its_id_with_its_input_and_result")),
    Statement("003-31", "Asked: what does it cost to keep Views alive?",
              "host/open_views.py:OpenViews",
              (_HOST_LOAD + "memory_per_view_is_within_its_budget",
               _VIEWS + "views_that_open_at_once_stay_within_the_limit"),
              "the test counts what the host keeps; in Chromium, where each View has a page of its "
              "own, it is about 16 MB"),
    Statement("003-32", "Wished: a View asks to stay.",
              f"{_APP}request_pin {_JS}requestPin host/host.py:Host.on_request_pin",
              (_SAMPLES + "a_view_asks_to_stay_and_is_told",
               _SEATS + "where_nobody_can_be_asked_the_policy_says_whether_a_view_may_stay",
               _JS_WIRE + "yes_and_no_are_the_answers",
               _VIEWS + "a_pinned_view_stays_and_an_unpinned_one_goes",
               _EXTRAS + "a_view_asks_to_stay_and_gets_a_plain_answer")),
    Statement("003-33", "A definition has an `outputSchema`.", "types.py:Tool",
              (OUTPUT_JS, LISTED)),
    Statement("003-34", "A host sees nothing of a View's DOM: tools are what it can look at.",
              "web/csp.py:build_csp", (NO_DOM,)),
    Statement("003-35", "Pushed (`update-model-context`) and pulled (tools).",
              f"{_APP}update_model_context {_JS}updateModelContext host/host.py:Host.model_context",
              (_GATEWAY + "context_comes_with_the_next_result_and_replaces_what_was_told_before",
               _VIEWS + "the_last_update_of_the_context_counts", WHILE_OPENING, BAD_CODE,
               _AGENTS + "what_views_tell_the_model_comes_before_its_next_step_marked_and_once")),
    Statement("003-36", "Any Standard Schema will do.", f"{_JS}registerTool",
              (GOOD_SCHEMAS, OLDER_ZOD, OPEN_SCHEMAS, GIVEN_SCHEMAS)),
    Statement("003-37", "`~standard.jsonSchema` makes the JSON Schema.",
              "js/src/schema.ts:jsonSchema",
              (GOOD_SCHEMAS, REGISTRY)),
    Statement("003-38", "`tools/call` may ask for a task.",
              "view/tasks.py:TaskStore js/src/tasks.ts:makeTasks",
              (_TASKS + "a_call_that_asks_for_a_task_is_answered_with_its_handle_at_once",
               _JS_TASKS + "a_call_that_asks_for_a_task_is_answered_with_its_handle_at_once",
               _HOST + "a_views_task_is_asked_about_at_the_view")),
    Statement("003-39", "The host passes `tasks/*` on to the View.", "host/host.py:Host.get_task",
              (_HOST + "a_views_task_is_asked_about_at_the_view",
               _BRIDGE_TOOLS + "tasks_are_asked_after_listed_awaited_and_cancelled")),
    Statement("003-40", "Long work is handed to the server, and survives the View.",
              f"{_APP}start_server_task {_JS}startServerTask",
              (_JS_TASKS + "a_task_that_was_handed_to_the_server_outlives_its_view",
               _HOST + "a_task_that_was_handed_to_the_server_outlives_its_view")),
    Statement("003-41", "Zod 3.25 is listed with the help of `z.toJSONSchema`.",
              "js/src/zod.ts:zodToJsonSchema js/src/schema.ts:toJSONSchema",
              (OLDER_ZOD, SAMPLES_WITH_ZOD, GIVEN_SCHEMAS),
              "its definitions are converted by a module of ours, so that no other zod is needed"),
    Statement("003-42", "Others without `jsonSchema` are a clear error.",
              "js/src/schema.ts:jsonSchema",
              (OPEN_SCHEMAS,),
              "the error is a problem that the author sees; the tool is there without its "
              "parameters, so that the page does not stop"),
    Statement("003-43", "`update` counts for calls.",
              f"{_HANDLE}update {_JS_TOOL}update", (HANDLE,)),
    Statement("003-44", "Without an `inputSchema` the callback gets `extra` alone.",
              f"{_JS}registerTool", (NO_ARGUMENTS_JS, REGISTRY)),
    Statement("003-45", "A name that is taken is refused.", REGISTERS, (TAKEN_JS, TAKEN)),
    Statement("003-46", "No notice of changes before `connect`.", NOTIFIES, (EARLY_JS, EARLY)),
    Statement("003-47", "Registering notifies.", NOTIFIES, (ONE_NOTICE_JS, _TOOLS
              + "registering_after_connect_with_the_capability_works_and_is_told")),
    Statement("003-48", "Which tools there are is known by `tools/list`, after the handshake.",
              "host/views/bridge.py:Bridge.list_tools",
              (END_TO_END, _BRIDGE + "tools_are_asked_for_after_the_handshake_and_not_before")),
    Statement("003-49", "With an `outputSchema`, `structuredContent` is required and typed.",
              "js/src/types.ts:AppToolCallback",
              (DECLARED_TYPES, _JS_TYPES + "a_mistake_is_found", OUTPUT_JS, OUTPUT)),
    Statement("003-50", "A result with `isError` is not held to it.",
              "view/invoke.py:Invocation js/src/results.ts:isError", (OUTPUT_JS, ERROR_OUTPUT)),
    Statement("003-51", "Updates do not change how the callback is called.",
              f"{_HANDLE}update {_JS_TOOL}update",
              (_JS_TOOLS + "a_handle_changes_names_schemas_and_the_rest", HANDLE)),
    Statement("003-52", "Missing arguments are `{}`.",
              f"view/tool_service.py:ToolService {_JS_TOOL}arguments",
              (NO_ARGUMENTS_JS, NO_ARGUMENTS)),
    Statement("003-53", "`remove` of a stale handle does nothing.",
              f"{_HANDLE}remove {_JS_TOOL}remove", (STALE_JS, STALE)),
    Statement("003-54", "Notices of changes need the capability.", NOTIFIES,
              (NO_NOTICE_JS, NO_NOTICE)),
    Statement("003-55", "Mistakes in the example servers were fixed.", "check/__init__.py:check",
              (), "work on other code; that the examples work as published is 003-18 to 003-24"),
    Statement("003-56", "An agent discovers tools, queries state and drives the View.",
              "host/host.py:Host",
              (END_TO_END, _GATEWAY + "tools_of_a_view_are_listed_and_called", OFFICIAL)),
    Statement("003-57", "The capabilities `tools` and `serverTools`.",
              "types.py:AppCapabilities types.py:HostCapabilities",
              (_VIEW_SERVER + "the_hosts_capabilities_follow_from_the_servers", DECLARES)),
    Statement("003-58", "The messages are those of MCP.", "protocol/methods.py:METHODS",
              (_OFFICIAL_SCHEMA + "a_message_we_write_is_valid",
               _HOST_OFFICIAL_VIEW
               + "the_official_view_opens_with_input_and_result_and_offers_its_tools")),
    Statement("003-59", "Tools are there only while their View is.",
              "host/views/view.py:View.close",
              (_VIEWS + "closing_asks_the_view_to_wind_up_first_and_takes_its_tools_away",
               _GATEWAY + "tools_vanish_with_their_view_and_calling_them_says_so")),
    Statement("003-60", "Tools of servers and of Views are kept apart.",
              "host/tools/surface.py:Surface",
              (_SURFACE + "a_server_tool_that_would_pass_for_something_else_gets_its_server_in_"
               "front", _SURFACE + "a_description_says_that_the_tool_is_a_views_and_costs_little")),
    Statement("003-61", "Tools are the only way to look into a View that can be relied upon.",
              "web/csp.py:build_csp", (NO_DOM,)),
    Statement("003-62", "A definition has `title`, `outputSchema` and `_meta`.", "types.py:Tool",
              (LISTED_JS, LISTED,
               _REACH + "a_definition_is_whole_in_the_list_and_in_list_view_tools")),
    Statement("003-63", "No empty `outputSchema` where none was declared.", BUILDS,
              (LISTED_JS, LISTED)),
    Statement("003-64", "Nothing that worked before is broken.", "gateway/proxy.py:Proxy",
              (NO_TOOLS, _TRANSPARENCY + "the_everything_server_is_the_same_behind_the_gateway")),
    Statement("003-65", "Communication goes both ways.",
              f"{_APP}call_server_tool {_APP}register_tool",
              (ORDERS, _BRIDGE_APP + "the_app_reaches_its_server_through_the_bridge")),
    Statement("003-66", "The callback has a type.", "js/src/types.ts:AppToolCallback",
              (DECLARED_TYPES, _JS_TYPES + "a_mistake_is_found")),

    # --- 004: servers --------------------------------------------------------------------------
    Statement("004-1", "A tool, a `ui://` resource, and the link between them.",
              "server/views.py:Views.add server/views.py:Views.tool",
              (_SHAPES + "the_tool_that_opens_a_view", ORDERS)),
    Statement("004-2", "The server's side is a contract to check before a host does.",
              "check/__init__.py:check",
              (_CHECK + "the_catalogue_holds_the_84_rules_of_the_contract_in_order",
               _CHECK + "a_server_that_breaks_a_rule_is_told_so_and_told_nothing_else")),
    Statement("004-3", "A tool that opens a View: for the model, usually for the View too.",
              "server/views.py:Views.tool", (_SHAPES + "the_tool_that_opens_a_view", ORDERS)),
    Statement("004-4", "A helper: for the View, not for the model.", "server/views.py:Views.helper",
              (ORDERS, _SHAPES + "the_tool_for_the_view_alone")),
    Statement("004-5", "A plain tool of the backend: for the model, not for the View.",
              "host/tools/tool_visibility.py:view_may_call "
              "host/views/view_server.py:ViewServer.check_allowed",
              (ORDERS, _FUNCTIONS + "plain_tools_are_the_models_alone_on_a_server_with_views",
               _HOST + "which_tools_a_view_may_call_is_the_policys",
               _GATEWAY + "which_tools_of_the_server_a_view_may_call"),
              "the default of the gateway (`view_calls=\"linked\"`); the spec lets a View call "
              "what says nothing, and so does the default of `Policy`"),
    Statement("004-6", "A tool has name, description, `inputSchema`, maybe `outputSchema`.",
              "server/views.py:register_app_tool",
              (ORDERS, _FUNCTIONS + "everything_about_a_tool_can_be_said",
               _GIVEN + "the_sample_of_the_document_answers_what_it_returns")),
    Statement("004-7", "`annotations` are hints for safety.",
              "host/asking/approvals.py:Approvals.check",
              (_HOST + "a_tool_that_only_reads_runs_and_any_other_is_refused_with_a_way_out",
               _MISTAKES + "annotations_may_be_a_mapping_or_a_struct")),
    Statement("004-8", "`_meta.ui.resourceUri` names the page to show.",
              "host/views/ui_resource.py:view_uri",
              (_SHAPES + "the_tool_that_opens_a_view",
               _PAGES_SHOWN
              + "the_nested_key_says_which_view_a_tool_opens_and_the_flat_one_where_it_is_not_there"
               )),
    Statement("004-9", "`resources/list` has it, with its MIME type.", "server/views.py:Views.add",
              (_SHAPES + "the_page_and_what_it_asks_for",)),
    Statement("004-10", "`resources/read` has the HTML, and `_meta.ui` beside it.",
              "host/views/ui_resource.py:load_ui_resource",
              (_SHAPES + "the_page_and_what_it_asks_for",
               _PAGES_SHOWN + "what_a_page_needs_stands_beside_its_content")),
    Statement("004-11", "A result has `content` for the model, `structuredContent` for the View.",
              "server/tools.py:Output",
              (_SERVER_RESULTS + "an_object_becomes_structured_content_with_a_schema_and_text",
               ORDERS)),
    Statement("004-12", "Servers look at the host's capability, and fall back to text.",
              "server/views.py:ui_capability",
              (_CAPABILITIES + "in_memory", _FUNCTIONS
               + "clients_without_views_are_spared_tool_page_and_helper")),
    Statement("004-13", "`visibility: [\"app\"]` is for refresh, pages, autosave, forms.",
              "server/views.py:Views.helper", (ORDERS,
               _ORDERS + "a_refresh_shows_what_is_true_now")),
    Statement("004-14", "A helper may have a `resourceUri`; calling it opens no View.",
              "host/views/view_server.py:ViewServer.forward",
              (_HOST + "a_tool_that_a_view_calls_opens_no_view", ORDERS)),
    Statement("004-15", "The sample of `registerAppTool`.", "server/views.py:register_app_tool",
              (ORDERS, _GIVEN + "the_sample_of_the_document_answers_what_it_returns")),
    Statement("004-16", "The host hides helpers from the model.",
              "host/tools/tool_visibility.py:model_may_call",
              (ORDERS, MODEL_HIDES, ONLY_LISTED,
               _HOST + "the_model_cannot_call_what_is_only_for_views")),
    Statement("004-17", "The host refuses a View's call to what is not for it.",
              "host/views/view_server.py:ViewServer.check_allowed",
              (ORDERS, _VIEW_SERVER + "a_tool_that_views_may_not_call_is_refused")),
    Statement("004-18", "The page's CSP metadata.", "web/csp.py:build_csp",
              (_SHAPES + "the_page_and_what_it_asks_for",
               _SANDBOX + "an_origin_that_was_not_declared_is_not_reached",
               _SANDBOX + "a_declared_origin_is_reached")),
    Statement("004-19", "`outputSchema`: results are held to it.", "server/tools.py:Output",
              (_SHAPES
               + "a_client_gets_an_error_in_place_of_a_result_that_breaks_the_output_schema",
               ORDERS)),
]  # fmt: skip
