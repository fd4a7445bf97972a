"""B: tool definitions and how they link Views."""

from __future__ import annotations

from collections.abc import Iterator

from transom.check.rule import (
    RESOURCE_DISCOVERY,
    RESOURCE_FORMAT,
    TOOL,
    VISIBILITY,
    Hit,
    Hits,
    documented,
    on_tool,
    rule,
    show,
)
from transom.check.schemas import schema_problem
from transom.check.snapshot import (
    FLAT_LINK_KEY,
    PAGE_FIELDS,
    ListedTool,
    Snapshot,
    name_words,
    near_miss,
    rough,
)
from transom.json_values import Json, as_object, type_name

_HELPER_WORDS = frozenset(
    {"refresh", "page", "paginate", "poll", "save", "autosave", "submit", "reload"}
)
_STEERING = (
    "always use this", "always call this", "use this for anything", "use this tool for every",
    "use this tool first", "prefer this tool", "must use this tool", "instead of any other tool",
    "ignore other tools", "ignore previous", "never use other",
)  # fmt: skip


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
            yield Hit(
                f"resource {uri}",
                f"UI resource `{uri}` is not linked from any tool's `_meta.ui.resourceUri`; "
                "it can never be rendered.",
            )


@rule("B2", "error", "A link is a ui:// URI", RESOURCE_DISCOVERY, "tools")
def links_are_ui_uris(seen: Snapshot) -> Hits:
    """`_meta.ui.resourceUri` must be a string that starts with `ui://`.

    Hosts render nothing else: no `https://`, no file path. Serve the page as an MCP resource.
    """
    for tool in seen.tools:
        ui = tool.meta.get("ui")
        if ui is not None and not isinstance(ui, dict):
            yield on_tool(tool, f": `_meta.ui` must be an object, got {type_name(ui)}.")
        for link in _links(tool):
            if not isinstance(link, str) or not link.startswith("ui://"):
                yield on_tool(tool, f": resourceUri `{show(link)}` is not a `ui://` URI.")


@rule("B3", "error", "The linked resource can be read", RESOURCE_DISCOVERY, "read")
def links_can_be_read(seen: Snapshot) -> Hits:
    """`resources/read` must succeed for the URI a tool links.

    Hosts fetch the page that way, whether or not it is in `resources/list`.
    """
    pages = {page.uri: page for page in seen.pages}
    for tool in seen.tools:
        page = pages.get(tool.link or "")
        if page is not None and page.problem is not None:
            yield on_tool(
                tool,
                f" points at `{page.uri}` but resources/read failed: {show(page.problem, 300)}.",
            )


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
    pages = {page.uri: page for page in seen.pages}
    for tool in seen.tools:
        link = tool.link
        if link is None:
            continue
        page = pages.get(link)
        answered: Json = None if page is None else (page.item or {}).get("uri")
        near = None if link in listed else by_rough_uri.get(rough(link))
        near = near or (answered if near_miss(link, answered) else None)
        if near is not None:
            yield on_tool(
                tool,
                f" links `{link}` but the resource answers as `{near}`; did you mean `{near}`?",
            )


@rule("B5", "warn", "The link does not use the deprecated key alone", RESOURCE_DISCOVERY, "tools")
def nested_key_is_used(seen: Snapshot) -> Hits:
    """`_meta["ui/resourceUri"]` is deprecated; write `_meta.ui.resourceUri`.

    You may send both, for old hosts.
    """
    for tool in seen.tools:
        if tool.flat_link is not None and tool.nested_link is None:
            yield on_tool(
                tool,
                f' uses only deprecated `_meta["{FLAT_LINK_KEY}"]`; set `_meta.ui.resourceUri`.',
            )


@rule("B6", "error", "Both link keys agree", RESOURCE_DISCOVERY, "tools")
def keys_agree(seen: Snapshot) -> Hits:
    """When both link keys are sent they must hold the same URI.

    Old hosts read one key, new hosts the other: a difference opens different Views.
    """
    for tool in seen.tools:
        nested, flat = tool.nested_link, tool.flat_link
        if nested is not None and flat is not None and nested != flat:
            yield on_tool(
                tool,
                f": `_meta.ui.resourceUri` ({show(nested)}) and legacy key ({show(flat)}) "
                "disagree.",
            )


@rule("B7", "warn", "The link is on the tool, not in its result", RESOURCE_DISCOVERY, "call")
def link_is_on_definition(seen: Snapshot) -> Hits:
    """Hosts look for the View in `tools/list`, before they call.

    A `_meta.ui.resourceUri` that only the result carries opens nothing. Put it on the tool.
    """
    for tool, result in seen.results():
        meta = as_object(result.get("_meta"))
        linked = as_object(meta.get("ui")).get("resourceUri") or meta.get(FLAT_LINK_KEY)
        if linked and tool.link is None:
            yield on_tool(
                tool, " returns a UI link in its result; hosts read it from the tool definition."
            )


@rule("B8", "error", "Visibility is a list of model and app", VISIBILITY, "tools")
def visibility_is_valid(seen: Snapshot) -> Hits:
    """`_meta.ui.visibility` is an array of "model" and "app"; left out, it means both.

    `["app"]` hides a tool from the model, `["model"]` keeps Views from calling it.
    """
    for tool in seen.tools:
        declared = tool.ui.get("visibility")
        if declared is None:
            continue
        if not isinstance(declared, list) or any(e not in ("model", "app") for e in declared):
            yield on_tool(
                tool, f': visibility `{show(declared)}` is invalid; use any of "model", "app".'
            )


