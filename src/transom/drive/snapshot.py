"""What is on a View's page, as text for a model, and the difference between two such texts.

1. An answer of a page is the View's own words, whatever the page shows: it is read strictly, and is
   bounded here whatever the page's script did.
2. A text has one line for each thing. Whatever the View wrote is in quotation marks, which it
   cannot write itself, cleaned and cut. Roles, references and states are plain words, or left out.
3. What a text leaves out, it counts, and says how to ask for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from transom.drive.tools import is_ref
from transom.errors import InvalidResult
from transom.json_values import as_object, clean

MAX_NODES: Final = 2000
"""Things of one snapshot; the rest is counted."""
MAX_CHANGES: Final = 1000
"""Bytes of a difference; the rest is counted."""
NOTHING_CHANGED: Final = "Nothing changed that can be seen."

_MAX_NAME = 200  # characters of a name or a text
_MAX_KEPT = 1000  # characters of the role and the name of an element; our own script gives fewer
_MAX_HREF = 120
_MAX_STATES = 8
_MAX_DEPTH = 12  # of indentation
_MAX_GONE = 80  # characters of what is not there any more
_ROOM_FOR_NOTES = 300  # bytes

_WORD = re.compile(r"[a-z]{1,24}(-[a-z]{1,24})?")
_STATE = re.compile(r"[a-z]{1,16}|-?[0-9.]{1,16} to -?[0-9.]{1,16}")
_NUMBER = re.compile(r"[0-9.,:%+-]{1,32}", re.ASCII)

_FOCUSED = re.compile(r" \(focused\)$|, focused(?=\)$)")  # that it is lost says nothing new

_Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class Element(msgspec.Struct, frozen=True):
    """What a reference stands for, as the page describes it."""

    role: str
    name: str
    secret: bool = False
    """Whether it is a password field, or the like: what is typed there is shown to nobody."""

    def __str__(self) -> str:
        role = self.role if _WORD.fullmatch(self.role) else "element"
        return f"{role} {quoted(self.name)}" if self.name else role


class Line(msgspec.Struct, frozen=True):
    """One line of a snapshot. Lines with the same `key` are about the same thing."""

    depth: int
    text: str
    key: str = ""


class Snapshot(msgspec.Struct, frozen=True):
    """What is on a View's page. The View wrote it, not the user: treat it as data."""

    id: str
    """For `changes_since`."""
    text: str
    """What a model reads; with `changes_since`, only what changed."""
    refs: dict[str, Element]
    """What can be used, by reference."""
    lines: tuple[Line, ...] = ()
    """All lines, with those that the text leaves out."""
    find: str | None = None
    """The text that it was searched for."""
    under: str | None = None
    """The reference of the part that it is about."""
    modal: bool = False
    """Whether it is all of a dialog, behind which nothing can be used."""


class ActResult(msgspec.Struct, frozen=True):
    """What an act did, as far as the page shows it."""

    changes: str
    """What changed since the model last looked: lines with `+`, `~` or `-`.

    Or why that is not known.
    """
    snapshot_id: str
    """The snapshot with these changes, for `changes_since`; the last one if they are not known."""
    settled: bool = True
    """Whether the page has stopped changing."""
    ignored: bool = False
    """Whether nothing in the page reacted, such as to an event that no user caused."""


# --- answers of a page -----------------------------------------------------------------------


class _Node(msgspec.Struct, frozen=True):
    role: str
    depth: _Count = 0
    name: str = ""
    ref: str = ""
    value: str | None = None
    states: list[str] = []
    level: _Count | None = None
    href: str | None = None
    size: tuple[float, float] | None = None
    count: _Count | None = None
    of: str = ""
    under: str = ""
    secret: bool = False


class _Look(msgspec.Struct, frozen=True):
    nodes: list[_Node] = []
    left_out: _Count = 0
    private: _Count = 0
    offscreen: _Count = 0
    modal: bool = False


class Target(msgspec.Struct, frozen=True):
    """An answer to `target` or `act`: the element, or the problem with it."""

    target: Element | None = None
    to: Element | None = None
    problem: str = ""
    detail: str = ""
    of: str = ""
    """The reference that the problem is about, if it is not the first one."""
    begun: bool = False
    """Whether something may have been done before the problem was found."""
    done: bool = False
    settled: bool = False
    ignored: bool = False
    secret: bool = False
    """Whether it was a password field, or the like."""


def read_target(view_id: str, answer: object) -> Target:
    """The answer to `target` or `act`; an `InvalidResult` if it is none."""
    return _read(view_id, answer, Target)


def read_snapshot(
    view_id: str,
    answer: object,
    id: str,
    max_bytes: int,
    *,
    find: str | None = None,
    under: str | None = None,
) -> Snapshot:
    """The answer to `look`; an `InvalidResult` if it is none."""
    look: _Look = _read(view_id, answer, _Look)
    nodes = look.nodes[:MAX_NODES]
    lines = tuple(_line(node) for node in nodes)
    refs = {
        n.ref: Element(n.role[:_MAX_KEPT], n.name[:_MAX_KEPT], n.secret)
        for n in nodes
        if is_ref(n.ref)
    }
    if lines:
        left_out = look.left_out + len(look.nodes) - len(nodes)
        text = _text(lines, max_bytes, left_out, look)
    elif find is not None:
        text = f"Nothing on it matches {quoted(find)}."
    else:
        text = "There is nothing on it that can be read or used."
    return Snapshot(id, text, refs, lines, find, under, look.modal)


