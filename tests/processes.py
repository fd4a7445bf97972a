"""Processes that tests start."""

import asyncio


async def ended(process: asyncio.subprocess.Process) -> int:
    """Wait until a process has ended, and let go of its pipes; its exit code.

    What it started may hold them open longer than it, and than the loop of the test.
    """
    code = await process.wait()
    process._transport.close()  # type: ignore[attr-defined]
    return code
