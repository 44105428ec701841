"""Memory from the outside: index, search, get and status on real folders."""

from __future__ import annotations

import asyncio
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from notewell import (
    AsyncMemory,
    Memory,
    NoteNotFoundError,
    PathRefusedError,
    QueryError,
    RememberError,
    WorkspaceError,
)


@pytest.fixture
def memory(workspace):
    with Memory.open(workspace, provider="hashing") as opened:
        opened.index()
        yield opened


def paths(answer):
    return [hit.path for hit in answer.hits]


# --- finding ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "path"),
    [
        pytest.param("guest network name", "memory/network.md", id="words"),
        pytest.param("HARB-214", "memory/2026-11-01.md", id="an identifier"),
        pytest.param("192.168.10.7", "memory/network.md", id="an address"),
        pytest.param("projects/queue.md", "memory/projects/queue.md", id="a path"),
        pytest.param("移", "memory/中文.md", id="one Chinese character"),
        pytest.param("数据库迁移", "memory/中文.md", id="Chinese"),
        pytest.param("バックアップ", "memory/日本語.md", id="Japanese"),
        pytest.param("데이터베이스", "memory/한국어.md", id="Korean"),
        pytest.param("이스", "memory/한국어.md", id="the inside of a Korean word"),
    ],
)
@pytest.mark.parametrize("provider", ["hashing", "none"])
def test_search_finds_the_note(workspace, provider, query, path):
    with Memory.open(workspace, provider=provider) as memory:
        answer = memory.search(query)
        assert answer.mode == ("keyword" if provider == "none" else "hybrid")
        assert paths(answer)[0] == path


def test_a_hit_carries_its_citation_and_the_lines_it_names(memory, workspace):
    hit = memory.search("guest network name").hits[0]
    assert hit.citation == f"{hit.path}#L{hit.first_line}-L{hit.last_line}"
    lines = (workspace / hit.path).read_text(encoding="utf-8").split("\n")
    assert "\n".join(lines[hit.first_line - 1 : hit.last_line]) == hit.snippet


def test_scores_explain_themselves_on_request(memory):
    assert memory.search("guest network").hits[0].explanation is None
    explanation = memory.search("guest network", explain=True).hits[0].explanation
    assert {"cosine", "bm25", "vector_part", "text_part"} <= set(explanation)


@pytest.mark.parametrize("fusion", ["balanced", "weighted", "rrf"])
def test_the_best_k_are_the_first_of_the_best_k_plus_n(memory, fusion):
    everything = memory.search("database network queue", limit=50, min_score=0, fusion=fusion)
    assert len(everything.hits) > 3
    for limit in range(1, len(everything.hits)):
        fewer = memory.search("database network queue", limit=limit, min_score=0, fusion=fusion)
        assert fewer.hits == everything.hits[:limit]


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize("provider", ["hashing", "none"])
def test_the_rarest_word_finds_its_note_in_a_corpus_of_any_size(tmp_path, size, provider):
    for i in range(size):
        (tmp_path / "memory").mkdir(exist_ok=True)
        (tmp_path / f"memory/n{i}.md").write_text(f"# Note {i}\n\nAll notes mention the harbour; this one xyzzy{i}q.\n")
    with Memory.open(tmp_path, provider=provider) as memory:
        memory.index()
        for i in range(0, size, 7):
            assert f"memory/n{i}.md" in paths(memory.search(f"xyzzy{i}q"))[:5]


@pytest.mark.parametrize(
    "query", ["", "   ", '"', "*", "NEAR(", "a AND", "\x00", "-- ''", "{}[]()", "🎉", "x" * 100_000, "\ud800"]
)
def test_a_query_without_a_known_word_finds_nothing_and_is_no_error(memory, query):
    answer = memory.search(query)
    assert (answer.query.removesuffix("..."), answer.hits) == (query[:397], ())


