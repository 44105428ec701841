"""Test sets are read as they are, and every fault in one is named."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from notewell.cli.main import run
from notewell.evaluation.runner import write_workspaces
from notewell.evaluation.test_sets import EvalQuery, TestSetError, load_set


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "little"
    folder.mkdir()
    documents = [
        {"_id": f"d/{i}", "title": f"Title {i}", "text": f"The text of {i}.", "scope": "ab"[i % 2]} for i in range(4)
    ]
    queries = [{"_id": "q1", "text": "what is 1?", "scope": "b"}, {"_id": "q2", "text": "not judged"}]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)) + "\n")
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)) + "\n")
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td/1\t1\nq1\td/3\t0\n")
    return folder


def test_a_set_is_read(folder):
    found = load_set(folder)
    assert (found.name, len(found.documents), found.scopes) == ("little", 4, ("a", "b"))
    assert [(q.id, q.grades, q.scope) for q in found.queries] == [("q1", {"d/1": 1.0}, "b")]


def test_halves_share_no_query_and_keep_conversations_together(folder):
    whole = load_set(folder)
    one_scope = replace(
        whole,
        documents=tuple(replace(document, scope="") for document in whole.documents),
        queries=tuple(EvalQuery(f"q{i}", "?", {"d/1": 1.0}) for i in range(5)),
    )
    tuning, held_out = one_scope.half("tuning").queries, one_scope.half("held-out").queries
    assert [query.id for query in tuning] == ["q0", "q2", "q4"]
    assert [query.id for query in held_out] == ["q1", "q3"]
    scoped = replace(whole, queries=tuple(EvalQuery(f"q{i}", "?", {}, scope="aab"[i % 3]) for i in range(6)))
    assert {query.scope for query in scoped.half("held-out").queries} == {"a"}
    assert {query.scope for query in scoped.half("tuning").queries} == {"b"}


def test_a_sample_is_the_same_every_time_and_in_the_order_of_the_set(folder):
    whole = load_set(folder)
    many = replace(whole, queries=tuple(EvalQuery(f"q{i:02}", "?", {}) for i in range(50)))
    chosen = [query.id for query in many.sample(10).queries]
    assert len(chosen) == 10
    assert chosen == sorted(chosen) == [query.id for query in many.sample(10).queries]
    assert many.sample(50) is many


def test_a_half_without_a_query_is_an_error(folder, capsys):
    assert run(["eval", str(folder), "--half", "held-out", "--embedder", "none"]) == 1
    assert "holds no query in this half" in capsys.readouterr().err


def test_every_document_becomes_a_note_of_its_scope(folder, tmp_path):
    workspaces = write_workspaces(load_set(folder), tmp_path / "work")
    assert set(workspaces) == {"a", "b"}
    (path,) = [path for path, document in workspaces["b"].documents.items() if document == "d/1"]
    assert (workspaces["b"].folder / path).read_text() == "# Title 1\n\nThe text of 1.\n"


@pytest.mark.parametrize(
    ("date", "front_matter"),
    [
        pytest.param("2026-05-08", "---\ndate: 2026-05-08\n---\n", id="a day"),
        pytest.param("20260508", "", id="without hyphens"),
        pytest.param("2026-02-30", "", id="no day of the calendar"),
        pytest.param("1:56 pm on 8 May, 2023", "", id="in words"),
    ],
)
def test_only_dates_in_iso_form_date_the_note(folder, tmp_path, date, front_matter):
    whole = load_set(folder)
    dated = replace(whole, documents=(replace(whole.documents[0], date=date),))
    workspace = write_workspaces(dated, tmp_path / "work")["a"]
    (path,) = workspace.documents
    assert (workspace.folder / path).read_text() == f"{front_matter}# Title 0\n\nThe text of 0.\n"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        pytest.param("corpus.jsonl", None, "is missing", id="no corpus"),
        pytest.param("qrels.tsv", None, "is missing", id="no judgements"),
        pytest.param("queries.jsonl", "{not json\n", "line 1: not JSON", id="wrong JSON"),
        pytest.param("queries.jsonl", "[1]\n", "not a JSON object", id="no object"),
        pytest.param("queries.jsonl", '{"_id": "q1"}\n', "'text' is missing", id="no text"),
        pytest.param("qrels.tsv", "a\tb\tc\nq1\td/1\n", "separated by tabs", id="a field is missing"),
        pytest.param("qrels.tsv", "a\tb\tc\nq1\tnowhere\t1\n", "'nowhere' is not in corpus", id="an unknown document"),
        pytest.param("qrels.tsv", "a\tb\tc\nq9\td/1\t1\n", "no query has a judgement", id="no judged query"),
        pytest.param("corpus.jsonl", b"\xff\xfe\x00", "cannot be read", id="not text"),
    ],
)
def test_a_fault_is_named_with_its_place_through_the_command(folder, file, content, message, capsys):
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TestSetError, match=message.replace("(", "\\(")):
        load_set(folder)
    assert run(["eval", str(folder), "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "test_set"
    assert message in error["message"]
    assert "BEIR" in error["hint"]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(TestSetError, match="there is no folder"):
        load_set(tmp_path / "nothing")
