"""`remember`: written with its provenance, found at once, not twice, private where it must be, on every surface."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import pytest

from notewell import AsyncMemory, Memory, PathRefusedError, QueryError, RememberError
from notewell.cli.main import run
from notewell.embedding.hashing import HashingEmbedder
from notewell.memory.remember import remember
from notewell.text.entries import Entry, find_entries

FACT = "The ferry to Almada leaves from pier four"


@pytest.fixture
def memory(workspace):
    with Memory.open(workspace, provider="none") as opened:
        yield opened


def test_it_is_written_and_found_at_once(memory, workspace):
    done = memory.remember(FACT)
    assert done.written
    assert done.path == f"memory/{datetime.now().astimezone().date().isoformat()}.md"
    text = (workspace / done.path).read_text()
    assert text.split("\n")[done.first_line - 1] == FACT
    assert f"<!-- notewell id={done.entry} date=" in text
    assert ' author=main source="the library" category=other importance=5 -->\n' in text
    (hit, *_) = memory.search("ferry Almada", sync=False).hits
    assert hit.path == done.path


def test_with_vectors_it_is_a_hybrid_hit(workspace):
    with Memory.open(workspace, embedder=HashingEmbedder()) as memory:
        memory.remember(FACT, to="memory/boats.md", who="Dana", source="a letter")
        (hit, *_) = memory.search("ferry Almada", sync=False).hits
        assert hit.found_by == "hybrid"
        assert hit.path == "memory/boats.md"
    assert ' author=Dana source="a letter" ' in (workspace / "memory/boats.md").read_text()


def test_what_is_known_is_pointed_out_and_not_written_twice(memory, workspace):
    before = {path: path.read_bytes() for path in workspace.rglob("*.md")}
    done = memory.remember("the guest network is VLAN 30, its name is heron-guest")
    assert not done.written
    assert done.citation == "memory/network.md#L5"
    assert done.known[0].same
    assert {path: path.read_bytes() for path in workspace.rglob("*.md")} == before
    assert memory.remember("the guest network is VLAN 30, its name is heron-guest", force=True).written


def test_what_is_only_similar_is_written_and_pointed_out(memory):
    done = memory.remember("The guest network is VLAN 31, its name is heron-guest.")
    assert done.written
    assert [known.same for known in done.known] == [False]
    assert done.known[0].citation == "memory/network.md#L5"


def test_the_day_is_that_of_the_user_s_zone(memory):
    late = datetime(2026, 3, 1, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    done = remember(memory._components, Entry(FACT, date=late, author="main", source="test"), to=None)
    assert done.path == "memory/2026-03-01.md"


def test_a_search_that_cannot_index_does_not_undo_the_note(workspace, monkeypatch):
    with Memory.open(workspace, provider="none") as memory:
        memory.index()
        (current,) = memory._components.folder.path.glob("index-*.sqlite")
    for side in ("-wal", "-shm"):
        current.with_name(current.name + side).unlink(missing_ok=True)
    current.write_bytes(b"damaged " * 500)
    with Memory.open(workspace, provider="none") as memory:
        assert memory.remember(FACT).written
        assert memory.search("ferry").hits


@pytest.mark.slow
def test_processes_at_once_write_it_once(workspace):
    script = (
        "import sys; from notewell import Memory\n"
        "with Memory.open(sys.argv[1], provider='none') as m: print(m.remember(sys.argv[2]).written)"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", script, str(workspace), FACT], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = sorted(process.communicate(timeout=120)[0].strip() for process in started)
    assert answers == ["False", "False", "True"]


def test_a_group_neither_writes_nor_learns_private_notes(memory, workspace):
    for path in ("MEMORY.md", "memory/private/x.md"):
        with pytest.raises(PathRefusedError):
            memory.remember(FACT, to=path, chat="group")
    assert not (workspace / "memory/private/x.md").exists()
    done = memory.remember("Owner: Dana Whitfield, lives in Lisbon.", chat="group")
    assert done.written
    assert done.known == ()


def test_the_command(workspace, capsys):
    assert run(["remember", FACT, "--to", "memory/boats.md", "-w", str(workspace), "--set", "provider=none"]) == 0
    assert capsys.readouterr().out.startswith("memory/boats.md#L3  written")
    assert run(["remember", FACT, "-w", str(workspace), "--set", "provider=none", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["written"] is False
    assert answer["citation"] == "memory/boats.md#L3"


def test_a_category_and_an_importance_are_kept_shown_and_filtered_by(memory, workspace):
    decided = memory.remember("We keep the ferry to Almada", category="decision", importance=9)
    memory.remember(FACT, category="fact")
    (workspace / "memory/ferry.md").write_text("# Ferry\n\nThe ferry to Almada is green.\n")
    hits = {(hit.entry, hit.category, hit.importance) for hit in memory.search("ferry Almada", min_score=0).hits}
    assert (decided.entry, "decision", 9) in hits
    assert (None, None, None) in hits
    for mode in ("keyword", "hybrid"):
        (hit,) = memory.search("ferry Almada", category="decision", min_score=0, mode=mode).hits
        assert hit.entry == decided.entry
        assert hit.snippet.endswith("We keep the ferry to Almada")
    assert memory.search("ferry Almada", category="entity", min_score=0).hits == ()


def test_a_category_filters_the_semantic_side_and_groups_see_only_theirs(workspace):
    with Memory.open(workspace, embedder=HashingEmbedder()) as memory:
        memory.remember("We keep the ferry to Almada", category="decision")
        memory.remember("We keep the ferry of Dana", category="decision", to="MEMORY.md")
        memory.remember(FACT, category="fact")
        found = memory.search("ferry", category="decision", mode="semantic", min_score=0).hits
        assert {hit.category for hit in found} == {"decision"}
        assert len(found) == 2
        (hit,) = memory.search("ferry", category="decision", min_score=0, chat="group").hits
        assert "Almada" in hit.snippet


def test_the_comment_is_neither_searched_nor_embedded_nor_shown(workspace):
    seen = []

    class Watched(HashingEmbedder):
        def embed_documents(self, texts):
            seen.extend(texts)
            return super().embed_documents(texts)

    with Memory.open(workspace, embedder=Watched()) as memory:
        done = memory.remember(FACT, who="Grzegorz", source="a parchment", category="fact")
        assert memory.search("Grzegorz parchment", mode="keyword", min_score=0).hits == ()
        assert done.entry
        assert memory.search("notewell author category", mode="keyword", min_score=0).hits == ()
        (hit, *_) = memory.search("ferry Almada").hits
        assert "notewell" not in hit.snippet
    assert any(FACT in text for text in seen)
    assert not any("Grzegorz" in text or "<!--" in text for text in seen)


def test_a_label_changed_by_hand_is_known_after_the_next_sync_and_embeds_nothing(workspace):
    with Memory.open(workspace, embedder=HashingEmbedder()) as memory:
        done = memory.remember(FACT, category="fact")
        note = workspace / done.path
        note.write_text(note.read_text().replace("category=fact importance=5", "category=entity importance=2"))
        assert memory.index().embedded == 0
        (hit,) = memory.search("ferry Almada", category="entity").hits
        assert (hit.entry, hit.importance) == (done.entry, 2)


def test_what_a_comment_says_is_not_a_known_statement(memory):
    memory.remember(FACT, who="Dana", source="a letter about tulips")
    assert memory.remember("a letter about tulips").written


@pytest.mark.parametrize("wrong", [{"category": "idea"}, {"importance": 0}, {"importance": 11}, {"importance": "5"}])
def test_a_wrong_label_is_refused_and_nothing_is_written(memory, workspace, wrong):
    with pytest.raises(RememberError) as raised:
        memory.remember(FACT, to="memory/boats.md", **wrong)
    assert raised.value.hint
    assert not (workspace / "memory/boats.md").exists()
    with pytest.raises(QueryError, match="no category 'idea'"):
        memory.search("ferry", category="idea")


def test_an_entry_of_an_earlier_release_is_found_with_the_default_label(memory, workspace):
    noted = f"# Day\n\n{FACT}\n\n_Noted 2026-11-16 09:05 +0200 by Dana, from a letter._\n"
    (workspace / "memory/2026-11-16.md").write_text(noted)
    (hit,) = memory.search("ferry Almada", category="other").hits
    assert (hit.category, hit.importance, len(hit.entry)) == ("other", 5, 8)
    assert "_Noted" not in hit.snippet
    assert not memory.remember(FACT).written


def test_the_command_keeps_and_filters_labels(workspace, capsys):
    common = ["-w", str(workspace), "--set", "provider=none"]
    assert run(["remember", FACT, "--category", "decision", "--importance", "8", "--json", *common]) == 0
    entry = json.loads(capsys.readouterr().out)["entry"]
    assert run(["search", "ferry Almada", "--category", "decision", "--json", *common]) == 0
    (hit,) = json.loads(capsys.readouterr().out)["hits"]
    assert (hit["entry"], hit["category"], hit["importance"]) == (entry, "decision", 8)
    assert run(["search", "ferry Almada", "--category", "decision", *common]) == 0
    assert "keyword, decision, importance 8" in capsys.readouterr().out
    assert run(["search", "ferry Almada", "--category", "fact", "--json", *common]) == 0
    assert json.loads(capsys.readouterr().out)["hits"] == []
    assert run(["remember", FACT, "--importance", "11", *common]) == 2
    assert run(["search", "ferry", "--category", "idea", *common]) == 2


def test_forgetting_lines_of_an_entry_keeps_the_rest_of_it(memory, workspace):
    done = memory.remember("First part of it.\n\nSecond part of it.", to="memory/boats.md", category="fact")
    memory.forget(match="Second part")
    (entry,) = find_entries((workspace / "memory/boats.md").read_text()).entries
    assert (entry.text, entry.id, entry.category) == ("First part of it.", done.entry, "fact")
    memory.forget(match="First part")
    assert "notewell" not in (workspace / "memory/boats.md").read_text()


def test_the_command_reads_standard_input(workspace, capsys, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("line one\nline two\n"))
    assert run(["remember", "-", "--to", "memory/in.md", "-w", str(workspace), "--set", "provider=none"]) == 0
    assert "line one\nline two\n" in (workspace / "memory/in.md").read_text()


def test_the_same_for_code_in_an_event_loop(workspace):
    async def both():
        async with await AsyncMemory.open(workspace, provider="none") as memory:
            done = await memory.remember(FACT)
            return done, await memory.forget(match="pier four")

    done, report = asyncio.run(both())
    assert done.written
    assert [each.path for each in report.forgotten] == [done.path]


# --- secrets -------------------------------------------------------------------------------------

PASSWORD = "hunter2-Zx9!"


def test_a_password_is_not_written(memory, workspace):
    done = memory.remember(f"password of the router is {PASSWORD}", to="memory/home.md")
    assert done.redacted == ("password",)
    assert done.kept == ()
    assert PASSWORD not in (workspace / "memory/home.md").read_text()


def test_a_password_is_kept_when_asked_for_and_said_so(memory, workspace):
    done = memory.remember(f"password of the router is {PASSWORD}", to="memory/home.md", keep_secret=True)
    assert done.kept == ("password",)
    assert done.redacted == ()
    assert "written as it is, because you asked for it: password" in done.notes
    assert PASSWORD in (workspace / "memory/home.md").read_text()
    assert not memory.remember(f"password of the router is {PASSWORD}", to="memory/home.md", keep_secret=True).written


def test_the_search_for_similar_notes_does_not_carry_the_secret(workspace):
    class Listening(HashingEmbedder):
        def embed_query(self, text):
            asked.append(text)
            return super().embed_query(text)

    asked: list[str] = []
    with Memory.open(workspace, embedder=Listening()) as memory:
        memory.remember(f"password of the router is {PASSWORD}", keep_secret=True)
    assert asked
    assert PASSWORD not in "".join(asked)


def test_the_command_keeps_a_secret_and_says_so(workspace, capsys):
    text = f"the router password: {PASSWORD}"
    assert run(["remember", text, "--to", "memory/home.md", "--keep-secret", "-w", str(workspace)]) == 0
    assert "written as it is, because you asked for it: password" in capsys.readouterr().err
    assert PASSWORD in (workspace / "memory/home.md").read_text()
