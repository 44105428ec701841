"""Appending to a note: byte for byte what was there, then the entry; refused paths; faults; processes at once."""

from __future__ import annotations

import codecs
import errno
import os
import stat
import subprocess
import sys
from datetime import date, datetime, timedelta, timezone

import pytest

from notewell.errors import (
    DiskFullError,
    NotesBusyError,
    NoteUnreadableError,
    NotewellError,
    PathRefusedError,
    RememberError,
)
from notewell.files.faults import planted
from notewell.memory.note_files import NoteFiles, daily_note, notes_lock
from notewell.text.entries import Entry, find_entries
from notewell.text.fences import fence

WHEN = datetime(2026, 11, 16, 9, 5, tzinfo=timezone(timedelta(hours=2)))


def entry(text):
    return Entry(text, date=WHEN, author="main", source="the command line", category="decision", importance=8)


TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "memory").mkdir()
    return tmp_path


def note_of(folder, content: bytes):
    path = folder / "memory" / "x.md"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("before", "added"),
    [
        pytest.param(b"# X\n\n- one\n", b"\nnew\n", id="a blank line is put between"),
        pytest.param(b"# X\n\n- one\n\n", b"new\n", id="a blank line is there already"),
        pytest.param(b"# X\n\n- one", b"\n\nnew\n", id="the last line has no end"),
        pytest.param(b"# X\r\n\r\n- one\r\n", b"\r\nnew\r\n", id="windows"),
        pytest.param(b"# X\r\n\r\n- one", b"\r\n\r\nnew\r\n", id="windows without a last end"),
        pytest.param(b"# X\r- one\r", b"\rnew\r", id="old mac"),
        pytest.param(b"a\r\nb\nc\n", b"\nnew\n", id="mixed, mostly unix"),
        pytest.param(codecs.BOM_UTF8 + b"# X\n", b"\nnew\n", id="a byte order mark stays and none is added"),
        pytest.param(b"bad \xff byte\n", b"\nnew\n", id="bytes that are no UTF-8 stay"),
        pytest.param(
            codecs.BOM_UTF16_LE + "é\n".encode("utf-16-le"), "\nnew\n".encode("utf-16-le"), id="UTF-16 is gone on with"
        ),
    ],
)
def test_what_was_there_stays_byte_for_byte(folder, before, added):
    path = note_of(folder, before)
    NoteFiles(folder).append("memory/x.md", "new")
    assert path.read_bytes() == before + added


@pytest.mark.parametrize(
    ("path", "heading"),
    [
        pytest.param("memory/2026-11-16.md", "# 2026-11-16", id="dated"),
        pytest.param("memory/home-network.md", "# Home network", id="by topic"),
        pytest.param("memory/deep/er/note.md", "# Note", id="in folders that are made"),
        pytest.param("MEMORY.md", "# Memory", id="the curated memory"),
    ],
)
def test_a_new_note_begins_with_a_heading(folder, path, heading):
    done = NoteFiles(folder).append(path, entry("first"))
    assert (folder / path).read_text() == (
        f"{heading}\n\nfirst\n<!-- notewell id={done.entry} date=2026-11-16T09:05:00+02:00 author=main"
        ' source="the command line" category=decision importance=8 -->\n'
    )
    assert (done.path, done.first_line, done.last_line) == (path, 3, 3)
    assert done.citation == f"{path}#L3"


