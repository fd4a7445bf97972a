"""What known hosts of MCP Apps offer to Views, from `host_profiles.toml`.

A field is None where no source states it: nothing is concluded from that.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from transom.errors import UsageError
from transom.types import ContainerDimensions

PLAIN = "plain"
"""The profile of Transom's own Host."""


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a field of a profile comes from."""

    title: str
    url: str = ""


class HostProfile(msgspec.Struct, frozen=True, kw_only=True):
    """What one host offers to Views: see the comments in `host_profiles.toml`."""

    name: str
    title: str
    sources: dict[str, Source]
    """The source of each field below that is not None, by its name."""
    capabilities: tuple[str, ...] | None = None
    display_modes: tuple[str, ...] | None = None
    container: ContainerDimensions | None = None
    permissions: tuple[str, ...] | None = None
    csp_ignored: tuple[str, ...] | None = None
    csp_allowed: tuple[str, ...] | None = None
    eval: bool | None = None
    storage: bool | None = None
    sizes: bool | None = None

    @property
    def host_capabilities(self) -> dict[str, Any] | None:
        """`hostCapabilities` of its answer to `ui/initialize`, for `Bridge(capabilities=…)`."""
        return None if self.capabilities is None else {each: {} for each in self.capabilities}

    @property
    def host_context(self) -> dict[str, Any]:
        """What is known of its `hostContext`, as `Bridge(context=…)` and `set_context` take it."""
        context: dict[str, Any] = {"displayMode": "inline"}
        if self.display_modes is not None:
            context["availableDisplayModes"] = list(self.display_modes)
        if self.container is not None:
            context["containerDimensions"] = msgspec.to_builtins(self.container)
        return context


@cache
def host_profiles() -> dict[str, HostProfile]:
    """All profiles by name, `plain` first."""
    given = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    sources = msgspec.convert(given["source"], dict[str, Source])
    return {
        name: msgspec.convert(
            {
                **fields,
                "name": name,
                "sources": {field: sources[by] for field, by in fields["sources"].items()},
            },
            HostProfile,
        )
        for name, fields in given["host"].items()
    }


def host_profile(name: str) -> HostProfile:
    """The profile called `name`.

    Raises:
        UsageError: there is none.
    """
    profile = host_profiles().get(name)
    if profile is None:
        known = ", ".join(host_profiles())
        raise UsageError(f"there is no host profile {name!r}; there are: {known}")
    return profile
