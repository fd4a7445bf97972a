"""The places in the specifications that rules refer to."""

from __future__ import annotations

from transom.check.catalogue import Clause

_APPS = "https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/draft/apps.mdx"
_CORE = "https://modelcontextprotocol.io/specification/2025-11-25"


def _apps(section: str, anchor: str) -> Clause:
    return Clause(f"MCP Apps, {section}", f"{_APPS}#{anchor}")


CLIENT_CAPABILITIES = _apps("Client (Host) Capabilities", "client-host-capabilities")
SERVER_BEHAVIOR = _apps("Server Behavior", "server-behavior")
RESOURCE_FORMAT = _apps("UI Resource Format", "ui-resource-format")
METADATA_LOCATION = _apps("Metadata Location", "metadata-location")
CONTENT_REQUIREMENTS = _apps("Content Requirements", "content-requirements")
HOST_BEHAVIOR = _apps("Host Behavior", "host-behavior")
RESOURCE_DISCOVERY = _apps("Resource Discovery", "resource-discovery")
VISIBILITY = _apps("Visibility", "visibility")
LIFECYCLE = _apps("Lifecycle", "lifecycle")
APP_TOOLS = _apps("App-Provided Tools", "app-provided-tools")
SECURITY = _apps("Security Implications", "security-implications")
TOOL = Clause("MCP, Tools", f"{_CORE}/server/tools#tool")
TOOL_RESULT = Clause("MCP, Tool Result", f"{_CORE}/server/tools#tool-result")
STRUCTURED = Clause("MCP, Structured Content", f"{_CORE}/server/tools#structured-content")
OUTPUT_SCHEMA = Clause("MCP, Output Schema", f"{_CORE}/server/tools#output-schema")
ERRORS = Clause("MCP, Error Handling", f"{_CORE}/server/tools#error-handling")
ANNOTATIONS = Clause("MCP, ToolAnnotations", f"{_CORE}/schema#toolannotations")
