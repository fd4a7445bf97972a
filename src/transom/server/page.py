"""A View as a server declares it: a page at a `ui://` URI, and what it asks of its host.

The page is text, a file or a function. Text and files are checked when they are declared. A file
is read again when it changes; a function is called at every read. `transom.js` is put into the page
where the page asks for it.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Unpack, cast

from transom.errors import RegistrationError
from transom.server import declare
from transom.server.declare import PageOptions
from transom.server.inline import inline_transom

__all__ = ["PageHtml", "Source", "ViewPage", "view_page"]

Source = str | Path | Callable[[], str]

_log = logging.getLogger(__name__)

# Never tries another end for a comment: each one that is tried would double the work.
_DOCTYPE: Final = re.compile(r"(?>\s+|<!--.*?-->)*+<!doctype html\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class ViewPage:
    """A declared View. Give it to `views.tool(opens=...)`.

    Attributes:
        uri: where hosts read the page.
        meta: the `_meta` of the resource, in the list and with the page alike.
    """

    uri: str
    name: str
    title: str | None
    description: str | None
    meta: dict[str, Any] | None
    html: PageHtml

    def read(self) -> str:
        """Return the page's HTML as it is now.

        Raises:
            RegistrationError: the function given as `html` returned no HTML document.
        """
        return self.html.read()


def view_page(uri: str, html: Source, **options: Unpack[PageOptions]) -> ViewPage:
    """Check a View's declaration and make it.

    Raises:
        RegistrationError: something about it is wrong; the text says what to write instead.
        TypeError: there is no such keyword.
    """
    for key in options:
        if key not in PageOptions.__optional_keys__:
            raise TypeError(f"a View has no keyword {key!r}")
    uri = declare.check_uri(uri)
    ui = declare.view_meta(uri, options)
    return ViewPage(
        uri=uri,
        name=options.get("name") or uri.removeprefix("ui://"),
        title=options.get("title"),
        description=options.get("description"),
        meta={"ui": ui} if ui else None,
        html=PageHtml(uri, html),
    )


class PageHtml:
    """The HTML of one View, as it is served."""

    def __init__(self, uri: str, source: Source) -> None:
        """Take the HTML as text, as the path of a file, or as a function that returns it.

        Raises:
            RegistrationError: there is no such file, or what it holds is not an HTML document.
        """
        self._uri = uri
        self._stamp: tuple[int, int] | None = None
        if isinstance(source, str):
            if "<" not in source:
                raise RegistrationError(
                    f"{uri}: html is the page itself, and {source!r} is no HTML. "
                    f"To read a file write html=Path({source!r})."
                )
            self._text = _finished(uri, source)
            self._source: Path | Callable[[], str] | None = None
        elif isinstance(source, Path):
            self._source = path = source.expanduser().absolute()
            if not path.is_file():
                raise RegistrationError(
                    f"{uri}: there is no file {path}. A relative path starts at the working "
                    f"directory; write html=Path(__file__).with_name({path.name!r}) for a file "
                    "beside your code."
                )
            self._load(path)
        elif callable(source):
            if inspect.iscoroutinefunction(source):
                raise RegistrationError(
                    f"{uri}: html is an async function. Write a plain one that returns the page."
                )
            self._source = source
            self._text = ""
        else:
            raise RegistrationError(
                f"{uri}: html is text, a Path or a function that returns text, "
                f"not {type(source).__name__}."
            )

    def read(self) -> str:
        """Return the page as it is now.

        A file that became unreadable or stopped being a page since it was last read is
        reported in the log, and the last good page is served.

        Raises:
            RegistrationError: the function returned something that is not an HTML document.
        """
        source = self._source
        if isinstance(source, Path):
            try:
                if _stamp(source) != self._stamp:
                    self._load(source)
            except (OSError, RegistrationError) as error:
                _log.warning("%s: serving the last good page: %s", self._uri, error)
        elif source is not None:
            made = cast("object", source())
            if not isinstance(made, str):
                raise RegistrationError(
                    f"{self._uri}: the html function returned {type(made).__name__}, not str."
                )
            return _finished(self._uri, made)
        return self._text

    def _load(self, path: Path) -> None:
        stamp = _stamp(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise RegistrationError(
                f"{self._uri}: {path} is not UTF-8. Save it as UTF-8."
            ) from None
        self._text = _finished(self._uri, text)
        self._stamp = stamp


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _finished(uri: str, text: str) -> str:
    if not _DOCTYPE.match(text):
        raise RegistrationError(
            f"{uri}: the page is not an HTML document. Start it with <!doctype html>."
        )
    return inline_transom(text, uri)
