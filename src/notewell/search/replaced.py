"""Shows the newest of entries that replace one another first, and says which ones it replaced."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from notewell.types import Citation, EntryPlace, Hit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from notewell.protocols import Snapshot
    from notewell.text.entries import Entry

MOST_STEPS = 100  # from an entry to the newest; a longer chain is a circle that somebody wrote by hand


@dataclass(frozen=True, slots=True)
class Replacements:
    """Looks up entries by id, in the notes as they are now."""

    snapshot: Snapshot
    entries_of: Callable[[str], Sequence[Entry]]  # of the note at a path; none where it cannot be read
    _known: dict[str, dict[str, Entry]] = field(default_factory=dict)  # by path and id

    def ordered(self, hits: Sequence[Hit], *, limit: int, may_add: bool) -> tuple[Hit, ...]:
        """Return the hits with each newest entry before those that it replaced; the date of an entry is its own.

        `may_add` brings in a newest entry that was not found itself.
        """
        if not any(hit.entry for hit in hits):
            return tuple(hits)
        found = {hit.entry: hit for hit in hits if hit.entry}
        shown: dict[tuple[str | None, str], Hit] = {}
        for hit in hits:
            entry = self._at(hit.path, hit.entry) if hit.entry else None
            newest = self._newest(entry) if entry and entry.replaced_by else None
            if newest:
                place, latest = newest
                if latest.id in found or may_add:
                    later = found.get(latest.id) or self._hit(place.citation, latest, hit)
                    shown.setdefault((later.entry, later.citation), self._told(later, latest))
                hit = replace(hit, replaced_by=place)  # noqa: PLW2901
            shown.setdefault((hit.entry, hit.citation), self._told(hit, entry) if entry else hit)
        return tuple(shown.values())[:limit]

    def _told(self, hit: Hit, entry: Entry) -> Hit:
        """Return a hit with the day of its entry, and what that replaced."""
        older = tuple(place for each in entry.replaces if (place := self._place(each)))
        return replace(hit, replaces=older, dated=entry.date.date() if entry.date else hit.dated)

    def _newest(self, entry: Entry) -> tuple[EntryPlace, Entry] | None:
        newest = None
        for _ in range(MOST_STEPS):
            found = self._find(entry.replaced_by) if entry.replaced_by else None
            if found is None:
                return newest
            path, entry = found
            newest = EntryPlace(entry.id, _cited(path, entry)), entry
        return None

    def _place(self, entry_id: str) -> EntryPlace | None:
        found = self._find(entry_id)
        return EntryPlace(entry_id, _cited(*found)) if found else None

    def _find(self, entry_id: str) -> tuple[str, Entry] | None:
        for path in dict.fromkeys(each.path for each in self.snapshot.entries([entry_id])):
            if entry := self._at(path, entry_id):
                return path, entry
        return None

    def _at(self, path: str, entry_id: str | None) -> Entry | None:
        if path not in self._known:
            self._known[path] = {entry.id: entry for entry in self.entries_of(path)}
        return self._known[path].get(entry_id or "")

    def _hit(self, citation: str, entry: Entry, older: Hit) -> Hit:
        """Return a hit for an entry that was found through the one it replaced."""
        return replace(
            older,
            path=Citation.parse(citation).path,
            first_line=entry.first_line,
            last_line=entry.last_line,
            snippet=entry.text,
            citation=citation,
            vector_score=None,
            text_score=None,
            explanation=None,
            entry=entry.id,
            category=entry.category,
            importance=entry.importance,
        )


def _cited(path: str, entry: Entry) -> str:
    return str(Citation(path, entry.first_line, entry.last_line))
