"""Who may see what: a canary in each scope, asked for from every other scope, on every way into the memory."""

from __future__ import annotations

import asyncio
import json

import pytest

from notewell import AsyncMemory, ConversationStore, Memory, NoteNotFoundError, QueryError
from notewell.agents.tools import MemoryTools
from notewell.cli.main import run
from notewell.embedding.hashing import HashingEmbedder
from notewell.sources.privacy import Audience, audience_of, is_private

SESSIONS = {"sources": ["memory", "sessions"], "experimental__session_memory": True}
# Where each canary lies, and which audiences may see it.
PLACES = {
    "quuxcurated": ("MEMORY.md", {"direct"}),
    "quuxfolder": ("memory/private/plans.md", {"direct"}),
    "quuxdeepfolder": ("memory/projects/Private/x.md", {"direct"}),
    "quuxmarked": ("memory/marked.md", {"direct"}),
    "quuxvisibility": ("memory/visibility.md", {"direct"}),
    "quuxopen": ("memory/open.md", {"direct", "group", "other group"}),
    "quuxdated": ("memory/2026-11-02.md", {"direct", "group", "other group"}),
    "quuxsession": ("sessions/chats/mine.json5", {"direct"}),
    "quuxteam": ("sessions/groups/team.json5", {"direct", "group"}),
    "quuxboard": ("sessions/groups/board.json5", {"direct", "other group"}),
}
AUDIENCES = {
    "direct": {},
    "group": {"chat": "group", "session": "team"},
    "other group": {"chat": "group", "session": "board"},
}
CROSSINGS = [
    pytest.param(canary, audience, id=f"{canary} by {audience}")
    for canary, (_, allowed) in PLACES.items()
    for audience in AUDIENCES
    if audience not in allowed
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workspace")
    fronts = {"quuxmarked": "---\nprivate: true\n---\n", "quuxvisibility": "---\ntitle: x\nvisibility: private\n---\n"}
    for canary, (path, _) in PLACES.items():
        if path.startswith("sessions/"):
            continue
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"{fronts.get(canary, '')}# Note\n\nthe shared word harbour and {canary}\n")
    with Memory.open(folder, embedder=HashingEmbedder(), **SESSIONS) as memory:
        store = ConversationStore(memory._components.folder.path / "sessions")
        for name, kind, canary in (
            ("mine", "direct", "quuxsession"),
            ("team", "group", "quuxteam"),
            ("board", "group", "quuxboard"),
        ):
            store.create(name, kind=kind)
            store.append(name, {"role": "user", "content": f"the shared word harbour and {canary}"})
        memory.index()
    return folder


@pytest.fixture(params=["vectors", "words"])
def memory(request, folder):
    chosen = {"embedder": HashingEmbedder()} if request.param == "vectors" else {"provider": "none"}
    with Memory.open(folder, **chosen, **SESSIONS) as opened:
        yield opened


def shown(answer) -> str:
    """Return everything an answer says."""
    return json.dumps(
        [[hit.path, hit.snippet, hit.citation, str(hit.explanation)] for hit in answer.hits] + list(answer.notes)
    )


@pytest.mark.parametrize("audience", AUDIENCES)
def test_each_audience_finds_what_it_may_and_nothing_else(memory, audience):
    allowed = {canary for canary, (_, who) in PLACES.items() if audience in who}
    for canary, (path, _) in PLACES.items():
        answer = memory.search(canary, limit=20, min_score=0.0, explain=True, **AUDIENCES[audience])
        found = {other for other in PLACES if other in shown(answer)}
        assert found <= allowed
        assert (canary in found) == (canary in allowed)
        assert (path in {hit.path for hit in answer.hits}) == (canary in allowed)


@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("query", ["harbour", "the shared word harbour and", "quuxcuratd quuxmarkd", "note"])
def test_a_shared_word_brings_up_only_what_may_be_seen(memory, audience, query):
    answer = memory.search(query, limit=50, min_score=0.0, explain=True, **AUDIENCES[audience])
    allowed = {canary for canary, (_, who) in PLACES.items() if audience in who}
    assert {canary for canary in PLACES if canary in shown(answer)} <= allowed
    if query == "harbour":
        assert {hit.path for hit in answer.hits} == {PLACES[canary][0] for canary in allowed}


