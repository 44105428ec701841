"""`notewell config`: the settings in use, their files, and the import of OpenClaw's."""

from __future__ import annotations

import pytest

YAML = "memory:\n  workspace: ./workspace\n  chunkSize: 2048\n  embedding: {provider: none}\n"


@pytest.fixture
def own_file(tmp_path, monkeypatch):
    """The place of the user's settings file, which does not exist yet."""
    file = tmp_path / "own" / "config.toml"
    monkeypatch.setenv("NOTEWELL_CONFIG", str(file))
    return file


@pytest.fixture
def theirs(tmp_path):
    file = tmp_path / "theirs.yaml"
    file.write_text(YAML, encoding="utf-8")
    return file


def test_imported_settings_are_in_use_afterwards(notewell, workspace, own_file, theirs):
    done = notewell("config", "import", theirs)
    assert (done.code, done.out) == (0, f"3 settings written to {own_file}\n")
    assert "left out: memory.workspace: name the folder with --workspace" in done.err
    shown = notewell("config", "show", "-w", workspace, "--json").document["settings"]
    assert shown["chunking.tokens"] == {"value": 512, "from": f"user file {own_file}"}
    assert shown["query.decay.enabled"]["value"] is True


def test_a_dry_run_prints_the_file_and_writes_nothing(notewell, own_file, theirs):
    done = notewell("config", "import", theirs, "--dry-run")
    assert 'provider = "none"' in done.out
    assert not own_file.exists()


def test_the_outcome_as_json(notewell, own_file, theirs):
    document = notewell("config", "import", theirs, "--json").document
    assert document["settings"] == {"provider": "none", "chunking.tokens": 512, "query.decay.enabled": True}
    assert [each["key"] for each in document["leftOut"]] == ["memory.workspace"]
    assert (document["written"], document["backup"]) == (True, None)
    again = notewell("config", "import", theirs, "--json")
    assert (again.code, again.document["error"]["kind"]) == (1, "settings")
    replaced = notewell("config", "import", theirs, "--replace", "--json").document
    assert replaced["backup"] == f"{own_file}.bak"


def test_show_and_path_work_outside_a_workspace(notewell, own_file, theirs, tmp_path, monkeypatch):
    notewell("config", "import", theirs)
    monkeypatch.chdir(own_file.parent)
    assert notewell("config", "show", "--json").document["settings"]["chunking.tokens"]["value"] == 512
    assert set(notewell("config", "path", "--json").document) == {"user"}


@pytest.mark.parametrize("command", [("status",), ("doctor",), ("config", "show"), ("config", "path")])
def test_a_config_yaml_that_is_ignored_is_mentioned(notewell, indexed, command):
    (indexed / "config.yaml").write_text(YAML, encoding="utf-8")
    assert "config.yaml is not read" in notewell(*command, "-w", indexed).err
