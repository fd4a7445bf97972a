"""Names for servers that were not given one.

A name is one that a `Host` accepts: 1 to 32 of `A-Za-z0-9_-`,
beginning with a letter or digit, without a `_` at its end or two in a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

_LONGEST = 32
_LONGEST_MADE = 24  # of a name made here, because View ids and tool names begin with it
_DEFAULT = "server"

# Commands that run a server, rather than being one.
_RUNNER = re.compile(
    r"(python|pypy)[\d.]*w?|node|nodejs|npx|npm|pnpm|yarn|dlx|exec|bunx?|x|deno|tsx|ts-node|uvx?"
    r"|pipx|poetry|hatch|run|tool|docker|podman|sh|bash|zsh|cmd|env|sudo",
    re.IGNORECASE,
)
_SCRIPT = re.compile(r"(?P<path>.+)\.(py|js|mjs|cjs|ts|mts|rb|sh)(:[A-Za-z_][\w.]*)?", re.DOTALL)
_OPTION = re.compile(r"-|\w+=(?!=)")  # an option, or a variable that is set
_GENERIC = re.compile(r"index|main|__main__|server|app|cli|mcp|run|start", re.IGNORECASE)
_BUILT = re.compile(r"dist|build|out|src|lib|bin|\.+|~?", re.IGNORECASE)
_VERSION = re.compile(r"(?<=.)(@|[=~!<>]=).*", re.DOTALL)


def name_of_command(words: Sequence[str]) -> str:
    """A name from the script, module or package that a command runs.

    `python shop/orders.py` is `orders`, `npx -y @acme/maps@2 --stdio` is `maps`, and a script with
    a generic name takes that of its folder: `node maps/dist/index.js` is `maps`.
    """
    for word in words:
        if found := _SCRIPT.fullmatch(word):
            return _short_name(_of_script(found["path"]))
    if "-m" in words[:-1]:
        return _short_name(words[words.index("-m") + 1])
    parts = [_last_part(word) for word in words if not _OPTION.match(word)]
    specific = [part for part in parts if part and not _RUNNER.fullmatch(part)]
    word = (specific or parts or [""])[0]
    return _short_name(_VERSION.sub("", word.partition(":")[0]))


def name_of_url(url: str) -> str:
    """A name from the host of a URL."""
    try:
        return _short_name(urlsplit(url).hostname or "")
    except ValueError:
        return _DEFAULT


def fitted_name(text: str) -> str:
    """The text itself if it is a valid name, else a valid name made of it."""
    kept = re.sub(r"[^A-Za-z0-9_-]+", "-", text)
    kept = re.sub(r"_{2,}", "_", kept).lstrip("-_")
    return kept[:_LONGEST].rstrip("-_" if kept != text else "_") or _DEFAULT


def unique_names(names: Iterable[str]) -> list[str]:
    """The names, with a number added to each that was used before."""
    given = list(names)
    taken = set(given)
    seen: set[str] = set()
    unique: list[str] = []
    for name in given:
        chosen, number = name, 1
        while chosen in seen or (chosen != name and chosen in taken):
            number += 1
            chosen = f"{name[: _LONGEST - len(str(number)) - 1].rstrip('-_')}-{number}"
        seen.add(chosen)
        unique.append(chosen)
    return unique


def _of_script(path: str) -> str:
    *folders, stem = re.split(r"[/\\]", path)
    if not _GENERIC.fullmatch(stem):
        return stem
    return next((folder for folder in reversed(folders) if not _BUILT.fullmatch(folder)), stem)


def _last_part(word: str) -> str:
    return re.split(r"[/\\]", word.rstrip("/\\"))[-1]


def _short_name(word: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-")[:_LONGEST_MADE].strip("-") or _DEFAULT
