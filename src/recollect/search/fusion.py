"""Two raw scores a candidate in, one score between 0 and 1 out; pure.

`weighted` and `rrf` are what other systems use; `balanced` is the default because the evaluation says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from recollect.search.analysis import RELATED_WEIGHT
from recollect.types import Candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Fusion = Literal["balanced", "weighted", "rrf"]

RANK_OFFSET = 60  # Cormack et al. 2009; flattens the advantage of rank 1
TEXT_HALF = 0.3  # matched share of the query's weight at which the text score is about one half
# The numbers of `balanced` were chosen for the mean nDCG@10 of five English test sets on half of their queries, and
# gain .047 over `weighted` on the other half: docs/retrieval.md.
BALANCED_TEXT = 0.62  # how much words count where the best candidate matches half of the query's weight;
TEXT_EASE = 0.15  # less where one matches all of it: words that everybody has tell nobody apart
LEAST_BY_TEXT, MOST_BY_TEXT = 0.3, 0.7
FADING = 0.85  # exponent of both sides: the first half of a match says more than the second
PAIR_WEIGHT = 0.5  # of neighbouring words; 0.3 to 0.7 are about as good, 1.0 is worse than none
SAYS_ENOUGH = 14  # terms that state something; of fewer, a chunk says less than it seems to
BREVITY = 0.35  # exponent
BREVITY_EASE = 2  # terms, so that a note of one word is not worth nothing
LONG = 80  # terms; a chunk of more matches some of it by chance
LENGTHINESS = 0.05  # exponent
KNEE = 0.8  # above it a score says "surely", and only the order matters
_SURE = 1e-12  # what is left to 1 where other formulas reach it
# The default threshold is 0.35. With these, questions of the test sets keep 95 to 100 % of their answers, and of
# questions that the notes cannot answer 1 to 23 % show more than a name they share with a note: docs/retrieval.md.
SCALE = 1.15  # exponent
NEAR_ENOUGH = 0.47  # vector part from which on meaning alone makes an answer; 1 in 20 foreign questions gets there
WORDS_FAILED = 0.5  # the best score below which meaning alone is asked
MOST_LIFTED = 0.36  # threshold up to which what is near enough, or holds the rarest word, is shown in any case


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each side counts; they sum to 1."""

    vector: float = 0.7
    text: float = 0.3


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the query as a whole says about its candidates."""

    full_weight: float  # BM25 weight of a chunk that matches the whole query
    weights: Weights
    cosine_floor: float  # cosine of unrelated texts
    cosine_ceiling: float  # cosine of a text and a question it answers well
    exact: frozenset[int] = frozenset()  # chunks that hold the query's rarest word, if it is rare


class Fused(NamedTuple):
    """A candidate with its final score and what each side brought to it."""

    candidate: Candidate
    score: float
    vector_part: float
    text_part: float
    kept: bool = False  # worth showing whatever its score


def above(fused: Sequence[Fused], threshold: float) -> list[Fused]:
    """Return what reaches the threshold; what is kept counts as if it did, unless more than the default is asked."""
    lifted = threshold if threshold <= MOST_LIFTED else math.inf
    return [
        f if f.score >= threshold else f._replace(score=lifted)
        for f in fused
        if f.score >= threshold or (f.kept and lifted < math.inf)
    ]


def fuse(candidates: Sequence[Candidate], evidence: Evidence, *, fusion: Fusion) -> list[Fused]:
    """Return every candidate with its score, best first; ties by chunk id, so the order never depends on the limit."""
    score = _keyword_only if all(c.cosine is None for c in candidates) else _FUSIONS[fusion]
    return sorted(score(candidates, evidence), key=lambda f: (-f.score, f.candidate.chunk_id))


def keyword_score(candidate: Candidate) -> float | None:
    """Return the BM25 of the candidate's words and, at lower weights, of their neighbourhood and of related words."""
    if candidate.bm25 is None:
        return None
    return candidate.bm25 + PAIR_WEIGHT * candidate.pairs + RELATED_WEIGHT * candidate.related


def raised(score: float, gain: float) -> float:
    """Return the score multiplied by a gain of 1 or more; above the knee it only comes nearer to 1, as in `fuse`."""
    raw = score if score < KNEE else KNEE - (1 - KNEE) * math.log(max(1 - score, _SURE) / (1 - KNEE))
    raw *= gain
    return raw if raw < KNEE else _bent(raw)


def text_score(bm25: float | None, full_weight: float) -> float | None:
    """Return how well the text matches the query's words, 0 to 1, comparable from query to query.

    The matched share, bent so that one rare word in a long chunk still counts.
    """
    if bm25 is None:
        return None
    share = bm25 / full_weight if full_weight > 0 else 0.0
    score = share / (share + TEXT_HALF) * (1 + TEXT_HALF)
    return score if score < KNEE else _bent(score)


