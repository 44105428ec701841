"""Packs texts into requests, sends them, and validates the vectors.

A text that the provider refuses, or returns an invalid vector for, does not affect the other texts of its request.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from notewell.embedding.http_calls import INTERACTIVE, RemoteFailure, Reply, RetryPolicy, invalid_response
from notewell.embedding.http_client import Call, RemoteClient
from notewell.embedding.providers.apis import InvalidResponse, Question
from notewell.embedding.unit_vectors import mean_direction, valid_rows
from notewell.errors import BadVectorError
from notewell.protocols import EmbeddedPart
from notewell.text import valid_unicode

if TYPE_CHECKING:
    from notewell.embedding.http_calls import Service
    from notewell.embedding.providers.apis import Alternative, Api, Model, Side
    from notewell.protocols import Matrix, Vector

TOKENS_A_REQUEST = 8000  # as in OpenClaw: some twenty chunks, so that a lost response costs little
WORST_CASE = 4 / 3  # tables, code and numbers have as few as three characters per token
HARMLESS = "hello"  # sent after a refused request, to see whether everything is refused
MAX_REFUSED_IN_A_ROW = 16  # after this many texts, the texts are not the reason
MIN_SPLIT_TOKENS = 32  # shorter texts are not refused for their length
_BLANK = re.compile(r"\s")
_TOO_LONG = re.compile(r"(?i)too (?:long|large|many tokens)|context length|tokens|maximum|exceed")
_REFUSALS = {400, 413, 422}


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, or a part of one that is too long."""

    position: int  # of its text
    text: str
    tokens: int  # about


