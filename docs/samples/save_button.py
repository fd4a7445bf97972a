"""A tool that is there only while it makes sense."""

import asyncio

from sample_host import hosting, names

# region view
from transom import App

app = App("doc-editor", "1.0.0")
saved: list[str] = []


def save_document() -> str:
    saved.append("document")
    save.disable(reason="nothing to save")
    return "Saved"


save = app.register_tool("save", save_document, description="Save changes", enabled=False)
save.disable(reason="nothing to save")


def on_dirty() -> None:
    save.enable()  # the host is notified automatically


# endregion


async def main() -> None:
    told = asyncio.Event()
    async with hosting(app) as bridge:
        bridge.on_tools_changed = told.set
        assert await names(bridge) == []
        assert [tool.name for tool in app.tools] == ["save"]  # hidden, and still here
        refused = await bridge.call_tool("save")
        assert refused.is_error
        assert refused.text == "Tool save is disabled: nothing to save"

        on_dirty()
        await told.wait()
        assert await names(bridge) == ["save"]
        assert (await bridge.call_tool("save")).text == "Saved"
        assert await names(bridge) == []
        assert save.reason == "nothing to save"

        # region announce
        await app.send_tool_list_changed()
        # endregion


if __name__ == "__main__":
    asyncio.run(main())