def _read(view_id: str, answer: object, kind: Any) -> Any:
    if "error" in (failed := as_object(answer)):
        why = quoted(str(failed["error"]))
        raise InvalidResult(f"View {view_id}: the script that uses its page failed: {why}")
    try:
        return msgspec.convert(answer, kind)
    except (msgspec.ValidationError, RecursionError):
        raise InvalidResult(f"The page of View {view_id} answered with nonsense") from None


# --- text ------------------------------------------------------------------------------------


def quoted(text: str, limit: int = _MAX_NAME) -> str:
    """A text of a View in quotation marks, which it cannot end itself."""
    return f'"{clean(text, limit).replace(chr(34), chr(39))}"'


def _counted(count: int, what: str, which: str = "") -> str:
    return f"{count} {which}{what}" + ("" if count == 1 else "s")


def _line(node: _Node) -> Line:
    role = node.role if _WORD.fullmatch(node.role) else "other"
    ref = node.ref if is_ref(node.ref) else ""
    if role == "more":
        under = node.under if is_ref(node.under) else ""
        what = node.of if _WORD.fullmatch(node.of) else "thing"
        text = f"… {_counted(node.count or 0, what, 'more ')}"
        text += f", under=[{under}]" if under else ""
        return Line(node.depth, text, f"more {what} {under}")
    if role == "private":
        return Line(node.depth, f"private: {_counted(node.count or 0, 'thing')} not shown")
    if role == "text":
        return Line(node.depth, quoted(node.name))
    parts = [role]
    if node.level is not None:
        parts.append(str(node.level))
    if node.name:
        parts.append(quoted(node.name))
    if ref:
        parts.append(f"[{ref}]")
    if node.count is not None and _WORD.fullmatch(node.of):
        parts.append(_counted(node.count, node.of))
    if node.size is not None:
        width, height = (round(side) if 0 <= side < 1e6 else 0 for side in node.size)
        parts.append(f"{width}x{height}")
    if node.value is not None:
        number = _NUMBER.fullmatch(node.value)
        is_table = node.count is not None  # whose value are the names of its columns
        parts[-1] += ":" if is_table else " ="
        parts.append(node.value if number else quoted(node.value))
    if node.href:
        parts.append(f"to {quoted(node.href, _MAX_HREF)}")
    states = [state for state in node.states[:_MAX_STATES] if _STATE.fullmatch(state)]
    if states:
        parts.append(f"({', '.join(states)})")
    return Line(node.depth, " ".join(parts), ref)


def _text(lines: Iterable[Line], max_bytes: int, left_out: int, look: _Look) -> str:
    shown: list[str] = []
    room = max_bytes - _ROOM_FOR_NOTES
    cut = 0
    for line in lines:
        text = "  " * min(line.depth, _MAX_DEPTH) + line.text
        room -= len(text.encode()) + 1
        if room >= 0:
            shown.append(text)
        else:
            cut += 1
    if left_out + cut:
        shown.append(
            f"… {left_out + cut} more things are left out: ask with find for those with a text, or "
            "with under for those in a part that has a reference"
        )
    if look.offscreen:
        shown.append(f"{look.offscreen} of these are scrolled out of sight.")
    if look.private and not any(node.role == "private" for node in look.nodes):
        shown.append(f"{_counted(look.private, 'thing', 'private ')} not shown.")
    return "\n".join(shown)


# --- differences -----------------------------------------------------------------------------


def changes_between(before: Snapshot, after: Snapshot) -> str:
    """What is new (`+`), different (`~`) or gone (`-`), by reference, or else by line."""
    known = {line.key: line.text for line in before.lines if line.key}
    there = {line.key for line in after.lines if line.key}
    unkeyed = Counter(line.text for line in before.lines if not line.key)
    found: list[str] = []
    for line in after.lines:
        if not line.key:
            unkeyed[line.text] -= 1
            if unkeyed[line.text] < 0:
                found.append(f"+ {line.text}")
        elif line.key not in known:
            found.append(f"+ {line.text}")
        elif line.text not in (known[line.key], _FOCUSED.sub("", known[line.key])):
            found.append(f"~ {line.text}")
    behind = len(before.lines) if after.modal and not before.modal else 0
    if behind:
        found.append(f"{_counted(behind, 'thing')} behind the dialog, until it is closed")
    for line in () if behind else before.lines:
        gone = line.key not in there if line.key else unkeyed[line.text] > 0
        if gone:
            unkeyed[line.text] -= not line.key
            found.append(f"- {clean(line.text, _MAX_GONE)}")
    if not found:
        return NOTHING_CHANGED
    shown: list[str] = []
    room = MAX_CHANGES
    for text in found:
        room -= len(text.encode()) + 1
        if room < 0:
            shown.append(f"… {len(found) - len(shown)} more changes: look again to see all of it")
            break
        shown.append(text)
    return "\n".join(shown)
