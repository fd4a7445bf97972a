"""The pages quote samples that run, word for word, and docs/views.md leaves nothing of `App` out.

`make docs` puts the samples into the pages.
"""

import importlib.util
import inspect
import re
import textwrap
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from transom import Host
from transom.events import Event
from transom.view.app import App
from transom.view.tools import ToolOptions

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "views.md").read_text()
HELPERS = {"sample_host", "sample_shop"}
RUN_ELSEWHERE = {  # pages whose code runs in tests of their own, or is made from code
    "api.md": "tests/docs/test_reference.py",
    "react.md": "tests/browser/test_react_docs.py",
    "servers.md": "tests/server/test_docs.py",
    "transom-js.md": "tests/browser/test_transomjs_docs.py",
}
CODE = {"html", "js", "python", "ts", "tsx"}
SAMPLES = {file.stem for file in (DOCS / "samples").glob("*.py")} - HELPERS
# Run by tests/view/test_pyodide_page.py, tests/gateway/test_driving.py, tests/conform/test_host.py
# and tests/browser/test_dev_vite.py.
IN_A_BROWSER = {"python_view", "drive_view", "conform_host", "vite_page"}


class Block(NamedTuple):
    page: str
    language: str
    file: str | None
    region: str | None
    text: str


FENCE = re.compile(r"^```(\w+)(?: ([^\s#]+)(?:#(\S+))?)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    block
    for page in sorted(DOCS.glob("*.md"))
    if page.name not in RUN_ELSEWHERE
    for match in FENCE.finditer(page.read_text())
    if (block := Block(page.name, *match.groups())).language in CODE
]


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A fresh copy of a sample."""
    monkeypatch.syspath_prepend(DOCS / "samples")
    spec = importlib.util.spec_from_file_location(name, DOCS / "samples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def quoted(file: str, region: str | None) -> str:
    """A file of the docs, or the lines of it between `# region NAME` and `# endregion`."""
    text = (DOCS / file).read_text()
    if region is None:
        return text
    inside = re.search(
        rf"^ *# region {re.escape(region)}\n(.*?)^ *# endregion$", text, re.MULTILINE | re.DOTALL
    )
    assert inside is not None, f"{file} has no region {region}"
    return textwrap.dedent(inside[1]).strip("\n") + "\n"


@pytest.mark.processes
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if name == "gateway_embed" else ())
        for name in sorted(SAMPLES - IN_A_BROWSER)
    ],
)
async def test_the_sample_shows_what_it_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await load(name, monkeypatch).main()


@pytest.mark.parametrize(
    "block", BLOCKS, ids=lambda block: f"{block.page}-{block.file}-{block.region}"
)
def test_a_page_quotes_the_sample_word_for_word(block: Block) -> None:
    assert block.file is not None, "code on a page names the file it is from"
    assert block.text == quoted(block.file, block.region)


def test_every_sample_is_quoted() -> None:
    files = [Path(block.file or "") for block in BLOCKS]
    on_a_page = {file.name for file in files if file.parent.name == "samples"}
    there = {file.name for file in (DOCS / "samples").iterdir() if file.is_file()}
    assert there - {f"{name}.py" for name in HELPERS} == on_a_page


@pytest.mark.parametrize(("page", "test"), RUN_ELSEWHERE.items())
def test_the_code_of_other_pages_is_looked_at_by_another_test(page: str, test: str) -> None:
    assert f'"{page}"' in (DOCS.parent / test).read_text()


def test_every_handler_of_an_app_is_on_the_page() -> None:
    handlers = {name for name in dir(App) if isinstance(inspect.getattr_static(App, name), Event)}
    assert len(handlers) >= 11
    assert {name for name in handlers if f"`{name}`" not in PAGE} == set()


def test_every_request_to_the_host_is_on_the_page() -> None:
    requests = {
        name
        for name, value in vars(App).items()
        if inspect.iscoroutinefunction(value) and not name.startswith("_")
    } - {"close", "wait_closed"}
    assert len(requests) >= 15
    assert {name for name in requests if f"`{name}(" not in PAGE} == set()


def test_every_keyword_of_a_tool_is_on_the_page() -> None:
    keywords = ToolOptions.__optional_keys__
    assert len(keywords) >= 10
    assert {name for name in keywords if f"`{name}`" not in PAGE} == set()


HOSTS = (DOCS / "hosts.md").read_text()


def test_every_handler_of_a_host_is_on_its_page() -> None:
    handlers = {name for name in dir(Host) if isinstance(inspect.getattr_static(Host, name), Event)}
    assert len(handlers) >= 14
    assert {name for name in handlers if name not in HOSTS} == set()


def test_every_keyword_and_every_method_of_a_host_is_on_its_page() -> None:
    keywords = set(inspect.signature(Host).parameters)
    methods = {name for name in vars(Host) if not name.startswith("_")}
    methods -= {"call", "call_with_view", "request_task"}  # between parts of Transom
    assert len(keywords) >= 11
    assert {name for name in keywords | methods if name not in HOSTS} == set()
