"""Where nothing may be written, searching works from the index that is there, and says so."""

from __future__ import annotations

import json

import pytest

from notewell import Memory

from .folders import as_plain_user, with_mode

pytestmark = pytest.mark.slow


@pytest.fixture
def indexed(workspace):
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        memory.index()  # once more, so that no file counts as just written
    return workspace


def everything(workspace):
    return [workspace, *workspace.rglob("*")]


def read_only(workspace):
    """Make every file and folder of the workspace read-only for a while; folders stay open to be entered."""
    return with_mode(0o555, *everything(workspace))


def test_search_in_a_read_only_workspace(indexed):
    with read_only(indexed):
        done = as_plain_user("search", "guest network name", "-w", indexed, "--json")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert (answer["mode"], answer["hits"][0]["path"]) == ("hybrid", "memory/network.md")


def test_a_change_that_cannot_be_indexed_is_said(indexed):
    (indexed / "memory/new.md").write_text("The zebra protocol.\n", encoding="utf-8")
    with read_only(indexed):
        done = as_plain_user("search", "guest network name", "-w", indexed, "--json")
    answer = json.loads(done.stdout)
    assert answer["hits"][0]["path"] == "memory/network.md"
    assert answer["index"]["stale"]
    assert answer["notes"] == ["the index is read-only: changes to the notes are not seen"]


@pytest.mark.parametrize("words", [["index"], ["index", "--force"]], ids=" ".join)
def test_index_is_refused_with_the_next_step(indexed, words):
    with read_only(indexed):
        done = as_plain_user(*words, "-w", indexed, "--json")
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "index_read_only"
    assert "store.path" in error["hint"]


def test_a_read_only_state_folder_in_a_workspace_that_can_be_written(indexed):
    (indexed / "memory/new.md").write_text("The zebra protocol.\n", encoding="utf-8")
    with with_mode(0o555, *everything(indexed / ".notewell")):
        found = as_plain_user("search", "printer", "-w", indexed, "--json")
        refused = as_plain_user("index", "-w", indexed, "--json")
    assert json.loads(found.stdout)["hits"][0]["path"] == "memory/network.md"
    assert (refused.returncode, json.loads(refused.stdout)["error"]["kind"]) == (1, "index_read_only")
    with Memory.open(indexed, provider="hashing") as memory:
        assert memory.index().added == 1


@pytest.mark.parametrize(
    "words", [["status"], ["status", "--deep"], ["doctor"], ["get", "MEMORY.md"], ["index", "--dry-run"]], ids=" ".join
)
def test_looking_needs_no_right_to_write(indexed, words):
    with read_only(indexed):
        done = as_plain_user(*words, "-w", indexed, "--json")
    assert done.returncode == (1 if words == ["doctor"] else 0), done.stderr
    json.loads(done.stdout)


def test_another_store_path_makes_a_read_only_workspace_indexable(indexed, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    with read_only(indexed):
        done = as_plain_user("index", "-w", indexed, "--set", f"store.path={tmp_path / 'elsewhere'}", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["added"] == 7


def test_a_note_that_may_not_be_read_is_reported_and_the_rest_is_indexed(workspace):
    with with_mode(0, workspace / "memory/network.md"):
        done = as_plain_user("index", "-w", workspace, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["added"]) == (0, 6)
    assert report["problems"] == [{"path": "memory/network.md", "reason": "Permission denied"}]


def test_a_folder_that_may_not_be_listed_keeps_its_notes_in_the_index(indexed):
    with with_mode(0, indexed / "memory/projects"):
        done = as_plain_user("index", "-w", indexed, "--json")
    report = json.loads(done.stdout)
    assert (report["removed"], report["unchanged"]) == (0, 7)
    assert report["problems"][0]["path"] == "memory/projects"


def test_a_workspace_that_may_not_be_listed_is_not_an_empty_one(indexed):
    with with_mode(0, indexed):
        done = as_plain_user("index", "-w", indexed, "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["kind"]) == (1, "workspace")
    with Memory.open(indexed, provider="hashing") as memory:
        assert memory.index().unchanged == 7
