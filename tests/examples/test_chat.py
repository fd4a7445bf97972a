"""The chat on several workers: what one of them keeps, the others know."""

from examples.chat.store import Store


async def test_sessions_and_conversations_are_the_same_on_every_worker(redis_url: str) -> None:
    here, there = Store(redis_url), Store(redis_url)
    cookie = await here.sign_in("Ada")
    assert await there.user(cookie) == "Ada"
    assert await there.user("") is None
    await here.add("Ada", {"role": "user", "text": "hello"})
    await there.add("Ada", {"role": "assistant", "parts": []})
    assert [each["role"] for each in await here.messages("Ada")] == ["user", "assistant"]
    assert await there.messages("Bob") == []
    await there.sign_out(cookie)
    assert await here.user(cookie) is None
    for store in (here, there):
        await store.aclose()
