"""Defaults, user file, workspace file, environment and flags, and who wins."""

from __future__ import annotations

import os
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from notewell.errors import SettingsError
from notewell.settings import (
    OPTIONS,
    QuerySettings,
    RemoteSettings,
    Settings,
    check_settings,
    default_user_file,
    flatten,
    load_settings,
)

DOCUMENTED_DEFAULTS = {
    "enabled": True,
    "sources": ("memory",),
    "extra_paths": (),
    "provider": "auto",
    "model": "",
    "fallback": "none",
    "backend": "builtin",
    "qmd.command": "qmd",
    "qmd.mode": "search",
    "qmd.update_minutes": 5,
    "qmd.on_start": True,
    "qmd.timeout_ms": 4000,
    "qmd.max_rss_mb": 4096,
    "remote.base_url": "",
    "remote.api_key": "",
    "remote.headers": {},
    "remote.dimensions": 0,
    "remote.concurrency": 4,
    "remote.query_timeout_seconds": 0.0,
    "remote.index_timeout_seconds": 0.0,
    "remote.batch.enabled": False,
    "remote.batch.wait": True,
    "remote.batch.concurrency": 2,
    "remote.batch.poll_interval_ms": 2000,
    "remote.batch.timeout_minutes": 60,
    "experimental.session_memory": False,
    "local.model_path": "",
    "local.model_cache_dir": "",
    "local.hub_url": "https://huggingface.co",
    "store.driver": "sqlite",
    "store.path": "",
    "store.vector.enabled": True,
    "store.vector.driver": "segments",
    "store.vector.extension_path": "",
    "store.fts.enabled": True,
    "chunking.tokens": 400,
    "chunking.overlap": 80,
    "chunking.style": "markdown",
    "sync.on_session_start": True,
    "sync.on_search": True,
    "sync.watch": True,
    "sync.watch_debounce_ms": 1500,
    "sync.interval_minutes": 0,
    "sync.search_budget_ms": 2000,
    "sync.sessions.delta_bytes": 100_000,
    "sync.sessions.delta_messages": 50,
    "sync.sessions.debounce_ms": 5000,
    "query.max_results": 6,
    "query.min_score": 0.35,
    "query.mode": "hybrid",
    "query.fusion": "balanced",
    "query.hybrid.enabled": True,
    "query.hybrid.vector_weight": 0.7,
    "query.hybrid.text_weight": 0.3,
    "query.hybrid.candidate_multiplier": 4,
    "query.decay.enabled": False,
    "query.decay.half_life_days": 30.0,
    "query.diversity.enabled": False,
    "query.diversity.relevance": 0.7,
    "query.rerank.enabled": False,
    "query.rerank.provider": "",
    "query.rerank.model": "",
    "query.rerank.base_url": "",
    "query.rerank.api_key": "",
    "query.rerank.candidates": 20,
    "query.rerank.weight": 0.7,
    "include": None,
    "sessions.paths": (),
    "sessions.offer": True,
    "redaction.notes": False,
    "cache.enabled": True,
    "cache.max_entries": 50_000,
    "cache.max_age_days": 0.0,
    "cost.confirm_above_usd": 1.0,
    "cost.prices": {},
    "tools.citations": "auto",
    "tools.injected_chars": 4000,
    "tools.read_only": False,
    "mcp.token": "",
}


def test_the_defaults_are_the_documented_ones():
    assert flatten(Settings()) == DOCUMENTED_DEFAULTS


@pytest.mark.parametrize(
    "given",
    [
        {"user": "qmd.max_injected_chars = 900"},
        {"shared": "[qmd]\nmax_injected_chars = 900"},
        {"environ": {"NOTEWELL_QMD__MAX_INJECTED_CHARS": "900"}},
        {"flags": {"qmd.max_injected_chars": 900}},
    ],
)
def test_openclaws_limit_of_qmd_is_the_limit_of_every_backend(load, given):
    assert load(**given).settings.tools.injected_chars == 900


def test_loading_nothing_gives_the_defaults(load):
    resolved = load()
    assert resolved.settings == Settings()
    assert set(resolved.origins) == set(OPTIONS)
    assert set(resolved.origins.values()) == {"default"}
    assert resolved.notes == ()


def test_settings_are_frozen_and_can_key_a_cache():
    settings = Settings()
    with pytest.raises(FrozenInstanceError):
        settings.provider = "none"
    assert {settings: 1}[Settings()] == 1


