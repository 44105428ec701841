"""Which files are notes, what reading one gives, and what happens when they change underfoot."""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import sys
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.errors import NoteNotFoundError, PathRefusedError, WorkspaceError
from notewell.files.no_follow import MAX_READS, settled
from notewell.protocols import Source
from notewell.sources.notes import NotesSource, decode_note
from notewell.types import FileStamp

RUNS_AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
UNREADABLE_POSSIBLE = pytest.mark.skipif(
    RUNS_AS_ROOT or sys.platform == "win32", reason="permissions do not stop this user"
)


def write(path: Path, text: str = "text\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.symlink_to(target, target_is_directory=target.is_dir())
    except OSError as error:
        pytest.skip(f"no symbolic links here: {error}")


def paths(source: NotesSource) -> list[str]:
    return [stamp.path for stamp in source.list().files]


def problems(source: NotesSource) -> list[str]:
    return [problem.path for problem in source.list().problems]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def tells_case_apart(workspace: Path) -> bool:
    write(workspace / "case-probe")
    apart = not (workspace / "CASE-PROBE").exists()
    (workspace / "case-probe").unlink()
    return apart


def test_lists_root_file_and_memory_folder_sorted_and_nothing_else(workspace):
    for name in ("MEMORY.md", "memory/b.md", "memory/a/c.MD", "memory/a.md", "memory/zürich 日本.md"):
        write(workspace / name)
    for name in ("README.md", "memory/a.txt", "memory/md", "memory-old/x.md", "notes/x.md", "memory/x.md.bak"):
        write(workspace / name)
    for name in (".git/x.md", ".notewell/x.md", ".obsidian/x.md", "node_modules/x.md", "deep/.trash/x.md", "._a.md"):
        write(workspace / "memory" / name)
    source: Source = NotesSource(workspace, ())
    listing = source.list()
    assert [stamp.path for stamp in listing.files] == [
        "MEMORY.md",
        "memory/a.md",
        "memory/a/c.MD",
        "memory/b.md",
        "memory/zürich 日本.md",
    ]
    assert listing.problems == ()
    assert source.name == "memory"


def test_stamps_carry_size_times_and_inode(workspace):
    file = write(workspace / "MEMORY.md", "12345")
    os.utime(file, ns=(1, 1_700_000_000_123_456_700))
    [stamp] = NotesSource(workspace).list().files
    info = file.stat()
    assert stamp == FileStamp("memory", "MEMORY.md", 5, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


def test_an_empty_workspace_holds_nothing_and_a_missing_one_is_an_error(workspace):
    assert NotesSource(workspace).list().files == ()
    with pytest.raises(WorkspaceError, match="cannot open the workspace"):
        NotesSource(workspace / "gone").list()
    with pytest.raises(WorkspaceError):
        NotesSource(write(workspace / "file")).list()


def test_both_spellings_of_the_root_file(workspace, tells_case_apart):
    write(workspace / "memory.md", "lower")
    if tells_case_apart:
        write(workspace / "MEMORY.md", "upper")
        write(workspace / "Memory.md", "neither")
    assert paths(NotesSource(workspace)) == (["MEMORY.md", "memory.md"] if tells_case_apart else ["memory.md"])


def test_root_names_in_another_case_count_only_where_case_does_not(workspace, tells_case_apart):
    write(workspace / "Memory.md")
    write(workspace / "Memory" / "a.md")
    source = NotesSource(workspace)
    assert paths(source) == ([] if tells_case_apart else ["Memory.md", "Memory/a.md"])
    assert source.exists("Memory/a.md") is not tells_case_apart
    if tells_case_apart:
        with pytest.raises(PathRefusedError):
            source.resolve("Memory/a.md")
    else:
        assert source.stamp_of("memory/A.md").path == "Memory/a.md"


@pytest.mark.skipif(sys.platform == "win32", reason="a folder listing tells no file identity there")
def test_hard_links_are_one_note(workspace):
    first = write(workspace / "memory" / "a.md")
    try:
        os.link(first, workspace / "memory" / "b.md")
        os.link(first, workspace / "MEMORY.md")
    except OSError as error:
        pytest.skip(f"no hard links here: {error}")
    assert paths(NotesSource(workspace)) == ["MEMORY.md"]


def test_links_are_reported_and_not_followed(workspace, tmp_path):
    outside = write(tmp_path / "outside" / "secret.md", "secret")
    write(workspace / "memory" / "real.md")
    link(workspace / "MEMORY.md", outside)
    link(workspace / "memory" / "file.md", outside)
    link(workspace / "memory" / "folder", outside.parent)
    link(workspace / "memory" / "inside.md", workspace / "memory" / "real.md")
    link(workspace / "memory" / "loop", workspace / "memory")
    link(workspace / "memory" / "picture.png", outside)
    link(workspace / "memory" / "dangling.md", tmp_path / "nowhere")
    source = NotesSource(workspace)
    assert paths(source) == ["memory/real.md"]
    assert problems(source) == [
        "MEMORY.md",
        "memory/dangling.md",
        "memory/file.md",
        "memory/folder",
        "memory/inside.md",
        "memory/loop",
    ]


def test_a_linked_memory_folder_is_not_followed(workspace, tmp_path):
    write(tmp_path / "outside" / "secret.md", "secret")
    link(workspace / "memory", tmp_path / "outside")
    source = NotesSource(workspace)
    assert paths(source) == []
    assert problems(source) == ["memory"]
    assert_escapes(source, "memory/secret.md")


def test_the_workspace_itself_may_be_reached_through_a_link(workspace, tmp_path):
    write(workspace / "memory" / "a.md", "found")
    link(tmp_path / "shortcut", workspace)
    source = NotesSource(tmp_path / "shortcut", [Path("memory")])
    assert paths(source) == ["memory/a.md"]
    assert source.read(source.list().files[0]).text == "found"


def test_extra_paths_inside_and_outside(workspace, tmp_path):
    write(workspace / "notes" / "x.md")
    write(workspace / "notes" / ".hidden" / "y.md")
    write(workspace / "README.md")
    write(tmp_path / "vault" / "deep" / "a.md", "vault a")
    write(tmp_path / "other" / "vault" / "b.md", "vault b")
    write(tmp_path / "single.md", "single")
    write(tmp_path / "other" / "single.md", "other single")
    source = NotesSource(
        workspace,
        [
            Path("notes"),
            workspace / "README.md",
            tmp_path / "vault",
            Path("../other/vault"),
            tmp_path / "single.md",
            tmp_path / "other" / "single.md",
        ],
    )
    listing = source.list()
    assert listing.problems == ()
    texts = {stamp.path: source.read(stamp).text for stamp in listing.files}
    assert texts == {
        "@single-2.md": "other single",
        "@single.md": "single",
        "@vault-2/b.md": "vault b",
        "@vault/deep/a.md": "vault a",
        "README.md": "text\n",
        "notes/x.md": "text\n",
    }
    assert list(texts) == sorted(texts)
    for path in texts:
        assert source.exists(path)
        assert source.resolve(path).is_file()
        assert source.stamp_of(path).path == path
    for path in ("single.md", "@vault/../single.md", "@vault-3/b.md", "@vault/.git/a.md", "@single.md/a.md"):
        assert not source.exists(path)


def test_extra_paths_that_overlap_give_each_file_once(workspace, tmp_path):
    write(workspace / "memory" / "a.md")
    write(workspace / "top.md")
    source = NotesSource(workspace, [Path("memory/a.md"), Path(), workspace, tmp_path])
    assert paths(source) == ["memory/a.md", "top.md"]


def test_a_hidden_folder_that_is_named_is_meant(workspace):
    write(workspace / ".notes" / "a.md")
    write(workspace / ".notes" / ".git" / "b.md")
    assert paths(NotesSource(workspace, [Path(".notes")])) == [".notes/a.md"]


def test_extra_paths_that_cannot_be_used_are_problems(workspace, tmp_path):
    write(workspace / "data.txt")
    write(tmp_path / "outside" / "deep" / "secret.md")
    link(tmp_path / "shortcut", tmp_path / "outside")
    link(workspace / "door", tmp_path / "outside")
    source = NotesSource(
        workspace, [Path("missing"), Path("data.txt"), tmp_path / "shortcut", Path("door"), Path("door/deep")]
    )
    assert paths(source) == []
    assert {Path(path).name for path in problems(source)} == {"missing", "data.txt", "@shortcut", "door", "deep"}


def test_labels_never_collide_with_folders_of_the_workspace(workspace, tmp_path):
    write(workspace / "@vault" / "a.md", "inside")
    write(tmp_path / "vault" / "a.md", "outside")
    source = NotesSource(workspace, [tmp_path / "vault", Path("@vault")])
    texts = {stamp.path: source.read(stamp).text for stamp in source.list().files}
    assert texts == {"@vault/a.md": "inside", "@vault-2/a.md": "outside"}


@UNREADABLE_POSSIBLE
def test_an_unreadable_folder_is_a_problem(workspace):
    write(workspace / "memory" / "a.md")
    closed = write(workspace / "memory" / "closed" / "b.md").parent
    closed.chmod(0)
    try:
        source = NotesSource(workspace)
        assert paths(source) == ["memory/a.md"]
        assert problems(source) == ["memory/closed"]
    finally:
        closed.chmod(0o700)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux stores names that are not text")
def test_a_name_that_is_not_text_is_a_printable_problem(workspace):
    write(workspace / "memory" / "a.md")
    Path(os.fsdecode(os.fsencode(workspace / "memory") + b"/bad\xff.md")).write_bytes(b"x")
    source = NotesSource(workspace)
    assert paths(source) == ["memory/a.md"]
    [problem] = source.list().problems
    assert problem.path == "memory/bad\\udcff.md"
    assert "rename" in problem.reason


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in the file system here")
def test_a_pipe_is_neither_listed_nor_waited_for(workspace):
    (workspace / "memory").mkdir()
    os.mkfifo(workspace / "memory" / "pipe.md")
    source = NotesSource(workspace)
    assert paths(source) == []
    assert problems(source) == ["memory/pipe.md"]
    with pytest.raises(OSError, match="not a regular file"):
        source.read(FileStamp("memory", "memory/pipe.md", 0, 0))
    assert not source.exists("memory/pipe.md")


def test_reading_gives_clean_text_and_everything_known_of_the_file(workspace):
    raw = b"\xef\xbb\xbf---\r\ntitle: Standup\r\n---\r\nhello \xff\r\n"
    file = workspace / "memory" / "2026-11-15-standup.md"
    write(file).write_bytes(raw)
    document = NotesSource(workspace).read(FileStamp("memory", "memory/2026-11-15-standup.md", 1, 1))
    assert document.text == "---\ntitle: Standup\n---\nhello \ufffd\n"
    assert document.content_hash == hashlib.sha256(raw).hexdigest()
    assert document.body_first_line == 4
    assert document.metadata == {"title": "Standup"}
    assert document.dated == date(2026, 11, 15)
    assert document.stamp.size == len(raw)
    assert document.stamp.mtime_ns == file.stat().st_mtime_ns


def test_a_note_is_dated_by_its_front_matter_if_its_name_says_nothing(workspace):
    text = "---\ndate: 2026-03-14T10:00:00Z\n---\nMet Ana.\n"
    write(workspace / "memory" / "ana.md", text)
    write(workspace / "memory" / "2026-11-15-ana.md", text)
    source = NotesSource(workspace)
    dates = {stamp.path: source.read(stamp).dated for stamp in source.list().files}
    assert dates == {"memory/2026-11-15-ana.md": date(2026, 11, 15), "memory/ana.md": date(2026, 3, 14)}


def test_a_file_that_is_gone_raises_and_does_not_exist(workspace):
    file = write(workspace / "memory" / "a.md")
    source = NotesSource(workspace)
    [stamp] = source.list().files
    assert source.exists("memory/a.md")
    file.unlink()
    assert not source.exists("memory/a.md")
    with pytest.raises(FileNotFoundError):
        source.read(stamp)
    with pytest.raises(NoteNotFoundError):
        source.resolve("memory/a.md")
    with pytest.raises(NoteNotFoundError):
        source.resolve("memory/never/was.md")
    with pytest.raises(NoteNotFoundError):
        source.resolve("MEMORY.md")


@pytest.mark.parametrize("swapped", ["file", "folder", "memory"])
def test_a_link_swapped_in_after_listing_is_not_read(workspace, tmp_path, swapped):
    write(workspace / "memory" / "deep" / "a.md", "note")
    write(tmp_path / "outside" / "deep" / "a.md", "secret")
    source = NotesSource(workspace)
    [stamp] = source.list().files
    real, target = {
        "file": (workspace / "memory/deep/a.md", tmp_path / "outside/deep/a.md"),
        "folder": (workspace / "memory/deep", tmp_path / "outside/deep"),
        "memory": (workspace / "memory", tmp_path / "outside"),
    }[swapped]
    real.rename(tmp_path / "moved-away")
    link(real, target)
    with pytest.raises(OSError):
        source.read(stamp)
    with pytest.raises(PathRefusedError):
        source.resolve(stamp.path)


@pytest.mark.skipif(sys.platform == "win32", reason="such names mean something else there")
@pytest.mark.parametrize(
    "name", ["10:30 standup.md", "a\\b.md", "aux.md", "100%25.md", "50%2f50.md", "folder /a.md", "what?.md"]
)
def test_odd_names_that_are_listed_can_be_read(workspace, name):
    write(workspace / "memory" / name, name)
    source = NotesSource(workspace)
    [stamp] = source.list().files
    assert stamp.path == f"memory/{name}"
    assert source.read(source.stamp_of(stamp.path)).text == name
    assert source.exists(stamp.path)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(0, b"start", id="a file at rest is read once"),
        pytest.param(1, b"start+", id="a change during the read is read, too"),
        pytest.param(99, b"start++", id="a file that never rests gives its last state read"),
    ],
)
def test_a_file_that_changes_while_it_is_read(tmp_path, changes, expected):
    path = tmp_path / "a.md"
    path.write_bytes(b"start")
    left = changes
    with io.FileIO(path) as file:

        def read_and_append() -> bytes:
            nonlocal left
            raw = file.readall()
            if left:
                left -= 1
                with path.open("ab") as writer:
                    writer.write(b"+")
            return raw

        raw, info = settled(read_and_append, file)
    assert raw == expected
    assert info.st_size == len(raw)
    at_rest = changes < MAX_READS
    assert (info.st_size == path.stat().st_size) is at_rest  # else the next listing must differ from this stamp


