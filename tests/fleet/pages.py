"""Pages of the users of a fleet, in Python: what a browser would do, without one."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

from websockets.exceptions import WebSocketException

from tests.fleet.worker import LEASE
from tests.fleet.workers import Worker
from tests.web.page import PageEnd
from tests.web.site import UserPage
from transom import App


class WorkingPage(UserPage):
    """A page of a user, whose Views have a tool that lasts, and works through its server."""

    def __init__(self, user: str, worker: Worker, origin: str) -> None:
        super().__init__(origin, "")
        self.headers = {"Cookie": f"user={user}"}
        self.address = {"host": "127.0.0.1", "port": worker.port}

    def _run(self, key: str, end: PageEnd) -> None:
        app = self.apps[key] = App("tests", "1.0")

        async def work(id: str, ms: int = 0) -> str:
            await app.call_server_tool("note", {"text": f"begin {id}"})
            await asyncio.sleep(ms / 1000)
            return (await app.call_server_tool("note", {"text": f"end {id}"})).text

        app.register_tool("work", work, annotations={"readOnlyHint": True})
        task = asyncio.create_task(app.connect(end))
        self._running.add(task)
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


async def _show(user: str, workers: Sequence[Worker]) -> None:
    while True:
        for worker in workers:
            page = WorkingPage(user, worker, workers[0].url)
            with suppress(OSError, TimeoutError, WebSocketException):
                try:
                    async with asyncio.timeout(LEASE):
                        await page.__aenter__()
                except BaseException:
                    if page._socket is not None:
                        page._socket.transport.abort()
                    raise
                try:
                    await page.over()
                finally:
                    await page.__aexit__(None, None, None)
        await asyncio.sleep(0.1)


@asynccontextmanager
async def pages(users: Sequence[str], workers: Sequence[Worker]) -> AsyncGenerator[None]:
    """Each user has a page meanwhile. One that has lost its worker tries all of them."""
    async with asyncio.TaskGroup() as group:
        shown = [group.create_task(_show(user, workers)) for user in users]
        yield
        for page in shown:
            page.cancel()
