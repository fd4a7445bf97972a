"""What a program lets Views and models do, and what its user is asked (`approvals.py` asks)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Literal, get_args

import msgspec

from transom.drive.tools import action_of
from transom.errors import UsageError
from transom.host.asking.grants import Grantee
from transom.host.tools.tool_visibility import ViewCalls
from transom.json_values import clean, spelled_name, visible_json
from transom.types import Implementation, Tool

_MAX_SHOWN_TEXT = 1000  # characters that a user can be expected to read

Looks = Literal["allow", "ask", "never"]
"""Whether a model may look at the page of a View: see `Policy`."""


class Allow(msgspec.Struct, frozen=True):
    """Yes, this once."""


class AllowAlways(msgspec.Struct, frozen=True):
    """Yes, and do not ask again: for this tool, while its definition is the same.

    How long it lasts: until the View closes or its page is loaded again, or the user withdraws it
    (`View.withdraw`). For opening Views: until the tool's server is removed from the host. It is
    not stored between runs; only `Host.records` takes it to another host.
    """


class Deny(msgspec.Struct, frozen=True):
    """No. The model gets the reason."""

    reason: str = "The user said no"


Decision = Allow | AllowAlways | Deny
"""What a user, or whoever is asked, says to an `ApprovalRequest`."""


class ApprovalRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a user is asked to allow: this tool of this View, with these arguments.

    With `by="view"` the View calls a tool of its server. With `opens` a tool of the server wants to
    open a View.
    """

    view_id: str
    """Empty with `opens`: there is no View yet."""
    server: str
    """The server whose resource the View is."""
    app: Implementation | None
    """How the View names itself. It can claim any name."""
    tool: Tool
    arguments: Mapping[str, Any]
    changed: bool = False
    """Whether the tool was always allowed before, and its definition has changed since."""
    granted: tuple[str, ...] = ()
    """The names of the View's tools that the user always allows."""
    by: Literal["model", "view"] = "model"
    """Who calls."""
    opens: bool = False
    """Whether it is about opening a View. The tool is called in any case."""
    drives: bool = False
    """Whether it is about the View's page: looking at it, or using an element of it."""
    digest: str = ""
    """Of a value that `arguments` does not show, such as a password: the answer is for it alone."""
    repeated: bool = False
    """Whether `Host.approval_needed` has returned it before, for the same call."""

    @property
    def grantee(self) -> Grantee:
        """Whose grant it is if the user always allows it."""
        if self.opens:
            return Grantee("server", self.server)
        return Grantee("drive" if self.drives else self.by, self.view_id)

    def shown(self) -> dict[str, Any]:
        """What to show the user, as JSON. Texts of a View or a server are cut and cleaned."""
        return {
            "tool": spelled_name(self.tool.name),
            "description": clean(self.tool.description or "", _MAX_SHOWN_TEXT),
            "arguments": self.arguments,
            "changed": self.changed,
            "granted": [spelled_name(name) for name in self.granted],
            "by": self.by,
            "opens": self.opens,
            "drives": self.drives,
        }

    def unshowable(self, limit: int = 2000) -> Deny | None:
        """The refusal if the arguments have more characters than a user interface can show.

        Nobody can approve what they cannot read. The limit is for those that show only text.
        """
        length = len(visible_json(self.arguments))
        if length <= limit:
            return None
        return Deny(
            f"The user cannot be asked: the arguments have {length} characters, and at most "
            f"{limit} can be shown"
        )

    def question(self) -> str:
        """The same as one text, for user interfaces that can show only text.

        It has all of the arguments. Characters that nobody sees are escaped.
        """
        # Its quotation marks would end the name, and what follows would pass for our words.
        name = "" if self.app is None else clean(self.app.name, 60).replace('"', "'")
        app = "" if self.app is None else f' ("{name}")'
        changed = " It has changed since you allowed it for good." if self.changed else ""
        tool, view = spelled_name(self.tool.name), f"View {self.view_id}{app}"
        whose = "The server" if self.opens else "The View"
        if self.opens:
            question = (
                f"May {tool} of server {self.server} open a View? It is called in any case, with "
                "these arguments:"
            )
        elif self.drives and not self.arguments:  # a look
            return f"May the model read {view}, from server {self.server}, with all that you typed?"
        elif self.drives:
            action = action_of(self.tool.name)
            question = f"May the model use {view}, from server {self.server}: {action}?"
        elif self.by == "model":
            question = f"May {tool} of {view}, from server {self.server}, run with these arguments?"
        else:
            question = f"May {view} call {tool} of its server {self.server} with these arguments?"
        lines = [f"{question}{changed}", visible_json(self.arguments)]
        if self.tool.description:
            description = clean(self.tool.description, _MAX_SHOWN_TEXT // 2)
            lines.append(f"{whose} describes it so: {description}")
        hints: dict[str, object] = msgspec.to_builtins(self.tool.annotations) or {}
        claims = [
            f"{hint}: {str(it).lower()}" for hint, it in hints.items() if isinstance(it, bool)
        ]
        if claims:
            lines.append(f"{whose} claims: {', '.join(claims)}")
        return "\n".join(lines)


Approve = Callable[[ApprovalRequest], Decision | Awaitable[Decision]]
"""Asks the user. May be async."""


class Policy:
    """Who may call a View's tools. Give `approve` to ask the user; it may be async.

    Args:
        approve: takes an `ApprovalRequest`, returns `Allow()`, `AllowAlways()` or `Deny(reason)`.
        read_only_runs: whether a tool that is declared read-only runs without asking.
        view_calls: which tools of its server a View may call. `spec`: those whose visibility has
            `app` or is not declared; `linked`: those whose visibility has `app`, and those that
            open a View and declare none; `declared`: only those whose visibility has `app`.
        approve_view_calls: called like `approve`, with `by="view"`, before a View calls a tool of
            its server that is not declared read-only. None: do not ask.
        approve_opening: called like `approve`, with `opens=True`, before a View of a server with
            `open_views="ask"` opens; `approve` unless given.
        look: whether the model may look at a View's page, where it may also see what the user
            typed: `allow`; `ask`: `approve` is asked once for each View, with `drives=True`;
            `never`, then it cannot use the page either. What it does there is asked about like a
            tool that is not read-only, for each kind of action.
        offers: the capabilities that Views are offered of those that the host has, such as
            `openLinks`; what needs another is refused, as by a host without it. None: all.
    """

    def __init__(
        self,
        approve: Approve | None = None,
        *,
        read_only_runs: bool = True,
        view_calls: ViewCalls = "spec",
        approve_view_calls: Approve | None = None,
        approve_opening: Approve | None = None,
        look: Looks = "allow",
        offers: Collection[str] | None = None,
    ) -> None:
        if look not in get_args(Looks):
            raise UsageError(f"look is one of {', '.join(get_args(Looks))}, not {look!r}")
        if view_calls not in get_args(ViewCalls):
            known = ", ".join(get_args(ViewCalls))
            raise UsageError(f"view_calls is one of {known}, not {view_calls!r}")
        self.approve = approve
        self.read_only_runs = read_only_runs
        self.view_calls: ViewCalls = view_calls
        self.approve_view_calls = approve_view_calls
        self.approve_opening = approve_opening
        self.look: Looks = look
        self.offers = offers
        self.trusts_everything = False

    @classmethod
    def trusting(
        cls,
        *,
        view_calls: ViewCalls = "spec",
        approve_view_calls: Approve | None = None,
        approve_opening: Approve | None = None,
    ) -> Policy:
        """Allow everything, for tests and for Views you wrote yourself.

        What Views themselves call, and whether they open, can still be limited, as in `Policy`.
        """
        policy = cls(
            view_calls=view_calls,
            approve_view_calls=approve_view_calls,
            approve_opening=approve_opening,
        )
        policy.trusts_everything = True
        return policy
