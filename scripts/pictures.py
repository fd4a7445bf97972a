"""Takes the pictures of the examples in docs/images: each View after a few calls of its tools.

    .venv/bin/python scripts/pictures.py [NAME …] [--into FOLDER] [--dark] [--width PIXELS]

With names, only those.
"""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any, NamedTuple

from transom import Host, Policy
from transom.web import HeadlessRenderer

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"


class Scene(NamedTuple):
    """What is called before the picture is taken."""

    opens: str
    arguments: dict[str, Any]
    calls: list[tuple[str, dict[str, Any]]]


SCENES = {
    "budget": Scene(
        "show_budget",
        {"stage": "series-a"},
        [("set-allocation", {"category": "marketing", "percent": 22})],
    ),
    "editor": Scene(
        "open_document",
        {"name": "Welcome"},
        [
            ("select-text", {"text": "lazy dog"}),
            ("insert-text", {"text": "sleeping cat"}),
            ("select-text", {"text": "sleeping cat"}),
        ],
    ),
    "music": Scene(
        "show_player",
        {},
        [
            ("add_to_library", {"id": "canon-in-d"}),
            ("play_track", {"id": "fur-elise"}),
            ("add_to_queue", {"id": "canon-in-d"}),
            ("add_to_queue", {"id": "ode-to-joy"}),
        ],
    ),
    "orders": Scene("show_orders", {}, [("select_orders", {"ids": ["A-1042", "A-1044"]})]),
    "tictactoe": Scene(
        "show_board",
        {"opponent": "house", "first": "O"},
        [("play", {"square": square}) for square in (1, 9, 7, 4)],
    ),
}


async def take(name: str, scene: Scene, *, width: int, dark: bool) -> bytes:
    """Show an example, make the calls, and look."""
    renderer = HeadlessRenderer(size=(width, 900), dark=dark)
    async with Host(renderer=renderer, policy=Policy.trusting(), open_timeout=60) as host:
        await host.add_server(name, [sys.executable, str(ROOT / "examples" / f"{name}.py")])
        await host.call_tool(scene.opens, scene.arguments)
        (view,) = host.views.values()
        for tool, arguments in scene.calls:
            result = await view.call_tool(tool, arguments)
            if result.is_error:
                raise SystemExit(f"{name}: {tool} said: {result.text}")
        return await view.screenshot()


async def main() -> None:
    """Take them all."""
    parser = argparse.ArgumentParser(description="Take the pictures in docs/images.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SCENES))
    parser.add_argument("--into", type=Path, default=IMAGES, help="another folder")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=840, help="of the page around the View")
    given = parser.parse_args()
    if unknown := set(given.names) - set(SCENES):
        parser.error(f"no example has the name {', '.join(sorted(unknown))}")
    for name in given.names or SCENES:
        picture = await take(name, SCENES[name], width=given.width, dark=given.dark)
        (given.into / f"{name}.png").write_bytes(picture)
        print(f"{name}.png: {len(picture) // 1024} KB")


if __name__ == "__main__":
    asyncio.run(main())
