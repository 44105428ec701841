"""Changes that keep size and modification time, as `cp -p`, `rsync -t` and restores make them."""

from __future__ import annotations

import json
import os
import shutil
import time

import apsw
import pytest

from notewell import Memory

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has neither ctime nor inodes in a listing")

OLD, NEW = "VLAN 30", "VLAN 77"


@pytest.fixture
def note(indexed):
    time.sleep(0.03)  # two ticks of the file system's clock: what was just written is read once more anyway
    return indexed / "memory" / "network.md"


def hide_a_change(note):
    """Replace text by text of the same length; the file keeps its size and mtime."""
    before = note.stat()
    note.write_text(note.read_text().replace(OLD, NEW))
    os.utime(note, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = note.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def forget_the_stamps(folder, note):
    """Let the index believe that it has read the note as it is now, as on a disk without ctime and inodes."""
    with Memory.open(folder, provider="hashing") as memory:
        path = memory._components.folder.current()
    info = note.stat()
    database = apsw.Connection(str(path))
    database.execute("UPDATE documents SET ctime_ns = ?, inode = ?", (info.st_ctime_ns, info.st_ino))
    database.close()


def shows_the_change(notewell, folder, *words: str) -> bool:
    answer = notewell("search", "guest network VLAN", "-w", folder, "--json", *words).document
    return NEW in json.dumps(answer["hits"])


def test_a_search_finds_a_change_that_keeps_size_and_mtime(notewell, indexed, note):
    hide_a_change(note)
    assert notewell("status", "-w", indexed, "--json").document["stale"]
    assert notewell("doctor", "-w", indexed).code == 1
    assert shows_the_change(notewell, indexed)
    assert not notewell("status", "-w", indexed, "--json").document["stale"]


def test_a_file_put_in_its_place_is_found(notewell, indexed, note, tmp_path):
    other = tmp_path / "restored.md"
    shutil.copy2(note, other)
    hide_a_change(other)
    other.replace(note)
    assert shows_the_change(notewell, indexed)


def test_a_running_server_finds_it(indexed, note):
    with Memory.open(indexed, provider="hashing") as memory:
        assert OLD in memory.search("guest network VLAN").hits[0].snippet
        hide_a_change(note)
        assert NEW in memory.search("guest network VLAN").hits[0].snippet


def test_index_check_reads_every_note(notewell, indexed, note):
    hide_a_change(note)
    forget_the_stamps(indexed, note)
    assert notewell("index", "memory/2026-11-01.md", "-w", indexed, "--json").document["changed"] == 0
    preview = notewell("index", "--check", "--dry-run", "-w", indexed, "--json").document
    assert preview["changed"] == ["memory/network.md"]
    done = notewell("index", "--check", "-w", indexed, "--json").document
    assert (done["changed"], done["unchanged"]) == (1, 6)
    assert shows_the_change(notewell, indexed, "--no-sync")


def test_index_with_a_path_reads_that_note(notewell, indexed, note):
    hide_a_change(note)
    forget_the_stamps(indexed, note)
    done = notewell("index", "memory/network.md", "-w", indexed, "--json").document
    assert (done["changed"], done["unchanged"]) == (1, 0)
    assert shows_the_change(notewell, indexed, "--no-sync")


def test_freshness_says_what_it_goes_by(notewell, indexed):
    assert "yes, by size, times and inode" in notewell("status", "-w", indexed).out
    (fresh,) = [line for line in notewell("doctor", "-w", indexed).out.splitlines() if " fresh " in line]
    assert "as far as sizes, times and inodes tell; `notewell index --check` reads every note" in fresh


def test_a_change_of_permissions_is_no_change(notewell, indexed, note):
    note.chmod(0o600)
    done = notewell("index", "-w", indexed, "--json").document
    assert (done["changed"], done["unchanged"]) == (0, 7)


def test_an_index_of_the_last_release_reads_each_note_once(notewell, indexed, note):
    with Memory.open(indexed, provider="hashing") as memory:
        path = memory._components.folder.current()
    database = apsw.Connection(str(path))
    database.execute("ALTER TABLE documents DROP COLUMN ctime_ns; ALTER TABLE documents DROP COLUMN inode")
    database.execute("PRAGMA user_version = 2")
    database.close()
    hide_a_change(note)
    assert shows_the_change(notewell, indexed)
    done = notewell("index", "-w", indexed, "--json").document
    assert (done["changed"], done["unchanged"]) == (0, 7)
    assert notewell("verify", "-w", indexed).code == 0


def test_a_hidden_change_in_a_conversation(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    with Memory.open(folder, provider="hashing", sources="memory, sessions") as memory:
        talk = memory.conversations
        session = talk.create()
        said = (f"message {number} about the harbour gate and its colour: green" for number in range(300))
        update = talk.append(session.session_id, *({"role": "user", "content": text} for text in said))
        memory.index()
        file = update.path
        time.sleep(0.03)
        before = file.stat()
        text = file.read_text().replace("message 150 about the harbour", "message 150 about the lantern")
        file.write_text(text)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert memory.search("lantern", mode="keyword").hits
