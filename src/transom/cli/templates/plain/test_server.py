"""The View in a browser without a window, as its user and its model have it."""

from transom.testing import ViewsFixture


async def test_the_model_adds_something_and_the_user_sees_it(views: ViewsFixture):
    view = await views.open("server.py", "show_list")

    await view.call("add_item", text="Milk")

    await view.page.get_by_text("Milk").wait_for()


async def test_the_user_adds_something_and_the_model_reads_it(views: ViewsFixture):
    view = await views.open("server.py", "show_list")

    await view.page.get_by_label("Something for the list").fill("Cheese")
    await view.page.get_by_role("button", name="Add").click()
    await view.page.get_by_text("Cheese").wait_for()

    assert "Cheese" in (await view.call("get_list")).text
