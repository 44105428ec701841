"""`verify` holds conversations against the index as it does notes: as they are now, and row by row."""

from __future__ import annotations

import apsw
import pytest

from tests.indexing.transcripts import append, lines, open_memory


@pytest.fixture
def talks(tmp_path):
    talks = tmp_path / "talks"
    talks.mkdir()
    (talks / "first.jsonl").write_bytes(lines(0, 60))
    (talks / "second.jsonl").write_bytes(lines(60, 90))
    return talks


@pytest.fixture
def memory(tmp_path, talks):
    with open_memory(tmp_path / "workspace", talks) as memory:
        memory.index()
        yield memory


def test_grown_and_rewritten_conversations_equal_a_fresh_index(memory, talks):
    """A conversation is taken in piece by piece; what came of it must not show how."""
    assert memory.verify().findings == ()
    for first in range(90, 120, 3):
        append(talks / "second.jsonl", lines(first, first + 3))
        memory.index()
    assert memory.verify().findings == ()
    (talks / "first.jsonl").write_bytes(lines(5, 40))
    memory.index()
    verified = memory.verify()
    assert (verified.equal, verified.findings) == (True, ())


def test_what_is_not_taken_in_yet_is_named(memory, talks):
    append(talks / "second.jsonl", lines(90, 95))
    (talks / "third.jsonl").write_bytes(lines(200, 210))
    (talks / "first.jsonl").unlink()
    told = "\n".join(memory.verify().findings)
    assert "first.jsonl is indexed and gone" in told
    assert "second.jsonl has changed since it was indexed" in told
    assert "third.jsonl is not indexed" in told


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        pytest.param("UPDATE chunk_texts SET text = text || ' never said' WHERE chunk_id = 2", "chunks", id="text"),
        pytest.param("UPDATE chunks SET last_line = last_line + 1 WHERE id = 3", "chunks", id="lines"),
        pytest.param("UPDATE chunks SET turn = turn + 1 WHERE id = 3", "chunks", id="message"),
        pytest.param("UPDATE chunks SET parts = parts + 1 WHERE id = 3", "chunks", id="parts"),
        pytest.param("DELETE FROM terms WHERE rowid = 2", "keyword entry", id="terms"),
        pytest.param("DELETE FROM cursors", "", id="cursors are not content: the next run reads from the beginning"),
    ],
)
def test_rows_of_conversations_changed_behind_our_back(memory, damage, told):
    path = memory._components.folder.current()
    memory.close()
    database = apsw.Connection(str(path))
    database.execute(damage)
    database.close()
    findings = memory.verify().findings
    assert (told in "\n".join(findings)) if told else not findings
    assert memory.doctor(fix=True)
    assert memory.verify().findings == ()
