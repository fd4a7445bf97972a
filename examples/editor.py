"""A text editor: the model reads what the user has selected, and writes where the cursor is.

transom open examples/editor.py open_document '{"name": "Welcome"}'
transom check --call examples/editor.py
python examples/editor.py                        serves it over stdio

The server:
    open_document(name)                   the model calls it, and the View opens
    list_documents()                      the model calls it, and the answer is all there is
    save_document(name, text, version)    only the View: keeps the text

The View, for the model:
    get-text()                            the whole text, saved or not
    get-selection()                       the selected text, and where it is
    select-text(text)                     selects the first place where the text is found
    insert-text(text)                     at the cursor, in place of the selection
    save()                                disabled while there is nothing to save
"""

from pathlib import Path
from typing import Literal

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

from transom import ToolError
from transom.server import Views

Name = Literal["Welcome", "Release notes", "Recipe"]


class Document(msgspec.Struct):
    """A text under a name. Its version goes up by one whenever it is saved."""

    name: Name
    text: str
    version: int = 1


DOCUMENTS: dict[str, Document] = {
    document.name: document
    for document in (
        Document(
            "Welcome",
            "The quick brown fox jumps over the lazy dog.\n\n"
            "Select a few words, then ask your assistant to change them. It reads your "
            "selection, writes at the cursor, and saves only when there is something to save.",
        ),
        Document(
            "Release notes",
            "What is new\n\n- Tools that live in the page\n- Schemas that follow its state\n",
        ),
        Document(
            "Recipe",
            "Pancakes\n\n250 g flour\n500 ml milk\n3 eggs\n\n"
            "Whisk, let rest for half an hour, fry in butter.\n",
        ),
    )
}


def summary(document: Document) -> str:
    words = len(document.text.split())
    return f"{document.name} is open in the editor: version {document.version}, {words} words."


views = Views()

page = views.add(
    "ui://editor/document.html",
    html=Path(__file__).with_name("editor.html"),
    prefers_border=True,
    title="Editor",
    description="A document to read and write in, together with the user.",
)


@views.tool(
    opens=page,
    title="Open a document",
    annotations={"readOnlyHint": True, "openWorldHint": False},
    text=summary,
)
def open_document(name: Name = "Welcome") -> Document:
    """Open one of the user's documents in an editor."""
    return DOCUMENTS[name]


@views.helper(
    title="Save a document",
    annotations={
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": False,
    },
    text=lambda document: f"{document.name} is saved as version {document.version}.",
)
def save_document(name: Name, text: str, version: int) -> Document:
    """Save a text over the version it was made from."""
    document = DOCUMENTS[name]
    if version != document.version:
        raise ToolError(f"{name} was saved elsewhere as version {document.version}. Open it again.")
    document.text, document.version = text, version + 1
    return document


server = MCPServer("editor", version="1.0.0", extensions=[views])


@server.tool(
    title="List documents",
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
)
def list_documents() -> dict[str, int]:
    """List the user's documents and how many words each has."""
    return {name: len(document.text.split()) for name, document in DOCUMENTS.items()}


if __name__ == "__main__":
    server.run()
