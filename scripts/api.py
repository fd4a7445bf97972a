"""Write docs/api.md from the docstrings, and docs/cli.md from what the commands say of themselves.

python scripts/api.py            writes both
python scripts/api.py --check    writes nothing, fails if one is not up to date
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeGuard

from docstrings import code, prose
from source import (
    MADE_BY_US,
    assignments,
    class_body,
    definition,
    public_names,
    signature,
    statement,
    tree,
)

from transom.cli.options import COMMANDS
from transom.events import Event

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


class Part(NamedTuple):
    """A chapter: a title, what it says first, and the names in it by the module to import from."""

    title: str
    lead: str
    names: dict[str, list[str]]


ALL = ["*"]
"""All public names of a module."""

PARTS = [
    Part(
        "Views in Python",
        "For the author of a View in Python. The guide is [Views in Python](views.md).",
        {
            "transom": ["App", "RegisteredTool", "CallContext"],
            "transom.view": ALL,
        },
    ),
    Part(
        "Hosts",
        "For the author of a host or an agent. The guide is [Hosts and agents](hosts.md).",
        {
            "transom": ["Host"],
            "transom.host": [
                *("View", "ViewState", "ViewOrigin", "ModelContext", "ToolHost", "ToolList"),
                "HostCallOptions",
                *("HostRecords", "ViewRecord", "ShownCall", "Provenance"),
            ],
            "transom ": ["Bridge", "Policy", "Allow", "AllowAlways", "Deny"],
            "transom.host ": [
                *("ApprovalRequest", "Approve", "Decision", "Grant", "Grantee", "GivenGrant"),
                "ask_in_terminal",
                "ElicitRequest",
                "ElicitField",
                "FieldFormat",
                "FieldKind",
                "FieldOption",
                *("BridgeListener", "LifecycleState", "ViewServer", "Download"),
                *("ToolOutcome", "OnProgress", "Progress", "ListTasksResult"),
                *("ModelApi", "Naming", "Opening", "Reuse", "ViewCalls", "Looks"),
            ],
            "transom.drive": ALL,
            "transom.traffic": ALL,
            "transom  ": ["Limits", "InProcessRenderer"],
            "transom.host  ": [
                *("Renderer", "AttachesToHost", "TakesScreenshots", "DrivesViews"),
                *("NoPlace", "MakeApp", "UIResource"),
                *("AuditLog", "AuditEvent", "AuditKind", "AuditDetails", "AuditFilter", "Redact"),
                "Sink",
                "read_audit",
            ],
        },
    ),
    Part(
        "Agent frameworks",
        "A host's tools in an agent. The guide is [Agent frameworks](agents.md).",
        {
            "transom.agents.pydantic_ai": ALL,
            "transom.agents.openai_agents": ALL,
            "transom.agents.langchain": ALL,
        },
    ),
    Part(
        "Connections to servers",
        "For hosts and everyone else who sends requests to MCP servers. `Host` makes its own; the "
        "guide is [Hosts](hosts.md#servers).",
        {"transom.connections": ALL},
    ),
    Part(
        "Servers",
        "For the author of an MCP server. The guide is [Servers with Views](servers.md).",
        {"transom.server": ALL},
    ),
    Part(
        "Views in a browser",
        "Renderers that show web pages. The guide is [Views in a browser](browser.md).",
        {"transom.web": ALL},
    ),
    Part(
        "The gateway",
        "The gateway without its command. The guide is [The gateway]"
        "(gateway.md#in-a-program-of-your-own).",
        {"transom.gateway": ALL},
    ),
    Part(
        "Workers of a fleet",
        "What several processes share by way of Redis. The guide is [Deploying](deploying.md).",
        {"transom.bus": ALL},
    ),
    Part(
        "Checking servers",
        "What `transom check` does, as functions. The guide is [Checking a server](check.md).",
        {"transom.check": ALL},
    ),
    Part(
        "Tests of Views",
        "What tests use beside the fixture `views`. The guide is [Tests of Views](testing.md).",
        {"transom.testing": ALL},
    ),
    Part(
        "Conformance",
        "How much of the specification a host does. The guide is [Conformance](conformance.md).",
        {"transom.conform": ALL},
    ),
    Part(
        "Handlers",
        "What a handler such as `host.on_message` is assigned to, or added to as a decorator.",
        {"transom.events": ALL},
    ),
    Part("Channels", "The pipes between a View and its host.", {"transom.channel": ALL}),
    Part("Errors", "", {"transom.errors": ALL}),
    Part(
        "Types",
        "What goes over the wire, as structs. Fields are in `snake_case` here and in `camelCase` "
        "on the wire; wherever a struct is taken, a mapping in wire form is taken too.",
        {"transom.types": ALL},
    ),
]

LEAD = """\
# API reference

