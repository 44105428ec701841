"""Writes the documents of a test set as notes into real workspaces, one for each scope."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from notewell.types import hash_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from notewell.evaluation.test_sets import EvalDocument, EvalSet

_UNSAFE = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class ScopeWorkspace:
    """The workspace of one scope, and which document each of its notes is."""

    folder: Path
    documents: Mapping[str, str]  # path of the note -> id of the document


def write_workspaces(eval_set: EvalSet, below: Path) -> dict[str, ScopeWorkspace]:
    """Write every document as a note, dated where its date is in ISO form, and return the workspaces by scope."""
    return {
        scope: _write(
            below / eval_set.name / (safe_name(scope) or "all"), [d for d in eval_set.documents if d.scope == scope]
        )
        for scope in eval_set.scopes
    }


def _write(folder: Path, documents: Sequence[EvalDocument]) -> ScopeWorkspace:
    notes = folder / "memory"
    notes.mkdir(parents=True, exist_ok=True)
    paths: dict[str, str] = {}
    for document in documents:
        name = f"{safe_name(document.id)}.md"
        write_if_changed(notes / name, _note(document))
        paths[f"memory/{name}"] = document.id
    return ScopeWorkspace(folder, paths)


def _note(document: EvalDocument) -> str:
    front_matter = f"---\ndate: {document.date}\n---\n" if is_iso_date(document.date) else ""
    title = f"# {document.title}\n\n" if document.title else ""
    return f"{front_matter}{title}{document.text}\n"


def is_iso_date(text: str) -> bool:
    """Say whether a text is a day as YYYY-MM-DD and nothing else."""
    try:
        return len(text) == 10 and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def write_if_changed(file: Path, text: str) -> None:
    """Write a file unless it says so already: one that is written again is indexed again."""
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8", newline="\n")


def safe_name(identifier: str) -> str:
    """Return a file name that is readable, safe everywhere and unlike any other identifier's."""
    if not identifier:
        return ""
    return f"{_UNSAFE.sub('-', identifier.lower())[:40].strip('-')}-{hash_text(identifier)[:8]}"
