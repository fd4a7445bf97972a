"""A, B and N: what tools are shown to whom, how they link Views, and what they say they do."""

from __future__ import annotations

from transom.check.rule import (
    ABOUT_CLIENT,
    ABOUT_HOST,
    ANNOTATIONS,
    CLIENT_CAPABILITIES,
    RESOURCE_DISCOVERY,
    RESOURCE_FORMAT,
    SERVER_BEHAVIOR,
    TOOL,
    VISIBILITY,
    Hits,
    documented,
    rule,
    show,
)
from transom.check.schemas import schema_problem
from transom.check.snapshot import PAGE_FIELDS, Snapshot, has_text, name_words, near_miss, rough
from transom.json_values import Json, JsonObject, as_list, as_object, type_name
from transom.protocol.messages import LEGACY_URI_KEY, UI_EXTENSION, VIEW_MIME_TYPE

_HELPER_WORDS = frozenset(
    {"refresh", "page", "paginate", "poll", "save", "autosave", "submit", "reload"}
)
_STEERING = (
    "always use this", "always call this", "use this for anything", "use this tool for every",
    "use this tool first", "prefer this tool", "must use this tool", "instead of any other tool",
    "ignore other tools", "ignore previous", "never use other",
)  # fmt: skip
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")

# What a tool does, judged by the verb that its name starts with.
_READING = frozenset(
    {
        "get", "list", "search", "find", "show", "read", "fetch", "view", "preview", "lookup",
        "query", "describe", "count", "browse", "display", "check", "inspect",
    }
)  # fmt: skip
_DESTROYING = frozenset(
    {
        "delete", "remove", "cancel", "overwrite", "drop", "purge", "wipe", "destroy", "erase",
        "send", "charge", "refund", "revoke", "terminate", "truncate", "uninstall",
    }
)  # fmt: skip
_LEAVING = frozenset(
    {"send", "post", "publish", "email", "mail", "notify", "tweet", "upload", "share", "charge"}
)
_WRITING = _DESTROYING | _LEAVING | frozenset(
    {
        "create", "add", "update", "set", "save", "write", "insert", "edit", "modify", "rename",
        "move", "submit", "store", "append", "replace", "approve", "book", "order", "buy", "pay",
        "import", "merge", "patch", "put", "register", "reset", "log",
    }
)  # fmt: skip


# --- A: negotiation and fallback -------------------------------------------------------------


@documented("A1", "error", "The client says that it shows Views", CLIENT_CAPABILITIES, ABOUT_CLIENT)
def client_advertises() -> None:
    """A host names `io.modelcontextprotocol/ui` in `capabilities.extensions`.

    `text/html;profile=mcp-app` must be among its `mimeTypes`. Servers hide their Views from clients
    that do not say so. The checker visits every server as such a client.
    """


@rule("A2", "warn", "UI metadata only goes to clients that show Views", SERVER_BEHAVIOR, "text")
def metadata_is_gated(seen: Snapshot) -> Hits:
    """A client that did not advertise MCP Apps should get the same tools without `_meta.ui`.

    The server is listed twice, with and without the extension. Look at the client's capabilities
    when tools are listed, and leave the link out for clients that cannot follow it.
    """
    why = "even for a client without MCP Apps support; gate it on the client capability"
    for tool in seen.text.tools if seen.text else ():
        if tool.link is not None:
            yield tool, f" carries `_meta.ui.resourceUri` {why}."


@rule("A3", "warn", "Text-only clients get the same tools", SERVER_BEHAVIOR, "text")
def fallback_exists(seen: Snapshot) -> Hits:
    """Every tool that opens a View for the model must exist for clients without Views too.

    Register it under the same name for everyone; only the UI metadata depends on the client.
    """
    names = {tool.name for tool in seen.text.tools} if seen.text else set[str]()
    for tool in seen.tools:
        if tool.link is not None and tool.for_model and tool.name not in names:
            fix = "register a fallback under the same name"
            yield tool, f" disappears for text-only clients; {fix}."


@rule(
    "A4", "warn", "Support is read from mimeTypes, not from the key", CLIENT_CAPABILITIES, "no_mime"
)
def mime_types_are_read(seen: Snapshot) -> Hits:
    """Naming the extension is not enough: the client must list `text/html;profile=mcp-app`.

    The server is listed a third time by a client that sends the extension with an empty
    `mimeTypes`. A server that looks only for the key sends Views to a client that cannot show
    them. (A server that sends them to everyone is reported by A2.)
    """
    if seen.no_mime is None or seen.text is None:
        return
    plain = {tool.name for tool in seen.text.tools if tool.link is not None}
    if any(tool.link is not None and tool.name not in plain for tool in seen.no_mime.tools):
        fix = f"it must look for `{VIEW_MIME_TYPE}` in `mimeTypes`"
        yield "server", f"Server treats any `{UI_EXTENSION}` key as support; {fix}."


