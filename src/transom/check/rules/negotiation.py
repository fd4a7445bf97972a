"""A: negotiation and fallback."""

from __future__ import annotations

from transom.check.catalogue import Hit, Hits, on_tool, rule
from transom.check.facts import APP_MIME_TYPE, EXTENSION_ID
from transom.check.results import has_text
from transom.check.snapshot import Snapshot
from transom.check.spec_links import CLIENT_CAPABILITIES, SERVER_BEHAVIOR
from transom.json_values import as_list, as_object


@rule("A1", "error", "The checker says that it shows Views", CLIENT_CAPABILITIES, "init")
def checker_advertises(seen: Snapshot) -> Hits:
    """A self-test: what our own client sent in its capabilities.

    A host names `io.modelcontextprotocol/ui` in `capabilities.extensions`, with
    `text/html;profile=mcp-app` among its `mimeTypes`. Servers hide their Views from clients that
    do not, so without it every other check would be about nothing.
    """
    extension = as_object(as_object(seen.apps.advertised.get("extensions")).get(EXTENSION_ID))
    if APP_MIME_TYPE not in as_list(extension.get("mimeTypes")):
        yield Hit(
            "checker",
            f"This client did not advertise MCP Apps (`{EXTENSION_ID}` with `{APP_MIME_TYPE}`); "
            "UI checks would be meaningless.",
        )


@rule("A2", "warn", "UI metadata only goes to clients that show Views", SERVER_BEHAVIOR, "text")
def metadata_is_gated(seen: Snapshot) -> Hits:
    """A client that did not advertise MCP Apps should get the same tools without `_meta.ui`.

    The server is listed twice, with and without the extension. Look at the client's capabilities
    when tools are listed, and leave the link out for clients that cannot follow it.
    """
    for tool in seen.text.tools if seen.text else ():
        if tool.link is not None:
            yield on_tool(
                tool,
                " carries `_meta.ui.resourceUri` even for a client without MCP Apps support; "
                "gate it on the client capability.",
            )


@rule("A3", "warn", "Text-only clients get the same tools", SERVER_BEHAVIOR, "text")
def fallback_exists(seen: Snapshot) -> Hits:
    """Every tool that opens a View for the model must exist for clients without Views too.

    Register it under the same name for everyone; only the UI metadata depends on the client.
    """
    names = {tool.name for tool in seen.text.tools} if seen.text else set[str]()
    for tool in seen.tools:
        if tool.link is not None and tool.for_model and tool.name not in names:
            yield on_tool(
                tool, " disappears for text-only clients; register a fallback under the same name."
            )


@rule("A4", "warn", "Support is read from mimeTypes, not from the key", CLIENT_CAPABILITIES, "text")
def mime_types_are_read(seen: Snapshot) -> Hits:
    """Naming the extension is not enough: the client must list `text/html;profile=mcp-app`.

    The server is listed a third time by a client that sends the extension with an empty
    `mimeTypes`. A server that looks only for the key sends Views to a client that cannot show
    them. (A server that sends them to everyone is told so by A2.)
    """
    if seen.no_mime is None or seen.text is None:
        return
    plain = {tool.name for tool in seen.text.tools if tool.link is not None}
    if any(tool.link is not None and tool.name not in plain for tool in seen.no_mime.tools):
        yield Hit(
            "server",
            f"Server treats any `{EXTENSION_ID}` key as support; it must look for "
            f"`{APP_MIME_TYPE}` in `mimeTypes`.",
        )


@rule("A5", "error", "Text-only clients get a readable answer", SERVER_BEHAVIOR, "call")
def fallback_is_useful(seen: Snapshot) -> Hits:
    """A tool with a View must still answer a client without Views in words.

    The tool is called by a client that did not advertise MCP Apps; its `content` needs at least
    one text block that is not blank. Summarise in text what the View would show.
    """
    for tool in seen.tools:
        if tool.link is None:
            continue
        for call in seen.calls_of(tool, client="text"):
            if call.result is not None and not has_text(call.result):
                yield on_tool(tool, " returns nothing readable to a text-only client.")
