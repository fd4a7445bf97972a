"""What every compiled schema offers, whatever it was made from."""

from __future__ import annotations

from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

__all__ = ["Direction", "Schema"]

Direction = Literal["input", "output"]
"""Whether a schema describes what a tool takes or what it answers.

The same class may read differently in the two: a field with a default may be left out of an
input, but is always there in an output.
"""


@runtime_checkable
class Schema(Protocol):
    """One compiled schema.

    Both `parse` and `validate` take what `json_schema` describes. In the input direction they
    return what the handler gets; in the output direction they return plain JSON values, ready to
    be sent as `structuredContent`.
    """

    @property
    def json_schema(self) -> dict[str, Any]:
        """The schema as a plain JSON Schema 2020-12 object. Treat it as frozen."""
        ...

    @property
    def json_bytes(self) -> msgspec.Raw:
        """The same, encoded once. `msgspec.json.encode` puts it into a message as it is."""
        ...

    @property
    def spread(self) -> bool:
        """True when the value is a mapping of keyword arguments, False when it is one object."""
        ...

    @property
    def wrapped(self) -> bool:
        """True when the value travels as `{"result": value}`, for it is no JSON object itself."""
        ...

    def parse(self, data: bytes | msgspec.Raw) -> Any:
        """Read a value from JSON text and validate it.

        Raises:
            ValidationError: it does not fit, or is not JSON.
        """
        ...

    def validate(self, value: Any) -> Any:
        """Validate a value that is in memory already: plain JSON values, or an instance.

        Raises:
            ValidationError: it does not fit.
        """
        ...
