"""The origins a View may reach: checked when they are written down, in the wire's form after."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, cast

from transom.errors import RegistrationError

__all__ = ["Csp"]

_WIRE: Final = {
    "connect": "connectDomains",
    "resource": "resourceDomains",
    "frame": "frameDomains",
    "base_uri": "baseUriDomains",
}
_HOST: Final = r"(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\]"
_ORIGIN: Final = re.compile(rf"(?:https?|wss?)://(?:{_HOST})(?::[0-9]{{1,5}})?")
_BARE_HOST: Final = re.compile(rf"(?:{_HOST})(?::[0-9]{{1,5}})?")
_WITH_PATH: Final = re.compile(rf"({_ORIGIN.pattern})[/?#].*")


@dataclass(frozen=True)
class Csp:
    """What a View may load and connect to, beside itself. Nothing at all when left empty.

    Each is a list of origins: scheme, host and maybe a port, such as `https://api.example.com`,
    `wss://live.example.com:8443` or `https://*.example.com`.

    Attributes:
        connect: for fetch, XHR, EventSource and WebSocket.
        resource: for scripts, styles, images, fonts and media.
        frame: for frames inside the View.
        base_uri: for `<base href>`.

    Raises:
        RegistrationError: an entry is not an origin; the text says what to write.
    """

    connect: Sequence[str] = ()
    resource: Sequence[str] = ()
    frame: Sequence[str] = ()
    base_uri: Sequence[str] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            given = getattr(self, field.name)
            # Frozen means that a list handed in cannot change it later either.
            object.__setattr__(self, field.name, _origins(field.name, given))

    def to_wire(self) -> dict[str, list[str]]:
        """Return it as `_meta.ui.csp`, without the empty lists."""
        return {
            wire: list(getattr(self, name)) for name, wire in _WIRE.items() if getattr(self, name)
        }


def _origins(name: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str):
        raise RegistrationError(f"csp {name} is a list of origins. Write {name}=[{given!r}].")
    if not isinstance(given, Sequence | set | frozenset) or isinstance(given, Mapping):
        raise RegistrationError(
            f"csp {name} is a list of origins, not {type(given).__name__}. "
            f'Write {name}=["https://api.example.com"].'
        )
    entries = tuple(cast("Sequence[Any]", given))
    for entry in entries:
        if problem := _problem(entry):
            raise RegistrationError(f"csp {name}: {entry!r} is not an origin. {problem}")
    return entries


def _problem(entry: object) -> str | None:
    """What to write instead of this entry, or None when it is an origin."""
    if not isinstance(entry, str):
        return 'Write a string such as "https://api.example.com".'
    if _ORIGIN.fullmatch(entry):
        return None
    if entry == "*":
        return "Every host is too many: list the origins the View needs."
    if "'" in entry or '"' in entry:
        return "CSP keywords and quotes have no place here: list origins only."
    if re.search(r"[\s;,]", entry):
        return "Write one origin an entry, with no spaces, commas or semicolons."
    if found := _WITH_PATH.fullmatch(entry):
        return f"Leave the path away: {found[1]!r}."
    if entry.startswith("//") and _BARE_HOST.fullmatch(entry[2:]):
        return f"Write {'https:' + entry!r}."
    if _BARE_HOST.fullmatch(entry):
        return f"Write {'https://' + entry!r}."
    return "Write scheme, host and maybe a port, such as 'https://api.example.com'."
