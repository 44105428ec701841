"""QMD as the backend, through the library: its hits are like all others, and its traps are stepped around."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from notewell import Memory
from notewell.settings import load_settings
from tests.embedding.local.tiny_gguf import write_embedding_gemma
from tests.end_to_end.clients import node

from .conftest import real_program

pytestmark = pytest.mark.slow


def write(workspace: Path, path: str, text: str) -> Path:
    file = workspace / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def until(condition, timeout_s: float = 20) -> bool:
    give_up = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < give_up:
        time.sleep(0.02)
    return bool(condition())


def hits_of(memory: Memory, query: str, **options):
    """Return QMD's hits; fails where the builtin index answered."""
    answer = memory.search(query, **options)
    assert (answer.backend, answer.fallback) == ("qmd", None)
    return answer.hits


# --- hits ----------------------------------------------------------------------------------------


def test_its_results_are_hits_like_all_others(open_memory, program, workspace):
    memory = open_memory(program)
    answer = memory.search("VLAN heron-guest")
    assert (answer.backend, answer.fallback, answer.mode) == ("qmd", None, "keyword")
    [hit] = answer.hits
    assert (hit.path, hit.source, hit.found_by) == ("memory/network.md", "memory", "keyword")
    assert hit.citation == f"memory/network.md#L{hit.first_line}-L{hit.last_line}"
    lines = (workspace / hit.path).read_text(encoding="utf-8").split("\n")
    assert hit.snippet == "\n".join(lines[hit.first_line - 1 : hit.last_line])
    assert "heron-guest" in hit.snippet
    assert memory.get(hit.path, first_line=hit.first_line, lines=1).text == lines[hit.first_line - 1]
    assert answer.index.files == 7
    assert answer.index.stale is False


def test_scores_of_a_small_index_are_all_0_and_no_threshold_applies(open_memory, program, workspace):
    for number in range(20):  # a word of most notes
        write(workspace, f"memory/quagga{number}.md", "A quagga.")
    answer = open_memory(program).search("quagga", min_score=0.9, limit=30)
    assert [hit.score for hit in answer.hits] == [0.0] * 20
    assert answer.notes == ("answered by qmd 2.8.3 (search); min_score is not applied to its scores",)


def test_names_and_texts_of_every_kind(open_memory, program, workspace):
    write(workspace, "memory/Ünï #1 %20?.md", "\ufeff# Zebra crossing\r\nA zebra crosses.\r\n")
    write(workspace, "memory/deep/er/UPPER.MD", "# Notes\n\na zebra sleeps\n")
    write(workspace, "memory/.hidden.md", "zebra")
    write(workspace, "elsewhere.md", "zebra")
    hits = {hit.path: hit for hit in hits_of(open_memory(program), "zebra")}
    assert set(hits) == {"memory/Ünï #1 %20?.md", "memory/deep/er/UPPER.MD"}
    assert hits["memory/Ünï #1 %20?.md"].snippet == "# Zebra crossing\nA zebra crosses."
    assert hits["memory/deep/er/UPPER.MD"].citation == "memory/deep/er/UPPER.MD#L3"


def test_extra_paths_and_one_hit_a_file(open_memory, program, workspace, tmp_path):
    write(tmp_path, "vault/birds/heron.md", "A kestrel.\n\nAgain a kestrel.\n")
    write(tmp_path, "single, file (1).md", "One kestrel.")
    write(tmp_path, "single, other (1).txt", "One kestrel.")
    extra = [tmp_path / "vault", tmp_path / "single, file (1).md", workspace / "memory" / "projects"]
    write(workspace, "memory/projects/kestrel.md", "kestrel")
    memory = open_memory(program, extra_paths=[str(path) for path in extra])
    found = [hit.path for hit in hits_of(memory, "kestrel")]
    assert sorted(found) == ["@single, file (1).md", "@vault/birds/heron.md", "memory/projects/kestrel.md"]
    memory.close()
    fewer = open_memory(program, extra_paths=[])
    assert [hit.path for hit in hits_of(fewer, "kestrel")] == ["memory/projects/kestrel.md"]


def test_days(open_memory, program, workspace):
    write(workspace, "memory/2026-11-02.md", "PostgreSQL again")
    memory = open_memory(program)
    assert [hit.path for hit in hits_of(memory, "PostgreSQL", on="2026-11-02")] == ["memory/2026-11-02.md"]
    assert hits_of(memory, "heron-guest", since="2020-01-01") == ()


