"""Reads what QMD prints: its results in JSON, whatever stands around them, and where a snippet is in its note."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from notewell.search.snippets import make_snippet
from notewell.text.lexicon import fold
from notewell.types import Citation, Hit

if TYPE_CHECKING:
    from notewell.types import Document, SearchMode

# CSI, OSC and two-character sequences; in valid JSON the escape character itself is always written as \u001b.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_ARRAY = re.compile(r"\[\s*(?=[{\]])")
_HEADER = re.compile(r"@@ -(\d{1,9}),\d+ @@[^\n]*\n?")
MOST_ARRAYS = 1_000  # that are tried: each that cannot be read costs as much as the text before it is long
_CUT = "..."  # at the end of a snippet that QMD shortened


@dataclass(frozen=True, slots=True)
class Result:
    """One result as QMD gives it: the best place of one file."""

    collection: str
    path: str  # below the folder of the collection
    score: float  # 0 to 1; in a small index all may be 0
    first_line: int  # 1-based, of the snippet
    text: str  # the snippet, without its header


def plain(text: str) -> str:
    """Return text without ANSI codes."""
    return _ANSI.sub("", text)


def parse_results(stdout: str) -> tuple[list[Result], bool] | None:
    """Return the results and whether they are complete; None when there are none to be read, not even an empty list.

    Noise before and after is skipped. Of a list that is cut off, the results before the cut count.
    """
    text = plain(stdout)
    best: tuple[list[Result], bool] | None = None
    for start in islice(_ARRAY.finditer(text), MOST_ARRAYS):
        values, complete = _values(text, start.end())
        results = [result for value in values if (result := _result(value))]
        if results:
            return results, complete
        if complete and not values:
            best = [], True
    return best


def _values(text: str, at: int) -> tuple[list[Any], bool]:
    """Return the elements of a JSON array that begins before `at`, and whether it ends as one should."""
    decoder, values = json.JSONDecoder(), []
    try:
        while text[at : at + 1] != "]":
            value, at = decoder.raw_decode(text, at)
            values.append(value)
            between = re.compile(r"\s*(?:,\s*|(?=\]))").match(text, at)
            if between is None:
                return values, False
            at = between.end()
    except (ValueError, RecursionError):
        return values, False
    return values, True


def _result(value: object) -> Result | None:
    """Return a result, or None for anything else that may stand in a list."""
    if not isinstance(value, dict) or not str(value.get("file", "")).startswith("qmd://"):
        return None
    collection, _, path = value["file"].removeprefix("qmd://").partition("/")
    score, snippet = value.get("score"), str(value.get("snippet", ""))
    header = _HEADER.match(snippet)
    line = int(header[1]) if header else value.get("line")
    return Result(
        collection,
        path,
        min(1.0, max(0.0, score)) if isinstance(score, int | float) and abs(score) < math.inf else 0.0,
        line if isinstance(line, int) and line > 0 else 1,
        snippet[header.end() :] if header else snippet,
    )


def hit_of(result: Result, document: Document, query: str, *, found_by: SearchMode, explain: bool) -> Hit | None:
    """Return the hit, with lines and text of the note as it is now; None when the snippet is no longer in it."""
    text = result.text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").removeprefix("\ufeff")
    text = text.removesuffix(_CUT)
    lines = document.text.split("\n")
    expected = sum(len(line) + 1 for line in lines[: result.first_line - 1])
    at = document.text.find(text, expected)
    at = document.text.find(text) if at < 0 else at
    first, last = document.text.count("\n", 0, max(at, 0)), document.text.count("\n", 0, at + len(text))
    filled = [number for number in range(first, last + 1) if lines[number].strip()]
    if at < 0 or not filled:
        return None
    first_line, last_line = filled[0] + 1, filled[-1] + 1  # without blank lines at either end
    words = dict.fromkeys(fold(query).lower().split(), 1.0)
    return Hit(
        path=document.stamp.path,
        first_line=first_line,
        last_line=last_line,
        score=round(result.score, 4),
        snippet=make_snippet("\n".join(lines[first_line - 1 : last_line]), words),
        source="memory",
        citation=str(Citation(document.stamp.path, first_line, last_line)),
        found_by=found_by,
        explanation={"qmd": round(result.score, 4)} if explain else None,
    )
