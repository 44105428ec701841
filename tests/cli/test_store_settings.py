"""`store.fts.enabled` and `cache.max_age_days`, as a command sees them."""

from __future__ import annotations

import time

import apsw
import pytest

VECTORS_ONLY = ("--set", "store.fts.enabled=false")
AGED = ("--set", "cache.max_age_days=30")


def rows(folder, sql: str):
    found = sorted((folder / ".notewell/main").glob("index-*.sqlite"))
    database = apsw.Connection(str(found[-1]))
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


def test_without_the_keyword_index_vectors_answer(notewell, workspace):
    done = notewell("index", "-w", workspace, *VECTORS_ONLY, "--json").document
    assert done["embedded"] == 7
    assert rows(workspace, "SELECT count(*) FROM vocabulary") == [(0,)]
    answer = notewell("search", "The guest network is VLAN 30", "-w", workspace, *VECTORS_ONLY, "--json").document
    assert (answer["mode"], answer["hits"][0]["path"]) == ("semantic", "memory/network.md")
    assert {hit["foundBy"] for hit in answer["hits"]} == {"semantic"}
    for command in ("verify", "doctor"):
        assert notewell(command, "-w", workspace, *VECTORS_ONLY).code == 0
    assert notewell("status", "-w", workspace, *VECTORS_ONLY, "--json").document["mode"] == "semantic"


@pytest.mark.parametrize("words", [("--mode", "keyword"), ("--keyword-only",)])
def test_a_keyword_search_is_refused_without_the_keyword_index(notewell, workspace, words):
    found = notewell("search", "guest", "-w", workspace, *VECTORS_ONLY, *words)
    assert (found.code, found.out) == (2, "")
    assert "keyword search is turned off (store.fts.enabled)" in found.err


def test_nothing_can_answer_without_both(notewell, workspace):
    neither = (*VECTORS_ONLY, "--set", "provider=none")
    found = notewell("search", "guest", "-w", workspace, *neither)
    assert (found.code, found.out) == (1, "")
    assert "semantic search cannot answer: provider is none" in found.err
    assert "cannot answer" in notewell("status", "-w", workspace, *neither, "--json").document["notes"][0]


def test_the_keyword_index_comes_back_without_embedding_again(notewell, workspace):
    assert notewell("index", "-w", workspace, *VECTORS_ONLY).code == 0
    done = notewell("index", "-w", workspace, "--json").document
    assert (done["rebuilt"], done["embedded"]) == (True, 0)
    found = notewell("search", "HARB-214", "-w", workspace, "--mode", "keyword", "--json").document
    assert found["hits"][0]["path"] == "memory/2026-11-01.md"
    done = notewell("index", "-w", workspace, *VECTORS_ONLY, "--json").document
    assert (done["rebuilt"], done["embedded"]) == (True, 0)
    assert rows(workspace, "SELECT count(*) FROM vocabulary") == [(0,)]


def test_old_vectors_leave_the_cache_by_themselves(notewell, indexed):
    def entries() -> int:
        database = apsw.Connection(str(indexed / ".notewell/main/cache.sqlite"))
        (count,) = database.execute("SELECT count(*) FROM entries").fetchone()
        database.close()
        return count

    before = entries()
    database = apsw.Connection(str(indexed / ".notewell/main/cache.sqlite"))
    for age_days, number in ((31, 1), (29, 2)):
        database.execute("UPDATE entries SET used_at = ? WHERE id = ?", (int(time.time() - age_days * 86_400), number))
    database.close()
    (indexed / "memory/new.md").write_text("# New\n\nAbout a quokka.\n", encoding="utf-8")
    assert notewell("index", "-w", indexed).code == 0
    assert entries() == before + 1  # 0 is never
    (indexed / "memory/new.md").write_text("# New\n\nAbout a wombat.\n", encoding="utf-8")
    assert notewell("index", "-w", indexed, *AGED).code == 0
    assert entries() == before + 1  # the oldest one for the new one
    assert notewell("cache", "stats", "-w", indexed, *AGED, "--json").document["entries"] == before + 1
