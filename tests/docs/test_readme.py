import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
RUNNABLE = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)


def test_there_is_something_to_run() -> None:
    assert RUNNABLE


@pytest.mark.parametrize(("code", "output"), RUNNABLE, ids=[f"{n}" for n in range(len(RUNNABLE))])
def test_an_example_of_the_readme_prints_what_it_says(code: str, output: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (run.stdout, run.returncode) == (output, 0), run.stderr


def test_what_the_readme_links_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert missing == []
