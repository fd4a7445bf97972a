import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from scripts.dist_contents import problems

from tests.cli.running import transom

ROOT = Path(__file__).parents[2]
PNG = b"\x89PNG\r\n"


def passes(run: subprocess.CompletedProcess[str], folder: Path) -> None:
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("✓") == 11
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


def test_the_demo_of_an_installed_wheel_goes_through_and_says_what_it_does(
    wheel: Path, tmp_path: Path
) -> None:
    installed, folder = tmp_path / "site", tmp_path / "an empty folder"
    folder.mkdir()
    with zipfile.ZipFile(wheel) as file:
        file.extractall(installed)
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-m", "transom", "demo"]
    where = subprocess.run(
        [*command, "--examples"], env=environment, cwd=folder, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert where.stdout.strip() == str(installed / "transom" / "examples")
    run = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    passes(run, folder)


def test_the_demo_of_a_checkout_has_its_examples_beside_the_source() -> None:
    found = transom("demo", "--examples")
    assert found.stdout.strip() == str(ROOT / "examples")