def assert_escapes(source: NotesSource, path: str) -> None:
    with pytest.raises(PathRefusedError):
        source.resolve(path)
    with pytest.raises(OSError):
        source.read(FileStamp("memory", path, 0, 0))


# --- decoding ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(b"", "", id="empty"),
        pytest.param("grün 漢字 🎉\n".encode(), "grün 漢字 🎉\n", id="utf-8"),
        pytest.param(codecs.BOM_UTF8 + b"# A", "# A", id="utf-8 with a mark"),
        pytest.param("# é\r\n".encode("utf-16"), "# é\n", id="utf-16 with a mark"),
        pytest.param(codecs.BOM_UTF16_BE + "# 漢".encode("utf-16-be"), "# 漢", id="utf-16 big endian"),
        pytest.param(codecs.BOM_UTF32_LE + "# 漢".encode("utf-32-le"), "# 漢", id="utf-32 is not taken for utf-16"),
        pytest.param("plain".encode("utf-16-le"), "plain", id="utf-16 without a mark stays readable"),
        pytest.param(codecs.BOM_UTF16_LE + b"a\x00\x00\xd8b\x00", "a\ufffdb", id="half a surrogate pair in utf-16"),
        pytest.param(codecs.BOM_UTF16_LE + b"a\x00b", "a\ufffd", id="utf-16 cut in the middle of a unit"),
        pytest.param(b"caf\xe9 au lait", "caf\ufffd au lait", id="latin-1 byte"),
        pytest.param(b"\xed\xa0\x80", "\ufffd\ufffd\ufffd", id="a surrogate written as utf-8"),
        pytest.param(b"a\x00b", "ab", id="NUL is removed"),
        pytest.param(b"a\r\nb\rc\nd", "a\nb\nc\nd", id="all three line ends"),
        pytest.param("a\u2028b\x0bc\x0cd\x85e".encode(), "a\u2028b\x0bc\x0cd\x85e", id="other breaks end no line"),
        pytest.param("a\ufeffb".encode(), "a\ufeffb", id="a mark inside the text is text"),
    ],
)
def test_decode_note(raw, expected):
    assert decode_note(raw) == expected


@given(st.binary(max_size=200))
def test_any_bytes_become_clean_text(raw):
    text = decode_note(raw)
    text.encode()  # raises for a lone surrogate
    assert "\0" not in text
    assert "\r" not in text
