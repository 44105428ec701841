"""The spending limit: what exceeds it stays pending, keyword search finds it, and a note gives its price."""

from __future__ import annotations

import os
import re

import pytest

from notewell import AsyncMemory, Memory
from notewell.agents.tools import MemoryTools
from tests.fakes.providers import FakeOpenAI
from tests.indexing.embedders import WatchedEmbedder

SMALL, LARGE = "text-embedding-3-small", "text-embedding-3-large"
DEAR = {f"openai/{SMALL}": "10000", f"openai/{LARGE}": "10000"}  # a workspace of 7 short notes costs some dollars
LONG_AGO = 1_780_000_000  # seconds; any time that is past
CHEAP = {f"openai/{SMALL}": "0.02"}
NOTE = re.compile(
    r"(\d+) chunks have no vector yet \(keyword search finds them\): embedding them would cost about \$([\d.]+), "
    r"more than cost\.confirm_above_usd; run `notewell index`"
)


@pytest.fixture
def provider():
    with FakeOpenAI() as fake:
        yield fake


@pytest.fixture
def open_paid(provider, workspace):
    """Open the workspace with a provider that charges."""

    def opened(prices=DEAR, **options) -> Memory:
        return Memory.open(
            workspace,
            provider="openai",
            remote__base_url=provider.base_url,
            remote__api_key=provider.key,
            cost__prices=prices,
            **options,
        )

    return opened


def texts_sent(provider) -> int:
    return sum(len(request.json["input"]) for request in provider.requests_to("embed"))


def notes_of(told) -> list[tuple[int, float]]:
    found = [NOTE.fullmatch(note) for note in told]
    return [(int(match[1]), float(match[2])) for match in found if match]


def search(memory: Memory):
    return memory.search("printer").notes


def begin_session(memory: Memory):
    memory.begin_session()
    assert memory.wait_until_synced(60)
    return memory.search("printer", sync=False).notes


def watch(memory: Memory):
    reports = []
    with memory.watch(on_sync=reports.append):
        memory.wait_until_synced(60)
        memory.begin_session()
        memory.wait_until_synced(60)
    return reports[-1].notes


def remember(memory: Memory):
    return memory.remember("The ferry to Almada leaves from pier four.").notes


def append_by_a_tool(memory: Memory):
    notes = MemoryTools(memory).call("memory_write", {"text": "Pier four it is."}).document["notes"]
    assert not any("`notewell" in note for note in notes)  # a tool names no command
    return [f"{note}; run `notewell index`" for note in notes]


WAYS = [search, begin_session, watch, remember, append_by_a_tool]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_is_too_dear_waits_and_is_found_by_words(open_paid, provider, way):
    with open_paid() as memory:
        (told,) = notes_of(way(memory))
        answer = memory.search("printer")
        assert (told[0], told[1] > 1) == (memory.status().pending, True)
        assert answer.hits[0].path == "memory/network.md"
        assert (answer.mode, answer.index.pending) == ("keyword", told[0])
        assert notes_of(answer.notes) == [told]
    assert provider.requests == []


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize(
    ("prices", "options"),
    [pytest.param(CHEAP, {}, id="cheap"), pytest.param(DEAR, {"cost__confirm_above_usd": 1e6}, id="a high limit")],
)
def test_what_is_cheap_enough_is_embedded(open_paid, provider, way, prices, options):
    with open_paid(prices, **options) as memory:
        assert notes_of(way(memory)) == []
        assert memory.search("printer").mode == "hybrid"
        assert memory.status().pending == 0
    assert texts_sent(provider) >= 7


def test_a_conversation_that_grows_is_not_embedded_unasked(open_paid, provider):
    sessions = {"sources": ["memory", "sessions"], "experimental__session_memory": True}
    with open_paid(**sessions, sync__sessions__debounce_ms=0, sync__sessions__delta_messages=1) as memory:
        memory.search("printer")
        memory.conversations.create("talk")
        memory.conversations.append("talk", {"role": "user", "content": "The lighthouse keeper is called Aurora."})
    with open_paid(**sessions) as memory:
        assert memory.search("lighthouse keeper Aurora", source="sessions").hits
    assert provider.requests == []


