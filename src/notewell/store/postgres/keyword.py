"""Finds the chunks that hold a term, a phrase or a beginning in the postings of a snapshot."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from notewell.store import postings
from notewell.store.bm25 import storable, tokens_of_term
from notewell.store.postings import BEHIND_ALL, NOTHING, Block, Postings

if TYPE_CHECKING:
    from notewell.store.postgres.connection import Database
    from notewell.store.postgres.posting_blocks import Unmerged
    from notewell.store.postings import Ids
    from notewell.types import Term

_NO_IDS = np.empty(0, np.int64)


class KeywordIndex:
    """The terms of one snapshot; what it has read of a term it keeps until the snapshot ends."""

    def __init__(self, db: Database, key: tuple[int, int], unmerged: Unmerged) -> None:
        self._db = db
        self._key = key
        self._recent, self._dead = unmerged
        # By chunk id, and one more for all that are newer: looking each up in a list takes longer than scoring it.
        self._is_dead = np.zeros(int(self._dead[-1]) + 2 if len(self._dead) else 1, np.bool_)
        self._is_dead[self._dead] = True
        self._plain: dict[str, Postings] = {}
        self._placed: dict[str, Postings] = {}  # with positions
        self._counts: dict[str, int] = {}  # of very common terms, whose blocks were not read: with the dead
        self._beginning: dict[tuple[str, bool], Postings] = {}

    def postings_of(self, term: Term) -> Postings:
        """Return the chunks that hold a term, a phrase or a beginning."""
        tokens = tokens_of_term(term)
        if not tokens:
            return NOTHING
        several = len(tokens) > 1
        plain = tokens[:-1] if term.prefix else tokens
        if plain:
            self.read(plain, positions=several)
        known = self._placed if several else self._plain
        found = [known[token] for token in plain]
        if term.prefix:
            found.append(self._any_beginning(tokens[-1], positions=several))
        return postings.phrase(found)

    def counts(self, terms: Sequence[Term], *, at_most: int, hidden: Ids = _NO_IDS) -> list[int]:
        """Return in how many chunks each term occurs; counting stops at `at_most`."""
        split = [tokens_of_term(term) for term in terms]
        single = {tokens[0] for tokens, term in zip(split, terms, strict=True) if len(tokens) == 1 and not term.prefix}
        self.read(single, at_most=at_most + len(self._dead) + len(hidden))
        found = []
        for term, tokens in zip(terms, split, strict=True):
            if len(tokens) == 1 and not term.prefix and tokens[0] not in self._plain:
                found.append(at_most)  # its blocks were not read, so it is in more
            else:
                found.append(min(at_most, len(self.postings_of(term).alive(hidden).ids)) if tokens else 0)
        return found

    def read(self, terms: Collection[str], *, positions: bool = False, at_most: int | None = None) -> None:
        """Read the blocks of terms that are not known yet; of terms in more than `at_most` chunks their number only."""
        known = self._placed if positions else self._plain
        missing = [term for term in dict.fromkeys(terms) if term not in known]
        if at_most is not None:
            missing = [term for term in missing if self._counts.get(term, 0) <= at_most]
        if not missing:
            return
        places = "positions" if positions else "''::bytea"
        if at_most is None:
            sql, values = f"SELECT term, block, count, data, {places}", (*self._key, missing)
            source = "notewell.postings WHERE tenant = %s AND generation = %s AND term = ANY(%s)"
        else:
            sql = f"SELECT term, block, total, CASE WHEN total <= {int(at_most)} THEN data END, {places}"
            values = (*self._key, missing)
            source = (
                "(SELECT term, block, data, positions, sum(count) OVER (PARTITION BY term)::int AS total"
                " FROM notewell.postings WHERE tenant = %s AND generation = %s AND term = ANY(%s)) t"
            )
        blocks: dict[str, list[Block]] = {term: [] for term in missing}
        for term, block, count, data, packed in self._db.rows(f"{sql} FROM {source} ORDER BY term, block", values):
            if data is None:
                self._counts[term] = count
                blocks.pop(term, None)
            else:
                blocks[term].append(Block(term, block, count, data, packed))
        for term, of_term in blocks.items():
            found = self._alive([*of_term, *self._recent_blocks(term, positions)])
            known[term] = found
            if positions:
                self._plain.setdefault(term, found)

    def _alive(self, blocks: Sequence[Block]) -> Postings:
        found = postings.unpack(blocks)
        return found.among(~self._is_dead[np.minimum(found.ids, len(self._is_dead) - 1)]) if len(self._dead) else found

    def _recent_blocks(self, term: str, positions: bool) -> list[Block]:
        found = (bundle.block(term, positions=positions) for bundle in self._recent)
        return [block for block in found if block is not None]

    def _any_beginning(self, prefix: str, *, positions: bool) -> Postings:
        known = self._beginning.get((prefix, positions))
        if known is not None:
            return known
        places = "positions" if positions else "''::bytea"
        found = self._db.rows(
            f"SELECT term, block, count, data, {places} FROM notewell.postings"
            " WHERE tenant = %s AND generation = %s AND term >= %s AND term < %s ORDER BY term, block",
            (*self._key, prefix, prefix + BEHIND_ALL),
        )
        blocks: dict[str, list[Block]] = {}
        for row in found:
            blocks.setdefault(row[0], []).append(Block(*row))
        for term in {term for bundle in self._recent for term in bundle.beginning(prefix)}:
            blocks.setdefault(term, []).extend(self._recent_blocks(term, positions))
        merged = postings.any_of([self._alive(of_term) for of_term in blocks.values()])
        self._beginning[prefix, positions] = merged
        return merged

    def terms_beginning(self, prefix: str, *, lengths: range, limit: int) -> list[str]:
        """Return indexed terms that begin with `prefix`, in order, whose length is in `lengths`."""
        if not prefix or not lengths or limit < 1:
            return []
        prefix = storable(prefix)
        found = self._db.rows(
            "SELECT DISTINCT term FROM notewell.postings WHERE tenant = %s AND generation = %s AND term >= %s"
            " AND term < %s AND char_length(term) BETWEEN %s AND %s ORDER BY term LIMIT %s",
            (*self._key, prefix, prefix + BEHIND_ALL, lengths.start, lengths.stop - 1, limit),
        )
        terms = {term for (term,) in found}
        for bundle in self._recent:
            terms.update(term for term in bundle.beginning(prefix) if len(term) in lengths)
        return sorted(terms)[:limit]
