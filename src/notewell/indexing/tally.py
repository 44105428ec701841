"""What a run has done so far: steps add to it, a frozen report comes out at the end."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from notewell.types import IndexReport, Problem


@dataclass(slots=True)
class Tally:
    """Counts what a run does."""

    added: int = 0
    changed: int = 0
    renamed: int = 0
    removed: int = 0
    unchanged: int = 0
    embedded: int = 0
    reused: int = 0
    unknown: int = 0
    jobs: int = 0
    bytes_read: int = 0
    complete: bool = True
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def report(self, *, pending: int, seconds: float) -> IndexReport:
        """Return the counts as a report."""
        counts = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _LISTS}
        return IndexReport(
            **counts, pending=pending, seconds=seconds, problems=tuple(self.problems), notes=tuple(self.notes)
        )


_LISTS = {"problems", "notes"}
