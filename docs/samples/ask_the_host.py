"""What a View may ask of its host."""

import asyncio
from typing import Any

from sample_host import hosting

# region view
from transom import App
from transom.types import EmbeddedResource, ResourceContents

app = App("orders", "1.0.0")


async def show_invoice(order: str) -> None:
    result = await app.call_server_tool("get_invoice", {"order": order})
    await app.update_model_context(f"The user looks at invoice {result.text}")
    invoice = ResourceContents(uri="file:///invoice.txt", mime_type="text/plain", text=result.text)
    await app.download_file([EmbeddedResource(invoice)])
    verdict = await app.open_link("https://example.com/pay")
    if verdict.is_error:  # the host, or its user, refused
        await app.send_message("Please pay the invoice by yourself")
    await app.send_log("info", {"shown": order})
    await app.send_size_changed(height=480)


# endregion


async def main() -> None:
    asked: list[Any] = []
    async with hosting(app, context={"availableDisplayModes": ["inline", "fullscreen"]}) as bridge:

        @bridge.on_call_tool
        def _(name: str, arguments: dict[str, Any]) -> Any:
            asked.append((name, arguments))
            return {"content": [{"type": "text", "text": "INV-7"}]}

        bridge.on_update_model_context = lambda update: asked.append(update.content[0].text)
        bridge.on_download_file = lambda files: asked.append(len(files))
        bridge.on_open_link = lambda url: False
        bridge.on_message = lambda blocks: asked.append(blocks[0].text)
        bridge.on_request_display_mode = lambda mode: mode
        await show_invoice("7")
        assert asked == [
            ("get_invoice", {"order": "7"}),
            "The user looks at invoice INV-7",
            1,
            "Please pay the invoice by yourself",
        ]
        # region mode
        mode = await app.request_display_mode("fullscreen")  # the mode the View is in now
        # endregion
        assert mode == "fullscreen"


if __name__ == "__main__":
    asyncio.run(main())
