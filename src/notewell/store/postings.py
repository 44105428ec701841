"""Packs which chunks hold a term into blocks of bytes, and finds and scores chunks in them with NumPy.

A block holds the postings of one term in the chunks that were written together: for each chunk its id, how often it
holds the term and how long it is, and apart from that at which positions. Blocks of neighbouring chunks, joined end to
end, are one block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from notewell.store.bm25 import CONTEXT_WEIGHT, rarity, scores, tokens_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Numbers = NDArray[np.float64]

FULL_BLOCK = 8192  # chunks: of a term in each of them 64 KB, and few searches read more than 13 of these
POSTING = np.dtype([("id", "<u4"), ("frequency", "<u2"), ("length", "<u2")])
_LARGEST = 0xFFFF
# A position takes 14 bits; the others say that it is in the heading trail, and that it is the last of its chunk.
_IN_CONTEXT, _LAST, _POSITION = 0x8000, 0x4000, 0x3FFF
_CHUNK_SHIFT = 16  # of a chunk id above the position, in one number that is compared
_TEXT_SHARE = 2  # frequencies are stored as 2 x text + context, so that a word of the context counts half
assert CONTEXT_WEIGHT * _TEXT_SHARE == 1


class Block(NamedTuple):
    """The postings of one term in one block, as stored."""

    term: str
    block: int  # the first chunk of those that were written together
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
    """Return one block a term, in order of terms; the ids of the chunks must be ascending."""
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

    names = sorted(vocabulary)
    rank = np.empty(len(names), np.int64)
    rank[[vocabulary[name] for name in names]] = np.arange(len(names))
    term = rank[np.array(numbers, np.int64)]
    order = np.lexsort((owner, term))  # stable: positions stay in order
    term, owner, position, in_context = term[order], owner[order], position[order], in_context[order]

    first = np.flatnonzero(np.r_[True, (term[1:] != term[:-1]) | (owner[1:] != owner[:-1])])
    last = np.r_[first[1:], len(term)] - 1
    position[last] |= _LAST
    frequency = np.add.reduceat(np.where(in_context, 1, _TEXT_SHARE), first)
    ids = np.array([chunk.chunk_id for chunk in chunks], np.int64)[owner[first]]
    rows = np.empty(len(first), POSTING)
    rows["id"] = ids
    rows["frequency"] = np.minimum(frequency, _LARGEST)
    rows["length"] = np.minimum(lengths[owner[first]], _LARGEST)
    starts = np.flatnonzero(np.r_[True, term[first][1:] != term[first][:-1]])
    ends = np.r_[starts[1:], len(first)]
    data, packed = rows.tobytes(), position.astype("<u2").tobytes()
    cuts = np.r_[first, len(term)]
    return [
        Block(names[term[first[start]]], chunks[0].chunk_id, int(end - start), data[start * 8 : end * 8],
              packed[cuts[start] * 2 : cuts[end] * 2])
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]  # fmt: skip


def without(block: Block, dead: Ids) -> Block | None:
    """Return the block without chunks that are gone; None when nothing is left of it."""
    rows = np.frombuffer(block.data, POSTING)
    kept = ~np.isin(rows["id"], dead)
    if kept.all():
        return block
    if not kept.any():
        return None
    places = np.frombuffer(block.positions, "<u2")
    counts = np.diff(np.flatnonzero(places & _LAST), prepend=-1)
    return block._replace(
        held_by=int(kept.sum()), data=rows[kept].tobytes(), positions=places[np.repeat(kept, counts)].tobytes()
    )


# --- read ----------------------------------------------------------------------------------------


@dataclass(frozen=True)  # no slots: occurrences are computed once, on demand
class Postings:
    """The chunks that hold a term, ascending, how often, and how long they are."""

    ids: Ids
    frequencies: Numbers  # a word of the context counts half
    lengths: Numbers
    raw_positions: NDArray[np.uint16] | None = None

    def alive(self, dead: Ids) -> Postings:
        """Return those of chunks that are still there."""
        if not len(dead) or not len(self.ids):
            return self
        kept = ~np.isin(self.ids, dead)
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
        """Every place where the term stands, as one number a place; neighbours differ by one."""
        assert self.raw_positions is not None
        places = (self.raw_positions & ~np.uint16(_LAST)).astype(np.int64)
        return np.asarray(np.repeat(self.ids << _CHUNK_SHIFT, self.position_counts) | places)


NOTHING = Postings(np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0, "<u2"))


def unpack(blocks: Sequence[Block]) -> Postings:
    """Return the postings of one term from its blocks, which are in order."""
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
    """Return the chunks that hold any of the terms, as if they were one term."""
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
        # Set as if it had been computed: the merged positions have no stored form.
        merged.__dict__["occurrences"] = np.unique(np.concatenate([each.occurrences for each in several]))
    return merged


def phrase(tokens: Sequence[Postings]) -> Postings:
    """Return the chunks in which the tokens stand one after the other, in the text or in the context."""
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
    """Return the sum of the values at each place."""
    return np.asarray(np.bincount(places, values), np.float64)


class Collection(NamedTuple):
    """What the rarity of terms is judged by, and the chunks that may be found."""

    chunks: int
    mean_length: float
    hidden: Ids = np.empty(0, np.int64)  # ascending; of documents that a group may not see


def ranked(several: Iterable[Postings], collection: Collection, among: Ids | None = None) -> tuple[Ids, Numbers]:
    """Return the BM25 of every chunk that holds one of the terms, by id; with `among` of those chunks only."""
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
