"""Where the Views of a web application are served, and which pages may show them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from transom.errors import Refused, UsageError
from transom.host.views.ui_resource import UIResource
from transom.web.csp import CspMode, read_source
from transom.web.view_storage import origin_label

_TEMPLATE = re.compile(r"(https?)://\{view\}\.([a-z0-9-]+(?:\.[a-z0-9-]+)*)(:[0-9]{1,5})?")
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:]+\]|[a-z0-9.-]+)(:[0-9]{1,5})?")
_PORT = re.compile(r":[0-9]*$")
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_MIN_SECRET = 32
_SETTINGS = "WebViews(sandbox=Sandbox(url, origins=..., secret=...))"
_UNCONFIGURED = f"Views are set up for development on this machine only: set {_SETTINGS}"


class Sandbox:
    """Where Views are served, and which pages may show them: for `WebViews(sandbox=...)`.

        Sandbox("https://{view}.views.example.com",
                origins=["https://chat.example.com"], secret=settings.VIEWS_SECRET)

    Args:
        url: the origins of Views: each has a name of its own in place of `{view}`, below a domain
            that is used for nothing else, with a wildcard in DNS and in its certificate. None:
            `*.localhost` on the same port, for development on this machine.
        origins: the origins of the pages that may show Views. Needed with a `url`.
        secret: at least 32 secret characters that stay the same, such as from
            `secrets.token_hex()`. The origins of Views are derived from it: a user's View finds
            what it stored before, and nobody can guess its address. Needed with a `url`, and with a
            bus, whose keys are derived from it, too; without one, Views find nothing that they
            stored before.
        csp: what a View's page may run: `compat` or `strict`.

    Raises:
        UsageError: these cannot be used; the text says what to set.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        origins: Sequence[str] = (),
        secret: str | None = None,
        csp: CspMode = "compat",
    ) -> None:
        self.csp: CspMode = csp
        self.origins = frozenset(origins)
        self._template, self._domain = _read_url(url, origins)
        if url is not None if secret is None else len(secret) < _MIN_SECRET:
            raise UsageError(
                "Sandbox(secret=...) has to be set: at least 32 characters that stay the same and "
                "that nobody else knows, such as secrets.token_hex() makes"
            )
        self.secret = secret

    def has_host(self, host: str) -> bool:
        """Whether this `Host` is in the domain of Views, however it is spelled.

        The application is never served there, whether or not there is such a View.
        """
        name = _PORT.sub("", host).lower().rstrip(".")
        above = name == self._domain and name != "localhost"  # which development uses for both
        return above or name.endswith(f".{self._domain}")

    def template_for(self, origin: str, host: str) -> str:
        """The origins of Views, with a `*`, for a page of this origin that connects to `host`.

        Raises:
            Refused: pages of that origin may not show Views.
        """
        if self._template:
            if origin not in self.origins:
                raise Refused("This origin is not allowed: Sandbox(origins=...) does not name it")
            return self._template
        name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        if (name or port) not in _LOOPBACK or origin.partition("://")[2] != host:
            raise Refused(_UNCONFIGURED)
        return f"http://*.localhost{colon}{port}" if colon else "http://*.localhost"

    def label(self, user: str, resource: UIResource) -> str | None:
        """The label of the persistent origin of a user's View; None without a secret."""
        if self.secret is None:
            return None
        return origin_label(
            self.secret.encode(),
            user=user,
            server=resource.server,
            identity=resource.identity,
            uri=resource.uri,
        )


def _read_url(url: str | None, origins: Sequence[str]) -> tuple[str, str]:
    """The URL in the Stage's form, and the domain of Views."""
    if url is None:
        if origins:
            raise UsageError(
                "Sandbox(origins=...) needs a URL, too, such as "
                "Sandbox('https://{view}.views.example.com', ...): a domain for Views alone"
            )
        return "", "localhost"
    found = _TEMPLATE.fullmatch(url)
    if found is None or (found[1] == "http" and found[2] != "localhost"):
        raise UsageError(
            f"Sandbox({url!r}) cannot be used: it is https, and has {{view}} in place "
            "of the first part of the name, such as 'https://{view}.views.example.com'"
        )
    if not origins:
        raise UsageError(
            "Sandbox(...) needs the origins of your pages, too, such as "
            "origins=['https://chat.example.com']"
        )
    for origin in origins:
        parts = _ORIGIN.fullmatch(origin) if read_source(origin) else None
        if parts is None or (origin.startswith("http:") and parts[1] not in _LOOPBACK):
            raise UsageError(
                f"Sandbox(origins=...) has {origin!r}: an origin is https:// and a name, and a "
                "port if there is one, without a path, such as 'https://chat.example.com'"
            )
        if parts[1] == found[2] or parts[1].endswith(f".{found[2]}"):
            raise UsageError(
                f"{origin} is below the domain of the Views, {found[2]}: give them one of their own"
            )
    return url.replace("{view}", "*"), found[2]
