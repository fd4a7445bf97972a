"""The names that MCP Apps adds to MCP."""

from __future__ import annotations

from typing import Final

__all__ = ["LEGACY_URI_KEY", "UI_EXTENSION", "VIEW_MIME_TYPE"]

UI_EXTENSION: Final = "io.modelcontextprotocol/ui"
"""The name of the MCP Apps extension, in `capabilities.extensions`."""

VIEW_MIME_TYPE: Final = "text/html;profile=mcp-app"
"""The type of a View's page, and what a client lists in `mimeTypes` to say that it shows Views."""

LEGACY_URI_KEY: Final = "ui/resourceUri"
"""The flat `_meta` key that linked a tool to its View before `_meta.ui.resourceUri`."""
