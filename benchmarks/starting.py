"""What it costs to start: the first use of `transom.App`, over asyncio and msgspec."""

import subprocess
import sys
import time
from statistics import median

_BASE = "import asyncio, msgspec, msgspec.json"
_USED = f"""{_BASE}
import transom
app = transom.App("a", "1")
app.register_tool("echo", lambda text: text, input_schema={{"type": "object"}})
"""


def _run(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - started) * 1000


def first_use(rounds: int) -> float:
    """How many milliseconds an `App` with a tool adds to a Python that has the rest; the median."""
    return median(_run(_USED) - _run(_BASE) for _ in range(max(rounds, 5)))
