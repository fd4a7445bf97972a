"""The tools of one App, by name.

A name is 1 to 128 of `A-Za-z0-9_.-`, and unique; `constructor` is as good as any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from transom.errors import RegistrationError
from transom.view.tools import RegisteredTool

__all__ = ["Registry"]

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class Registry:
    """The tools of one App, by name, in the order of registration."""

    def __init__(
        self,
        on_change: Callable[[RegisteredTool, bool], None],
        on_problem: Callable[[BaseException], object],
    ) -> None:
        self._on_change = on_change
        self.on_problem = on_problem
        self._tools: dict[str, RegisteredTool] = {}
        self.version = 0
        """Counts the changes a listing would show."""

    def __iter__(self) -> Iterator[RegisteredTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def get(self, name: str) -> RegisteredTool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def check_name(self, name: object) -> None:
        """See that a tool could be registered under this name.

        Raises:
            RegistrationError: it could not.
        """
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise RegistrationError(
                f"{str(name)[:200]!r} is not a tool name: use 1 to 128 of A-Z a-z 0-9 _ . -"
            )
        if name in self._tools:
            raise RegistrationError(f"Tool {name} is already registered")

    def add(self, tool: RegisteredTool) -> None:
        """Put a new tool in."""
        self.check_name(tool.name)
        self._tools[tool.name] = tool
        self.changed(tool, listed=tool.enabled)

    def remove(self, tool: RegisteredTool) -> None:
        """Take a tool out."""
        del self._tools[tool.name]
        self.changed(tool, listed=tool.enabled)

    def rename(self, old: str, tool: RegisteredTool) -> None:
        """Note a tool's new name; it keeps its place."""
        self._tools = {(tool.name if n == old else n): t for n, t in self._tools.items()}

    def changed(self, tool: RegisteredTool, *, listed: bool) -> None:
        """Note a change; `listed` when a listing shows it."""
        if listed:
            self.version += 1
        self._on_change(tool, listed)
