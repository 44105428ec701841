"""What a search shows: through `Memory`, on real files."""

from __future__ import annotations

import json
from datetime import date, timedelta

import numpy as np
import pytest

from notewell import Memory
from notewell.types import EmbedderIdentity

TODAY = date.today()  # noqa: DTZ011  (as the search does)


def workspace(tmp_path, notes):
    for path, text in notes.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def opened(tmp_path):
    """Return what opens a memory of some notes, searched by keyword unless said otherwise."""
    memories = []

    def open_with(notes, **given):
        memory = Memory.open(workspace(tmp_path, notes), **{"provider": "none", **given})
        memories.append(memory)
        memory.index()
        return memory

    yield open_with
    for memory in memories:
        memory.close()


def paths(answer):
    return [hit.path for hit in answer.hits]


# --- honest scores -------------------------------------------------------------------------------

HARBOUR = {f"memory/{i}.md": f"The harbour crane number {i} lifts {i * 7} containers a day.\n" for i in range(30)}


@pytest.mark.parametrize("provider", ["none", "hashing"])
def test_a_score_is_the_same_at_every_threshold_and_nothing_below_it_is_shown(opened, provider):
    memory = opened(HARBOUR, provider=provider)
    everything = {hit.path: hit.score for hit in memory.search("crane number 7", limit=40, min_score=0).hits}
    for least in (0.1, 0.2, 0.3, 0.4, 0.5):
        found = {hit.path: hit.score for hit in memory.search("crane number 7", limit=40, min_score=least).hits}
        assert found == {path: score for path, score in everything.items() if score >= least}


def test_the_best_k_are_the_first_of_the_best_k_and_n(opened):
    memory = opened(HARBOUR, provider="hashing")
    longest = paths(memory.search("crane lifts containers", limit=30, min_score=0))
    for limit in (1, 2, 5, 12):
        assert paths(memory.search("crane lifts containers", limit=limit, min_score=0)) == longest[:limit]


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_limit_above_the_candidates_shows_all_that_match(opened, mode):
    notes = {f"memory/{i:03}.md": f"harbour {i}\n" for i in range(300)}
    memory = opened(notes, provider="hashing")
    assert len(memory.search("harbour", limit=400, min_score=0, mode=mode).hits) == 300


def test_age_is_shown_apart_from_relevance(opened):
    old = TODAY - timedelta(days=3000)
    memory = opened({f"memory/{old}.md": "The crane broke.\n"}, query__decay__enabled=True)
    (hit,) = memory.search("crane", explain=True).hits
    assert hit.relevance > 0.35  # the threshold is on relevance: age does not hide it
    assert hit.score < 0.001
    assert hit.explanation["age_factor"] < 0.001
    assert memory.search("crane", min_score=0.9).hits == ()


def test_without_decay_the_score_is_the_relevance(opened):
    (hit,) = opened({f"memory/{TODAY}.md": "The crane broke.\n"}).search("crane").hits
    assert hit.relevance is None


class Noise:
    """An embedder whose vectors say nothing: every text is near every question."""

    identity = EmbedderIdentity("test", "noise", "1", 8)
    quantization = "int8"
    cosine_range = (0.0, 1.0)

    def knows(self, text):
        return bool(text)

    def embed_documents(self, texts):
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text):
        rng = np.random.default_rng(abs(hash(text)) % 2**32)
        vector = np.ones(8) + rng.normal(0, 0.3, 8)
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    def close(self):
        pass


@pytest.mark.parametrize("query", ["zeppelin", "WX-4471", "what did we say about the zeppelin"])
def test_a_rare_exact_word_is_never_behind_noise(tmp_path, query):
    rare = {"memory/rare.md": "A zeppelin came by, order WX-4471, and left again towards the coast in the evening.\n"}
    folder = workspace(tmp_path, HARBOUR | rare)
    with Memory.open(folder, embedder=Noise()) as memory:
        memory.index()
        assert paths(memory.search(query))[0] == "memory/rare.md"


# --- abstaining ----------------------------------------------------------------------------------


def test_a_question_without_an_answer_shows_nothing(opened):
    assert opened(HARBOUR, provider="hashing").search("quarterly revenue of Siemens").hits == ()


