"""Files and folders are whole or as they were before, whatever goes wrong."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from ahofm_keras import storage
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
    monkeypatch.setattr(storage, "_exchange", lambda first, second: False)
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


# A process that kills itself at one step of replacing a folder or a file. The package itself takes
# seconds to import, which its module of files does not need.
KILLED = """
import os, signal, sys, types
from pathlib import Path
root, target, folder, exchange, step = sys.argv[1:]
package = types.ModuleType("ahofm_keras")
package.__path__ = [root]
sys.modules["ahofm_keras"] = package
from ahofm_keras import storage

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def stopping_after(function):
    def wrapped(*given):
        answer = function(*given)
        done.append(function.__name__)
        if step == f"{function.__name__} {done.count(function.__name__)}":
            kill()
        return answer
    return wrapped

done = []
os.replace = stopping_after(os.replace)
storage._exchange = stopping_after(storage._exchange) if exchange == "yes" else lambda *names: False
with storage.written_whole(target, "other.txt" if folder == "yes" else None) as path:
    if folder == "yes":
        (path / "inner").mkdir(parents=True)
        (path / "inner" / "part.txt").write_text("new")
        if step == "half":
            kill()
        (path / "other.txt").write_text("new")
    else:
        path.write_text("new")
    if step in ("half", "body"):
        kill()
"""

STEPS = [
    ("folder", "yes", "half", "old"),
    ("folder", "yes", "body", "old"),
    ("folder", "yes", "_exchange 1", "new"),
    ("folder", "no", "body", "old"),
    ("folder", "no", "replace 1", "old"),
    ("folder", "no", "replace 2", "new"),
    ("file", "yes", "half", "old"),
    ("file", "yes", "replace 1", "new"),
]
ON_POSIX = pytest.mark.skipif(os.name == "nt", reason="processes are killed by a signal")


@ON_POSIX
@pytest.mark.parametrize(("what", "exchange", "step", "expected"), STEPS)
def test_what_a_killed_process_leaves_is_mended_by_the_next_call(
    tmp_path: Path, what: str, exchange: str, step: str, expected: str
) -> None:
    name, write, read = KINDS[what]
    if exchange == "yes" and what == "folder" and not can_exchange(tmp_path):
        pytest.skip("this system cannot exchange two folders in one step")
    write(tmp_path / name, "old")
    arguments = [str(Path(storage.__file__).parent), str(tmp_path / name)]
    arguments += ["yes" if what == "folder" else "no", exchange, step]
    ended = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False)
    assert ended.returncode == -signal.SIGKILL
    if exchange == "yes":  # nobody who looks meanwhile finds nothing
        assert read(tmp_path / name) == expected
    with pytest.raises(RuntimeError):
        interrupt(tmp_path / name, write, RuntimeError)
    assert read(tmp_path / name) == expected
    assert beside(tmp_path) == [name]
    with written_whole(tmp_path / name) as path:
        write(path, "newest")
    assert read(tmp_path / name) == "newest"
    assert beside(tmp_path) == [name]


def can_exchange(folder: Path) -> bool:
    first, second = folder / "first", folder / "second"
    first.mkdir()
    second.mkdir()
    answer = storage._exchange(first, second)
    first.rmdir()
    second.rmdir()
    return answer


@pytest.mark.skipif(sys.platform != "linux", reason="Linux can exchange two names")
def test_linux_exchanges_two_folders_in_one_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not can_exchange(tmp_path):
        pytest.skip("not on this file system")
    write_folder(tmp_path / "model", "old")
    monkeypatch.setattr(os, "replace", lambda *names: pytest.fail("two steps"))
    with written_whole(tmp_path / "model") as path:
        write_folder(path, "new")
    assert read_folder(tmp_path / "model") == "new"
    assert beside(tmp_path) == ["model"]


@ON_POSIX
def test_what_somebody_still_writes_is_left_alone(tmp_path: Path) -> None:
    """A process that lives, one of another machine, and files whose names are not of this kind."""
    with written_whole(tmp_path / "model.keras") as path:
        path.write_text("new")
        mark = re.fullmatch(r"\.model\.(\d+)-([0-9a-f]{6})-[0-9a-f]{8}\.new\.keras", path.name)
    assert mark is not None
    host = mark[2]
    kept = [
        f".model.{os.getppid()}-{host}-00000000.new.keras",
        ".model.999999999-ffffff-00000000.new.keras",
        ".model.backup.new.keras",
        f".models.999999999-{host}-00000000.new.keras",
        f".model.999999999-{host}-00000000.new.txt",
    ]
    gone = [
        f".model.999999999-{host}-00000000.new.keras",
        f".model.{os.getpid()}-{host}-00000000.new.keras",
    ]
    for name in [*kept, *gone]:
        (tmp_path / name).write_text("half")
    with written_whole(tmp_path / "model.keras") as path:
        path.write_text("newer")
    assert beside(tmp_path) == sorted(["model.keras", *kept])


def test_what_nobody_can_be_asked_about_is_removed_after_a_day(tmp_path: Path) -> None:
    """Of another machine, or of the first version, which wrote no number of a process."""
    names = [".model.7-ffffff-00000000.new.keras", ".model.0123abcd.new.keras"]
    for name in names:
        (tmp_path / name).write_text("half")
        yesterday = time.time() - 90_000
        os.utime(tmp_path / name, (yesterday, yesterday))
    with written_whole(tmp_path / "model.keras") as path:
        path.write_text("new")
    assert beside(tmp_path) == ["model.keras"]
