"""Every way to get a settings file or flag wrong, and what the message says."""

from __future__ import annotations

import pytest

from notewell.errors import SettingsError
from notewell.settings import load_settings
from notewell.settings.load import line_numbers


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        pytest.param(
            'model = "m"\n\n[query]\n# how many\nmax_results = "six"\n',
            5,
            'query.max_results must be a whole number from 1 to 1000, got "six"',
            "correct it, or remove it to get the default, 6",
            id="text for a number",
        ),
        pytest.param(
            "[query]\nmax_results = true\n",
            2,
            "query.max_results must be a whole number from 1 to 1000, got true",
            "correct it, or remove it to get the default, 6",
            id="a boolean is not a number",
        ),
        pytest.param(
            "[query]\nmax_results = 6.0\n",
            2,
            "query.max_results must be a whole number from 1 to 1000, got 6.0",
            "correct it, or remove it to get the default, 6",
            id="a fraction for a whole number",
        ),
        pytest.param(
            f"[query]\nmax_results = 0x{'f' * 5000}\n",
            2,
            "query.max_results must be a whole number from 1 to 1000, got a number with too many digits",
            "correct it, or remove it to get the default, 6",
            id="a number without end",
        ),
        pytest.param(
            "[query]\nmin_score = nan\n",
            2,
            "query.min_score must be a number from 0 to 1, got NaN",
            "correct it, or remove it to get the default, 0.35",
            id="not a number",
        ),
        pytest.param(
            "enabled = 1",
            1,
            "enabled must be true or false, got 1",
            "correct it, or remove it to get the default, true",
            id="a number for a boolean",
        ),
        pytest.param(
            "model = 2026-01-01",
            1,
            'model must be text in quotes, got "2026-01-01"',
            "correct it, or remove it to get the default, which is empty",
            id="a date for a text",
        ),
        pytest.param(
            'extra_paths = "docs"',
            1,
            'extra_paths must be a list of paths, got "docs"',
            "correct it, or remove it to get the default, which is empty",
            id="a text for a list",
        ),
        pytest.param(
            'extra_paths = ["a\\u0000b"]',
            1,
            'extra_paths must be a list of paths, got ["a\\u0000b"]',
            "correct it, or remove it to get the default, which is empty",
            id="a path no system has",
        ),
        pytest.param(
            "[query]\nfusion = 'Weighted'",
            2,
            'query.fusion must be one of balanced, weighted, rrf, got "Weighted"',
            "did you mean weighted?",
            id="an unknown choice",
        ),
        pytest.param(
            'sources = ["memory", "mails"]',
            1,
            'sources must be a list with at least one of memory, sessions, got ["memory", "mails"]',
            'correct it, or remove it to get the default, ["memory"]',
            id="an unknown choice in a list",
        ),
        pytest.param(
            "sources = []",
            1,
            "sources must be a list with at least one of memory, sessions, got []",
            'correct it, or remove it to get the default, ["memory"]',
            id="no source at all",
        ),
        pytest.param(
            'provider = "Open AI"',
            1,
            "provider must be one of auto, local, openai, gemini, voyage, mistral, ollama, none, "
            'or the name of a plug-in (a-z, 0-9, - and _), got "Open AI"',
            'correct it, or remove it to get the default, "auto"',
            id="a name that no provider can have",
        ),
        pytest.param(
            '[remote]\nbase_url = "ftp://x"',
            2,
            'remote.base_url must be a URL that starts with https:// or http://, got "ftp://x"',
            "correct it, or remove it to get the default, which is empty",
            id="an address of the wrong kind",
        ),
        pytest.param(
            '[store]\npath = "/x/{agnt}"',
            2,
            'store.path must be a path, with no other placeholders than {agent} and {workspace}, got "/x/{agnt}"',
            "correct it, or remove it to get the default, which is empty",
            id="an unknown placeholder",
        ),
        pytest.param(
            "[chunking]\ntoken = 3\n",
            2,
            "unknown setting chunking.token",
            "did you mean chunking.tokens?",
            id="a misspelt key",
        ),
        pytest.param(
            "[query]\nmaxResults = 3\n",
            2,
            "unknown setting query.maxResults",
            "did you mean query.max_results?",
            id="a key in another style",
        ),
        pytest.param(
            "max_results = 3\n",
            1,
            "unknown setting max_results",
            "did you mean query.max_results?",
            id="a key outside its group",
        ),
        pytest.param(
            "\n[chunkin]\ntokens = 3\n", 2, "unknown setting chunkin", "did you mean chunking?", id="a misspelt group"
        ),
        pytest.param(
            "xyzzy = 3\n",
            1,
            "unknown setting xyzzy",
            "docs/configuration.md lists every setting",
            id="a key like no other",
        ),
        pytest.param(
            "chunking = 400\n",
            1,
            "chunking is a group of settings",
            "set chunking.tokens, for example",
            id="a value for a group",
        ),
        pytest.param(
            "[query]\nmin_score = 0.1\n[defaults]\nmodel = 'm'\n",
            1,
            "query is outside [defaults]",
            "move it into [defaults], or drop the [defaults] line",
            id="settings beside the defaults table",
        ),
        pytest.param(
            "defaults = 1\n",
            1,
            "defaults must be a table, got 1",
            "docs/configuration.md has examples",
            id="defaults are no table",
        ),
        pytest.param(
            "agents = 1\n",
            1,
            "agents must be tables such as [agents.main], got 1",
            "docs/configuration.md has examples",
            id="agents are no table",
        ),
        pytest.param(
            "[agents]\nmain = 1\n",
            2,
            "agents.main must be a table of settings",
            "docs/configuration.md has examples",
            id="an agent is no table",
        ),
        pytest.param(
            "[agents.Main]\n[agents.main]\n",
            2,
            "agent main has two tables; ids do not differ by case",
            "docs/configuration.md has examples",
            id="an agent twice",
        ),
        pytest.param(
            '[agents."../x"]\n',
            1,
            "'../x' is not an agent id",
            "use 1 to 64 of a-z, 0-9, - and _, starting with a letter or digit, such as main or home-assistant",
            id="an agent that would be a path",
        ),
        pytest.param(
            "[agents.other.query]\nmin_score = 'low'\n",
            2,
            'query.min_score must be a number from 0 to 1, got "low"',
            "correct it, or remove it to get the default, 0.35",
            id="a slip in the table of another agent",
        ),
        pytest.param(
            "[agents.other]\n\nquery = { min_score = 'low' }\n",
            3,
            'query.min_score must be a number from 0 to 1, got "low"',
            "correct it, or remove it to get the default, 0.35",
            id="inside an inline table",
        ),
    ],
)
def test_a_mistake_in_a_file(load, user_file, text, line, message, hint):
    with pytest.raises(SettingsError) as caught:
        load(user=text)
    assert caught.value.message == f"{user_file}:{line}: {message}"
    assert caught.value.hint == hint
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("model = 'm'\nprovider = none\n", 2, id="text without quotes"),
        pytest.param("model = 'm'\n\nmodel = 'n'\n", 3, id="a key twice"),
        pytest.param("model = 'm'\nextra_paths = [\n", 2, id="a list that does not end"),
        pytest.param("[query\nmax_results = 3\n", 1, id="a heading that does not end"),
    ],
)
def test_a_file_that_is_not_toml(load, user_file, text, line):
    with pytest.raises(SettingsError) as caught:
        load(user=text)
    where, _, reason = caught.value.message.partition(": not valid TOML: ")
    assert where == f"{user_file}:{line}"
    assert reason  # in the parser's words, which differ between versions of Python
    assert "(at " not in reason
    assert caught.value.hint == 'texts need quotes (provider = "local"), numbers do not'


