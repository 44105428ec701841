"""Fits texts to a provider's limits: texts come in as they are drawn, requests of a good size go out."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

TOKENS_A_REQUEST = 8000  # as in OpenClaw: some twenty chunks, so that a lost answer costs little
# Text that is not prose (tables, code, numbers) has down to three characters a token.
WORST_CASE = 4 / 3
_BLANK = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, or a part of one that is too long, as it is sent."""

    position: int  # of its text
    text: str
    tokens: int  # about


@dataclass(frozen=True, slots=True)
class Bundle:
    """What one request asks for; all pieces of a text are in the same one."""

    pieces: tuple[Piece, ...]
    split: tuple[int, ...] = ()  # positions of texts that are in several pieces


def about_tokens(text: str) -> int:
    """Return how many tokens a model will see, about: four letters a token, one Chinese character a token."""
    more_bytes = len(text.encode("utf-8", "replace")) - len(text)
    return max(1, math.ceil((len(text) + 1.5 * more_bytes) / 4))


def bundled(
    texts: Iterable[str],
    *,
    inputs: int,
    input_tokens: int,
    request_tokens: int,
    tokens: int = TOKENS_A_REQUEST,
) -> Iterator[Bundle]:
    """Yield the texts in order, as many in a bundle as fit; a text over `input_tokens` is split into pieces.

    `tokens` is the size aimed at, `inputs` and `request_tokens` are the provider's limits.
    """
    gathered: list[Piece] = []
    split: list[int] = []
    weight, goal = 0, min(tokens, request_tokens)
    for position, text in enumerate(texts):
        pieces = pieces_of(position, text, input_tokens=input_tokens)
        pieces = _within(pieces, inputs, request_tokens)
        added = sum(piece.tokens for piece in pieces)
        if gathered and (weight + added > goal or len(gathered) + len(pieces) > inputs):
            yield Bundle(tuple(gathered), tuple(split))
            gathered, split, weight = [], [], 0
        gathered += pieces
        weight += added
        if len(pieces) > 1:
            split.append(position)
    if gathered:
        yield Bundle(tuple(gathered), tuple(split))


def pieces_of(position: int, text: str, *, input_tokens: int) -> list[Piece]:
    """Return the text whole if the model takes it, else in parts of about the same length, cut at blanks."""
    tokens = about_tokens(text)
    parts = math.ceil(tokens * WORST_CASE / input_tokens)
    if parts <= 1:
        return [Piece(position, text, tokens)]
    return [Piece(position, part, about_tokens(part)) for part in in_parts(text, parts)]


def in_parts(text: str, parts: int) -> list[str]:
    """Return the text in `parts` pieces; together they are the whole text."""
    cuts = [0]
    for part in range(1, parts):
        target = len(text) * part // parts
        blank = _BLANK.search(text, target, target + len(text) // (parts * 8) + 1)
        cuts.append(max(cuts[-1], blank.end() if blank else target))
    cuts.append(len(text))
    found = [text[first:last] for first, last in pairwise(cuts)]
    return [part for part in found if part.strip()] or [text]


def _within(pieces: list[Piece], inputs: int, request_tokens: int) -> list[Piece]:
    """Leave out the end of a text that no single request could hold: hundreds of pages in one text."""
    kept: list[Piece] = []
    for piece in pieces:
        if kept and (len(kept) == inputs or sum(each.tokens for each in kept) + piece.tokens > request_tokens):
            break
        kept.append(piece)
    return kept
