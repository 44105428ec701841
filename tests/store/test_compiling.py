"""A search runs hundreds of small statements; none of them may be compiled anew each time it runs."""

from __future__ import annotations

from collections import Counter

import apsw

from notewell import Memory


def test_no_statement_is_compiled_again_while_searching(tmp_path):
    """FTS5 looks up its segments by a statement that SQLite would recompile for every segment and word."""
    (tmp_path / "memory").mkdir()
    for number in range(60):
        note = tmp_path / f"memory/{number}.md"
        note.write_text(
            f"# Note {number}\n\nThe harbour keeps subject{number} in shed {number % 7}.\n", encoding="utf-8"
        )
    with Memory.open(tmp_path, provider="none") as memory:
        memory.index()
        for number in range(5):  # each leaves a segment of its own
            (tmp_path / f"memory/{number}.md").write_text(f"The boat left shed {number} empty.\n", encoding="utf-8")
            memory.index()
        ask_all(memory)  # every statement is compiled once
        before = recompiled(memory)
        assert before, "no statement was seen"
        assert recompiled(memory) == before


def ask_all(memory):
    for number in range(20):
        memory.search(f"the harbour shed {number} subject{number * 3}", sync=False)


def recompiled(memory):
    """Ask, and return how often each statement was compiled again since it was first prepared."""
    seen = Counter()

    def look(event):
        seen[event["sql"]] = event["stmt_status"]["SQLITE_STMTSTATUS_REPREPARE"]

    with memory._components.index.use() as store, store._pool.reader() as db:
        connection = db._connection
    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, look)
    ask_all(memory)
    connection.trace_v2(0, None)
    return seen