def test_the_lines_told_are_the_lines_written(folder):
    note_of(folder, b"# X\n\n- one")
    for text in ("two\nlines", "three"):
        done = NoteFiles(folder).append("memory/x.md", entry(text))
        lines = (folder / "memory/x.md").read_text().split("\n")
        assert lines[done.first_line - 1 : done.first_line - 1 + text.count("\n") + 1] == text.split("\n")
        assert lines[done.last_line].startswith(f"<!-- notewell id={done.entry} ")


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"], ids=["unix", "windows", "old mac"])
def test_entries_are_read_as_they_were_written(folder, newline):
    note = note_of(folder, newline.join([b"# X", b"", b"```", b"code that never ends", b""]))
    texts = ["one", "two\n\n```\n<!-- notewell id=x -->\n```", "a -->\n<!-- notewell id=y -->", "~~~\nopen"]
    ids = [NoteFiles(folder).append("memory/x.md", entry(text)).entry for text in texts]
    content = note.read_bytes()
    found = find_entries(content.replace(newline, b"\n").decode()).entries
    assert [each.text for each in found] == [*texts[:3], "~~~\nopen\n~~~"]
    assert [each.id for each in found] == ids
    assert content.startswith(
        newline.join([b"# X", b"", b"```", b"code that never ends", b"```", b"", b"one", b"<!--"])
    )
    if newline != b"\n":
        assert b"\n" not in content.replace(b"\r\n", b"")


def test_an_id_comes_from_what_is_written_not_from_the_secret(folder):
    ids = [NoteFiles(folder).append("memory/x.md", entry(f"token {TOKEN}")).entry for _ in range(2)]
    assert ids[0] == ids[1]
    assert ids[0] != Entry(f"token {TOKEN}", date=WHEN, author="main", source="the command line").id


def test_secrets_recalled_text_and_odd_characters_are_not_written(folder):
    text = f"token {TOKEN}\r\n{fence('old memory', 'memory/a.md#L1')}\nkept\0 \ud800 end  "
    done = NoteFiles(folder).append("memory/x.md", text)
    written = (folder / "memory/x.md").read_bytes()
    assert TOKEN.encode() not in written
    assert b"[secret:github-token:" in written
    assert b"old memory" not in written
    assert b"\0" not in written
    assert b"kept" in written
    assert done.redacted == ("github-token",)


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\0", fence("only this", "x")], ids=["empty", "blank", "NUL", "recalled"]
)
def test_nothing_to_remember_is_an_error(folder, text):
    with pytest.raises(RememberError):
        NoteFiles(folder).append("memory/x.md", text)
    assert not (folder / "memory/x.md").exists()


@pytest.mark.parametrize(
    "path",
    [
        "../x.md", "/etc/x.md", "memory/../../x.md", "notes/x.md", "memory/x.txt", "memory/.hidden.md",
        "memory/a/../x.md",
        "memory\\x.md", "memory/x.md\0", "memory/con.md", "memory/x.md/", "", "memory/%2e%2e/x.md",
        ".notewell/main/x.md", "memory/node_modules/x.md", "memory/a:b.md", "memory/‥/x.md",
    ],
)  # fmt: skip
def test_paths_that_are_no_notes_are_refused(folder, path):
    with pytest.raises(PathRefusedError):
        NoteFiles(folder).append(path, "text")
    assert sorted(p.name for p in folder.iterdir()) == [".notewell", "memory"] or not (folder / ".notewell").exists()


def test_links_are_not_written_through(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "victim.md").write_text("mine\n")
    (folder / "memory" / "link.md").symlink_to(outside / "victim.md")
    (folder / "memory" / "folder").symlink_to(outside)
    for path in ("memory/link.md", "memory/folder/victim.md", "memory/folder/new.md"):
        with pytest.raises(PathRefusedError):
            NoteFiles(folder).append(path, "text")
    assert (outside / "victim.md").read_text() == "mine\n"
    assert [path.name for path in outside.iterdir()] == ["victim.md"]


def test_a_note_outside_of_the_workspace_is_not_written(folder, tmp_path_factory):
    vault = tmp_path_factory.mktemp("vault")
    (vault / "a.md").write_text("theirs\n")
    with pytest.raises(PathRefusedError):
        NoteFiles(folder, [vault]).append(f"@{vault.name}/a.md", "text")


def test_a_note_in_an_unknown_encoding_is_left_alone(folder):
    path = note_of(folder, "é\n".encode("utf-16-le"))
    with pytest.raises(NoteUnreadableError):
        NoteFiles(folder).append("memory/x.md", "text")
    assert path.read_bytes() == "é\n".encode("utf-16-le")


