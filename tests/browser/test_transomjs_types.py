"""The TypeScript declarations: they compile, say what they should, and leave nothing out."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.browser.transomjs_host import LIBRARY, PAGES, ROOT

pytestmark = pytest.mark.processes

STATIC = LIBRARY.parent
TYPES = PAGES / "types"
TSC = str(ROOT / "node_modules" / "typescript-7" / "bin" / "tsc")

# What only the modules themselves use, and what is there to say that it is gone.
INTERNAL = {
    "App": {"become"},
    "RegisteredAppTool": {"call", "definition", "run"},
    "ModelContext": {"clearContext", "provideContext"},
}
# What is there once someone sets it.
HANDLERS = {
    "App": {
        "ontoolinput", "ontoolinputpartial", "ontoolresult", "ontoolcancelled",
        "onhostcontextchanged", "onteardown", "onerror", "onclose",
    },
    "RegisteredAppTool": {"error"},
    "ModelContext": {"addEventListener", "removeEventListener", "dispatchEvent"},
}  # fmt: skip


def compiled(*arguments: str) -> str:
    """What the compiler says; nothing if all is well."""
    done = subprocess.run(
        [TSC, "--pretty", "false", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def members() -> dict[str, list[str]]:
    """What the modules really have."""
    node = shutil.which("node")
    assert node is not None
    script = str(PAGES / "members.mjs")
    done = subprocess.run([node, script, str(STATIC)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_declarations_compile_and_a_page_that_uses_all_of_them_does():
    options = ["--noEmit", "--strict", "--target", "ES2022", "--module", "esnext"]
    files = sorted(str(file) for file in STATIC.glob("*.d.ts"))
    assert {"react.d.ts", "transom.d.ts", "webmcp.d.ts"} <= {Path(file).name for file in files}
    assert compiled(*options, "--moduleResolution", "bundler", *files) == ""
    assert compiled("-p", str(TYPES)) == ""


GLOBALS = """
declare const editor: { on(name: string, listener: () => void): void };
declare function insertAtCursor(text: string): void;
declare function saveHandler(extra: object): { content: [] };
declare function refreshHandler(): { content: [{ type: "text"; text: string }] };
declare function formIsValid(): boolean;
declare function getSelectedText(): string;
declare function formatText(given: unknown): string;
"""


def test_samples_for_the_official_sdk_compile_with_every_zod(tmp_path: Path):
    for zod in ("zod", "zod-3", "zod-3/v4", "zod-4.0", "zod-4.1"):
        folder = tmp_path / zod.replace("/", "-")
        folder.mkdir()
        for file in (PAGES / "samples").glob("*.ts"):
            code = file.read_text().replace('from "zod"', f'from "{zod}"')
            (folder / file.name).write_text(code)
    (tmp_path / "globals.d.ts").write_text(GLOBALS)
    (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    config = json.loads((TYPES / "tsconfig.json").read_text())
    config["compilerOptions"]["paths"] = {"@modelcontextprotocol/ext-apps": [f"{STATIC}/transom"]}
    config["include"] = ["*.ts", "*/*.ts"]
    (tmp_path / "tsconfig.json").write_text(json.dumps(config))
    assert compiled("-p", str(tmp_path)) == ""


def test_a_mistake_is_found(tmp_path: Path):
    """That nothing is said of the page above means something."""
    for file in TYPES.iterdir():
        text = file.read_text().replace("../../../../src", str(ROOT / "src"))
        (tmp_path / file.name).write_text(text.replace("ontoolresult = (", "ontoolresults = ("))
    (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    said = compiled("-p", str(tmp_path))
    assert len(re.findall(r"TS2551: Property 'ontoolresults' does not exist", said)) == 2


def exactly(kind: str, names: Iterable[str]) -> str:
    """TypeScript that compiles if a type has these keys and no others."""
    keys = " | ".join(f'"{name}"' for name in sorted(names))
    return f"""{{
      const real = (key: {keys}): keyof {kind} => key;
      const declared = (key: keyof {kind}): {keys} => key;
      void [real, declared];
    }}"""


def test_they_declare_what_there_is_and_nothing_else(members: dict[str, list[str]], tmp_path: Path):
    checks = [
        exactly("typeof transom", members["transom"]),
        exactly("typeof react", members["react"]),
    ]
    for kind, module in (
        ("App", "transom"),
        ("RegisteredAppTool", "transom"),
        ("ModelContext", "webmcp"),
    ):
        public = {*members[kind]} - INTERNAL[kind]
        checks.append(exactly(f'import("transom/{module}").{kind}', public | HANDLERS[kind]))
    (tmp_path / "check.ts").write_text(
        'import type * as transom from "transom/transom";\n'
        'import type * as react from "transom/react";\n' + "\n".join(checks)
    )
    (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    config = json.loads((TYPES / "tsconfig.json").read_text())
    config["compilerOptions"]["paths"] = {"transom/*": [f"{STATIC}/*"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(config))
    assert compiled("-p", str(tmp_path)) == ""


def test_react_is_a_peer_and_nothing_else_is_needed():
    code = (STATIC / "react.js").read_text()
    assert set(re.findall(r'from"(.*?)"', code)) == {"react", "./transom.js"}
