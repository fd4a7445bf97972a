"""Conformance of hosts and Views of MCP Apps: `transom conform`.

`host.toml` and `view.toml` have the requirements. A host is measured by Views that are instruments
(`instrument.js`), which a server gives it (`server`); a View by a host that does nothing else
(`view_host`).
"""