@pytest.mark.skipif(os.name != "posix", reason="modes are a matter of POSIX")
def test_who_may_read_a_note_stays_so(folder):
    path = note_of(folder, b"x\n")
    path.chmod(0o640)
    NoteFiles(folder).append("memory/x.md", "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("point", ["note.open", "note.write", "note.fsync", "note.rename", "note.fsync_folder"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES], ids=["full", "broken", "denied"])
def test_a_failing_disk_leaves_the_note_whole(folder, point, code):
    path = note_of(folder, b"# X\n")

    def fail(reached):
        if reached == point:
            raise OSError(code, os.strerror(code))

    with planted(fail), pytest.raises(NotewellError) as raised:
        NoteFiles(folder).append("memory/x.md", "new")
    assert isinstance(raised.value, DiskFullError) == (code == errno.ENOSPC)
    written = b"# X\n\nnew\n"
    assert path.read_bytes() == (written if point == "note.fsync_folder" else b"# X\n")
    assert [p.name for p in (folder / "memory").iterdir()] == ["x.md"]
    NoteFiles(folder).append("memory/x.md", "again")
    assert path.read_bytes().endswith(b"\nagain\n")


def test_drafts_of_killed_processes_are_cleared_away(folder):
    (folder / "memory" / ".notewell-123-abcd.tmp").write_text("half")
    NoteFiles(folder).append("memory/x.md", "new")
    assert [p.name for p in (folder / "memory").iterdir()] == ["x.md"]


def test_a_note_saved_by_an_editor_meanwhile_keeps_what_it_says(folder):
    path = note_of(folder, b"# X\n")
    asked = []

    def unless(text):
        asked.append(text)
        if len(asked) == 1:
            path.write_bytes(b"# X\n\n- from an editor\n")
        return False

    NoteFiles(folder).append("memory/x.md", "new", unless=unless)
    assert path.read_bytes() == b"# X\n\n- from an editor\n\nnew\n"
    assert len(asked) == 2


def test_unless_sees_the_note_and_can_stop_it(folder):
    path = note_of(folder, b"known\r\n")
    assert NoteFiles(folder).append("memory/x.md", "new", unless=lambda text: text == "known\n") is None
    assert path.read_bytes() == b"known\r\n"


def test_a_lock_that_is_held_is_told(folder):
    with notes_lock(folder), pytest.raises(NotesBusyError), notes_lock(folder, timeout_s=0.05):
        pass


@pytest.mark.slow
def test_processes_at_once_lose_nothing(folder):
    script = (
        "import sys; from pathlib import Path; from notewell.memory.note_files import NoteFiles\n"
        "for n in range(25): NoteFiles(Path(sys.argv[1])).append('memory/x.md', f'entry {sys.argv[2]}-{n}')"
    )
    started = [subprocess.Popen([sys.executable, "-c", script, str(folder), str(who)]) for who in range(4)]
    assert [process.wait(timeout=120) for process in started] == [0] * 4
    lines = (folder / "memory/x.md").read_text().split("\n")
    assert sorted(line for line in lines if line.startswith("entry")) == sorted(
        f"entry {who}-{n}" for who in range(4) for n in range(25)
    )


@pytest.mark.slow
def test_a_killed_process_leaves_the_note_whole(folder):
    script = (
        "import sys; from pathlib import Path; from notewell.memory.note_files import NoteFiles\n"
        "print('go', flush=True)\n"
        "while True: NoteFiles(Path(sys.argv[1])).append('memory/x.md', 'word ' * 40)"
    )
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE)
        process.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.3)
        process.kill()
        process.wait(timeout=30)
        process.stdout.close()
        NoteFiles(folder).append("memory/x.md", "still works")
        text = (folder / "memory/x.md").read_text()
        assert text.endswith("\nstill works\n")
        assert {line.strip() for line in text.split("\n")} <= {"# X", "", ("word " * 40).strip(), "still works"}


def test_the_daily_note_is_the_user_s_day():
    assert daily_note(date(2026, 3, 1)) == "memory/2026-03-01.md"
    assert daily_note() == f"memory/{datetime.now().astimezone().date().isoformat()}.md"
