"""The command lines of gateways that are plain enough to be read without Typer.

Those that clients are configured with are. Whatever is not plain, wrong or in need of help is left
to Typer; `tests/cli/test_quick.py` has both read the same lines.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from transom.cli.options import GatewayOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CHOICES", "FLAGS", "quick_options"]

FLAGS: Final = {
    "--headless": "headless",
    "--no-open": "no_open",
    "--verbose": "verbose",
    "-v": "verbose",
}
CHOICES: Final = {
    "--surface": ("surface", ("flat", "indirect", "both")),
    "--approve": ("approve", ("client", "page", "elicit", "never")),
    "--csp": ("csp", ("compat", "strict")),
}


def quick_options(words: Sequence[str]) -> GatewayOptions | None:
    """What `gateway [OPTIONS] -- COMMAND…` or `gateway [OPTIONS] --config FILE` says.

    None: these words are for Typer.
    """
    if not words or words[0] != "gateway":
        return None
    found: dict[str, Any] = {}
    left = iter(words[1:])
    for word in left:
        if word == "--":
            found["command"] = tuple(left)
        elif word in FLAGS:
            found[FLAGS[word]] = True
        elif word in CHOICES:
            name, allowed = CHOICES[word]
            found[name] = next(left, None)
            if found[name] not in allowed:
                return None
        elif word == "--config":
            given = next(left, "-")
            if given.startswith("-"):
                return None
            found["config"] = Path(given)
        else:
            return None
    if bool(found.get("command")) == ("config" in found):
        return None  # neither or both
    return GatewayOptions(**found)
