"""A short text in, how many of its terms state something out.

"Wow, great! How was your trip to Kyoto?" holds every word of a question about the trip and answers none. So of a short
text only words count that tell something, and only outside of questions; those of a sentence that speaks to the reader
count half: it is more often about what the other said. A heading makes a written note of a remark.
"""

from __future__ import annotations

import re

from recollect.lexicon.small_talk import TELLING_LITTLE
from recollect.lexicon.terms import index_terms

SHORT = 80  # terms; a longer text always states something
HEADED = 8  # terms that a heading is worth
PLENTY = 20  # terms; more make no difference

_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_TO_THE_READER = re.compile(r"\b(?:you|your|yours|yourself|u|ur)\b", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)


def stated_terms(text: str, *, headed: bool) -> int:
    """Return how many terms of a short text state something, counted up to `PLENTY`; `headed`: below a heading."""
    stated = float(HEADED if headed or _HEADING.search(text) else 0)
    for sentence in _SENTENCE.finditer(text):
        said = sentence[0]
        if said.endswith(("?", "？")):
            continue
        telling = sum(term not in TELLING_LITTLE for term in index_terms(said).split())
        stated += telling / 2 if _TO_THE_READER.search(said) else telling
        if stated >= PLENTY:
            return PLENTY
    return round(stated)
