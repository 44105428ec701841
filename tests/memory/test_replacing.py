"""Entries that replace others: what is written, what a search shows first, the timeline, and what cannot be."""

from __future__ import annotations

import os
import threading
from datetime import date
from pathlib import Path

import pytest

from notewell import EntryNotFoundError, Memory, QueryError, RememberError
from notewell.agents.tools import MemoryTools
from notewell.text.entries import find_entries


@pytest.fixture
def memory(tmp_path: Path):
    with Memory.open(tmp_path, create=True, provider="none") as opened:
        yield opened


def entries(memory: Memory, path: str):
    return find_entries((memory.workspace / path).read_bytes().decode().replace("\r\n", "\n")).entries


def test_the_older_entry_stays_and_says_what_replaced_it(memory):
    old = memory.remember("the guest wifi is heron-guest", to="memory/wifi.md")
    before = (memory.workspace / "memory/wifi.md").read_text()
    new = memory.remember("the guest network is called osprey", to="memory/net.md", replaces=old.citation)
    assert new.replaced == (new.replaced and type(new.replaced)(old.entry, old.citation))
    (older,) = entries(memory, "memory/wifi.md")
    assert (older.id, older.text, older.replaced_by) == (old.entry, "the guest wifi is heron-guest", new.entry)
    assert older.replaced_at is not None
    (newer,) = entries(memory, "memory/net.md")
    assert newer.replaces == (old.entry,)
    now = (memory.workspace / "memory/wifi.md").read_text()
    assert now.startswith(before.split(" -->")[0])  # nothing else changed


@pytest.mark.parametrize("query", ["guest wifi heron", "guest", "heron"])
def test_a_search_shows_the_newest_first_and_says_what_it_replaced(memory, query):
    first = memory.remember("the guest wifi is heron-guest", to="memory/wifi.md")
    second = memory.remember("visitors use the network osprey", to="memory/net.md", replaces=first.entry)
    third = memory.remember("people who visit use kestrel", to="memory/net.md", replaces=second.entry)
    hits = memory.search(query, min_score=0.0).hits
    assert hits[0].entry == third.entry
    assert hits[0].snippet == "people who visit use kestrel"
    assert [place.entry for place in hits[0].replaces] == [second.entry]
    older = next(hit for hit in hits if hit.entry == first.entry)
    assert older.replaced_by is not None
    assert (older.replaced_by.entry, older.replaced_by.citation) == (third.entry, third.citation)
    assert memory.search(query, limit=1, min_score=0.0).hits[0].entry == third.entry
    # Who asks for a category or a time gets what is of it.
    assert memory.search(query, until=date(2026, 1, 1), min_score=0.0, category="fact").hits == ()


def test_replacements_show_on_the_command_line_and_to_agents(notewell_in, memory):
    old = memory.remember("the guest wifi is heron-guest", to="memory/wifi.md")
    done = notewell_in("remember", "the guest wifi is osprey", "--to", "memory/wifi.md", "--replaces", old.entry)
    assert f"replaces {old.citation}" in done.out
    shown = notewell_in("search", "guest", "wifi").out
    assert shown.index("osprey") < shown.index("heron-guest")
    assert f"replaces {old.citation}" in shown
    assert "replaced by memory/wifi.md#L6" in shown
    hits = MemoryTools(memory).call("memory_search", {"query": "guest wifi"}).document["hits"]
    assert hits[0]["replaces"] == [{"entry": old.entry, "citation": old.citation}]
    history = notewell_in("history", old.entry, "--json").document["entries"]
    assert [entry["text"] for entry in history] == ["the guest wifi is osprey", "the guest wifi is heron-guest"]


@pytest.fixture
def notewell_in(memory, capsys, monkeypatch):
    from notewell.cli.main import run
    from tests.cli.conftest import Outcome

    def call(*words: str) -> Outcome:
        capsys.readouterr()
        code = run([*words, "-w", str(memory.workspace), "--set", "provider=none"])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.mark.parametrize("reference", ["zzzzzzzz", "memory/none.md#L3", "MEMORY.md", "../x.md#L1"])
def test_what_does_not_exist_cannot_be_replaced_and_nothing_is_written(memory, reference):
    with pytest.raises(EntryNotFoundError):
        memory.remember("new", to="memory/new.md", replaces=reference)
    assert not (memory.workspace / "memory/new.md").exists()


def test_an_entry_is_replaced_once(memory):
    old = memory.remember("the wifi is heron")
    new = memory.remember("the wifi is osprey", replaces=old.entry)
    with pytest.raises(RememberError, match=f"replaced already, by {new.entry}"):
        memory.remember("the wifi is kestrel", replaces=old.entry)


