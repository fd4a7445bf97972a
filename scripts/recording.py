"""Records `transom demo` as docs/images/demo.svg: its lines as they come, then its picture.

    .venv/bin/python scripts/recording.py

An SVG that moves needs no player and no script, and stays small. Pauses are shortened.
"""

import base64
import subprocess
import sys
import time
from html import escape
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "images" / "demo.svg"

ROWS, LINE, TOP, LEFT, BOTTOM, ACROSS = 26, 19, 60, 16, 540, 572  # as in recording.svg
SHORTEST, LONGEST, PICTURE, HOLD = 0.25, 1.5, 1.0, 6.0  # seconds


def recorded() -> tuple[list[tuple[float, str]], bytes]:
    """The demo's lines with the time of each, and its picture."""
    lines: list[tuple[float, str]] = []
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-u", "-m", "transom", "demo"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as demo:
            assert demo.stdout is not None  # noqa: S101 - for the type checker
            lines.extend((time.monotonic(), line.rstrip()) for line in demo.stdout)
        if demo.returncode:
            sys.exit("\n".join(line for _, line in lines))
        picture = (Path(folder) / "transom-demo.png").read_bytes()
    end = next(at for at, (_, line) in enumerate(lines) if line.startswith("All of it"))
    first, when = lines[0][0], 0.5
    times: list[float] = []
    for at, (moment, _) in enumerate(lines[:end]):
        pause = moment - (lines[at - 1][0] if at else first)
        when += min(max(pause, SHORTEST), LONGEST)
        times.append(when)
    return list(zip(times, [line for _, line in lines[:end]], strict=True)), picture


def drawn(lines: list[tuple[float, str]], picture: bytes) -> str:
    """The recording as SVG."""
    total = lines[-1][0] + PICTURE + HOLD
    rules: list[str] = []
    shown: list[str] = []
    steps: list[str] = []
    for row, (when, line) in enumerate(lines):
        percent = f"{100 * when / total:.2f}%"
        rules.append(f"@keyframes l{row} {{ {percent} {{ opacity: 1 }} }}")
        kind = "title" if line and not line.startswith(" ") else ""
        kind = "yes" if "✓" in line else "call" if line.strip().startswith("→") else kind
        place = f'x="{LEFT}" y="{TOP + row * LINE}" style="animation-name: l{row}"'
        shown.append(f'<text class="line {kind}" {place}>{escape(line)}</text>')
        if row >= ROWS:
            steps.append(f"{percent} {{ transform: translateY({(ROWS - row - 1) * LINE}px) }}")
    rules.append(f"@keyframes picture {{ {100 * (total - HOLD) / total:.2f}% {{ opacity: 1 }} }}")
    rules.append(f"@keyframes scroll {{ {' '.join(steps)} }}")
    pixels = [int.from_bytes(picture[at : at + 4]) for at in (16, 20)]  # where a PNG has them
    height = round(ACROSS * pixels[1] / pixels[0])
    return Template(Path(__file__).with_suffix(".svg").read_text()).substitute(
        total=f"{total:.1f}",
        end=(ROWS - len(lines)) * LINE,
        rules="\n".join(rules),
        lines="\n".join(shown),
        top=BOTTOM - height,
        height=height,
        frame_top=BOTTOM - height - 2,
        frame_height=height + 4,
        picture=base64.b64encode(picture).decode(),
    )


def main() -> None:
    """Write the recording."""
    lines, picture = recorded()
    if any(str(ROOT) in line or sys.prefix in line for _, line in lines):
        sys.exit("The recording names a folder of this machine")
    text = drawn(lines, picture)
    TARGET.write_text(text)
    print(f"{TARGET.relative_to(ROOT)}: {len(lines)} lines, {len(text) // 1024} KB")


if __name__ == "__main__":
    main()
