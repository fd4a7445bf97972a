"""A View as a server declares it: a page at a `ui://` URI, and what it asks of its host."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from transom.server import declare
from transom.server.csp import Csp
from transom.server.html import Page, Source

__all__ = ["ViewPage", "view_page"]


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
    page: Page

    def read(self) -> str:
        """Return the page's HTML as it is now.

        Raises:
            RegistrationError: the function given as `html` returned no HTML document.
        """
        return self.page.read()


def view_page(
    uri: str,
    *,
    html: Source,
    csp: Csp | None = None,
    permissions: Collection[str] | None = None,
    domain: str | None = None,
    prefers_border: bool | None = None,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
) -> ViewPage:
    """Check a View's declaration and put it together.

    Raises:
        RegistrationError: something about it is wrong; the text says what to write instead.
    """
    uri = declare.check_uri(uri)
    ui = declare.view_meta(
        uri, csp=csp, permissions=permissions, domain=domain, prefers_border=prefers_border
    )
    return ViewPage(
        uri=uri,
        name=name or uri.removeprefix("ui://"),
        title=title,
        description=description,
        meta={"ui": ui} if ui else None,
        page=Page(uri, html),
    )
