"""Agents' names, the state folder, and where relative paths lead."""

from __future__ import annotations

from pathlib import Path

import pytest

from notewell.errors import SettingsError
from notewell.settings import Settings, StoreSettings, checked_agent, load_settings, state_folder


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        pytest.param("main", "main", id="plain"),
        pytest.param("Home-Assistant_2", "home-assistant_2", id="lower-cased"),
        pytest.param("7", "7", id="a digit"),
        pytest.param("a" * 64, "a" * 64, id="the longest"),
    ],
)
def test_agent_ids(name, agent):
    assert checked_agent(name) == agent


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-a",
        "_a",
        "a" * 65,
        "a b",
        "a/b",
        "a\\b",
        "..",
        ".",
        "a.b",
        "../a",
        "a\n",
        "a\0",
        "ä",
        "İ",
        "con",
        "NUL",
        "lpt1",
    ],
)
def test_names_that_could_lead_elsewhere_are_no_agents(name, workspace):
    with pytest.raises(SettingsError, match="is not an agent id") as caught:
        load_settings(workspace, agent=name, environ={})
    assert "such as main" in caught.value.hint


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("", "{workspace}/.notewell/main", id="default"),
        pytest.param("state", "{workspace}/state/main", id="relative, the agent is added"),
        pytest.param("state/{agent}/index", "{workspace}/state/main/index", id="the agent where it is wanted"),
        pytest.param("{elsewhere}/{agent}", "{elsewhere}/main", id="absolute"),
        pytest.param("~/memory", "{home}/memory/main", id="home"),
    ],
)
def test_the_state_folder(load, workspace, tmp_path, monkeypatch, path, expected):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    places = {"workspace": workspace, "elsewhere": tmp_path / "elsewhere", "home": tmp_path / "home"}
    given = path.replace("{elsewhere}", str(places["elsewhere"]))
    loaded = load(flags={"store.path": given}).settings
    assert state_folder(loaded, workspace) == Path(expected.format(**places))
    assert state_folder(Settings(store=StoreSettings(path=given)), workspace) == Path(expected.format(**places))


def test_agents_never_share_a_folder(load, workspace):
    settings = load(flags={"store.path": "one-place"}).settings
    assert state_folder(settings, workspace, "a") != state_folder(settings, workspace, "b")


def test_workspaces_of_the_same_name_get_folders_of_their_own(tmp_path):
    settings = Settings(store=StoreSettings(path=str(tmp_path / "state" / "{workspace}")))
    first = state_folder(settings, tmp_path / "a" / "my notes")
    second = state_folder(settings, tmp_path / "b" / "my notes")
    assert first.parent != second.parent
    assert first.parent.name.startswith("my-notes-")
    assert first.is_relative_to(tmp_path / "state")
    assert first == state_folder(settings, tmp_path / "a" / "x" / ".." / "my notes")


def test_one_folder_for_all_workspaces_is_noted(load, tmp_path, user_file):
    shared = tmp_path.as_posix()
    assert load(user=f'[store]\npath = "{shared}/{{agent}}"').notes == (
        f"store.path ({user_file}:2) has no {{workspace}}: all workspaces of an agent would share one index",
    )
    assert load(user=f'[store]\npath = "{shared}/{{workspace}}"').notes == ()
    assert load(user='[store]\npath = "state"').notes == ()
    assert load(flags={"store.path": f"{shared}/{{agent}}"}).notes == ()


def test_paths_are_absolute_with_home_expanded_and_named_once(load, workspace, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    settings = load(
        user='extra_paths = ["~/notes", "docs", "./docs", "docs/"]\n[local]\nmodel_path = "~/model"\n'
        'model_cache_dir = "cache"\n'
    ).settings
    assert settings.extra_paths == (tmp_path / "home" / "notes", workspace / "docs")
    assert settings.local.model_path == str(tmp_path / "home" / "model")
    assert settings.local.model_cache_dir == str(workspace / "cache")


def test_a_relative_workspace_gives_absolute_paths(workspace, user_file, monkeypatch):
    user_file.write_text('extra_paths = ["docs"]', encoding="utf-8")
    monkeypatch.chdir(workspace.parent)
    settings = load_settings(Path("workspace"), environ={}, user_file=user_file).settings
    assert settings.extra_paths == (workspace / "docs",)
    assert state_folder(settings, Path("workspace")) == workspace / ".notewell" / "main"
