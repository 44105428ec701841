"""What `training/data` and the rules beside it give the model to read."""

from __future__ import annotations

import random

import pytest
from training.grammar import DATA, read_facts, read_talks
from training.statements import base_form, statement_questions


@pytest.mark.parametrize("path", sorted(DATA.glob("facts-*.txt")), ids=lambda path: path.stem)
def test_every_fact_is_told_and_asked_in_its_languages(path):
    told = {message.language for talks in read_facts(path) for talk in talks for message in talk}
    assert told == set(path.stem.split("-")[1:3])
    for talks in read_facts(path):
        for message in (message for talk in talks for message in talk):
            columns = (message.text, *message.questions, message.english, message.english_question)
            assert all(column.strip() for column in columns)


@pytest.mark.parametrize("path", sorted(DATA.glob("talks-*.txt")), ids=lambda path: path.stem)
def test_every_message_of_a_talk_answers_a_question(path):
    talks = read_talks(path)
    assert len(talks) > 10
    for message in (message for talk in talks for message in talk):
        assert message.text
        assert message.questions
        assert message.language == path.stem.split("-")[1]


@pytest.mark.parametrize(
    ("past", "base"),
    [("went", "go"), ("stopped", "stop"), ("baked", "bake"), ("visited", "visit"), ("studied", "study"), ("red", "")],
)
def test_verbs_of_the_past_have_a_base_form(past, base):
    assert base_form(past) == base


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("I went to Ghent last week.", {"Where did Ayla go?", "When did Ayla go to Ghent?", "Did Ayla go to Ghent?"}),
        (
            "I've been painting for two years.",
            {"How long has Ayla been painting?", "Since when has Ayla been painting?"},
        ),
        ("We can't swim here.", {"What can't Ayla swim?", "Why can't Ayla swim here?"}),
        ("Sounds good!", set()),
    ],
)
def test_what_people_say_of_themselves_is_asked_about(said, asked):
    choice = random.Random(1)
    choice.random = lambda: 0.0  # no word is replaced
    assert set(statement_questions(said, "Ayla", choice, most=9)) == asked
