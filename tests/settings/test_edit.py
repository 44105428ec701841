"""Single settings are changed in a settings file, and nothing else."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from notewell import SettingsError
from notewell.settings.edit import change_settings, switch_store

URL = "postgresql://keeper@db.example/memory"


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "new" / "config.toml"
    monkeypatch.setenv("NOTEWELL_CONFIG", str(path))
    return path


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", f'store.url = "{URL}"\n', id="an empty file"),
        pytest.param("[query]\nmax_results = 3", f'store.url = "{URL}"\n[query]\nmax_results = 3', id="no table"),
        pytest.param('store.url = "x"\nmodel = "m"\n', f'store.url = "{URL}"\nmodel = "m"\n', id="a dotted key"),
        pytest.param('[store] # mine\ntenant = "a"\n', f'[store] # mine\nurl = "{URL}"\ntenant = "a"\n', id="a table"),
        pytest.param(
            '[store]\nread_url = "x"\nurl = "y"\n\n[cache]\n', f'[store]\nurl = "{URL}"\n\n[cache]\n', id="a url"
        ),
        pytest.param("[defaults]\n", f'[defaults]\nstore.url = "{URL}"\n', id="settings in defaults"),
        pytest.param(
            "[defaults.store]", f'[defaults.store]\nurl = "{URL}"\n', id="a table of the defaults, without a line end"
        ),
    ],
)
def test_the_url_is_set_and_removed(file, before, after):
    file.parent.mkdir()
    file.write_text(before)
    assert switch_store(URL) == file
    assert file.read_text() == after
    switch_store("")
    assert "url" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_not_there_is_created(file):
    switch_store(URL)
    assert tomllib.loads(file.read_text()) == {"store": {"url": URL}}
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ['store = {url = "x"}\n', "store = 7\n", "not toml"])
def test_what_cannot_be_edited_safely_is_left_alone(file, text):
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(SettingsError, match="cannot be changed"):
        switch_store(URL)
    assert file.read_text() == text


def test_the_value_of_a_secret_is_not_shown(file):
    file.parent.mkdir()
    file.write_text('store = {url = "x"}\n')
    with pytest.raises(SettingsError) as refused:
        switch_store("postgresql://keeper:hunter22@db.example/memory")
    assert "hunter22" not in f"{refused.value} {refused.value.hint}"


def test_a_list_over_several_lines_is_replaced_whole(file):
    file.parent.mkdir()
    file.write_text('sources = [ # what\n  "memory",\n]\nmodel = "m"\n')
    change_settings(file, {"sources": ("memory", "sessions")})
    assert file.read_text() == 'sources = ["memory", "sessions"]\nmodel = "m"\n'


def test_a_file_without_secrets_keeps_its_permissions(file):
    file.parent.mkdir()
    file.write_text("")
    file.chmod(0o640)
    change_settings(file, {"model": "m"}, mode=0o600)
    assert file.stat().st_mode & 0o777 == 0o640


def test_what_is_no_file_stays_what_it_is(monkeypatch):
    monkeypatch.setenv("NOTEWELL_CONFIG", os.devnull)
    with pytest.raises(SettingsError, match="is not a settings file"):
        switch_store(URL)
    assert not Path(os.devnull).is_file()
