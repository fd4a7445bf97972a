"""A, B and N: what tools are shown to whom, how they link Views, and what they say they do.

L: their lists and caching, as MCP 2026-07-28 wants them.
"""

from __future__ import annotations

from collections.abc import Iterator

from transom.check.facts import (
    RESOURCE_FIELDS,
    Facts,
    ListedTool,
    ListedTools,
    has_text,
    name_words,
    near_miss,
    rough,
)
from transom.check.rule import Hits, Messages, rule, show
from transom.check.schemas import schema_error
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


@rule("A2")
def metadata_is_gated(seen: Facts) -> Hits:
    why = "even for a client without MCP Apps support; gate it on the client capability"
    for tool in seen.text.tools:
        if tool.link is not None:
            yield tool, f" carries `_meta.ui.resourceUri` {why}."


@rule("A3")
def fallback_exists(seen: Facts) -> Hits:
    names = {tool.name for tool in seen.text.tools}
    for tool in seen.tools:
        if tool.link is not None and tool.for_model and tool.name not in names:
            fix = "register a fallback under the same name"
            yield tool, f" disappears for text-only clients; {fix}."


@rule("A4")
def mime_types_are_read(seen: Facts) -> Hits:
    plain = {tool.name for tool in seen.text.tools if tool.link is not None}
    if any(tool.link is not None and tool.name not in plain for tool in seen.no_mime.tools):
        fix = f"it must look for `{VIEW_MIME_TYPE}` in `mimeTypes`"
        yield "server", f"Server treats any `{UI_EXTENSION}` key as support; {fix}."


@rule("A5")
def fallback_is_useful(seen: Facts) -> Hits:
    for tool, call in seen.called(client="text"):
        if tool.link is not None and call.result is not None and not has_text(call.result):
            yield tool, " returns nothing readable to a text-only client."


# --- B: tool definitions and links -----------------------------------------------------------


@rule("B1")
def resources_are_linked(seen: Facts) -> Hits:
    if seen.apps.failure is not None:
        return
    # A link that misses by a letter is B4's to report, with the fix.
    links = {rough(tool.link) for tool in seen.tools if tool.link is not None}
    for uri in (entry.get("uri") for entry in seen.apps.resources):
        if isinstance(uri, str) and uri.startswith("ui://") and rough(uri) not in links:
            why = "is not linked from any tool's `_meta.ui.resourceUri`; it can never be rendered"
            yield f"resource {uri}", f"UI resource `{uri}` {why}."


@rule("B2")
def links_are_ui_uris(tool: ListedTool) -> Messages:
    ui = tool.meta.get("ui")
    if ui is not None and not isinstance(ui, dict):
        yield f": `_meta.ui` must be an object, got {type_name(ui)}."
    for link in (tool.nested_link, tool.flat_link):
        if link is not None and not (isinstance(link, str) and link.startswith("ui://")):
            yield f": resourceUri `{show(link)}` is not a `ui://` URI."


@rule("B3")
def links_can_be_read(seen: Facts) -> Hits:
    resources = {resource.uri: resource for resource in seen.resources}
    for tool in seen.tools:
        resource = resources.get(tool.link or "")
        if resource is not None and resource.failure is not None:
            why = f"resources/read failed: {show(resource.failure, 300)}"
            yield tool, f" points at `{resource.uri}` but {why}."


@rule("B4")
def links_match_exactly(seen: Facts) -> Hits:
    uris = [entry.get("uri") for entry in seen.apps.resources]
    listed = {uri for uri in uris if isinstance(uri, str)}
    by_rough_uri = {rough(uri): uri for uri in listed}
    answers = {resource.uri: resource.item.get("uri") for resource in seen.resources}
    for tool, link in ((tool, tool.link) for tool in seen.tools if tool.link is not None):
        near: Json = None if link in listed else by_rough_uri.get(rough(link))
        near = near or (answers[link] if near_miss(link, answers.get(link)) else None)
        if near is not None:
            found = f"the resource answers as `{near}`; did you mean `{near}`?"
            yield tool, f" links `{link}` but {found}"


@rule("B5")
def nested_key_is_used(tool: ListedTool) -> Messages:
    if tool.flat_link is not None and tool.nested_link is None:
        yield f' uses only deprecated `_meta["{LEGACY_URI_KEY}"]`; set `_meta.ui.resourceUri`.'


@rule("B6")
def keys_agree(tool: ListedTool) -> Messages:
    nested, flat = tool.nested_link, tool.flat_link
    if nested is not None and flat is not None and nested != flat:
        links = f"({show(nested)}) and legacy key ({show(flat)})"
        yield f": `_meta.ui.resourceUri` {links} disagree."


@rule("B7")
def link_is_on_definition(seen: Facts) -> Hits:
    for tool, result in seen.results():
        meta = as_object(result.get("_meta"))
        linked = as_object(meta.get("ui")).get("resourceUri") or meta.get(LEGACY_URI_KEY)
        if linked and tool.link is None:
            yield tool, " returns a UI link in its result; hosts read it from the tool definition."


