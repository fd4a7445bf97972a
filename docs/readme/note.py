from pathlib import Path

from mcp.server.mcpserver import MCPServer

from transom.server import Views

views = Views()
page = views.add("ui://note/page.html", html=Path(__file__).with_name("note.html"))


@views.tool(opens=page, annotations={"readOnlyHint": True})
def open_note(text: str = "") -> dict[str, str]:
    """Open a note for the user to edit."""
    return {"text": text}


server = MCPServer("note", extensions=[views])

if __name__ == "__main__":
    server.run()
