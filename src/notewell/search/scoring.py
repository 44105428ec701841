"""Gives every candidate one score between 0 and 1.

    score   = text_weight * text + (1 - text_weight) * vector, at least vector - usual_share * usual
    text    = s / (s + half_match)      s: the share of the question's weight that the text matches by BM25
    vector  = 0 for unrelated texts, `answer_level` for a question and its answer, 1 for the same text
    usual   = the mean vector part of the question's 11th to 40th nearest texts

A text that answers in other words, or in another language, shares no word with the question: then the vector decides.
But some questions are near to everything and answered by nothing, so it counts only as far as it stands out. Each
embedder names the cosines of unrelated texts and of answers, so a score means the same in every question. A chunk
without a vector scores its text part, and a semantic search scores by the vector part. `weighted` and `rrf` are what
other systems use.

That orders the candidates. Whether the memory can answer the question at all is another matter: BM25 rewards a rare
word, and a question about something else may share one, too. So no score of a question is higher than `answered`:

    answered = coverage * covered + (1 - coverage) * vector, at least what stands out      of the best text
    covered  = the share of the question's weight whose words stand in the text, however often
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from notewell.store.bm25 import LENGTH_SHARE, SATURATION
from notewell.text.lexicon import fold
from notewell.types import Candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from notewell.search.tuning import Tuning
    from notewell.types import ChunkPlace, SearchMode

Fusion = Literal["balanced", "weighted", "rrf"]


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each side counts in `weighted` and `rrf`; they sum to 1."""

    vector: float = 0.7
    text: float = 0.3


OPENCLAW_WEIGHTS = Weights()


@dataclass(frozen=True, slots=True)
class Scale:
    """What the question as a whole says about its candidates."""

    full_weight: float  # BM25 weight of a chunk that matches the whole question
    cosine_range: tuple[float, float]  # cosine of unrelated texts, and of a question and its answer
    tuning: Tuning
    mode: SearchMode = "hybrid"
    fusion: Fusion = "balanced"
    weights: Weights = OPENCLAW_WEIGHTS
    language_weight: float = 1.0  # how far vectors count in the language of the question
    is_measured: bool = False  # whether the model was measured by language: only then may a vector decide alone
    nearest: float = 0.0  # the vector part of the nearest text
    usual: float = 0.0  # that of texts that are near the question, but not nearest

    @property
    def text_weight(self) -> float:
        """The share of the text part: the tuned one, shifted as far as the weights differ from the default."""
        tuned, usual, asked = self.tuning.text_weight, OPENCLAW_WEIGHTS, self.weights
        for_text = tuned * asked.text / usual.text
        for_vector = (1 - tuned) * asked.vector / usual.vector * self.language_weight
        return for_text / (for_text + for_vector)

    @property
    def stand_out(self) -> float:
        """How much a text counts that stands out by its vector; nothing if the vector is given no weight."""
        return self._vector_share * self.is_measured

    @property
    def _vector_share(self) -> float:
        """How far vectors count, by the weights that were asked for and by the language of the question."""
        return min(1.0, self.weights.vector / OPENCLAW_WEIGHTS.vector) * self.language_weight

    def vector_part(self, cosine: float) -> float:
        """Return how near a text is, on the scale at the top of this module."""
        unrelated, answer = self.cosine_range
        level = self.tuning.answer_level
        if cosine <= answer:
            return max(0.0, level * (cosine - unrelated) / (answer - unrelated))
        return min(1.0, level + (1 - level) * (cosine - answer) / (1 - answer))

    def measured_on(self, candidates: Sequence[Candidate]) -> Scale:
        """Return the scale with what is nearest and what is usual; where there are few, the rest of these are 0."""
        first, last = self.tuning.usual_from, self.tuning.pool
        cosines = sorted((c.cosine for c in candidates if c.cosine is not None), reverse=True)[:last]
        parts = [self.vector_part(cosine) for cosine in cosines]
        return replace(self, nearest=max(parts, default=0.0), usual=sum(parts[first:]) / (last - first))

    def answered_by(self, best: Scored, covered: float) -> float:
        """Return how well the best text answers the question; nothing scores more than that.

        `covered` is the share of the question's weight whose words stand in it, however often. The vector part counts
        as much, and what stands out most is an answer whatever the words.
        """
        if not self.tuning.coverage or best.vector_part is None:
            return 1.0
        by_words = self.tuning.coverage * min(1.0, self.weights.text / OPENCLAW_WEIGHTS.text)
        by_vector = (1 - self.tuning.coverage) * self._vector_share
        return max(
            (by_words * covered + by_vector * best.vector_part) / (by_words + by_vector),
            self.stand_out * (self.nearest - self.tuning.usual_share * self.usual),
        )

    @property
    def full_match(self) -> float:
        """The text part of a chunk that matches the whole question and no more."""
        return 1 / (1 + self.tuning.half_match)


class Scored(NamedTuple):
    """A candidate with its score and what each side contributed."""

    candidate: Candidate
    score: float
    vector_part: float | None
    text_part: float


def score_all(candidates: Sequence[Candidate], scale: Scale) -> list[Scored]:
    """Return every candidate with its score, best first; ties by chunk id, so the order never depends on the limit."""
    by_rank = scale.fusion == "rrf" and any(candidate.cosine is not None for candidate in candidates)
    scored = _rrf(candidates, scale) if by_rank else _mixed(candidates, scale)
    return sorted(scored, key=lambda s: (-s.score, s.candidate.chunk_id))


