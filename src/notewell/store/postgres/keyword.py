"""Reads and writes the posting blocks of a generation, and finds and scores chunks by their terms."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from notewell.store import postings
from notewell.store.bm25 import storable, tokens_of_term
from notewell.store.postings import BLOCK, NOTHING, Block, ChunkTerms, Postings

if TYPE_CHECKING:
    from notewell.store.postgres.connection import Database
    from notewell.store.postgres.totals import Totals
    from notewell.store.postings import Ids
    from notewell.types import Term

_DEAD_SHARE = 10  # rewrite the blocks once a tenth of the chunks in them is dead: each costs some WAL
_REWRITTEN_AT_ONCE = 2_000  # blocks; some 20 MB of a large index
_BEHIND_ALL = "\U0010ffff"  # terms compare by their bytes in UTF-8, and no character sorts behind this
_NO_IDS = np.empty(0, np.int64)


class DeadChunks:
    """The removed chunks that posting blocks still hold; all snapshots of a process share what it has read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: tuple[tuple[int, int], Ids] | None = None

    def ids(self, db: Database, totals: Totals) -> Ids:
        """Return their ids, ascending, as the snapshot of `db` sees them."""
        if not totals.dead:
            return _NO_IDS
        version = (totals.generation, totals.dead_generation)
        with self._lock:
            if self._known is not None and self._known[0] == version:
                return self._known[1]
        found = db.rows(
            "SELECT ids FROM notewell.dead_chunks WHERE tenant = %s AND generation = %s ORDER BY block", totals.key
        )
        ids = np.unique(np.frombuffer(b"".join(blob for (blob,) in found), "<i4")).astype(np.int64)
        with self._lock:
            self._known = (version, ids)
        return ids


class PostingBlocks:
    """Writes posting blocks, in the caller's transaction."""

    def __init__(self, db: Database, key: tuple[int, int]) -> None:
        self._db = db
        self._key = key

    def append(self, chunks: Sequence[ChunkTerms]) -> None:
        """Add the terms of new chunks, whose ids are above all others."""
        blocks = postings.pack(chunks)
        if blocks:
            self._put(blocks, " || excluded.")

    def _put(self, blocks: Iterable[Block], joined_by: str) -> None:
        terms, numbers, counts, data, positions = map(list, zip(*blocks, strict=True))
        self._db.rows(
            "INSERT INTO notewell.postings AS p (tenant, generation, term, block, count, data, positions)"
            " SELECT %s, %s, * FROM unnest(%s::text[], %s::int[], %s::int[], %s::bytea[], %s::bytea[])"
            " ON CONFLICT (tenant, generation, term, block) DO UPDATE SET count = p.count + excluded.count,"
            f" data = p.data{joined_by}data, positions = p.positions{joined_by}positions",
            (*self._key, terms, numbers, counts, data, positions),
        )

    def bury(self, chunk_ids: Sequence[int]) -> None:
        """Record chunks as removed; their postings stay until the blocks are rewritten."""
        ids = np.sort(np.array(chunk_ids, np.int64))
        numbers, starts = np.unique(ids // BLOCK, return_index=True)
        parts = [part.astype("<i4").tobytes() for part in np.split(ids, starts[1:])]
        self._db.rows(
            "INSERT INTO notewell.dead_chunks AS d (tenant, generation, block, ids)"
            " SELECT %s, %s, * FROM unnest(%s::int[], %s::bytea[])"
            " ON CONFLICT (tenant, generation, block) DO UPDATE SET ids = d.ids || excluded.ids",
            (*self._key, numbers.tolist(), parts),
        )

    def tidy(self, totals: Totals, dead: DeadChunks) -> None:
        """Rewrite blocks of which a good part is dead; cheap when there are none."""
        if totals.dead * _DEAD_SHARE > totals.chunks + totals.dead:
            self.rewrite(totals, dead)

    def rewrite(self, totals: Totals, dead: DeadChunks) -> None:
        """Leave nothing of removed chunks in any block."""
        ids = dead.ids(self._db, totals)
        if not len(ids):
            return
        touched = np.unique(ids // BLOCK).tolist()
        after = ("", -1)
        while found := self._db.rows(
            "SELECT term, block, count, data, positions FROM notewell.postings WHERE tenant = %s AND generation = %s"
            " AND (term, block) > (%s, %s) AND block = ANY(%s) ORDER BY term, block LIMIT %s",
            (*self._key, *after, touched, _REWRITTEN_AT_ONCE),
        ):
            after = found[-1][:2]
            self._replace([Block(*row) for row in found], ids)
        self._db.rows("DELETE FROM notewell.dead_chunks WHERE tenant = %s AND generation = %s", self._key)
        totals.dead = 0
        totals.dead_generation += 1

    def _replace(self, blocks: Sequence[Block], dead: Ids) -> None:
        gone, changed = [], []
        for block in blocks:
            kept = postings.without(block, dead)
            if kept is None:
                gone.append(block)
            elif kept is not block:
                changed.append(kept)
        for several in (gone, changed):
            if several:
                self._db.rows(
                    "DELETE FROM notewell.postings p USING (SELECT %s::int AS tenant, %s::int AS generation) k,"
                    " unnest(%s::text[], %s::int[]) AS t (term, block) WHERE p.tenant = k.tenant"
                    " AND p.generation = k.generation AND p.term = t.term AND p.block = t.block",
                    (*self._key, [block.term for block in several], [block.block for block in several]),
                )
        if changed:
            self._put(changed, " || excluded.")


class KeywordIndex:
    """The terms of one snapshot; what it has read of a term it keeps until the snapshot ends."""

    def __init__(self, db: Database, key: tuple[int, int], dead: Ids) -> None:
        self._db = db
        self._key = key
        self._dead = dead
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
            found = postings.unpack(of_term).alive(self._dead)
            known[term] = found
            if positions:
                self._plain.setdefault(term, found)

    def _any_beginning(self, prefix: str, *, positions: bool) -> Postings:
        known = self._beginning.get((prefix, positions))
        if known is not None:
            return known
        places = "positions" if positions else "''::bytea"
        found = self._db.rows(
            f"SELECT term, block, count, data, {places} FROM notewell.postings"
            " WHERE tenant = %s AND generation = %s AND term >= %s AND term < %s ORDER BY term, block",
            (*self._key, prefix, prefix + _BEHIND_ALL),
        )
        blocks: dict[str, list[Block]] = {}
        for row in found:
            blocks.setdefault(row[0], []).append(Block(*row))
        merged = postings.any_of([postings.unpack(of_term).alive(self._dead) for of_term in blocks.values()])
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
            (*self._key, prefix, prefix + _BEHIND_ALL, lengths.start, lengths.stop - 1, limit),
        )
        return [term for (term,) in found]
