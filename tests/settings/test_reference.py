"""The page on configuration lists the settings as they are declared, and its examples work.

`python -m tests.settings.test_reference` writes the tables of the page anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from notewell.settings.model import GROUPS, OPTIONS
from notewell.settings.option import Option, toml_value

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
TABLES_BELOW = "## All settings\n"
TYPE_NAMES = {"text": "string", "list": "list of strings", "paths": "list of paths", "table": "table of strings"}


# --- the tables ----------------------------------------------------------------------------------


def reference() -> str:
    """Return the page with its tables made from the settings."""
    written, below, _ = PAGE.read_text(encoding="utf-8").partition(TABLES_BELOW)
    return written + below + "".join(table_of(group) for group in GROUPS)


def table_of(group: str) -> str:
    own = {key: option for key, option in OPTIONS.items() if key.rpartition(".")[0] == group}
    title, meaning = (f"`[{group}]`", GROUPS[group]) if group else ("Top level", "Sources and embedding provider.")
    head = ["| key | type | default | allowed | workspace file | meaning |", "|---|---|---|---|---|---|"]
    rows = [row_of(key, option) for key, option in own.items()]
    return "\n".join(["", f"### {title}", "", meaning, "", *head, *rows, ""])


def row_of(key: str, option: Option) -> str:
    cells = (
        f"`{key}`",
        TYPE_NAMES.get(option.kind, option.kind),
        "not set" if option.default is None else f"`{toml_value(option.default)}`",
        allowed(option),
        workspace_rule(option),
        option.meaning,
    )
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def allowed(option: Option) -> str:
    if option.choices:
        return ", ".join(f"`{choice}`" for choice in option.choices)
    return option.form or option.range_text.removeprefix(" from ").removeprefix(" of ")


def workspace_rule(option: Option) -> str:
    if isinstance(option.workspace, tuple):
        return "only " + " or ".join(f"`{toml_value(value)}`" for value in option.workspace)
    return {"yes": "yes", "no": "no", "inside": "inside it only"}[option.workspace]


# --- the page ------------------------------------------------------------------------------------


def test_the_page_in_docs_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == reference(), "run: python -m tests.settings.test_reference"


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


@pytest.mark.slow
def test_importing_the_settings_is_cheap():
    code = "import sys, notewell.settings; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    assert HEAVY.isdisjoint(loaded)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8", newline="\n")
