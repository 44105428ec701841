"""Every message and page that says what to install names this package and extras that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = [
    file
    for pattern in ("src/**/*.py", "docs/**/*.md", "plugins/**/*.*", "examples/**/*.*", "*.md")
    for file in sorted(ROOT.glob(pattern))
    if file.is_file() and file.suffix in {".py", ".md", ".json", ".sh", ".toml"}
]
INSTALLED = re.compile(
    r"(?:pip|uv|uvx|pipx)\b[^\n`]*?\s['\"]?(?P<name>[a-z][a-z0-9-]*|\.)\[(?P<extras>[a-z0-9, _-]+)\]"
)


def install_commands():
    """Yield every install command with extras, and where it stands."""
    for file in FILES:
        for match in INSTALLED.finditer(file.read_text(encoding="utf-8")):
            yield file.relative_to(ROOT).as_posix(), match["name"], match["extras"]


def test_there_are_hints_in_messages_and_pages():
    places = {place.split("/")[0] for place, _, _ in install_commands()}
    assert {"src", "docs", "README.md"} <= places


@pytest.mark.parametrize(("place", "name", "extras"), sorted(set(install_commands())))
def test_a_hint_names_extras_that_exist(place, name, extras):
    assert name in {PROJECT["name"], "."}, place
    known = set(PROJECT["optional-dependencies"])
    assert {extra.strip() for extra in extras.split(",")} <= known, place


def test_the_old_name_is_only_in_the_changelog():
    old = "".join(("re", "collect"))
    named = [file for file in FILES if old in file.read_text(encoding="utf-8").lower()]
    assert [file.name for file in named] in ([], ["CHANGELOG.md"])
