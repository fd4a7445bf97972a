"""Commands of two words, such as `transom gateway install` beside `transom gateway -- COMMAND…`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

__all__ = ["Commands"]


class Commands(TyperGroup):
    """Takes the first two words for a command if one is called so.

    A group of its own would take the first word after `transom gateway --` for a command.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command, and the words that are left for it."""
        joined = " ".join(args[:2])
        if len(args) > 1 and joined in self.commands:
            args = [joined, *args[2:]]
        return super().resolve_command(ctx, args)
