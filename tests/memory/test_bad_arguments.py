"""Whatever is given to a public call, its error is one of notewell's that says what is wrong."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
from contextlib import suppress

import pytest

from notewell import AsyncMemory, Memory, NotewellError, QueryError, RememberError, close_shared_memories, shared_memory
from notewell.agents.tools import MemoryTools
from notewell.embedding.hashing import HashingEmbedder
from notewell.search.options import SearchOptions
from notewell.sessions import ConversationStore

GOOD = {
    "query": "heron",
    "topic": "heron",
    "path": "memory/birds.md",
    "text": "a heron",
    "entry": "k3f9a2qx",
    "session_id": "chat-1",
    "summary": "they met",
}
BAD = {
    "None": None,
    "empty": "",
    "number": 7,
    "negative": -1,
    "true": True,
    "bytes": b"x",
    "list": [],
    "mixed list": ["a", None],
    "table": {},
    "object": object(),
    "nul": "a\0b",
    "half a pair": "\ud800",
    "huge": "x" * 200_000,
    "huge number": 10**30,
    "fraction": 1.5,
    "nan": math.nan,
    "infinite": math.inf,
    "outside": "../../etc/passwd",
    "no line": "memory/birds.md#L0",
}


def calls() -> list[tuple[type, str, str]]:
    """Return every parameter of every public method; `*name` for the rest."""
    found = []
    for owner in (Memory, ConversationStore):
        for name, method in inspect.getmembers(owner, inspect.isfunction):
            if name.startswith("_") or name == "close":
                continue
            for parameter in list(inspect.signature(method).parameters.values())[1:]:
                if parameter.kind is parameter.VAR_KEYWORD:
                    options = SearchOptions.__annotations__ if owner is Memory else ["title", "nonsense"]
                    found += [(owner, name, option) for option in options]
                else:
                    star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
                    found.append((owner, name, f"{star}{parameter.name}"))
    return found


@pytest.fixture
def memory(workspace):
    (workspace / "memory" / "birds.md").write_text("# Birds\n\nThe heron fishes at dawn.\n")
    with Memory.open(workspace, embedder=HashingEmbedder(), sources=["memory", "sessions"]) as opened:
        opened.conversations.create("chat-1")
        opened.conversations.append("chat-1", {"role": "user", "content": "a heron"})
        opened.index()
        yield opened


@pytest.mark.parametrize(
    ("owner", "method", "parameter"), calls(), ids=lambda each: getattr(each, "__name__", str(each))
)
def test_every_bad_argument_is_an_error_of_ours_or_does_no_harm(memory, owner, method, parameter):
    call = getattr(memory if owner is Memory else memory.conversations, method)
    needed = [
        each.name
        for each in inspect.signature(call).parameters.values()
        if each.default is each.empty and each.kind in {each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY}
    ]
    for value in BAD.values():
        if parameter == "timeout_s" and value == math.inf:
            continue  # waits for ever, as asked
        named = {name: GOOD.get(name, "x") for name in needed}
        rest = (*(named.pop(name) for name in needed), value) if parameter.startswith("*") else ()
        with suppress(NotewellError):
            done = call(*rest, **(named if rest else named | {parameter: value}))
            if method in {"watch", "on_update"}:
                done.stop() if method == "watch" else done()
    memory.index()
    assert memory.verify().equal


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        pytest.param("forget", (None,), "entries must be text, got None", id="forget"),
        pytest.param("remember", (7,), "text must be text, got 7", id="remember"),
        pytest.param("search", (["a"],), "query must be text, got ['a']", id="search"),
        pytest.param("get", ("MEMORY.md", 1.5), "takes 2 positional", id="a signature stays a TypeError"),
    ],
)
def test_the_error_names_the_argument(memory, method, arguments, message):
    expected = {"remember": RememberError, "get": TypeError}.get(method, QueryError)
    with pytest.raises(expected) as caught:
        getattr(memory, method)(*arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("forget", {"match": "heron", "for_good": "no"}, "for_good must be true or false, got 'no'"),
        ("list", {"limit": "3"}, "limit must be a whole number, got '3'"),
        ("list", {"since": 2026}, "since must be text or a date, got 2026"),
        ("index", {"paths": "memory/a.md"}, "paths must be a list of texts, got 'memory/a.md'"),
        ("index", {"source": "notes"}, "there is no source 'notes'"),
        ("search", {"query": "a", "rerank": "yes"}, "rerank must be true or false or Reranker, got 'yes'"),
        ("watch", {"on_sync": 7}, "on_sync must be a function, got 7"),
    ],
)
def test_the_error_says_what_is_expected(memory, method, arguments, message):
    with pytest.raises(QueryError) as caught:
        getattr(memory, method)(**arguments)
    assert caught.value.message == message


@pytest.mark.parametrize("parameter", ["workspace", "agent", "settings", "embedder", "chat", "session", "create"])
@pytest.mark.parametrize("opening", [Memory.open, shared_memory, AsyncMemory.open])
def test_opening_with_a_bad_argument_is_an_error_of_ours(workspace, tmp_path, monkeypatch, opening, parameter):
    async def opened_and_closed(given: dict[str, object]) -> None:
        memory = opening(**given)
        if inspect.isawaitable(memory):
            await (await memory).close()
        else:
            memory.close()

    monkeypatch.chdir(tmp_path)
    for value in BAD.values():
        with suppress(NotewellError):
            asyncio.run(opened_and_closed({"workspace": workspace, "embedder": None, parameter: value}))
    close_shared_memories()


def test_the_asynchronous_memory_refuses_the_same(workspace):
    async def refused() -> str:
        async with await AsyncMemory.open(workspace, provider="none") as memory:
            with pytest.raises(QueryError) as caught:
                await memory.forget(None)  # type: ignore[arg-type]
            return caught.value.message

    assert asyncio.run(refused()) == "entries must be text, got None"


def test_every_bad_argument_of_a_tool_is_an_answer_that_can_be_sent(memory):
    tools = MemoryTools(memory)
    for spec in tools.specs:
        for name in (*spec.parameters["properties"], "nonsense"):
            for value in BAD.values():
                needed = {each: GOOD.get(each, "x") for each in spec.parameters.get("required", ())}
                tools.call(spec.name, needed | {name: value}).text.encode()
        for whole in (*BAD.values(), "[1]", '{"query": "\\ud800"}', "{", json.dumps({"path": "\ud800"})):
            tools.call(spec.name, whole).text.encode()  # type: ignore[arg-type]
    for name in BAD.values():
        assert tools.call(name, {}).is_error  # type: ignore[arg-type]


def test_a_listener_that_fails_stops_no_sync(memory, workspace):
    seen = []

    def listener(outcome):
        seen.append(outcome)
        raise RuntimeError("no matter")

    with memory.watch(on_sync=listener):
        memory.begin_session()
        assert memory.wait_until_synced(30)
        memory.begin_session()
        assert memory.wait_until_synced(30)
    assert len(seen) >= 2