@pytest.mark.parametrize(("canary", "audience"), CROSSINGS)
def test_what_may_not_be_seen_cannot_be_read_and_seems_not_there(memory, canary, audience):
    path, _ = PLACES[canary]
    with pytest.raises(NoteNotFoundError) as private:
        memory.get(path, **AUDIENCES[audience])
    missing = path.replace("x.md", "nix.md") if path.endswith("x.md") else path[:-4] + "zz" + path[-4:]
    assert str(private.value) == f"no such note: {path!r}"
    assert private.value.hint == NoteNotFoundError(missing).hint


@pytest.mark.parametrize("canary", PLACES)
@pytest.mark.parametrize("audience", AUDIENCES)
def test_what_may_be_seen_can_be_read(memory, canary, audience):
    path, allowed = PLACES[canary]
    if audience in allowed:
        assert canary in memory.get(path, **AUDIENCES[audience]).text


@pytest.mark.parametrize(("canary", "audience"), CROSSINGS)
def test_the_commands_keep_to_it(folder, capsys, canary, audience):
    options = [word for key, value in AUDIENCES[audience].items() for word in (f"--{key}", value)]
    settings = [
        "--set",
        "sources=memory,sessions",
        "--set",
        "experimental.session_memory=true",
        "--set",
        "provider=none",
    ]
    common = [*options, "-w", str(folder), *settings, "--json"]
    assert run(["search", f"{canary} harbour", "-n", "50", "--min-score", "0", "--explain", *common]) == 0
    answer = json.loads(capsys.readouterr().out)
    del answer["query"]
    assert canary not in json.dumps(answer)
    assert run(["get", PLACES[canary][0], *common]) == 1
    assert canary not in capsys.readouterr().out


def test_a_memory_opened_for_a_group_stays_so(folder):
    with Memory.open(folder, provider="none", chat="group", session="team", **SESSIONS) as memory:
        assert memory.search("quuxcurated").hits == ()
        assert memory.search("quuxteam").hits
        with pytest.raises(NoteNotFoundError):
            memory.get("MEMORY.md")


def test_code_in_an_event_loop_keeps_to_it(folder):
    async def ask():
        async with await AsyncMemory.open(folder, provider="none", chat="group", **SESSIONS) as memory:
            return await memory.search("quuxcurated quuxteam quuxopen", min_score=0.0)

    assert [hit.path for hit in asyncio.run(ask()).hits] == ["memory/open.md"]


def test_one_agent_sees_nothing_of_another_s_conversations(folder, capsys):
    with Memory.open(folder, agent="second", provider="none", **SESSIONS) as second:
        second.index()
        for canary in ("quuxsession", "quuxteam", "quuxboard"):
            assert second.search(canary, min_score=0.0).hits == ()
            with pytest.raises(NoteNotFoundError):
                second.get(PLACES[canary][0])
        assert not (second._components.folder.path / "sessions").exists()
        assert second.search("quuxopen").hits
    assert run(["sessions", "list", "--agent", "second", "-w", str(folder), "--json"]) == 0
    assert "mine" not in capsys.readouterr().out


# --- when something changes ----------------------------------------------------------------------


def test_a_note_that_becomes_private_is_not_shown_even_by_a_stale_index(workspace):
    path = workspace / "memory" / "network.md"
    with Memory.open(workspace, provider="none") as memory:
        memory.index()
        assert memory.search("printer", chat="group").hits
        path.write_text("---\nprivate: yes\n---\n" + path.read_text())
        assert memory.search("printer", chat="group", sync=False).hits == ()
        assert memory.search("printer", chat="direct", sync=False).hits
        assert memory.search("printer", chat="group").hits == ()
        path.write_text(path.read_text().replace("private: yes", "private: no"))
        assert memory.search("printer", chat="group").hits


def test_what_cannot_be_read_is_not_named_to_a_group(workspace):
    (workspace / "memory" / "private").mkdir()
    (workspace / "memory" / "private" / "quuxplan.md").symlink_to(workspace / "MEMORY.md")
    with Memory.open(workspace, provider="none") as memory:
        (workspace / "memory" / "new.md").write_text("new\n")
        assert "quuxplan" in shown(memory.search("printer"))
        (workspace / "memory" / "newer.md").write_text("newer\n")
        assert "quuxplan" not in shown(memory.search("printer", chat="group"))