def test_what_was_replaced_may_become_true_again(memory):
    old = memory.remember("the office is in Lisbon", to="memory/a.md")
    new = memory.remember("the office is in Porto", to="memory/a.md", replaces=old.entry)
    assert not memory.remember("the office is in Porto", to="memory/b.md").written
    for path in ("memory/a.md", "memory/b.md"):
        again = memory.remember(
            "the office is in Lisbon", to=path, replaces=new.entry if path.endswith("a.md") else None
        )
        assert again.written is (path == "memory/a.md")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_bytes_around_the_comment_stay(memory, newline):
    note = memory.workspace / "memory/odd.md"
    text = "# Odd\n\nthe wifi is heron\n<!-- notewell id=aaaaaaaa author=dana -->\n\nafter \x0c it\n"
    note.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", newline).encode() + b"\xff\n")
    memory.remember("the wifi is osprey", to="memory/new.md", replaces="aaaaaaaa")
    raw = note.read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf# Odd")
    assert raw.endswith(f"after \x0c it{newline}".encode() + b"\xff\n")
    assert b"id=aaaaaaaa author=dana" in raw
    assert b"replaced-by=" in raw


def test_an_entry_of_an_earlier_release_can_be_replaced(memory):
    note = memory.workspace / "memory/old.md"
    note.write_text("# Old\n\nthe wifi is heron\n\n_Noted 2026-11-16 09:05 +0200 by main, from the command line._\n")
    memory.remember("the wifi is osprey", to="memory/new.md", replaces="memory/old.md#L3")
    (older,) = entries(memory, "memory/old.md")
    assert (older.text, older.author, bool(older.replaced_by)) == ("the wifi is heron", "main", True)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs permissions that bind")
def test_a_note_that_cannot_be_changed_is_reported(memory):
    old = memory.remember("the wifi is heron", to="memory/sub/a.md")
    folder = memory.workspace / "memory/sub"
    folder.chmod(0o500)
    try:
        done = memory.remember("the wifi is osprey", to="memory/b.md", replaces=old.entry)
        assert done.written
        assert done.replaced is None
        assert "could not be marked as replaced" in done.notes[0]
    finally:
        folder.chmod(0o700)


def test_two_at_once_replace_it_once(memory):
    old = memory.remember("the wifi is heron", to="memory/a.md")
    outcomes: list[object] = []

    def replace(number: int) -> None:
        try:
            outcomes.append(memory.remember(f"the wifi is osprey-{number}", to="memory/b.md", replaces=old.entry))
        except RememberError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=replace, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = [each for each in outcomes if not isinstance(each, RememberError)]
    assert len(written) == 1
    assert len(entries(memory, "memory/b.md")) == 1


def test_a_circle_that_somebody_wrote_by_hand_ends(memory):
    (memory.workspace / "memory/c.md").write_text(
        "one of the circle\n<!-- notewell id=aaaaaaaa replaced-by=bbbbbbbb -->\n\n"
        "two of the circle\n<!-- notewell id=bbbbbbbb replaced-by=aaaaaaaa -->\n\n"
        "three, its successor is gone\n<!-- notewell id=cccccccc replaced-by=dddddddd -->\n"
    )
    assert {hit.entry for hit in memory.search("circle successor", min_score=0.0).hits} == {
        "aaaaaaaa",
        "bbbbbbbb",
        "cccccccc",
    }
    assert len(memory.history("aaaaaaaa")) == 2


# --- timeline -----------------------------------------------------------------------------------


def test_a_timeline_is_what_search_finds_by_date(memory):
    notes = {
        "memory/2026-09-02.md": "The boiler was serviced.\n",
        "memory/2025-01-07.md": "The boiler leaked.\n",
        "memory/house.md": "# House\n\nThe boiler is in the cellar.\n",
        "memory/log.md": "# Log\n\n## 2026-03-05\n\nNew valve for the boiler.\n",
        "memory/facts.md": "The boiler is a Vaillant.\n<!-- notewell id=aaaaaaaa date=2026-05-01T10:00:00+00:00 -->\n",
    }
    for path, text in notes.items():
        (memory.workspace / path).write_text(text)
    answer = memory.timeline("the boiler", min_score=0.0)
    assert [(hit.dated and hit.dated.isoformat(), hit.path) for hit in answer.hits] == [
        ("2025-01-07", "memory/2025-01-07.md"),
        ("2026-03-05", "memory/log.md"),
        ("2026-05-01", "memory/facts.md"),
        ("2026-09-02", "memory/2026-09-02.md"),
        (None, "memory/house.md"),
    ]
    assert len(memory.timeline("the boiler", min_score=0.0, limit=2).hits) == 2


def test_a_timeline_on_the_command_line(memory, notewell_in):
    (memory.workspace / "memory/2026-09-02.md").write_text("The boiler was serviced.\n")
    (memory.workspace / "memory/house.md").write_text("# House\n\nThe boiler is in the cellar.\n")
    lines = notewell_in("timeline", "the", "boiler").out.splitlines()
    assert lines[0].startswith("2026-09-02  memory/2026-09-02.md#L1")
    assert lines[0].endswith("The boiler was serviced.")
    assert lines[1].startswith("undated     memory/house.md")
    document = notewell_in("timeline", "boiler", "--json").document
    assert [hit["date"] for hit in document["hits"]] == ["2026-09-02", None]
    assert notewell_in("timeline", "zebra").out == "no hits\n"
    assert notewell_in("timeline").code == 2


# --- lines that somebody wrote by hand -------------------------------------------------------------

