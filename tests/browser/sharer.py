"""A process with a Host whose page is shared: does what it is told on stdin, a word a line.

It answers each line on stdout with one of JSON: what was asked for, or what went wrong. Between
them it says `{"open": ADDRESS}` when it wants a page, and `{"closed": VIEW}` when a View is gone.
"""

import asyncio
import json
import sys
from typing import Any

from tests.browser.hosting import hosted, show, text_of
from transom import Host
from transom.web.local.renderers import BrowserRenderer

VIEW = """
let calls = 0;
tools.count = () => { calls += 1; return calls; };
tools.theme = () => host.hostContext.theme;
"""


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def open_page(url: str) -> None:
    say(open=url)


async def do(host: Host, word: str) -> Any:
    if word == "show":
        return (await show(host)).id
    view_id, _, tool = word.partition(" ")
    return await text_of(host.views[view_id].call_tool(tool))


async def main() -> None:
    renderer = BrowserRenderer(share=True, open_page=open_page)
    async with hosted(renderer, VIEW) as host:
        host.on_view_closed(lambda view: say(closed=view.id))
        say(ready=renderer._stage.origin)
        loop = asyncio.get_running_loop()
        while word := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            try:
                say(done=await do(host, word))
            except Exception as error:  # noqa: BLE001 - it is for the test to see
                say(failed=repr(error))


if __name__ == "__main__":
    asyncio.run(main())
