"""Strict mode: mistakes that usually only warn are errors."""

import asyncio
import warnings

from sample_host import hosting

# region view
from transom import App
from transom.errors import CapabilityMissing, UsageError

app = App("careful", "1.0.0", strict=True)
# endregion


async def main() -> None:
    async with hosting(app, capabilities={}) as bridge:
        # region mistakes
        try:
            app.on_tool_input = print  # the host may have sent it already
        except UsageError as error:
            late = str(error)
        try:
            await app.open_link("https://example.com")  # the host did not say that it opens links
        except CapabilityMissing as error:
            missing = str(error)
        # endregion
        assert "set it first" in late
        assert "open_links" in missing
        assert bridge.app_info is not None

    relaxed = App("careless", "1.0.0")
    async with hosting(relaxed, capabilities={}):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            relaxed.on_tool_input = print
        assert "set it first" in str(caught[0].message)


if __name__ == "__main__":
    asyncio.run(main())
