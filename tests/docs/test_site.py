"""The documentation as a site: every link leads somewhere, and nothing is loaded from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.processes, pytest.mark.nightly]

ROOT = Path(__file__).parents[2]
LOADED = re.compile(
    r"<(?:script|img|iframe|source|audio|video|embed)\b[^>]*?\ssrc=[\"']?(https?:|//)[^\s>]*"
    r"|<link\b(?=[^>]*rel=[\"']?(?:stylesheet|preconnect|icon|preload))[^>]*href=[\"']?(https?:|//)"
    r"|url\([\"']?(https?:|//)"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.mark.processes
@pytest.mark.nightly
def test_every_page_is_in_the_site_with_its_pictures(site: Path) -> None:
    pages = {file.stem for file in (ROOT / "docs").glob("*.md")}
    assert pages | {"start", "changelog"} <= {file.stem for file in site.glob("*.html")}
    pictures = {file.name for file in (ROOT / "docs" / "images").iterdir()}
    assert pictures == {file.name for file in (site / "images").iterdir()}
    for page in site.glob("*.html"):
        shown = re.findall(r'\b(?:src|srcset)="?(images/[\w.-]+)', page.read_text())
        assert [file for file in shown if not (site / file).is_file()] == []
    assert len(re.findall(r"images/stage[\w-]*\.png", (site / "start.html").read_text())) == 2
    assert (site / "search" / "search_index.json").stat().st_size > 100_000


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for file in [*site.glob("*.html"), *site.rglob("*.css"), *site.rglob("*.svg")]:
        assert LOADED.search(file.read_text()) is None, file


def test_links_to_tests_and_source_lead_to_their_text(site: Path) -> None:
    page = (site / "decisions.html").read_text()
    [link, *_] = re.findall(r'href="(source/tests/[^"]+)"', page)
    assert (site / link).read_text().startswith(('"""', "import", "from"))
    assert "```" not in (site / "start.html").read_text()
