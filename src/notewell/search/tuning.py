"""Holds every number that changes a score or an order.

The formula is in `scoring.py`. Each number was chosen, or kept, because it also helps on test sets that it was not
chosen on: docs/retrieval.md has the tables, `python -m evals.ablation` makes them. BM25 is the store's, with the
textbook constants (k1 1.2, b 0.75) and half weight for the words of headings and path.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """The numbers of ranking; a weight of 0 turns its rule off."""

    # --- how a chunk is scored
    text_weight: float = 0.65  # share of keywords in the score; vectors have the rest. 0.55 to 0.7 do as well
    usual_share: float = 0.6  # of what is usual; a text counts at least as far as its vector stands out from that
    usual_from: int = 10  # nearest chunks that may all be answers; the rest of the pool shows what is usual
    half_match: float = 0.5  # the matched share of a question at which the text score is one half
    answer_level: float = 0.8  # vector score at the cosine that the embedder names for a question and its answer
    pairs: float = 0.5  # weight of neighbouring words of the question that are neighbours in the text
    function_words: float = 0.5  # weight of "I", "did", "the"; they find no chunk, they only decide among the best
    piece_loss: float = 0.04  # what a chunk loses for being only a piece of its note or message
    neighbour_turns: float = 0.4  # how much the messages before and after add to a message
    ordinary_weight: float = 1.0  # mean weight of the known words below which unknown ones count no more than they do
    coverage: float = 0.5  # share of the words that a text covers in whether it answers the question; vectors the rest
    absent_pairs: float = 0.5  # weight of two Chinese, Japanese or Korean characters that are never next to each other

    # --- which chunks are scored
    pool: int = 40  # the best candidates, read for function words, neighbours, time and joining
    most_terms: int = 48  # of one question, rarest first; a long question has 10 to 20
    common: int = 4_000  # a term in this many chunks is dropped while rarer ones remain,
    common_share: float = 0.2  # and so is one in this share of the chunks,
    common_least: int = 500  # unless those are too few to matter
    led_by: int = 200  # the rarest terms, together in this many chunks, find candidates; the others only score them

    # --- other orders
    rank_offset: int = 60  # of reciprocal rank fusion; Cormack et al. 2009
    about_share: float = 0.75  # of the best score: from here on a chunk is about the subject of a question about a time


TUNING = Tuning()
