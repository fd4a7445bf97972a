"""What the Stage's page says for itself: everything that does not come from a View."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = [
    "AboutView",
    "Answer",
    "Around",
    "Broken",
    "Closed",
    "DisplayMode",
    "Mode",
    "NotPassed",
    "Said",
    "read_said",
]

DisplayMode = Literal["inline", "fullscreen", "pip"]


class Dimensions(msgspec.Struct, rename="camel", omit_defaults=True):
    """How large something is, or may be."""

    width: float | None = None
    height: float | None = None
    max_width: float | None = None
    max_height: float | None = None


class Devices(msgspec.Struct, omit_defaults=True):
    """What the user can point with."""

    touch: bool | None = None
    hover: bool | None = None


class Surroundings(msgspec.Struct, rename="camel", omit_defaults=True):
    """What the page knows of its user."""

    theme: Literal["light", "dark"] | None = None
    locale: str | None = None
    time_zone: str | None = None
    user_agent: str | None = None
    platform: Literal["web", "desktop", "mobile"] | None = None
    device_capabilities: Devices | None = None
    container_dimensions: Dimensions | None = None


class Closed(msgspec.Struct, tag_field="do", tag="closed"):
    """The user wants a View closed."""

    view: str


class Answer(msgspec.Struct, tag_field="do", tag="answer"):
    """The user has answered a question."""

    id: int
    value: bool | str


class Mode(msgspec.Struct, tag_field="do", tag="mode"):
    """A View is shown in this mode now."""

    view: str
    mode: DisplayMode
    size: Dimensions | None = None


class Around(msgspec.Struct, tag_field="do", tag="surroundings"):
    """The surroundings are these now."""

    value: Surroundings


class NotPassed(msgspec.Struct, tag_field="do", tag="refused"):
    """A message of a View was not passed on."""

    view: str
    reason: str


class Broken(msgspec.Struct, tag_field="do", tag="broken"):
    """A View cannot go on."""

    view: str
    reason: str


Said = Closed | Answer | Mode | Around | NotPassed | Broken
AboutView = Closed | Mode | NotPassed | Broken
read_said = msgspec.json.Decoder(Said).decode
