"""Every number that changes a score or an order is in `Tuning`; each other number in `search` has a reason here."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

import notewell.search
from notewell.search.tuning import TUNING, Tuning

SEARCH = Path(notewell.search.__file__).parent
CALENDAR = {  # days of a month, months of a year, digits of a date
    f"dates/{name}.py" for name in ("vocabulary", "european", "east_asian", "phrases", "moments", "question")
}
COUNTING = {0, 1, -1, 2}  # first, last, both

REASONS = {
    "replaced.py": {100: "steps from an entry to the newest one; more are a circle"},
    "rerankers.py": {10.0: "seconds that a reranking provider may take"},
    "dates/filters.py": {
        3: "ways to write a day",
        4: "days in a question that are also searched for in other ways; digits of a year",
        12: "months of a year",
        31: "days of the longest month; a longer period in a heading does not date its chunks",
        1000: "characters of a question that are read for a time",
        2000: "any year: the day does not matter",
        4096: "headings remembered",
    },
    "options.py": {
        0.35: "default threshold; a setting",
        6: "default limit; a setting",
        20: "default limit of a timeline",
    },
    "ordering.py": {
        0.5: "what is left after a half-life; a reranker that gives all texts the same score",
        0.7: "default weight of a reranker; a setting",
        20: "default candidates of a reranker; a setting",
        24: "chunks read at a time",
        50: "chunks that MMR puts in order, when it is asked for",
    },
    "qmd.py": {
        3: "the first version of QMD that is not supported",
        6: "from which minor version QMD keeps the names of files",
        8: "how many times more results are requested when too many are filtered out",
        12: "digits of a collection's name",
        30: "doublings of a pause, so that no number overflows",
        60.0: "seconds of a minute; the first pause after a failed embedding",
        120.0: "seconds that an update, or an embedding, may take; OpenClaw's",
        200: "characters shown of an error of QMD",
        300.0: "seconds of the longest pause after a failed search",
        1000: "milliseconds of a second",
        3600.0: "seconds of the longest pause after a failed embedding; OpenClaw's",
    },
    "qmd_output.py": {1000: "beginnings of lists in the output of QMD that are tried", 4: "digits of a shown score"},
    "query.py": {4000: "characters of a question that are read"},
    "query_embedding.py": {64: "question vectors remembered"},
    "scoring.py": {
        0.3: "OpenClaw's text weight; a setting",
        0.5: "of BM25's idf",
        0.7: "OpenClaw's vector weight; a setting",
    },
    "searcher.py": {4: "digits of a shown score", 6: "digits of an explained number"},
    "snippets.py": {
        1e-09: "sums of the same weights in another order",
        3: "quarters of a passage that must match",
        4: "quarters; shortest stem whose last letter may change",
        8: "places looked at for one word",
        512: "spellings remembered",
        160: "characters shown of the beginning of a long message",
        700: "characters of a snippet; OpenClaw's",
    },
    "word_variants.py": {
        3: "words of one question that are guessed; words of the shortest long form",
        4: "letters of the shortest word with a typo; letters two typos change",
        5: "letters from which one may be missing; letters of the longest acronym",
        6: "letters from which one may be wrong",
        7: "letters of the shortest stem with two typos",
        8: "letters of the shortest word with two typos; chunks read for an explanation",
        24: "letters of the longest word",
        60: "runs of words in a question that are tried as long forms",
        100: "characters around an acronym in which its explanation stands",
        1000: "chunks counted to choose between guesses",
        20000: "terms compared",
    },
}


def numbers_in(source: str) -> set[float]:
    """Return the numbers of a module that are more than counting."""
    constants = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    return {value for value in constants if type(value) in {int, float} and value not in COUNTING}


def test_every_other_number_has_a_reason():
    found = defaultdict(set)
    for file in sorted(SEARCH.rglob("*.py")):
        path = file.relative_to(SEARCH)
        name = "rerankers" if path.parts[0] == "rerankers" else path.as_posix()
        if name not in {"tuning.py", *CALENDAR} and (numbers := numbers_in(file.read_text(encoding="utf-8"))):
            found[name] |= numbers
    assert dict(found) == {name: set(reasons) for name, reasons in REASONS.items()}


def test_few_numbers_decide_an_order():
    assert len(fields(Tuning)) <= 20


def test_nobody_changes_them_on_the_way():
    with pytest.raises(FrozenInstanceError):
        TUNING.pairs = 1.0


def test_every_number_says_what_it_is_for():
    lines = (SEARCH / "tuning.py").read_text(encoding="utf-8").splitlines()
    for field in fields(Tuning):
        (line,) = [line for line in lines if line.strip().startswith(f"{field.name}:")]
        assert "  # " in line
