"""Views of earlier runs of a program, which its user can reopen, and what the next run needs."""

from __future__ import annotations

import asyncio
import secrets
import time
from datetime import UTC, datetime
from typing import Any

import msgspec

from transom.background import Background, ignore
from transom.host.views.ui_resource import UIResource
from transom.host.views.view import View
from transom.recent import Recent
from transom.web.cards import GoneView
from transom.web.view_storage import MAX_RECENT, RecentView, ViewStorage

_WRITTEN_WITHIN = 2.0


class EarlierViews:
    """The Views of earlier runs that one Host can reopen, and the records of its own."""

    def __init__(self, storage: ViewStorage) -> None:
        self._storage = storage
        self.offered: dict[str, RecentView] = {}
        """Views of earlier runs, by the keys of their cards."""
        self._servers: set[str] = set()  # whose Views were offered
        # Ids under which Views of this run are stored; the next run would not offer more.
        self._ids: Recent[str, str] = Recent(MAX_RECENT, self._delete)
        self._writing = Background(ignore)

    async def offer(self, resource: UIResource, mark: str) -> list[GoneView]:
        """Cards for the earlier Views of a server that shows its first View."""
        if not resource.identity or resource.server in self._servers:
            return []
        self._servers.add(resource.server)
        cards: list[GoneView] = []
        for view in reversed(await asyncio.to_thread(self._storage.recent, resource)):
            if view.id in self._ids.values():
                continue
            key = f"earlier-{view.id}{mark}"
            self.offered[key] = view
            reason = f"You had it open {_shown_time(view.when)}"
            about = describe_call(view.tool, view.arguments)
            given = key, view.tool, view.server, "", reason
            cards.append(GoneView(*given, failed=False, about=about, title=view.tool))
        return cards

    def reopened(self, key: str, view: RecentView, view_id: str) -> None:
        """An earlier View has been reopened under this id."""
        self._ids[view_id] = view.id
        self.offered.pop(key, None)

    def remember(self, view: View, resource: UIResource) -> None:
        """Store what is needed to reopen a View in the next run, once it has a result."""
        result = view.origin.result
        if result is None:
            return
        self._ids[view.id] = recent_id = self._ids.get(view.id) or secrets.token_hex(8)
        given = recent_id, resource, view.origin.tool.name, view.origin.arguments, result
        self._writing.start(asyncio.to_thread(self._storage.remember, *given))

    def forget(self, key: str, view_id: str) -> None:
        """The user does not want to reopen a View: an earlier one, or one of this run."""
        recent = self.offered.pop(key, None)
        recent_id = self._ids.pop(view_id, None) if recent is None else recent.id
        if recent_id is not None:
            self._delete(recent_id)

    def _delete(self, recent_id: str) -> None:
        self._writing.start(asyncio.to_thread(self._storage.forget, recent_id))

    async def aclose(self) -> None:
        """Wait until everything is stored."""
        await self._writing.aclose(grace=_WRITTEN_WITHIN)


def _shown_time(when: float) -> str:
    then, now = (datetime.fromtimestamp(each, UTC).astimezone() for each in (when, time.time()))
    days = (now.date() - then.date()).days
    day = {0: "today", 1: "yesterday"}.get(days, f"on {then.day} {then:%B}")
    year = "" if then.year == now.year else f" {then.year}"
    return f"{day}{year if days > 1 else ''} at {then:%H:%M}"


def describe_call(tool: str, arguments: dict[str, Any]) -> str:
    """The call that a View was opened for, as the user reads it."""
    return f"{tool} {msgspec.json.encode(arguments).decode()}" if arguments else tool
