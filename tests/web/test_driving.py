"""Requests to the page of a View: each ends once, whatever the page does."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.web.page import StagePage
from transom.errors import (
    InvalidResult,
    Refused,
    RequestTimeout,
    TooManyRequests,
    TransomError,
    ViewClosed,
)
from transom.host.views.ui_resource import UIResource
from transom.web.driving import MAX_ANSWER, Driving
from transom.web.local.stage_server import StageServer
from transom.web.stage import Stage

LOOK = {"op": "look"}


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    made = Stage()
    async with StageServer(made):
        yield made


def mount(stage: Stage, view_id: str = "orders-1") -> None:
    stage.mount(UIResource(view_id=view_id, server="orders", uri="ui://orders/list", html="<p>"))


async def asked(page: StagePage, number: int) -> dict[str, Any]:
    """Wait until the page was asked that often."""
    return await page.until(
        lambda p: next((m for m in p.told if m["do"] == "drive" and m["id"] == number), None)
    )


async def test_the_first_answer_about_the_same_view_counts(stage: Stage) -> None:
    async with StagePage(stage) as page:
        mount(stage)
        mount(stage, "orders-2")
        driving = asyncio.create_task(stage.drive("orders-1", LOOK))
        assert await asked(page, 1) == {
            "do": "drive",
            "view": "orders-1",
            "id": 1,
            "request": {"op": "look"},
        }
        await page.tell(do="driven", view="orders-2", id=1, answer='{"of":"another View"}')
        await page.tell(do="driven", view="orders-1", id=2, answer='{"of":"another time"}')
        await page.tell(do="driven", view="orders-1", id=1, answer='{"nodes":[]}')
        await page.tell(do="driven", view="orders-1", id=1, answer='{"nodes":["again"]}')
        assert await driving == {"nodes": []}


@pytest.mark.parametrize(
    "answer",
    ["", "[]", "null", "{", '{"a":' * 5000, json.dumps({"a": "x" * MAX_ANSWER}), '{"a":"\\ud800"}'],
    ids=["nothing", "a list", "null", "half", "deep", "long", "no text"],
)
async def test_an_answer_that_cannot_be_read_is_the_views_own_fault(
    stage: Stage, answer: str
) -> None:
    async with StagePage(stage) as page:
        mount(stage)
        driving = asyncio.create_task(stage.drive("orders-1", LOOK))
        await asked(page, 1)
        await page.tell(do="driven", view="orders-1", id=1, answer=answer)
        with pytest.raises(InvalidResult):
            await driving


async def test_a_request_ends_with_its_view_or_its_page(stage: Stage) -> None:
    async with StagePage(stage) as page:
        mount(stage)
        mount(stage, "orders-2")
        first = asyncio.create_task(stage.drive("orders-1", LOOK))
        second = asyncio.create_task(stage.drive("orders-2", LOOK))
        await asked(page, 2)
        stage.remove("orders-1", "it was closed")
        with pytest.raises(ViewClosed, match="The View is gone"):
            await first
        stage.page_lost("closed")
        with pytest.raises(ViewClosed, match="page went away"):
            await second
    with pytest.raises(ViewClosed):
        await stage.drive("orders-1", LOOK)


async def test_a_page_that_never_answers_is_not_waited_for_and_not_asked_on_and_on() -> None:
    sent: list[dict[str, Any]] = []
    silent = Driving(sent.append, timeout=0)
    with pytest.raises(RequestTimeout, match="orders-1 did not answer"):
        await silent.request("orders-1~1", "orders-1", LOOK)
    patient = Driving(sent.append)
    waiting = [
        asyncio.create_task(patient.request("orders-1", "orders-1", LOOK)) for _ in range(16)
    ]
    await asyncio.sleep(0)
    with pytest.raises(TooManyRequests):
        await patient.request("orders-1", "orders-1", LOOK)
    patient.give_up("enough")
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(each, TransomError) for each in ended)


async def test_nothing_is_done_in_a_view_that_the_user_has_taken_control_of(stage: Stage) -> None:
    act = {"op": "act", "ref": "b1", "action": "click"}
    async with StagePage(stage) as page:
        mount(stage)
        early = asyncio.create_task(stage.drive("orders-1", act))
        await asked(page, 1)
        await page.tell(do="control", view="orders-1", value=True)
        await page.tell(do="driven", view="orders-1", id=1, answer='{"problem":"unfit"}')
        with pytest.raises(Refused, match="taken control"):
            await early
        with pytest.raises(Refused, match="taken control of View orders-1"):
            await stage.drive("orders-1", act)
        looking = asyncio.create_task(stage.drive("orders-1", LOOK))
        await asked(page, 2)
        await page.tell(do="driven", view="orders-1", id=2, answer="{}")
        assert await looking == {}
        await page.tell(do="control", view="orders-1", value=False)
        await page.tell(do="driven", view="orders-1", id=0, answer="")
        mounted = stage.mounted("orders-1")
        assert mounted is not None
        await page.until(lambda _: not mounted.taken or page.acknowledged >= page.sent)
        again = asyncio.create_task(stage.drive("orders-1", act))
        await asked(page, 3)
        await page.tell(do="driven", view="orders-1", id=3, answer='{"done":true}')
        assert await again == {"done": True}