@rule("A5", "error", "Text-only clients get a readable answer", SERVER_BEHAVIOR, "text_call")
def fallback_is_useful(seen: Snapshot) -> Hits:
    """A tool with a View must still answer a client without Views in words.

    The tool is called by a client that did not advertise MCP Apps; its `content` needs at least
    one text block that is not blank. Summarise in text what the View would show.
    """
    for tool, call in seen.called(client="text"):
        if tool.link is not None and call.result is not None and not has_text(call.result):
            yield tool, " returns nothing readable to a text-only client."


# --- B: tool definitions and links -----------------------------------------------------------


@rule("B1", "error", "Every UI resource is linked from a tool", RESOURCE_DISCOVERY, "tools")
def resources_are_linked(seen: Snapshot) -> Hits:
    """A `ui://` resource is rendered only when a tool's `_meta.ui.resourceUri` names it.

    Link it from the tool that should open it, or stop serving it.
    """
    if seen.apps.tools_problem is not None:
        return
    links = {tool.link for tool in seen.tools if tool.link is not None}
    near = {rough(link) for link in links}
    for entry in seen.apps.resources.items:
        uri = entry.get("uri")
        if not isinstance(uri, str) or not uri.startswith("ui://"):
            continue
        # A link that misses by a letter is B4's to report, with the fix.
        if uri not in links and rough(uri) not in near:
            why = "is not linked from any tool's `_meta.ui.resourceUri`; it can never be rendered"
            yield f"resource {uri}", f"UI resource `{uri}` {why}."


@rule("B2", "error", "A link is a ui:// URI", RESOURCE_DISCOVERY, "tools")
def links_are_ui_uris(seen: Snapshot) -> Hits:
    """`_meta.ui.resourceUri` must be a string that starts with `ui://`.

    Hosts render nothing else: no `https://`, no file path. Serve the page as an MCP resource.
    """
    for tool in seen.tools:
        ui = tool.meta.get("ui")
        if ui is not None and not isinstance(ui, dict):
            yield tool, f": `_meta.ui` must be an object, got {type_name(ui)}."
        for link in (tool.nested_link, tool.flat_link):
            if link is not None and not (isinstance(link, str) and link.startswith("ui://")):
                yield tool, f": resourceUri `{show(link)}` is not a `ui://` URI."


@rule("B3", "error", "The linked resource can be read", RESOURCE_DISCOVERY, "read")
def links_can_be_read(seen: Snapshot) -> Hits:
    """`resources/read` must succeed for the URI a tool links.

    Hosts fetch the page that way, whether or not it is in `resources/list`.
    """
    pages = {page.uri: page for page in seen.pages}
    for tool in seen.tools:
        page = pages.get(tool.link or "")
        if page is not None and page.problem is not None:
            why = f"resources/read failed: {show(page.problem, 300)}"
            yield tool, f" points at `{page.uri}` but {why}."


@rule(
    "B4", "error", "Link and resource are the same, letter for letter", RESOURCE_DISCOVERY, "read"
)
def links_match_exactly(seen: Snapshot) -> Hits:
    """The URI in the tool must be byte for byte the URI of the resource.

    A different case, a trailing slash or a missing `.html` is a different resource to a host.
    Keep the URI in one constant and use it in both places.
    """
    uris = [entry.get("uri") for entry in seen.apps.resources.items]
    listed = {uri for uri in uris if isinstance(uri, str)}
    by_rough_uri = {rough(uri): uri for uri in listed}
    answers = {page.uri: (page.item or {}).get("uri") for page in seen.pages}
    for tool in seen.tools:
        link = tool.link
        if link is None:
            continue
        near: Json = None if link in listed else by_rough_uri.get(rough(link))
        near = near or (answers[link] if near_miss(link, answers.get(link)) else None)
        if near is not None:
            found = f"the resource answers as `{near}`; did you mean `{near}`?"
            yield tool, f" links `{link}` but {found}"


