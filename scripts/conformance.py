"""Runs the official conformance suite of MCP and writes its table into docs/compatibility.md.

    .venv/bin/python -m scripts.conformance [LEG …]

With legs, only those are run and the page is left alone; `--only SCENARIO` runs one scenario.
`--continue` leaves out what an interrupted run has done (it takes an hour on a busy machine).

A leg is what the suite talks to. As a client it talks to `tests/conformance/server.py`, `direct`
and through the gateway, which reaches it by `url` or by `stdio`, or has a second server beside it
(`two`); and to the tools of a View in the gateway, as tasks (`views`). As a server it talks to a
`host`, to the SDK's client (`sdk`), and to that behind the gateway (`behind`). Servers are tried
with both versions of the protocol, and with all scenarios that there are (`all`); clients with
extensions and older versions as well. What fails must be in `tests/conformance/expected.py` with a
reason, and what is there must fail.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.conformance.expected import FAILURES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
SUITE = ROOT / "tests" / "conformance" / "node_modules"
COMMAND = [
    str(SUITE / ".bin" / "node"),
    str(SUITE / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"),
]
VIEWS = [sys.executable, "-m", "tests.conformance.view_tasks"]
SERVER = [sys.executable, "-m", "tests.conformance.server"]
CLIENTS = {
    "host": [sys.executable, "-m", "tests.conformance.client"],
    "sdk": [sys.executable, "-m", "tests.conformance.sdk_client"],
    "behind": [sys.executable, "-m", "tests.conformance.behind_gateway"],
}
BESIDE = [sys.executable, "-m", "tests.cli.plain_server", "good"]
GATEWAY = [sys.executable, "-m", "transom", "gateway", "--no-open", "--http"]
WIRES = ("2025-11-25", "2026-07-28")
EXTENSIONS = "extension"
OLDEST = "2025-03-26"  # two scenarios, run with the extensions
ALL = "all"  # without a version: the suite chooses that of each scenario
COLUMNS = (*WIRES, ALL, EXTENSIONS)
DONE = ROOT / "build" / "conformance.json"
LEGS = {
    "direct": "server alone",
    "url": "through the gateway, by URL",
    "stdio": "through the gateway, by stdio",
    "two": "through the gateway, with another server",
    "views": "tasks of the gateway's own: its Views' tools",
    "host": "`Host` as the client",
    "sdk": "the SDK's client alone",
    "behind": "the SDK's client through the gateway",
}
WITHIN_MS = 120_000  # for a scenario: a busy machine is not a failure
HEADING = "## The official conformance suite"
_STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")
_LISTED = re.compile(r"^ *- (\S+) \[(.*)\]$")


class Outcome(NamedTuple):
    """What came of one scenario."""

    leg: str
    wire: str
    scenario: str
    failed: tuple[str, ...]
    """Its checks that failed."""
    warned: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        """As in the table of expected failures."""
        return (self.leg, self.wire, self.scenario)


# --- processes -------------------------------------------------------------------------------


async def suite(*words: str) -> str:
    """What a command of the suite printed."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=ROOT
    )
    try:
        return (await process.communicate())[0].decode(errors="replace")
    finally:
        if process.returncode is None:
            process.kill()


@asynccontextmanager
async def running(*words: str, ready: str) -> AsyncIterator[str]:
    """A process that runs while the block does; the first line of its errors that has this text."""
    process = await asyncio.create_subprocess_exec(
        *words, stderr=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL, cwd=ROOT
    )
    assert process.stderr is not None  # noqa: S101 - for the type checker
    line = ""
    reading: asyncio.Task[bytes] | None = None
    try:
        while ready not in line:
            if not (raw := await process.stderr.readline()):
                raise SystemExit(f"{' '.join(words)} ended: {line}")
            line = raw.decode(errors="replace")
        reading = asyncio.create_task(process.stderr.read())
        yield line.strip()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        if reading is not None:
            await reading


