"""A View that is read and used through its page, and pages to do that to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.mcpserver import MCPServer

from tests.browser.hosting import User
from transom import Host, Policy
from transom.server import Views

URI = "ui://tests/driven"
CONNECT = '<script>new transom.App({ name: "driven", version: "1" }).connect();</script>'


def page(body: str) -> str:
    """A page with this body, that connects to its host."""
    head = '<meta charset="utf-8"><script src="transom.js"></script>'
    return f"<!doctype html><html><head>{head}</head><body>{body}{CONNECT}</body></html>"


class Driven:
    """A View that is open, and requests to its page."""

    def __init__(self, renderer: Any, view_id: str) -> None:
        self.renderer = renderer
        self.view_id = view_id

    async def drive(self, op: str, **request: Any) -> dict[str, Any]:
        return await self.renderer.drive(self.view_id, {"op": op, **request})

    async def look(self, **request: Any) -> str:
        """What the page shows, as lines."""
        return lines(await self.drive("look", **request))

    async def act(self, ref: str, action: str, value: str | None = None) -> dict[str, Any]:
        to = value if action == "drag_to" else None
        return await self.drive("act", ref=ref, action=action, value=value, to=to)

    async def ref(self, line: str) -> str:
        """The reference of what a line of the page begins with."""
        for node in (await self.drive("look", find=line.partition('"')[2].rstrip('"')))["nodes"]:
            if f'{node["role"]} "{node["name"]}"' == line:
                return node["ref"]
        raise AssertionError(f"{line} is not on the page:\n{await self.look()}")


def lines(answer: dict[str, Any]) -> str:
    """The nodes of a look without their references, a line each."""
    return "\n".join(_line(node) for node in answer["nodes"])


def _line(node: dict[str, Any]) -> str:
    text = "  " * node["depth"] + node["role"]
    text += f" {node['level']}" if "level" in node else ""
    text += f' "{node["name"]}"' if node["name"] else ""
    text += f" {node['count']} {node.get('of', '')}" if "count" in node else ""
    text += f" {node['size']}" if "size" in node else ""
    text += f" = {node['value']}" if "value" in node else ""
    text += f" -> {node['href']}" if "href" in node else ""
    return text + (f" ({', '.join(node['states'])})" if "states" in node else "")


@asynccontextmanager
async def driven(renderer: Any, *bodies: str, html: str = "") -> AsyncIterator[list[Driven]]:
    """Views with these bodies, each open."""
    views = Views()
    for number, body in enumerate(bodies or ("",)):
        made = views.add(f"{URI}{number}.html", html=html or page(body))

        @views.tool(name=f"show{number}", opens=made, annotations={"readOnlyHint": True})
        def show() -> str:
            """Open it."""
            return "shown"

    async with Host(renderer=renderer, policy=Policy.trusting(), audit=None) as host:
        await host.add_server("tests", MCPServer("tests", extensions=[views]))
        opened: list[Driven] = []
        for number in range(max(1, len(bodies))):
            result = await host.call_tool(f"show{number}")
            note = (result.meta or {})["transom/view"]
            assert note["state"] == "live", note
            opened.append(Driven(renderer, note["id"]))
        yield opened


def in_page(user: User, view: Driven) -> Any:
    """What is inside the View."""
    return user.in_view(view.view_id)
