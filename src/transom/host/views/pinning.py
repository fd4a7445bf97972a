"""Views that ask to stay open.

1. A View may ask five times; after that, the user is not asked again.
2. At most half of the Views of a host may be pinned because they asked for it.
3. The host's handler `on_request_pin` decides; without one, only a policy that trusts every View
   allows it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from transom.errors import Refused
from transom.events import Slot
from transom.host.views.view import View
from transom.json_values import clean

_MAX_REQUESTS = 5
_MAX_REASON = 200


async def answer_pin_request(
    view: View,
    reason: str | None,
    others: Iterable[View],
    *,
    handler: Slot | None,
    trusting: bool,
    max_live_views: int,
) -> bool:
    """Whether a View that asks to stay open may; if so, it is pinned."""
    if view.pinned:
        return True
    view.counts["pins"] += 1
    pinned = sum(other.pinned_by == "view" for other in others)
    if view.counts["pins"] > _MAX_REQUESTS or pinned >= max_live_views // 2:
        if view.counts["pins"] <= _MAX_REQUESTS + 1:  # a View must not fill the audit
            view.record("view", "not pinned", by=view.id, detail="too many requests or pins")
        return False
    text = clean(reason or "", _MAX_REASON)
    allowed = await _is_allowed(handler, view, text) if handler else trusting
    if allowed and view.takes_calls and not view.pinned:
        view.set_pinned_by("view")
    view.record("view", "pinned" if view.pinned else "not pinned", by=view.id, detail=text)
    return view.pinned


async def _is_allowed(handler: Slot, view: View, reason: str) -> bool:
    try:
        answer = handler.ask(view, reason)
        answer = await answer if inspect.isawaitable(answer) else answer
    except Refused:
        return False
    return answer is None or answer is True
