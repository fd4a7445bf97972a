"""The shop of the documentation's samples by streamable HTTP, at /mcp of any port."""

import asyncio
import sys

import uvicorn
from docs.samples.sample_shop import server

from transom.serving import listen

if __name__ == "__main__":
    with listen("127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        sys.stderr.write(f"The server is at {url}\n")
        config = uvicorn.Config(server.streamable_http_app(), log_level="critical", ws="none")
        asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))
