"""`transom.js` goes into a page once, where it asks, and survives being inside HTML."""

from __future__ import annotations

import importlib.resources
import json
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

from transom.errors import RegistrationError
from transom.server import resource as inline
from transom.server.resource import ViewHtml, inline_transom

STATIC = Path(inline.__file__).parents[1] / "web" / "static"
LIBRARY = r"""
/** An App. Do not write </script> here, nor <!-- there. */
(() => {
  class App {
    constructor(name) { this.name = name; }
    closing() { return "</script><!--"; }
  }
  globalThis.transom = { App, VERSION: "1" };
})();
"""


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    file = tmp_path / "web" / "static" / "inline.js"
    file.parent.mkdir(parents=True)
    file.write_text(LIBRARY)
    monkeypatch.setattr(importlib.resources, "files", lambda _: tmp_path)
    inline._library.cache_clear()
    yield file
    inline._library.cache_clear()


class Found(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._inside = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
            self._inside = True

    def handle_data(self, data: str) -> None:
        if self._inside:
            attrs, body = self.scripts[-1]
            self.scripts[-1] = (attrs, body + data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "script"


def run(page: str, expression: str) -> object:
    """Run the scripts of a page in order, one global world, and evaluate an expression there."""
    scripts = [body for _, body in Found(page).scripts]
    program = """
        const vm = require("node:vm");
        const world = vm.createContext({ document: {} });
        const { scripts, expression } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
        for (const script of scripts) vm.runInContext(script, world);
        console.log(JSON.stringify(vm.runInContext(expression, world)));
    """
    done = subprocess.run(
        ["node", "-e", program],
        input=json.dumps({"scripts": scripts, "expression": expression}),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="transom.js"></script>',
        "<script src='./transom.js' defer></script>",
        '<script type="module" src="transom.js">\n</script>',
        "<SCRIPT SRC=transom.js></SCRIPT >",
    ],
)
def test_a_script_tag_becomes_the_library(tag: str):
    page = inline_transom(f"<!doctype html><title>a</title>{tag}<p>end</p>")
    [(attributes, body)] = Found(page).scripts
    assert attributes == {}
    assert "class App" in body
    assert page.startswith("<!doctype html><title>a</title><script>")
    assert page.endswith("</script><p>end</p>")


@pytest.mark.processes
def test_the_library_cannot_end_its_own_script():
    page = inline_transom('<!doctype html><script src="transom.js"></script><p>after</p>')
    assert run(page, "new transom.App().closing()") == "</script><!--"
    assert page.count("</script>") == 1
    assert "<!--" not in page


@pytest.mark.processes
@pytest.mark.parametrize(
    ("statement", "expression"),
    [
        ('import { App } from "transom";', "new App('x').name"),
        ("import {App} from 'transom.js'", "new App('x').name"),
        ('import{App as A,VERSION}from"./transom.js";', "new A('x'.repeat(+VERSION)).name"),
        ('import {\n  App,\n  VERSION as V,\n} from "transom";', "V === '1' && new App('x').name"),
        ('import * as t from "transom";', "new t.App('x').name"),
        ('import "transom";', "new transom.App('x').name"),
    ],
)
def test_an_import_in_an_inline_module_works(statement: str, expression: str):
    module = f"{statement}\nglobalThis.out = {expression};"
    page = inline_transom(f"<!doctype html><p></p><script type=module>{module}</script>")
    (_, library), (attributes, body) = Found(page).scripts
    assert "class App" in library
    assert attributes == {"type": "module"}
    assert "import" not in body
    assert run(page, "globalThis.out") == "x"


def test_the_library_comes_once_before_the_first_that_needs_it():
    page = inline_transom("""<!doctype html>
        <script>window.first = 1</script>
        <script type="module">import { App } from "transom";</script>
        <script src="transom.js"></script>
        <script type="module">import { VERSION } from "transom";</script>""")
    bodies = [body for _, body in Found(page).scripts]
    assert [("class App" in body) for body in bodies] == [False, True, False, False]
    assert page.count("class App") == 1


@pytest.mark.parametrize(
    "text",
    [
        "<!doctype html><p>transom.js</p>",
        '<!doctype html><!-- <script src="transom.js"></script> -->',
        '<!doctype html><script src="https://cdn.example.com/transom.js"></script>',
        '<!doctype html><script src="my-transom.js"></script>',
        '<!doctype html><script>const text = `import { App } from "transom"`;</script>',
        '<!doctype html><script type="module">import { App } from "transom-extras";</script>',
        '<!doctype html><textarea><script src="transom.js"></script></textarea>',
    ],
)
def test_a_page_that_does_not_ask_is_left_alone(text: str):
    assert inline_transom(text) == text


def test_a_default_import_is_refused():
    with pytest.raises(RegistrationError, match=r"Write import \{ App \} from 'transom'"):
        inline_transom('<!doctype html><script type="module">import App from "transom";</script>')


def test_a_missing_library_is_a_clear_error_where_the_page_is_declared(library: Path):
    library.unlink()
    with pytest.raises(RegistrationError, match="does not have it"):
        ViewHtml("ui://a/b", '<!doctype html><script src="transom.js"></script>')
    assert ViewHtml("ui://a/b", "<!doctype html><p>plain").read()


def test_pages_get_the_library_from_text_file_and_function(tmp_path: Path):
    text = '<!doctype html><script src="transom.js"></script>'
    file = tmp_path / "page.html"
    file.write_text(text)
    for source in (text, file, lambda: text):
        assert "class App" in ViewHtml("ui://a/b", source).read()


@pytest.mark.processes
@pytest.mark.parametrize("asks", ["", "document.modelContext"])
def test_the_real_library_has_the_same_members_inlined_as_imported(
    asks: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.undo()
    inline._library.cache_clear()
    page = inline_transom(
        f'<!doctype html><script src="transom.js"></script><script>"{asks}"</script>'
    )
    body = Found(page).scripts[0][1]
    assert ("modelContext" in body) == bool(asks)
    program = """
        const vm = require("node:vm");
        const [file, script] = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
        import(file).then((module) => {
            const world = vm.createContext({ console, EventTarget, Event, URL, setTimeout });
            vm.runInContext(script, world);
            console.log(JSON.stringify([Object.keys(module), Object.keys(world.transom)]));
        });
    """
    module = STATIC / "transom.js"
    done = subprocess.run(
        ["node", "-e", program],
        input=json.dumps([f"data:text/javascript,{quote(module.read_text())}", body]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    imported, inlined = json.loads(done.stdout)
    assert "App" in imported
    assert sorted(inlined) == sorted(imported)
