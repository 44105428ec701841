"""Checks that messages, help texts and docstrings use the words of the field: the glossary is in CONTRIBUTING.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source_code import MODULES, module_at

REPOSITORY = Path(__file__).parent.parent

# Phrase -> what to say instead. Everyday words ("writing", "behind") have other meanings and are left to the reader.
GLOSSARY = {
    r"\btak(e|es|en|ing) in\b|\btook in\b": "index",
    r"\banew\b": "again, or rebuild",
    r"\bwho embeds\b": "embedding provider",
    r"\bby meaning\b": "semantic",
    r"\bby words\b|\bwords alone\b": "keyword",
    r"\bmeaning ?\+ ?words\b|\bmeaning and words\b": "hybrid",
    r"\bslips? of spelling\b|\bspelled nearly so\b": "typo, similar spelling",
    r"\bmend(s|ed|ing)?\b": "fix, repair",
    r"\bwho may read and write\b": "permissions",
    r"\banswer(s|ed)? nonsense\b": "invalid response",
    r"\bunder way\b": "in progress, pending",
    r"\bat most so many\b": "maximum",
    r"\bdamaged?\b": "corrupt",
    r"\bpatience\b": "deadline, retry policy",
    r"\bunasked\b": "background, spending limit",
    r"\bwaited for\b": "deadline",
    r"\bnobody is there to be asked\b": "spending limit for background embedding",
    r"\bthat says TEXT\b": "containing TEXT",
}
BANNED = [(re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE), instead) for pattern, instead in GLOSSARY.items()]
FORMULA = re.compile(r"\bin[,;] .*\bout[.:;]|\bcomes? in[,;].*\bout\b")  # "X in, Y out" says nothing about a module


def offences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the offset in lines and the complaint for every phrase that the glossary replaces; code may say it."""
    text = re.sub(r"`[^`\n]*`", lambda code: " " * len(code[0]), text)
    for pattern, instead in BANNED:
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()), f"{match[0]!r}: say {instead}"


def test_strings_and_docstrings_keep_to_the_glossary():
    found = [
        f"{path.relative_to(REPOSITORY).as_posix()}:{line + offset}: {complaint}"
        for path in MODULES
        for line, text in module_at(path).readable
        for offset, complaint in offences(text)
    ]
    assert not found, "\n" + "\n".join(found)


def test_module_docstrings_say_what_the_module_does():
    found = []
    for path in MODULES:
        docstring = module_at(path).docstring
        if FORMULA.search(docstring.partition("\n\n")[0].replace("\n", " ")):
            found.append(f"{path.relative_to(REPOSITORY).as_posix()}: {docstring.partition(chr(10))[0]}")
    assert not found, "\n" + "\n".join(found)


def test_the_documentation_keeps_to_the_glossary():
    found = []
    for page in [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]:
        lines, inside = [], False
        for line in page.read_text(encoding="utf-8").split("\n"):
            inside ^= line.lstrip().startswith("```")
            lines.append("" if inside else line)  # examples quote notes, which may say what they like
        found += [
            f"{page.relative_to(REPOSITORY).as_posix()}:{offset + 1}: {complaint}"
            for offset, complaint in offences("\n".join(lines))
        ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("17 chunks are found by words only", id="a search mode"),
        pytest.param("`doctor --fix` mends the index", id="repair"),
        pytest.param("the provider answered\n    nonsense", id="across lines"),
    ],
)
def test_what_the_glossary_replaces_is_noticed(text):
    assert list(offences(text))


@pytest.mark.parametrize(
    "text",
    [
        "the writing of a file",
        "recommended",
        "the lag behind the files",
        "a file in `damaged/`",
    ],
)
def test_everyday_words_are_left_alone(text):
    assert not list(offences(text))
