import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PNG = b"\x89PNG\r\n"


def test_the_demo_goes_through_and_says_what_it_does() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "examples.demo"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("✓") == 11
    assert "✗" not in run.stdout
    assert "Tool remove_from_queue is disabled: the queue is empty" in run.stdout
    assert "transom open" in run.stdout
    assert (ROOT / "build" / "demo.png").read_bytes().startswith(PNG)