@pytest.mark.parametrize("syntax", ['"{}', "*{}", "NEAR({}", "{} AND", "text:{}", "-{}", "^{}*", "({} OR", "\x00{}"])
def test_the_syntax_of_the_full_text_index_is_plain_text(memory, syntax):
    assert paths(memory.search(syntax.format("heron"), min_score=0))[0] == "memory/network.md"


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(memory, limit):
    with pytest.raises(QueryError, match="at least 1"):
        memory.search("x", limit=limit)


def test_a_huge_limit_is_fine(memory):
    assert memory.search("network", limit=10**9).hits


def test_a_minimum_score_out_of_range_is_refused(memory):
    with pytest.raises(QueryError, match="between 0 and 1"):
        memory.search("x", min_score=1.5)


# --- staying fresh ------------------------------------------------------------------------------


def test_search_sees_a_change_at_once(memory, workspace):
    (workspace / "memory/new.md").write_text("The zebra protocol starts on Monday.\n")
    assert paths(memory.search("zebra protocol")) == ["memory/new.md"]
    (workspace / "memory/new.md").write_text("The giraffe protocol starts on Monday.\n")
    assert "zebra" not in "".join(hit.snippet for hit in memory.search("zebra protocol").hits)
    (workspace / "memory/new.md").unlink()
    assert "memory/new.md" not in paths(memory.search("giraffe protocol", min_score=0))


def test_a_hit_never_names_a_missing_file_and_the_answer_says_so(memory, workspace):
    (workspace / "memory/network.md").unlink()
    answer = memory.search("guest network name", sync=False, min_score=0)
    assert "memory/network.md" not in paths(answer)
    assert answer.index.stale
    assert any("stale" in note for note in answer.notes)


def test_an_unchanged_workspace_is_recognised_without_reading(memory):
    report = memory.index()
    assert (report.unchanged, report.added, report.changed, report.embedded) == (7, 0, 0, 0)


def test_a_touched_file_is_recognised_by_its_hash(memory, workspace):
    os.utime(workspace / "MEMORY.md", (1_700_000_000, 1_700_000_000))
    report = memory.index()
    assert (report.unchanged, report.changed) == (7, 0)


def test_a_renamed_note_is_not_embedded_again(memory, workspace):
    (workspace / "memory/network.md").rename(workspace / "memory/lan.md")
    report = memory.index()
    assert (report.renamed, report.removed, report.embedded) == (1, 0, 0)
    assert paths(memory.search("guest network name"))[0] == "memory/lan.md"


