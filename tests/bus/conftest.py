from collections.abc import AsyncGenerator

import pytest
from redis.asyncio import Redis

from tests.bus.workers import Opened, quick
from transom.bus import Bus


@pytest.fixture
async def here(redis_url: str) -> AsyncGenerator[Bus]:
    async with quick(redis_url) as bus:
        yield bus
        Opened.let_go()


@pytest.fixture
async def there(redis_url: str) -> AsyncGenerator[Bus]:
    async with quick(redis_url) as bus:
        yield bus
        Opened.let_go()


@pytest.fixture
async def redis(redis_url: str) -> AsyncGenerator[Redis]:
    async with Redis.from_url(redis_url) as client:
        yield client
