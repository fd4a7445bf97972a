"""The peers: programs that measure themselves and print one JSON object a line."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.ours import Rate

HERE = Path(__file__).parent
NODE = ["node", str(HERE / "node" / "peer.mjs")]

TS, TS_BEST, PY = "TypeScript SDK", "TypeScript SDK, best", "Python SDK"

PEERS: dict[str, list[str]] = {
    TS: NODE,
    TS_BEST: [*NODE, "--jit"],
    PY: [sys.executable, str(HERE / "python_sdk.py")],
}
CONFIGURED = {
    TS: "`App` and `AppBridge` of `@modelcontextprotocol/ext-apps` in one process, joined by the "
    "SDK's `InMemoryTransport`, which hands JavaScript objects over without making JSON of them; "
    "validators as an `App` has them by default, not compiled",
    TS_BEST: "the same with compiled validators (`allowUnsafeEval: true`)",
    PY: "`mcp.Client` and `MCPServer` in one process; the quicker of its two ways to connect, "
    "neither of which makes JSON; tools are `async def`, which spares it a thread each",
}
ROWS = {
    TS: {"ping", "call", "list50", "list1000"},
    TS_BEST: {"ping", "call", "list50"},
    PY: {"ping", "call", "list50"},
}


def measure(peer: str, rows: list[str], seconds: float) -> dict[tuple[str, str], Rate]:
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
    found: dict[tuple[str, str], Rate] = {}
    for line in run.stdout.splitlines():
        entry: dict[str, Any] = json.loads(line)
        key = entry["row"], "inflight" if entry["mode"] != "sequential" else "sequential"
        rate = Rate(entry["per_second"], entry["per_cpu_second"])
        found[key] = max(found.get(key, rate), rate)  # the peer's best connection
    return found
