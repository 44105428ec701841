"""`store.url` is changed in the user's settings file, and nothing else."""

from __future__ import annotations

import tomllib

import pytest

from notewell import SettingsError
from notewell.settings.store_switch import switch_store

URL = "postgresql://keeper@db.example/memory"


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "new" / "config.toml"
    monkeypatch.setenv("NOTEWELL_CONFIG", str(path))
    return path


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", f'[store]\nurl = "{URL}"\n', id="an empty file"),
        pytest.param(
            "[query]\nmax_results = 3", f'[query]\nmax_results = 3\n\n[store]\nurl = "{URL}"\n', id="no table"
        ),
        pytest.param('[store] # mine\ntenant = "a"\n', f'[store] # mine\nurl = "{URL}"\ntenant = "a"\n', id="a table"),
        pytest.param(
            '[store]\nread_url = "x"\nurl = "y"\n\n[cache]\n', f'[store]\nurl = "{URL}"\n\n[cache]\n', id="a url"
        ),
        pytest.param("[defaults]\n", f'[defaults]\n\n[defaults.store]\nurl = "{URL}"\n', id="settings in defaults"),
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


@pytest.mark.parametrize("text", ['store.url = "x"\n', 'store = {url = "x"}\n', "not toml"])
def test_what_cannot_be_edited_safely_is_left_alone(file, text):
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(SettingsError, match="cannot be changed"):
        switch_store(URL)
    assert file.read_text() == text