@rule("B9", "warn", "Visibility is not empty", VISIBILITY, "tools")
def visibility_is_not_empty(seen: Snapshot) -> Hits:
    """With an empty visibility list nobody may call the tool.

    Name who may, leave the field out for both, or remove the tool.
    """
    for tool in seen.tools:
        if tool.ui.get("visibility") == []:
            yield on_tool(tool, " has empty visibility; neither model nor View can call it.")


@rule("B10", "info", "The model can open the View", VISIBILITY, "tools")
def view_can_be_opened(seen: Snapshot) -> Hits:
    """A View that only app-only tools link can never be opened by the model.

    That is right for a View that another View opens; otherwise add "model" to the visibility.
    """
    opened = {tool.link for tool in seen.tools if tool.for_model}
    for tool in seen.tools:
        if tool.link is not None and not tool.for_model and tool.link not in opened:
            yield on_tool(
                tool,
                " links a View but is hidden from the model; only the View can start it. Intended?",
            )


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
            yield on_tool(
                tool,
                " looks like a UI helper but the model can call it; "
                'consider `visibility: ["app"]`.',
            )


@rule("B12", "info", "A helper opens no View of its own", RESOURCE_DISCOVERY, "tools")
def helpers_have_no_link(seen: Snapshot) -> Hits:
    """An app-only tool with a `resourceUri` tells the host to open a View when it is called.

    A helper that only fetches data for a View that is already open needs no link.
    """
    opened = {tool.link for tool in seen.tools if tool.for_model}
    for tool in seen.tools:
        if tool.app_only and tool.link is not None and tool.link in opened:
            yield Hit(
                f"tool {tool.name}",
                f"App-only tool `{tool.name}` has a resourceUri; drop it unless calling it "
                "should open a View.",
            )


@rule("B13", "info", "No empty _meta.ui", RESOURCE_DISCOVERY, "tools")
def ui_is_not_empty(seen: Snapshot) -> Hits:
    """A tool that neither links a View nor states a visibility needs no `_meta.ui`."""
    known = {"resourceUri", "visibility", *PAGE_FIELDS}
    for tool in seen.tools:
        if isinstance(tool.meta.get("ui"), dict) and not known & set(tool.ui):
            yield on_tool(tool, " has an empty `_meta.ui`; remove it.")


@rule("B14", "warn", "Resource metadata is on the resource", RESOURCE_FORMAT, "tools")
def resource_fields_are_elsewhere(seen: Snapshot) -> Hits:
    """`csp`, `permissions`, `domain` and `prefersBorder` are read from the resource.

    On a tool they are ignored: the View is then blocked from what you meant to allow. Move them
    to `contents[]._meta.ui` of resources/read.
    """
    for tool in seen.tools:
        for field in PAGE_FIELDS:
            if field in tool.ui:
                yield on_tool(
                    tool,
                    f": `{field}` is ignored on tools; move it to the resource's `_meta.ui`.",
                )


@rule("B15", "error", "A tool has a name, a description and an object schema", TOOL, "tools")
def definition_is_complete(seen: Snapshot) -> Hits:
    """`name` and `inputSchema` are required; the schema must be JSON Schema of type "object".

    A tool without arguments has `{"type": "object"}`. A missing description is a warning: the
    model has nothing else to choose by.
    """
    for tool in seen.tools:
        if not isinstance(tool.raw.get("name"), str) or not tool.raw["name"]:
            yield on_tool(tool, " has no name.")
        schema = tool.raw.get("inputSchema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield on_tool(tool, ': inputSchema must be a JSON Schema with type "object".')
        elif problem := schema_problem(schema):
            yield on_tool(tool, f": inputSchema is not valid JSON Schema: {problem}.")
        description = tool.raw.get("description")
        if not isinstance(description, str) or not description.strip():
            yield on_tool(tool, " has no description; say what it does.", "warn")


@rule("B16", "info", "The description does not steer the model", TOOL, "tools", heuristic=True)
def description_does_not_steer(seen: Snapshot) -> Hits:
    """A description says what the tool does; it does not tell the model to prefer it.

    Judged by phrases such as "always use this tool". Reviewers of app directories reject them.
    """
    for tool in seen.tools:
        description = tool.raw.get("description")
        if isinstance(description, str) and any(p in description.lower() for p in _STEERING):
            yield on_tool(
                tool, ": description tries to steer tool choice; describe the action instead."
            )


@documented(
    "B17", "error", "The host keeps to visibility", VISIBILITY, "about the host, not the server"
)
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
        vendor = tool.meta.get("openai/outputTemplate") or as_object(tool.meta.get("openai")).get(
            "outputTemplate"
        )
        if vendor and tool.link is None:
            yield on_tool(
                tool,
                " links its View only by a host-specific key; other hosts will not render it.",
            )


def _links(tool: ListedTool) -> Iterator[Json]:
    """Every link value that is there; one that is written twice counts once."""
    nested, flat = tool.nested_link, tool.flat_link
    if nested is not None:
        yield nested
    if flat is not None and flat != nested:
        yield flat
