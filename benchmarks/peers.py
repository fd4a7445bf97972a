"""The peers: programs that measure themselves, a row for each line they are sent."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.rates import Rate

HERE = Path(__file__).parent
NODE = ["node", str(HERE / "node" / "peer.mjs")]

TS, TS_BEST, PY = "TypeScript SDK", "TypeScript SDK, best", "Python SDK"

COMMANDS: dict[str, list[str]] = {
    TS: NODE,
    TS_BEST: [*NODE, "--jit"],
    PY: [sys.executable, "-m", "benchmarks.python_sdk"],
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
    TS_BEST: {"ping", "call", "wait", "list50"},
    PY: {"ping", "call", "wait", "list50"},
}


class Peer:
    """A running peer, which measures a row when it is told to and is idle between.

    Raises:
        SystemExit: it cannot be run; the text says what is missing.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows = ROWS[name]
        command = COMMANDS[name]
        if shutil.which(command[0]) is None:
            missing = f"{name}: {command[0]} is not installed; `make setup` says how to get it"
            raise SystemExit(missing)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, cwd=HERE.parent
        )

    def measure(self, row: str, callers: int, seconds: float) -> Rate:
        """How often it does a row in a second."""
        to_peer, from_peer = self._process.stdin, self._process.stdout
        assert to_peer is not None
        assert from_peer is not None
        to_peer.write(f"{row} {callers} {seconds}\n")
        to_peer.flush()
        if not (line := from_peer.readline()):
            raise SystemExit(f"{self.name} has failed: see above")
        found: dict[str, float] = json.loads(line)
        return Rate(found["per_second"], found["per_cpu_second"])

    def close(self) -> None:
        """End it."""
        self._process.communicate()