def test_a_line_on_top_embeds_only_what_is_new(memory, workspace):
    file = workspace / "memory/long.md"
    sections = [f"## Section {i}\n\n" + f"Sentence about subject{i}. " * 40 + "\n" for i in range(12)]
    file.write_text("# Long\n\n" + "\n".join(sections))
    first = memory.index().embedded
    file.write_text("# Long\n\nA new line.\n\n" + "\n".join(sections))
    assert memory.index().embedded <= max(2, first // 4)


def test_only_the_paths_that_are_named_are_looked_at(memory, workspace):
    (workspace / "memory/new.md").write_text("The zebra protocol starts on Monday.\n")
    (workspace / "memory/network.md").write_text("The giraffe network.\n")
    (workspace / "memory/中文.md").unlink()
    report = memory.index(paths=["memory/new.md", "memory/中文.md", "memory/never.md"])
    assert (report.added, report.removed, report.changed, report.unchanged) == (1, 1, 0, 0)
    assert paths(memory.search("zebra protocol", sync=False))[0] == "memory/new.md"
    assert "memory/中文.md" not in paths(memory.search("数据库迁移", sync=False, min_score=0))
    assert memory.index().changed == 1
    with pytest.raises(PathRefusedError):
        memory.index(paths=["../outside.md"])


def test_removed_notes_leave_no_trace(memory, workspace):
    shutil.rmtree(workspace / "memory")
    report = memory.index()
    assert report.removed == 6
    assert memory.status().files == 1
    assert memory.doctor()[2].ok


def test_a_file_that_cannot_be_decoded_is_indexed_all_the_same(memory, workspace):
    (workspace / "memory/odd.md").write_bytes(b"\xef\xbb\xbfbroken \xff\xfe bytes \x00 and the word quokka\r\n")
    assert paths(memory.search("quokka"))[0] == "memory/odd.md"


# --- the index and the embedder -----------------------------------------------------------------


def test_without_an_embedder_the_answer_says_so(workspace):
    with Memory.open(workspace, provider="none") as memory:
        answer = memory.search("printer")
    assert answer.mode == "keyword"
    assert answer.notes == ("keyword search only: provider is none",)


def test_a_provider_that_cannot_run_leaves_keyword_search_with_the_reason(workspace):
    with Memory.open(workspace, provider="nonesuch") as memory:
        answer = memory.search("printer")
    assert paths(answer) == ["memory/network.md"]
    assert "nonesuch" in answer.notes[0]


def test_keyword_search_works_before_the_vectors_are_there(workspace):
    with Memory.open(workspace, provider="none") as memory:
        memory.index()
    with Memory.open(workspace, provider="hashing") as memory:
        before = memory.search("printer", sync=False)
        assert (before.mode, before.index.pending) == ("keyword", before.index.chunks)
        assert memory.index().embedded == before.index.chunks
        assert memory.search("printer").mode == "hybrid"


def test_a_rebuild_embeds_nothing_again(memory):
    report = memory.index(force=True)
    assert report.rebuilt
    assert report.embedded == 0
    assert memory.search("guest network name").mode == "hybrid"


def test_other_chunking_rebuilds_the_index(memory, workspace):
    with Memory.open(workspace, provider="hashing", chunking__style="lines") as other:
        assert any("rules for chunking" in note for note in other.search("printer").notes)
        assert other.index().rebuilt
        assert other.search("printer").hits


def test_vectors_of_two_embedders_are_never_mixed(memory, workspace):
    from notewell.embedding.hashing import HashingEmbedder

    with Memory.open(workspace, embedder=HashingEmbedder(dimensions=128)) as other:
        answer = other.search("printer")
        assert answer.mode == "keyword"
        assert any("the index was built with hashing" in note for note in answer.notes)
        assert other.index().rebuilt
        assert other.search("printer").mode == "hybrid"
    report = memory.index()
    assert (report.rebuilt, report.embedded) == (True, 0)  # from the cache


def test_the_open_memory_follows_a_rebuild_of_another_process(memory, workspace):
    with Memory.open(workspace, provider="hashing") as other:
        other.index(force=True)
    (workspace / "memory/new.md").write_text("The zebra protocol.\n")
    assert paths(memory.search("zebra protocol")) == ["memory/new.md"]


def test_both_vector_drivers_give_the_same_answers(workspace):
    sqlite_vec = pytest.importorskip("sqlite_vec", reason="sqlite-vec is not installed")
    answers = []
    for settings in (
        {"store__vector__driver": "segments"},
        {"store__vector__driver": "sqlite-vec"},
        {"store__vector__driver": "sqlite-vec", "store__vector__extension_path": sqlite_vec.loadable_path()},
    ):
        with Memory.open(workspace, provider="hashing", **settings) as memory:
            memory.index()
            answers.append(memory.search("guest network name").hits)
    assert answers[0] == answers[1] == answers[2]


def test_agents_do_not_share_an_index(workspace, tmp_path):
    with Memory.open(workspace, agent="one", provider="none") as one:
        one.index()
    with Memory.open(workspace, agent="two", provider="none") as two:
        assert two.status().chunks == 0


def test_a_preview_writes_nothing(workspace):
    with Memory.open(workspace, provider="hashing") as memory:
        preview = memory.preview()
        assert len(preview.added) == 7
        assert preview.chunks > 0
        assert memory.status().chunks == 0


def test_progress_reaches_the_end(workspace):
    seen = []
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index(progress=seen.append)
    assert seen[0].stage == "read"
    assert seen[-1].stage == "embed"
    assert seen[-1].done == seen[-1].total


# --- a damaged index ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda raw: b"", id="zero bytes"),
        pytest.param(lambda raw: b"not a database, but notes of somebody" * 100, id="another file"),
        pytest.param(lambda raw: raw[: len(raw) // 2], id="cut in half"),
        pytest.param(lambda raw: raw[:8192] + b"\xff" * 8192 + raw[16384:], id="overwritten inside"),
    ],
)
def test_a_damaged_index_is_set_aside_and_built_anew(workspace, damage):
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        path = memory._components.folder.current()
    for extra in ("-wal", "-shm"):
        path.with_name(path.name + extra).unlink(missing_ok=True)
    path.write_bytes(damage(path.read_bytes()))
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        assert paths(memory.search("guest network name"))[0] == "memory/network.md"
        assert all(check.ok for check in memory.doctor())


# --- reading ------------------------------------------------------------------------------------


def test_get_returns_lines(memory):
    note = memory.get("memory/network.md", first_line=3, lines=3)
    assert note.text == "## Guest wifi\n\nThe guest network is VLAN 30, its name is heron-guest."
    assert (note.first_line, note.line_count, note.truncated, note.next_first_line) == (3, 3, False, 6)


def test_get_says_where_to_go_on(memory, workspace):
    (workspace / "memory/long.md").write_text("".join(f"line {i}\n" for i in range(1, 301)))
    note = memory.get("memory/long.md")
    assert (note.line_count, note.truncated, note.next_first_line) == (120, True, 121)


def test_get_stops_at_the_character_limit(memory, workspace):
    (workspace / "memory/wide.md").write_text("\n".join(["x" * 5_000] * 5))
    note = memory.get("memory/wide.md")
    assert (note.line_count, note.truncated, note.next_first_line) == (2, True, 3)
    (workspace / "memory/one-line.md").write_text("y" * 50_000)
    assert len(memory.get("memory/one-line.md").text) == 12_000


def test_get_beyond_the_end_is_empty(memory):
    note = memory.get("MEMORY.md", first_line=500, lines=5)
    assert (note.text, note.line_count, note.next_first_line) == ("", 0, None)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "memory/../../x.md", "notewell.toml", "memory", ""])
