"""What a function's docstring says about its parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

__all__ = ["parameter_descriptions"]

_SECTION = re.compile(r"(?:Args|Arguments|Parameters):\s*")
_GOOGLE = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?:\s*(?P<text>.*)")
_SPHINX = re.compile(r":param\s+(?:[^:]*\s)?\*{0,2}(?P<name>\w+):\s*(?P<text>.*)")


def parameter_descriptions(function: Callable[..., Any]) -> dict[str, str]:
    """Read the `Args:` section (Google style) and `:param name:` lines (Sphinx style)."""
    lines = (inspect.getdoc(function) or "").splitlines()
    found: dict[str, list[str]] = {}
    base: int | None = None  # how far the entries of the section are indented
    current: list[str] | None = None
    in_section = False
    for line in lines:
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if sphinx := _SPHINX.fullmatch(text):
            in_section = False
            current = found[sphinx["name"]] = [sphinx["text"]]
        elif indent == 0 and text:
            in_section, base, current = bool(_SECTION.fullmatch(text)), None, None
        elif not text:
            current = None
        elif in_section and (base is None or indent <= base):
            base = indent
            entry = _GOOGLE.fullmatch(text)
            current = found.setdefault(entry["name"], [entry["text"]]) if entry else None
        elif current is not None:
            current.append(text)
    descriptions = {name: " ".join(part for part in text if part) for name, text in found.items()}
    return {name: text for name, text in descriptions.items() if text}
