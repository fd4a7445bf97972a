"""An MCP server in front of MCP servers: `Gateway`, and what configures it."""

from typing import TYPE_CHECKING

from transom.lazy import load_on_use

if TYPE_CHECKING:
    from transom.gateway.client_host import Display
    from transom.gateway.config import ServerConfig, read_config
    from transom.gateway.gateway import Gateway
    from transom.gateway.http import HttpGateway
    from transom.gateway.inputs import Approval

__all__ = ["Approval", "Display", "Gateway", "HttpGateway", "ServerConfig", "read_config"]

__getattr__, __dir__ = load_on_use(
    __name__,
    {
        "transom.gateway.client_host": "Display",
        "transom.gateway.config": "ServerConfig read_config",
        "transom.gateway.gateway": "Gateway",
        "transom.gateway.http": "HttpGateway",
        "transom.gateway.inputs": "Approval",
    },
)