def test_get_refuses_what_is_not_memory(memory, path):
    with pytest.raises(PathRefusedError, match="not a memory file"):
        memory.get(path)


def test_get_of_a_missing_note(memory):
    with pytest.raises(NoteNotFoundError, match="no such note"):
        memory.get("memory/none.md")


@pytest.mark.parametrize(("first_line", "lines"), [(0, None), (-3, None), (1, 0)])
def test_get_refuses_impossible_lines(memory, first_line, lines):
    with pytest.raises(QueryError):
        memory.get("MEMORY.md", first_line=first_line, lines=lines)


# --- workspaces ---------------------------------------------------------------------------------


def test_a_missing_workspace(tmp_path):
    with pytest.raises(WorkspaceError, match="there is no folder"):
        Memory.open(tmp_path / "nowhere")


def test_a_file_is_no_workspace(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(WorkspaceError, match="is a file"):
        Memory.open(tmp_path / "file")


def test_an_empty_workspace_says_what_to_do(tmp_path):
    with Memory.open(tmp_path, provider="none") as memory:
        assert any("no notes yet" in note for note in memory.index().notes)
        assert any("no notes yet" in note for note in memory.search("x").notes)


# --- threads ------------------------------------------------------------------------------------


def test_many_threads_search_while_one_indexes(memory, workspace):
    def write(i):
        (workspace / f"memory/extra{i}.md").write_text(f"Extra note {i} about subject{i}.\n")
        return memory.index().problems

    def ask(i):
        return paths(memory.search("guest network name", sync=False))[0]

    with ThreadPoolExecutor(8) as pool:
        writes = [pool.submit(write, i) for i in range(6)]
        reads = [pool.submit(ask, i) for i in range(60)]
        assert {read.result() for read in reads} == {"memory/network.md"}
        assert all(write.result() == () for write in writes)
    assert memory.status().files == 13


def test_async_memory_gives_the_same_answers(workspace):
    async def ask():
        async with await AsyncMemory.open(workspace, provider="hashing") as memory:
            await memory.index()
            answers = await asyncio.gather(*(memory.search("guest network name") for _ in range(4)))
            note = await memory.get("MEMORY.md", lines=1)
            status = await memory.status()
            return answers, note, status

    answers, note, status = asyncio.run(ask())
    assert {answer.hits[0].path for answer in answers} == {"memory/network.md"}
    assert note.text == "# Memory"
    assert status.mode == "hybrid"


class EnglishOnly:
    """An embedder that knows Latin writing only, as the packaged model does."""

    def __init__(self):
        from notewell.embedding.hashing import HashingEmbedder

        self._inner = HashingEmbedder()
        self.seen = []

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def knows(self, text):
        return text.isascii()

    def embed_documents(self, texts):
        self.seen += texts
        return self._inner.embed_documents(texts)


def test_text_in_a_writing_the_embedder_does_not_know_is_found_by_words(workspace):
    embedder = EnglishOnly()
    with Memory.open(workspace, embedder=embedder) as memory:
        report = memory.index()
        assert report.unknown == 3
        assert report.pending == 0
        assert all(text.isascii() for text in embedder.seen)
        assert paths(memory.search("数据库迁移"))[0] == "memory/中文.md"
        assert memory.index().unknown == 0
        assert all(check.ok for check in memory.doctor())


def test_a_newer_index_is_refused_until_a_rebuild_is_asked_for(workspace):
    import apsw

    from notewell import IndexTooNewError

    with Memory.open(workspace, provider="none") as memory:
        memory.index()
        path = memory._components.folder.current()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with Memory.open(workspace, provider="none") as memory:
        with pytest.raises(IndexTooNewError, match="newer release"):
            memory.search("printer")
        assert memory.index(force=True).rebuilt
        assert memory.search("printer").hits


# --- modes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_a_search_in_each_mode(memory, workspace, mode):
    answer = memory.search("printer", mode=mode)
    assert (answer.mode, answer.hits[0].path, answer.hits[0].found_by) == (mode, "memory/network.md", mode)
    with Memory.open(workspace, provider="hashing", query__mode=mode) as by_setting:
        assert by_setting.search("printer") == answer
        assert by_setting.status().mode == mode
        assert by_setting.search("printer", mode="hybrid").mode == "hybrid"

    async def ask():
        async with await AsyncMemory.open(workspace, provider="hashing") as twin:
            return await twin.search("printer", mode=mode)

    assert asyncio.run(ask()) == answer


def test_a_mode_that_there_is_not_is_refused(memory):
    for mode in ("fuzzy", "", "Hybrid"):
        with pytest.raises(QueryError, match=f"there is no mode '{mode}'") as caught:
            memory.search("printer", mode=mode)
        assert caught.value.hint == "use hybrid, semantic or keyword"


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_keyword_only_beside_another_mode_is_refused(memory, mode):
    with pytest.raises(QueryError, match=f"keyword_only contradicts mode '{mode}'") as caught:
        memory.search("printer", mode=mode, keyword_only=True)
    assert "leave out keyword_only" in caught.value.hint
    assert memory.search("printer", mode=mode, keyword_only=False).mode == mode


@pytest.mark.parametrize(
    "options", [{"keyword_only": True}, {"mode": "keyword"}, {"mode": "keyword", "keyword_only": 1}]
)
def test_keyword_search_embeds_nothing(workspace, options):
    embedder = EnglishOnly()
    with Memory.open(workspace, embedder=embedder, query__mode="semantic") as memory:
        answer = memory.search("printer", **options)
        assert (answer.mode, paths(answer), answer.notes) == ("keyword", ["memory/network.md"], ())
    assert embedder.seen == []


def test_keyword_search_repairs_a_corrupt_index_without_a_model(workspace):
    with Memory.open(workspace, provider="none") as memory:
        memory.index()
        memory._components.folder.current().write_bytes(b"not a database " * 500)
    embedder = EnglishOnly()
    with Memory.open(workspace, embedder=embedder) as memory:
        assert paths(memory.search("printer", mode="keyword", sync=False)) == ["memory/network.md"]
        assert embedder.seen == []


def test_semantic_search_asks_no_words(memory, workspace):
    (workspace / "memory/words.md").write_text("Qwertz.\n", encoding="utf-8")
    with Memory.open(workspace, provider="none") as plain:
        plain.index()
    assert paths(memory.search("qwertz", sync=False)) == ["memory/words.md"]
    answer = memory.search("qwertz", mode="semantic", sync=False)
    assert (answer.mode, "memory/words.md" in paths(answer)) == ("semantic", False)
    assert answer.notes == ("chunks without a vector (1 of 8) are not found by semantic search; run `notewell index`",)


def test_semantic_search_says_what_the_model_could_not_embed(workspace):
    with Memory.open(workspace, embedder=EnglishOnly()) as memory:
        memory.index()
        assert memory.search("printer").notes == ()
        assert memory.search("printer", mode="semantic").notes == (
            "chunks without a vector (3 of 7) are not found by semantic search",
        )


def test_semantic_search_falls_back_to_keywords_where_nothing_is_embedded(workspace):
    with Memory.open(workspace, provider="none") as plain:
        plain.index()
    with Memory.open(workspace, provider="hashing") as memory:
        answer = memory.search("printer", mode="semantic", sync=False)
    assert (answer.mode, paths(answer)) == ("keyword", ["memory/network.md"])
    assert answer.notes == ("keyword search only: nothing is embedded yet; run `notewell index`",)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"provider": "none"}, "provider is none;"),
        ({"provider": "hashing", "store__vector__enabled": False}, "vectors are turned off (store.vector.enabled);"),
        ({"provider": "nonesuch"}, "set provider to one of them, or install the plug-in that offers it;"),
    ],
)
def test_semantic_search_without_a_model_says_so(workspace, settings, reason):
    with Memory.open(workspace, **settings) as memory:
        answer = memory.search("printer", mode="semantic")
        assert (answer.mode, paths(answer)) == ("keyword", ["memory/network.md"])
        [note] = answer.notes
        assert note.startswith("semantic search is not available: ")
        assert note.endswith(f"{reason} keyword search answered instead")
        assert "semantic" not in " ".join(memory.search("printer").notes)


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        pytest.param({"query__hybrid__enabled": False}, "semantic", id="the older setting"),
        pytest.param({"query__hybrid__enabled": False, "query__mode": "keyword"}, "keyword", id="query.mode wins"),
        pytest.param({"query__hybrid__enabled": True, "query__mode": "semantic"}, "semantic", id="query.mode alone"),
    ],
)
def test_the_older_setting_is_still_accepted(memory, workspace, settings, mode):
    with Memory.open(workspace, provider="hashing", **settings) as other:
        assert other.search("printer").mode == mode
        assert other.search("printer", mode="hybrid").mode == "hybrid"


