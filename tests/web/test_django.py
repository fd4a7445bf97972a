"""The sample for Django: its own sessions say who a page is, and a View is shown there."""

import asyncio
import sys

import httpx2
import pytest

from tests.docs.promises import ROOT
from tests.web.site import UserPage
from transom.host.views.view import View
from transom.serving import listen, serve


@pytest.mark.load  # Django is imported: a second
async def test_a_page_of_somebody_who_signed_in_with_django_shows_a_view(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "samples"))
    import web_django

    sock = listen("127.0.0.1", 0)
    origin = f"http://localhost:{sock.getsockname()[1]}"
    async with serve(web_django.application, [sock], ws="websockets-sansio"):
        async with httpx2.AsyncClient() as client:
            await client.get(f"{origin}/sign-in")
            session = client.cookies["sessionid"]
        nobody = UserPage(origin, "")
        await nobody.connect()
        assert (await nobody.closed_with())[0] == 4401
        page = UserPage(origin, "")
        page.headers = {"Cookie": f"sessionid={session}"}
        async with page:
            host = await web_django.views.host("ada")
            opened: asyncio.Queue[View] = asyncio.Queue()
            host.on_view_opened(opened.put_nowait)
            result = await host.call_tool("show_orders")
            assert (result.meta or {})["transom/view"]["id"] == "orders-1"
            await opened.get()  # on a slow machine the call may have returned before
            assert (await host.call_tool("orders-1__key")).text == "orders-1"
        await web_django.views.aclose()
    sys.modules.pop("web_django")
