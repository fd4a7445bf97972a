"""A program that uses a View by its page. It is run by tests/gateway/test_driving.py."""

from transom import Host, Policy
from transom.host import View
from transom.web import BrowserRenderer


# region act
async def vote(view: View, place: str) -> str:
    """Choose a place, and press the button."""
    snapshot = await view.snapshot()
    ref = {element.name: ref for ref, element in snapshot.refs.items()}
    [choice] = [ref[name] for name in ref if name.startswith(place)]
    await view.act(choice, "check")
    done = await view.act(ref["Vote"], "click")
    return done.changes


# endregion


# region policy
def make_host() -> Host:
    renderer = BrowserRenderer()
    # Looks are asked about once for each View; acts each time, or once for each kind of action.
    policy = Policy(approve=renderer.approve, look="ask")
    return Host(renderer=renderer, policy=policy, drive="always")


# endregion