LAYERS = [
    ("user", '[query]\nmax_results = 11\nmin_score = 0.11\nfusion = "rrf"\n'),
    ("shared", "[query]\nmax_results = 12\nmin_score = 0.12\n"),
    ("environ", {"NOTEWELL_QUERY__MAX_RESULTS": "13"}),
    ("flags", {"query.max_results": 14}),
]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        pytest.param(0, 6, id="built in"),
        pytest.param(1, 11, id="user file over built in"),
        pytest.param(2, 12, id="workspace file over user file"),
        pytest.param(3, 13, id="environment over workspace file"),
        pytest.param(4, 14, id="flag over environment"),
    ],
)
def test_each_layer_overrides_the_one_before(load, count, expected):
    assert load(**dict(LAYERS[:count])).settings.query.max_results == expected


def test_layers_merge_setting_by_setting_and_origins_say_which_won(load, workspace, user_file):
    resolved = load(**dict(LAYERS))
    query = resolved.settings.query
    assert (query.max_results, query.min_score, query.fusion) == (14, 0.12, "rrf")
    assert resolved.origins["query.max_results"] == "flag"
    assert resolved.origins["query.min_score"] == f"workspace file {workspace / 'notewell.toml'}"
    assert resolved.origins["query.fusion"] == f"user file {user_file}"
    assert resolved.origins["provider"] == "default"
    assert resolved.files == (user_file, workspace / "notewell.toml")


def test_the_environment_is_named_as_origin(load):
    assert load(environ={"NOTEWELL_PROVIDER": "none"}).origins["provider"] == "environment NOTEWELL_PROVIDER"


def test_lists_and_headers_are_replaced_as_a_whole(load):
    resolved = load(
        user='extra_paths = ["a", "b"]\n[remote.headers]\nX-One = "1"\n',
        environ={"NOTEWELL_EXTRA_PATHS": "c", "NOTEWELL_REMOTE__HEADERS": '{"X-Two": "2"}'},
    )
    assert [path.name for path in resolved.settings.extra_paths] == ["c"]
    assert resolved.settings.remote.headers == {"X-Two": "2"}


def test_a_flag_of_none_is_not_given(load):
    assert load(user='provider = "none"', flags={"provider": None}).settings.provider == "none"


def test_a_workspace_is_not_needed(user_file):
    user_file.write_text('extra_paths = ["notes"]\nmodel = "m"\n', encoding="utf-8")
    settings = load_settings(None, environ={}, user_file=user_file).settings
    assert settings.model == "m"
    assert settings.extra_paths == (Path("notes"),)


# --- files -------------------------------------------------------------------------------------


def test_the_defaults_table_means_the_same_as_the_top_level(load):
    top = load(user='provider = "none"\n[query]\nmax_results = 3\n[agents.a]\nmodel = "x"\n', agent="a")
    table = load(
        user='[defaults]\nprovider = "none"\n[defaults.query]\nmax_results = 3\n[agents.a]\nmodel="x"', agent="a"
    )
    assert top.settings == table.settings
    assert top.settings.query.max_results == 3


AGENTS = """
[query]
max_results = 3
min_score = 0.2

[agents.Reviewer]
provider = "none"
[agents.Reviewer.query]
max_results = 9
"""


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        pytest.param("main", ("auto", 3, 0.2), id="an agent without a table"),
        pytest.param("reviewer", ("none", 9, 0.2), id="its own table over the defaults of the file"),
        pytest.param("REVIEWER", ("none", 9, 0.2), id="case does not matter"),
    ],
)
def test_agents_override_the_defaults_of_their_file(load, agent, expected):
    settings = load(user=AGENTS, agent=agent).settings
    assert (settings.provider, settings.query.max_results, settings.query.min_score) == expected


def test_the_workspace_file_overrides_an_agents_table_in_the_user_file(load, user_file):
    resolved = load(user=AGENTS, shared="[query]\nmax_results = 4\n", agent="reviewer")
    assert resolved.settings.query.max_results == 4
    assert resolved.origins["provider"] == f"user file {user_file} [agents.Reviewer]"