def test_conversations_are_searched_beside_it(open_memory, stand_in):
    memory = open_memory(stand_in, index=False, sources="memory,sessions", sync__sessions__delta_messages=0)
    memory.conversations.append(
        memory.conversations.create().session_id, {"role": "user", "content": "The VLAN of the workshop is 77."}
    )
    memory.index()
    answer = memory.search("VLAN")
    assert answer.backend == "qmd"
    assert {hit.source for hit in answer.hits} == {"memory", "sessions"}
    assert "conversations were searched by the builtin index" in answer.notes
    only = memory.search("VLAN", source="sessions")
    assert only.backend == "builtin"
    assert only.fallback is None
    assert {hit.source for hit in only.hits} == {"sessions"}


# --- traps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [".", ".notewell", ".notewell/main/qmd"])
def test_a_qmd_folder_there_or_above_is_not_taken(open_memory, program, workspace, place):
    theirs = write(workspace, f"{place}/.qmd/index.yml", "collections:\n  theirs:\n    path: /\n    pattern: '*.md'\n")
    assert open_memory(program).search("heron-guest").backend == "qmd"
    assert [file.name for file in theirs.parent.iterdir()] == ["index.yml"]


def test_variables_that_lead_elsewhere_are_not_taken(open_memory, program, state, tmp_path, monkeypatch):
    monkeypatch.setenv("INDEX_PATH", str(tmp_path / "other.sqlite"))
    monkeypatch.setenv("QMD_CONFIG_DIR", str(tmp_path / "other"))
    assert hits_of(open_memory(program), "heron-guest")
    assert not (tmp_path / "other.sqlite").exists()
    assert not (tmp_path / "other").exists()
    assert (state / "xdg-cache" / "qmd" / "index.sqlite").exists()


@pytest.mark.parametrize(
    "query",
    [
        "-vlan",
        "--version",
        "-v",
        "--help",
        "--",
        "-",
        '"',
        "two\nlines heron-guest",
        "NEAR(",
        "qq\0zz",
        "\ud800",
        "x" * 300_000,
    ],
)
def test_a_query_is_never_a_flag(open_memory, program, query):
    assert hits_of(open_memory(program), query) == ()


def test_an_empty_query_is_not_asked(open_memory, program):
    answer = open_memory(program).search("  ")
    assert (answer.backend, answer.fallback) == ("builtin", None)
    assert "the query is empty: say what to look for" in answer.notes


def test_groups_see_nothing_private_and_no_less_of_the_rest(open_memory, program, workspace):
    for number in range(12):
        write(workspace, f"memory/a{number}.md", "---\nprivate: true\n---\n# Badger\n\nbadger badger badger\n")
    write(workspace, "memory/private/b.md", "badger badger")
    write(workspace, "memory/z.md", "# Long\n\n" + "words and words\n" * 20 + "a badger\n")
    memory = open_memory(program)
    assert len(hits_of(memory, "badger", limit=20)) == 14
    group = memory.search("badger", chat="group", limit=1)
    assert group.backend == "qmd"
    assert [hit.path for hit in group.hits] == ["memory/z.md"]


def test_a_group_learns_nothing_of_private_notes_from_what_qmd_prints(open_memory, stand_in, workspace, monkeypatch):
    write(workspace, "memory/private/b.md", "badger badger")
    memory = open_memory(stand_in, sync__on_search=False)  # else the first search has QMD update
    write(workspace, "memory/private/c.md", "changed since QMD's update")
    answer = memory.search("heron-guest", chat="group")
    assert (answer.backend, answer.index.stale) == ("qmd", False)
    assert memory.search("heron-guest").index.stale
    write(workspace, "memory/network.md", "# Network\n\nchanged as well: heron-guest\n")
    assert memory.search("heron-guest", chat="group").index.stale
    monkeypatch.setenv("QMD_STAND_IN", "crash")
    answer = memory.search("heron-guest", chat="group")
    assert answer.backend == "builtin"
    assert answer.fallback.reason == "the owner sees why with `notewell status`"
    assert "database disk image" not in repr(answer)
    assert "database disk image" in memory.search("heron-guest").fallback.reason


