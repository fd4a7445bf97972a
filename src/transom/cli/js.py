"""`transom js`: the browser's files of Transom, copied into a project that has a bundler."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Final

from transom.errors import TransomError
from transom.version import __version__

__all__ = ["FILES", "copy_files"]

FILES: Final = (
    "transom.js",
    "transom.d.ts",
    "webmcp.js",
    "webmcp.d.ts",
    "react.js",
    "react.d.ts",
)
_MARK: Final = "// Copied by transom js"


def copy_files(folder: Path) -> list[Path]:
    """Copy them into a folder, which is made if it is not there. Earlier copies are replaced.

    Raises:
        TransomError: a file of that name is there, and is not a copy of ours. Nothing is copied.
    """
    targets = [folder / name for name in FILES]
    for target in targets:
        if target.exists() and not target.read_text(encoding="utf-8").startswith(_MARK):
            raise TransomError(
                f"{target} is there and was not put there by transom js. Choose another folder."
            )
    folder.mkdir(parents=True, exist_ok=True)
    source = files("transom").joinpath("web", "static")
    for target in targets:
        text = source.joinpath(target.name).read_text(encoding="utf-8")
        mark = f"{_MARK} of Transom {__version__}. Run it again to replace this file.\n"
        target.write_text(mark + text, encoding="utf-8")
    return targets
