"""Using any View as a person does: what is on its page, as text, and what changes there.

`View.snapshot` and `View.act` return what is here; `look_at_view` and `act_on_view` are the same
for a model.
"""

from transom.lazy import load_on_use

TYPE_CHECKING = False  # type checkers take it for True; importing it would cost more than all else
if TYPE_CHECKING:
    from transom.drive.snapshot import ActResult, Element, Line, Snapshot
    from transom.drive.tools import Action, Drive

__all__ = ["ActResult", "Action", "Drive", "Element", "Line", "Snapshot"]

if not TYPE_CHECKING:  # or every name would be one to them
    __getattr__, __dir__ = load_on_use(
        __name__,
        {
            ".snapshot": "ActResult Element Line Snapshot",
            ".tools": "Action Drive",
        },
    )
