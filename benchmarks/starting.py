"""What it costs to start: `import transom` over bare Python."""

import subprocess
import sys
import time
from statistics import median


def _run(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - started) * 1000


def import_cost(rounds: int) -> float:
    """How many milliseconds `import transom` adds to bare Python, at the median."""
    pairs = [(_run("pass"), _run("import transom")) for _ in range(max(rounds, 5))]
    return max(0.0, median(with_it - bare for bare, with_it in pairs))