def test_memory_that_is_turned_off_says_so(workspace):
    from notewell import MemoryDisabledError

    with Memory.open(workspace, enabled=False) as memory:
        for call in (lambda: memory.search("x"), memory.index, lambda: memory.get("MEMORY.md")):
            with pytest.raises(MemoryDisabledError, match="turned off"):
                call()


# --- time and a second look ---------------------------------------------------------------------


@pytest.fixture
def diary(tmp_path):
    for day in ("2026-03-02", "2026-03-03", "2026-09-10"):
        (tmp_path / "memory").mkdir(exist_ok=True)
        (tmp_path / f"memory/{day}.md").write_text(f"# {day}\n\nMet Joris about the harbour crane and its motor.\n")
    (tmp_path / "MEMORY.md").write_text("# Memory\n\nJoris looks after the harbour crane.\n")
    with Memory.open(tmp_path, provider="hashing") as memory:
        memory.index()
        yield memory


def test_explicit_bounds_let_only_notes_of_those_days_through(diary):
    everything = {"MEMORY.md", "memory/2026-03-02.md", "memory/2026-03-03.md", "memory/2026-09-10.md"}
    assert set(paths(diary.search("harbour crane"))) == everything
    assert set(paths(diary.search("harbour crane", since="2026-04-01"))) == {"memory/2026-09-10.md"}
    assert set(paths(diary.search("harbour crane", on="2026-03"))) == {"memory/2026-03-02.md", "memory/2026-03-03.md"}
    assert set(paths(diary.search("harbour crane", until="2026-03-02"))) == {"memory/2026-03-02.md"}


