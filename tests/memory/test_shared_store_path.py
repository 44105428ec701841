"""Two workspaces whose settings name the same folder for the index: neither sees or replaces what is the other's."""

from __future__ import annotations

import os
import shutil

import pytest

from notewell import IndexForeignError, Memory
from notewell.cli.main import run

SESSIONS = {"sources": ["memory", "sessions"], "experimental__session_memory": True}


@pytest.fixture
def places(tmp_path):
    for name, word in (("a", "harbour"), ("b", "lighthouse")):
        (tmp_path / name / "memory").mkdir(parents=True)
        (tmp_path / name / "memory" / "note.md").write_text(f"# {name}\n\nthe {word}\n")
    return tmp_path


def opened(places, name, **options):
    return Memory.open(places / name, provider="none", store__path=str(places / "index"), **options)


def search(places, name, word, *options):
    settings = ["--set", f"store.path={places / 'index'}", "--set", "provider=none"]
    return run(["search", word, "-w", str(places / name), *settings, *options])


@pytest.mark.parametrize("options", [(), ("--no-sync",)], ids=["with sync", "without sync"])
@pytest.mark.parametrize(("first", "second"), ["ab", "ba"])
def test_the_second_workspace_is_refused_and_the_first_goes_on(places, capsys, first, second, options):
    words = {"a": "harbour", "b": "lighthouse"}
    assert search(places, first, words[first]) == 0
    capsys.readouterr()
    for word in words.values():
        assert search(places, second, word, *options) == 1
        told = capsys.readouterr()
        assert told.out == ""
        assert f"belongs to the workspace {places / first}" in told.err
        assert "{workspace}" in told.err
    assert search(places, first, words[first], *options) == 0
    assert words[first] in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        ["index"],
        ["index", "--force"],
        ["status"],
        ["doctor", "--fix"],
        ["forget", "--match", "harbour", "--yes"],
        ["get", "memory/note.md"],
    ],
)
def test_no_command_of_the_second_workspace_reaches_the_folder(places, capsys, command):
    with opened(places, "a") as memory:
        memory.index()
    before = {path.name: path.read_bytes() for path in (places / "index" / "main").iterdir()}
    settings = ["--set", f"store.path={places / 'index'}", "--set", "provider=none"]
    assert run([*command, "-w", str(places / "b"), *settings]) == 1
    assert "belongs to the workspace" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in (places / "index" / "main").iterdir()} == before


def test_two_that_were_opened_before_either_wrote_are_told_apart(places):
    with opened(places, "a") as a, opened(places, "b") as b:
        a.index()
        for ask in (b.index, b.status, lambda: b.search("harbour"), lambda: b.search("harbour", sync=False)):
            with pytest.raises(IndexForeignError):
                ask()
        assert a.search("harbour").hits


def test_conversations_are_not_shared_either(places):
    with opened(places, "a", **SESSIONS) as a:
        a.conversations.create("mine")
    with pytest.raises(IndexForeignError):
        opened(places, "b", **SESSIONS)


def test_agents_of_one_workspace_share_a_folder(places):
    for agent in ("main", "other"):
        with opened(places, "a", agent=agent) as memory:
            assert memory.search("harbour").hits


@pytest.mark.parametrize("elsewhere", [False, True], ids=["index inside", "index outside"])
def test_a_workspace_that_was_moved_keeps_its_index(places, elsewhere):
    chosen = {"store__path": str(places / "index")} if elsewhere else {}
    with Memory.open(places / "a", provider="none", **chosen) as memory:
        memory.index()
    (places / "a").rename(places / "moved")
    with Memory.open(places / "moved", provider="none", **chosen) as memory:
        assert memory.search("harbour", sync=False).hits
        assert memory.index().unchanged == 1


def test_a_copy_with_its_index_inside_works_beside_the_first(places):
    with Memory.open(places / "a", provider="none") as memory:
        memory.index()
    shutil.copytree(places / "a", places / "copy")
    for name in ("copy", "a"):
        with Memory.open(places / name, provider="none") as memory:
            assert memory.search("harbour", sync=False).hits
            assert memory.index().unchanged == 1


def test_when_the_first_workspace_is_gone_another_does_not_get_its_notes(places, capsys):
    with opened(places, "a") as memory:
        memory.index()
    shutil.rmtree(places / "a")
    assert search(places, "b", "harbour", "--no-sync") == 1
    told = capsys.readouterr()
    assert "harbour" not in told.out
    (places / "index" / "main" / "WORKSPACE").unlink()  # as the hint says
    assert search(places, "b", "lighthouse") == 0
    assert "lighthouse" in capsys.readouterr().out


def test_a_workspace_reached_under_two_names_is_one(places):
    with opened(places, "a") as memory:
        memory.index()
    (places / "link").symlink_to(places / "a")
    with opened(places, "link") as memory:
        assert memory.search("harbour", sync=False).hits


def test_each_workspace_may_have_a_folder_of_its_own(places):
    for name, word in (("a", "harbour"), ("b", "lighthouse"), ("a", "harbour")):
        path = os.fspath(places / "index" / "{workspace}")
        with Memory.open(places / name, provider="none", store__path=path) as memory:
            assert memory.search(word).hits
