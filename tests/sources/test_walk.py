"""A listing that remembers folders must say what a fresh one says, whatever happened to the folders in between."""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from pathlib import Path

import pytest

from notewell.sources.notes import NotesSource
from notewell.sources.walk import REMEMBERED_S, SETTLED_NS

SETTLED_S = 1.5 * SETTLED_NS / 1e9

_listed: list[str] = []
_listening = False


def _hook(event: str, args: tuple[object, ...]) -> None:
    if _listening and event == "os.scandir":
        _listed.append(str(args[0]))


sys.addaudithook(_hook)


@pytest.fixture
def listed_folders():
    """Return a list that grows by every folder that is listed during the test."""
    global _listening  # noqa: PLW0603 - a hook stays for the life of the process; this turns it off again
    _listed.clear()
    _listening = True
    yield _listed
    _listening = False


@pytest.fixture
def tree(tmp_path):
    for number in range(12):
        note = tmp_path / f"memory/{number % 3}/note{number}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"# Note {number}\n", encoding="utf-8")
    time.sleep(SETTLED_S)
    return tmp_path


@pytest.mark.skipif(os.name == "nt", reason="a listing on Windows comes with sizes and times")
def test_unchanged_folders_are_not_listed_again(tree, listed_folders):
    source = NotesSource(tree)
    first = source.list()
    assert len(listed_folders) == 4
    listed_folders.clear()
    (tree / "memory/1/note1.md").write_text("# Note 1, longer\n", encoding="utf-8")
    second = source.list()
    assert not listed_folders
    (changed,) = set(second.files) - set(first.files)
    assert (changed.path, changed.size) == ("memory/1/note1.md", 17)
    (tree / "memory/2/new.md").write_text("# New\n", encoding="utf-8")
    assert len(source.list().files) == 13
    assert [Path(folder).name for folder in listed_folders] == ["2"]


def test_a_folder_that_just_changed_is_listed_again(tree, listed_folders):
    """Within a tick of the clock a folder may change once more and keep its time."""
    source = NotesSource(tree)
    source.list()
    (tree / "memory/0/now.md").write_text("now\n", encoding="utf-8")
    source.list()
    listed_folders.clear()
    source.list()
    assert [Path(folder).name for folder in listed_folders] == ["0"]


def test_everything_is_listed_anew_after_a_while(tree, listed_folders, monkeypatch):
    source = NotesSource(tree)
    source.list()
    listed_folders.clear()
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + REMEMBERED_S)
    source.list()
    assert len(listed_folders) == 4


def _edit(note: Path, roll: random.Random) -> None:
    with note.open("a", encoding="utf-8") as file:
        file.write("more\n" * roll.randint(1, 3))


def _replace(note: Path, roll: random.Random) -> None:
    draft = note.with_name("draft.tmp")
    draft.write_text("x" * roll.randint(1, 40), encoding="utf-8")
    draft.replace(note)


def _to_link(note: Path, _: random.Random) -> None:
    target = note.with_suffix(".elsewhere")
    note.rename(target)
    note.symlink_to(target)


def _to_folder(note: Path, _: random.Random) -> None:
    note.unlink()
    note.mkdir()


def _rename(note: Path, roll: random.Random) -> None:
    note.rename(note.with_name(f"renamed{roll.randint(0, 10**6)}.md"))


def _move_folder(note: Path, roll: random.Random) -> None:
    note.parent.rename(note.parent.with_name(f"moved{roll.randint(0, 10**6)}"))


def _swap_folders(note: Path, _: random.Random) -> None:
    """Put a copy in the place of the folder, as `git checkout` and sync tools do."""
    aside = note.parent.with_name("aside.tmp")
    note.parent.rename(aside)
    shutil.copytree(aside, note.parent)
    shutil.rmtree(aside)


def _delete(note: Path, _: random.Random) -> None:
    note.unlink()


def _same_length_edit(note: Path, _: random.Random) -> None:
    note.write_text("z" * note.stat().st_size, encoding="utf-8")


def _lock_folder(note: Path, _: random.Random) -> None:
    note.parent.chmod(0o300)


def _hard_link(note: Path, roll: random.Random) -> None:
    note.with_name(f"twin{roll.randint(0, 10**6)}.md").hardlink_to(note)


OPERATIONS = (_edit, _replace, _rename, _move_folder, _swap_folders, _delete, _same_length_edit, _hard_link)
if os.name != "nt":
    OPERATIONS = (*OPERATIONS, _to_link, _to_folder, _lock_folder)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_remembering_listing_equals_a_fresh_one(tree, seed):
    """Also when the folders had time to settle, and when they had not."""
    roll = random.Random(seed)
    source = NotesSource(tree)
    for step in range(25):
        notes = sorted(path for path in (tree / "memory").rglob("*.md") if path.is_file() and not path.is_symlink())
        if len(notes) < 4:
            for number in range(6):
                folder = tree / f"memory/again{step}"
                folder.mkdir(exist_ok=True)
                (folder / f"{number}.md").write_text("again\n", encoding="utf-8")
            continue
        operation = roll.choice(OPERATIONS)
        note = roll.choice(notes)
        operation(note, roll)
        if roll.random() < 0.5:
            time.sleep(SETTLED_S)
        assert source.list() == NotesSource(tree).list(), operation.__name__
        for folder in (tree / "memory").iterdir():
            if folder.is_dir():
                folder.chmod(0o755)
        assert source.list() == NotesSource(tree).list(), f"after {operation.__name__}"
