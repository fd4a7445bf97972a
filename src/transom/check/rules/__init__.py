"""The rules of the server contract, by section."""

from __future__ import annotations

from transom.check.rule import Rule, order
from transom.check.rules import csp, resources, results, tools, views

__all__ = ["RULES", "SECTIONS"]

SECTIONS = {
    "A": "Negotiation and fallback",
    "B": "Tool definition and linkage",
    "C": "UI resource",
    "P": "CSP, CORS, permissions",
    "D": "Tool results",
    "N": "Annotations",
    "V": "View runtime",
}
_FOUND = (vars(module).values() for module in (tools, resources, csp, results, views))
RULES: tuple[Rule, ...] = tuple(
    sorted(
        (value for values in _FOUND for value in values if isinstance(value, Rule)),
        key=lambda rule: order(rule.id),
    )
)
