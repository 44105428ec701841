"""Writes the posting blocks of a generation, and searches them and the bundles of recent chunks."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from notewell.store import postings
from notewell.store.bm25 import storable, tokens_of_term
from notewell.store.postgres.connection import ByteArrays, Texts
from notewell.store.postings import BEHIND_ALL, FULL_BLOCK, NOTHING, Block, Bundle, ChunkTerms, Postings

if TYPE_CHECKING:
    from notewell.store.postgres.connection import Database
    from notewell.store.postgres.totals import Totals
    from notewell.store.postings import Ids
    from notewell.types import Term

RECENT_CHUNKS = 256  # a search reads some 2 KB of each new one
_DEAD_SHARE = 4  # rewrite blocks once a quarter of the chunks is dead; at a tenth, it cost 19 ms per note
_DEAD_IDS = 8192  # ids in a row of dead chunks
_SMALL_BATCHES = 8  # that are not merged: each is one more row per term
_SIZE_RATIO = 4  # merge a batch with newer ones that have a quarter of its size together
_REWRITTEN_AT_ONCE = 5_000  # blocks; of a large index some 20 MB
_NO_IDS = np.empty(0, np.int64)


class Unmerged(NamedTuple):
    """What is not in the posting blocks yet, and what is no longer valid in them."""

    recent: tuple[Bundle, ...] = ()  # of chunks newer than those in blocks, in order
    dead: Ids = _NO_IDS  # removed chunks that are in blocks and bundles, ascending


class UnmergedCache:
    """Caches the latest `Unmerged` of a generation for all snapshots of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = (-1, -1)
        self._known = Unmerged()
        self._bundles: dict[int, Bundle] = {}  # by the version that wrote them

    def of(self, db: Database, totals: Totals) -> Unmerged:
        """Return what is unmerged in the snapshot of `db`."""
        version = (totals.generation, totals.postings_generation)
        with self._lock:
            if self._version == version:
                return self._known
            bundles = dict(self._bundles) if self._version[0] == totals.generation else {}
        found = db.rows(
            "SELECT first, version, CASE WHEN version <> ALL(%s::bigint[]) THEN packed END"
            " FROM notewell.posting_batches"
            " WHERE tenant = %s AND generation = %s AND packed IS NOT NULL ORDER BY first",
            (list(bundles), *totals.key),
        )
        bundles = {
            written: bundles[written] if packed is None else Bundle(first, packed) for first, written, packed in found
        }
        known = Unmerged(tuple(bundles.values()), _dead(db, totals))
        with self._lock:
            self._version, self._known, self._bundles = version, known, bundles
        return known


def _dead(db: Database, totals: Totals) -> Ids:
    if not totals.dead:
        return _NO_IDS
    found = db.rows(
        "SELECT ids FROM notewell.dead_chunks WHERE tenant = %s AND generation = %s ORDER BY block", totals.key
    )
    return np.unique(np.frombuffer(b"".join(blob for (blob,) in found), "<i4")).astype(np.int64)


class _Batch(NamedTuple):
    """Chunks that were written together; all blocks of a batch begin with the same chunk."""

    first: int
    last: int
    chunks: int


