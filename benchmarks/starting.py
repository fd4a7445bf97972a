"""What it costs to start: the first use of `transom.App`, over asyncio and msgspec."""

import subprocess
import sys
import time

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
    """How many milliseconds an `App` with a tool adds to a Python that has the rest.

    The best of both count: a limit in milliseconds is one for a machine that does nothing else.
    """
    pairs = [(_run(_BASE), _run(_USED)) for _ in range(max(2 * rounds, 5))]
    return min(with_it for _, with_it in pairs) - min(bare for bare, _ in pairs)
