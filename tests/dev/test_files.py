"""Which files are watched, and that a save is reported."""

import asyncio
from pathlib import Path

from transom.dev.files import source_files, watch_files


def save(file: Path, text: str) -> None:
    """Save a file in one step, as editors do."""
    (new := file.parent / ".new").write_text(text)
    new.replace(file)


def test_packages_hidden_files_and_data_are_not_a_servers_own(tmp_path: Path) -> None:
    own = {"pages/a.html", "s.py", "package.json", "pyproject.toml"}
    data = {"data.bin", "orders.json", "state.toml"}
    for name in {".git/x.py", "node_modules/x.js", "__pycache__/x.py"} | own | data:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = {file.relative_to(tmp_path).as_posix() for file in source_files(tmp_path)}
    assert found == own


async def test_a_save_is_reported_also_in_a_folder_that_is_new(tmp_path: Path) -> None:
    (tmp_path / "server.py").touch()
    changes = watch_files(tmp_path)
    first = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)  # it watches from here
    save(tmp_path / "notes.txt", "no source")
    save(tmp_path / "orders.json", "data of the server")
    save(tmp_path / "server.py", "one")
    assert [file.name for file in await first] == ["server.py"]
    folder = tmp_path / "pages"
    folder.mkdir()
    second = asyncio.ensure_future(anext(changes))
    while not second.done():  # a new folder is watched when its making has been noticed
        save(folder / "page.html", "two")
        await asyncio.wait([second], timeout=0.05)
    assert [file.name for file in second.result()] == ["page.html"]
    await changes.aclose()