GARDEN = """---
title: Garden
---
# Garden

The tap is behind the shed,
left of the compost.

- The hose is 20 m long.
- The key hangs in the hall,
  beside the mirror.
- Seeds are in the blue box.

| bed | plant |
|---|---|
| 1 | beans |

```
tap=1
```
"""


@pytest.fixture
def garden(memory) -> Path:
    note = memory.workspace / "memory" / "garden.md"
    note.write_text(GARDEN)
    memory.index()
    return note


@pytest.mark.parametrize(
    ("lines", "text", "comment_at"),
    [
        pytest.param("L6-L7", "The tap is behind the shed,\nleft of the compost.", "", id="a paragraph"),
        pytest.param("L9", "- The hose is 20 m long.", "  ", id="the first item of a list"),
        pytest.param("L10-L11", "- The key hangs in the hall,\n  beside the mirror.", "  ", id="an item of two lines"),
        pytest.param("L12", "- Seeds are in the blue box.", "  ", id="the last item"),
    ],
)
def test_lines_written_by_hand_stay_and_say_what_replaced_them(memory, garden, lines, text, comment_at):
    done = memory.remember("It is all in the new shed.", to="memory/shed.md", replaces=f"memory/garden.md#{lines}")
    assert done.replaced is not None
    assert done.replaced.citation == f"memory/garden.md#{lines}"
    (older,) = entries(memory, "memory/garden.md")
    assert (older.text, older.replaced_by, older.id) == (text, done.entry, done.replaced.entry)
    assert older.replaced_at is not None
    now = garden.read_text().split("\n")
    comment = now.pop(older.comment_line - 1)
    assert comment.startswith(f"{comment_at}<!-- notewell id=")
    assert "\n".join(now) == GARDEN  # nothing else changed
    hits = memory.search(text.split(",")[0], min_score=0.0).hits
    assert hits[0].entry == done.entry
    replaced = next(hit for hit in hits if hit.entry == older.id)
    assert replaced.snippet.endswith(text)
    assert [item.text for item in memory.history(done.entry)] == ["It is all in the new shed.", text]
    with pytest.raises(RememberError, match="is replaced already"):
        memory.remember("again", replaces=f"memory/garden.md#{lines}")


def test_the_items_around_it_can_be_replaced_and_forgotten_too(memory, garden):
    for number, text in ((9, "hose"), (11, "key"), (14, "seeds")):
        memory.get("memory/garden.md")
        last = number + 1 if text == "key" else number
        memory.remember(f"new {text}", to="memory/new.md", replaces=f"memory/garden.md#L{number}-L{last}")
    assert [entry.line_count for entry in entries(memory, "memory/garden.md")] == [1, 2, 1]
    hose, key, seeds = entries(memory, "memory/garden.md")
    memory.forget(key.id)
    assert [entry.id for entry in entries(memory, "memory/garden.md")] == [hose.id, seeds.id]
    memory.undo()
    memory.get("memory/garden.md")
    memory.forget(f"memory/garden.md#L{key.last_line}")
    assert [entry.text for entry in entries(memory, "memory/garden.md")][1] == "- The key hangs in the hall,"


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("L2", id="front matter"),
        pytest.param("L4", id="a heading"),
        pytest.param("L6", id="a part of a paragraph"),
        pytest.param("L9-L10", id="two items"),
        pytest.param("L11", id="the end of an item"),
        pytest.param("L16", id="a row of a table"),
        pytest.param("L19", id="code"),
        pytest.param("L5", id="a blank line"),
        pytest.param("L90", id="no line"),
    ],
)
def test_what_is_no_statement_cannot_be_replaced_and_nothing_is_written(memory, garden, lines):
    with pytest.raises(RememberError):
        memory.remember("new", to="memory/new.md", replaces=f"memory/garden.md#{lines}")
    assert garden.read_text() == GARDEN
    assert not (memory.workspace / "memory/new.md").exists()


def test_a_citation_that_may_be_an_old_one_replaces_nothing(memory, garden):
    memory.forget("memory/garden.md#L9")
    with pytest.raises(QueryError, match="L9  - The key hangs"):
        memory.remember("new", to="memory/new.md", replaces="memory/garden.md#L9-L10")
    assert "replaced-by" not in garden.read_text()
    memory.remember("new", to="memory/new.md", replaces="memory/garden.md#L9-L10")  # now it has been shown
    assert entries(memory, "memory/garden.md")[0].text == "- The key hangs in the hall,\n  beside the mirror."


def test_a_note_with_other_line_ends_keeps_them(memory):
    note = memory.workspace / "memory" / "old.md"
    note.write_bytes(b"- one is red\r\n- two is blue")
    memory.remember("two is green", to="memory/new.md", replaces="memory/old.md#L2")
    first, second, comment, rest = note.read_bytes().split(b"\r\n")
    assert (first, second, rest) == (b"- one is red", b"- two is blue", b"")
    assert comment.startswith(b"  <!-- notewell id=")


def test_a_group_cannot_replace_what_it_did_not_write(memory, garden):
    with pytest.raises(QueryError, match="not written by this group"):
        memory.remember("new", replaces="memory/garden.md#L9", chat="group")
    assert garden.read_text() == GARDEN
