"""Public names of a package that are loaded when they are first used."""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for True; importing it would cost more than all else
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def load_on_use(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package.

    Args:
        package: its `__name__`.
        homes: by module (`.limits` is one of the package), the names that are defined there,
            separated by spaces.
    """
    found = {name: home for home, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in found:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(found[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *found})

    return get, names
