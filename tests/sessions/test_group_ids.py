"""Sessions whose files other programs named: listed, shown, changed and searched like those of the store's own."""

from __future__ import annotations

import shutil

import pytest

from notewell import ConversationStore, Memory, NoteNotFoundError, SessionExistsError, SessionNotFoundError

pytest.importorskip("pyjson5", reason="conversations need the extra `sessions`")

WHATSAPP, TELEGRAM, UUID = "120363@g.us", "-1001234567890", "550E8400-E29B-41D4-A716-446655440000"
MATRIX, SIGNAL = "!kAbCdEf:example.org", "group.YWJj=="
IDS = (WHATSAPP, TELEGRAM, UUID, MATRIX, SIGNAL)
SESSIONS = {"sources": ["memory", "sessions"]}
SEED = """{
  // Metadata
  sessionId: "%s",
  version: 2,
  createdAt: 1704067200000,
  messages: [
    {
      role: "user",
      content: "quuxword is the password of %s",
      timestamp: 1704067200000,
    },
  ],
}
"""


@pytest.fixture
def memory(workspace):
    groups = workspace / ".notewell" / "main" / "sessions" / "groups"
    groups.mkdir(parents=True)
    for name in IDS:
        (groups / f"{name}.json5").write_text(SEED % (name, name), encoding="utf-8")
    with Memory.open(workspace, provider="none", **SESSIONS) as opened:
        opened.index()
        yield opened


def test_all_of_them_are_listed(memory):
    assert {entry.session_id for entry in memory.conversations.list(kind="group")} == set(IDS)


@pytest.mark.parametrize("name", IDS)
def test_one_is_read_searched_and_seen_by_its_own_group_only(memory, name):
    path = f"sessions/groups/{name}.json5"
    assert memory.conversations.get(name).messages[0].content == f"quuxword is the password of {name}"
    assert path in {hit.path for hit in memory.search("quuxword", limit=20).hits}
    own = memory.search("quuxword", chat="group", session=name).hits
    assert [hit.path for hit in own] == [path]
    assert f"password of {name}" in memory.get(path, chat="group", session=name).text
    for other in (*IDS, None):
        if other != name:
            with pytest.raises(NoteNotFoundError):
                memory.get(path, chat="group", session=other)


@pytest.mark.parametrize("name", IDS)
def test_one_lives_the_whole_life_of_a_session(memory, name):
    store = memory.conversations
    store.append(name, {"role": "user", "content": "second"}, {"role": "user", "content": "third"})
    store.update(name, title="Crew")
    assert store.compact(name, "They spoke.", keep_last=2).summaries[0].original_message_count == 1
    assert store.compact(name, "They spoke again.", keep_last=1).messages[0].content == "third"
    assert [file.name for file in store.files_of(name) if file.suffix == ".jsonl"] == [
        f"{name}.0001.jsonl",
        f"{name}.0002.jsonl",
    ]
    assert store.archive(name).session_file == f"archive/groups/{name}.json5"
    assert name not in {entry.session_id for entry in store.list()}
    assert store.unarchive(name).title == "Crew"
    store.path_of(name).write_text("{ broken", encoding="utf-8")
    assert store.repair(name)
    assert store.rebuild_registry() == len(IDS)
    assert store.delete(name)
    assert not store.exists(name)
    assert store.files_of(name) == []
    assert len(store.list()) == len(IDS) - 1


@pytest.mark.parametrize("name", IDS)
def test_one_is_forgotten_by_its_id_or_its_path(memory, name):
    assert memory.forget(session=name, dry_run=True).forgotten[0].path == f"sessions/groups/{name}.json5"
    report = memory.forget(path=f"sessions/groups/{name}.json5")
    assert [each.path for each in report.forgotten] == [f"sessions/groups/{name}.json5"]
    assert not memory.conversations.exists(name)
    assert len(memory.search("quuxword", limit=20).hits) == len(IDS) - 1


def test_a_corrupt_one_is_named_with_the_command_that_repairs_it(memory):
    file = memory.conversations.path_of(WHATSAPP)
    file.write_text(file.read_text().replace("},\n  ],", "}\n  nonsense"), encoding="utf-8")
    file = memory.conversations.path_of(MATRIX)
    file.write_text("{ broken", encoding="utf-8")
    memory.index()
    notes = memory.search("quuxword").notes
    assert any(f"notewell sessions repair {WHATSAPP}`" in note for note in notes)
    assert any(f"notewell sessions repair '{MATRIX}'`" in note for note in notes)


def test_a_group_has_one_session_whoever_made_its_file(memory):
    store = memory.conversations
    with pytest.raises(SessionExistsError, match=r"120363@g\.us"):
        store.create(group_id=WHATSAPP)
    made = store.create(group_id="ab/cd+ef==").session_id
    store.append("ab/cd+ef==", {"role": "user", "content": "hello"})
    assert store.get(made).messages[0].content == "hello"


def test_a_group_sees_the_session_that_was_made_for_it(memory):
    made = memory.conversations.create(group_id="998@g.us").session_id
    memory.conversations.append("998@g.us", {"role": "user", "content": "quuxmade"})
    memory.index()
    assert [hit.path for hit in memory.search("quuxmade", chat="group", session="998@g.us").hits] == [
        f"sessions/groups/{made}.json5"
    ]
    assert memory.search("quuxmade", chat="group", session="998@G.US").hits == ()


def test_case_tells_groups_apart_but_not_uuids(tmp_path):
    store = ConversationStore(tmp_path / "sessions")
    store.create("abc")
    file = store.path_of("abc")
    shutil.copy(file, file.with_name("AbC.json5"))
    if len(list(file.parent.iterdir())) == 1:
        pytest.skip("this disk does not tell upper from lower case")
    assert store.entry("AbC").session_id == "AbC"
    assert store.entry("abc").session_id == "abc"
    assert store.entry("ABC").session_id == "abc"
    shutil.copy(file, file.with_name(f"{UUID}.json5"))
    assert store.entry(UUID.lower()).session_id == UUID
    file.unlink()
    with pytest.raises(SessionNotFoundError):
        store.entry("abc")


@pytest.mark.parametrize("name", IDS)
def test_a_session_key_of_openclaw_names_the_group(memory, name):
    from notewell.openclaw import MemoryIndexManager

    found = MemoryIndexManager(memory).search("quuxword", session_key=f"agent:main:whatsapp:group:{name}")
    assert [result["path"] for result in found] == [f"sessions/groups/{name}.json5"]