@pytest.mark.parametrize("name", ["notewell.json", "xdg-config/qmd/index.yml"])
def test_a_pipe_in_the_place_of_its_files_is_not_waited_for(open_memory, stand_in, state, name):
    memory = open_memory(stand_in, sync__on_search=False)
    (state / name).unlink()
    os.mkfifo(state / name)
    assert memory.search("heron-guest").hits
    memory.index()


def test_a_note_that_became_private_since_the_update(open_memory, stand_in, workspace):
    memory = open_memory(stand_in)
    write(workspace, "memory/network.md", "---\nprivate: true\n---\nheron-guest\n")
    assert hits_of(memory, "heron-guest", chat="group", sync=False) == ()


def test_secrets_are_redacted_where_the_settings_say_so(open_memory, program, workspace):
    secret = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    write(workspace, "memory/keys.md", f"# Keys\n\nThe ocelot key is {secret} and works.\n")
    hits = hits_of(open_memory(program, redaction__notes=True), "ocelot")
    assert secret not in json.dumps([hit.snippet for hit in hits])
    assert all("ocelot" in hit.snippet for hit in hits)


# --- modes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "command", "found_by"),
    [
        (None, "search", "keyword"),
        ("keyword", "search", "keyword"),
        ("semantic", "vsearch", "semantic"),
        ("hybrid", "query", "hybrid"),
    ],
)
def test_a_call_picks_the_mode(open_memory, stand_in, calls, mode, command, found_by):
    memory = open_memory(stand_in, qmd__mode="query" if mode else "search")
    answer = memory.search("heron-guest", **({"mode": mode} if mode else {}))
    assert (answer.fallback, answer.backend, answer.mode) == (None, "qmd", found_by)
    assert [hit.found_by for hit in answer.hits] == [found_by]
    assert calls()[-1][:4] == [command, "--json", "-n", "6"]
    assert calls()[-1][-2:] == ["--", "heron-guest"]


def test_typed_lines_are_passed_on_and_others_become_one(open_memory, stand_in, calls):
    memory = open_memory(stand_in, qmd__mode="query")
    memory.search("vec: guest wifi\nlex: heron-guest")
    assert calls()[-1][-1] == "vec: guest wifi\nlex: heron-guest"
    memory.search("guest wifi\n\nheron-guest")
    assert calls()[-1][-1] == "guest wifi heron-guest"


def test_without_vectors_an_empty_list_is_no_answer(open_memory, program):
    answer = open_memory(program).search("heron-guest", mode="semantic")
    assert answer.backend == "builtin"
    assert answer.fallback.instead_of == "qmd"
    assert answer.fallback.reason == "QMD has no vectors yet for 7 notes"
    assert [hit.path for hit in answer.hits] == ["memory/network.md"]


def test_real_vectors_of_a_tiny_model(open_memory, workspace, state, tmp_path, monkeypatch):
    """`qmd embed` and a typed `qmd query`; expansion and reranking need models that a test cannot bring."""
    monkeypatch.setenv("QMD_FORCE_CPU", "1")
    monkeypatch.delenv("CI", raising=False)  # QMD runs no model where it is set
    program = Path(real_program(monkeypatch, node.QMD_WITH_MODELS))
    unranked = tmp_path / "qmd-without-reranking"
    unranked.write_text(
        f'#!/bin/sh\n[ "$3" = query ] && set -- "$@" || exec {program} "$@"\nexec {program} --no-rerank "$@"\n'
    )
    unranked.chmod(0o755)
    model = write_embedding_gemma(tmp_path / "tiny.gguf")
    write(state, "xdg-config/qmd/index.yml", f"collections: {{}}\nmodels:\n  embed: {model}\n")
    memory = open_memory(str(unranked), qmd__mode="query")
    answer = memory.search("vec: guest wifi password\nlex: heron-guest")
    assert (answer.backend, answer.fallback) == ("qmd", None)
    assert answer.hits[0].path == "memory/network.md"
    assert {hit.found_by for hit in answer.hits} == {"hybrid"}
    assert len(answer.hits) > 1  # vectors find what the word is not in


# --- its index -----------------------------------------------------------------------------------


def test_it_is_updated_at_the_start_and_at_every_interval(workspace, stand_in, calls):
    settings = load_settings(
        workspace, flags={"backend": "qmd", "qmd.command": stand_in, "provider": "none", "sync.on_search": False}
    ).settings
    often = replace(settings, qmd=replace(settings.qmd, update_minutes=0.005))
    with Memory(workspace, often) as memory:
        memory.begin_session()
        assert until(lambda: [call[0] for call in calls()].count("update") >= 2)
    ended = len(calls())
    time.sleep(0.5)
    assert len(calls()) == ended
    assert not [call for call in calls() if call[0] == "embed"]


