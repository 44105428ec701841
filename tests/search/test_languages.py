"""Questions and notes in several languages: vectors count where the model was measured, keywords where it was not."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest

from notewell import Memory
from notewell.cli.main import run
from notewell.embedding.local import models
from notewell.types import EmbedderIdentity

GRANITE = "granite-embedding-30m-english"
KEY = {
    "memory/en.md": "The spare key is under the flower pot beside the garage door.\n",
    "memory/de.md": "Die Waschmaschine verliert Wasser, der Techniker kommt am Dienstag um neun Uhr.\n",
    "memory/fr.md": "Le rendez-vous chez le dentiste est prévu mardi prochain à neuf heures du matin.\n",
    "memory/zh.md": "奶奶的生日在六月十二日, 她喜欢黄色的玫瑰花。\n",
}
MEANINGS = (  # of words in three languages, one dimension each
    {"key", "schlüssel", "ersatzschlüssel", "clé", "钥匙"},
    {"washing", "machine", "waschmaschine", "lave-linge"},
    {"dentist", "zahnarzt", "dentiste", "牙医"},
    {"birthday", "geburtstag", "anniversaire", "生日"},
)


class Concepts:
    """An embedder that understands a few words in several languages, and says nothing about languages."""

    identity = EmbedderIdentity("test", "concepts", "1", 8)
    quantization = "int8"
    cosine_range = (0.0, 0.9)

    def knows(self, text):
        return bool(text)

    def embed_documents(self, texts):
        return np.stack([self.embed_query(text) for text in texts]) if texts else np.empty((0, 8), np.float32)

    def embed_query(self, text):
        vector = np.zeros(8, np.float32)
        for dimension, words in enumerate(MEANINGS):
            vector[dimension] = any(word in text.lower() for word in words)
        vector[4 + zlib.crc32(text.encode()) % 4] += 0.05
        return vector / np.linalg.norm(vector)

    def close(self):
        pass


class Measured(Concepts):
    """The same, measured in some languages."""

    def __init__(self, **weights):
        self.language_weights = weights

    def knows(self, text):
        from notewell.text.languages import language_of

        return self.language_weights.get(language_of(text), 1) > 0


def write_notes(folder, notes=KEY):
    for name, text in notes.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def first(answer):
    return answer.hits[0].path if answer.hits else None


# --- the packaged model for English --------------------------------------------------------------


@pytest.mark.slow
def test_the_english_model_embeds_no_german_french_or_chinese_notes(tmp_path):
    with Memory.open(write_notes(tmp_path), provider="local", model=GRANITE) as memory:
        report = memory.index()
        assert (report.unknown, report.embedded) == (3, 1)
        answer = memory.search("where did I put the spare key?")
        assert (answer.mode, first(answer), answer.notes) == ("hybrid", "memory/en.md", ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "language", "path"),
    [
        ("Wann kommt der Techniker für die Waschmaschine?", "German", "memory/de.md"),
        ("quand est le rendez-vous chez le dentiste ?", "French", "memory/fr.md"),
        ("奶奶的生日是哪天?", "Chinese", "memory/zh.md"),
    ],
)
def test_a_question_in_another_language_says_what_helps(tmp_path, capsys, question, language, path):
    folder = write_notes(tmp_path)
    settings = ["--set", "provider=local", "--set", f"model={GRANITE}"]
    assert run(["index", "-w", str(folder), *settings]) == 0
    capsys.readouterr()
    assert run(["search", question, "--json", "-w", str(folder), *settings]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["mode"] == "keyword"
    assert answer["hits"][0]["path"] == path
    (note,) = (note for note in answer["notes"] if "does not support" in note)
    assert note.startswith(f"keyword search only: {GRANITE} does not support {language}; ")
    assert "`notewell index --force`" in note


@pytest.mark.slow
def test_what_helps_depends_on_what_is_installed(tmp_path, monkeypatch):
    with Memory.open(write_notes(tmp_path), provider="local", model=GRANITE) as memory:
        memory.index()
        monkeypatch.setattr(models, "memory_model_folder", lambda: None)
        (note,) = memory.search("Wann kommt der Techniker für die Maschine?").notes
        assert "`pip install ./models/notewell-memory`" in note
        monkeypatch.setattr(models, "memory_model_folder", lambda: tmp_path)
        (note,) = memory.search("Wann kommt der Techniker für die Maschine?").notes
        assert 'set model = "notewell-memory" and run `notewell index --force`' in note


# --- a model that was measured language by language ----------------------------------------------


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("Wo liegt denn mein Ersatzschlüssel?", "memory/en.md"),
        ("when does the washing machine get repaired?", "memory/de.md"),
        ("wann habe ich den Termin beim Zahnarzt?", "memory/fr.md"),
        ("quelle est la date de son anniversaire ?", "memory/zh.md"),
        ("我的钥匙放在什么地方了?", "memory/en.md"),
    ],
)
def test_a_note_in_another_language_is_found_by_a_default_search(tmp_path, question, path):
    with Memory.open(write_notes(tmp_path), embedder=Measured(en=1.0, de=1.0, fr=1.0, zh=1.0)) as memory:
        memory.index()
        assert first(memory.search(question)) == path


def test_a_question_about_nothing_in_the_notes_finds_nothing_in_another_language(tmp_path):
    with Memory.open(write_notes(tmp_path), embedder=Measured(en=1.0, de=1.0, fr=1.0, zh=1.0)) as memory:
        memory.index()
        assert memory.search("Wie hoch ist eigentlich der Mont Blanc?").hits == ()


def test_notes_in_a_language_of_weight_zero_are_not_ranked_by_vector(tmp_path):
    with Memory.open(write_notes(tmp_path), embedder=Measured(en=1.0, de=0.0, fr=1.0, zh=1.0)) as memory:
        assert memory.index().unknown == 1
        assert first(memory.search("when does the washing machine get repaired?")) != "memory/de.md"
        answer = memory.search("Wann kommt der Techniker für die Waschmaschine?")
        assert (answer.mode, first(answer)) == ("keyword", "memory/de.md")
        assert answer.notes == ("keyword search only: concepts does not support German",)


def test_a_small_weight_leaves_the_order_to_keywords(tmp_path):
    notes = {
        "memory/words.md": "Der Termin mit dem Techniker in der Werkstatt ist am Dienstag um neun.\n",
        "memory/meaning.md": "Der Zahnarzt hat die Rechnung für die Krone geschickt, der Termin war gut.\n",
    }
    question = "Wann ist der Termin in der Werkstatt, vor dem Zahnarzt?"
    shares = {}
    for weight in (0.01, 1.0):
        folder = tmp_path / str(weight)
        folder.mkdir()
        with Memory.open(write_notes(folder, notes), embedder=Measured(de=weight)) as memory:
            memory.index()
            by_path = {hit.path: hit for hit in memory.search(question, min_score=0, explain=True).hits}
            keyword = {hit.path: hit.score for hit in memory.search(question, min_score=0, mode="keyword").hits}
        shares[weight] = {path: abs(hit.score - keyword[path]) for path, hit in by_path.items()}
    assert max(shares[0.01].values()) < 0.02 < max(shares[1.0].values())


def test_a_question_whose_language_is_open_counts_fully(tmp_path):
    with Memory.open(write_notes(tmp_path), embedder=Measured(en=1.0)) as memory:
        memory.index()
        answer = memory.search("key")
        assert (answer.mode, first(answer)) == ("hybrid", "memory/en.md")


# --- a model that says nothing about languages ---------------------------------------------------


def test_an_embedder_without_languages_counts_fully_in_all(tmp_path):
    with Memory.open(write_notes(tmp_path), embedder=Concepts()) as memory:
        assert memory.index().unknown == 0
        for question, path in (
            ("Wann kommt der Techniker für die Waschmaschine?", "memory/de.md"),
            ("where is the spare key?", "memory/en.md"),
        ):
            answer = memory.search(question)
            assert (answer.mode, first(answer), answer.notes) == ("hybrid", path, ())
