"""Tests of Views: the pytest fixture `views`, and what goes with it.

    async def test_the_model_sees_what_the_user_selects(views):
        view = await views.open("orders.py", "show_orders", status="open")
        await view.page.get_by_text("Oak desk").click()
        assert (await view.call("get_selection")).text == "A-1041"

pytest loads `transom.testing.plugin` by itself; everything else is loaded when it is first used.
"""

from transom.lazy import load_on_use

TYPE_CHECKING = False  # type checkers take it for True; importing it would cost more than all else
if TYPE_CHECKING:
    from transom.testing.contract import assert_contract, contract_tests
    from transom.testing.fixture import Refusal, ViewsFixture
    from transom.testing.model import Call, make_model
    from transom.testing.opened_view import OpenedView, Sent
    from transom.testing.replay import Difference, Replay

__all__ = [
    "Call",
    "Difference",
    "OpenedView",
    "Refusal",
    "Replay",
    "Sent",
    "ViewsFixture",
    "assert_contract",
    "contract_tests",
    "make_model",
]

if not TYPE_CHECKING:  # or every name would be one to them
    __getattr__, __dir__ = load_on_use(
        __name__,
        {
            ".contract": "assert_contract contract_tests",
            ".fixture": "Refusal ViewsFixture",
            ".model": "Call make_model",
            ".opened_view": "OpenedView Sent",
            ".replay": "Difference Replay",
        },
    )