@asynccontextmanager
async def server_of(leg: str) -> AsyncIterator[str]:
    """The URL that the suite talks to as a client."""
    async with AsyncExitStack() as stack:
        url = ""
        if leg == "views":
            yield (await stack.enter_async_context(running(*VIEWS, ready="listens at"))).split()[-1]
            return
        if leg != "stdio":
            line = await stack.enter_async_context(running(*SERVER, "0", ready="http://"))
            url = line.split()[-1]
        if leg == "direct":
            yield url
            return
        words = {"url": ["--url", url], "stdio": ["--", *SERVER]}.get(leg)
        if words is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            config = Path(folder) / "servers.json"
            beside = {"command": BESIDE[0], "args": BESIDE[1:], "cwd": str(ROOT)}
            config.write_text(json.dumps({"mcpServers": {"one": {"url": url}, "two": beside}}))
            words = ["--config", str(config)]
        gateway = running(*GATEWAY, "0", *words, ready="listens at")
        yield (await stack.enter_async_context(gateway)).split()[-1]


# --- scenarios -------------------------------------------------------------------------------


def read(folder: Path, leg: str, wire: str) -> list[Outcome]:
    """The outcomes that the suite wrote into a folder."""
    found: list[Outcome] = []
    for path in sorted(folder.rglob("checks.json")):
        name = _STAMP.sub("", str(path.parent.relative_to(folder)))
        checks: list[dict[str, str]] = json.loads(path.read_text())
        by_status = {
            status: tuple(sorted({each["id"] for each in checks if each["status"] == status}))
            for status in ("FAILURE", "WARNING")
        }
        name = name if leg in CLIENTS else name.removeprefix("server-")
        found.append(Outcome(leg, wire, name, by_status["FAILURE"], by_status["WARNING"]))
    return found


async def try_server(leg: str, wire: str, url: str, only: str | None = None) -> list[Outcome]:
    """Have the suite talk to a server; all scenarios of a version, or one of them."""
    which = ["--suite", "all"] if only is None else ["--scenario", only]
    version = ["--spec-version", wire] if wire in WIRES else []
    with tempfile.TemporaryDirectory() as folder:
        given = ["--url", url, "-o", folder, "--timeout", str(WITHIN_MS), *version]
        printed = await suite("server", *which, *given)
        found = read(Path(folder), leg, wire)
    if "not applicable" in printed:
        return []
    return found or [Outcome(leg, wire, only or "all", (printed[-2000:],), ())]


async def try_client(leg: str, wire: str, scenario: str) -> Outcome:
    """Have the suite start a client for one scenario."""
    version = [] if wire == EXTENSIONS else ["--spec-version", wire]
    with tempfile.TemporaryDirectory() as folder:
        printed = await suite(
            *("client", "--command", " ".join(CLIENTS[leg]), "--scenario", scenario),
            *("-o", folder, "--timeout", str(WITHIN_MS), *version),
        )
        found = read(Path(folder), leg, wire)
    if len(found) != 1 or ("OVERALL: FAILED" in printed and not found[0].failed):
        return Outcome(leg, wire, scenario, (printed[-2000:],), ())
    return found[0]


async def scenarios_for(side: str) -> dict[str, list[str]]:
    """The scenarios for a `client` or a `server`, by version."""
    found: dict[str, list[str]] = {}
    for line in (await suite("list", f"--{side}")).splitlines():
        if listed := _LISTED.match(line):
            for version in listed[2].split(","):
                found.setdefault(version, []).append(listed[1])
    return found


def wires_of(leg: str) -> tuple[str, ...]:
    """The columns of the table that a leg has figures in."""
    if leg == "views":
        return (EXTENSIONS,)
    return (*WIRES, EXTENSIONS if leg in CLIENTS else ALL)


async def run_leg(leg: str, wire: str, only: str | None) -> list[Outcome]:
    """All scenarios of a leg and a version, or one of them."""
    if leg not in CLIENTS:
        async with server_of(leg) as url:
            if leg != "views" or only is not None:
                return await try_server(leg, wire, url, only)
            names = (await scenarios_for("server"))[EXTENSIONS]
            tasks = [each for each in names if each.startswith("tasks-")]
            return [one for each in tasks for one in await try_server(leg, wire, url, each)]
    scenarios = await scenarios_for("client")
    scenarios[EXTENSIONS] += scenarios[OLDEST]
    wanted = [each for each in scenarios[wire] if only in (None, each)]
    return [await try_client(leg, wire, scenario) for scenario in wanted]


