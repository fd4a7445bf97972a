"""`transom new`: write a project with a server, its View and a test.

A template is a folder of files in `templates/`, complete and runnable as they are. Those of `plain`
are in every project, unless the template has its own in their place. A project gets the name that
is asked for in the place of `my-view`, and Transom itself from where this one was installed.
"""

from __future__ import annotations

import re
import sys
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from transom.cli.author_options import NewOptions, Template
from transom.cli.files import copy_files
from transom.errors import UsageError
from transom.gateway.configuration.install import transom_requirement

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MAX_NAME: Final = 60
_SKIPPED: Final = ("__pycache__", "node_modules")


def run(options: NewOptions) -> int:
    """Write the project; the exit code."""
    written = write_project(Path(options.name), options.template)
    for file in written:
        sys.stdout.write(f"{file}\n")
    sys.stdout.write(f"\ncd {options.name}\ntransom dev server.py\n")
    return 0


def write_project(folder: Path, template: Template) -> list[Path]:
    """Write a project into a folder that is new or empty, and has the name of the project.

    Raises:
        UsageError: that is no name, or something is there. Nothing is written.
        OSError: it cannot be written there.
    """
    name = folder.name
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        raise UsageError(
            f"{name!r} is no name for a project: use small letters, digits and hyphens, such as "
            "my-view"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already: give a new name, or an empty folder")
    content: dict[str, str] = {}
    for each in dict.fromkeys(("plain", template)):
        content |= _content(files("transom.cli") / "templates" / each)
    content[".gitignore"] = content.pop("gitignore")  # there, it would be one of Transom itself
    requirements = {
        '"transom"': f'"{transom_requirement()}"',
        '"transom[testing]"': f'"{transom_requirement("testing")}"',
    }
    written: list[Path] = []
    for path, text in sorted(content.items()):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        title = name.replace("-", " ").capitalize()
        with file.open("x", encoding="utf-8") as new:
            words = {"my-view": name, "My view": title}
            if path in ("pyproject.toml", "README.md"):
                words |= requirements
            for known, ours in words.items():
                text = text.replace(known, ours)  # noqa: PLW2901
            new.write(text)
        written.append(file)
    if template == "react":
        written += copy_files(folder / "page" / "src" / "transom")
    return written


def _content(folder: Traversable, below: str = "") -> dict[str, str]:
    """The texts of the files in a folder, by their path."""
    found: dict[str, str] = {}
    for entry in folder.iterdir():
        path = f"{below}{entry.name}"
        if entry.is_file():
            found[path] = entry.read_text("utf-8")
        elif entry.name not in _SKIPPED:
            found |= _content(entry, f"{path}/")
    return found