def _mixed(candidates: Sequence[Candidate], scale: Scale) -> list[Scored]:
    """Apply the formula at the top of this module, in one loop: every search does so a hundred times."""
    tuning, by_text = scale.tuning, scale.text_weight
    full = scale.full_weight or math.inf
    stand_out, usual = scale.stand_out, tuning.usual_share * scale.usual
    scored = []
    for candidate in candidates:
        cosine = candidate.cosine
        matched = tuning.pairs * candidate.pairs + tuning.function_words * candidate.function_words
        share = ((candidate.bm25 or 0.0) + matched) / full
        text = share / (share + tuning.half_match)
        uncut = 1.0 if candidate.parts == 1 else 1 - tuning.piece_loss  # a long text has more chances to match
        if cosine is None:
            scored.append(Scored(candidate, text * uncut, None, text))
            continue
        vector = scale.vector_part(cosine)
        if scale.mode == "semantic":
            scored.append(Scored(candidate, vector, vector, text))
        elif scale.fusion == "weighted":
            scored.append(_weighted(candidate, scale.weights))
        else:
            score = max(by_text * text + (1 - by_text) * vector, stand_out * (vector - usual))
            scored.append(Scored(candidate, score * uncut, vector, text))
    return scored


def _weighted(candidate: Candidate, weights: Weights) -> Scored:
    """OpenClaw's formula, with the sign of BM25 corrected: weight x cosine + weight x bm25 / (1 + bm25)."""
    bm25 = candidate.bm25 or 0.0
    vector, text = max(0.0, candidate.cosine or 0.0), bm25 / (1 + bm25)
    return Scored(candidate, min(1.0, weights.vector * vector + weights.text * text), vector, text)


def _rrf(candidates: Sequence[Candidate], scale: Scale) -> list[Scored]:
    """Reciprocal rank fusion by the two weights, scaled so that first on both sides is 1."""
    offset = scale.tuning.rank_offset
    by_vector = _ranks(candidates, lambda c: c.cosine)
    by_text = _ranks(candidates, lambda c: c.bm25)
    scored = []
    for candidate in candidates:
        vector = _reciprocal(by_vector.get(candidate.chunk_id), offset)
        text = _reciprocal(by_text.get(candidate.chunk_id), offset)
        score = (scale.weights.vector * vector + scale.weights.text * text) * (offset + 1)
        scored.append(Scored(candidate, score, vector, text))
    return scored


def _ranks(candidates: Sequence[Candidate], value: Callable[[Candidate], float | None]) -> dict[int, int]:
    ranked = [(raw, c.chunk_id) for c in candidates if (raw := value(c)) is not None]
    ranked.sort(key=lambda pair: (-pair[0], pair[1]))
    return {chunk_id: rank for rank, (_, chunk_id) in enumerate(ranked, start=1)}


def _reciprocal(rank: int | None, offset: int) -> float:
    return 1 / (offset + rank) if rank else 0.0


# --- after reading the best candidates -----------------------------------------------------------


def function_word_scores(words: Sequence[str], texts: Sequence[str]) -> list[float]:
    """Return the BM25 of the function words in each of the texts, counted among these texts only.

    A word in most of them says nothing; "my" in a few of them does. Only words that say something are counted: finding
    out whether a text has a word is far cheaper than counting it.
    """
    scores = [0.0] * len(texts)
    if not words or not texts:
        return scores
    spaced = [_spaced(text) for text in texts]
    mean = sum(map(len, texts)) / len(texts) or 1.0
    norms = [SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * len(text) / mean) for text in texts]
    for word in words:
        spelled = f" {word} ".encode()
        holding = [place for place, text in enumerate(spaced) if spelled in text]
        weight = math.log((len(texts) - len(holding) + 0.5) / (len(holding) + 0.5))
        if weight > 0:
            for place in holding:
                count = spaced[place].count(spelled)
                scores[place] += weight * count * (SATURATION + 1) / (count + norms[place])
    return scores


def _spaced(text: str) -> bytes:
    """Return the text in lower case with a space before and after every word; bytes translate five times as fast."""
    return b" %b " % fold(text).lower().encode("utf-8", "replace").translate(_MARKS_TO_BLANKS)


_MARKS = b'\n.,?!:;()*"'  # may be next to a word
_MARKS_TO_BLANKS = bytes.maketrans(_MARKS, b" " * len(_MARKS))


def with_neighbours(scored: Sequence[Scored], places: Mapping[int, ChunkPlace], share: float) -> list[Scored]:
    """Raise messages of a conversation by the scores of the messages before and after them; best first.

    An answer is often next to its question: each neighbour is a second chance, `share` as good as its own score.
    """
    best: dict[tuple[int, int], float] = {}
    for each in scored:
        place = places[each.candidate.chunk_id]
        if place.turn:
            key = (place.document, place.turn)
            best[key] = max(best.get(key, 0.0), each.score)
    if not best:
        return list(scored)
    lent = []
    for each in scored:
        place = places[each.candidate.chunk_id]
        missed = 1 - each.score
        for turn in (place.turn - 1, place.turn + 1) if place.turn else ():
            missed *= 1 - share * best.get((place.document, turn), 0.0)
        lent.append(each._replace(score=1 - missed) if place.turn else each)
    return sorted(lent, key=lambda s: (-s.score, s.candidate.chunk_id))
