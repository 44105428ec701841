"""The example workspace answers the questions a user would ask it, with the real model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from notewell import Memory

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parent
QUESTIONS = json.loads((TESTS / "examples_questions.json").read_text(encoding="utf-8"))
EXACT, PARAPHRASED, UNSPACED = QUESTIONS[:12], QUESTIONS[12:26] + QUESTIONS[37:], QUESTIONS[26:37]
FOUND_AT_LEAST = 12  # of the 17 paraphrased ones among the first three, without a threshold
SHOWN_AT_LEAST = 8  # of these, with the default one: they share hardly a word with their answers


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("example") / "workspace"
    shutil.copytree(TESTS.parents[1] / "examples" / "workspace", folder, ignore=shutil.ignore_patterns(".notewell"))
    with Memory.open(folder, provider="local") as opened:
        opened.index()
        yield opened


def rank(memory, question, *, min_score=None):
    """Return at which place the lines that answer stand, from 1; 0 if nowhere."""
    for place, hit in enumerate(memory.search(question["question"], min_score=min_score).hits, start=1):
        note = memory.get(hit.path, first_line=hit.first_line, lines=hit.last_line - hit.first_line + 1)
        if hit.path == question["path"] and question["must_contain"] in note.text:
            return place
    return 0


@pytest.mark.parametrize("question", EXACT + UNSPACED, ids=lambda question: question["question"])
def test_words_and_identifiers_are_among_the_first_two(memory, question):
    assert rank(memory, question) in {1, 2}


def test_paraphrased_questions_are_answered(memory):
    for min_score, at_least in ((0, FOUND_AT_LEAST), (None, SHOWN_AT_LEAST)):
        ranks = {question["question"]: rank(memory, question, min_score=min_score) for question in PARAPHRASED}
        assert sum(1 <= place <= 3 for place in ranks.values()) >= at_least, ranks
