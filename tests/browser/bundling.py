"""Pages made with a bundler, as the author of a View makes them."""

import subprocess
from functools import cache
from pathlib import Path

from tests.browser.transomjs_host import LIBRARY, ROOT

EXT_APPS = f"@modelcontextprotocol/ext-apps={LIBRARY}"
"""`transom.js` in the place of the official SDK."""


@cache
def bundle(source: str | Path, *, alias: tuple[str, ...] = (), mode: str = "production") -> str:
    """Bundle a script, given as text or as a file, with what it imports from npm."""
    command = [
        str(ROOT / "node_modules" / ".bin" / "esbuild"),
        "--bundle",
        "--format=esm",
        "--minify",
        "--jsx=automatic",
        f'--define:process.env.NODE_ENV="{mode}"',
        *(f"--alias:{pair}" for pair in alias),
    ]
    if isinstance(source, Path):
        command.append(str(source))
    else:
        command.append("--loader=ts")
    done = subprocess.run(
        command,
        input=source if isinstance(source, str) else None,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def bundled_page(
    source: str | Path, *, body: str = "", alias: tuple[str, ...] = (), mode: str = "production"
) -> str:
    """A page that runs a bundled script."""
    script = bundle(source, alias=alias, mode=mode)
    script = script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return (
        '<!doctype html><html><head><meta charset="utf-8"><title>A View</title></head>'
        f'<body>{body}<script type="module">{script}</script></body></html>'
    )
