"""The peers: programs that measure themselves and print one JSON object a line."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

PEERS: dict[str, list[str]] = {
    "TypeScript SDK": ["node", str(HERE / "node" / "peer.mjs")],
    "Python SDK": [sys.executable, str(HERE / "python_sdk.py")],
}
ROWS = {
    "TypeScript SDK": {"ping", "call", "list50", "list1000"},
    "Python SDK": {"ping", "call", "list50"},
}


def measure(peer: str, rows: list[str], seconds: float) -> dict[tuple[str, str], float]:
    """How often a peer does each row in a second, by row and mode.

    Raises:
        SystemExit: the peer cannot be run; the text says what is missing.
    """
    wanted = [row for row in rows if row in ROWS[peer]]
    command = PEERS[peer]
    if not wanted:
        return {}
    if shutil.which(command[0]) is None:
        raise SystemExit(f"{peer}: {command[0]} is not installed; `make setup` says how to get it")
    options = ["--rows", ",".join(wanted), "--seconds", str(seconds), "--repeats", "1"]
    run = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{peer} failed:\n{run.stderr[-2000:]}")
    found: dict[tuple[str, str], float] = {}
    for line in run.stdout.splitlines():
        entry: dict[str, Any] = json.loads(line)
        key = entry["row"], "inflight" if entry["mode"] != "sequential" else "sequential"
        found[key] = max(found.get(key, 0.0), entry["per_second"])  # the peer's best connection
    return found
