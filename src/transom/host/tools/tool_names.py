"""The names by which a model knows tools.

1. A name is 1 to 64 of `A-Za-z0-9_-`: what every model API takes. A View's tool is `VIEWID__TOOL`,
   at most 40 of them, because MCP clients put `mcp__SERVER__` in front. A server's tool keeps its
   name, or is `SERVER__TOOL` if that name is taken or could be mistaken for another owner's. Server
   names have no `__` and no View has the name of a server, so the part before the first `__` is the
   owner.
2. A name that is too long loses its middle and gets a digest of the tool's name at its end. A name
   that already ends like a digest gets one too, so no tool can take another one's name. The same
   tool gets the same name every time, and the same digest in every View.
"""

from __future__ import annotations

import hashlib
import re

from transom.errors import UsageError

_MAX_NAME = 64
_MAX_OWNED = 40
_MIN_OF_TOOL = 16  # of a name with an owner in it, however long a server's name is
_MAX_SERVER = 32
_MAX_VIEW_STEM = 12
SEPARATOR = "__"
_DIGEST = 6

_FITS = re.compile(rf"[A-Za-z0-9_-]{{1,{_MAX_NAME}}}")
_ODD = re.compile(r"[^A-Za-z0-9_-]")
_DIGESTED = re.compile(rf".*_[0-9a-f]{{{_DIGEST}}}", re.DOTALL)
_WORD = re.compile(r"(?:^|[-_])[^-_]+")
_SAYS_NOTHING = {"mcp", "server", "localhost"}  # words in the name of a server
_VIEW_ID = re.compile(r"[A-Za-z0-9_-]+-\d+")


def check_server_name(name: str) -> None:
    """Check that a server may have this name."""
    fits = _FITS.fullmatch(name) and len(name) <= _MAX_SERVER and name[0].isalnum()
    if not fits or SEPARATOR in name or name.endswith("_"):
        raise UsageError(
            f"{name!r} is not a valid server name: use 1 to {_MAX_SERVER} of A-Z a-z 0-9 - and _, "
            "begin with a letter or digit, do not end with _ or have two _ in a row"
        )


def view_stem(server: str) -> str:
    """The beginning of the ids of a server's Views: `orders` in `orders-1`.

    It has whole words, if they are short enough, without those that say nothing.
    """
    words = _WORD.findall(server)
    telling = [word for word in words if word.strip("-_").lower() not in _SAYS_NOTHING] or words
    stem = telling[0].lstrip("-_")[:_MAX_VIEW_STEM]
    for word in telling[1:]:
        if len(stem) + len(word) > _MAX_VIEW_STEM:
            break
        stem += word
    return stem


def names_nothing(server: str) -> bool:
    """Whether it is made of an address, such as `127-0-0-1`, or says no more than `mcp-server`."""
    words = re.split("[-_]", server.lower())
    return all(word.isdecimal() or word in _SAYS_NOTHING for word in words)


def resource_name(uri: str) -> str:
    """What a server calls the resources of its Views: `orders` in `ui://orders/list.html`."""
    return "-".join(re.findall("[A-Za-z0-9]+", uri.removeprefix("ui://").partition("/")[0]))


def plain_name(tool: str) -> str:
    """A tool's own name, in a form that a model API takes."""
    return _fitted(tool, _MAX_NAME)


def owned_name(owner: str, tool: str, *, digest: bool = False) -> str:
    """The name of a tool with its View or server in front; `digest`: always add a digest."""
    prefix = f"{owner}{SEPARATOR}"
    room = max(_MAX_OWNED - len(prefix), _MIN_OF_TOOL)
    return prefix + _fitted(tool, room, digest=digest)


def owner_of(name: str) -> str | None:
    """The View or server that a name with an owner in it belongs to."""
    owner, separator, _ = name.partition(SEPARATOR)
    return owner if separator else None


def looks_owned(name: str) -> bool:
    """Whether a name looks like that of a View's tool."""
    owner = owner_of(name)
    return owner is not None and _VIEW_ID.fullmatch(owner) is not None


def _fitted(tool: str, room: int, *, digest: bool = False) -> str:
    """A tool's name in at most `room` characters that a model API takes."""
    short = len(tool) <= room
    if short and _FITS.fullmatch(tool) and not _DIGESTED.fullmatch(tool) and not digest:
        return tool
    whole = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()
    room -= _DIGEST + 1
    kept = _ODD.sub("_", tool)
    if len(kept) > room:
        tail = room // 3
        kept = f"{kept[: room - tail - 1]}-{kept[-tail:]}"
    return f"{kept}_{whole[:_DIGEST]}"
