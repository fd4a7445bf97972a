"""What it costs to start: the first use of `transom.App`, over asyncio and msgspec."""

import subprocess
import sys

_CODE = """
import asyncio, msgspec, msgspec.json, time
started = time.perf_counter()
import transom
app = transom.App("a", "1")
app.register_tool("echo", lambda text: text, input_schema={"type": "object"})
print((time.perf_counter() - started) * 1000)
"""


def first_use(rounds: int) -> float:
    """How many milliseconds an `App` with a tool takes in a Python that has the rest.

    The best counts: a limit in milliseconds is one for a machine that does nothing else. Each
    process measures itself: the difference of two processes is mostly that of the machine's speed.
    """
    command = [sys.executable, "-c", _CODE]
    runs = (subprocess.check_output(command) for _ in range(max(4 * rounds, 10)))
    return min(map(float, runs))
