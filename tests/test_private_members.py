"""A member that begins with an underscore is its module's own, but for the few that are shared."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "transom"
FILES = sorted(
    path for path in SOURCE.rglob("*.py") if "templates" not in path.relative_to(SOURCE).parts
)

SHARED = {
    "_call": "of a Host, a View and a Bridge: what both `call_tool` and `start_task` do",
    "_driver": "of a View: looks at its page, and acts on it",
    "_liveness": "of a View: whether it answers",
    "_stage": "of the renderers: the page that shows their Views",
    "_turn": "of a Seat: how the Views of one of several users take turns",
    **dict.fromkeys(("_fits", "_function", "_output", "_schema"), "of a RegisteredTool"),
}
"""What our own modules use of public classes. It is none of a user's business."""
OTHERS = {"_asdict", "_exit", "_fields", "_fixtureinfo", "_replace"}  # of other packages


def defined(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Attribute(ast.Name("self" | "cls"), attr=name, ctx=ast.Store()):
                yield name
            case ast.AnnAssign(ast.Name(name)) | ast.Assign([ast.Name(name)]):
                yield name
            case _:
                pass


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_uses_no_private_member_of_another(path: Path) -> None:
    tree = ast.parse(path.read_text())
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and is_private(node.attr)
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    }
    imported = {
        each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
        if is_private(each.name)
    }
    assert imported == set()
    assert used - set(defined(tree)) - SHARED.keys() - OTHERS == set()


def test_every_shared_member_is_used_by_another_module() -> None:
    texts = [path.read_text() for path in FILES]
    used = {
        name for name in SHARED for text in texts if f".{name}" in text.replace(f"self.{name}", "")
    }
    assert used == SHARED.keys()