@rule("B5", "warn", "The link does not use the deprecated key alone", RESOURCE_DISCOVERY, "tools")
def nested_key_is_used(seen: Snapshot) -> Hits:
    """`_meta["ui/resourceUri"]` is deprecated; write `_meta.ui.resourceUri`.

    You may send both, for old hosts.
    """
    for tool in seen.tools:
        if tool.flat_link is not None and tool.nested_link is None:
            old = f'`_meta["{LEGACY_URI_KEY}"]`'
            yield tool, f" uses only deprecated {old}; set `_meta.ui.resourceUri`."


@rule("B6", "error", "Both link keys agree", RESOURCE_DISCOVERY, "tools")
def keys_agree(seen: Snapshot) -> Hits:
    """When both link keys are sent they must hold the same URI.

    Old hosts read one key, new hosts the other: a difference opens different Views.
    """
    for tool in seen.tools:
        nested, flat = tool.nested_link, tool.flat_link
        if nested is not None and flat is not None and nested != flat:
            both = f"`_meta.ui.resourceUri` ({show(nested)}) and legacy key ({show(flat)})"
            yield tool, f": {both} disagree."


@rule("B7", "warn", "The link is on the tool, not in its result", RESOURCE_DISCOVERY, "call")
def link_is_on_definition(seen: Snapshot) -> Hits:
    """Hosts look for the View in `tools/list`, before they call.

    A `_meta.ui.resourceUri` that only the result carries opens nothing. Put it on the tool.
    """
    for tool, result in seen.results():
        meta = as_object(result.get("_meta"))
        linked = as_object(meta.get("ui")).get("resourceUri") or meta.get(LEGACY_URI_KEY)
        if linked and tool.link is None:
            yield tool, " returns a UI link in its result; hosts read it from the tool definition."


@rule("B8", "error", "Visibility is a list of model and app", VISIBILITY, "tools")
def visibility_is_valid(seen: Snapshot) -> Hits:
    """`_meta.ui.visibility` is an array of "model" and "app"; left out, it means both.

    `["app"]` hides a tool from the model, `["model"]` keeps Views from calling it.
    """
    for tool in seen.tools:
        declared = tool.ui.get("visibility")
        strange = [entry for entry in as_list(declared) if entry not in ("model", "app")]
        if strange or not isinstance(declared, list | None):
            why = 'is invalid; use any of "model", "app"'
            yield tool, f": visibility `{show(declared)}` {why}."


@rule("B9", "warn", "Visibility is not empty", VISIBILITY, "tools")
def visibility_is_not_empty(seen: Snapshot) -> Hits:
    """With an empty visibility list nobody may call the tool.

    Name who may, leave the field out for both, or remove the tool.
    """
    for tool in seen.tools:
        if tool.ui.get("visibility") == []:
            yield tool, " has empty visibility; neither model nor View can call it."


@rule("B10", "info", "The model can open the View", VISIBILITY, "tools")
def view_can_be_opened(seen: Snapshot) -> Hits:
    """A View that only app-only tools link can never be opened by the model.

    That is right for a View that another View opens; otherwise add "model" to the visibility.
    """
    opened = {tool.link for tool in seen.tools if tool.for_model}
    for tool in seen.tools:
        if tool.link is not None and not tool.for_model and tool.link not in opened:
            why = "is hidden from the model; only the View can start it. Intended?"
            yield tool, f" links a View but {why}"


@rule("B11", "info", "UI helpers are for the View only", VISIBILITY, "tools", heuristic=True)
def helpers_are_app_only(seen: Snapshot) -> Hits:
    """A tool that only a View calls should not be in the model's list.

    Judged by the name (refresh, page, poll, save, submit …) in a server that has Views. If only
    the View calls it, set `visibility: ["app"]`.
    """
    if not any(tool.link is not None for tool in seen.tools):
        return
    for tool in seen.tools:
        plain = tool.link is None and "visibility" not in tool.ui
        if plain and _HELPER_WORDS & set(name_words(tool.name)):
            fix = 'consider `visibility: ["app"]`'
            yield tool, f" looks like a UI helper but the model can call it; {fix}."


@rule("B12", "info", "A helper opens no View of its own", RESOURCE_DISCOVERY, "tools")
def helpers_have_no_link(seen: Snapshot) -> Hits:
    """An app-only tool with a `resourceUri` tells the host to open a View when it is called.

    A helper that only fetches data for a View that is already open needs no link.
    """
    opened = {tool.link for tool in seen.tools if tool.for_model}
    for tool in seen.tools:
        if tool.app_only and tool.link is not None and tool.link in opened:
            why = "has a resourceUri; drop it unless calling it should open a View"
            yield f"tool {tool.name}", f"App-only tool `{tool.name}` {why}."


