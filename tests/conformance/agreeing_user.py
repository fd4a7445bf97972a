"""The browser of a user who agrees to every login: `webbrowser` starts it with the page."""

import asyncio
import sys

from tests.conformance.client import agree

if __name__ == "__main__":
    asyncio.run(agree(sys.argv[1]))
