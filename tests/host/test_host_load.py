import pytest

from benchmarks.host_rows import definitions, listing_app
from benchmarks.load_host import run
from tests.host.shop import URI, shop
from transom import Host, InProcessRenderer, Limits, Policy

pytestmark = pytest.mark.load


async def test_every_call_ends_once_while_views_are_killed_under_it():
    report = await run(views=20, tools=5, callers=30, seconds=1.0, kill=0.25)
    assert report.ok, report.text()
    assert report.started == report.ended > 100
    assert report.killed == 5
    assert set(report.errors) == {"ViewClosed"}
    assert report.results > report.errors["ViewClosed"]


def test_a_call_that_ends_twice_or_never_fails_the_report():
    from benchmarks.load_host import Report

    fine = Report(views=1, callers=1, started=2, results=1)
    fine.errors["ViewClosed"] += 1
    assert fine.ok
    for spoilt in (
        Report(views=1, callers=1, started=2, results=1),
        Report(views=1, callers=1, started=1, results=2),
        Report(views=1, callers=1, started=1, results=1, wrong=1),
        Report(views=1, callers=1, started=1, results=1, unnamed=["x: ValueError"]),
    ):
        assert not spoilt.ok
        assert "FAILED" in spoilt.text()


async def test_ten_thousand_view_tools_are_listed_and_called():
    offered = definitions(500)
    renderer = InProcessRenderer({URI: lambda: listing_app(offered)})
    limits = Limits(max_tools=500, max_live_views=20)
    async with Host(renderer=renderer, policy=Policy(), limits=limits) as host:
        await host.add_server("orders", shop())
        for _ in range(20):
            await host.call_tool("show_orders")
        tools = await host.list_tools()
        assert len(tools) == 3 + 10_000
        assert len({tool.name for tool in tools}) == 3 + 10_000
        result = await host.call_tool("orders-20__add499", {"a": 1, "b": 2})
        assert result.text == "3"
        assert len(await host.tools_for("openai")) == 3 + 10_000


@pytest.mark.parametrize("audit", [":memory:", None])
async def test_the_figures_can_be_taken(audit: str | None):
    from benchmarks import host_rows

    assert await host_rows.host_calls_per_second(0.1, audit=audit) > 0
    assert min(await host_rows.change_among(2, 3, tools=2, rounds=3)) > 0


@pytest.mark.parametrize("views", [1, 20])
async def test_the_texts_about_views_tools_are_hardly_longer_than_their_own(views: int):
    from benchmarks import host_rows

    shown, bare = await host_rows.surface_bytes(views)
    assert 1 < shown / bare <= 1.15


async def test_memory_per_view_is_within_its_budget():
    from benchmarks import host_rows

    memory = await host_rows.memory_per_view(20)
    assert 5_000 < memory["host"] < 64 * 1024
    assert memory["host"] <= memory["all"]
