"""Fifty facts in one note: a question finds the one that it is about, alone, with an id and without its provenance."""

from __future__ import annotations

import pytest

from notewell import Memory
from notewell.agents.tools import MemoryTools
from notewell.embedding.hashing import HashingEmbedder
from notewell.text.entries import find_entries

pytestmark = pytest.mark.slow

PEOPLE = """Anna Bruno Carla Dieter Elena Fabian Greta Hugo Irene Jonas Klara Lars Mona Nils Olga Paul Quirin Rosa Sven
Tanja Ulrich Vera Walter Xenia Yann""".split()
CITIES = """Lisbon Porto Madrid Rome Turin Oslo Bergen Vienna Graz Zurich Basel Paris Lyon Nantes Ghent Bruges Delft
Leiden Aarhus Malmo Tartu Riga Vilnius Krakow Brno""".split()
SERVICES = """billing search login mail cron queue cache image audit export import report session token webhook backup
metric trace config deploy ledger invoice quota badge alert""".split()
ASKED = {  # question -> the fact that answers it
    **{
        f"What is {name}'s favourite city?": f"{name}'s favourite city is {city}."
        for name, city in zip(PEOPLE, CITIES, strict=True)
    },
    **{
        f"which port does the {service} service use": f"The port of the {service} service is {7000 + number}."
        for number, service in enumerate(SERVICES)
    },
}


class WatchedEmbedder(HashingEmbedder):
    """Keeps what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed_documents(self, texts):
        self.texts += texts
        return super().embed_documents(texts)


@pytest.fixture(scope="module", params=["keyword", "hybrid"])
def remembered(request, tmp_path_factory):
    workspace = tmp_path_factory.mktemp("facts")
    (workspace / "MEMORY.md").write_text("# Memory\n")
    embedder = WatchedEmbedder()
    options = {"embedder": embedder} if request.param == "hybrid" else {"provider": "none"}
    with Memory.open(workspace, **options) as memory:
        entries = {
            fact: memory.remember(fact, to="memory/facts.md", source="a letter").entry for fact in ASKED.values()
        }
        yield memory, entries, embedder


def test_each_question_finds_its_fact_and_only_that_one(remembered):
    memory, entries, _ = remembered
    for question, fact in ASKED.items():
        hit = memory.search(question, sync=False).hits[0]
        assert (hit.snippet.removeprefix("# Facts\n\n"), hit.entry) == (fact, entries[fact])
        assert hit.first_line <= hit.last_line <= hit.first_line + 2  # the first one stands below the heading


def test_the_tool_gives_the_id_of_the_entry(remembered):
    memory, entries, _ = remembered
    hits = MemoryTools(memory).call("memory_search", {"query": "What is Hugo's favourite city?"}).document["hits"]
    assert hits[0]["entry"] == entries["Hugo's favourite city is Vienna."]
    assert "a letter" not in hits[0]["snippet"]


def test_ids_are_unique_and_stay_when_the_note_is_edited(remembered):
    memory, entries, _ = remembered
    assert len(set(entries.values())) == 50
    note = memory.workspace / "memory" / "facts.md"
    moved = note.read_text().replace("# Facts\n", "# Facts\n\nA line above them all.\n")
    assert [entry.id for entry in find_entries(moved).entries] == list(entries.values())


def test_provenance_is_not_embedded(remembered):
    _, _, embedder = remembered
    assert not [text for text in embedder.texts if "a letter" in text or "<!--" in text or "author=" in text]
