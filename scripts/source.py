"""Reads the source of Transom: where a name is defined, what is said of it, its signature."""

from __future__ import annotations

import ast
import copy
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType

MADE_BY_US = {
    "CallContext",
    "HeadlessSeat",
    "HttpGateway",
    "OpenedView",
    "RegisteredTool",
    "RemoteHost",
    "Seat",
    "SentRequest",
    "ToolCache",
    "ToolList",
    "View",
    "ViewResource",
    "ViewServer",
    "ViewsFixture",
}
"""Classes whose instances come from Transom: how to make one is nobody's business."""


@cache
def tree(module: str) -> ast.Module:
    """A module's source, parsed."""
    return ast.parse(inspect.getsource(import_module(module)))


def statement(module: str, name: str) -> tuple[ast.stmt, str]:
    """Where a name is defined, and the docstring below it; followed through imports."""
    for found, place in assignments(tree(module).body):
        if found == name:
            return place
    for node in ast.walk(tree(module)):  # also below `if TYPE_CHECKING`
        if isinstance(node, ast.ImportFrom) and any(each.name == name for each in node.names):
            return statement(node.module or "", name)
    raise LookupError(f"{module} does not define {name}")


def assignments(body: list[ast.stmt]) -> Iterator[tuple[str, tuple[ast.stmt, str]]]:
    """Names that are assigned to, each with its statement and the string that follows it."""
    for index, node in enumerate(body):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                pass
            case _:
                continue
        match body[index + 1 : index + 2]:
            case [ast.Expr(value=ast.Constant(value=str(text)))]:
                yield name, (node, inspect.cleandoc(text))
            case _:
                yield name, (node, "")


def public_names(module: ModuleType) -> list[str]:
    """Its `__all__`; of a module without one, the names that it defines, constants first."""
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is not None:
        return listed
    body = tree(module.__name__).body
    defined = [name for name, _ in assignments(body)]
    defined += [node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    public = (name for name in defined if not name.startswith("_"))
    return sorted(public, key=lambda name: (not name.isupper(), name))


def class_body(cls: type) -> list[ast.stmt]:
    """What a class has in it."""
    node = next(
        node
        for node in ast.walk(tree(cls.__module__))
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__
    )
    return node.body


def definition(body: list[ast.stmt], name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The last function of that name: the one that counts, after its overloads."""
    found = None
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            found = node
    return found


class _Worth(ast.NodeTransformer):
    """Puts numbers in the place of what is worked out, such as `10 * _MB`."""

    def __init__(self, module: str) -> None:
        self._names = vars(import_module(module))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(...) if re.match("_[a-z]", node.id) else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if isinstance(node.op, ast.BitOr):
            return node
        text = compile(ast.fix_missing_locations(ast.Expression(node)), "docs", "eval")
        return ast.Constant(eval(text, dict(self._names)))  # noqa: S307 - our own source


def _spell_out_keywords(arguments: ast.arguments, module: str) -> None:
    """Put the keywords of a typed dictionary in the place of `**options: Unpack[...]`."""
    match arguments.kwarg:
        case ast.arg(annotation=ast.Subscript(value=ast.Name("Unpack"), slice=ast.Name(id=name))):
            keywords = getattr(import_module(module), name).__annotations__
        case _:
            return
    arguments.kwarg = None
    for key, hint in keywords.items():
        annotation = ast.parse(hint.__forward_arg__, mode="eval").body
        arguments.kwonlyargs.append(ast.arg(key, annotation))
        arguments.kw_defaults.append(ast.Constant(...))


def signature(
    node: ast.FunctionDef | ast.AsyncFunctionDef, *, name: str, bound: bool, module: str
) -> str:
    """`def name(...) -> type: ...`, without self when it is bound."""
    arguments = copy.deepcopy(node.args)
    for default in ("defaults", "kw_defaults"):
        worked_out = [each and _Worth(module).visit(each) for each in getattr(arguments, default)]
        setattr(arguments, default, worked_out)
    _spell_out_keywords(arguments, module)
    positional = [*arguments.posonlyargs, *arguments.args]
    if bound and positional and positional[0].arg in ("self", "cls"):
        arguments = ast.arguments(
            posonlyargs=arguments.posonlyargs[1:],
            args=arguments.args[0 if arguments.posonlyargs else 1 :],
            vararg=arguments.vararg,
            kwonlyargs=arguments.kwonlyargs,
            kw_defaults=arguments.kw_defaults,
            kwarg=arguments.kwarg,
            defaults=arguments.defaults,
        )
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    text = f"{word} {name}({ast.unparse(arguments)}){returns}: ..."
    return re.sub(r"\bm\.(?=[A-Z])", "", text)  # how our modules abbreviate `messages`
