"""Packs postings into blocks of bytes, and finds and scores chunks in them with NumPy.

A block has the postings of one term in the chunks of one batch: for each chunk its id, the frequency of the term and
the length of the chunk, and separately the positions. Blocks of neighbouring batches can be concatenated. A bundle has
all blocks of a few chunks as one value.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from notewell.store.bm25 import CONTEXT_WEIGHT, rarity, scores, tokens_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Numbers = NDArray[np.float64]

FULL_BLOCK = 8192  # chunks: 64 KB for a term in each of them; few searches read more than 13 of these
BEHIND_ALL = "\U0010ffff"  # the last character in the order of terms
POSTING = np.dtype([("id", "<u4"), ("frequency", "<u2"), ("length", "<u2")])
_LARGEST = 0xFFFF
# A position has 14 bits; the others mark positions in the headings, and the last one of a chunk.
_IN_CONTEXT, _LAST, _POSITION = 0x8000, 0x4000, 0x3FFF
_CHUNK_SHIFT = 16  # chunk id and position in one number
_TEXT_SHARE = 2  # frequencies are stored as 2 x text + context: a word of the context counts half
assert CONTEXT_WEIGHT * _TEXT_SHARE == 1


class Block(NamedTuple):
    """The postings of one term in one block, as stored."""

    term: str
    block: int  # the first chunk of the batch
    held_by: int  # chunks
    data: bytes
    positions: bytes


class ChunkTerms(NamedTuple):
    """The terms of one chunk, in order."""

    chunk_id: int
    text: list[str]
    context: list[str]

    @property
    def length(self) -> int:
        return len(self.text) + len(self.context)


def chunk_terms(chunk_id: int, text_terms: str, context_terms: str) -> ChunkTerms:
    """Return the terms of a chunk as they are indexed."""
    return ChunkTerms(chunk_id, tokens_of(text_terms), tokens_of(context_terms))


# --- written -------------------------------------------------------------------------------------


def pack(chunks: Sequence[ChunkTerms]) -> list[Block]:
    """Return one block per term, in order of terms, of chunks in order of ids."""
    vocabulary: dict[str, int] = {}
    numbers: list[int] = []
    places: list[NDArray[np.int64]] = []
    for chunk in chunks:
        numbers += [vocabulary.setdefault(token, len(vocabulary)) for token in chunk.text]
        numbers += [vocabulary.setdefault(token, len(vocabulary)) for token in chunk.context]
        places += [np.arange(len(chunk.text)), np.arange(len(chunk.context))]
    if not numbers:
        return []
    lengths = np.array([chunk.length for chunk in chunks], np.int64)
    owner = np.repeat(np.arange(len(chunks)), lengths)
    sizes = np.array([len(part) for part in places], np.int64)
    in_context = np.repeat(np.tile([False, True], len(chunks)), sizes)
    position = np.minimum(np.concatenate(places), _POSITION) | np.where(in_context, _IN_CONTEXT, 0)

    names, term = _in_order(vocabulary, numbers)
    order = np.lexsort((owner, term))  # stable: positions stay in order
    term, owner, position, in_context = term[order], owner[order], position[order], in_context[order]

    first = np.flatnonzero(np.r_[True, (term[1:] != term[:-1]) | (owner[1:] != owner[:-1])])
    cuts = np.r_[first, len(term)]
    position[cuts[1:] - 1] |= _LAST
    frequency = np.add.reduceat(np.where(in_context, 1, _TEXT_SHARE), first)
    rows = np.empty(len(first), POSTING)
    rows["id"] = np.array([chunk.chunk_id for chunk in chunks], np.int64)[owner[first]]
    rows["frequency"] = np.minimum(frequency, _LARGEST)
    rows["length"] = np.minimum(lengths[owner[first]], _LARGEST)
    return _Sorted(term[first], rows, position, cuts).blocks(chunks[0].chunk_id, names)


def _in_order(vocabulary: Mapping[str, int], numbers: Sequence[int] | Ids) -> tuple[list[str], Ids]:
    """Return the sorted terms, and the position of each numbered term among them."""
    names = sorted(vocabulary)
    rank = np.empty(len(names), np.int64)
    rank[[vocabulary[name] for name in names]] = np.arange(len(names))
    return names, rank[np.asarray(numbers, np.int64)]


class _Sorted(NamedTuple):
    """Postings sorted by term, and the starts of their positions."""

    term: Ids  # by its place among the names
    rows: NDArray[np.void]
    positions: NDArray[Any]
    cuts: Ids

    def blocks(self, first: int, names: Sequence[str]) -> list[Block]:
        """Return one block per term."""
        term, cuts = self.term, self.cuts
        starts = np.flatnonzero(np.r_[True, term[1:] != term[:-1]])
        ends = np.r_[starts[1:], len(term)]
        data, packed = self.rows.tobytes(), self.positions.astype("<u2").tobytes()
        return [
            Block(names[term[start]], first, end - start, data[start * 8 : end * 8],
                  packed[cuts[start] * 2 : cuts[end] * 2])
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]  # fmt: skip


def bundle(blocks: Sequence[Block]) -> bytes:
    """Return the blocks of a batch, which are sorted by term, as one value."""
    terms = "\n".join([block.term for block in blocks]).encode()
    sizes = np.array([(block.held_by, len(block.positions)) for block in blocks], "<u4")
    head = np.array([len(blocks), len(terms)], "<u4")
    data, positions = ([block.data for block in blocks], [block.positions for block in blocks])
    return b"".join([head.tobytes(), sizes.tobytes(), terms, *data, *positions])


class Bundle:
    """A bundle, unpacked for lookups."""

    def __init__(self, first: int, packed: bytes) -> None:
        self.first = first
        self._packed = packed
        count, length = np.frombuffer(packed, "<u4", 2).tolist()
        self.sizes = np.frombuffer(packed, "<u4", 2 * count, 8).reshape(count, 2).astype(np.int64)
        start = 8 + self.sizes.size * 4
        self.terms = packed[start : start + length].decode().split("\n")
        self._numbers = dict(zip(self.terms, range(count), strict=True))
        data = np.cumsum([start + length, *(self.sizes[:, 0] * POSTING.itemsize)])
        self._data = data.tolist()
        self._positions = np.cumsum([data[-1], *self.sizes[:, 1]]).tolist()

    def block(self, term: str, *, positions: bool = True) -> Block | None:
        """Return the block of a term, with or without positions; None if no chunk has it."""
        number = self._numbers.get(term)
        if number is None:
            return None
        start, end = self._data[number : number + 2]
        places = self._packed[slice(*self._positions[number : number + 2])] if positions else b""
        return Block(term, self.first, (end - start) // POSTING.itemsize, self._packed[start:end], places)

    def beginning(self, prefix: str) -> list[str]:
        """Return the terms that begin with `prefix`, in order."""
        return self.terms[bisect_left(self.terms, prefix) : bisect_left(self.terms, prefix + BEHIND_ALL)]

    def blocks(self) -> list[Block]:
        """Return all blocks, in order of terms."""
        return [block for term in self.terms if (block := self.block(term)) is not None]

    @property
    def rows(self) -> NDArray[np.void]:
        """The postings of all blocks, concatenated."""
        return np.frombuffer(self._packed, POSTING, int(self.sizes[:, 0].sum()), self._data[0])

    @property
    def positions(self) -> NDArray[np.uint16]:
        """The positions of all blocks, concatenated."""
        return np.frombuffer(self._packed, "<u2", offset=self._positions[0])


def joined(bundles: Sequence[Bundle], dead: Ids) -> list[Block]:
    """Return one block per term, in order of terms, of consecutive bundles without dead chunks."""
    vocabulary: dict[str, int] = {}
    numbers = [
        np.repeat([vocabulary.setdefault(term, len(vocabulary)) for term in each.terms], each.sizes[:, 0])
        for each in bundles
    ]
    names, term = _in_order(vocabulary, np.concatenate(numbers))
    rows = np.concatenate([each.rows for each in bundles])
    positions = np.concatenate([each.positions for each in bundles])
    ends = np.flatnonzero(positions & _LAST) + 1
    starts = np.r_[0, ends[:-1]]
    kept = np.flatnonzero(~np.isin(rows["id"], dead))
    order = kept[np.argsort(term[kept], kind="stable")]
    if not len(order):
        return []
    counts = (ends - starts)[order]
    cuts = np.r_[0, np.cumsum(counts)]
    places = np.repeat(starts[order] - cuts[:-1], counts) + np.arange(cuts[-1])
    return _Sorted(term[order], rows[order], positions[places], cuts).blocks(bundles[0].first, names)


# --- read ----------------------------------------------------------------------------------------


@dataclass(frozen=True)  # no slots: occurrences are computed once, on demand
class Postings:
    """The chunks with a term, ascending, its frequencies, and the lengths of the chunks."""

    ids: Ids
    frequencies: Numbers  # a word of the context counts half
    lengths: Numbers
    raw_positions: NDArray[np.uint16] | None = None

    def alive(self, dead: Ids) -> Postings:
        """Return the postings without dead chunks."""
        return self.among(~np.isin(self.ids, dead)) if len(dead) and len(self.ids) else self

    def among(self, kept: NDArray[np.bool_]) -> Postings:
        """Return the postings of the kept chunks."""
        if kept.all():
            return self
        positions = self.raw_positions
        if positions is not None:
            positions = positions[np.repeat(kept, self.position_counts)]
        return Postings(self.ids[kept], self.frequencies[kept], self.lengths[kept], positions)

    @cached_property
    def position_counts(self) -> NDArray[np.int64]:
        assert self.raw_positions is not None
        last = np.flatnonzero(self.raw_positions & _LAST)
        return np.diff(last, prepend=-1)

    @cached_property
    def occurrences(self) -> Ids:
        """Every occurrence as one number; those of adjacent words differ by one."""
        assert self.raw_positions is not None
        places = (self.raw_positions & ~np.uint16(_LAST)).astype(np.int64)
        return np.asarray(np.repeat(self.ids << _CHUNK_SHIFT, self.position_counts) | places)


NOTHING = Postings(np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0, "<u2"))


def unpack(blocks: Sequence[Block]) -> Postings:
    """Return the postings of one term from its blocks, in order."""
    if not blocks:
        return NOTHING
    rows = np.frombuffer(b"".join([block.data for block in blocks]), POSTING)
    positions = np.frombuffer(b"".join([block.positions for block in blocks]), "<u2")
    return Postings(
        rows["id"].astype(np.int64),
        rows["frequency"] / _TEXT_SHARE,
        rows["length"].astype(np.float64),
        positions if len(positions) else None,
    )


def any_of(several: Sequence[Postings]) -> Postings:
    """Return the union of several terms, as one term."""
    several = [postings for postings in several if len(postings.ids)]
    if len(several) < 2:
        return several[0] if several else NOTHING
    ids, first, inverse = np.unique(
        np.concatenate([each.ids for each in several]), return_index=True, return_inverse=True
    )
    lengths = np.concatenate([each.lengths for each in several])[first]
    frequencies = _summed(inverse, np.concatenate([each.frequencies for each in several]))
    merged = Postings(ids, frequencies, lengths)
    if all(each.raw_positions is not None for each in several):
        # Set directly, because merged positions have no stored form.
        merged.__dict__["occurrences"] = np.unique(np.concatenate([each.occurrences for each in several]))
    return merged


def phrase(tokens: Sequence[Postings]) -> Postings:
    """Return the chunks with the tokens as a phrase, in the text or in the context."""
    if len(tokens) == 1:
        return tokens[0]
    if any(not len(each.ids) for each in tokens):
        return NOTHING
    starts = tokens[0].occurrences
    for distance, token in enumerate(tokens[1:], 1):
        starts = np.intersect1d(starts, token.occurrences - distance, assume_unique=True)
        if not len(starts):
            return NOTHING
    ids, inverse = np.unique(starts >> _CHUNK_SHIFT, return_inverse=True)
    weights = np.where(starts & _IN_CONTEXT, CONTEXT_WEIGHT, 1.0)
    found = np.searchsorted(tokens[0].ids, ids)
    return Postings(ids, _summed(inverse, weights), tokens[0].lengths[found])


def _summed(places: Ids, values: Numbers) -> Numbers:
    """Return the sum of the values by place."""
    return np.asarray(np.bincount(places, values), np.float64)


class Collection(NamedTuple):
    """The chunks that BM25 is computed over."""

    chunks: int
    mean_length: float
    hidden: Ids = np.empty(0, np.int64)  # ascending; of documents that a group may not see


def ranked(several: Iterable[Postings], collection: Collection, among: Ids | None = None) -> tuple[Ids, Numbers]:
    """Return the ids and BM25 of all chunks with any of the terms, or of those in `among`."""
    ids: list[Ids] = []
    found: list[Numbers] = []
    for postings in several:
        seen = postings.alive(collection.hidden)
        weight = rarity(collection.chunks, len(seen.ids))
        if among is not None and len(seen.ids):
            kept = np.isin(seen.ids, among)
            seen = Postings(seen.ids[kept], seen.frequencies[kept], seen.lengths[kept])
        if len(seen.ids):
            ids.append(seen.ids)
            found.append(scores(weight, seen.frequencies, seen.lengths, collection.mean_length))
    if not ids:
        return np.empty(0, np.int64), np.empty(0)
    if len(ids) == 1:
        return ids[0], found[0]
    every, inverse = np.unique(np.concatenate(ids), return_inverse=True)
    return every, _summed(inverse, np.concatenate(found))
