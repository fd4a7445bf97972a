"""A: negotiation and fallback."""

from __future__ import annotations

from transom.check.rule import (
    CLIENT_CAPABILITIES,
    SERVER_BEHAVIOR,
    Hit,
    Hits,
    documented,
    on_tool,
    rule,
)
from transom.check.snapshot import APP_MIME_TYPE, EXTENSION_ID, Snapshot, has_text


@documented(
    "A1",
    "error",
    "The client says that it shows Views",
    CLIENT_CAPABILITIES,
    "about the client, not the server",
)
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
        yield Hit(
            "server",
            f"Server treats any `{EXTENSION_ID}` key as support; it must look for "
            f"`{APP_MIME_TYPE}` in `mimeTypes`.",
        )


@rule("A5", "error", "Text-only clients get a readable answer", SERVER_BEHAVIOR, "text_call")
def fallback_is_useful(seen: Snapshot) -> Hits:
    """A tool with a View must still answer a client without Views in words.

    The tool is called by a client that did not advertise MCP Apps; its `content` needs at least
    one text block that is not blank. Summarise in text what the View would show.
    """
    for tool, call in seen.called(client="text"):
        if tool.link is not None and call.result is not None and not has_text(call.result):
            yield on_tool(tool, " returns nothing readable to a text-only client.")