@rule("B8")
def visibility_is_stated(seen: Facts) -> Hits:
    has_views = any(tool.link is not None for tool in seen.tools)
    readers: list[str] = []
    for tool in seen.tools:
        declared = tool.ui.get("visibility")
        strange = [entry for entry in as_list(declared) if entry not in ("model", "app")]
        if strange or not isinstance(declared, list | None):
            yield tool, f': visibility `{show(declared)}` is invalid; use any of "model", "app".'
        if has_views and tool.link is None and declared is None:
            if tool.hints("readOnlyHint"):
                readers.append(tool.name)
            else:
                why = 'so any View may call it; state `["model"]` unless one should'
                yield tool, f" is not marked read-only and states no visibility, {why}.", "warn"
    if readers:
        names = f"`{readers[0]}`" + (f" and {len(readers) - 1} more" if readers[1:] else "")
        yield "server", f"Any View may call {names}, for which no visibility is stated.", "info"


@rule("B9")
def visibility_is_not_empty(tool: ListedTool) -> Messages:
    if tool.ui.get("visibility") == []:
        yield " has empty visibility; neither model nor View can call it."


@rule("B10")
def view_can_be_opened(seen: Facts) -> Hits:
    opened = {tool.link for tool in seen.tools if tool.for_model}
    for tool in seen.tools:
        if tool.link is not None and not tool.for_model and tool.link not in opened:
            why = "is hidden from the model; only the View can start it. Intended?"
            yield tool, f" links a View but {why}"


@rule("B11")
def helpers_are_app_only(seen: Facts) -> Hits:
    if not any(tool.link is not None for tool in seen.tools):
        return
    for tool in seen.tools:
        plain = tool.link is None and "visibility" not in tool.ui
        if plain and _HELPER_WORDS & set(name_words(tool.name)):
            fix = 'consider `visibility: ["app"]`'
            yield tool, f" looks like a UI helper but the model can call it; {fix}."


@rule("B12")
def helpers_have_no_link(seen: Facts) -> Hits:
    opened = {tool.link for tool in seen.tools if tool.for_model}
    for tool in seen.tools:
        if tool.app_only and tool.link is not None and tool.link in opened:
            why = "has a resourceUri; drop it unless calling it should open a View"
            yield f"tool {tool.name}", f"App-only tool `{tool.name}` {why}."


@rule("B13")
def ui_is_not_empty(seen: Facts) -> Hits:
    known = {"resourceUri", "visibility", *RESOURCE_FIELDS}
    for tool in seen.tools:
        if isinstance(tool.meta.get("ui"), dict) and not known & set(tool.ui):
            yield tool, " has an empty `_meta.ui`; remove it."


@rule("B14")
def resource_fields_are_elsewhere(tool: ListedTool) -> Messages:
    for field in (field for field in RESOURCE_FIELDS if field in tool.ui):
        yield f": `{field}` is ignored on tools; move it to the resource's `_meta.ui`."


@rule("B15")
def definition_is_complete(tool: ListedTool) -> Messages:
    if not isinstance(tool.raw.get("name"), str) or not tool.raw["name"]:
        yield " has no name."
    schema = tool.raw.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield ': inputSchema must be a JSON Schema with type "object".'
    elif failure := schema_error(schema):
        yield f": inputSchema is not valid JSON Schema: {failure}."
    description = tool.raw.get("description")
    if not isinstance(description, str) or not description.strip():
        yield " has no description; say what it does.", "warn"


@rule("B16")
def description_does_not_steer(tool: ListedTool) -> Messages:
    description = tool.raw.get("description")
    if isinstance(description, str) and any(p in description.lower() for p in _STEERING):
        yield ": description tries to steer tool choice; describe the action instead."


@rule("B18")
def link_is_portable(tool: ListedTool) -> Messages:
    nested = as_object(tool.meta.get("openai")).get("outputTemplate")
    if tool.link is None and (nested or tool.meta.get("openai/outputTemplate")):
        yield " links its View only by a host-specific key; other hosts will not render it."


# --- N: annotations --------------------------------------------------------------------------


@rule("N1")
def annotations_exist(tool: ListedTool) -> Messages:
    leaving = tool.app_only and tool.verb in _LEAVING
    if not tool.annotations and (tool.for_model or leaving):
        severity = None if tool.for_model else "info"
        yield " has no annotations; hosts must assume the worst.", severity


@rule("N2")
def hints_are_booleans(tool: ListedTool) -> Messages:
    declared = tool.raw.get("annotations")
    if declared is not None and not isinstance(declared, dict):
        yield f": annotations must be an object, got {type_name(declared)}."
    for hint in _HINTS:
        value = tool.annotations.get(hint)
        if value is not None and not isinstance(value, bool):
            yield f": {hint} must be boolean, got {type_name(value)}."


