"""Docstrings as Markdown."""

from __future__ import annotations

import ast
import re
import textwrap

_SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields):")
_ENTRY = re.compile(r"([\w*., ]+): (.*)")
_TITLES = {"Args": "Takes"}


def prose(text: str) -> str:
    """A docstring as Markdown."""
    parts: list[str] = []
    lines = text.splitlines()
    while lines:
        block = _take_block(lines)
        found = _SECTION.fullmatch(block[0])
        if found is not None:
            parts.append(_section(found[1], textwrap.dedent("\n".join(block[1:])).splitlines()))
        elif all(line.startswith("    ") or not line for line in block):
            parts.append(code(textwrap.dedent("\n".join(block))))
        else:
            parts.append("\n".join(block))
    return "\n\n".join(part for part in parts if part.strip())


def _take_block(lines: list[str]) -> list[str]:
    """Lines that belong together: a paragraph, a section, or indented lines with gaps."""
    while lines and not lines[0].strip():
        del lines[0]
    block: list[str] = []
    while lines:
        line = lines[0]
        if block and line.strip():
            indented = line.startswith("    ")
            was_section = _SECTION.fullmatch(block[0]) is not None
            was_code = block[0].startswith("    ")
            if (was_section or was_code) and not indented:
                break
            if _SECTION.fullmatch(line):
                break
        elif block and not (_may_have_gaps(block[0]) and _goes_on(lines)):
            break
        block.append(lines.pop(0))
    while block and not block[-1].strip():
        block.pop()
    return block or [""]


def _may_have_gaps(first: str) -> bool:
    return not first[:1].isalpha() or _SECTION.fullmatch(first) is not None


def _goes_on(lines: list[str]) -> bool:
    following = next((line for line in lines if line.strip()), "")
    return following.startswith("    ")


def code(text: str, language: str | None = None) -> str:
    """A block of code; Python if it can be read as such."""
    if language is None:
        try:
            compile(text, "docs", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            language = "python"
        except SyntaxError:
            language = "text"
    return f"```{language}\n{text.rstrip()}\n```"


def _section(title: str, lines: list[str]) -> str:
    entries: list[list[str]] = []
    for line in lines:
        if line.startswith(" ") and entries:
            entries[-1].append(line.strip())
        elif line.strip():
            entries.append([line.strip()])
    if title in ("Returns", "Yields"):
        return f"*{_TITLES.get(title, title)}:* " + "\n".join(
            line for entry in entries for line in entry
        )
    said: list[str] = []
    for entry in entries:
        text = " ".join(entry)
        found = _ENTRY.fullmatch(text)
        if found is None:
            said.append(f"- {text}")
            continue
        names = ", ".join(f"`{name.strip()}`" for name in found[1].split(","))
        said.append(f"- {names}: {found[2]}")
    return f"*{_TITLES.get(title, title)}:*\n\n" + "\n".join(said)
