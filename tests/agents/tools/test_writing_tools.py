"""The tools that write, list and forget: what they do, what a hostile text cannot make them do, and groups."""

from __future__ import annotations

import pytest

from notewell import Memory, SettingsError
from notewell.agents.tools import MemoryTools
from notewell.text.entries import find_entries
from notewell.text.fences import strip_fenced

PLAIN = "# Plain\n\nFirst paragraph,\nstill the first.\n\n- item one\n- item two\n  and more of it\n\nLast paragraph.\n"


@pytest.fixture
def memory(workspace):
    (workspace / "memory" / "plain.md").write_text(PLAIN)
    with Memory.open(workspace, provider="none") as opened:
        yield opened


@pytest.fixture
def tools(memory):
    return MemoryTools(memory)


def test_a_fact_is_written_found_replaced_and_forgotten_by_its_id(tools, memory, workspace):
    first = tools.call(
        "memory_write", {"text": "The ferry leaves from pier four.", "category": "fact", "importance": 7}
    )
    hit = tools.call("memory_search", {"query": "ferry pier"}).document["hits"][0]
    assert (hit["entry"], hit["category"], hit["importance"]) == (first.document["entry"], "fact", 7)

    second = tools.call("memory_write", {"text": "The ferry leaves from pier five.", "replaces": hit["entry"]})
    assert second.document["written"], second.text
    older, newer = find_entries((workspace / second.document["path"]).read_text()).entries
    assert (older.replaced_by, newer.replaces) == (newer.id, (older.id,))
    assert "pier four" in (workspace / first.document["path"]).read_text(), "the old entry stays in the file"

    gone = tools.call("memory_forget", {"entry": newer.id}).document
    assert "pier five" in gone["text"]
    assert strip_fenced(gone["text"]) == ""
    assert "pier five" not in tools.call("memory_search", {"query": "ferry pier"}).text
    assert memory.undo(gone["undo"]).restored
    assert "pier five" in (workspace / second.document["path"]).read_text()


def test_the_list_is_fenced_and_fits_the_budget(tools, memory):
    for number in range(30):
        memory.remember(f"Fact {number}: {'word ' * 40}", to="memory/facts.md", force=True)
    document = tools.call("memory_list", {"maxResults": 100, "category": "other"}).document
    assert document["total"] == 30
    assert 0 < len(document["items"]) < 30
    assert sum(len(item["text"]) for item in document["items"]) <= memory.settings.tools.injected_chars
    assert all(strip_fenced(item["text"]) == "" for item in document["items"])
    assert document["items"][0]["entry"]
    one = tools.call("memory_list", {"path": "memory/network.md"}).document
    assert [item["path"] for item in one["items"]] == ["memory/network.md"]


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        ("memory/plain.md#L3-L4", "First"),
        ("memory/plain.md#L7-L8", "item two"),
        ("memory/plain.md#L10", "Last"),
    ],
)
def test_a_paragraph_or_list_item_is_forgotten_by_its_citation(tools, workspace, entry, left):
    result = tools.call("memory_forget", {"entry": entry})
    assert not result.is_error, result.text
    assert left not in (workspace / "memory" / "plain.md").read_text()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        pytest.param("memory/plain.md#L1-L10", "more than one entry", id="a whole note by its lines"),
        pytest.param("memory/plain.md#L6-L8", "more than one entry", id="two list items"),
        pytest.param("memory/facts.md#L3-L6", "more than one entry", id="two entries"),
        pytest.param("memory/plain.md", "is a whole file", id="a whole note"),
        pytest.param("MEMORY.md", "is a whole file", id="the curated memory"),
        pytest.param("memory", "no remembered entry", id="a folder"),
        pytest.param("*", "no remembered entry", id="a pattern"),
        pytest.param("", "no remembered entry", id="nothing"),
        pytest.param("nosuchid", "no remembered entry", id="an id that does not exist"),
        pytest.param("memory/none.md#L3", "no such note", id="a note that does not exist"),
        pytest.param("../outside.md#L1", "not a memory file", id="a file outside"),
    ],
)
def test_a_hostile_text_gets_no_more_than_one_entry_a_call(tools, memory, workspace, entry, message):
    memory.remember("Fact one of the day.", to="memory/facts.md")
    memory.remember("Fact two of the night.", to="memory/facts.md")
    before = {path: path.read_bytes() for path in workspace.rglob("*.md")}
    result = tools.call("memory_forget", {"entry": entry})
    assert result.is_error
    assert message in result.document["error"]["message"]
    if message == "no remembered entry":
        assert result.document["error"]["hint"] == "memory_list returns the ids and citations of remembered entries"
    assert {path: path.read_bytes() for path in workspace.rglob("*.md")} == before
    assert memory.trash() == ()


