"""Put the samples into the pages that quote them: blocks opened by `python samples/FILE.py#REGION`.

A region is what stands between `# region NAME` and `# endregion` in the sample; without one it is
the whole file. Tests run every sample, and fail when a page does not quote it word for word.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"

_QUOTE = re.compile(
    r"^(?P<fence>```\w+ (?P<file>[^\s#]+)(?:#(?P<region>\S+))?\n).*?^```$", re.MULTILINE | re.DOTALL
)


def quoted(file: str, region: str | None) -> str:
    """A file of the docs, or one region of it."""
    text = (DOCS / file).read_text()
    if region is None:
        return text
    inside = re.search(
        rf"^ *# region {re.escape(region)}\n(.*?)^ *# endregion$", text, re.MULTILINE | re.DOTALL
    )
    if inside is None:
        raise LookupError(f"{file} has no region {region}")
    return textwrap.dedent(inside[1]).strip("\n") + "\n"


def filled(page: str) -> str:
    """A page with what its samples say now."""
    return _QUOTE.sub(
        lambda found: f"{found['fence']}{quoted(found['file'], found['region'])}```", page
    )


def main() -> None:
    """Bring every page up to date."""
    for page in sorted(DOCS.glob("*.md")):
        before = page.read_text()
        after = filled(before)
        if after != before:
            page.write_text(after)
            print(f"docs/{page.name} quotes its samples again")


if __name__ == "__main__":
    sys.exit(main())