def test_a_day_in_the_query_lifts_the_notes_of_that_day_and_says_so(diary):
    answer = diary.search("what about the harbour crane on 2026-03-03?", explain=True)
    assert paths(answer)[0] == "memory/2026-03-03.md"
    assert any("2026-03-03" in note for note in answer.notes)


@pytest.mark.parametrize("bounds", [{"since": "soonish"}, {"since": "2026-05-01", "until": "2026-04-01"}])
def test_impossible_bounds_are_refused(diary, bounds):
    with pytest.raises(QueryError):
        diary.search("crane", **bounds)


class ShortestFirst:
    """A reranker that likes short texts."""

    name = "shortest"

    def rerank(self, query, texts):
        return [-len(text) for text in texts]


def test_a_reranker_takes_a_second_look(diary):
    assert paths(diary.search("harbour crane motor"))[0] != "MEMORY.md"
    assert paths(diary.search("harbour crane motor", rerank=ShortestFirst()))[0] == "MEMORY.md"


def test_a_reranker_that_is_not_configured_is_an_error_with_the_next_step(diary):
    from notewell import RerankerError

    with pytest.raises(RerankerError, match="no reranker is configured") as caught:
        diary.search("harbour crane", rerank=True)
    assert "query.rerank.provider" in caught.value.hint


