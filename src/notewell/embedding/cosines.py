"""Measures a model's cosines: an embedder comes in, its typical cosine of unrelated and of matching texts goes out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from notewell.protocols import Embedder

# Notes as people keep them, each with a question that shares few words with it.
QUESTIONS_AND_ANSWERS = (
    (
        "What is the password of the guest wifi?",
        "The guest network is called Lighthouse; visitors log in with the password on the fridge.",
    ),
    (
        "When does the dentist see me next?",
        "Dentist appointment moved to Thursday 14 March at half past nine.",
    ),
    (
        "Which database did we choose for the billing service?",
        "Decision: billing keeps its data in PostgreSQL 16, because finance needs SQL reports.",
    ),
    (
        "How do I roll back a failed deployment?",
        "If a release misbehaves, run the rollback job with the previous tag and watch the error rate.",
    ),
    (
        "What does my sister like to eat?",
        "Anna is vegetarian and loves mushroom risotto and lemon cake.",
    ),
    (
        "Why was the flight booked through Madrid?",
        "The direct flight was sold out, so the trip to Lisbon goes via Madrid with a two hour stop.",
    ),
)

# A model that cannot tell these apart (one without English, say) must not turn tiny differences into certainty.
LEAST_SPAN = 0.1


def measured_cosine_range(embedder: Embedder) -> tuple[float, float]:
    """Return the mean cosine of questions with others' answers, and with their own."""
    questions = np.stack([embedder.embed_query(question) for question, _ in QUESTIONS_AND_ANSWERS])
    cosines = questions @ embedder.embed_documents([answer for _, answer in QUESTIONS_AND_ANSWERS]).T
    own = float(np.trace(cosines)) / len(cosines)
    others = (float(cosines.sum()) - float(np.trace(cosines))) / (cosines.size - len(cosines))
    floor = min(others, 1 - LEAST_SPAN)
    return floor, max(own, floor + LEAST_SPAN)
