"""Every exception Transom raises, in one tree: whose fault it is decides where it stands.

    TransomError
    ├── UsageError             the caller's program, command line or settings are wrong
    │   ├── AlreadyConnected
    │   ├── OutOfOrder         a message before its turn, or a second time
    │   ├── SchemaError        a schema that cannot be used
    │   └── RegistrationError  a tool that cannot be registered
    ├── Unreachable            the other side cannot be reached, or does not answer
    │   ├── NotConnected       there is no connection, none any more, or none can be made
    │   ├── TooManyRequests    it has not answered earlier requests; this one was not sent
    │   ├── RequestEnded       a request that will never be answered
    │   │   ├── RequestTimeout
    │   │   ├── RequestCancelled
    │   │   └── ConnectionClosed   ... says who closed and why
    │   ├── ChannelClosed      the pipe to the other side is closed
    │   ├── ViewClosed         the View that should have answered is closed
    │   └── BusError           workers cannot reach each other
    │       ├── BusUnreachable     ... Redis is not there, or does not answer
    │       ├── NoOwner            ... no worker has what was asked for
    │       ├── OwnerGone          ... the worker that had it is dead
    │       ├── LeaseLost          ... another worker has taken over what this one had
    │       └── OutcomeUnknown     ... the other worker was lost while it worked on a request
    ├── Refused                the host's policy, or its user, refused it
    ├── PeerError              the other side's own fault: that of a View, a server or a host
    │   ├── MessageRefused     ... a message that cannot be accepted
    │   ├── InvalidResult      ... an answer that does not fit its method
    │   └── CapabilityMissing  ... it did not declare that it can do this
    ├── ProtocolError          a JSON-RPC error: raise it to answer with it, catch it when answered
    ├── ToolError              a tool's own error: its text is meant for the model to read
    └── ValidationError        a value does not fit its schema

Only a `UsageError` is for the author of the program: the same call would fail at any time. What a
model, a View or a server does, and what happens to be closed at that moment, is something else: it
can happen to a program that is right, and its text can be read by a model. `Host.answer` raises the
one, and makes a result of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_ERROR = -32000


class TransomError(Exception):
    """The root of everything Transom raises."""


class ProtocolError(TransomError):
    """A JSON-RPC error.

    Raised in a handler, it is sent to the other side unchanged. Raised from a request, it is what
    the other side answered.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class ToolError(TransomError):
    """A tool cannot do what it was asked. The text becomes an `isError` result for the model."""


class UsageError(TransomError):
    """The caller's program, command line or settings are wrong. Nothing was sent."""


class AlreadyConnected(UsageError):
    """There is already a connection: close it before connecting again."""


class OutOfOrder(UsageError):
    """A message is sent before its turn, such as a result before the input, or a second time."""


class SchemaError(UsageError):
    """A schema that cannot be used: unsupported type, not an object, or not JSON Schema."""


class RegistrationError(UsageError):
    """A tool that cannot be registered or changed like this: bad or taken name, no capability."""


class Mismatch(NamedTuple):
    """One thing wrong with a value: what, and where, such as `items[2].id` (empty: all of it)."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ValidationError(TransomError):
    """A value does not fit its schema. `mismatches`: where and why, short enough for a model."""

    def __init__(self, mismatches: Sequence[Mismatch]) -> None:
        super().__init__(mismatches)
        self.mismatches = tuple(mismatches)

    def __str__(self) -> str:
        return "; ".join(str(mismatch) for mismatch in self.mismatches)


class PeerError(TransomError):
    """The other side, a View, a server or a host, broke the rules or cannot do what is needed."""


class MessageRefused(PeerError):
    """A message that cannot be accepted. `code` is for the error response, if one is sent."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class InvalidResult(PeerError):
    """The other side answered with something that is not a valid result of the method."""


class CapabilityMissing(PeerError):
    """The other side did not declare the capability that this needs. Nothing was sent."""


class Unreachable(TransomError):
    """The other side cannot be reached, or does not answer."""


class NotConnected(Unreachable):
    """There is no connection to the other side, or none can be made; the text says why.

    Also when it is being closed, as a View that is torn down.
    """


class TooManyRequests(Unreachable):
    """The other side has not answered earlier requests. This one was not sent: try again later."""


class RequestEnded(Unreachable):
    """A request that will never be answered."""


class RequestTimeout(RequestEnded):
    """No answer came in time. A cancellation was sent."""


class RequestCancelled(RequestEnded):
    """The request was cancelled before an answer came."""


class ConnectionClosed(RequestEnded):
    """The connection closed before an answer came. The text says who closed it and why."""


class ChannelClosed(Unreachable):
    """The pipe to the other side is closed."""


class BusError(Unreachable):
    """Workers cannot reach each other. Whatever needs only one of them still works."""


class BusUnreachable(BusError):
    """Redis cannot be reached, or was lost before it answered. The bus keeps retrying."""


class NoOwner(BusError):
    """No worker has what was asked for."""


class OwnerGone(BusError):
    """The worker that had what was asked for is dead. Another may claim it."""


class LeaseLost(BusError):
    """Another worker has taken over what this one had."""


class OutcomeUnknown(BusError):
    """Another worker was lost, or became unreachable, while it worked on a request.

    The request may have been carried out, so it is not retried.
    """


class ViewClosed(Unreachable):
    """The View that should have answered has been closed. `view_id` names it."""

    def __init__(self, view_id: str, message: str) -> None:
        super().__init__(view_id, message)
        self.view_id = view_id

    def __str__(self) -> str:
        return str(self.args[1])


class Refused(TransomError):
    """The host's policy, or its user, refused it. The text says what would allow it."""
