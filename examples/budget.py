"""A company's budget: sliders for the user, tools for the model, and a chart for both.

transom open examples/budget.py show_budget
transom check --call examples/budget.py
python examples/budget.py                        serves it over stdio

The server:
    show_budget(stage)                    the model calls it, and the View opens
    list_benchmarks()                     the model calls it, and the answer is all there is
    keep_budget(total, allocations)       only the View: keeps what was changed

The View, for the model:
    get-allocations()                     the total, and what each category gets
    set-allocation(category, percent)     moves a slider; all together get 100 % at most
    set-total-budget(amount)              changes the sum that is shared out
    compare-to-benchmark(stage)           holds the budget against companies of a stage, in the
                                          chart and in the answer
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from pydantic import Field

from transom import ToolError
from transom.server import Views

Category = Literal["engineering", "sales", "marketing", "operations", "research"]
Stage = Literal["seed", "series-a", "growth"]
Percent = Annotated[int, Field(ge=0, le=100)]
Shares = dict[Category, Percent]


class Budget(msgspec.Struct):
    """A sum, how it is shared out, and how others share it out. Shares are percentages."""

    total: int
    allocations: Shares
    benchmarks: dict[Stage, Shares]
    stage: Stage | None = None


def shares(engineering: int, sales: int, marketing: int, operations: int, research: int) -> Shares:
    return {
        "engineering": engineering,
        "sales": sales,
        "marketing": marketing,
        "operations": operations,
        "research": research,
    }


BENCHMARKS: dict[Stage, Shares] = {
    "seed": shares(47, 10, 15, 12, 16),
    "series-a": shares(38, 20, 18, 13, 11),
    "growth": shares(28, 29, 20, 15, 8),
}
budget = Budget(400_000, shares(35, 20, 25, 10, 5), BENCHMARKS)


def summary(shown: Budget) -> str:
    parts = ", ".join(f"{name} {percent} %" for name, percent in shown.allocations.items())
    return f"A budget of €{shown.total:,}: {parts}."


views = Views()

page = views.add(
    "ui://budget/sliders.html",
    html=Path(__file__).with_name("budget.html"),
    prefers_border=True,
    title="Budget",
    description="Sliders to share out a budget, and a chart of it.",
)


@views.tool(
    opens=page,
    title="Show the budget",
    annotations={"readOnlyHint": True, "openWorldHint": False},
    text=summary,
)
def show_budget(stage: Stage | None = None) -> Budget:
    """Show the company's budget, beside what companies of some stage spend if one is given."""
    return msgspec.structs.replace(budget, stage=stage)


@views.helper(
    title="Keep the budget",
    annotations={
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    },
    text=summary,
)
def keep_budget(total: Annotated[int, Field(ge=1000)], allocations: Shares) -> Budget:
    """Keep a total and the share of every category."""
    if set(allocations) != set(budget.allocations):
        raise ToolError("Every category needs a share.")
    if sum(allocations.values()) > 100:
        raise ToolError("The shares are more than 100 % together.")
    budget.total, budget.allocations = total, allocations
    return budget


server = MCPServer("budget", version="1.0.0", extensions=[views])


@server.tool(
    title="List benchmarks",
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
)
def list_benchmarks() -> dict[Stage, Shares]:
    """Tell what share of their budget companies of each stage give to each category, in percent."""
    return BENCHMARKS


if __name__ == "__main__":
    server.run()