@rule("B13", "info", "No empty _meta.ui", RESOURCE_DISCOVERY, "tools")
def ui_is_not_empty(seen: Snapshot) -> Hits:
    """A tool that neither links a View nor states a visibility needs no `_meta.ui`."""
    known = {"resourceUri", "visibility", *PAGE_FIELDS}
    for tool in seen.tools:
        if isinstance(tool.meta.get("ui"), dict) and not known & set(tool.ui):
            yield tool, " has an empty `_meta.ui`; remove it."


@rule("B14", "warn", "Resource metadata is on the resource", RESOURCE_FORMAT, "tools")
def resource_fields_are_elsewhere(seen: Snapshot) -> Hits:
    """`csp`, `permissions`, `domain` and `prefersBorder` are read from the resource.

    On a tool they are ignored: the View is then blocked from what you meant to allow. Move them
    to `contents[]._meta.ui` of resources/read.
    """
    for tool in seen.tools:
        for field in (field for field in PAGE_FIELDS if field in tool.ui):
            yield tool, f": `{field}` is ignored on tools; move it to the resource's `_meta.ui`."


@rule("B15", "error", "A tool has a name, a description and an object schema", TOOL, "tools")
def definition_is_complete(seen: Snapshot) -> Hits:
    """`name` and `inputSchema` are required; the schema must be JSON Schema of type "object".

    A tool without arguments has `{"type": "object"}`. A missing description is a warning: the
    model has nothing else to choose by.
    """
    for tool in seen.tools:
        if not isinstance(tool.raw.get("name"), str) or not tool.raw["name"]:
            yield tool, " has no name."
        schema = tool.raw.get("inputSchema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield tool, ': inputSchema must be a JSON Schema with type "object".'
        elif problem := schema_problem(schema):
            yield tool, f": inputSchema is not valid JSON Schema: {problem}."
        description = tool.raw.get("description")
        if not isinstance(description, str) or not description.strip():
            yield tool, " has no description; say what it does.", "warn"


@rule("B16", "info", "The description does not steer the model", TOOL, "tools", heuristic=True)
def description_does_not_steer(seen: Snapshot) -> Hits:
    """A description says what the tool does; it does not tell the model to prefer it.

    Judged by phrases such as "always use this tool". Reviewers of app directories reject them.
    """
    for tool in seen.tools:
        description = tool.raw.get("description")
        if isinstance(description, str) and any(p in description.lower() for p in _STEERING):
            yield tool, ": description tries to steer tool choice; describe the action instead."


@documented("B17", "error", "The host keeps to visibility", VISIBILITY, ABOUT_HOST)
def host_obeys_visibility() -> None:
    """A host must not offer the model a tool that lacks "model".

    It must refuse a View's call to a tool that lacks "app", and any call to another server's
    app-only tool. No server can break this; Transom's own host is tested for it.
    """


@rule("B18", "warn", "The link does not depend on one host", RESOURCE_DISCOVERY, "tools")
def link_is_portable(seen: Snapshot) -> Hits:
    """Only one host reads `openai/outputTemplate` and similar keys.

    Send `_meta.ui.resourceUri` as well; hosts ignore the keys they do not know.
    """
    for tool in seen.tools:
        nested = as_object(tool.meta.get("openai")).get("outputTemplate")
        if tool.link is None and (nested or tool.meta.get("openai/outputTemplate")):
            why = "other hosts will not render it"
            yield tool, f" links its View only by a host-specific key; {why}."


# --- N: annotations --------------------------------------------------------------------------


@rule("N1", "warn", "Tools have annotations", ANNOTATIONS, "tools")
def annotations_exist(seen: Snapshot) -> Hits:
    """Without annotations a host must assume that a tool writes, destroys and reaches out.

    It will ask the user before each call. State at least `readOnlyHint`. For an app-only tool it
    is a note, when its name says that it leaves the backend (send, post, publish …).
    """
    for tool in seen.tools:
        leaving = tool.app_only and tool.verb in _LEAVING
        if not tool.annotations and (tool.for_model or leaving):
            severity = None if tool.for_model else "info"
            yield tool, " has no annotations; hosts must assume the worst.", severity


@rule("N2", "error", "Hints are booleans", ANNOTATIONS, "tools")
def hints_are_booleans(seen: Snapshot) -> Hits:
    """`annotations` is an object; its four hints are `true` or `false`, nothing else."""
    for tool in seen.tools:
        declared = tool.raw.get("annotations")
        if declared is not None and not isinstance(declared, dict):
            yield tool, f": annotations must be an object, got {type_name(declared)}."
        for hint in _HINTS:
            value = tool.annotations.get(hint)
            if value is not None and not isinstance(value, bool):
                yield tool, f": {hint} must be boolean, got {type_name(value)}."


@rule("N3", "warn", "Hints do not contradict each other", ANNOTATIONS, "tools")
def hints_agree(seen: Snapshot) -> Hits:
    """A tool that only reads cannot destroy: drop one of the two hints."""
    for tool in seen.tools:
        if tool.hints("readOnlyHint") and tool.hints("destructiveHint"):
            yield tool, " claims to be read-only and destructive."


@rule("N4", "info", "Tools that read say so", ANNOTATIONS, "tools", heuristic=True)
def readers_say_so(seen: Snapshot) -> Hits:
    """`readOnlyHint: true` lets hosts run a tool without asking.

    Judged by the verb its name starts with (get, list, search, show …).
    """
    for tool in seen.tools:
        reads = tool.verb in _READING and not _WRITING & set(name_words(tool.name))
        if reads and tool.annotations.get("readOnlyHint") is None:
            yield tool, " looks read-only; set readOnlyHint."


@rule("N5", "warn", "Tools that write do not claim to read", ANNOTATIONS, "tools", heuristic=True)
def writers_do_not_claim_to_read(seen: Snapshot) -> Hits:
    """A host may run a tool with `readOnlyHint: true` without asking the user.

    Judged by the verb its name starts with (create, update, delete, send …).
    """
    for tool in seen.tools:
        if tool.hints("readOnlyHint") and tool.verb in _WRITING:
            yield tool, " is marked read-only but its name says it writes."


@rule("N6", "warn", "Tools that destroy say so", ANNOTATIONS, "tools", heuristic=True)
def destroyers_say_so(seen: Snapshot) -> Hits:
    """What cannot be undone (delete, cancel, send, charge …) needs `destructiveHint: true`.

    Judged by the verb its name starts with.
    """
    for tool in seen.tools:
        quiet = not tool.hints("destructiveHint") and not tool.hints("readOnlyHint")
        if quiet and tool.verb in _DESTROYING:
            yield tool, " looks destructive; set destructiveHint."


@rule("N7", "info", "Idempotent tools answer alike", ANNOTATIONS, "call")
def idempotence_holds(seen: Snapshot) -> Hits:
    """`idempotentHint: true` says that a second identical call changes nothing more.

    Such tools are called twice (with `--call-all`; tools that only read are left alone, the hint
    means nothing there). Different answers suggest that the second call did something.
    """
    first = {tool.name: call for tool, call in seen.called()}
    for tool, again in seen.called("again"):
        if _payload(first[tool.name].result) != _payload(again.result):
            yield tool, " claims idempotence but two identical calls differ."


@rule("N8", "info", "openWorldHint is stated", ANNOTATIONS, "tools")
def world_is_stated(seen: Snapshot) -> Hits:
    """`openWorldHint` is true when a tool leaves your own backend, false for your own data.

    Without it, hosts assume true. (Tools without any annotations are reported by N1.)
    """
    for tool in seen.tools:
        if tool.annotations and tool.annotations.get("openWorldHint") is None:
            yield tool, ": openWorldHint not stated."


@rule("N9", "info", "App-only tools are annotated honestly", ANNOTATIONS, "tools")
def helpers_are_annotated(seen: Snapshot) -> Hits:
    """Visibility says who may call a tool, not what it does.

    An app-only tool whose name says that it writes needs `readOnlyHint: false` or
    `destructiveHint` like any other.
    """
    for tool in seen.tools:
        stated = {"readOnlyHint", "destructiveHint"} & set(tool.annotations)
        writes = tool.verb in _WRITING - _LEAVING
        if tool.app_only and writes and not stated:
            yield f"tool {tool.name}", f"App-only tool `{tool.name}` writes; annotate it honestly."


@rule("N10", "info", "Tools have a title", TOOL, "tools")
def titles_exist(seen: Snapshot) -> Hits:
    """A short title such as "Show orders" is what users see when asked to approve a call."""
    for tool in seen.tools:
        if not tool.raw.get("title") and not tool.annotations.get("title"):
            yield tool, " has no title."


def _payload(result: object) -> JsonObject:
    """A result without `_meta`, which may differ for reasons of transport."""
    return {key: value for key, value in as_object(result).items() if key != "_meta"}
