"""Look at what is in a wheel and an sdist: all that an installed Transom needs, and no more."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

NEEDED = (
    "transom/py.typed",
    "transom/check/contract.md",
    "transom/web/static/transom.js",
    "transom/web/static/inline-webmcp.js",
    "transom/web/static/zod.js",
    "transom/web/static/react.d.ts",
    "transom/web/static/views.js",
    "transom/examples/demo.py",
    "transom/examples/music.py",
    "transom/examples/music.html",
)
"""Files that are easily forgotten."""
UNWANTED = ("node_modules", "__pycache__", "tests/", ".venv")


def names_in(file: Path) -> list[str]:
    """The names of the files in a wheel or an sdist."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            return wheel.namelist()
    with tarfile.open(file) as sdist:
        return [name.partition("/")[2] for name in sdist.getnames()]


def problems(names: list[str], *, wheel: bool) -> list[str]:
    """What is missing, and what should not be there."""
    found = [f"{name} should not be there" for name in names if any(u in name for u in UNWANTED)]
    if wheel:
        found += [f"{name} is missing" for name in NEEDED if name not in names]
    else:
        found += [f"{name} is missing" for name in ("README.md", "LICENSE") if name not in names]
    return found


def main() -> int:
    """Look at each file in the folder; 1 when one is not as it should be."""
    failed = False
    for file in sorted(Path(sys.argv[1]).iterdir()):
        names = names_in(file)
        for problem in problems(names, wheel=file.suffix == ".whl"):
            print(f"{file.name}: {problem}")
            failed = True
        print(f"{file.name}: {len(names)} files, {file.stat().st_size / 1024:,.0f} KB")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