<!-- Written by `make docs` from the docstrings. Edit those. -->

Every public name, by who uses it. What is imported from `transom` itself is loaded when it is first
used, so that `import transom` is cheap.
"""

_OF_A_SEAT = {
    *("check_view", "close_view", "forget_view", "key_of", "leave", "reopen_view"),
    *("set_context", "set_view_context", "withdraw"),
}
SKIPPED = {
    "App": {"report"},
    "ConformServer": {"done", "probes", "reported", "until"},
    "Bus": {"release", "write"},
    "Bridge": {"report", "request_task"},
    "Host": {"request_task"},
    "OpenedView": {"described_tools", "notify_changed", "on_message", "settle", "unexpected"},
    "Policy": {"trusts_everything"},
    "RegisteredTool": {"definition", "field", "lazy"},
    **dict.fromkeys(("BrowserRenderer", "HeadlessRenderer", "HeadlessSeat", "Seat"), _OF_A_SEAT),
    "Sandbox": {"has_host", "label", "template_for"},
    "View": {
        *("begin_closing", "begin_opening", "closed_error", "last_used", "mark_used"),
        *("counts", "record", "refreshed", "restarted"),
        "tools_changed",
    },
    "Progress": {"id", "params", "relayed"},
    "ServerConnection": {"introduced"},
    "ViewServer": {
        *("announces", "check_allowed", "close", "forward", "serves", "set_ready", "start"),
    },
    "ViewsFixture": {"report", "run_test"},
    "RemoteHost": {"aclose", "close_user", "connect", "request_task"},
    "ToolHost": {"request_task"},
}
"""What parts of Transom use of each other, and nobody else should."""


# --- names to Markdown ---------------------------------------------------------------------------


def document(module: ModuleType, name: str, value: object) -> str:
    """Everything about one public name."""
    if isinstance(value, type) and value.__module__.startswith("transom"):
        return _class(module, name, value)
    if inspect.isfunction(value):
        node = definition(tree(value.__module__).body, value.__name__)
        if node is None:
            raise LookupError(f"{value.__module__} does not define {name}")
        shown = signature(node, name=name, bound=False, module=value.__module__)
        return _entry(3, name, shown, doc_of(value), module)
    return _alias(module, name)


def doc_of(value: object) -> str:
    """Its own docstring."""
    return inspect.cleandoc(getattr(value, "__doc__", None) or "")


def _entry(level: int, name: str, shown: str, text: str, module: ModuleType | None = None) -> str:
    parts = [f"{'#' * level} `{name}`"]
    if module is not None:
        shown = f"from {module.__name__} import {name}\n\n{shown}"
    parts.append(code(shown, "python"))
    parts.append(prose(text))
    return "\n\n".join(part for part in parts if part)


def _alias(module: ModuleType, name: str) -> str:
    node, text = statement(module.__name__, name)
    return _entry(3, name, ast.unparse(node), text, module)


def _class(module: ModuleType, name: str, cls: type) -> str:
    body = class_body(cls)
    fields = [each for each in _fields(cls) if each[0] not in SKIPPED.get(name, ())]
    made = definition(body, "__init__")
    shown = f"from {module.__name__} import {name}"
    if made is not None and name not in MADE_BY_US:
        made_by = signature(made, name="__init__", bound=False, module=cls.__module__)
        shown += f"\n\nclass {name}:\n    {made_by}"
    parts = [f"### `{name}`", code(shown, "python"), prose(doc_of(cls))]
    if fields:
        parts.append(_field_table(fields))
    members = list(_members(name, cls))
    parts.append(_attribute_table(_attributes(name, cls, members)))
    parts += [
        _method(name, member, value, home)
        for member, value, home in members
        if not isinstance(value, property)
    ]
    return "\n\n".join(part for part in parts if part)


def _family(cls: type) -> list[type]:
    return [each for each in cls.__mro__ if each.__module__.startswith("transom")]


def _fields(cls: type) -> list[tuple[str, str, str, str]]:
    """Field, type, default and meaning, of a struct or a named tuple."""
    kinds = ("__struct_fields__", "_fields", "__dataclass_fields__")
    names = next((tuple(getattr(cls, kind)) for kind in kinds if hasattr(cls, kind)), ())
    found: dict[str, tuple[str, str, str, str]] = {}
    for home in _family(cls):
        for name, (node, text) in assignments(class_body(home)):
            if isinstance(node, ast.AnnAssign) and name in names and name not in found:
                default = "" if node.value is None else _default(node.value)
                found[name] = (name, ast.unparse(node.annotation), default, text)
    return [found[name] for name in names if name in found]


def _default(node: ast.expr) -> str:
    match node:
        case ast.BinOp():
            return f"{eval(compile(ast.Expression(node), 'docs', 'eval')):_}"  # noqa: S307 - ours
        case ast.Call(keywords=keywords):
            for keyword in keywords:
                if keyword.arg == "default":
                    return ast.unparse(keyword.value)
                if keyword.arg == "default_factory":
                    return {"list": "[]", "dict": "{}"}.get(ast.unparse(keyword.value), "")
            return ""
        case _:
            return ast.unparse(node)


def _field_table(fields: list[tuple[str, str, str, str]]) -> str:
    explained = any(text for *_, text in fields)
    rows = ["| field | type | default |" + (" |" if explained else "")]
    rows.append("| --- | --- | --- |" + (" --- |" if explained else ""))
    for name, kind, default, text in fields:
        shown = "" if not default else f"`{default}`"
        row = f"| `{name}` | `{kind}` | {shown} |"
        rows.append(_escaped(row) + (f" {' '.join(text.split())} |" if explained else ""))
    return "\n".join(rows)


def _escaped(row: str) -> str:
    """A table takes every bar for its own, those inside code too."""
    return re.sub(r"`[^`]*`", lambda found: found[0].replace("|", r"\|"), row)


def _members(name: str, cls: type) -> Iterator[tuple[str, Any, type]]:
    seen = set(SKIPPED.get(name, ()))
    for home in _family(cls):
        for member, value in vars(home).items():
            hidden = member.startswith("_") and member != "__call__"
            if hidden or member in seen or isinstance(value, Event):
                continue
            if inspect.isfunction(value) or isinstance(
                value, property | classmethod | staticmethod
            ):
                seen.add(member)
                yield member, value, home


def _attributes(
    name: str, cls: type, members: list[tuple[str, Any, type]]
) -> list[tuple[str, str, str]]:
    """Attribute, type and meaning: what `__init__` sets and explains, fields, and properties."""
    found: list[tuple[str, str, str]] = []
    skipped = SKIPPED.get(name, ())
    for home in _family(cls):
        made = definition(class_body(home), "__init__")
        for attribute, kind, text in () if made is None else _set_in(made):
            if attribute not in skipped:
                found.append((attribute, kind, text))
        for attribute, (node, _) in assignments(class_body(home)):
            value = inspect.getattr_static(cls, attribute, None)
            if type(value).__name__ == "_Field" and isinstance(node, ast.Assign):
                match node.value:
                    case ast.Call(func=ast.Subscript(slice=kind)):
                        found.append((attribute, ast.unparse(kind), doc_of(value)))
    for member, value, home in members:
        node = next((each for each in class_body(home) if _is_getter(each, member)), None)
        if isinstance(value, property) and node is not None:
            kind = "object" if node.returns is None else ast.unparse(node.returns)
            found.append((member, kind, doc_of(value)))
    return found


def _is_getter(node: ast.stmt, name: str) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef) and node.name == name


def _set_in(made: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str, str]]:
    body = made.body
    given = {arg.arg: arg.annotation for arg in (*made.args.args, *made.args.kwonlyargs)}
    for index, node in enumerate(body):
        match node, body[index + 1 : index + 2]:
            case (
                ast.AnnAssign(target=ast.Attribute(attr=name), annotation=kind),
                [ast.Expr(value=ast.Constant(value=str(text)))],
            ) if not name.startswith("_"):
                yield name, ast.unparse(kind), inspect.cleandoc(text)
            case (
                ast.Assign(targets=[ast.Attribute(attr=name)], value=value),
                [ast.Expr(value=ast.Constant(value=str(text)))],
            ) if not name.startswith("_"):
                match value:
                    case ast.Name(id=argument) if (hint := given.get(argument)) is not None:
                        kind = ast.unparse(hint)
                    case ast.Constant(value=bool()):
                        kind = "bool"
                    case _:
                        kind = ""
                yield name, kind, inspect.cleandoc(text)


def _attribute_table(attributes: list[tuple[str, str, str]]) -> str:
    if not attributes:
        return ""
    rows = ["| attribute | type | |", "| --- | --- | --- |"]
    for name, kind, text in attributes:
        shown = f"`{kind}`" if kind else ""
        said = prose(text).replace("\n\n", "<br>").replace("\n", " ")
        rows.append(f"{_escaped(f'| `{name}` | {shown} |')} {said} |")
    return "\n".join(rows)


def _method(name: str, member: str, value: Any, home: type) -> str:
    node = definition(class_body(home), member)
    if node is None:
        return ""
    function = getattr(value, "__func__", value)
    bound = not isinstance(value, staticmethod)
    shown = signature(node, name=member, bound=bound, module=home.__module__)
    for kind in (classmethod, staticmethod):
        if isinstance(value, kind):
            shown = f"@{kind.__name__}\n{shown}"
    return _entry(4, f"{name}.{member}", shown, doc_of(function))


def names_in(part: Part) -> Iterator[tuple[ModuleType, str]]:
    """The public names of a chapter, each with the module to import it from."""
    for place, names in part.names.items():
        module = import_module(place.strip())
        listed = public_names(module) if names == ALL else names
        yield from ((module, name) for name in listed if name != "__version__")


def contents(part: Part) -> str:
    """Links to what a chapter has."""
    return ", ".join(
        f"[`{name}`](#{name.lower()})"
        for module, name in names_in(part)
        if not isinstance(getattr(module, name), int)
    )


def api() -> str:
    """docs/api.md."""
    pieces = [LEAD, "\n".join(f"- [{p.title}](#{_anchor(p.title)}): {contents(p)}" for p in PARTS)]
    for part in PARTS:
        pieces.append(f"## {part.title}")
        if part.title == "Errors":
            pieces.append(prose(doc_of(import_module("transom.errors"))))
        if part.lead:
            pieces.append(part.lead)
        found = [(module, name, getattr(module, name)) for module, name in names_in(part)]
        pieces.append(_constants([each for each in found if isinstance(each[2], int)]))
        pieces += [document(*each) for each in found if not isinstance(each[2], int)]
    return _formatted("\n\n".join(p.strip() for p in pieces if p.strip()) + "\n", "api.md")


def _constants(found: list[tuple[ModuleType, str, Any]]) -> str:
    if not found:
        return ""
    rows = [f"| constant of `{found[0][0].__name__}` | value |", "| --- | --- |"]
    ordered = sorted(found, key=lambda each: each[2])
    return "\n".join(rows + [f"| `{name}` | `{value}` |" for _, name, value in ordered])


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _formatted(text: str, name: str) -> str:
    """As `make check` wants it."""
    run = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(DOCS / name), "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return run.stdout


# --- the command line ----------------------------------------------------------------------------

CLI_LEAD = """\
# Commands

