"""What the user always allows: bound to a View, a tool, and the definition that they saw."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable
from typing import Any, Literal, NamedTuple, cast

import msgspec

from transom.protocol.messages import is_ours
from transom.types import Tool


class Grant(msgspec.Struct, frozen=True):
    """A tool that the user always allows."""

    tool: str
    by: Literal["model", "view", "drive"] = "model"
    """Who may call it: the model (a tool of the View), or the View (a tool of its server). With
    `drive`, the model may use the View's page so."""


class Grantee(NamedTuple):
    """Whose use of tools is granted. A View's tool and a tool of its server may share a name."""

    kind: Literal["model", "view", "server", "drive"]
    """The model calls a View's tools, a View those of its server, a server's tools open Views, the
    model uses a View's page."""
    owner: str
    """The View's id, or the server's name."""


class GivenGrant(msgspec.Struct, frozen=True):
    """A grant with the definition that the user saw."""

    grantee: Grantee
    tool: str
    registration: int | None
    fingerprint: str


class Grants:
    """What the user always allows, by View and tool, bound to the definition they saw.

    A tool that is disabled and enabled again keeps its grant. One that was removed and registered
    again is another tool: Views made with Transom number their registrations. In any other View, a
    tool that left the list and came back is another tool, unless the View reported it as disabled.

    `on_changed` is called with the id of a View whose grants changed.
    """

    def __init__(self, on_changed: Callable[[str], object] = lambda _: None) -> None:
        self._given: dict[tuple[Grantee, str], tuple[int | None, str]] = {}
        self._on_changed = on_changed

    def give(self, grantee: Grantee, tool: Tool) -> None:
        """Always allow `tool`, while its definition stays the same."""
        self._given[grantee, tool.name] = (tool.registration, fingerprint(tool))
        if grantee.kind != "server":
            self._on_changed(grantee.owner)

    def covers(self, grantee: Grantee, tool: Tool) -> bool:
        """Whether the user always allows `tool` as it is now."""
        given = self._given.get((grantee, tool.name))
        return given is not None and given == (tool.registration, fingerprint(tool))

    def outdated(self, grantee: Grantee, tool: Tool) -> bool:
        """Whether a tool of that name was always allowed, but with another definition."""
        given = self._given.get((grantee, tool.name))
        return given is not None and given[1] != fingerprint(tool)

    def keep_only(self, view_id: str, names: Container[str]) -> None:
        """Drop the grants of tools without a registration number that left the View's list."""
        mine = Grantee("model", view_id)
        for (grantee, name), (registration, _) in list(self._given.items()):
            if grantee == mine and registration is None and name not in names:
                self.withdraw(view_id, Grant(name))

    def granted(self, view_id: str) -> tuple[str, ...]:
        """What the model may always do: the names of tools, and those of looks and acts."""
        return tuple(grant.tool for grant in self.of(view_id) if grant.by != "view")

    def forget(self, view_id: str) -> None:
        """Drop all grants of a View that has closed."""
        for grant in self.of(view_id):
            self.withdraw(view_id, grant)

    def forget_server(self, server: str) -> None:
        """Drop the grants to open Views of a server that is gone."""
        gone = Grantee("server", server)
        self._given = {key: given for key, given in self._given.items() if key[0] != gone}

    def of(self, view_id: str) -> list[Grant]:
        """All grants of a View."""
        return [
            Grant(name, grantee.kind)
            for grantee, name in self._given
            if grantee.kind != "server" and grantee.owner == view_id
        ]

    def withdraw(self, view_id: str, grant: Grant) -> bool:
        """Ask again before that tool runs; False if it had no grant."""
        given = self._given.pop((Grantee(grant.by, view_id), grant.tool), None)
        if given is not None:
            self._on_changed(view_id)
        return given is not None

    def records(self) -> list[GivenGrant]:
        """All grants, for `restore`."""
        return [GivenGrant(*key, *given) for key, given in self._given.items()]

    def restore(self, grants: Iterable[GivenGrant]) -> None:
        """Take over grants that the user gave before."""
        for each in grants:
            self._given[each.grantee, each.tool] = each.registration, each.fingerprint


def same_tool(tool: Tool, other: Tool) -> bool:
    """Whether two definitions are of the same registration, and equal in meaning."""
    if tool == other:
        return True
    same_registration = tool.name == other.name and tool.registration == other.registration
    return same_registration and fingerprint(tool) == fingerprint(other)


_DATA_KEYWORDS = frozenset({"default", "enum", "examples"})


def fingerprint(tool: Tool) -> str:
    """A digest of the parts of a definition that a user relies on when they allow the tool.

    The values of `enum`, `default` and `examples` in its schemas are left out: they follow the
    View's data (a list of open files, of tracks) while the tool stays the same. So are Transom's
    own keys of `_meta`.
    """
    meta = {key: value for key, value in (tool.meta or {}).items() if not is_ours(key)}
    meaning = msgspec.structs.replace(
        tool,
        meta=meta or None,
        input_schema=_without_data(tool.input_schema),
        output_schema=_without_data(tool.output_schema),
    )
    return hashlib.sha256(msgspec.json.encode(meaning, order="deterministic")).hexdigest()


def _without_data(schema: Any, *, names: bool = False) -> Any:
    """The schema without its data. Below `properties`, keys are names of properties."""
    if isinstance(schema, list):
        return [_without_data(entry) for entry in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("dict[str, Any]", schema)
    return {
        key: None
        if key in _DATA_KEYWORDS and not names
        else _without_data(value, names=not names and key in _NAME_KEYWORDS)
        for key, value in members.items()
    }


_NAME_KEYWORDS = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)