def test_a_note_moved_to_the_private_folder_is_private(workspace):
    with Memory.open(workspace, provider="none") as memory:
        memory.index()
        (workspace / "memory" / "private").mkdir()
        (workspace / "memory" / "network.md").rename(workspace / "memory" / "private" / "network.md")
        memory.index()
        assert memory.search("printer", chat="group").hits == ()
        assert memory.search("printer").hits


def test_a_rebuild_keeps_it_so(workspace):
    with Memory.open(workspace, embedder=HashingEmbedder()) as memory:
        memory.index()
        memory.index(force=True)
        answers = [memory.search("Dana Whitfield Lisbon tea", chat=chat, min_score=0.0) for chat in ("direct", "group")]
        assert ["MEMORY.md" in {hit.path for hit in answer.hits} for answer in answers] == [True, False]


@pytest.mark.parametrize(
    ("path", "front", "private"),
    [
        pytest.param("MEMORY.md", "", True, id="the curated memory"),
        pytest.param("memory.md", "", True, id="in small letters"),
        pytest.param("memory/private/a.md", "", True, id="the private folder"),
        pytest.param("memory/PRIVATE/a.md", "", True, id="in capitals"),
        pytest.param("memory/privateer.md", "", False, id="a word that begins so"),
        pytest.param("memory/private.md", "", False, id="a note of that name"),
        pytest.param("memory/a.md", "---\nprivate: true\n---\n", True, id="marked"),
        pytest.param("memory/a.md", "---\nPrivate: 'Yes'\n---\n", True, id="marked otherwise"),
        pytest.param("memory/a.md", "---\nprivate: false\n---\n", False, id="marked as open"),
        pytest.param(
            "memory/a.md", "---\nsome prose that is no front matter\nprivate: true\n---\n", True, id="in doubt"
        ),
        pytest.param("memory/a.md", "We keep this private: true friends know.\n", False, id="prose"),
    ],
)
def test_what_is_private(path, front, private):
    assert is_private(path, f"{front}# Note\n") is private


@pytest.mark.parametrize(
    ("chat", "session"),
    [("channel", None), ("group", "../x"), ("group", ""), ("group", "a/b")],
    ids=["no such chat", "a path", "empty", "a slash"],
)
def test_who_listens_is_checked(chat, session):
    with pytest.raises(QueryError):
        audience_of(chat, session)


TEAM, ANY_GROUP, OWN = Audience("group", "team"), Audience("group"), Audience("direct", "mine")


@pytest.mark.parametrize(
    ("opened_for", "chat", "session", "listens"),
    [
        pytest.param(TEAM, None, None, TEAM, id="what is not said is as before"),
        pytest.param(TEAM, "group", "team", TEAM, id="the same once more"),
        pytest.param(Audience(), "group", "team", TEAM, id="a direct chat may speak for a group"),
        pytest.param(OWN, "group", None, Audience("group", "mine"), id="also one of a session"),
    ],
)
def test_a_call_may_narrow_who_listens(opened_for, chat, session, listens):
    assert audience_of(chat, session, opened_for) == listens


@pytest.mark.parametrize(
    ("opened_for", "chat", "session"),
    [
        pytest.param(TEAM, "direct", None, id="a group as its owner"),
        pytest.param(TEAM, "direct", "team", id="the same with its session"),
        pytest.param(TEAM, None, "board", id="a group as another group"),
        pytest.param(ANY_GROUP, None, "board", id="a group without a session as another group"),
        pytest.param(OWN, None, "other", id="a session as another one"),
    ],
)
def test_a_call_may_never_widen_who_listens(folder, opened_for, chat, session):
    audience = {"chat": opened_for.chat, "session": opened_for.session}
    with Memory.open(folder, provider="none", **audience, **SESSIONS) as memory:
        for call in (memory.search, memory.get):
            with pytest.raises(QueryError, match="this memory was opened for"):
                call("MEMORY.md", chat=chat, session=session)
        if opened_for.is_group and chat == "direct":
            with pytest.raises(QueryError, match="opened for a group"):
                memory.remember("a fact", chat=chat)
            with pytest.raises(QueryError, match="opened for a group"):
                MemoryTools(memory, chat=chat)
