"""A test set in, real workspaces with its documents as notes out; one workspace a scope."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.types import hash_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from recollect.evaluation.test_sets import EvalDocument, EvalSet

_UNSAFE = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class ScopeWorkspace:
    """The workspace of one scope, and which document each of its notes is."""

    folder: Path
    documents: Mapping[str, str]  # path of the note -> id of the document


def write_workspaces(eval_set: EvalSet, below: Path) -> dict[str, ScopeWorkspace]:
    """Write every document as a note, unless it is there already, and return the workspaces by scope."""
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
        text = f"# {document.title}\n\n{document.text}\n" if document.title else f"{document.text}\n"
        file = notes / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8", newline="\n")
        paths[f"memory/{name}"] = document.id
    return ScopeWorkspace(folder, paths)


def safe_name(identifier: str) -> str:
    """Return a file name that is readable, safe everywhere and unlike any other identifier's."""
    if not identifier:
        return ""
    return f"{_UNSAFE.sub('-', identifier.lower())[:40].strip('-')}-{hash_text(identifier)[:8]}"
