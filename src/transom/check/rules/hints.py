"""N: annotations, the hints about what a tool does."""

from __future__ import annotations

from transom.check.rule import ANNOTATIONS, TOOL, Hit, Hits, on_tool, rule
from transom.check.snapshot import Snapshot, name_words
from transom.json_values import as_object, type_name

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


@rule("N1", "warn", "Tools have annotations", ANNOTATIONS, "tools")
def annotations_exist(seen: Snapshot) -> Hits:
    """Without annotations a host must assume that a tool writes, destroys and reaches out.

    It will ask the user before each call. State at least `readOnlyHint`. For an app-only tool it
    is a note, when its name says that it leaves the backend (send, post, publish …).
    """
    for tool in seen.tools:
        if tool.annotations:
            continue
        if tool.for_model:
            yield on_tool(tool, " has no annotations; hosts must assume the worst.")
        elif tool.app_only and tool.verb in _LEAVING:
            yield on_tool(tool, " has no annotations; hosts must assume the worst.", "info")


@rule("N2", "error", "Hints are booleans", ANNOTATIONS, "tools")
def hints_are_booleans(seen: Snapshot) -> Hits:
    """`annotations` is an object; its four hints are `true` or `false`, nothing else."""
    for tool in seen.tools:
        declared = tool.raw.get("annotations")
        if declared is not None and not isinstance(declared, dict):
            yield on_tool(tool, f": annotations must be an object, got {type_name(declared)}.")
        for hint in _HINTS:
            value = tool.annotations.get(hint)
            if value is not None and not isinstance(value, bool):
                yield on_tool(tool, f": {hint} must be boolean, got {type_name(value)}.")


@rule("N3", "warn", "Hints do not contradict each other", ANNOTATIONS, "tools")
def hints_agree(seen: Snapshot) -> Hits:
    """A tool that only reads cannot destroy: drop one of the two hints."""
    for tool in seen.tools:
        if tool.hints("readOnlyHint") and tool.hints("destructiveHint"):
            yield on_tool(tool, " claims to be read-only and destructive.")


@rule("N4", "info", "Tools that read say so", ANNOTATIONS, "tools", heuristic=True)
def readers_say_so(seen: Snapshot) -> Hits:
    """`readOnlyHint: true` lets hosts run a tool without asking.

    Judged by the verb its name starts with (get, list, search, show …).
    """
    for tool in seen.tools:
        reads = tool.verb in _READING and not _WRITING & set(name_words(tool.name))
        if reads and tool.annotations.get("readOnlyHint") is None:
            yield on_tool(tool, " looks read-only; set readOnlyHint.")


@rule("N5", "warn", "Tools that write do not claim to read", ANNOTATIONS, "tools", heuristic=True)
def writers_do_not_claim_to_read(seen: Snapshot) -> Hits:
    """A host may run a tool with `readOnlyHint: true` without asking the user.

    Judged by the verb its name starts with (create, update, delete, send …).
    """
    for tool in seen.tools:
        if tool.hints("readOnlyHint") and tool.verb in _WRITING:
            yield on_tool(tool, " is marked read-only but its name says it writes.")


@rule("N6", "warn", "Tools that destroy say so", ANNOTATIONS, "tools", heuristic=True)
def destroyers_say_so(seen: Snapshot) -> Hits:
    """What cannot be undone (delete, cancel, send, charge …) needs `destructiveHint: true`.

    Judged by the verb its name starts with.
    """
    for tool in seen.tools:
        quiet = not tool.hints("destructiveHint") and not tool.hints("readOnlyHint")
        if quiet and tool.verb in _DESTROYING:
            yield on_tool(tool, " looks destructive; set destructiveHint.")


@rule("N7", "info", "Idempotent tools answer alike", ANNOTATIONS, "call")
def idempotence_holds(seen: Snapshot) -> Hits:
    """`idempotentHint: true` says that a second identical call changes nothing more.

    Such tools are called twice (with `--call-all`; tools that only read are left alone, the hint
    means nothing there). Different answers suggest that the second call did something.
    """
    first = {tool.name: call for tool, call in seen.called()}
    for tool, again in seen.called("again"):
        if _payload(first[tool.name].result) != _payload(again.result):
            yield on_tool(tool, " claims idempotence but two identical calls differ.")


@rule("N8", "info", "openWorldHint is stated", ANNOTATIONS, "tools")
def world_is_stated(seen: Snapshot) -> Hits:
    """`openWorldHint` is true when a tool leaves your own backend, false for your own data.

    Without it, hosts assume true. (Tools without any annotations are reported by N1.)
    """
    for tool in seen.tools:
        if tool.annotations and tool.annotations.get("openWorldHint") is None:
            yield on_tool(tool, ": openWorldHint not stated.")


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
            yield Hit(
                f"tool {tool.name}", f"App-only tool `{tool.name}` writes; annotate it honestly."
            )


@rule("N10", "info", "Tools have a title", TOOL, "tools")
def titles_exist(seen: Snapshot) -> Hits:
    """A short title such as "Show orders" is what users see when asked to approve a call."""
    for tool in seen.tools:
        if not tool.raw.get("title") and not tool.annotations.get("title"):
            yield on_tool(tool, " has no title.")


def _payload(result: object) -> dict[str, object]:
    """A result without `_meta`, which may differ for reasons of transport."""
    return {key: value for key, value in as_object(result).items() if key != "_meta"}
