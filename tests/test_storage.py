"""Files and folders are whole or as they were before, whatever goes wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from ahofm_keras.errors import DataError
from ahofm_keras.storage import written_whole as written_whole_in_general


def written_whole(target: str | Path) -> AbstractContextManager[Path]:
    """Names without an ending are folders, known by `other.txt`."""
    folder_with = None if Path(target).suffix else "other.txt"
    return written_whole_in_general(target, folder_with)


def write_file(path: Path, text: str) -> None:
    path.write_text(text)


def write_folder(path: Path, text: str) -> None:
    (path / "inner").mkdir(parents=True)
    (path / "inner" / "part.txt").write_text(text)
    (path / "other.txt").write_text(text)


def read_file(path: Path) -> str:
    return path.read_text()


def read_folder(path: Path) -> str:
    assert sorted(part.name for part in path.iterdir()) == ["inner", "other.txt"]
    assert (path / "other.txt").read_text() == (path / "inner" / "part.txt").read_text()
    return (path / "other.txt").read_text()


Kind = tuple[str, Callable[[Path, str], None], Callable[[Path], str]]
KINDS: dict[str, Kind] = {
    "file": ("model.keras", write_file, read_file),
    "folder": ("model", write_folder, read_folder),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def beside(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_target_is_written_and_nothing_else(tmp_path: Path, kind: Kind) -> None:
    name, write, read = kind
    with written_whole(tmp_path / name) as path:
        assert path.parent == tmp_path
        assert path.name.endswith(Path(name).suffix)  # Keras goes by it
        write(path, "new")
        assert not (tmp_path / name).exists()
    assert read(tmp_path / name) == "new"
    assert beside(tmp_path) == [name]


def test_an_old_target_is_replaced(tmp_path: Path, kind: Kind) -> None:
    name, write, read = kind
    write(tmp_path / name, "old")
    with written_whole(str(tmp_path / name)) as path:
        write(path, "new")
        assert read(tmp_path / name) == "old"
    assert read(tmp_path / name) == "new"
    assert beside(tmp_path) == [name]


def test_missing_folders_above_are_made(tmp_path: Path, kind: Kind) -> None:
    name, write, read = kind
    with written_whole(tmp_path / "a" / "b" / name) as path:
        write(path, "new")
    assert read(tmp_path / "a" / "b" / name) == "new"


def interrupt(
    target: Path, write: Callable[[Path, str], None], interruption: type[BaseException]
) -> None:
    with written_whole(target) as path:
        write(path, "half")
        raise interruption


@pytest.mark.parametrize("interruption", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_interrupted_write_leaves_the_old(
    tmp_path: Path, kind: Kind, interruption: type[BaseException]
) -> None:
    name, write, read = kind
    write(tmp_path / name, "old")
    with pytest.raises(interruption):
        interrupt(tmp_path / name, write, interruption)
    assert read(tmp_path / name) == "old"
    assert beside(tmp_path) == [name]


def test_an_interrupted_first_write_leaves_nothing(tmp_path: Path, kind: Kind) -> None:
    name, write, _ = kind
    with pytest.raises(RuntimeError):
        interrupt(tmp_path / name, write, RuntimeError)
    assert beside(tmp_path) == []


def test_a_body_that_writes_nothing_leaves_the_old(tmp_path: Path, kind: Kind) -> None:
    name, write, read = kind
    write(tmp_path / name, "old")
    with pytest.raises(FileNotFoundError), written_whole(tmp_path / name):
        pass
    assert read(tmp_path / name) == "old"
    assert beside(tmp_path) == [name]


def test_a_failure_of_the_last_step_brings_the_old_back(
    tmp_path: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, write, read = kind
    write(tmp_path / name, "old")
    replace = os.replace

    def fail_for_the_new(source: Path, target: Path) -> None:
        if ".new" in str(source):
            raise PermissionError("in use")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail_for_the_new)
    with pytest.raises(PermissionError, match=r"^in use$"), written_whole(tmp_path / name) as path:
        write(path, "new")
    assert read(tmp_path / name) == "old"
    assert beside(tmp_path) == [name]


def test_a_process_that_ends_between_two_steps_leaves_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model.keras"
    target.write_text("old")
    replace, done = os.replace, []

    def one_step(source: Path, target: Path) -> None:
        if done:
            raise SystemExit
        done.append(source)
        replace(source, target)

    monkeypatch.setattr(os, "replace", one_step)
    try:
        with written_whole(target) as path:
            path.write_text("new")
    except SystemExit:
        pass
    assert target.exists()
    assert target.read_text() in ("old", "new")


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    target = tmp_path / "model.keras"
    with written_whole(target) as first, written_whole(target) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert target.read_text() == "first"
    assert beside(tmp_path) == ["model.keras"]


def test_only_what_was_written_here_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "thesis.txt").write_text("years of work")
    (tmp_path / "folder.keras").mkdir()
    (tmp_path / "file").write_text("mine")
    refused = {"project": "holds other things", "folder.keras": "is a folder", "file": "is a file"}
    for name, message in refused.items():
        with pytest.raises(DataError, match=message), written_whole(tmp_path / name) as path:
            write_file(path, "new")
    assert (tmp_path / "project" / "thesis.txt").read_text() == "years of work"
    assert (tmp_path / "file").read_text() == "mine"