@pytest.mark.parametrize("more", [{"forGood": True}, {"for_good": True}, {"match": "x"}, {"path": "MEMORY.md"}])
def test_no_argument_erases_for_good_or_by_match(tools, more):
    result = tools.call("memory_forget", {"entry": "memory/plain.md#L3"} | more)
    assert "has no parameter" in result.document["error"]["message"]


def test_a_group_forgets_and_replaces_only_what_it_wrote(memory):
    mine = memory.remember("Dana meets at eleven.", to="memory/open.md")
    team = MemoryTools(memory.seen_by(chat="group", session="team"))
    board = MemoryTools(memory.seen_by(chat="group", session="board"))
    own = team.call("memory_write", {"text": "The team meets at nine.", "path": "memory/open.md"}).document
    for tools, entry in ((team, mine.entry), (board, own["entry"]), (team, "memory/network.md#L5")):
        for result in (
            tools.call("memory_forget", {"entry": entry}),
            tools.call("memory_write", {"text": "Something else, at noon.", "replaces": entry}),
        ):
            assert result.is_error
            assert "memory/network" in entry or "not written by this group" in result.document["error"]["message"]
    newer = team.call("memory_write", {"text": "The team meets at ten.", "replaces": own["entry"]})
    assert newer.document["written"], newer.text
    assert not team.call("memory_forget", {"entry": newer.document["entry"]}).is_error
    assert not MemoryTools(memory).call("memory_forget", {"entry": own["entry"]}).is_error  # the owner may


def test_a_workspace_file_may_make_a_memory_read_only_and_not_the_contrary(workspace):
    (workspace / "notewell.toml").write_text("[tools]\nread_only = true\n")
    with Memory.open(workspace, provider="none") as memory:
        assert len(MemoryTools(memory).specs) == 3
    (workspace / "notewell.toml").write_text("[tools]\nread_only = false\n")
    with pytest.raises(SettingsError, match=r"tools\.read_only only to true"):
        Memory.open(workspace, provider="none")


def test_a_trash_that_cannot_be_written_is_told_and_nothing_is_lost(tools, workspace):
    (workspace / ".notewell").mkdir(exist_ok=True)
    (workspace / ".notewell" / ".trash").write_text("in the way")
    result = tools.call("memory_forget", {"entry": "memory/plain.md#L10"})
    assert "the trash cannot be written" in result.document["error"]["message"]
    assert (workspace / "memory" / "plain.md").read_text() == PLAIN


def test_instructions_name_the_configured_mode_while_embedding_has_just_begun(workspace):
    with Memory.open(workspace, provider="none") as memory:
        memory.index()
    with Memory.open(workspace, provider="hashing") as memory:
        prompt = MemoryTools(memory).prompt()
        assert "Search is hybrid (semantic and keyword); 8 of 8 passages are keyword-only so far." in prompt or (
            "keyword-only so far" in prompt
        )
        assert "Search is keyword-only" not in prompt
    with Memory.open(workspace, provider="hashing", query__mode="keyword") as memory:
        assert "Search is keyword-only" in MemoryTools(memory).prompt()