def test_mistakes_in_the_workspace_file_name_that_file(load, workspace):
    with pytest.raises(SettingsError) as caught:
        load(shared="[query]\nmax_results = []")
    assert caught.value.message.startswith(f"{workspace / 'notewell.toml'}:2: query.max_results must be")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        pytest.param({"query.limit": 3}, "flag: unknown setting query.limit", id="unknown"),
        pytest.param({"query": {"max_results": 3}}, "flag: unknown setting query", id="a group"),
        pytest.param(
            {"query.max_results": "many"},
            'flag: query.max_results must be a whole number from 1 to 1000, got "many"',
            id="wrong text",
        ),
        pytest.param(
            {"query.max_results": 2.5},
            "flag: query.max_results must be a whole number from 1 to 1000, got 2.5",
            id="wrong type",
        ),
    ],
)
def test_a_mistake_in_a_flag(load, flags, message):
    with pytest.raises(SettingsError) as caught:
        load(flags=flags)
    assert caught.value.message == message


def test_flags_may_be_texts_or_values(load):
    texts = load(flags={"query.max_results": "9", "sync.watch": "off", "extra_paths": "a,b"})
    values = load(flags={"query.max_results": 9, "sync.watch": False, "extra_paths": ["a", "b"]})
    assert texts.settings == values.settings
    assert texts.settings.query.max_results == 9


def test_bytes_that_are_not_text(workspace, user_file):
    user_file.write_bytes(b"model = '\xff'")
    with pytest.raises(SettingsError) as caught:
        load_settings(workspace, environ={}, user_file=user_file)
    assert (caught.value.message, caught.value.hint) == (f"{user_file}: not UTF-8 text", "save the file as UTF-8")


def test_a_folder_in_place_of_the_workspace_file(workspace, load):
    (workspace / "notewell.toml").mkdir()
    with pytest.raises(SettingsError, match=r"notewell\.toml: cannot be read"):
        load()


def test_deeply_nested_nonsense_is_an_error_not_a_crash(load):
    with pytest.raises(SettingsError, match="not valid TOML"):
        load(user=f"x = {'[' * 100_000}")


TEXT = '''\
model = """
query = 1
[store]
"""
"provider" = "none"

[ remote . batch ]
wait = true  # [cache]
[remote]
headers = { A = "b" }
[agents."main".query]
hybrid.enabled = true
'''


def test_line_numbers_of_keys_and_tables():
    assert line_numbers(TEXT) == {
        ("model",): 1,
        ("provider",): 5,
        ("remote", "batch"): 7,
        ("remote", "batch", "wait"): 8,
        ("remote",): 9,
        ("remote", "headers"): 10,
        ("agents", "main", "query"): 11,
        ("agents", "main", "query", "hybrid", "enabled"): 12,
    }
