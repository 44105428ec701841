"""The LangGraph store: the same operations as LangGraph's own store, on notes, and in a real graph."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from typing import TypedDict

import pytest

pytest.importorskip("langgraph", reason="needs the extra `langgraph`")

from langgraph.config import get_store
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from notewell import Memory, NoteUnreadableError, NotewellError, QueryError
from notewell.agents.adapters.langgraph import MemoryStore, note_name

NAMESPACES = [
    ("users",),
    ("users", "Dana W"),
    ("users", "dana w"),
    ("users", "中文"),
    ("a", "node_modules", "con"),
    ("b/", "x"),
]
KEYS = ["prefs", "Prefs", "2026-11-15", "con", "a/b", "..", "ключ", "k" * 300, "quote\" 'x': y\n---\nz"]
VALUES = [
    {"text": "likes tea", "score": 3, "tags": ["a", "b"]},
    {"text": "```json\n{}\n```\n---\nkey: x", "score": 5.5},
    {"score": 4, "nested": {"color": "red", "deep": {"n": None}}},
    {"text": "ünï ✓ \u2028 line", "score": -1, "flag": True},
    {},
]
FILTERS = [
    None,
    {},
    {"score": 3},
    {"score": {"$gte": 4}},
    {"score": {"$lt": 4, "$gt": 0}},
    {"nested": {"color": "red"}},
    {"tags": ["a", "b"]},
    {"text": {"$ne": "likes tea"}},
]


def plain(items):
    return sorted((item.namespace, item.key, repr(item.value)) for item in items)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_it_does_what_langgraphs_own_store_does(seed, memory):
    rng = random.Random(seed)
    ours, theirs = MemoryStore(memory), InMemoryStore()
    for _ in range(25):
        namespace, key, value = rng.choice(NAMESPACES), rng.choice(KEYS), rng.choice(VALUES)
        gone = rng.choice(NAMESPACES), rng.choice(KEYS)
        for store in (ours, theirs):
            store.put(namespace, key, value)
            store.delete(*gone)
        assert_same(ours.get(namespace, key), theirs.get(namespace, key))
        assert ours.get(*gone) is None
        prefix = rng.choice([(), ("users",), ("users", "中文"), ("nobody",)])
        wanted = rng.choice(FILTERS)
        try:
            expected = plain(theirs.search(prefix, filter=wanted, limit=100))
        except TypeError:  # theirs compares a field that is not there with a number; ours does not match then
            continue
        assert plain(ours.search(prefix, filter=wanted, limit=100)) == expected
    filled = [namespace for namespace in theirs.list_namespaces(limit=100) if has_own(theirs, namespace)]
    assert ours.list_namespaces(limit=100) == filled


def has_own(store, namespace):
    """Say whether a namespace holds items itself; theirs still lists those that were emptied."""
    return any(item.namespace == namespace for item in store.search(namespace, limit=100))


def assert_same(one, other):
    assert (one is None) == (other is None)
    if one is not None:
        assert (one.namespace, one.key, one.value) == (other.namespace, other.key, other.value)


def test_an_item_is_a_note_that_people_can_read_and_edit(memory):
    store = MemoryStore(memory)
    store.put(("users", "dana"), "food", {"text": "likes gunpowder tea"})
    note = memory.workspace / "memory" / "store" / "users" / "dana" / "food.md"
    text = note.read_text(encoding="utf-8")
    assert text.startswith("---\nnotewell-item: 1\n")
    assert "# food" in text
    first = store.get(("users", "dana"), "food")
    note.write_text(text.replace("gunpowder", "oolong"), encoding="utf-8")
    again = store.get(("users", "dana"), "food")
    assert again.value == {"text": "likes oolong tea"}
    assert again.created_at == first.created_at
    store.put(("users", "dana"), "food", {"text": "likes coffee"})
    last = store.get(("users", "dana"), "food")
    assert last.created_at == first.created_at
    assert last.updated_at > first.updated_at


def test_a_query_ranks_what_the_search_finds_and_the_rest_follows(memory):
    store = MemoryStore(memory)
    store.put(("facts",), "one", {"text": "the ferry to Barreiro leaves at nine"})
    store.put(("facts",), "two", {"text": "the bakery opens at seven"})
    store.put(("facts",), "three", {"text": "ferry ferry ferry"}, index=False)
    store.put(("other",), "four", {"text": "ferry tickets"})
    found = store.search(("facts",), query="when does the ferry leave?")
    assert [item.key for item in found] == ["one", "three", "two"]
    assert found[0].score is not None
    assert [item.score for item in found[1:]] == [None, None]
    assert [item.key for item in store.search(("facts",), query="ferry", limit=1, offset=1)] == ["three"]
    assert [hit.path for hit in memory.search("bakery", sync=False).hits] == ["memory/store/facts/two.md"]
    store.delete(("facts",), "two")
    assert memory.search("bakery", sync=False).hits == ()


def test_a_batch_reads_what_was_there_before_and_the_last_write_counts(memory):
    store = MemoryStore(memory)
    store.put(("n",), "k", {"v": 1})
    results = store.batch(
        [PutOp(("n",), "k", {"v": 2}), GetOp(("n",), "k"), PutOp(("n",), "k", {"v": 3}), SearchOp(("n",))]
    )
    assert results[1].value == {"v": 1}
    assert [item.value for item in results[3]] == [{"v": 1}]
    assert store.get(("n",), "k").value == {"v": 3}


def test_the_asynchronous_methods_do_the_same(memory):
    async def use() -> list:
        store = MemoryStore(memory)
        await asyncio.gather(*(store.aput(("n",), f"k{n}", {"v": n}) for n in range(6)))
        await store.adelete(("n",), "k0")
        assert await store.aget(("n",), "k0") is None
        assert await store.alist_namespaces(suffix=("n",)) == [("n",)]
        return await store.asearch(("n",), filter={"v": {"$gt": 3}})

    assert sorted(item.value["v"] for item in asyncio.run(use())) == [4, 5]


def test_namespaces_are_listed_by_pattern_and_depth(memory):
    store = MemoryStore(memory)
    for namespace in [("a", "b", "c"), ("a", "d", "c"), ("a", "b", "e"), ("z",)]:
        store.put(namespace, "k", {"v": 1})
    assert store.list_namespaces(prefix=("a", "*"), suffix=("c",)) == [("a", "b", "c"), ("a", "d", "c")]
    assert store.list_namespaces(max_depth=2) == [("a", "b"), ("a", "d"), ("z",)]
    assert store.list_namespaces(limit=1, offset=3) == [("z",)]


def test_names_that_differ_are_files_that_differ_on_every_system():
    names = [*KEYS, "Con", "PREFS", "node_modules", ".hidden", "a b", "a-b", "", "a\\b", "x" * 80, "x" * 81]
    made = [note_name(name) for name in names]
    assert len({name.casefold() for name in made}) == len(set(names))
    assert all(len(name) <= 80 for name in made)


def test_a_corrupt_note_is_reported_and_the_others_still_work(memory, caplog):
    store = MemoryStore(memory)
    store.put(("n",), "good", {"v": 1})
    store.put(("n",), "bad", {"v": 2})
    note = memory.workspace / "memory" / "store" / "n" / "bad.md"
    note.write_text(note.read_text().replace('"v"', "v"))
    with pytest.raises(NoteUnreadableError, match=r"memory/store/n/bad\.md"):
        store.get(("n",), "bad")
    assert [item.key for item in store.search(("n",))] == ["good"]
    assert "memory/store/n/bad.md" in caplog.text


def test_a_huge_note_is_an_error_and_is_not_read(memory):
    store = MemoryStore(memory)
    store.put(("n",), "big", {"x": 1})
    os.truncate(memory.workspace / "memory" / "store" / "n" / "big.md", 2 * 10**9)
    with pytest.raises(NoteUnreadableError, match="larger than 64 MB"):
        store.get(("n",), "big")


def test_invalid_values_are_refused_before_anything_is_written(memory):
    store = MemoryStore(memory)
    with pytest.raises(NotewellError, match="cannot be written as JSON"):
        store.batch([PutOp(("n",), "good", {"v": 1}), PutOp(("n",), "bad", {"v": object()})])
    assert store.search(("n",)) == []
    with pytest.raises(InvalidNamespaceError):
        store.put((), "k", {"v": 1})
    store.put(("n",), "k", {"v": 1})
    with pytest.raises(QueryError, match=r"unknown filter operator: \$in"):
        store.search(("n",), filter={"v": {"$in": [1]}})


def test_it_is_not_for_groups(workspace):
    with Memory.open(workspace, provider="none", chat="group") as memory, pytest.raises(QueryError):
        MemoryStore(memory)


def test_many_threads_write_at_once(memory):
    store = MemoryStore(memory)
    threads = [threading.Thread(target=store.put, args=(("t",), f"k{n}", {"v": n})) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(item.value["v"] for item in store.search(("t",), limit=50)) == list(range(12))


class State(TypedDict):
    said: str
    recalled: str


def test_a_graph_uses_it(memory):
    def listen(state: State) -> State:
        get_store().put(("chat",), "said", {"text": state["said"]})
        return state

    def recall(state: State) -> State:
        found = get_store().search(("chat",), query="the name of the cat")
        return {"said": state["said"], "recalled": found[0].value["text"]}

    graph = StateGraph(State)
    graph.add_node("listen", listen)
    graph.add_node("recall", recall)
    graph.add_edge(START, "listen")
    graph.add_edge("listen", "recall")
    graph.add_edge("recall", END)
    done = graph.compile(store=MemoryStore(memory)).invoke({"said": "my cat is called Pixel", "recalled": ""})
    assert done["recalled"] == "my cat is called Pixel"
