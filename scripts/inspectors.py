"""Runs other projects' checks of MCP servers and writes their table into docs/compatibility.md.

    .venv/bin/python -m scripts.inspectors

MCPJam's checks of MCP Apps (npm `@mcpjam/sdk`), and the command line of the MCP Inspector in both
eras of the protocol. Each is tried on a server alone, and on the same server through the gateway:
what the Inspector prints must be the same.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from scripts.conformance import COMMAND, GATEWAY, ROOT, SERVER, running, write_section

FOLDER = ROOT / "tests" / "inspectors"
NODE = COMMAND[0]
SHOP = [sys.executable, "-m", "tests.inspectors.shop_server"]
INSPECTOR = FOLDER / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
ERAS = ("legacy", "modern")
METHODS: tuple[tuple[str, ...], ...] = (
    ("tools/list",),
    ("tools/list", "--strict"),
    ("tools/call", "--tool-name", "test_simple_text"),
    ("tools/call", "--tool-name", "test_image_content"),
    ("tools/call", "--tool-name", "test_multiple_content_types"),
    ("resources/list",),
    ("resources/read", "--uri", "test://static-text"),
    ("resources/read", "--uri", "test://static-binary"),
    ("resources/read", "--uri", "test://template/7/data"),
    ("resources/templates/list",),
    ("prompts/list",),
    ("prompts/get", "--prompt-name", "test_simple_prompt"),
    (
        *("prompts/get", "--prompt-name", "test_prompt_with_arguments"),
        *("--prompt-args", "arg1=one", "arg2=two"),
    ),
)
FAILING: tuple[tuple[str, ...], ...] = (
    ("tools/call", "--tool-name", "test_error_handling"),
    ("tools/call", "--tool-name", "no_such_tool"),
    ("resources/read", "--uri", "test://no-such-resource"),
)
"""What the Inspector does in each era, and what has to fail."""
HEADING = "## Other projects' checks"


async def output(*words: str) -> tuple[int, str]:
    """The exit code of a program of Node and what it printed."""
    process = await asyncio.create_subprocess_exec(
        *(NODE, *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=FOLDER,
        env=os.environ | {"MCPJAM_TELEMETRY_DISABLED": "1"},
    )
    printed = (await process.communicate())[0].decode()
    return process.returncode or 0, printed


async def check_apps(url: str) -> list[dict[str, Any]]:
    """MCPJam's checks of a server."""
    _, printed = await output(str(FOLDER / "apps_conformance.mjs"), url)
    return json.loads(printed)


async def inspect(url: str, era: str, *method: str) -> tuple[int, object]:
    """What the Inspector says: its exit code, and the result without what each request has."""
    words = ("--cli", url, "--protocol-era", era, "--format", "json", "--stored-auth-only")
    code, printed = await output(str(INSPECTOR), *words, "--method", *method)
    result = json.loads(printed)["result"] if printed.strip() else None
    if isinstance(result, dict):
        result.pop("_meta", None)  # who answered: the server, or the gateway
    return code, result


@asynccontextmanager
async def behind_gateway(url: str) -> AsyncIterator[str]:
    """The URL of a gateway with that server."""
    async with running(*GATEWAY, "0", "--url", url, ready="listens at") as line:
        yield line.split()[-1]


async def main() -> int:
    """Run them; 1 if one fails."""
    wrong: list[str] = []
    rows: dict[str, list[str]] = {"server alone": [], "through the gateway": []}
    async with running(*SHOP, ready="http://") as line, behind_gateway(line.split()[-1]) as gateway:
        await inspect(gateway, "legacy", "tools/list")  # MCPJam has no patience with a first client
        for title, url in zip(rows, (line.split()[-1], gateway), strict=True):
            checks = await check_apps(url)
            failed = [each for each in checks if each["status"] != "passed"]
            rows[title].append(f"{len(checks) - len(failed)}/{len(checks)}")
            wrong += [f"{title}: {each['id']}: {each.get('error')}" for each in failed]
    async with (
        running(*SERVER, "0", ready="http://") as line,
        behind_gateway(line.split()[-1]) as gateway,
    ):
        for era in ERAS:
            passed = dict.fromkeys(rows, 0)
            for method in (*METHODS, *FAILING):
                alone = await inspect(line.split()[-1], era, *method)
                through = await inspect(gateway, era, *method)
                as_wanted = (alone[0] != 0) == (method in FAILING)
                passed["server alone"] += as_wanted
                passed["through the gateway"] += alone == through
                if alone != through or not as_wanted:
                    wrong.append(f"{era}, {' '.join(method)}: {alone} alone, {through} through")
            for title, count in passed.items():
                rows[title].append(f"{count}/{len(METHODS) + len(FAILING)}")
    versions = json.loads((FOLDER / "package.json").read_text())["dependencies"]
    inspector = versions["@modelcontextprotocol/inspector"]
    lines = [
        HEADING,
        "",
        f"The checks of MCP Apps of npm `@mcpjam/sdk` {versions['@mcpjam/sdk']}, and the command",
        f"line of npm `@modelcontextprotocol/inspector` {inspector} in both",
        "eras of the protocol: through the gateway, it prints what it prints of the server alone.",
        "The conformance server of ext-apps is in its repository only, so it is not among them.",
        "Written by `make conformance`.",
        "",
        "| | MCPJam | Inspector, era `legacy` | Inspector, era `modern` |",
        "| --- | --- | --- | --- |",
        *(f"| {title} | {' | '.join(cells)} |" for title, cells in rows.items()),
    ]
    sys.stdout.writelines(f"{each}\n" for each in (*lines[-2:], *wrong))
    write_section("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.exit(asyncio.run(main()))