<!-- Written by `make docs` from the commands themselves. Edit those. -->

What `transom` and each of its commands say with `--help`.
"""


def help_of(command: str) -> str:
    """What a command says of itself, 88 columns wide, without colour."""
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LANG")}
    plain = {"COLUMNS": "88", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    run = subprocess.run(
        [sys.executable, "-m", "transom", *command.split(), "--help"],
        capture_output=True,
        encoding="utf-8",
        check=True,
        env=kept | plain,
    )
    return "\n".join(line.rstrip() for line in run.stdout.splitlines()).strip("\n")


def cli() -> str:
    """docs/cli.md."""
    commands = ["", *COMMANDS]
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(help_of, commands))
    pieces = [CLI_LEAD.strip()]
    for command, text in zip(commands, said, strict=True):
        name = f"transom {command}".strip()
        pieces.append(f"## {name}\n\n```text\n{text}\n```")
    return "\n\n".join(pieces) + "\n"


PAGES = {"api.md": api, "cli.md": cli}


def main() -> int:
    """Write the pages, or with --check only compare."""
    check = "--check" in sys.argv[1:]
    late = 0
    for name, make in PAGES.items():
        page, text = DOCS / name, make()
        if page.exists() and page.read_text() == text:
            continue
        late += 1
        if check:
            print(f"docs/{name} is not up to date: run `make docs`")
        else:
            page.write_text(text)
            print(f"docs/{name} written")
    return 1 if check and late else 0


if __name__ == "__main__":
    sys.exit(main())
