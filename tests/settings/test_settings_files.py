"""Settings files are opened like notes: a workspace that somebody else made may hold anything under that name."""

from __future__ import annotations

import contextlib
import os
import socket
import time

import pytest

from notewell import Memory, SettingsError
from notewell.cli.main import run
from notewell.settings import load_settings

KINDS = {
    "a pipe": lambda path, _: os.mkfifo(path),
    "a socket": lambda path, _: socket.socket(socket.AF_UNIX).bind(str(path)),
    "a folder": lambda path, _: path.mkdir(),
    "a link to a device": lambda path, _: path.symlink_to("/dev/zero"),
    "a link outside": lambda path, outside: path.symlink_to(outside),
    "a link in a circle": lambda path, _: path.symlink_to(path),
    "too large": lambda path, _: path.write_bytes(b"# " + b"x" * 1_000_001),
    "a sparse file": lambda path, _: (path.touch(), os.truncate(path, 1 << 33)),
}


@pytest.fixture
def outside(tmp_path):
    file = tmp_path / "outside.toml"
    file.write_text("query.max_results = 3\n")
    return file


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_workspace_file_that_is_no_plain_small_file_is_refused_at_once(tmp_path, outside, capsys, monkeypatch, kind):
    workspace = tmp_path / "w"
    (workspace / "memory").mkdir(parents=True)
    monkeypatch.chdir(workspace)  # a socket's path may be 108 characters long
    KINDS[kind](workspace / "notewell.toml", outside)
    started = time.monotonic()
    with pytest.raises(SettingsError, match=r"notewell\.toml: (cannot be read|is larger)"):
        Memory.open(workspace)
    assert run(["status", "-w", str(workspace)]) == 1
    assert "notewell.toml" in capsys.readouterr().err
    assert time.monotonic() - started < 5


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", ["a pipe", "a folder", "a link to a device", "too large", "a sparse file"])
def test_the_user_file_is_no_pipe_or_device_either(tmp_path, outside, kind):
    KINDS[kind](tmp_path / "config.toml", outside)
    with pytest.raises(SettingsError, match=r"config\.toml: (cannot be read|is larger)"):
        load_settings(None, environ={"NOTEWELL_CONFIG": str(tmp_path / "config.toml")})


def test_the_user_file_may_be_a_link_to_ones_own(tmp_path, outside):
    (tmp_path / "config.toml").symlink_to(outside)
    resolved = load_settings(None, environ={"NOTEWELL_CONFIG": str(tmp_path / "config.toml")})
    assert resolved.settings.query.max_results == 3


def test_no_user_file_is_named_by_the_null_device():
    assert load_settings(None, environ={"NOTEWELL_CONFIG": os.devnull}).files


def test_a_workspace_reached_through_a_link_keeps_its_settings(tmp_path, outside):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "notewell.toml").write_text("query.max_results = 4\n")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert load_settings(tmp_path / "link").settings.query.max_results == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["a." * 400_000 + "a = 1", "a" * 900_000, "a = " + "[" * 900_000, "[a]\n" * 200_000, "# x\n" * 240_000],
    ids=["a deep key", "a long key", "a deep list", "many tables", "many comments"],
)
def test_no_settings_file_takes_long(tmp_path, text):
    (tmp_path / "notewell.toml").write_text(text)
    started = time.monotonic()
    with contextlib.suppress(SettingsError):
        load_settings(tmp_path)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("part", ["a", '"!"', "'a b' ", r'"\u0061b"', '"a.b"'])
def test_a_key_of_very_many_parts_is_refused_before_it_is_parsed(tmp_path, part):
    """The parser's time grows with the square of the parts, however they are quoted: hours for a file of 1 MB."""
    (tmp_path / "memory").mkdir()
    for text in (f"{f'{part}.' * 60_000}b = 1\n", f"[{f'{part}.' * 60_000}b]\n"):
        (tmp_path / "notewell.toml").write_text(text)
        with pytest.raises(SettingsError, match="more than 20 parts"):
            load_settings(tmp_path)
