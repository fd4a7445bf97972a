"""The `tools` capability: declared by itself, or by you."""

import asyncio

from sample_host import hosting

from transom import App
from transom.errors import RegistrationError

# region view
app = App("my-app", "1.0.0", capabilities={"tools": {"listChanged": True}})
# endregion


async def main() -> None:
    async with hosting(app) as bridge:
        assert await bridge.list_tools() == []  # declared, and none there yet
        app.register_tool("late", lambda: "registered while connected")
        assert (await bridge.call_tool("late")).text == "registered while connected"

    implied = App("my-app", "1.0.0")
    implied.register_tool("early", lambda: "x")  # declares tools: {"listChanged": True}
    assert implied.capabilities == {"tools": {"listChanged": True}}

    # region too-late
    silent = App("my-app", "1.0.0")  # no tools when it connects: none are declared
    async with hosting(silent):
        try:
            silent.register_tool("late", lambda: "too late")
        except RegistrationError as error:
            why = str(error)  # The View is connected and did not declare the tools capability ...
    # endregion
    assert "did not declare the tools capability" in why
    assert silent.tools == ()


if __name__ == "__main__":
    asyncio.run(main())
