"""Variables of every kind, and the ones that are none of ours."""

from __future__ import annotations

import pytest

from notewell.errors import SettingsError
from notewell.settings import OPTIONS, flatten, variable_name


@pytest.mark.parametrize("word", ["true", "TRUE", "1", "yes", "on", " On "])
def test_words_for_true(load, word):
    assert load(environ={"NOTEWELL_REMOTE__BATCH__ENABLED": word}).settings.remote.batch.enabled is True


@pytest.mark.parametrize("word", ["false", "False", "0", "no", "off"])
def test_words_for_false(load, word):
    assert load(environ={"NOTEWELL_SYNC__WATCH": word}).settings.sync.watch is False


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        pytest.param("query.max_results", "8", 8, id="whole number"),
        pytest.param("query.min_score", "0.5", 0.5, id="number"),
        pytest.param("query.min_score", "1", 1.0, id="a whole number where any number may stand"),
        pytest.param("provider", "ollama", "ollama", id="text"),
        pytest.param("provider", "my_plug-in2", "my_plug-in2", id="a plug-in's name"),
        pytest.param("model", "1", "1", id="text that looks like a number stays text"),
        pytest.param("query.fusion", "rrf", "rrf", id="choice"),
        pytest.param("remote.base_url", "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1", id="address"),
        pytest.param("remote.headers", '{"A": "b"}', {"A": "b"}, id="table as JSON"),
        pytest.param("sources", "memory", ("memory",), id="list of one"),
        pytest.param("sources", '["memory", "memory"]', ("memory",), id="list as JSON, each item once"),
    ],
)
def test_values_of_every_kind(load, key, text, expected):
    assert flatten(load(environ={variable_name(key): text}).settings)[key] == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("a, b/c ,", ["a", "b/c"], id="commas"),
        pytest.param('["a,b", "c"]', ["a,b", "c"], id="JSON, when an item holds a comma"),
        pytest.param("[]", [], id="empty"),
    ],
)
def test_lists_of_paths(load, workspace, text, names):
    resolved = load(user='extra_paths = ["other"]', environ={"NOTEWELL_EXTRA_PATHS": text})
    assert list(resolved.settings.extra_paths) == [workspace / name for name in names]


def test_every_setting_has_a_variable_that_leads_back_to_it():
    names = {variable_name(key) for key in OPTIONS}
    assert len(names) == len(OPTIONS)
    assert variable_name("query.hybrid.vector_weight") == "NOTEWELL_QUERY__HYBRID__VECTOR_WEIGHT"


def test_reserved_empty_and_foreign_variables_set_nothing(load):
    environ = {
        "NOTEWELL_WORKSPACE": "/somewhere",
        "NOTEWELL_AGENT": "x",
        "NOTEWELL_PROVIDER": "",
        "PROVIDER": "openai",
        "notewell_provider": "openai",
    }
    assert set(load(environ=environ).origins.values()) == {"default"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        pytest.param("NOTEWELL_QUERY_MAX_RESULTS", "did you mean NOTEWELL_QUERY__MAX_RESULTS?", id="one underscore"),
        pytest.param("NOTEWELL_PROVIDR", "did you mean NOTEWELL_PROVIDER?", id="a typo"),
        pytest.param("NOTEWELL_WORKSPCE", "did you mean NOTEWELL_WORKSPACE?", id="a typo in a reserved one"),
        pytest.param("NOTEWELL_ZZZZZZZZZZZZ", "docs/configuration.md lists every variable", id="nothing like it"),
    ],
)
def test_an_unknown_variable_is_an_error_that_names_it(load, name, hint):
    with pytest.raises(SettingsError) as caught:
        load(environ={name: "sk-not-to-be-shown"})
    assert caught.value.message == f"environment variable {name}: unknown variable"
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        pytest.param("sync.watch", "maybe", 'must be true or false, got "maybe"', id="boolean"),
        pytest.param("query.max_results", "6.5", 'must be a whole number from 1 to 1000, got "6.5"', id="whole number"),
        pytest.param("query.min_score", "half", 'must be a number from 0 to 1, got "half"', id="number"),
        pytest.param("query.min_score", "nan", 'must be a number from 0 to 1, got "nan"', id="not a number at all"),
        pytest.param("query.min_score", "inf", 'must be a number from 0 to 1, got "inf"', id="infinite"),
        pytest.param("mcp.token", "a\udcff", "must be text in quotes, got ***", id="bytes that are no text"),
        pytest.param("extra_paths", "[1]", 'must be a list of paths, got "[1]"', id="list of something else"),
        pytest.param("extra_paths", '["a"', 'must be a list of paths, got "[\\"a\\""', id="broken JSON"),
        pytest.param("remote.headers", "X=1", "must be a table of names and texts, got ***", id="table"),
        pytest.param("sources", ",", 'must be a list with at least one of memory, sessions, got ","', id="empty list"),
    ],
)
def test_a_wrong_value_names_the_variable_the_key_and_what_is_allowed(load, key, text, expected):
    with pytest.raises(SettingsError) as caught:
        load(environ={variable_name(key): text})
    assert caught.value.message == f"environment variable {variable_name(key)}: {key} {expected}"
