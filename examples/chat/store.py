"""Who is signed in, and what was said: in memory, or in Redis for a chat of several workers.

Yours has passwords and a database.
"""

import json
import secrets
from typing import Any

Message = dict[str, Any]

DAY = 24 * 3600  # seconds


class _Memory:
    """As much of Redis as the chat needs, for one process."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    async def set(self, key: str, value: str, **_: int) -> None:
        self._values[key] = value

    async def get(self, key: str) -> str | None:
        return self._values.get(key)

    async def delete(self, key: str) -> None:
        self._values.pop(key, None)

    async def rpush(self, key: str, value: str) -> None:
        self._values.setdefault(key, []).append(value)

    async def lrange(self, key: str, _first: int, _last: int) -> list[str]:
        return self._values.get(key, [])

    async def expire(self, *_: object) -> None:
        """The process ends first."""

    async def aclose(self) -> None: ...


class Store:
    """What the chat keeps; `url` is that of a Redis."""

    def __init__(self, url: str | None) -> None:
        self._values: Any = _Memory()
        if url is not None:
            from redis.asyncio import Redis  # noqa: PLC0415 - installed with transom[bus]

            self._values = Redis.from_url(url, decode_responses=True)

    async def sign_in(self, user: str) -> str:
        """The cookie of a new session."""
        cookie = secrets.token_urlsafe(24)
        await self._values.set(f"chat:session:{cookie}", user, ex=7 * DAY)
        return cookie

    async def user(self, cookie: str) -> str | None:
        """Whose session that is."""
        return await self._values.get(f"chat:session:{cookie}")

    async def sign_out(self, cookie: str) -> None:
        """End a session."""
        await self._values.delete(f"chat:session:{cookie}")

    async def add(self, user: str, message: Message) -> None:
        """Keep a message of a user's conversation."""
        await self._values.rpush(f"chat:messages:{user}", json.dumps(message))
        await self._values.expire(f"chat:messages:{user}", 30 * DAY)

    async def history(self, user: str) -> str:
        """What a user's model has read and said so far, as JSON."""
        return await self._values.get(f"chat:history:{user}") or "[]"

    async def keep_history(self, user: str, history: str) -> None:
        """Keep it for the next message, which may come to another worker."""
        await self._values.set(f"chat:history:{user}", history, ex=30 * DAY)

    async def messages(self, user: str) -> list[Message]:
        """A user's conversation."""
        found = await self._values.lrange(f"chat:messages:{user}", 0, -1)
        return [json.loads(each) for each in found]

    async def aclose(self) -> None:
        """Close the connections to Redis."""
        await self._values.aclose()