INSURANCE = HARBOUR | {
    "memory/zebra.md": "Zebra zebra zebra.\n",
    "memory/zoo.md": "The zebra, as the keeper says, is new, and so are its stable, its trough and its saddle.\n",
}


def test_no_hit_scores_more_than_its_question_is_answered(opened):
    memory = opened(INSURANCE, provider="hashing")
    asked = "zebra insurance premium deadline"
    first, second = memory.search(asked, limit=2, min_score=0, explain=True).hits
    assert (first.path, second.path) == ("memory/zebra.md", "memory/zoo.md")
    assert first.score == pytest.approx(first.explanation["answered"], abs=1e-4)
    assert first.score >= second.score
    mixed = 0.65 * first.explanation["text_part"] + 0.35 * first.explanation["vector_part"]
    assert first.score < mixed
    assert memory.search(asked, min_score=(first.score + mixed) / 2).hits == ()


def test_a_question_that_is_covered_keeps_its_score(opened):
    (hit,) = opened(INSURANCE, provider="hashing").search("zebra stable and trough", limit=1, explain=True).hits
    assert hit.path == "memory/zoo.md"
    assert "answered" not in hit.explanation


def test_by_keyword_alone_no_score_is_limited(opened):
    hits = opened(INSURANCE).search("zebra insurance premium deadline", min_score=0, explain=True).hits
    assert not any("answered" in hit.explanation for hit in hits)


# --- words ---------------------------------------------------------------------------------------


def test_a_word_typed_in_part_finds_the_note(opened):
    memory = opened({**HARBOUR, "memory/vpn.md": "WireGuard listens on port 51820.\n"})
    assert paths(memory.search("wiregu")) == ["memory/vpn.md"]


def test_the_long_form_finds_the_acronym_that_a_note_explains(opened):
    memory = opened(
        {
            **HARBOUR,
            "memory/glossary.md": "WAL: write-ahead logging, how the database survives a crash.\n",
            "memory/disk.md": "The WAL of the billing database grew to 40 GB.\n",
        }
    )
    assert "memory/disk.md" in paths(memory.search("how large did the write-ahead logging of billing grow"))
    assert "memory/glossary.md" in paths(memory.search("WAL"))


# --- time ----------------------------------------------------------------------------------------

MEETINGS = {f"memory/2026-{month:02}-14.md": "Met the landlord about the heating.\n" for month in range(1, 10)} | {
    "memory/2026-08-20.md": "Planted two pear trees.\n",
    "memory/pets.md": "The cat is called Miso.\n",
}


def test_a_time_in_the_question_is_a_filter_and_the_answer_says_so(opened):
    answer = opened(MEETINGS).search("the landlord in March 2026")
    assert paths(answer) == ["memory/2026-03-14.md"]
    assert "limited to the time in the question (in March 2026: 2026-03-01 to 2026-03-31)" in answer.notes


@pytest.mark.parametrize("provider", ["none", "hashing"])
def test_a_question_for_nothing_but_a_time_shows_all_that_is_of_it_newest_first(opened, provider):
    answer = opened(MEETINGS, provider=provider).search("what happened in August 2026")
    assert paths(answer) == ["memory/2026-08-20.md", "memory/2026-08-14.md"]


def test_a_question_for_nothing_but_a_time_keeps_to_the_threshold(opened):
    memory = opened(MEETINGS)
    (hit, *_) = memory.search("what happened in August 2026").hits
    assert memory.search("what happened in August 2026", min_score=hit.score - 0.01).hits
    assert not memory.search("what happened in August 2026", min_score=hit.score + 0.01).hits


def test_where_a_filter_would_leave_nothing_the_answer_says_so_and_searches_without_it(opened):
    answer = opened(MEETINGS).search("what is the cat called, March 2025")
    assert paths(answer) == ["memory/pets.md"]
    meaning = "March 2025: 2025-03-01 to 2025-03-31"
    assert f"no matches from the time in the question ({meaning}); searched all dates" in answer.notes


def test_a_note_of_another_day_that_names_the_time_passes_the_filter(opened):
    later = {"memory/2026-09-30.md": "On 14 March 2026 the landlord promised a new boiler.\n"}
    assert set(paths(opened(MEETINGS | later).search("landlord on 14 March 2026"))) == {
        "memory/2026-03-14.md",
        "memory/2026-09-30.md",
    }