class PostingBlocks:
    """Writes posting blocks in the caller's transaction.

    A transaction with a few new chunks writes one bundle instead of a row per term. Once there are a few hundred recent
    chunks, they become a batch of blocks, and batches of similar size are merged: a term has few rows, and a chunk is
    rewritten a few times only.
    """

    def __init__(self, db: Database, totals: Totals) -> None:
        self._db = db
        self._totals = totals
        self._key = totals.key

    def append(self, chunks: Sequence[ChunkTerms]) -> None:
        """Add the terms of new chunks, which have the highest ids."""
        blocks = postings.pack(chunks)
        if not blocks:
            return
        batch = _Batch(chunks[0].chunk_id, chunks[-1].chunk_id, len(chunks))
        if batch.chunks < RECENT_CHUNKS:
            self._totals.change_postings()
            if self._add_batch(batch, postings.bundle(blocks)) >= RECENT_CHUNKS:
                self._fold()
        else:
            self._fold()
            self._insert(blocks)
            self._add_batch(batch)

    def _fold(self) -> None:
        """Replace the bundles of recent chunks by blocks, without removed chunks."""
        totals = self._totals
        found = self._db.rows(
            "DELETE FROM notewell.posting_batches WHERE tenant = %s AND generation = %s AND packed IS NOT NULL"
            " RETURNING first, last, chunks, packed",
            self._key,
        )
        if not found:
            return
        found.sort()
        first, last = found[0][0], found[-1][1]
        dead = _dead(self._db, totals)
        gone = dead[dead >= first]
        blocks = postings.joined([Bundle(first, packed) for first, _, _, packed in found], gone)
        if blocks:
            self._insert(blocks)
            self._add_batch(_Batch(first, last, sum(chunks for _, _, chunks, _ in found) - len(gone)))
        if len(gone):
            self._db.rows(
                "DELETE FROM notewell.dead_chunks WHERE tenant = %s AND generation = %s AND block >= %s",
                (*self._key, first // _DEAD_IDS),
            )
            self.bury(dead[(dead < first) & (dead // _DEAD_IDS >= first // _DEAD_IDS)])
            totals.dead -= len(gone)
        totals.change_postings()

    def _insert(self, blocks: Iterable[Block]) -> None:
        terms, first, counts, data, positions = zip(*blocks, strict=True)
        self._db.rows(
            "INSERT INTO notewell.postings (tenant, generation, block, term, count, data, positions)"
            " SELECT %s, %s, %s, * FROM unnest(%s, %s::int[], %s, %s)",
            (*self._key, first[0], Texts(terms), list(counts), ByteArrays(data), ByteArrays(positions)),
        )

    def _add_batch(self, batch: _Batch, packed: bytes | None = None) -> int:
        """Record a batch; return the number of chunks in all bundles."""
        others: int = self._db.value(
            "INSERT INTO notewell.posting_batches (tenant, generation, first, last, chunks, version, packed)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s) RETURNING (SELECT coalesce(sum(chunks), 0)::int"
            " FROM notewell.posting_batches WHERE tenant = %s AND generation = %s AND packed IS NOT NULL)",
            (*self._key, *batch, self._totals.postings_generation, packed, *self._key),
        )
        return others + batch.chunks

    def _batches(self) -> list[_Batch]:
        """Return the batches of blocks, in order."""
        found = self._db.rows(
            "SELECT first, last, chunks FROM notewell.posting_batches"
            " WHERE tenant = %s AND generation = %s AND packed IS NULL ORDER BY first",
            self._key,
        )
        return [_Batch(*row) for row in found]

    def bury(self, chunk_ids: Sequence[int] | Ids) -> None:
        """Mark chunks as removed; their postings stay until blocks are rewritten."""
        if not len(chunk_ids):
            return
        ids = np.sort(np.array(chunk_ids, np.int64))
        numbers, starts = np.unique(ids // _DEAD_IDS, return_index=True)
        parts = [part.astype("<i4").tobytes() for part in np.split(ids, starts[1:])]
        self._db.rows(
            "INSERT INTO notewell.dead_chunks AS d (tenant, generation, block, ids)"
            " SELECT %s, %s, * FROM unnest(%s::int[], %s::bytea[])"
            " ON CONFLICT (tenant, generation, block) DO UPDATE SET ids = d.ids || excluded.ids",
            (*self._key, numbers.tolist(), parts),
        )

    def tidy(self) -> None:
        """Merge small batches, and rewrite blocks with many dead chunks; cheap when there is little to do."""
        totals = self._totals
        if totals.dead * _DEAD_SHARE > totals.chunks + totals.dead:
            self.rewrite()
        batches = self._batches()
        if len(batches) > _SMALL_BATCHES + 2 * (totals.chunks // FULL_BLOCK):
            for group in _groups(batches):
                if len(group) > 1:
                    self._merge(group)

    def _merge(self, group: Sequence[_Batch]) -> None:
        """Merge neighbouring batches."""
        numbers = [batch.first for batch in group]
        self._db.rows(
            "WITH gone AS (DELETE FROM notewell.postings WHERE tenant = %s AND generation = %s AND block = ANY(%s)"
            " AND block <> %s RETURNING term, block, count, data, positions)"
            " INSERT INTO notewell.postings AS p (tenant, generation, block, term, count, data, positions)"
            " SELECT %s, %s, %s, term, sum(count), string_agg(data, '' ORDER BY block),"
            " string_agg(positions, '' ORDER BY block) FROM gone GROUP BY term"
            " ON CONFLICT (tenant, generation, term, block) DO UPDATE SET count = p.count + excluded.count,"
            " data = p.data || excluded.data, positions = p.positions || excluded.positions",
            (*self._key, numbers, numbers[0], *self._key, numbers[0]),
        )
        self._db.rows(
            "DELETE FROM notewell.posting_batches WHERE tenant = %s AND generation = %s AND first = ANY(%s)",
            (*self._key, numbers),
        )
        self._add_batch(_Batch(numbers[0], group[-1].last, sum(batch.chunks for batch in group)))
        self._totals.change_postings()

    def rewrite(self) -> None:
        """Erase removed chunks from all blocks and bundles."""
        if not self._totals.dead:
            return
        self._fold()
        gone = _dead(self._db, self._totals)
        for batch in self._batches():
            of_batch = gone[(gone >= batch.first) & (gone <= batch.last)]
            if len(of_batch):
                self._rewrite(batch, of_batch)
        self._db.rows("DELETE FROM notewell.dead_chunks WHERE tenant = %s AND generation = %s", self._key)
        self._totals.dead = 0
        self._totals.change_postings()

    def _rewrite(self, batch: _Batch, gone: Ids) -> None:
        """Rewrite the blocks of a batch that contain removed chunks, a few thousand at a time."""
        after = ""
        while found := self._db.rows(
            "SELECT term, block, count, data, positions FROM notewell.postings"
            " WHERE tenant = %s AND generation = %s AND block = %s AND term > %s ORDER BY term LIMIT %s",
            (*self._key, batch.first, after, _REWRITTEN_AT_ONCE),
        ):
            after = found[-1][0]
            blocks = [Block(*row) for row in found]
            bundled = Bundle(batch.first, postings.bundle(blocks))
            kept = {block.term: block for block in postings.joined([bundled], gone)}
            changed = [block.term for block in blocks if kept.get(block.term) != block]
            if changed:
                self._db.rows(
                    "DELETE FROM notewell.postings WHERE tenant = %s AND generation = %s AND block = %s"
                    " AND term = ANY(%s)",
                    (*self._key, batch.first, Texts(changed)),
                )
            if left := [kept[term] for term in changed if term in kept]:
                self._insert(left)
        self._db.rows(
            "UPDATE notewell.posting_batches SET chunks = chunks - %s"
            " WHERE tenant = %s AND generation = %s AND first = %s",
            (len(gone), *self._key, batch.first),
        )


def _groups(batches: Sequence[_Batch]) -> list[list[_Batch]]:
    """Return neighbours to merge: of similar size, and together no larger than a full block."""
    groups: list[list[_Batch]] = []
    for batch in reversed(batches):  # the newest are the smallest
        group = groups[-1] if groups else []
        total = sum(member.chunks for member in group)
        fits = group and total + batch.chunks <= FULL_BLOCK
        if fits and batch.chunks <= _SIZE_RATIO * total:
            group.append(batch)
        else:
            groups.append([batch])
    return [group[::-1] for group in groups]


# --- found ---------------------------------------------------------------------------------------


class KeywordIndex:
    """The terms of one snapshot, cached until it ends."""

    def __init__(self, db: Database, key: tuple[int, int], unmerged: Unmerged) -> None:
        self._db = db
        self._key = key
        self._recent, self._dead = unmerged
        # Indexed by chunk id, with one more for all newer ones: searching a list takes longer than scoring.
        self._is_dead = np.zeros(int(self._dead[-1]) + 2 if len(self._dead) else 1, np.bool_)
        self._is_dead[self._dead] = True
        self._plain: dict[str, Postings] = {}
        self._placed: dict[str, Postings] = {}  # with positions
        self._counts: dict[str, int] = {}  # of common terms whose blocks were not read; dead chunks included
        self._beginning: dict[tuple[str, bool], Postings] = {}

    def postings_of(self, term: Term) -> Postings:
        """Return the chunks with a term, a phrase or a prefix."""
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
        """Return in how many chunks each term occurs, counting up to `at_most`."""
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
        """Read the blocks of new terms; of terms in more than `at_most` chunks only the count."""
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
        """Return indexed terms with this prefix and these lengths, in order."""
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
