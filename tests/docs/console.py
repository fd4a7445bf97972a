"""The `console` blocks of the pages: what is typed there, and what it prints.

A line `# Not run by a test: REASON` in a block is about the commands below it. All others are run,
those of a page in order and in one folder:

- What is printed below a command is what it prints: `…` stands for anything, a line of it for any
  lines; ports and times may differ.
- A command ends with 0, unless its comment says `exit code N`. One that stays until Ctrl-C gets
  that as soon as it says that it is ready.
"""

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.ports import reserved_port
from transom.web.local.chromium import find_chromium

ROOT = Path(__file__).parents[2]
FILES = Path(__file__).with_name("console_files")
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
]
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TYPED = re.compile(r"^(?:\w+)?\$ (.*)$")
_REASON = re.compile(r"^# Not run by a test: (\S.*)$")
_EXIT_CODE = re.compile(r"# .*\bexit code (\d+)")

INSTALLS = {"git", "make", "npm", "pip", "python3", "uvx"}
"""Programs that are tried in a fresh copy of the checkout, with packages from the internet."""

SLOW = {
    *("CONTRIBUTING.md", "browser.md", "check.md", "conformance.md", "doctor.md", "evals.md"),
    *("examples.md", "gateway-install.md", "gateway.md", "views-without-tools.md"),
}
"""Pages whose commands take longer than ten seconds together: they are tried nightly."""

PATIENCE = 100
"""Seconds for a server to answer, or a View to open, on a machine that may be busy."""

STAYS = {
    r"transom dev": "Press Ctrl-C to end it.",
    r"transom open (?!.*--headless)": "Opened",
    r"transom gateway .*--http": "The gateway listens at",
}
"""Commands that stay until Ctrl-C, and what they print when they are ready."""

FEW = {"ARGS": "tests/test_errors.py"}
"""What `make` hands on to pytest here: the tests that a page runs are not run inside a test."""

_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "reader", "version": "1"},
    },
}


class Command(NamedTuple):
    """A line that is typed, and the lines that the page shows below it."""

    place: str
    typed: str
    printed: str
    exit_code: int

    @property
    def programs(self) -> set[str]:
        """What is started: the first word of each part of the line."""
        parts = re.split(r" && | \| ", self.typed)
        return {Path(shlex.split(part, comments=True)[0]).name for part in parts}


class Block(NamedTuple):
    """The commands of a block that are run, and those that are not, with the reason."""

    page: Path
    line: int
    run: list[Command]
    left_out: list[Command]
    reason: str | None

    @property
    def installs(self) -> bool:
        """It is tried in a fresh copy of the checkout, which takes minutes."""
        return any(command.programs & INSTALLS for command in self.run)


def read_block(page: Path, line: int, text: str) -> Block:
    """A block that begins below the given line of its page."""
    block = Block(page, line, [], [], None)
    for number, each in enumerate(text.splitlines(), line + 1):
        if reason := _REASON.match(each):
            block = block._replace(reason=reason[1])
        elif typed := _TYPED.match(each):
            code = _EXIT_CODE.search(each)
            place = f"{page.relative_to(ROOT)}:{number}"
            command = Command(place, typed[1], "", int(code[1]) if code else 0)
            (block.left_out if block.reason else block.run).append(command)
        else:
            commands = block.left_out if block.reason else block.run
            assert commands, f"{page.name}:{number}: a block begins with a command: {each}"
            commands[-1] = commands[-1]._replace(printed=f"{commands[-1].printed}{each}\n")
    return block


def blocks() -> list[Block]:
    """All blocks of all pages."""
    return [
        read_block(page, text.count("\n", 0, found.start()) + 1, found[1])
        for page in PAGES
        for text in [page.read_text()]
        for found in _BLOCK.finditer(text)
    ]


def prints(shown: str, printed: str) -> bool:
    """Is this what the page shows?"""
    pattern = "\n".join(map(re.escape, shown.rstrip().splitlines()))
    pattern = re.sub(r"(?m)^…$", ".*", pattern)
    pattern = pattern.replace("…", "[^\n]*")
    pattern = re.sub(r":\d{4,5}\b", r":\\d+", pattern)
    pattern = re.sub(r"\d{4}\\-\d\d\\-\d\d\\ \d\d:\d\d", r"[\\d: -]+", pattern)
    # A slow browser has not yet made a View as high as its content when it is looked at first.
    printed = re.sub(r"(?m)^ *\d+ of these are scrolled out of sight\.\n", "", printed)
    lines = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    return re.fullmatch(pattern, lines, re.DOTALL) is not None