@dataclass(frozen=True, slots=True)
class Bundle:
    """The texts of one request; all pieces of a text are in the same one."""

    pieces: tuple[Piece, ...]
    split: tuple[int, ...] = ()  # positions of texts in several pieces


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens: four letters or one Chinese character per token."""
    more_bytes = len(text.encode("utf-8", "replace")) - len(text)
    return max(1, math.ceil((len(text) + 1.5 * more_bytes) / 4))


def pack_texts(
    texts: Iterable[str],
    *,
    inputs: int,
    input_tokens: int,
    request_tokens: int,
    tokens: int = TOKENS_A_REQUEST,
) -> Iterator[Bundle]:
    """Yield bundles of texts in order; a text over `input_tokens` is split into pieces.

    `tokens` is the target size, `inputs` and `request_tokens` are the provider's limits.
    """
    gathered: list[Piece] = []
    split: list[int] = []
    weight, goal = 0, min(tokens, request_tokens)
    for position, text in enumerate(texts):
        pieces = _within(pieces_of(position, text, input_tokens=input_tokens), inputs, request_tokens)
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
    """Return the text, in parts of similar length if it is too long for the model."""
    tokens = estimate_tokens(text)
    parts = math.ceil(tokens * WORST_CASE / input_tokens)
    if parts <= 1:
        return [Piece(position, text, tokens)]
    return [Piece(position, part, estimate_tokens(part)) for part in split_text(text, parts)]


def split_text(text: str, parts: int) -> list[str]:
    """Split the text into `parts` pieces, preferably at blanks."""
    cuts = [0]
    for part in range(1, parts):
        target = len(text) * part // parts
        blank = _BLANK.search(text, target, target + len(text) // (parts * 8) + 1)
        cuts.append(max(cuts[-1], blank.end() if blank else target))
    cuts.append(len(text))
    found = [text[first:last] for first, last in pairwise(cuts)]
    return [part for part in found if part.strip()] or [text]


def _within(pieces: list[Piece], inputs: int, request_tokens: int) -> list[Piece]:
    """Drop the end of a text of hundreds of pages, which does not fit into one request."""
    kept: list[Piece] = []
    for piece in pieces:
        if kept and (len(kept) == inputs or sum(each.tokens for each in kept) + piece.tokens > request_tokens):
            break
        kept.append(piece)
    return kept


@dataclass(slots=True)
class Run:
    """The state of a series of requests."""

    side: Side
    timeout_s: float
    dimensions: int  # 0: accept any
    retries: RetryPolicy
    slots: asyncio.Semaphore
    stopped: bool = False  # send nothing more
    refused_in_a_row: int = 0
    also_split: set[int] = field(default_factory=set)  # texts that turned out to be too long


class Exchange:
    """Sends requests to one provider; `proven` after the first valid response."""

    def __init__(
        self, api: Api, service: Service, model: str, facts: Model, *, dimensions: int, concurrency: int
    ) -> None:
        self._api = api
        self._model = model
        self._facts = facts
        self._dimensions = dimensions
        self._concurrency = concurrency
        self._client = RemoteClient(service, connections=concurrency)
        self.proven = False
        self._needs_alternative = False  # the server supports only part of the API

    def run(self, side: Side, timeout_s: float, dimensions: int, *, interactive: bool) -> Run:
        """Return the state of a new series of requests."""
        retries = INTERACTIVE if interactive else RetryPolicy()
        return Run(side, timeout_s, dimensions, retries, asyncio.Semaphore(self._concurrency))

    def begin(self, bundle: Bundle, run: Run) -> Future[EmbeddedPart]:
        """Request the vectors of a bundle once a connection is free; the future raises RemoteFailure."""
        return self._client.submit(self._part(bundle, run))

    def close(self) -> None:
        """Cancel pending requests and close the connections."""
        self._client.close()

    async def _part(self, bundle: Bundle, run: Run) -> EmbeddedPart:
        async with run.slots:
            if run.stopped:
                raise asyncio.CancelledError
            try:
                outcomes = await self._outcomes(bundle.pieces, run)
            except RemoteFailure:
                run.stopped = True  # before another request can start
                raise
        return _joined(bundle, outcomes, run.also_split)

    async def _outcomes(self, pieces: Sequence[Piece], run: Run) -> list[Vector | str]:
        """Return the vector of each piece, or the reason why it has none."""
        try:
            rows, wrong = await self._rows(pieces, run)
        except RemoteFailure as failure:
            if failure.status not in _REFUSALS or failure.kind != "refused":
                raise
            return await self._without_refused(pieces, run, failure)
        if wrong:
            rows, wrong = await self._asked_again(pieces, rows, wrong, run)
        return [wrong.get(at, rows[at]) for at in range(len(pieces))]

    async def _asked_again(
        self, pieces: Sequence[Piece], rows: Matrix, wrong: dict[int, str], run: Run
    ) -> tuple[Matrix, dict[int, str]]:
        """Retry texts with invalid vectors; if none is valid, the whole request has failed."""
        places = sorted(wrong)
        again, still_wrong = await self._rows([pieces[place] for place in places], run)
        for at, place in enumerate(places):
            if at not in still_wrong:
                rows[place] = again[at]
        left = {places[at]: f"{self._api.title} returned an invalid vector: {why}" for at, why in still_wrong.items()}
        if len(left) == len(pieces) > 1:
            raise RemoteFailure("invalid_response", next(iter(left.values())))
        return rows, left

    async def _without_refused(self, pieces: Sequence[Piece], run: Run, failure: RemoteFailure) -> list[Vector | str]:
        """Find the refused text by bisection, and embed the rest."""
        if len(pieces) == 1:
            return [await self._refused_alone(pieces[0], run, failure)]
        if not self.proven:  # the model or the address may be wrong
            try:
                await self._rows([Piece(-1, HARMLESS, 1)], run)
            except RemoteFailure as also:
                raise (failure if also.kind == "refused" else also) from None
        middle = len(pieces) // 2
        return [*await self._outcomes(pieces[:middle], run), *await self._outcomes(pieces[middle:], run)]

    async def _refused_alone(self, piece: Piece, run: Run, failure: RemoteFailure) -> Vector | str:
        if _is_too_long(failure) and piece.tokens > MIN_SPLIT_TOKENS:
            halves = [Piece(piece.position, part, estimate_tokens(part)) for part in split_text(piece.text, 2)]
            outcomes = await self._outcomes(halves, run)
            reason = next((each for each in outcomes if isinstance(each, str)), None)
            if reason is None and len(halves) > 1:
                run.also_split.add(piece.position)
                vectors = [each for each in outcomes if not isinstance(each, str)]
                return mean_direction(vectors, [half.tokens for half in halves])
            return reason or failure.message
        run.refused_in_a_row += 1
        if run.refused_in_a_row >= MAX_REFUSED_IN_A_ROW:
            raise failure
        return failure.message + (f": {failure.detail}" if failure.detail else "")

    async def _rows(self, pieces: Sequence[Piece], run: Run) -> tuple[Matrix, dict[int, str]]:
        """Return unit rows, and the problems of invalid ones by row."""
        other = self._api.alternative
        if other and self._needs_alternative:
            return await self._rows_by(other, pieces, run)
        try:
            return await self._send(self._api, pieces, run)
        except RemoteFailure as failure:
            if other is None or self.proven or failure.kind != other.after or _is_too_long(failure):
                raise
            try:
                found = await self._rows_by(other, pieces, run)
            except RemoteFailure:
                raise failure from None
        self._needs_alternative = True
        return found

    async def _rows_by(self, other: Alternative, pieces: Sequence[Piece], run: Run) -> tuple[Matrix, dict[int, str]]:
        if not other.one_text:
            return await self._send(other, pieces, run)
        parts = [await self._send(other, [piece], run) for piece in pieces]
        return np.concatenate([rows for rows, _ in parts]), {
            at: wrong[0] for at, (_, wrong) in enumerate(parts) if wrong
        }

    async def _send(self, way: Api | Alternative, pieces: Sequence[Piece], run: Run) -> tuple[Matrix, dict[int, str]]:
        """Send one request."""
        prefix = self._facts.query_prefix if run.side == "query" else self._facts.document_prefix
        texts = [valid_unicode(prefix + (piece.text if piece.text.strip() else "-")) for piece in pieces]
        path, body = way.request(Question(self._model, texts, run.side, self._dimensions))
        rows, wrong = await self._client.answer(
            Call(path, body),
            timeout_s=run.timeout_s,
            retries=run.retries,
            read=lambda reply: self._read(way, reply, len(pieces), run.dimensions),
        )
        self.proven = True
        run.refused_in_a_row = 0
        return rows, wrong

    def _read(self, way: Api | Alternative, reply: Reply, count: int, dimensions: int) -> tuple[Matrix, dict[int, str]]:
        title = self._api.title
        try:
            raw = way.rows(reply.json(title))
        except (InvalidResponse, BadVectorError) as error:
            raise invalid_response(title, str(error)) from None
        if len(raw) != count:
            raise invalid_response(title, f"{len(raw)} vectors for {count} texts")
        lengths = {len(row) if hasattr(row, "__len__") else 0 for row in raw}
        expected = dimensions or max(lengths)
        if lengths != {0} and len(lengths) == 1 and lengths != {expected}:
            raise RemoteFailure(
                "wrong_dimensions", f"{title} returned vectors of {lengths.pop()} dimensions, expected {expected}"
            )
        if not expected:
            raise invalid_response(title, "empty vectors")
        return valid_rows(raw, dimensions=expected)


def _is_too_long(failure: RemoteFailure) -> bool:
    return failure.status == 413 or bool(_TOO_LONG.search(failure.detail))


def _joined(bundle: Bundle, outcomes: Sequence[Vector | str], also_split: set[int]) -> EmbeddedPart:
    """Return one row per text: the vector of its only piece, or the mean of its pieces."""
    by_text: dict[int, list[int]] = {}
    for at, piece in enumerate(bundle.pieces):
        by_text.setdefault(piece.position, []).append(at)
    rows: list[Vector] = []
    positions: list[int] = []
    failed: dict[int, str] = {}
    for position, places in by_text.items():
        reasons = [outcome for at in places if isinstance(outcome := outcomes[at], str)]
        if reasons:
            failed[position] = reasons[0]
            continue
        vectors = [outcome for at in places if not isinstance(outcome := outcomes[at], str)]
        positions.append(position)
        weights = [bundle.pieces[at].tokens for at in places]
        rows.append(vectors[0] if len(vectors) == 1 else mean_direction(vectors, weights))
    matrix = np.stack(rows) if rows else np.empty((0, 0), dtype=np.float32)
    split = sorted({*bundle.split, *(position for position in by_text if position in also_split)})
    return EmbeddedPart(positions, matrix, failed, split)
