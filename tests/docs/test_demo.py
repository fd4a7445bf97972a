"""The package as users get it: the wheel, in an empty home, from folders with spaces."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

import mcp
import pytest
from scripts.dist_contents import problems

from tests.cli.running import transom
from tests.docs.test_readme import COMMANDS
from transom.gateway.configuration.agent_configs import CLIENTS, Machine
from transom.gateway.configuration.config_text import FORMATS
from transom.gateway.configuration.install import find_clients
from transom.web.local.chromium import chromium_arguments, find_chromium

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
PNG = b"\x89PNG\r\n"


def passes(run: subprocess.CompletedProcess[str], folder: Path) -> None:
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("✓") == 12
    assert "✗" not in run.stdout
    assert "Tool remove_from_queue is disabled: the queue is empty" in run.stdout
    assert "transom open" in run.stdout
    assert (folder / "transom-demo.png").read_bytes().startswith(PNG)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


def test_the_wheel_has_the_examples_and_the_files_for_the_browser(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    assert problems(names, wheel=True) == []
    examples = [*(ROOT / "examples").glob("*.py"), *(ROOT / "examples").glob("*.html")]
    assert {f"transom/examples/{each.name}" for each in examples} <= set(names)


class Installed(NamedTuple):
    """A machine with an empty home, the wheel, and nothing of this checkout."""

    folder: Path
    environment: dict[str, str]

    def run(self, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(
            [str(word) for word in words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0 or not check, ran.stdout + ran.stderr
        return ran


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    home = tmp_path_factory.mktemp("an empty home")
    folder = home / "my servers"
    folder.mkdir()
    venv.create(home / "my env", with_pip=False, symlinks=True)
    python = home / "my env" / "bin" / "python"
    site = next((home / "my env" / "lib").glob("python*/site-packages"))
    # What it depends on is that of this environment: nothing is downloaded.
    (site / "dependencies.pth").write_text(f"{Path(mcp.__file__).parents[1]}\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    quiet = ["--no-deps", "--no-index", "--disable-pip-version-check", "--no-compile"]
    subprocess.run([*pip, *quiet, str(wheel)], check=True, capture_output=True)
    # A browser is the system's; a variable that names one is for it as well.
    kept = {name: os.environ[name] for name in ("TRANSOM_CHROMIUM",) if name in os.environ}
    path = os.pathsep.join([str(python.parent), "/usr/local/bin", "/usr/bin", "/bin"])
    return Installed(folder, {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", **kept})


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_the_demo_of_an_installed_wheel_goes_through_and_says_what_it_does(
    installed: Installed,
) -> None:
    where = installed.run("transom", "demo", "--examples")
    assert where.stdout.startswith(installed.environment["HOME"])
    assert where.stdout.endswith("transom/examples\n")
    passes(installed.run("transom", "demo", check=False), installed.folder)


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_the_demo_can_be_watched_in_the_users_browser(installed: Installed) -> None:
    home = Path(installed.environment["HOME"])
    browser = home / "browser"
    command = [find_chromium() or "chromium", "--headless", *chromium_arguments()]
    profile = shlex.quote(f"--user-data-dir={home}/profile")
    pid = home / "browser.pid"
    browser.write_text(
        f'#!/bin/sh\necho $$ >{shlex.quote(str(pid))}\nexec {shlex.join(command)} {profile} "$1"\n'
    )
    browser.chmod(0o755)
    variables = {**installed.environment, "BROWSER": str(browser)}
    try:
        watched = Installed(installed.folder, variables).run("transom", "demo", "--browser")
    finally:
        os.kill(int(pid.read_text()), signal.SIGTERM)
    assert watched.stdout.count("✓") == 11
    assert "The Views are in your browser." in watched.stdout


@pytest.mark.nightly
@pytest.mark.timeout(240)  # two commands and a browser, on a machine that may be busy
def test_an_installed_wheel_opens_and_checks_a_server_as_the_readme_says(
    installed: Installed,
) -> None:
    shutil.copytree(ROOT / "docs" / "readme", installed.folder / "docs" / "readme")
    (opening,) = [words for words in COMMANDS if "--headless" in words]
    opened = installed.run(*shlex.split(opening), "--timeout", "50")
    assert "Called   read\n         Milk" in opened.stdout
    assert opened.stderr == ""
    (checking,) = [words for words in COMMANDS if words.startswith("transom check")]
    assert "0 errors" in installed.run(*shlex.split(checking), "--timeout", "50").stdout


INSTALL = """\
import sys
from transom.cli.main import run
for client in sys.argv[1:]:
    words = ["gateway", "install", "--no-try", "--write", "--client", client, "--no-open"]
    assert run([*words, "--", "python", "note.py"]) == 0
"""


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_what_is_installed_for_each_client_starts_from_another_folder(
    installed: Installed, tmp_path: Path
) -> None:
    shutil.copy(ROOT / "docs" / "readme" / "note.py", installed.folder)
    shutil.copy(ROOT / "docs" / "readme" / "note.html", installed.folder)
    installed.run("python", "-c", INSTALL, *CLIENTS)
    home = Path(installed.environment["HOME"])
    commands: set[tuple[str, ...]] = set()
    for found in find_clients(Machine(home, installed.folder, {}, "linux")):
        assert list(found.behind) == ["note"], found
        entries = FORMATS[found.client.written].read(found.path.read_text(), "")
        entry = entries[found.client.section]["note"]
        commands.add((entry.get("command") or entry["cmd"], *entry["args"]))
    (command,) = commands  # the same for all of them
    assert command == (
        str(home / "my env" / "bin" / "transom"),
        *("gateway", "--no-open", "--"),
        str(home / "my env" / "bin" / "python"),
        str(installed.folder / "note.py"),
    )
    assert len(list(find_clients(Machine(home, installed.folder, {}, "linux")))) == len(CLIENTS)

    about = {"protocolVersion": "2025-11-25", "capabilities": {}}
    messages = [
        {
            "id": 1,
            "method": "initialize",
            "params": {**about, "clientInfo": {"name": "plain", "version": "1"}},
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**installed.environment, "PATH": "/usr/bin:/bin"},  # a client may know no more
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as gateway:
        assert gateway.stdin is not None
        assert gateway.stdout is not None
        for message in messages:
            gateway.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            gateway.stdin.flush()
        while (answer := json.loads(gateway.stdout.readline())).get("id") != 2:
            pass
        gateway.stdin.close()
    assert "open_note" in [tool["name"] for tool in answer["result"]["tools"]]
    assert gateway.returncode == 0


def test_the_demo_of_a_checkout_has_its_examples_beside_the_source() -> None:
    found = transom("demo", "--examples")
    assert found.stdout.strip() == str(ROOT / "examples")
