"""Dataclass instances as msgspec makes them, completed.

msgspec does not write a plain default (`size: int = 0`) into a new dataclass instance, because
reading the attribute finds it on the class. But whoever looks at the instance's own attributes, as
msgspec itself does to encode it, would miss the field.
"""

from __future__ import annotations

import dataclasses
from typing import Any, cast, get_origin

import msgspec

__all__ = ["needs_settling", "settle"]


def needs_settling(hint: Any) -> bool:
    """Whether instances of a class come incomplete."""
    cls = get_origin(hint) or hint
    return (
        dataclasses.is_dataclass(cls)
        and bool(getattr(cls, "__dictoffset__", 0))
        and any(field.default is not dataclasses.MISSING for field in dataclasses.fields(cls))
    )


def settle(value: Any) -> None:
    """Complete all dataclass instances inside a decoded value, in place."""
    if isinstance(value, dict):
        for part in cast("dict[Any, Any]", value).values():
            settle(part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in cast("list[Any]", value):
            settle(part)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            settle(getattr(value, name))
    elif dataclasses.is_dataclass(value):
        own: dict[str, Any] = getattr(value, "__dict__", {})
        for field in dataclasses.fields(value):
            if field.default is not dataclasses.MISSING:
                # Not by assignment, which a frozen dataclass refuses.
                own.setdefault(field.name, field.default)
            settle(getattr(value, field.name, None))