@rule("N3")
def hints_agree(tool: ListedTool) -> Messages:
    if tool.hints("readOnlyHint") and tool.hints("destructiveHint"):
        yield " claims to be read-only and destructive."


@rule("N4")
def readers_say_so(tool: ListedTool) -> Messages:
    reads = tool.verb in _READING and not _WRITING & set(name_words(tool.name))
    if reads and tool.annotations.get("readOnlyHint") is None:
        yield " looks read-only; set readOnlyHint."


@rule("N5")
def writers_do_not_claim_to_read(tool: ListedTool) -> Messages:
    if tool.hints("readOnlyHint") and tool.verb in _WRITING:
        yield " is marked read-only but its name says it writes."


@rule("N6")
def destroyers_say_so(tool: ListedTool) -> Messages:
    quiet = not tool.hints("destructiveHint") and not tool.hints("readOnlyHint")
    if quiet and tool.verb in _DESTROYING:
        yield " looks destructive; set destructiveHint."


@rule("N7")
def idempotence_holds(seen: Facts) -> Hits:
    first = {tool.name: call for tool, call in seen.called()}
    for tool, again in seen.called("again"):
        if _payload(first[tool.name].result) != _payload(again.result):
            yield tool, " claims idempotence but two identical calls differ."


@rule("N8")
def world_is_stated(tool: ListedTool) -> Messages:
    if tool.annotations and tool.annotations.get("openWorldHint") is None:
        yield ": openWorldHint not stated."


@rule("N9")
def helpers_are_annotated(seen: Facts) -> Hits:
    for tool in seen.tools:
        stated = {"readOnlyHint", "destructiveHint"} & set(tool.annotations)
        writes = tool.verb in _WRITING - _LEAVING
        if tool.app_only and writes and not stated:
            yield f"tool {tool.name}", f"App-only tool `{tool.name}` writes; annotate it honestly."


@rule("N10")
def titles_exist(tool: ListedTool) -> Messages:
    if not tool.raw.get("title") and not tool.annotations.get("title"):
        yield " has no title."


def _payload(result: object) -> JsonObject:
    """A result without `_meta`, which may differ for reasons of transport."""
    return {key: value for key, value in as_object(result).items() if key != "_meta"}


# --- L: lists and caching --------------------------------------------------------------------

_DAY = 24 * 3600 * 1000
_MAX_NAMED = 5
_SUBJECT = "tools/list"


@rule("L1")
def list_is_the_same_for_every_connection(seen: Facts) -> Hits:
    return _differing(seen, after_calls=False)


@rule("L2")
def list_is_the_same_after_a_call(seen: Facts) -> Hits:
    return _differing(seen, after_calls=True)


def _differing(seen: Facts, *, after_calls: bool) -> Hits:
    first, *others = seen.lists.listings
    for listing in others:
        if listing.after_calls is after_calls:
            for how in _differences(first, listing):
                yield _SUBJECT, f"tools/list differs {listing.when}: {how}."


@rule("L3")
def list_has_an_order(seen: Facts) -> Hits:
    first, *others = seen.lists.listings
    for listing in others:
        names, again = list(first.tools), list(listing.tools)
        if names != again and sorted(names) == sorted(again):
            yield _SUBJECT, f"tools/list has another order {listing.when}."
            return


@rule("L4")
def cache_hints_are_there(seen: Facts) -> Hits:
    for hint in seen.lists.hints:
        ttl, scope = hint.ttl, hint.scope
        if ttl is None or scope is None:
            missing = " and ".join(
                key for key, value in (("ttlMs", ttl), ("cacheScope", scope)) if value is None
            )
            yield hint.what, f"{hint.what} answers without {missing}."
        if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int) or ttl < 0):
            got = type_name(ttl) if isinstance(ttl, list | dict) else show(ttl)
            yield hint.what, f"{hint.what}: ttlMs must be an integer of 0 or more, got {got}."
        if scope is not None and scope not in ("public", "private"):
            yield (
                hint.what,
                f"{hint.what}: cacheScope must be public or private, got {show(scope)}.",
            )


@rule("L5")
def cache_hints_make_sense(seen: Facts) -> Hits:
    for hint in seen.lists.hints:
        ttl = hint.ttl
        if isinstance(ttl, int) and ttl > _DAY:
            days = ttl // _DAY
            yield hint.what, f"{hint.what}: ttlMs lets clients keep the answer for {days} days."


def _differences(first: ListedTools, other: ListedTools) -> Iterator[str]:
    """How the tools of two listings differ, apart from their order."""
    gone = [name for name in first.tools if name not in other.tools]
    come = [name for name in other.tools if name not in first.tools]
    changed = [name for name, tool in first.tools.items() if other.tools.get(name, tool) != tool]
    for names, what in ((come, "more"), (gone, "less"), (changed, "changed")):
        if names:
            named = ", ".join(f"`{show(name)}`" for name in names[:_MAX_NAMED])
            more = len(names) - _MAX_NAMED
            yield f"{named}{f' and {more} others' if more > 0 else ''} {what}"
