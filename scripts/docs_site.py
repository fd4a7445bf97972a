"""What MkDocs must know to make a site of the pages, which are written for code hosts too.

1. README, changelog and the like, which are outside `docs/`, become pages.
2. Links to source files and tests lead to a copy of the file, as plain text.
3. A block of code that names the file it quotes loses that name, which MkDocs would not understand.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {
    "README.md": "start.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "vulnerabilities.md",
}

_LINK = re.compile(
    r"\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<path>[^()\s:#]+)(?P<anchor>#[^()\s]*)?\)"
)
_PICTURE = re.compile(r'\b(?P<attribute>src|srcset)="(?P<path>[^":]+)"')
_QUOTING = re.compile(r"^(```\w+) \S+$", re.MULTILINE)
_FENCE = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are outside `docs/`, and every file that a page links to."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    texts = [*(ROOT / source for source in PAGES), *DOCS.glob("*.md")]
    linked = {
        file
        for text in texts
        for link in _LINK.finditer(text.read_text())
        if (file := (text.parent / link["path"]).resolve()).is_relative_to(ROOT)
    }
    for file in sorted(linked):
        if file.is_file() and not _in_site(file):
            name = _copy_of(file)
            files.append(File.generated(config, name, content=file.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point the links of a page at what is in the site."""
    del config, files
    sources = {page: source for source, page in PAGES.items()}
    here = ROOT / sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def moved(link: re.Match[str]) -> str:
        file = (here.parent / link["path"]).resolve()
        relative = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else ""
        if file.is_dir():  # the site has no pages for folders
            return link["text"]
        if relative in PAGES:
            target = PAGES[relative]
        elif _in_site(file):
            target = file.relative_to(DOCS).as_posix()
        elif file.is_file():
            target = _copy_of(file)
        else:
            return link[0]  # a broken link, for MkDocs to complain about
        return f"[{link['text']}]({target}{link['anchor'] or ''})"

    def pictured(source: re.Match[str]) -> str:
        file = (here.parent / source["path"]).resolve()
        return f'{source["attribute"]}="{file.relative_to(DOCS).as_posix()}"'

    parts = _FENCE.split(_QUOTING.sub(r"\1", markdown))
    return "".join(
        part if part.startswith("```") else _PICTURE.sub(pictured, _LINK.sub(moved, part))
        for part in parts
    )


def _in_site(file: Path) -> bool:
    return file.parent in {DOCS, DOCS / "images"}


def _copy_of(file: Path) -> str:
    return f"source/{file.relative_to(ROOT).as_posix().lstrip('.')}.txt"
