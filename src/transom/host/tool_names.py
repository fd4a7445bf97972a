"""The names a model sees.

1. A name is 1 to 64 of `A-Za-z0-9_-`: what every model API takes.
2. A View's tool is `VIEWID__TOOL`. A server's tool keeps its name, or is `SERVER__TOOL` when that
   name is taken or would pass for something else.
3. What does not fit is cut and gets a digest of the whole at its end. A name that ends like that
   by itself gets one too, so no tool can take another one's name.
4. The same tool gets the same name every time: nothing is stored, nothing depends on the order.
5. Server names have no `__` and no View has the name of a server, so the part before the first `__`
   is the owner.
"""

from __future__ import annotations

import hashlib
import re

from transom.errors import UsageError

__all__ = [
    "MAX_NAME",
    "SEPARATOR",
    "check_server_name",
    "looks_owned",
    "owned_name",
    "owner_of",
    "plain_name",
]

MAX_NAME = 64
_MAX_SERVER = 32
SEPARATOR = "__"
_DIGEST = 10

_FITS = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ODD = re.compile(r"[^A-Za-z0-9_-]")
_DIGESTED = re.compile(rf".*_[0-9a-f]{{{_DIGEST}}}", re.DOTALL)
_VIEW_ID = re.compile(r"[A-Za-z0-9_-]+-\d+")


def check_server_name(name: str) -> None:
    """Check that a server may have this name.

    Raises:
        UsageError: it may not; the text says what a name looks like.
    """
    fits = _FITS.fullmatch(name) and len(name) <= _MAX_SERVER and name[0].isalnum()
    if not fits or SEPARATOR in name or name.endswith("_"):
        raise UsageError(
            f"{name!r} cannot name a server: it takes 1 to {_MAX_SERVER} of A-Z a-z 0-9 - and _, "
            "begins with a letter or digit, ends with no _ and has no two _ in a row"
        )


def plain_name(tool: str) -> str:
    """A tool's own name, in a form that a model API takes."""
    return _fitted(tool, tool)


def owned_name(owner: str, tool: str, *, digest: bool = False) -> str:
    """The name of a tool with its View or server in front; `digest`: with a digest in any case."""
    return _fitted(f"{owner}{SEPARATOR}{tool}", tool, digest=digest)


def owner_of(name: str) -> str | None:
    """The View or server that a name with an owner in it belongs to."""
    owner, separator, _ = name.partition(SEPARATOR)
    return owner if separator else None


def looks_owned(name: str) -> bool:
    """Whether a name looks like that of a View's tool."""
    owner = owner_of(name)
    return owner is not None and _VIEW_ID.fullmatch(owner) is not None


def _fitted(name: str, tool: str, *, digest: bool = False) -> str:
    if _FITS.fullmatch(name) and not _DIGESTED.fullmatch(tool) and not digest:
        return name
    whole = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{_ODD.sub('_', name[: MAX_NAME - _DIGEST - 1])}_{whole[:_DIGEST]}"
