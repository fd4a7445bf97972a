"""Reading a list page by page, from a side that may give no end to it."""

from __future__ import annotations

from typing import Any


class Pagination:
    """How far a list has been read. The list is cut where it repeats a cursor or has no end.

    pages = Pagination(limit)
    while True:
        page = await request(pages.cursor)
        if not pages.follow(page.next_cursor):
            break
    """

    def __init__(self, max_pages: int) -> None:
        self.cursor: Any = None
        """The cursor of the page to request; None for the first one."""
        self.failure: str | None = None
        """Why the list was cut, as the end of a sentence about it."""
        self._max_pages = max_pages
        self._seen: set[object] = set()

    def follow(self, cursor: object) -> bool:
        """Go on to the page that a page names as the next one; False: read no more."""
        if cursor is None:
            return False
        if cursor in self._seen:
            self.failure = "repeats a cursor"
        elif len(self._seen) + 1 >= self._max_pages:
            self.failure = f"has more than {self._max_pages} pages"
        else:
            self._seen.add(cursor)
            self.cursor = cursor
            return True
        return False
