"""Bundles of text in, checked vectors out: one request at a time for each, and what is bad in an answer kept apart.

A text that the provider refuses, or gives a vector that is none, costs itself and not its neighbours.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from notewell.embedding.checks import sound_rows
from notewell.embedding.http.client import Call, RemoteClient
from notewell.embedding.http.failures import RemoteFailure
from notewell.embedding.http.patience import HURRIED, Patience
from notewell.embedding.http.replies import Reply, sendable
from notewell.embedding.providers.api import Nonsense, Question
from notewell.embedding.providers.packing import Piece, about_tokens, in_parts
from notewell.errors import BadVectorError
from notewell.protocols import EmbeddedPart

if TYPE_CHECKING:
    from notewell.embedding.http.service import Service
    from notewell.embedding.providers.api import Api, Model, Side
    from notewell.embedding.providers.packing import Bundle
    from notewell.protocols import Matrix, Vector

HARMLESS = "hello"  # asked for when a whole request is refused, to see whether it is a text or everything
REFUSED_IN_A_ROW = 16  # after so many texts it is not the texts
SHORTEST_SPLIT = 32  # tokens; a shorter text is not refused for its length
_TOO_LONG = re.compile(r"(?i)too (?:long|large|many tokens)|context length|tokens|maximum|exceed")
_REFUSALS = {400, 413, 422}


@dataclass(slots=True)
class Run:
    """One series of requests of the same kind."""

    side: Side
    timeout_s: float
    dimensions: int  # 0: take what comes
    patience: Patience
    slots: asyncio.Semaphore
    stopped: bool = False  # nothing more is sent
    refused_in_a_row: int = 0
    also_split: set[int] = field(default_factory=set)  # texts that turned out to be too long


class Exchange:
    """The conversation with one provider; `proven` once it has answered well."""

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

    def run(self, side: Side, timeout_s: float, dimensions: int, *, hurried: bool) -> Run:
        """Return the state of a new series of requests."""
        patience = HURRIED if hurried else Patience()
        return Run(side, timeout_s, dimensions, patience, asyncio.Semaphore(self._concurrency))

    def begin(self, bundle: Bundle, run: Run) -> Future[EmbeddedPart]:
        """Ask for the vectors of a bundle as soon as there is room; the future raises RemoteFailure."""
        return self._client.submit(self._part(bundle, run))

    def close(self) -> None:
        """End what is under way and close the connections."""
        self._client.close()

    async def _part(self, bundle: Bundle, run: Run) -> EmbeddedPart:
        async with run.slots:
            if run.stopped:
                raise asyncio.CancelledError
            try:
                outcomes = await self._outcomes(bundle.pieces, run)
            except RemoteFailure:
                run.stopped = True  # before any other request can begin
                raise
        return _joined(bundle, outcomes, run.also_split)

    async def _outcomes(self, pieces: Sequence[Piece], run: Run) -> list[Vector | str]:
        """Return a vector, or the reason for none, for each piece."""
        try:
            rows, wrong = await self._rows(pieces, run)
        except RemoteFailure as failure:
            if failure.status not in _REFUSALS or failure.kind != "refused":
                raise
            return await self._without_the_refused(pieces, run, failure)
        if wrong:
            rows, wrong = await self._asked_again(pieces, rows, wrong, run)
        return [wrong.get(at, rows[at]) for at in range(len(pieces))]

    async def _asked_again(
        self, pieces: Sequence[Piece], rows: Matrix, wrong: dict[int, str], run: Run
    ) -> tuple[Matrix, dict[int, str]]:
        """Ask once more for the vectors that were none; a provider that gives nothing else has failed as a whole."""
        places = sorted(wrong)
        again, still_wrong = await self._rows([pieces[place] for place in places], run)
        for at, place in enumerate(places):
            if at not in still_wrong:
                rows[place] = again[at]
        left = {places[at]: f"{self._api.title} gave no usable vector: {why}" for at, why in still_wrong.items()}
        if len(left) == len(pieces) > 1:
            raise RemoteFailure("nonsense", next(iter(left.values())))
        return rows, left

    async def _without_the_refused(
        self, pieces: Sequence[Piece], run: Run, failure: RemoteFailure
    ) -> list[Vector | str]:
        """Find the text that a request was refused for, by halves, and embed the rest."""
        if len(pieces) == 1:
            return [await self._refused_alone(pieces[0], run, failure)]
        if not self.proven:  # it may be the model or the address that is wrong, and then no half is better
            try:
                await self._rows([Piece(-1, HARMLESS, 1)], run)
            except RemoteFailure as also:
                raise (failure if also.kind == "refused" else also) from None
        middle = len(pieces) // 2
        return [*await self._outcomes(pieces[:middle], run), *await self._outcomes(pieces[middle:], run)]

    async def _refused_alone(self, piece: Piece, run: Run, failure: RemoteFailure) -> Vector | str:
        too_long = failure.status == 413 or _TOO_LONG.search(failure.detail)
        if too_long and piece.tokens > SHORTEST_SPLIT:
            halves = [Piece(piece.position, part, about_tokens(part)) for part in in_parts(piece.text, 2)]
            outcomes = await self._outcomes(halves, run)
            reason = next((each for each in outcomes if isinstance(each, str)), None)
            if reason is None and len(halves) > 1:
                run.also_split.add(piece.position)
                return _mean(halves, [each for each in outcomes if not isinstance(each, str)])
            return reason or failure.message
        run.refused_in_a_row += 1
        if run.refused_in_a_row >= REFUSED_IN_A_ROW:
            raise failure
        return failure.message + (f": {failure.detail}" if failure.detail else "")

    async def _rows(self, pieces: Sequence[Piece], run: Run) -> tuple[Matrix, dict[int, str]]:
        """Make one request; return unit rows, and what is wrong with those that are none."""
        prefix = self._facts.query_prefix if run.side == "query" else self._facts.document_prefix
        texts = [sendable(prefix + (piece.text if piece.text.strip() else "-")) for piece in pieces]
        path, body = self._api.ask(Question(self._model, texts, run.side, self._dimensions))
        rows, wrong = await self._client.answer(
            Call(path, body),
            timeout_s=run.timeout_s,
            patience=run.patience,
            read=lambda reply: self._read(reply, len(pieces), run.dimensions),
        )
        self.proven = True
        run.refused_in_a_row = 0
        return rows, wrong

    def _read(self, reply: Reply, count: int, dimensions: int) -> tuple[Matrix, dict[int, str]]:
        title = self._api.title
        try:
            raw = self._api.rows(reply.json(title))
        except (Nonsense, BadVectorError) as error:
            raise RemoteFailure("nonsense", f"{title} answered nonsense: {error}") from None
        if len(raw) != count:
            raise RemoteFailure("nonsense", f"{title} answered nonsense: {len(raw)} vectors for {count} texts")
        lengths = {len(row) if hasattr(row, "__len__") else 0 for row in raw}
        expected = dimensions or max(lengths)
        if lengths != {0} and len(lengths) == 1 and lengths != {expected}:
            raise RemoteFailure(
                "misfit", f"{title} gave vectors of {lengths.pop()} dimensions, {expected} were expected"
            )
        if not expected:
            raise RemoteFailure("nonsense", f"{title} answered nonsense: vectors without numbers")
        return sound_rows(raw, dimensions=expected)


def _joined(bundle: Bundle, outcomes: Sequence[Vector | str], also_split: set[int]) -> EmbeddedPart:
    """Return one row a text: the vector of its only piece, or the mean of its pieces'."""
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
        rows.append(vectors[0] if len(vectors) == 1 else _mean([bundle.pieces[at] for at in places], vectors))
    matrix = np.stack(rows) if rows else np.empty((0, 0), dtype=np.float32)
    split = sorted({*bundle.split, *(position for position in by_text if position in also_split)})
    return EmbeddedPart(positions, matrix, failed, split)


def _mean(pieces: Sequence[Piece], vectors: Sequence[Vector]) -> Vector:
    """Return the mean direction, each piece weighing as much as it has tokens."""
    weights = np.asarray([piece.tokens for piece in pieces], dtype=np.float64)
    total = weights @ np.stack(vectors).astype(np.float64)
    length = float(np.linalg.norm(total))
    # Pieces that point exactly apart have no mean; the first says as much about the text as any.
    mean: Vector = (total / length).astype(np.float32) if length > 1e-9 else vectors[0]
    return mean
