"""Conformance of hosts and Views of MCP Apps: `transom conform`.

`host.toml` and `view.toml` have the requirements. A host is measured by Views that are instruments
(`instrument.js`), which a server gives it (`server`); a View by a host that does nothing else
(`strict_host`).
"""

from transom.lazy import load_on_use

TYPE_CHECKING = False  # type checkers take it for True; importing it would cost more than all else
if TYPE_CHECKING:
    from transom.conform.driving import DrivenHost, DrivenTransomHost, measure
    from transom.conform.report import ConformReport
    from transom.conform.requirements import Measurement, Measurements, Outcome, Subject
    from transom.conform.server import ConformServer

__all__ = [
    "ConformReport",
    "ConformServer",
    "DrivenHost",
    "DrivenTransomHost",
    "Measurement",
    "Measurements",
    "Outcome",
    "Subject",
    "measure",
]

if not TYPE_CHECKING:  # or every name would be one to them
    __getattr__, __dir__ = load_on_use(
        __name__,
        {
            ".driving": "DrivenHost DrivenTransomHost measure",
            ".report": "ConformReport",
            ".requirements": "Measurement Measurements Outcome Subject",
            ".server": "ConformServer",
        },
    )
