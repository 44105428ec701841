"""Conversations become memory as the product keeps it, and what counts is what a search hands over."""

from __future__ import annotations

import json

import pytest

from notewell.cli.main import run
from notewell.evaluation.evidence import NOTES, TRANSCRIPT, evaluate_evidence
from notewell.evaluation.metrics import figures_document, figures_table
from notewell.evaluation.test_sets import TestSetError, load_set

HASHING = {"provider": "hashing"}
FILLER = [f"remark number {i} about the weather on an ordinary day" for i in range(40)]


def write_set(folder, turns, answering, **fields):
    """Write a set of turns and one query that the turns of these numbers answer."""
    folder.mkdir()
    rows = [{"_id": f"t{i}", "text": turn, **fields} for i, turn in enumerate(turns)]
    queries = [{"_id": "q", "text": "what is the crane called?", "scope": fields.get("scope", "")}]
    (folder / "corpus.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)), encoding="utf-8")
    (folder / "qrels.tsv").write_text("".join(f"q\tt{i}\t1\n" for i in answering), encoding="utf-8")
    return load_set(folder)


def measured(eval_set, work):
    figures = evaluate_evidence(eval_set, work=work, variants=["hybrid"], flags=HASHING)
    return {each.name: dict(each.values) for each in figures}


def test_a_scope_becomes_one_transcript_with_the_roles_of_its_speakers(tmp_path):
    turns = ["user: Name the\ncrane.", "assistant: It is   called Betty: a fine crane."]
    talk = write_set(tmp_path / "chat", turns, [1], scope="c/1", date="2026-05-08")
    conversation = TRANSCRIPT.conversations(talk, tmp_path / "work")["c/1"]
    (file,) = conversation.folder.rglob("*.jsonl")
    assert [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] == [
        {"role": "user", "content": "Name the\ncrane.", "timestamp": "2026-05-08"},
        {"role": "assistant", "content": "It is   called Betty: a fine crane.", "timestamp": "2026-05-08"},
    ]
    assert [beginning for _, beginning in conversation.turns.values()] == [
        "Name the crane.",
        "It is called Betty: a fine crane.",
    ]


def test_speakers_with_names_keep_them_in_what_they_say(tmp_path):
    turns = ["Dana: Hello", "Joris: Hi", "Dana: Good evening"]
    talk = write_set(tmp_path / "chat", turns, [1], scope="c1", date="8 May 2026")
    (file,) = TRANSCRIPT.conversations(talk, tmp_path / "work")["c1"].folder.rglob("*.jsonl")
    assert [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] == [
        {"role": "user", "content": "Dana: Hello"},
        {"role": "assistant", "content": "Joris: Hi"},
        {"role": "user", "content": "Dana: Good evening"},
    ]


def test_evidence_of_a_transcript_is_what_stands_in_the_snippets(tmp_path):
    turns = [f"Dana: {text}" for text in FILLER]
    turns[20] = "Joris: the crane is called Betty"
    found = measured(write_set(tmp_path / "talk", turns, [20], scope="c1"), tmp_path / "work")
    assert found == {"talk (transcript)": {"evidence@6": 1.0, "evidence@4000": 1.0}}


def test_only_the_beginning_of_a_long_message_has_to_be_read(tmp_path):
    long_answer = "assistant: The crane is called Betty. " + " ".join(FILLER[:14])
    turns = ["user: hello there", long_answer, *(f"user: {text}" for text in FILLER)]
    talk = write_set(tmp_path / "talk", turns, [1], scope="c1", session="s1")
    assert not NOTES.suits(talk)  # the line would never be shown whole
    assert measured(talk, tmp_path / "work")["talk (transcript)"]["evidence@6"] == 1.0


def test_a_message_that_no_hit_shows_does_not_count(tmp_path):
    turns = ["Joris: the crane is called Betty", *(f"Dana: {text}" for text in FILLER * 20), "Joris: over there"]
    last = len(turns) - 1
    found = measured(write_set(tmp_path / "talk", turns, [0, last], scope="c1"), tmp_path / "work")
    assert found["talk (transcript)"]["evidence@6"] == 0.5


def test_turns_in_sessions_are_measured_in_both_layouts(tmp_path, capsys):
    turns = [f"Dana: {text}" for text in FILLER]
    turns[20] = "Joris: the crane is called Betty"
    talk = write_set(tmp_path / "talk", turns, [20], scope="c1", session="s1")
    figures = evaluate_evidence(talk, work=tmp_path / "work", variants=["hybrid", "keyword"], flags=HASHING)
    assert [(each.name, each.variant) for each in figures] == [
        ("talk (notes)", "hybrid"),
        ("talk (notes)", "keyword"),
        ("talk (transcript)", "hybrid"),
        ("talk (transcript)", "keyword"),
    ]
    assert figures[0].values == {"evidence": 1.0, "any evidence": 1.0}
    header, _, notes, *_, transcript = figures_table(figures)
    assert header == "| set | search | evidence | any evidence | evidence@6 | evidence@4000 | p50 ms |"
    assert [cell != "  " for cell in notes.split("|")[3:7]] == [True, True, False, False]
    assert [cell != "  " for cell in transcript.split("|")[3:7]] == [False, False, True, True]
    assert "evidence@6" not in figures_document(figures)["sets"][0]
    command = ["eval", str(tmp_path / "talk"), "--measure", "evidence", "--embedder", "hashing", "--json"]
    assert run(command) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)["sets"]] == [
        "talk (notes)",
        "talk (transcript)",
    ]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"text": "Dana: hello"}, id="neither session nor scope"),
        pytest.param({"text": "Dana: hello", "scope": "c1", "title": "May"}, id="whole sessions"),
        pytest.param({"text": "no speaker", "scope": "c1"}, id="no speaker"),
    ],
)
def test_evidence_needs_the_turns_of_conversations(tmp_path, fields):
    talk = write_set(tmp_path / "talk", [""], [0], **fields)
    with pytest.raises(TestSetError, match="every document needs a `session`"):
        evaluate_evidence(talk, work=tmp_path, variants=["hybrid"], flags={})