def test_an_explicit_bound_holds_beside_the_time_in_the_question(opened):
    answer = opened(MEETINGS).search("landlord in 2026", since="2026-08-01")
    assert set(paths(answer)) == {"memory/2026-08-14.md", "memory/2026-09-14.md"}


@pytest.mark.parametrize(
    ("query", "first"),
    [
        pytest.param("the newest meeting with the landlord", "memory/2026-09-14.md", id="newest"),
        pytest.param("the oldest note about the landlord", "memory/2026-01-14.md", id="oldest"),
    ],
)
def test_the_newest_and_the_oldest_are_orders(opened, query, first):
    assert paths(opened(MEETINGS).search(query))[0] == first


def test_a_date_in_the_front_matter_counts_like_one_in_the_name(opened):
    memory = opened({**MEETINGS, "memory/roof.md": "---\ndate: 2026-03-02\n---\nThe landlord looked at the roof.\n"})
    assert set(paths(memory.search("landlord in March 2026"))) == {"memory/2026-03-14.md", "memory/roof.md"}
    assert set(paths(memory.search("landlord", on="2026-03-02"))) == {"memory/roof.md"}


# --- conversations -------------------------------------------------------------------------------


def talk(tmp_path, *messages):
    talks = tmp_path / "talks"
    talks.mkdir(exist_ok=True)
    lines = [json.dumps({"role": role, "content": text}) for role, text in messages]
    (talks / "chat.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"sources": ["sessions"], "experimental__session_memory": True, "sessions__paths": [str(talks)]}


LONG_REPLY = "Remote work needs a plan. " + "Here are many general remarks on work and days. " * 120


def test_a_short_message_is_shown_whole_beside_a_long_reply(opened, tmp_path):
    said = "I start remote work three days a week from June 15, how can I prepare?"
    given = talk(
        tmp_path,
        ("user", "Good morning"),
        ("assistant", "Good morning! What can I do for you?"),
        ("user", said),
        ("assistant", LONG_REPLY),
        ("user", "Thanks, and what shall I cook?"),
    )
    (hit, *_) = opened({}, **given).search("from when on do I work remotely, and on how many days a week?").hits
    assert f"User: {said}" in hit.snippet
    assert len(hit.snippet) <= 700


def test_a_hit_shows_the_answer_beside_the_question_and_cites_both(opened, tmp_path):
    given = talk(
        tmp_path,
        *(("user", f"remark {i} on nothing") for i in range(20)),
        ("user", "What is the crane called?"),
        ("assistant", "Betty."),
        ("user", "x" * 800),
    )
    (hit,) = opened({}, **given).search("crane").hits
    *lines, last = hit.snippet.split("\n")
    assert lines == ["User: remark 19 on nothing", "User: What is the crane called?", "Assistant: Betty."]
    assert last.startswith("User: xxx")
    assert last.endswith("…")
    assert (hit.first_line, hit.last_line) == (20, 23)


def test_messages_that_a_better_hit_shows_are_not_repeated_around_another(opened, tmp_path):
    reply = "Assistant: It is lifted by the harbour master. " + "And so on. " * 40
    given = talk(
        tmp_path,
        ("user", "What is the crane called, and who lifts the crane?"),
        ("assistant", reply.removeprefix("Assistant: ")),
        ("user", "And the crane of the other port? " + "It is old. " * 40),
    )
    shown = [hit.snippet for hit in opened({}, **given).search("crane").hits]
    assert len(shown) == 2
    assert sum("harbour master" in snippet for snippet in shown) == 1


def test_a_long_neighbour_is_shown_as_far_as_it_fits(opened, tmp_path):
    given = talk(tmp_path, ("user", "What is the crane called?"), ("assistant", "Betty. " + "And so on. " * 200))
    (hit,) = opened({}, **given).search("crane").hits
    first, second = hit.snippet.split("\n")
    assert first == "User: What is the crane called?"
    assert second.startswith("Assistant: Betty. And so on.")
    assert second.endswith("…")
    assert len(hit.snippet) <= 700
