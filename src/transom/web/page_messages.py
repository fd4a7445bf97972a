"""The messages that the Stage's page sends on its own behalf, as opposed to those of a View."""

from __future__ import annotations

from typing import Literal

import msgspec

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


class CloseRequested(msgspec.Struct, tag_field="do", tag="closed"):
    """The user wants a View closed."""

    view: str


class RetryRequested(msgspec.Struct, tag_field="do", tag="retry"):
    """The user wants a View that failed opened again."""

    view: str


class QuestionAnswered(msgspec.Struct, tag_field="do", tag="answer"):
    """The user has answered a question."""

    id: int
    value: bool | str


class ModeChanged(msgspec.Struct, tag_field="do", tag="mode"):
    """A View is shown in this mode now."""

    view: str
    mode: DisplayMode
    size: Dimensions | None = None


class SurroundingsChanged(msgspec.Struct, tag_field="do", tag="surroundings"):
    """The surroundings are these now."""

    value: Surroundings


class MessageNotForwarded(msgspec.Struct, tag_field="do", tag="refused"):
    """The page did not forward a message of a View."""

    view: str
    reason: str


class ViewBroken(msgspec.Struct, tag_field="do", tag="broken"):
    """A View cannot go on."""

    view: str
    reason: str


class FailedView(msgspec.Struct, frozen=True, tag_field="do", tag="failed"):
    """To the page: a View failed, and why. `shown` is what the user calls it."""

    view: str
    shown: str
    server: str
    client: str
    reason: str


ViewMessage = CloseRequested | RetryRequested | ModeChanged | MessageNotForwarded | ViewBroken
"""Those about one View."""

PageMessage = ViewMessage | QuestionAnswered | SurroundingsChanged

decode_page_message = msgspec.json.Decoder(PageMessage).decode
