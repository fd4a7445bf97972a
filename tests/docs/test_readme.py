"""Every example of the README is a file that runs, word for word."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
QUOTED = re.findall(r"^```\w+ (\S+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
RUNNABLE = re.findall(
    r"^```python (\S+)\n(?:(?!```).)*```\n\n```text\n(.*?)^```$", README, re.MULTILINE | re.DOTALL
)
COMMANDS = [line[2:] for line in README.splitlines() if line.startswith("$ transom ")]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.parametrize(("file", "text"), QUOTED, ids=[file for file, _ in QUOTED])
def test_an_example_is_the_file_it_names(file: str, text: str) -> None:
    assert text == (ROOT / file).read_text()


def test_every_file_is_quoted() -> None:
    there = {f"docs/readme/{file.name}" for file in (ROOT / "docs" / "readme").glob("*.*")}
    assert there == {file for file, _ in QUOTED}


@pytest.mark.processes
@pytest.mark.parametrize(("file", "output"), RUNNABLE, ids=[file for file, _ in RUNNABLE])
def test_an_example_prints_what_the_readme_says(file: str, output: str) -> None:
    ran = run(sys.executable, file)
    assert (ran.stdout, ran.returncode) == (output, 0), ran.stderr


def test_both_examples_with_an_output_are_run() -> None:
    assert len(RUNNABLE) == 2


@pytest.mark.processes
async def test_the_gateway_runs_as_the_snippet_for_a_client_says() -> None:
    (install,) = [words for words in COMMANDS if "gateway install" in words]
    install = install.replace("-- python ", f"-- {sys.executable} ")
    printed = run(sys.executable, "-m", *shlex.split(install))
    assert printed.returncode == 0, printed.stderr
    (entry,) = json.loads(printed.stdout)["mcpServers"].values()
    words = [entry["command"], *entry["args"]]
    parameters = StdioServerParameters(command=words[0], args=words[1:])
    async with Client(stdio_client(parameters)) as client:
        assert "show_player" in {tool.name for tool in (await client.list_tools()).tools}


TRANSCRIPTS = re.findall(r"^```text\n(→ .*?)^```$", README, re.MULTILINE | re.DOTALL)
TRANSCRIPT_CALL = re.compile(r"→ ([\w-]+)(\(.*\))")
HANDLE = re.compile(r"music-1\.[\w-]{22}")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("era", "transcript"),
    [
        pytest.param("legacy", TRANSCRIPTS[0], marks=pytest.mark.nightly),
        ("auto", TRANSCRIPTS[1]),
    ],
    ids=["handshake", "2026-07-28"],
)
async def test_a_transcript_of_the_gateway_is_what_a_client_sees(era: str, transcript: str) -> None:
    words = ["-m", "transom", "gateway", "--headless", "--", sys.executable, "examples/music.py"]
    parameters = StdioServerParameters(command=sys.executable, args=words, cwd=ROOT)
    async with Client(stdio_client(parameters), mode=era) as client:
        said = ""
        for written in transcript.splitlines():
            handle = HANDLE.search(said)  # it is another one in each run
            line = HANDLE.sub(handle[0], written) if handle else written
            if called := TRANSCRIPT_CALL.match(line):
                given = eval(f"dict{called[2]}")  # noqa: S307 - the README's words
                result = await client.call_tool(called[1], given)
                said = "\n".join(block.text for block in result.content)
            elif "the user sees it at" not in line:  # here nobody does
                assert line.strip().rstrip("…") in said


def test_what_the_readme_links_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert missing == []
