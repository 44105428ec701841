"""What kind of thing a question asks for, and whether a text holds one: "when" asks for a time; pure.

A text that holds no time does not say when, however many of the question's words it holds. English only: other
questions ask for nothing in particular, and their order stays as it is.
"""

from __future__ import annotations

import re
from typing import Literal

AnswerKind = Literal["time", "duration", "number", "name"]

# Gained by texts that hold what is asked for; 1.1 to 1.2 do about as well on the tuning half of the test sets.
GAIN = 1.15

_ASKING = r"(?:^|[.,;:?!]\s+|\b(?:and|so|but|know|remember|tell me|say|since|until|by)\s+)"
_AUXILIARY = r"(?:'s|'d|'ll|\s+(?:did|does|do|is|are|was|were|will|has|have|had|can|should|would))"
_TIME_NOUN = r"(?:years?|months?|days?|dates?|time|weeks?|weekend|century|decade|season)"
_NAMED_NOUN = (
    r"(?:names?|cit(?:y|ies)|countr(?:y|ies)|places?|states?|towns?|books?|movies?|films?|shows?|songs?|bands?"
    r"|artists?|games?|teams?|compan(?:y|ies)|brands?|restaurants?)"
)
_BEFORE = r"(?:(?:in|on|at|by|during|since|to|with|from|for|of)\s+)?"
# The first that fits: "how long ago" asks for a time, "which year" for no name.
_QUESTIONS: tuple[tuple[AnswerKind, re.Pattern[str]], ...] = (
    (
        "time",
        re.compile(
            rf"{_ASKING}(?:when{_AUXILIARY}|{_BEFORE}(?:what|which)\s+(?:exact\s+)?{_TIME_NOUN}|how long ago)\b",
            re.IGNORECASE,
        ),
    ),
    ("duration", re.compile(r"\bhow (?:long|often)\b", re.IGNORECASE)),
    (
        "number",
        re.compile(
            r"\bhow (?:many|much|old|far|tall|big|large|high|wide|deep|fast)\b"
            r"|\bwhat (?:number|percentage|percent|amount|age|price)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "name",
        re.compile(
            rf"^(?:(?:and|so|but)\s+)?{_BEFORE}(?:who|whom|whose|where|which"
            rf"|what\s+(?:(?:is|was|are|were)\s+the\s+)?{_NAMED_NOUN})\b",
            re.IGNORECASE,
        ),
    ),
)

_NUMBER_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve dozens? hundreds? thousands? millions? billions? "
    "couple few several half once twice first second third both"
).replace(" ", "|")
_MONTHS_AND_DAYS = (
    "january february march april may june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday"
).replace(" ", "|")
_HELD: dict[AnswerKind, re.Pattern[str]] = {
    "time": re.compile(
        r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|weekend|week|month|year"
        rf"|this morning|{_MONTHS_AND_DAYS}|\d{{4}})\b",
        re.IGNORECASE,
    ),
    "duration": re.compile(
        r"\b(?:years?|months?|weeks?|days?|hours?|minutes?|decades?|since|while|long|forever|ages)\b", re.IGNORECASE
    ),
    "number": re.compile(rf"\b(?:\d[\d,.]*|{_NUMBER_WORDS})\b", re.IGNORECASE),
    # A capital inside a sentence. What begins a sentence, or a line, begins with a capital anyway.
    "name": re.compile(r"""(?<=[a-z,;'"(][ ])["'(]?([A-Z][a-z]+)"""),
}
_WORD = re.compile(r"[A-Za-z]+")


def kind_asked_for(query: str) -> AnswerKind | None:
    """Return what kind of thing the question asks for, if it says so."""
    return next((kind for kind, question in _QUESTIONS if question.search(query)), None)


def holds(kind: AnswerKind, text: str, query: str) -> bool:
    """Say whether the text holds a thing of this kind; a name that the question holds already answers nothing."""
    found = _HELD[kind].finditer(text)
    if kind != "name":
        return next(found, None) is not None
    asked = set(_WORD.findall(query))
    return any(match[1] not in asked for match in found)
