"""Reads test sets in BEIR layout and names whatever is wrong with them."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from notewell.errors import NotewellError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Half = Literal["tuning", "held-out"]

LAYOUT = "a test set holds corpus.jsonl, queries.jsonl and qrels.tsv (BEIR layout)"


class TestSetError(NotewellError):
    """A test set is incomplete or cannot be read."""

    __test__ = False  # pytest would take it for a test

    def __init__(self, message: str) -> None:
        super().__init__(message, hint=LAYOUT)


@dataclass(frozen=True, slots=True)
class EvalDocument:
    """One document of a test set."""

    id: str
    title: str
    text: str
    scope: str = ""
    session: str = ""  # the conversation a turn belongs to
    date: str = ""


@dataclass(frozen=True, slots=True)
class EvalQuery:
    """One judged question: the grade of each relevant document."""

    id: str
    text: str
    grades: Mapping[str, float]
    scope: str = ""


@dataclass(frozen=True, slots=True)
class EvalSet:
    """A test collection; a scoped query is asked only of the documents of its scope."""

    name: str
    documents: tuple[EvalDocument, ...]
    queries: tuple[EvalQuery, ...]

    @property
    def scopes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(document.scope for document in self.documents))

    @property
    def family(self) -> str:
        """The first part of the name, which sets of the same texts or questions share: `xquad-en`, `xquad-zh`."""
        return self.name.split("-")[0]

    def sample(self, most: int, *, seed: int = 0) -> EvalSet:
        """Return the set with at most `most` of its queries, the same ones for the same seed."""
        if most >= len(self.queries):
            return self
        draw = random.Random(seed)  # noqa: S311  (statistics, not secrets)
        chosen = sorted(draw.sample(range(len(self.queries)), most))
        return replace(self, queries=tuple(self.queries[i] for i in chosen))

    def half(self, which: Half) -> EvalSet:
        """Return every second query, or those of every second conversation: constants are tuned on one half only.

        Queries of one conversation stay together, because what suits one of them suits the others.
        """
        scopes = self.scopes
        held_out = which == "held-out"
        queries = self.queries[1 if held_out else 0 :: 2]
        if len(scopes) > 1:
            chosen = set(scopes[0 if held_out else 1 :: 2])
            queries = tuple(query for query in self.queries if query.scope in chosen)
        if not queries:
            raise TestSetError(f"{self.name} holds no query in this half")
        return replace(self, queries=queries)


def load_set(folder: Path) -> EvalSet:
    """Read a test set; queries without a judgement are left out."""
    if not folder.is_dir():
        raise TestSetError(f"there is no folder {folder}")
    documents = tuple(
        EvalDocument(
            _text(row, "_id", where),
            str(row.get("title") or ""),
            _text(row, "text", where),
            str(row.get("scope") or ""),
            str(row.get("session") or ""),
            str(row.get("date") or ""),
        )
        for where, row in _rows(folder / "corpus.jsonl")
    )
    known = {document.id for document in documents}
    grades = _grades(folder / "qrels.tsv", known)
    queries = tuple(
        EvalQuery(query_id, _text(row, "text", where), grades[query_id], str(row.get("scope") or ""))
        for where, row in _rows(folder / "queries.jsonl")
        if (query_id := _text(row, "_id", where)) in grades
    )
    if not queries:
        raise TestSetError(f"{folder}: no query has a judgement in qrels.tsv")
    return EvalSet(folder.name, documents, queries)


def _rows(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in _lines(file):
        where = f"{file}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise TestSetError(f"{where}: not JSON ({error.msg})") from error
        if not isinstance(row, dict):
            raise TestSetError(f"{where}: not a JSON object")
        yield where, row


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, line.rstrip("\n")
    except FileNotFoundError as error:
        raise TestSetError(f"{file} is missing") from error
    except (OSError, UnicodeDecodeError) as error:
        raise TestSetError(f"{file} cannot be read: {error}") from error


def _text(row: Mapping[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise TestSetError(f"{where}: {key!r} is missing or not a text")
    return value


def _grades(file: Path, known: set[str]) -> dict[str, dict[str, float]]:
    grades: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for number, line in _lines(file):
        fields = line.split("\t")
        if number == 1 and not _is_number(fields[-1]):
            continue  # the header
        where = f"{file}, line {number}"
        if len(fields) != 3 or not _is_number(fields[2]):
            raise TestSetError(f"{where}: expected query, document and grade separated by tabs")
        query, document, grade = fields
        if document not in known:
            raise TestSetError(f"{where}: document {document!r} is not in corpus.jsonl")
        if float(grade) > 0:
            grades[query][document] = float(grade)
    return dict(grades)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
