"""The rules of the server contract, a module for each section."""

from __future__ import annotations

from types import ModuleType

from transom.check.rule import Rule, order
from transom.check.rules import csp, hints, negotiation, resources, results, tools, views

__all__ = ["RULES", "SECTIONS"]

SECTIONS: dict[str, tuple[str, ModuleType]] = {
    "A": ("Negotiation and fallback", negotiation),
    "B": ("Tool definition and linkage", tools),
    "C": ("UI resource", resources),
    "P": ("CSP, CORS, permissions", csp),
    "D": ("Tool results", results),
    "N": ("Annotations", hints),
    "V": ("View runtime", views),
}

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (
            value
            for _, module in SECTIONS.values()
            for value in vars(module).values()
            if isinstance(value, Rule)
        ),
        key=lambda rule: order(rule.id),
    )
)
