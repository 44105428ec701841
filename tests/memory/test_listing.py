"""What `list` and `history` show, as the files are on disk, and what they refuse."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest

from notewell import EntryNotFoundError, Memory, NotewellError, QueryError

CLOCK = "2026-11-{day:02}T10:00:00+00:00"


def entry(text: str, entry_id: str, day: int, author: str = "main", more: str = "category=fact importance=5") -> str:
    return f"{text}\n<!-- notewell id={entry_id} date={CLOCK.format(day=day)} author={author} {more} -->\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    notes = {
        "MEMORY.md": "# Memory\n\nDana lives in Lisbon.\n",
        "memory/2026-11-10.md": "# 2026-11-10\n\n" + entry("The wifi is heron.", "aaaaaaaa", 10),
        "memory/wifi.md": "# Wifi\n\nThe router is in the hall.\n\n"
        + entry("The wifi is osprey.", "bbbbbbbb", 12, "dana", "category=decision importance=9 replaces=aaaaaaaa"),
        "memory/projects/queue.md": "---\ntitle: The queue\ndate: 2026-11-11\n---\nRestart it on Mondays.\n",
    }
    for path, text in notes.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        stamp = datetime.fromisoformat(CLOCK.format(day=1)).timestamp()
        os.utime(file, (stamp, stamp))
    return tmp_path


def shown(memory: Memory, **options) -> list[str]:
    return [item.citation for item in memory.list(**options).items]


@pytest.mark.parametrize("indexed", [True, False])
def test_entries_and_notes_are_listed_newest_first(folder, indexed):
    with Memory.open(folder, provider="none") as memory:
        if indexed:
            memory.index()
        found = memory.list()
        # Nothing but an entry is in memory/2026-11-10.md, so the note itself is not listed.
        assert [(item.kind, item.citation, item.text) for item in found.items] == [
            ("entry", "memory/wifi.md#L5", "The wifi is osprey."),
            ("note", "memory/projects/queue.md", "The queue"),
            ("entry", "memory/2026-11-10.md#L3", "The wifi is heron."),
            ("note", "MEMORY.md", "Memory"),
            ("note", "memory/wifi.md", "Wifi"),
        ]
        assert found.total == 5
        first = found.items[0]
        assert (first.entry, first.author, first.category, first.importance) == ("bbbbbbbb", "dana", "decision", 9)
        assert first.replaces == ("aaaaaaaa",)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"by": "Dana"}, ["memory/wifi.md#L5"], id="an author in any case"),
        pytest.param({"category": "fact"}, ["memory/2026-11-10.md#L3"], id="a category"),
        pytest.param(
            {"since": "2026-11-11"}, ["memory/wifi.md#L5", "memory/projects/queue.md"], id="since a day, inclusive"
        ),
        pytest.param({"until": "2026-11-09"}, ["MEMORY.md", "memory/wifi.md"], id="until a day, by last change"),
        pytest.param({"path": "memory/projects"}, ["memory/projects/queue.md"], id="a folder"),
        pytest.param({"path": "memory/w*.md"}, ["memory/wifi.md#L5", "memory/wifi.md"], id="a pattern"),
        pytest.param({"path": "memory/wifi.md#L4-L6"}, ["memory/wifi.md#L5"], id="a citation"),
        pytest.param({"path": "memory/no.md"}, [], id="nothing there"),
        pytest.param({"source": "memory", "limit": 1}, ["memory/wifi.md#L5"], id="a limit"),
    ],
)
def test_what_is_listed_can_be_narrowed(folder, options, expected):
    with Memory.open(folder, provider="none") as memory:
        memory.index()
        assert shown(memory, **options) == expected
        assert memory.list(**options).total >= len(expected)


def test_a_change_that_is_not_indexed_is_listed(folder):
    with Memory.open(folder, provider="none") as memory:
        memory.index()
        (folder / "memory/new.md").write_text(entry("The cat is grey.", "cccccccc", 17))
        (folder / "memory/wifi.md").unlink()
        assert shown(memory)[0] == "memory/new.md#L1"
        assert "memory/wifi.md" not in shown(memory)


def test_conversations_are_listed_by_title_and_last_message(folder):
    with Memory.open(folder, provider="none", sources=["memory", "sessions"]) as memory:
        store = memory.conversations
        for name, title in (("one", "About the boat"), ("two", None)):
            store.create(name, title=title)
            store.append(name, {"role": "user", "content": f"hello {name}", "timestamp": 1_780_000_000_000})
        found = memory.list(source="sessions")
        assert sorted((item.kind, item.path, item.text) for item in found.items) == [
            ("conversation", "sessions/chats/one.json5", "About the boat"),
            ("conversation", "sessions/chats/two.json5", "User: hello two"),
        ]
        assert len(memory.list().items) == 7


@pytest.mark.parametrize("reference", ["bbbbbbbb", "aaaaaaaa", "memory/wifi.md#L5", "memory/wifi.md#L3-L6"])
def test_the_history_of_an_entry_is_the_same_from_either_end(folder, reference):
    old = folder / "memory/2026-11-10.md"
    old.write_text(old.read_text().replace(" -->", " replaced-by=bbbbbbbb replaced-at=2026-11-12T10:00:00+00:00 -->"))
    with Memory.open(folder, provider="none") as memory:
        memory.index()
        assert [item.entry for item in memory.history(reference)] == ["bbbbbbbb", "aaaaaaaa"]


@pytest.mark.parametrize("reference", ["zzzzzzzz", "memory/wifi.md#L1", "memory/no.md#L3", "../secret.md#L1", ""])
def test_an_entry_that_does_not_exist_is_an_error(folder, reference):
    with Memory.open(folder, provider="none") as memory, pytest.raises(EntryNotFoundError, match="no remembered"):
        memory.history(reference)


def test_an_id_that_two_entries_have_is_an_error(folder):
    (folder / "memory/copy.md").write_text((folder / "memory/wifi.md").read_text())
    with Memory.open(folder, provider="none") as memory, pytest.raises(EntryNotFoundError, match="names 2"):
        memory.history("bbbbbbbb")


@pytest.mark.parametrize(
    "options", [{"limit": 0}, {"category": "food"}, {"since": "someday"}, {"source": "web"}, {"source": "sessions"}]
)
def test_what_cannot_be_listed_is_an_error(folder, options):
    with Memory.open(folder, provider="none") as memory, pytest.raises(NotewellError) as raised:
        memory.list(**options)
    assert raised.value.hint
    assert isinstance(raised.value, QueryError) or options == {"source": "sessions"}


def test_a_note_is_listed_by_its_first_line_of_text(folder):
    note = folder / "memory" / "readme.md"
    note.write_text('<div align="center">\n<img src="a.png">\n\n[![ci](b)](c)\n![logo](d)\n\n## Boat shed\n\nText.\n')
    with Memory.open(folder, provider="none") as memory:
        assert [item.text for item in memory.list(path="memory/readme.md").items] == ["Boat shed"]
        note.write_text("<br>\n")
        assert [item.text for item in memory.list(path="memory/readme.md").items] == ["<br>"]
