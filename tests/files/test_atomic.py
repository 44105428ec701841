"""A file is replaced whole or not at all, whatever fails on the way."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from notewell.files.atomic import write_atomically
from notewell.files.faults import STEPS, failing, planted

pytestmark = pytest.mark.usefixtures("synced")

POSIX = pytest.mark.skipif(os.name == "nt", reason="no POSIX permissions or open folders")


def names_in(folder):
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "note.md"
    path.write_bytes(b"old")
    return path


@pytest.mark.parametrize(
    ("data", "stored"),
    [
        pytest.param(b"\x00\xff\r\n", b"\x00\xff\r\n", id="bytes"),
        pytest.param("Zürich\n", b"Z\xc3\xbcrich\n", id="text, with line ends as they are"),
    ],
)
def test_it_stores_what_it_is_given(file, data, stored):
    write_atomically(file, data)
    assert file.read_bytes() == stored
    assert names_in(file.parent) == [file.name]


def test_it_makes_a_new_file(tmp_path):
    write_atomically(tmp_path / "new", b"x")
    assert (tmp_path / "new").read_bytes() == b"x"


@POSIX
def test_the_mode_is_exact(file):
    before = os.umask(0o077)
    try:
        write_atomically(file, b"new", mode=0o664)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o664


@POSIX
def test_without_a_mode_the_umask_decides(file):
    before = os.umask(0o027)
    try:
        write_atomically(file, b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@POSIX
def test_an_open_folder_is_written_even_after_it_was_renamed(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    handle = os.open(folder, os.O_RDONLY)
    try:
        folder.rename(tmp_path / "renamed")
        write_atomically("note.md", b"new", folder_fd=handle)
    finally:
        os.close(handle)
    assert (tmp_path / "renamed" / "note.md").read_bytes() == b"new"
    assert not folder.exists()


def test_a_file_that_must_not_be_overwritten_stays(file):
    with pytest.raises(FileExistsError):
        write_atomically(file, b"new", overwrite=False)
    assert file.read_bytes() == b"old"
    assert names_in(file.parent) == [file.name]


@pytest.mark.parametrize("links", [True, False], ids=["with hard links", "without hard links"])
@pytest.mark.parametrize("exists", [True, False])
def test_not_overwriting_needs_no_hard_links(tmp_path, monkeypatch, links, exists):
    def refuse(*_args, **_options):
        raise OSError(errno.EPERM, "no hard links here")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "key"
    if exists:
        path.write_bytes(b"old")
        with pytest.raises(FileExistsError):
            write_atomically(path, b"new", overwrite=False)
    else:
        write_atomically(path, b"new", overwrite=False)
    assert path.read_bytes() == (b"old" if exists else b"new")
    assert names_in(tmp_path) == ["key"]


@pytest.mark.parametrize("step", STEPS)
def test_a_failed_step_leaves_one_whole_file_and_no_draft(file, step):
    with failing(f"note.{step}", errno.EIO) as failures, pytest.raises(OSError, match="Input/output"):
        write_atomically(file, b"new", faults="note")
    assert failures() == 1
    assert file.read_bytes() == (b"new" if step == "fsync_folder" else b"old")
    assert names_in(file.parent) == [file.name]


def test_a_draft_is_named_after_the_file_or_as_asked(file):
    seen = []

    def look(point):
        if point == "note.rename":
            seen.extend(name for name in names_in(file.parent) if name != file.name)

    with planted(look):
        write_atomically(file, b"new", faults="note")
        write_atomically(file, b"new", draft_prefix="CURRENT.", faults="note")
    assert [name.rpartition(f"{os.getpid()}-")[0] for name in seen] == [".note.md.", "CURRENT."]
    assert all(name.endswith(".tmp") for name in seen)
