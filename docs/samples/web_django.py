"""Views in the pages of a Django application."""

import asyncio

import httpx2

# region app
import django
from django.conf import settings
from django.contrib.sessions.backends.signed_cookies import SessionStore
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path
from sample_shop import server
from starlette.requests import HTTPConnection

from transom import Host
from transom.web import WebViews


async def user_of(connection: HTTPConnection) -> str | None:
    session = SessionStore(connection.cookies.get(settings.SESSION_COOKIE_NAME))
    return await session.aget("user")  # or "_auth_user_id", which Django's own sign-in sets


async def connect_servers(user: str, host: Host) -> None:
    await host.add_server("orders", server)


async def show_orders(request: HttpRequest) -> HttpResponse:
    user = await request.session.aget("user")
    if user is None:
        return HttpResponse("Sign in first", status=401)
    host = await views.host(user)
    return HttpResponse((await host.answer("show_orders")).text)


async def sign_in(request: HttpRequest) -> HttpResponse:
    await request.session.aset("user", "ada")
    return HttpResponse("Hello, ada")


if not settings.configured:  # yours has a settings.py, a urls.py and a database
    settings.configure(
        SECRET_KEY="fifty characters or more that nobody else knows",  # noqa: S106
        ALLOWED_HOSTS=["localhost"],
        ROOT_URLCONF=(path("orders", show_orders), path("sign-in", sign_in)),
        MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
        SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
    )
    django.setup()

views = WebViews(authenticate=user_of, servers=connect_servers)
application = views.middleware(get_asgi_application())
# endregion


async def main() -> None:
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(application), base_url="http://localhost:8000"
    ) as client:
        assert (await client.get("/transom/elements.js")).status_code == 200
        assert (await client.get("/orders")).status_code == 401
        await client.get("/sign-in")
        cookie = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME]}"
        scope = {"type": "http", "headers": [(b"cookie", cookie.encode())]}
        assert await user_of(HTTPConnection(scope)) == "ada"
    await views.aclose()


if __name__ == "__main__":
    asyncio.run(main())
