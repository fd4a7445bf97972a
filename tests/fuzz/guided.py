"""Coverage-guided fuzzing of what strangers send: `make fuzz`, ten minutes for each target.

    python -m tests.fuzz.guided [gateway] [link] [check] [--seconds 600]

Needs `atheris`. What reached something new is added to tests/fuzz/corpus/TARGET, reduced to the
smallest inputs that reach as much; test_corpus.py runs all of them again in `make test`. An input
that escapes is printed, and kept as tests/fuzz/corpus/TARGET/escaped-*.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz.mutation import Mutator

CORPUS = Path(__file__).parent / "corpus"
PARTS = {"gateway": b"\n", "link": b"\0", "check": b"\0"}
HEADS = {"gateway": (b"c", b"s", b"v"), "link": (b"+v\n", b"+-\n"), "check": (b"",)}
_MAX_INPUT = 16 * 1024
_MAX_KEPT = 60


def _mutated(target: str, data: bytes, most: int, seed: int) -> bytes:
    """The input with one part changed, left out, doubled or replaced, mostly as JSON."""
    import atheris

    mutator = Mutator(seed)
    rng, between = mutator.random, PARTS[target]
    if rng.random() < 0.3:
        return atheris.Mutate(data, most)
    parts = data.split(between)
    at = rng.randrange(len(parts))
    match rng.randrange(6):
        case 0:
            parts.insert(at, rng.choice(HEADS[target]) + mutator.message())
        case 1 if len(parts) > 1:
            del parts[at]
        case 2:
            parts.insert(rng.randrange(len(parts) + 1), parts[at])
        case 3:
            parts[at] = mutator.torn(parts[at])
        case _:
            parts[at] = _damaged(mutator, parts[at])
    return between.join(parts)[:most]


def _damaged(mutator: Mutator, part: bytes) -> bytes:
    """Its JSON with something wrong in it; where there is none, its bytes."""
    start = min((at for at in (part.find(b"{"), part.find(b"[")) if at >= 0), default=-1)
    try:
        value = json.loads(part[start:]) if start >= 0 else None
    except (ValueError, RecursionError):
        value = None
    if not value:
        return mutator.torn(part)
    whole = mutator.damaged({"value": value})
    value = whole.get("value") if isinstance(whole, dict) else whole
    damaged = json.dumps(value, ensure_ascii=mutator.random.random() < 0.5)
    return part[:start] + damaged.encode("utf-8", "surrogatepass")


def _fuzz(target: str, arguments: list[str]) -> None:
    """Be the process that libFuzzer runs in; it never returns."""
    import atheris

    with atheris.instrument_imports(include=["transom"]):
        from tests.fuzz.targets import TARGETS

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        try:
            return _mutated(target, data, most, seed)
        except (ValueError, RecursionError):  # what came out is no JSON
            return atheris.Mutate(data, most)

    again = f"{sys.executable} -m tests.fuzz.guided --child {target}"  # how it starts itself
    atheris.Setup(
        [again, *arguments],
        TARGETS[target],
        custom_mutator=mutate,
    )
    atheris.Fuzz()


def run(target: str, seconds: int) -> bool:
    """Fuzz one target; whether nothing escaped."""
    kept = CORPUS / target
    with TemporaryDirectory() as folder:
        found, small = Path(folder, "found"), Path(folder, "small")
        found.mkdir()
        small.mkdir()
        child = [sys.executable, "-m", "tests.fuzz.guided", "--child", target]
        common = [f"-max_len={_MAX_INPUT}", "-timeout=60", "-rss_limit_mb=4096"]
        escaped = f"-artifact_prefix={kept}/escaped-"
        done = subprocess.run(
            [*child, *common, escaped, f"-max_total_time={seconds}", str(found), str(kept)],
            check=False,
        )
        if done.returncode:
            return False
        subprocess.run([*child, *common, "-merge=1", str(small), str(kept), str(found)], check=True)
        _keep(kept, small)
    return True


def _keep(kept: Path, found: Path) -> None:
    """Replace what is kept; what people named stays, and of the rest the smallest do."""
    for old in kept.iterdir():
        if old.suffix != ".txt":
            old.unlink()
    for new in sorted(found.iterdir(), key=lambda file: file.stat().st_size)[:_MAX_KEPT]:
        (kept / new.name[:16]).write_bytes(new.read_bytes())


def main() -> int:
    """Fuzz the targets one after the other."""
    if sys.argv[1:2] == ["--child"]:
        _fuzz(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--seconds", type=int, default=600)
    options = parser.parse_args()
    results = {each: run(each, options.seconds) for each in options.targets or PARTS}
    for target, fine in results.items():
        sys.stdout.write(f"{target}: {'nothing escaped' if fine else 'ESCAPED'}\n")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
