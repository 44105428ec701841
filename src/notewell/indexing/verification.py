"""Checks that a store is consistent before it is used, and compares it with a fresh one on request."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notewell.text.lexicon import index_terms
from notewell.types import EVERYTHING, Term

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from notewell.protocols import Snapshot, Store, Vector
    from notewell.types import EmbedderIdentity, StoredChunk

    KnownVectors = Callable[[EmbedderIdentity, Collection[str]], Mapping[str, Vector]]

SAMPLES = 16  # queries before a switch: a missing or empty table fails the first one
COMPARED_QUERIES = 200  # of `verify`
MATCHES_A_CHUNK = 10  # that are compared; more would only repeat very common words
ID_STEP = 1_000  # chunk ids per query
MOST_EMPTY_STEPS = 10_000  # 10 million removed ids in a row; an index is rebuilt long before
SHOWN = 5  # findings of one kind that are spelt out
SAME_SCORE = 1e-6  # BM25 in two indexes of the same text differs by rounding at most
SAME_VECTOR = 1e-3  # both sides are kept as 16-bit floats
OWN_COSINE = 0.99  # of a vector with itself, after 16-bit rounding


def all_chunks(snapshot: Snapshot) -> Iterator[StoredChunk]:
    """Yield every chunk in order of its id."""
    wanted = snapshot.counts().chunks
    found = empty = first = 0
    while found < wanted and empty < MOST_EMPTY_STEPS:
        some = snapshot.chunks(range(first, first + ID_STEP))
        yield from (some[chunk_id] for chunk_id in sorted(some))
        found, first, empty = found + len(some), first + ID_STEP, 0 if some else empty + 1


def self_check(store: Store, *, keywords: bool = True, seed: int = 0) -> list[str]:
    """Return inconsistencies of a new index, and what its searches do not find; empty when there are none."""
    findings = list(store.verify())
    if findings:
        return findings
    chance = random.Random(seed)  # noqa: S311 - no secret
    with store.reading() as snapshot:
        known = set(snapshot.documents())
        sample: list[StoredChunk] = []
        held = 0
        for chunk in all_chunks(snapshot):  # sampled from a stream: a large index does not fit into memory
            held += 1
            place = chance.randrange(held)
            if len(sample) < SAMPLES:
                sample.append(chunk)
            elif place < SAMPLES:
                sample[place] = chunk
            if (chunk.source, chunk.path) not in known:
                findings.append(f"it holds a chunk of {chunk.path}, which it does not know")
        if held != snapshot.counts().chunks:
            findings.append(f"it counts {snapshot.counts().chunks} chunks and holds {held}")
        if keywords:
            findings += [finding for chunk in sample for finding in _unfound_by_word(snapshot, chunk)]
        findings += _unfound_by_vector(snapshot, sample)
    return _shortened(findings)


def _unfound_by_word(snapshot: Snapshot, chunk: StoredChunk) -> list[str]:
    words = index_terms(chunk.text).split()
    if not words:
        return []
    word = max(words, key=len)
    found = snapshot.keyword_matches([Term((word,))], limit=1, scope=EVERYTHING, also=[chunk.id])
    if chunk.id in {match.chunk_id for match in found}:
        return []
    return [f"{chunk.path}:{chunk.first_line} is not found by its word {word!r}"]


def _unfound_by_vector(snapshot: Snapshot, sample: Sequence[StoredChunk]) -> list[str]:
    hashes = {chunk.id: chunk.embedded_hash for chunk in sample}
    vectors = snapshot.known_vectors(list(hashes.values()))
    findings = []
    for chunk in sample:
        vector = vectors.get(hashes[chunk.id])
        if vector is None:
            continue  # pending or keyword-only; `verify` has counted those
        nearest = snapshot.vector_matches(vector, limit=1, scope=EVERYTHING)
        if not nearest or nearest[0].score < OWN_COSINE:
            findings.append(f"{chunk.path}:{chunk.first_line} is not found by its own vector")
    return findings


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares an index with a fresh one of the same files."""

    live: Snapshot
    fresh: Snapshot
    same_engine: bool = True  # scores of different storage engines may differ

    def findings(self, cached: KnownVectors | None) -> list[str]:
        """Return the differences; `cached` returns vectors from the cache."""
        found = self._documents()
        live, fresh = list(all_chunks(self.live)), list(all_chunks(self.fresh))
        found += _differences("chunks", Counter(map(_content, live)), Counter(map(_content, fresh)))
        if not found:
            found = self._queries(live, fresh)
        return found + self._vectors(live, cached)

    def _documents(self) -> list[str]:
        live, fresh = self.live.documents(), self.fresh.documents()
        found = [f"{path} is not indexed" for _, path in fresh.keys() - live.keys()]
        found += [f"{path} is indexed and gone" for _, path in live.keys() - fresh.keys()]
        for key in live.keys() & fresh.keys():
            if live[key].content_hash != fresh[key].content_hash:
                found.append(f"{key[1]} has changed since it was indexed")
            elif live[key].dated != fresh[key].dated:
                found.append(f"{key[1]} is indexed under another date")
        return _shortened(sorted(found))

    def _queries(self, live: Sequence[StoredChunk], fresh: Sequence[StoredChunk]) -> list[str]:
        """Search both for words of the notes: places and scores must be equal.

        Chunks are numbered by content once, because reading their texts for every word would take far too long.
        """
        chance = random.Random(0)  # noqa: S311 - the same words every time, so that findings can be reproduced
        numbers: dict[tuple[object, ...], int] = {}
        in_live = {chunk.id: numbers.setdefault(_content(chunk), len(numbers)) for chunk in live}
        in_fresh = {chunk.id: numbers.setdefault(_content(chunk), len(numbers)) for chunk in fresh}
        sampled = (index_terms(chunk.text).split() for chunk in chance.sample(live, min(COMPARED_QUERIES, len(live))))
        chosen = dict.fromkeys(chance.choice(sorted(set(words))) for words in sampled if words)
        left = MATCHES_A_CHUNK * len(live)
        found = []
        for word in chosen:
            if left <= 0:
                break
            one = self._answers(self.live, word, in_live)
            if not self._same(one, self._answers(self.fresh, word, in_fresh)):
                found.append(f"the word {word!r} is found in other places, or with other scores")
            left -= len(one)
        return _shortened(sorted(found))

    def _answers(self, snapshot: Snapshot, word: str, numbers: Mapping[int, int]) -> dict[int, float]:
        matches = snapshot.keyword_matches([Term((word,))], limit=len(numbers), scope=EVERYTHING)
        return {numbers.get(match.chunk_id, -match.chunk_id - 1): match.score for match in matches}

    def _same(self, one: dict[int, float], other: dict[int, float]) -> bool:
        if not self.same_engine:
            return one.keys() == other.keys()
        return one.keys() == other.keys() and all(abs(one[key] - other[key]) < SAME_SCORE for key in one)

    def _vectors(self, chunks: Sequence[StoredChunk], cached: KnownVectors | None) -> list[str]:
        """Compare the stored vectors with those in the cache."""
        identity = self.live.embedder()
        if cached is None or identity is None or not self.live.counts().embedded:
            return []
        found = []
        for start in range(0, len(chunks), ID_STEP):
            hashes = {chunk.embedded_hash: chunk for chunk in chunks[start : start + ID_STEP]}
            stored, known = self.live.known_vectors(list(hashes)), cached(identity, list(hashes))
            for text_hash in stored.keys() & known.keys():
                if not abs(stored[text_hash] - known[text_hash]).max() < SAME_VECTOR:  # also for a NaN
                    chunk = hashes[text_hash]
                    found.append(f"{chunk.path}:{chunk.first_line} has another vector than the cache")
        return _shortened(sorted(found))


def _content(chunk: StoredChunk) -> tuple[object, ...]:
    place = chunk.source, chunk.path, chunk.first_line, chunk.last_line, chunk.turn, chunk.parts
    return *place, chunk.text, chunk.context, chunk.dated, chunk.label


def _differences(what: str, live: Counter[tuple[object, ...]], fresh: Counter[tuple[object, ...]]) -> list[str]:
    found = [f"{key[1]}:{key[2]}: {count} {what} that the note does not hold" for key, count in (live - fresh).items()]
    found += [f"{key[1]}:{key[2]}: {count} {what} of the note missing" for key, count in (fresh - live).items()]
    return _shortened(sorted(found))


def _shortened(findings: list[str]) -> list[str]:
    more = len(findings) - SHOWN
    return [*findings[:SHOWN], f"and {more} more like this"] if more > 0 else findings
