"""An MCP server in front of MCP servers: `Gateway`, and what configures it."""

from typing import TYPE_CHECKING

from transom.lazy import load_on_use

if TYPE_CHECKING:
    from transom.gateway.client_host import Approval, Display
    from transom.gateway.configuration.config import ServerConfig, read_config
    from transom.gateway.gateway import Gateway
    from transom.gateway.http import HttpGateway

__all__ = ["Approval", "Display", "Gateway", "HttpGateway", "ServerConfig", "read_config"]

if not TYPE_CHECKING:  # or every name would be one to them
    __getattr__, __dir__ = load_on_use(
        __name__,
        {
            ".client_host": "Approval Display",
            ".configuration.config": "ServerConfig read_config",
            ".gateway": "Gateway",
            ".http": "HttpGateway",
        },
    )