def test_a_search_starts_it_and_does_not_wait_for_it(open_memory, stand_in):
    memory = open_memory(stand_in, index=False, qmd__on_start=True)
    first = memory.search("heron-guest")
    assert (first.backend, first.fallback.reason) == ("builtin", "QMD has not indexed the notes yet")
    assert [hit.path for hit in first.hits] == ["memory/network.md"]
    assert until(lambda: memory.search("heron-guest").backend == "qmd")


def test_an_update_that_hangs_is_in_nobodys_way_and_alone(open_memory, stand_in, calls, monkeypatch):
    memory = open_memory(stand_in, qmd__on_start=True)
    monkeypatch.setenv("QMD_STAND_IN", "update:hang")
    began = time.monotonic()
    for _ in range(5):
        assert memory.search("heron-guest").backend == "qmd"
    assert until(lambda: [call[0] for call in calls()].count("update") == 1)
    assert memory.search("heron-guest").backend == "qmd"
    memory.close()
    assert time.monotonic() - began < 10
    assert [call[0] for call in calls()].count("update") == 1


def test_changed_notes_are_told_of_and_found_after_the_next_update(open_memory, stand_in, workspace):
    memory = open_memory(stand_in)
    write(workspace, "memory/new.md", "A pangolin.")
    write(workspace, "memory/network.md", "Nothing is left.")
    answer = memory.search("heron-guest", sync=False)
    assert answer.index.stale is True
    assert answer.hits == ()
    assert "1 results are left out: their notes changed since QMD's last update" in answer.notes
    assert "some notes changed since QMD's last update" in answer.notes
    assert until(lambda: [hit.path for hit in memory.search("pangolin").hits] == ["memory/new.md"])


def test_what_cannot_be_updated_goes_on_answering_and_says_so(open_memory, stand_in, monkeypatch):
    memory = open_memory(stand_in)
    monkeypatch.setenv("QMD_STAND_IN", "update:crash")
    report = memory.index()
    problem = "`qmd update` failed with exit code 1: Error: database disk image is malformed"
    assert f"QMD's index could not be updated: {problem}" in report.notes
    answer = memory.search("heron-guest")
    assert (answer.backend, len(answer.hits)) == ("qmd", 1)
    assert f"QMD's index could not be updated: {problem}" in answer.notes


def test_it_embeds_only_for_modes_with_vectors_and_pauses_longer_after_each_failure(
    open_memory, stand_in, calls, state, monkeypatch
):
    memory = open_memory(stand_in)
    assert "embed" not in [call[0] for call in calls()]
    monkeypatch.setenv("QMD_STAND_IN", "embed:crash")
    memory.search("heron-guest", mode="hybrid")
    pauses = []
    for _ in range(3):
        memory.index()
        values = json.loads((state / "notewell.json").read_text())
        pauses.append(round(values["embedding"]["retry_at"] - time.time(), -1))
        memory.index()  # within the pause
        values["embedding"]["retry_at"] = 0
        (state / "notewell.json").write_text(json.dumps(values))
    assert pauses == [60, 120, 240]
    assert [call[0] for call in calls()].count("embed") == 3
    monkeypatch.delenv("QMD_STAND_IN")
    memory.index()
    assert memory.search("heron-guest", mode="semantic").backend == "qmd"


def test_forgetting_leaves_nothing_in_its_index(open_memory, program, state):
    memory = open_memory(program)
    assert hits_of(memory, "heron-guest")
    memory.forget(match="heron-guest", for_good=True)
    kept = [file for file in state.rglob("*") if file.is_file() and b"heron-guest" in file.read_bytes()]
    assert [file for file in kept if not file.name.endswith(".calls")] == []
    memory.index()
    assert hits_of(memory, "heron-guest") == ()
    assert hits_of(memory, "PostgreSQL")


def test_models_of_the_users_own_qmd_are_used(open_memory, stand_in, state, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write(tmp_path, "cache/qmd/models/a.gguf", "x")
    open_memory(stand_in)
    assert (state / "xdg-cache" / "qmd" / "models" / "a.gguf").exists()
