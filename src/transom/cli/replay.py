"""`transom replay`: what a server or a View does otherwise than when it was recorded."""

from __future__ import annotations

import sys

from transom.cli import parse_target, run_async
from transom.cli.testing_options import ReplayOptions
from transom.connections.targets import way_to
from transom.json_values import clean, visible_json
from transom.testing.replay import Difference, Replay
from transom.testing.replay_view import open_page
from transom.web.local.headless import HeadlessRenderer


def run(options: ReplayOptions) -> int:
    """Do what the command line says; the exit code."""
    replay = Replay(options.record, options.leg, name=options.name, ignore=options.ignore)
    found = run_async(_replay(replay, options))
    for difference in found:
        text = visible_json(difference) if options.json else str(difference)
        sys.stdout.write(f"{text}\n")
    if not options.json:
        count = len(replay.messages)
        said = f"{len(found)} difference{'s' * (len(found) > 1)}" if found else "Nothing differs"
        sys.stdout.write(f"{said} in {count} messages of {options.leg} {clean(replay.name, 200)}\n")
    return 1 if found else 0


async def _replay(replay: Replay, options: ReplayOptions) -> list[Difference]:
    target = parse_target(options.target)
    if not options.view:
        return await replay.run(await way_to(target)(), timeout=options.timeout)
    async with HeadlessRenderer() as renderer, open_page(replay, target, renderer) as channel:
        return await replay.run(channel, timeout=options.timeout)