def test_neighbouring_chunks_that_fit_into_one_snippet_are_one_hit(tmp_path):
    (tmp_path / "MEMORY.md").write_text("".join(f"The crane number {i} has a motor.\n" for i in range(12)))
    with Memory.open(tmp_path, provider="hashing", chunking__tokens=40, chunking__overlap=10) as memory:
        memory.index()
        assert memory.status().chunks > 2
        answer = memory.search("crane motor")
    assert len(answer.hits) < memory.status().chunks
    lines = (tmp_path / "MEMORY.md").read_text().split("\n")
    for hit in answer.hits:
        assert "\n".join(lines[hit.first_line - 1 : hit.last_line]) == hit.snippet


def test_a_small_memory_answers_although_it_lacks_a_word(tmp_path):
    """Every note holds `deploy`, so that word weighs next to nothing; none holds `checklist`."""
    for number, text in enumerate(("A deploy runs on Fridays.", "Before a deploy, tell the shop.", "Undo a deploy.")):
        (tmp_path / "memory").mkdir(exist_ok=True)
        (tmp_path / f"memory/{number}.md").write_text(f"{text}\n", encoding="utf-8")
    with Memory.open(tmp_path, provider="none") as memory:
        memory.index()
        assert len(memory.search("deploy checklist").hits) == 3
        assert not memory.search("oscilloscope checklist").hits


@pytest.mark.parametrize("call", ["search", "get", "remember", "forget"])
@pytest.mark.parametrize("value", [None, 42, b"bytes"])
def test_what_is_no_text_is_a_clear_error(workspace, call, value):
    error = RememberError if call == "remember" else QueryError
    with Memory.open(workspace, provider="none") as memory, pytest.raises(error, match=f"must be text, got {value!r}"):
        getattr(memory, call)(value)