def test_who_asks_for_the_index_has_decided(open_paid, provider):
    with open_paid() as memory:
        memory.search("printer")
        report = memory.index()
        assert (report.embedded, report.pending) == (7, 0)
        answer = memory.search("printer")
        assert (answer.mode, notes_of(answer.notes)) == ("hybrid", [])
    assert texts_sent(provider) == 8  # the notes and the query


def test_a_small_change_of_an_embedded_memory_is_within_the_limit(open_paid, workspace, provider):
    with open_paid(cost__confirm_above_usd=0.5) as memory:
        memory.index()
        (workspace / "memory" / "new.md").write_text("Aurora.\n", encoding="utf-8")
        assert memory.search("Aurora").index.pending == 0
        (workspace / "memory" / "long.md").write_text("The keeper is called Aurora. " * 40, encoding="utf-8")
        answer = memory.search("keeper")
        assert (answer.mode, answer.index.pending) == ("hybrid", 1)
        assert [count for count, _ in notes_of(answer.notes)] == [1]


def test_what_was_found_too_dear_is_not_weighed_again_by_every_search(open_paid, workspace):
    for note in workspace.rglob("*.md"):
        os.utime(note, (LONG_AGO, LONG_AGO))  # a note just written is looked at once more
    with open_paid() as memory:
        memory.search("printer")
        (first,) = notes_of(search(memory))
        sync = memory._components.sync
        embedder, _, up_to_date = sync._look(sync._search_policy(embed=True))
        assert (embedder, up_to_date) == (None, True)
        (workspace / "memory" / "new.md").write_text("The keeper is called Aurora.\n", encoding="utf-8")
        assert memory.search("Aurora").hits[0].path == "memory/new.md"
        (second,) = notes_of(search(memory))
        (workspace / "memory" / "new.md").unlink()
        memory.search("printer")
        assert (second[0], second[1] > first[1]) == (first[0] + 1, True)
        assert notes_of(search(memory)) == [first]
    with open_paid(cost__confirm_above_usd=1e6) as memory:  # the limit is the one of now, not of then
        assert memory.search("printer").mode == "hybrid"


def test_vectors_that_are_known_cost_nothing_and_are_used(open_paid, workspace, provider):
    note, network = workspace / "memory" / "network.md", "memory/network.md"
    with open_paid(cost__confirm_above_usd=0.01) as memory:
        memory.index()
        before = note.read_text(encoding="utf-8")
        note.write_text("# Network\n\n" + "The lighthouse keeper is called Aurora. " * 20, encoding="utf-8")
        assert memory.search("Aurora").index.pending == 1
        note.write_text(before, encoding="utf-8")
        memory.sync(paths=[network])
        assert memory.status().pending == 0
    assert texts_sent(provider) == 8  # the notes and one query


def test_the_vectors_of_another_model_stay_in_use_if_replacing_them_is_too_dear(open_paid, workspace, provider):
    with open_paid() as memory:
        memory.index()
    sent = texts_sent(provider)
    with open_paid(model=LARGE) as memory:
        (workspace / "memory" / "new.md").write_text("The keeper is called Aurora.\n", encoding="utf-8")
        memory.begin_session()
        assert memory.wait_until_synced(60)
        answer = memory.search("Aurora")
        assert (answer.mode, answer.hits[0].path) == ("hybrid", "memory/new.md")
        assert any(f"answered with the vectors of openai/{SMALL}" in note for note in answer.notes)
        report = memory.sync()
        assert [count for count, _ in notes_of(report.notes)] == [8]
        assert texts_sent(provider) == sent + 2  # the new note and the query, by the model that is in use
        assert memory.index().rebuilt
        assert memory.status().index_embedder.startswith(f"openai/{LARGE}")


def test_code_in_an_event_loop_is_not_charged_either(open_paid, provider, workspace):
    import asyncio

    async def ask():
        with open_paid() as memory:
            asynchronous = AsyncMemory(memory)
            return await asynchronous.search("printer")

    assert notes_of(asyncio.run(ask()).notes)
    assert provider.requests == []


def test_an_embedder_without_a_known_price_is_not_held_back(workspace):
    embedder = WatchedEmbedder()
    with Memory.open(workspace, embedder=embedder, cost__confirm_above_usd=0) as memory:
        assert memory.search("printer").index.pending == 0
    assert embedder.embedded >= 7