class Shell:
    """Where the commands of a page are typed: an empty home, and a folder with the examples.

    Args:
        folder: an empty folder for all of it.
        page: where the commands are from. A page of an example is read in the example's folder.
        checkout: a fresh copy of the checkout, for a page that tells what to do with one.
        url: a server by URL, in place of the one on the page.
    """

    def __init__(
        self, folder: Path, page: Path, *, checkout: Path | None = None, url: str = ""
    ) -> None:
        example = page.is_relative_to(ROOT / "examples")
        self.folder = folder / "here"
        self._home = folder / "home"
        self._home.mkdir()
        self._here_instead = {
            "https://example.com/mcp": url,
            "--http 8080": f"--http {reserved_port()}",
            "/path/to/transom": str(checkout),
        }
        programs = folder / "bin"
        programs.mkdir()
        self._browser = _program(
            programs / "browser",
            f"echo $$ >> {self._home}/browsers; exec {shlex.quote(find_chromium() or 'chromium')}"
            f' --headless --no-sandbox --user-data-dir="$HOME/browser" "$1"',
        )
        path = [str(programs), "/usr/local/bin", "/usr/bin", "/bin"]
        if checkout is None or example:
            path.insert(1, str(Path(sys.executable).parent))
        if checkout is None:
            _program(programs / "uvx", f"exec python {self.folder}/orders.py")
            self._furnish(page)
        else:
            self.folder = checkout / page.parent.relative_to(ROOT)
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "XDG", "UV"))},
            "HOME": str(self._home),
            "PATH": os.pathsep.join(path),
            "BROWSER": str(self._browser),
            "COLUMNS": "80",
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
        }
        for settings in (Path.home() / ".config/pip/pip.conf", Path.home() / ".pip/pip.conf"):
            if settings.exists():  # where packages come from is the machine's, not the reader's
                self.environment.setdefault("PIP_CONFIG_FILE", str(settings))

    def _furnish(self, page: Path) -> None:
        """Put the examples there, a server of the reader's own, and what the page needs."""
        ignored = shutil.ignore_patterns("node_modules", "dist", "__pycache__")
        for name in ("examples", "docs/readme"):
            shutil.copytree(ROOT / name, self.folder / name, ignore=ignored)
        own = [*(ROOT / "examples").glob("orders.*"), FILES / "servers.json"]
        quoted = (ROOT / "docs" / page.stem).glob("*.*")
        for file in [*own, *quoted, *(FILES / page.name).glob("*")]:
            shutil.copy(file, self.folder)
        (self.folder / ".venv").symlink_to(sys.prefix)
        (self.folder / "node_modules").symlink_to(ROOT / "tests" / "servers" / "node_modules")

    async def type(self, command: Command) -> None:
        """Run a command of a page, and compare."""
        typed = command.typed
        for shown, here in self._here_instead.items():
            typed = typed.replace(shown, here)
        typed = re.sub(
            r"^(\S*transom (?:open|check|doctor|conform view)) ",
            rf"\1 --timeout {PATIENCE} ",
            typed,
        )
        if changes := re.fullmatch(r"cd (\S+)", typed):
            self.folder /= changes[1].replace("~", str(self._home))
            self.folder.mkdir(exist_ok=True)
            return
        if typed.startswith("uvx "):
            self._install_uv()
        environment = {**self.environment, **(FEW if "make test" in typed else {})}
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", typed),
            cwd=self.folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        ready = next((STAYS[form] for form in STAYS if re.match(rf"(\S+/)?{form}", typed)), None)
        try:
            if ready is not None:
                out, err = await _until(process, ready)
            elif re.match(r"transom gateway (?!install|uninstall)", typed):
                out, err = await _as_client(process)
            else:
                out, err = [each.decode() for each in await process.communicate(b"")]
        finally:
            self._end(process)
        told = f"{command.place}: {command.typed}\n{out}{err}"
        assert process.returncode == command.exit_code, f"exit code {process.returncode}, {told}"
        assert not command.printed or prints(command.printed, out), told

    def _install_uv(self) -> None:
        """In an environment of its own, unless the page's `uvx` stands for something else."""
        if shutil.which("uvx", path=self.environment["PATH"]) is None:
            folder = self._home.parent / "uv"
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            pip = [folder / "bin" / "pip", "install", "--quiet", "uv"]
            subprocess.run(pip, check=True, env=self.environment)
            self.environment["PATH"] += f"{os.pathsep}{folder / 'bin'}"

    def _end(self, process: asyncio.subprocess.Process) -> None:
        """Leave nothing of the command behind, nor the browser that it opened."""
        groups = [process.pid]
        with suppress(FileNotFoundError):
            groups += map(int, (self._home / "browsers").read_text().split())
        for group in groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
            with suppress(ProcessLookupError):
                os.kill(group, signal.SIGKILL)


async def _until(process: asyncio.subprocess.Process, ready: str) -> tuple[str, str]:
    """What a command prints that is interrupted when it is ready."""
    assert process.stdout is not None
    assert process.stderr is not None
    interrupted = asyncio.Event()

    async def read(stream: asyncio.StreamReader) -> str:
        text = ""
        async for line in stream:
            text += line.decode()
            if ready in text and not interrupted.is_set():
                interrupted.set()
                process.send_signal(signal.SIGINT)
        return text

    out, err = await asyncio.gather(read(process.stdout), read(process.stderr))
    await process.wait()
    assert interrupted.is_set(), f"It never printed: {ready}\n{out}{err}"
    return out, err


async def _as_client(process: asyncio.subprocess.Process) -> tuple[str, str]:
    """A gateway as its client sees it: it answers, and ends when the client is gone."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
    answer = json.loads(await process.stdout.readline())
    assert answer["result"]["serverInfo"]["name"]
    process.stdin.close()
    out, err = await process.communicate()
    return out.decode(), err.decode()


def fresh_copy(folder: Path) -> Path:
    """The checkout as git would clone it, with what is not committed yet."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def _program(file: Path, script: str) -> Path:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file
