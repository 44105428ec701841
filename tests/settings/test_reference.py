"""The page on configuration is the one the settings give, and its examples work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from notewell.settings import OPTIONS
from notewell.settings.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_in_docs_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "run: python -m notewell.settings.reference > docs/configuration.md"
    )


def test_the_command_that_makes_the_page():
    made = subprocess.run([sys.executable, "-m", "notewell.settings.reference"], capture_output=True, check=True)
    assert made.stdout.decode().splitlines() == reference().splitlines()


@pytest.mark.parametrize("key", OPTIONS)
def test_every_setting_has_one_row_with_a_meaning(key):
    rows = [line for line in reference().splitlines() if line.startswith(f"| `{key}` |")]
    assert len(rows) == 1
    assert rows[0].count("|") == 7
    assert OPTIONS[key].meaning in rows[0]
    assert not OPTIONS[key].meaning.endswith(".")


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", reference(), flags=re.DOTALL)


def test_the_example_files_load(load):
    user, shared = examples("toml")
    archivist = load(user=user, shared=shared, agent="archivist")
    assert archivist.settings.provider == "openai"
    assert archivist.settings.sources == ("memory", "sessions")
    assert archivist.settings.query.max_results == 8
    assert archivist.notes == ()
    assert load(user=user, shared=shared, agent="reviewer").settings.query.min_score == 0.5


def test_the_example_variables_load(load):
    (text,) = examples("sh")
    environ = {}
    for line in text.splitlines():
        name, _, value = line.partition("=")
        environ[name] = value.strip("'")
    settings = load(environ=environ).settings
    assert settings.provider == "none"
    assert settings.remote.headers == {"X-Team": "memory"}
    assert len(settings.extra_paths) == 2


def test_the_example_message_is_what_one_sees(load, workspace):
    message = re.search(r"```\n(notewell\.toml:.*?)\n```", reference())
    assert message is not None
    with pytest.raises(Exception, match="six") as caught:
        load(shared='[chunking]\ntokens = 300\n[query]\nmax_results = "six"\n')
    assert str(caught.value) == f"{workspace}{os.sep}{message[1]}"


HEAVY = {"numpy", "msgspec", "platformdirs", "tomllib", "difflib", "rich", "click"}


def test_importing_the_settings_is_cheap():
    code = "import sys, notewell.settings; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    assert HEAVY.isdisjoint(loaded)