def differences(outcomes: Iterable[Outcome]) -> list[str]:
    """What did not come out as expected."""
    found: list[str] = []
    for each in outcomes:
        expected = each.key in FAILURES
        named = f"{each.leg}, {each.wire}, {each.scenario}"
        if each.failed and not expected:
            found.append(f"{named} fails: {', '.join(each.failed)}")
        elif expected and not each.failed:
            found.append(f"{named} passes: take it out of tests/conformance/expected.py")
    return found


# --- the page --------------------------------------------------------------------------------


def cell(outcomes: list[Outcome]) -> str:
    """How many scenarios passed."""
    if not outcomes:
        return "-"
    passed = sum(not each.failed for each in outcomes)
    warned = sum(bool(each.warned) for each in outcomes)
    more = f" ({warned} with warnings)" if warned else ""
    return f"{passed}/{len(outcomes)}{more}"


def section(outcomes: list[Outcome]) -> str:
    """The part of the page about the suite."""
    packages = json.loads((SUITE.parent / "package.json").read_text())["dependencies"]
    [(package, version)] = packages.items()
    lines = [
        HEADING,
        "",
        f"Scenarios of npm `{package}` {version} that pass,",
        "by version of the protocol. The server is `tests/conformance/server.py`, made with the",
        "Python SDK. Written by `make conformance`.",
        "",
        "| | " + " | ".join((*WIRES, "no version named", "extensions and older")) + " |",
        "| --- | --- | --- | --- | --- |",
    ]
    for leg, title in LEGS.items():
        cells = [
            cell([each for each in outcomes if (each.leg, each.wire) == (leg, wire)])
            for wire in COLUMNS
        ]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    failed = [each for each in outcomes if each.failed]
    if failed:
        lines += ["", "What does not pass, and why:", ""]
    reasons: dict[str, list[str]] = {}
    for each in failed:
        reason = FAILURES.get(each.key, "not known yet")
        reasons.setdefault(reason, []).append(f"`{each.scenario}` ({each.leg}, {each.wire})")
    lines += [f"- {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    return "\n".join(lines) + "\n"


def write_section(text: str) -> None:
    """Replace a part of the page, or add it at the end."""
    title = text.partition("\n")[0]
    before, _, after = PAGE.read_text().partition(f"\n{title}\n")
    _, heading, after = after.partition("\n## ")
    PAGE.write_text(f"{before}\n{text}{heading}{after}")


async def main() -> int:
    """Run the legs; how many scenarios did not come out as expected."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("legs", nargs="*", metavar="LEG", help=", ".join(LEGS))
    parser.add_argument("--only", metavar="SCENARIO", help="run one scenario")
    parser.add_argument("--continue", action="store_true", dest="goes_on", help="an earlier run")
    options = parser.parse_args()
    outcomes: list[Outcome] = []
    if options.goes_on and DONE.exists():
        outcomes = msgspec.json.decode(DONE.read_bytes(), type=list[Outcome])
    done = {(each.leg, each.wire) for each in outcomes}
    for leg in options.legs or LEGS:
        for wire in wires_of(leg):
            ran = [] if (leg, wire) in done else await run_leg(leg, wire, options.only)
            outcomes += ran
            sys.stdout.write(f"{LEGS[leg]}, {wire}: {cell(ran)}\n" if ran else "")
            sys.stdout.flush()
            if not options.only:
                DONE.parent.mkdir(exist_ok=True)
                DONE.write_bytes(msgspec.json.encode(outcomes))
    wrong = differences(outcomes)
    sys.stdout.writelines(f"{each}\n" for each in wrong)
    if {each.leg for each in outcomes} == set(LEGS) and not options.only:
        write_section(section(outcomes))
    return 1 if wrong else 0


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.exit(asyncio.run(main()))