def _keyword_only(candidates: Sequence[Candidate], evidence: Evidence) -> list[Fused]:
    fused = []
    for candidate in candidates:
        matched = keyword_score(candidate) or 0.0
        text = text_score(matched, evidence.full_weight) or 0.0
        # How much a chunk says puts it in order; whether it is shown, its words alone decide.
        score = text_score(matched * _substance(candidate.terms), evidence.full_weight) or 0.0
        fused.append(Fused(candidate, score, 0.0, text, kept=text >= MOST_LIFTED))
    return fused


def _balanced(candidates: Sequence[Candidate], evidence: Evidence) -> list[Fused]:
    """Mix how much of the query the text matches with how near its meaning is, both on scales that no query moves.

    Text: the share of the query's weight that is matched, about 1 when every word occurs once. Vector: 0 for unrelated
    texts, about 1 for an answer. So a score means the same from query to query. A chunk without a vector is judged by
    its words alone.
    """
    floor, span, full = evidence.cosine_floor, evidence.cosine_ceiling - evidence.cosine_floor, evidence.full_weight
    texts = [(keyword_score(candidate) or 0.0) / full if full > 0 else 0.0 for candidate in candidates]
    by_text = min(MOST_BY_TEXT, max(LEAST_BY_TEXT, BALANCED_TEXT - TEXT_EASE * (max(texts, default=0.0) - 0.5)))
    fused = []
    best = 0.0
    for candidate, text in zip(candidates, texts, strict=True):  # a hundred in every search: plain arithmetic
        cosine, terms = candidate.cosine, candidate.terms
        vector = text if cosine is None else (cosine - floor) / span if cosine > floor else 0.0
        score = by_text * text**FADING + (1 - by_text) * vector**FADING
        score = (score * _substance(terms)) ** SCALE
        best = max(best, score)
        fused.append(Fused(candidate, score if score < KNEE else _bent(score), vector, text))
    near_enough = NEAR_ENOUGH if best < WORDS_FAILED else math.inf
    return [
        f._replace(kept=True) if f.vector_part >= near_enough or f.candidate.chunk_id in evidence.exact else f
        for f in fused
    ]


def _substance(terms: int | None) -> float:
    """Return what a score is multiplied by for how much the chunk says: less for a mere remark, and for a long text."""
    if terms is None:
        return 1.0
    if terms > LONG:
        return float((LONG / terms) ** LENGTHINESS)
    said = terms + BREVITY_EASE
    return float((said / SAYS_ENOUGH) ** BREVITY) if said < SAYS_ENOUGH else 1.0


def _bent(score: float) -> float:
    """Let scores above the knee come ever nearer to 1 without reaching it: two full matches still have an order."""
    return 1 - (1 - KNEE) * math.exp((KNEE - score) / (1 - KNEE))


def _weighted(candidates: Sequence[Candidate], evidence: Evidence) -> list[Fused]:
    """OpenClaw's formula with the sign of BM25 put right: weight x cosine + weight x bm25 / (1 + bm25)."""
    fused = []
    for candidate in candidates:
        bm25 = candidate.bm25 or 0.0
        vector, text = max(0.0, candidate.cosine or 0.0), bm25 / (1 + bm25)
        score = min(1.0, evidence.weights.vector * vector + evidence.weights.text * text)
        fused.append(Fused(candidate, score, vector, text))
    return fused


def _rrf(candidates: Sequence[Candidate], evidence: Evidence) -> list[Fused]:
    """Reciprocal rank fusion, scaled so that first on both sides is 1."""
    del evidence  # ranks say nothing about how good the best is
    by_vector = _ranks(candidates, lambda c: c.cosine)
    by_text = _ranks(candidates, lambda c: c.bm25)
    fused = []
    for candidate in candidates:
        vector = _reciprocal(by_vector.get(candidate.chunk_id))
        text = _reciprocal(by_text.get(candidate.chunk_id))
        fused.append(Fused(candidate, (vector + text) * (RANK_OFFSET + 1) / 2, vector, text))
    return fused


def _ranks(candidates: Sequence[Candidate], value: Callable[[Candidate], float | None]) -> dict[int, int]:
    scored = [(raw, c.chunk_id) for c in candidates if (raw := value(c)) is not None]
    scored.sort(key=lambda pair: (-pair[0], pair[1]))
    return {chunk_id: rank for rank, (_, chunk_id) in enumerate(scored, start=1)}


def _reciprocal(rank: int | None) -> float:
    return 1 / (RANK_OFFSET + rank) if rank else 0.0


_FUSIONS: Mapping[Fusion, Callable[[Sequence[Candidate], Evidence], list[Fused]]] = {
    "balanced": _balanced,
    "weighted": _weighted,
    "rrf": _rrf,
}