def test_a_byte_order_mark_and_windows_line_ends_are_fine(workspace, user_file):
    user_file.write_bytes(b'\xef\xbb\xbfprovider = "none"\r\n\r\n[query]\r\nmax_results = 2\r\n')
    settings = load_settings(workspace, environ={}, user_file=user_file).settings
    assert (settings.provider, settings.query.max_results) == ("none", 2)


def test_notewell_config_names_the_user_file(workspace, user_file):
    user_file.write_text('model = "from there"', encoding="utf-8")
    resolved = load_settings(workspace, environ={"NOTEWELL_CONFIG": str(user_file)})
    assert resolved.settings.model == "from there"
    assert resolved.files == (user_file,)


def test_the_null_device_stands_for_no_user_file(workspace):
    assert load_settings(workspace, environ={"NOTEWELL_CONFIG": os.devnull}).settings == Settings()


def test_a_user_file_that_is_named_must_exist(workspace, tmp_path):
    with pytest.raises(SettingsError, match=r"nowhere\.toml: cannot be read"):
        load_settings(workspace, environ={"NOTEWELL_CONFIG": str(tmp_path / "nowhere.toml")})


@pytest.mark.skipif(sys.platform == "win32", reason="Windows asks the system, not a variable, for the folder")
def test_without_a_name_the_systems_own_place_is_read_if_there(workspace, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = default_user_file()
    assert file.is_relative_to(tmp_path)
    assert (file.parent.name, file.name) == ("notewell", "config.toml")
    assert load_settings(workspace, environ={}).files == ()
    file.parent.mkdir(parents=True)
    file.write_text('model = "mine"', encoding="utf-8")
    assert load_settings(workspace, environ={}).settings.model == "mine"


# --- the mode of a search ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "mode"),
    [
        pytest.param({}, "hybrid", id="default"),
        pytest.param({"user": 'query.mode = "keyword"'}, "keyword", id="user file"),
        pytest.param({"shared": 'query.mode = "semantic"'}, "semantic", id="workspace file"),
        pytest.param({"environ": {"NOTEWELL_QUERY__MODE": "keyword"}}, "keyword", id="environment"),
        pytest.param({"flags": {"query.mode": "semantic"}}, "semantic", id="flag"),
        pytest.param({"user": "query.hybrid.enabled = false"}, "semantic", id="the older setting"),
        pytest.param(
            {"user": "query.hybrid.enabled = false", "flags": {"query.mode": "keyword"}}, "keyword", id="mode wins"
        ),
    ],
)
def test_the_default_mode(load, texts, mode):
    assert load(**texts).settings.query.default_mode == mode


def test_an_unknown_mode_is_told_with_the_choices(load):
    with pytest.raises(SettingsError, match="must be one of hybrid, semantic, keyword"):
        load(user='query.mode = "fuzzy"')


# --- settings made in code ---------------------------------------------------------------------


def test_settings_made_in_code_are_checked_like_loaded_ones(workspace):
    made = Settings(query=QuerySettings(min_score=7), extra_paths=(Path("docs"),))
    resolved = check_settings(made, workspace=workspace)
    assert resolved.settings.query.min_score == 1
    assert resolved.settings.extra_paths == (workspace / "docs",)
    assert resolved.notes == ("query.min_score = 7.0 (Settings.query.min_score) is above 1.0: using 1.0",)
    assert resolved.origins["query.min_score"] == "code"
    assert resolved.origins["provider"] == "default"
    assert check_settings(resolved.settings, workspace=workspace).settings == resolved.settings


def test_a_wrong_type_in_code_is_told():
    with pytest.raises(SettingsError, match=r"Settings\.query\.max_results: query\.max_results must be a whole number"):
        check_settings(Settings(query=QuerySettings(max_results="six")))  # type: ignore[arg-type]


def test_headers_in_code_are_kept():
    made = Settings(remote=RemoteSettings(headers={"X-Team": "memory"}))
    assert check_settings(made).settings.remote.headers == {"X-Team": "memory"}


def test_naming_conversations_includes_them_unless_the_sources_are_set(load):
    implied = load(flags={"sessions.paths": "talks"})
    assert (implied.settings.sources, implied.origins["sources"]) == (("memory", "sessions"), "sessions.paths")
    assert load(flags={"sessions.paths": "talks", "sources": "memory"}).settings.sources == ("memory",)
    assert load(flags={"sessions.paths": "talks"}, shared='sources = ["memory"]\n').settings.sources == ("memory",)
